//! What the rules look at: one or two hosts, the path between them, and what is wanted.

use std::time::Duration;

use carrack_core::evidence::Evidence;
use carrack_core::report::PathTrace;
use carrack_core::words;

words! {
    /// Which of the hosts.
    pub enum HostSide {
        0 Near "near" "the first host: usually this one"
        1 Far "far" "the second host"
    }
}

impl HostSide {
    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::Near => Self::Far,
            Self::Far => Self::Near,
        }
    }
}

/// A host and what it has said of itself.
#[derive(Clone, Debug)]
pub struct Host {
    /// As the user named it.
    pub name: String,
    /// What it says, or why it says nothing.
    pub evidence: Result<Evidence, String>,
}

#[cfg(test)]
impl Host {
    /// One that says these texts, by their names.
    pub fn saying(texts: &[(&str, &str)]) -> Self {
        let mut evidence = Evidence::default();
        for (name, text) in texts {
            evidence.put(name, carrack_core::evidence::EvidenceText::Found((*text).to_owned()));
        }
        Self { name: "host".into(), evidence: Ok(evidence) }
    }
}

/// One direction of the path, as it was measured now.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// Whether a data connection could be made, or why not; `None` if none was tried.
    pub connection: Option<Result<(), String>>,
    /// Routers, and the largest packet.
    pub trace: Option<PathTrace>,
    /// Bytes a second that memory-to-memory streams carried, and how many streams.
    pub rate: Option<(f64, u16)>,
    /// Segments sent again, and all that were sent, at a rate below the one that fills the path.
    pub resent: Option<(u64, u64)>,
    /// The same at full rate, where the streams themselves make a queue overflow.
    pub resent_when_full: Option<(u64, u64)>,
}

/// The path between two hosts.
#[derive(Clone, Debug, Default)]
pub struct Path {
    /// The round trip; `None` where it is not known.
    pub round_trip: Option<Duration>,
    /// From the near host to the far one.
    pub there: Way,
    /// From the far host to the near one.
    pub back: Way,
}

impl Path {
    /// The direction in which this host sends.
    pub fn from(&self, side: HostSide) -> &Way {
        match side {
            HostSide::Near => &self.there,
            HostSide::Far => &self.back,
        }
    }
}

/// What the user wants of the path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wish {
    /// Bytes a second; `None` for what the interfaces carry.
    pub rate: Option<f64>,
    /// The number of streams; `None` for as many as a copy chooses.
    pub streams: Option<u16>,
    /// The round trip of paths that matter, where no second host is there to be measured.
    pub round_trip: Option<Duration>,
}

/// What the rules look at.
#[derive(Clone, Debug)]
pub struct Situation {
    /// The first host.
    pub near: Host,
    /// The second, if there is one.
    pub far: Option<Host>,
    /// Why the second could not be asked, and what to try, if there is anything.
    pub unreached: Option<(String, Option<String>)>,
    /// The path between them.
    pub path: Path,
    /// What is wanted.
    pub wish: Wish,
}

impl Situation {
    /// One host alone.
    pub fn of(near: Host) -> Self {
        Self { near, far: None, unreached: None, path: Path::default(), wish: Wish::default() }
    }

    /// Nobody has named a second host: nothing is to be said of a path.
    pub fn is_alone(&self) -> bool {
        self.far.is_none() && self.unreached.is_none()
    }

    /// A host, if there is one.
    pub fn host(&self, side: HostSide) -> Option<&Host> {
        match side {
            HostSide::Near => Some(&self.near),
            HostSide::Far => self.far.as_ref(),
        }
    }

    /// The hosts, with their sides.
    pub fn sides(&self) -> impl Iterator<Item = (HostSide, &Host)> {
        HostSide::ALL.iter().filter_map(|&side| Some((side, self.host(side)?)))
    }
}
