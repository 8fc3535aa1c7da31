//! Typed values of a host's evidence. Each is known, or says why it is not. A subject is one file here.

mod connection;
mod host;
mod interface;
mod route;
mod settings;
mod storage;
mod tcp;

pub use connection::{Agreed, Syn};
pub use host::{ClockOffset, ProcessorList};
pub use interface::{AddressNetwork, Interface, Interrupt};
pub use route::Route;
pub use settings::AtBoot;
pub use storage::{BlockDevice, Mount, Room};

use carrack_core::evidence::{Evidence, EvidenceText};
use carrack_core::path::display_bytes;

use crate::known::{Known, Unknown};
use crate::situation::{Host, HostSide};

/// What a host has said, as values.
#[derive(Clone, Copy, Debug)]
pub struct HostFacts<'a> {
    /// Which host.
    pub side: HostSide,
    evidence: &'a Evidence,
    /// The interface that is looked at in place of the carrier.
    on: Option<&'a str>,
}

impl<'a> HostFacts<'a> {
    /// Of this host; why not, if it says nothing.
    pub fn of(side: HostSide, host: &'a Host) -> Known<Self> {
        match &host.evidence {
            Ok(evidence) => Ok(Self { side, evidence, on: None }),
            Err(why) => Err(Unknown(why.clone())),
        }
    }

    /// What the host has said, for names that are found by their beginning.
    pub fn evidence(&self) -> &'a Evidence {
        self.evidence
    }

    /// A text, without white space around it.
    pub fn text(&self, name: &str) -> Known<&'a str> {
        match self.evidence.get(name) {
            Some(EvidenceText::Found(text)) => Ok(text.trim()),
            Some(EvidenceText::Absent) => Err(Unknown(format!("this host has no {}", shown(name)))),
            Some(EvidenceText::Denied) => Err(Unknown(format!("this user may not read {}", shown(name)))),
            Some(EvidenceText::Failed(why)) => {
                Err(Unknown(format!("{}: {}", shown(name), display_bytes(why.as_bytes()))))
            }
            None => Err(Unknown(format!("nobody asked for {}", shown(name)))),
        }
    }

    /// A text that is there, or not; whatever else is unknown.
    pub fn if_any(&self, name: &str) -> Known<Option<&'a str>> {
        match self.evidence.get(name) {
            Some(EvidenceText::Absent) => Ok(None),
            _ => self.text(name).map(Some),
        }
    }

    /// A number.
    pub fn number(&self, name: &str) -> Known<i64> {
        let text = self.text(name)?;
        text.parse().map_err(|_| unreadable(name, text))
    }

    /// Numbers in a row.
    pub fn numbers(&self, name: &str) -> Known<Vec<u64>> {
        let text = self.text(name)?;
        text.split_whitespace().map(|word| word.parse().map_err(|_| unreadable(name, text))).collect()
    }

    /// The value in a line of a name and a value.
    pub fn line(&self, name: &str, key: &str) -> Known<&'a str> {
        let mut lines = self.text(name)?.lines();
        let found = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        found.map(str::trim).ok_or_else(|| Unknown(format!("{} has no {key}", shown(name))))
    }

    /// The number in a line of a name and a value.
    pub fn line_number(&self, name: &str, key: &str) -> Known<u64> {
        let text = self.line(name, key)?;
        text.parse().map_err(|_| unreadable(name, text))
    }

    /// A kernel parameter of the network, by its name with slashes: `ipv4/tcp_sack`.
    pub fn network_number(&self, name: &str) -> Known<i64> {
        self.number(&format!("proc/sys/net/{name}"))
    }
}

fn unreadable(name: &str, text: &str) -> Unknown {
    let text = display_bytes(text.as_bytes()).to_string().chars().take(60).collect::<String>();
    Unknown(format!("{} says {text:?}", shown(name)))
}

/// The name of a file as a person knows it.
fn shown(name: &str) -> String {
    let name = display_bytes(name.as_bytes());
    if ["proc/", "sys/", "etc/"].iter().any(|top| name.to_string().starts_with(top)) {
        format!("/{name}")
    } else {
        name.to_string()
    }
}
