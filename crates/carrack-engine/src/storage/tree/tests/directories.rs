//! Directories of a destination: their permissions and times, and what stands in their place at the end.
