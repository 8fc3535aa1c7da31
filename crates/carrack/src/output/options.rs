//! How a copy shall say what happens.

use std::time::Duration;

use carrack_core::location::Location;

use super::itemized::{ContentWay, LineFormat};

/// How a copy shall say what happens.
#[derive(Clone, Debug)]
pub struct OutputOptions {
    /// How often `-v` was given.
    pub verbose: u8,
    /// Show nothing but errors.
    pub quiet: bool,
    /// JSON on standard output.
    pub json: bool,
    /// Where to append what is said.
    pub log_file: Option<Vec<u8>>,
    /// Where to write digests; `-` is standard output.
    pub manifest: Option<Vec<u8>>,
    /// Where to write a signed account of it.
    pub receipt: Option<Vec<u8>>,
    /// Where to write the paths of the items that failed.
    pub failed_list: Option<Vec<u8>>,
    /// Where to write what both ends measure.
    pub timeline: Option<TimelineOptions>,
    /// Bar or not.
    pub bar: BarChoice,
    /// Between two progress lines, in JSON and where there is no bar. Zero: none.
    pub stats: Duration,
    /// At the end, the figures that rsync tells.
    pub figures: bool,
    /// A line for each item that was made, changed or deleted.
    pub lines: Option<LineFormat>,
    /// Which way content goes.
    pub direction: ContentWay,
    /// Nothing is moved: the report is of a plan.
    pub dry_run: bool,
    /// What is not kept counts as what failed.
    pub strict: bool,
    /// Where the copy goes, as the user named it.
    pub destination: CopyTarget,
}

/// Where a copy goes.
#[derive(Clone, Debug, Default)]
pub enum CopyTarget {
    /// To standard output: the exit code is that of the one file.
    Stdout,
    /// To a place with paths.
    Place(Location),
    /// To something that no verb names by a path.
    #[default]
    Other,
}

/// A timeline to be written.
#[derive(Clone, Debug)]
pub struct TimelineOptions {
    /// To which file.
    pub path: Vec<u8>,
    /// What the copy was asked for, for the first line.
    pub asked: serde_json::Value,
}

impl OutputOptions {
    /// Whether somebody wants to hear of every item, not only of failed ones.
    pub fn wants_items(&self) -> bool {
        self.verbose > 0 || self.json || self.proves()
    }

    /// Whether the digest of each file is told.
    pub fn proves(&self) -> bool {
        self.manifest.is_some() || self.receipt.is_some()
    }
}

/// Whether a bar is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarChoice {
    /// On a terminal that can draw one; elsewhere lines.
    Terminal,
    /// A bar wherever standard error leads.
    Always,
    /// Neither bar nor lines.
    Never,
}
