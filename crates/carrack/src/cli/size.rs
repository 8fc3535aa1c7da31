//! Sizes and rates as people type them; the parsers are those of the options of a copy.

#[cfg(any(feature = "service", feature = "terminal"))]
use carrack_core::options::RateBound;

/// Parses a rate in bytes a second: a size, with or without `/s`. Zero means no limit, as in rsync.
#[cfg(any(feature = "service", feature = "terminal"))]
pub fn parse_rate(text: &str) -> Result<Option<u64>, String> {
    RateBound::parse(text).map(RateBound::bytes)
}
