//! Lines of the audit on their way to the ledger; refusals of strangers are a line and a number.

use carrack_engine::sync::lock;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use crate::ledger::audit::NewAuditLine;

/// Lines that wait to be written. Beyond, they are only counted: whoever floods the service does not fill its memory.
pub(super) const WAITING_MOST: usize = 10_000;

/// Refusals of strangers of one network, for one name, are one line and a number within this time.
const WINDOW: Duration = Duration::from_secs(60);
/// Names of one network, and networks with their names, that are told apart within that time.
const NAMES_MOST: usize = 8;
const STRANGERS_MOST: usize = 256;
/// Those beyond.
const FURTHER: &str = "further networks";

/// Lines on their way to the ledger.
#[derive(Debug, Default)]
pub(super) struct Audit(Mutex<Waiting>);

/// Refusals of strangers, by their networks and the names that they tried.
#[derive(Debug, Default)]
pub(super) struct Strangers(HashMap<(String, String), Refusals>);

/// Those of one network and name since one of them had a line of its own.
#[derive(Debug)]
struct Refusals {
    line: NewAuditLine,
    since: Duration,
    more: u64,
}

impl Strangers {
    /// The lines to be kept for a refusal, at this time of a steady clock.
    pub fn refused(&mut self, network: Option<IpAddr>, line: NewAuditLine, now: Duration) -> Vec<NewAuditLine> {
        let mut lines = self.over(now);
        let network = network.map_or_else(|| "this host".to_owned(), |network| network.to_string());
        let (mut key, mut line) = ((network, line.user.clone()), line);
        if !self.0.contains_key(&key) && self.0.keys().filter(|known| known.0 == key.0).count() >= NAMES_MOST {
            key.1.clear();
        }
        if !self.0.contains_key(&key) && self.0.len() >= STRANGERS_MOST {
            key = (FURTHER.to_owned(), String::new());
            line.from = Some(FURTHER.to_owned());
        }
        match self.0.get_mut(&key) {
            Some(refusals) => refusals.more += 1,
            None => {
                lines.push(line.clone());
                let line = NewAuditLine { user: key.1.clone(), ..line };
                self.0.insert(key, Refusals { line, since: now, more: 0 });
            }
        }
        lines
    }

    /// What was counted and is over: how many there were beside the one that has its line.
    pub fn over(&mut self, now: Duration) -> Vec<NewAuditLine> {
        let ended = self.0.extract_if(|_, refusals| now.saturating_sub(refusals.since) >= WINDOW);
        let counted = ended.filter(|(_, refusals)| refusals.more > 0);
        let told = |(_, Refusals { line, more, .. }): (_, Refusals)| NewAuditLine {
            object: Some(format!("{more} more within {} s", WINDOW.as_secs())),
            ..line
        };
        counted.map(told).collect()
    }
}

/// Lines that wait, and refusals that have none yet.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// To be written next.
    pub lines: Vec<NewAuditLine>,
    /// A thread is writing.
    pub is_writing: bool,
    /// Lines that were not kept.
    pub lost: u64,
    /// Refusals of strangers.
    pub strangers: Strangers,
}

impl Audit {
    /// All of it, alone.
    pub fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Moment;

    #[test]
    fn refusals_of_strangers_are_a_line_and_a_number_for_each_network() {
        let mut strangers = Strangers::default();
        let line = || NewAuditLine {
            time: Moment(0),
            user: "ann".to_owned(),
            via: String::new(),
            token: None,
            from: Some("192.0.2.1".to_owned()),
            action: "POST /login".to_owned(),
            object: None,
            status: 401,
        };
        let network = |number: u32| Some(IpAddr::from(number.to_be_bytes()));
        let mut kept = 0;
        for number in 0..100_000 {
            kept += strangers.refused(network(number % 1000), line(), Duration::from_secs(1)).len();
        }
        assert_eq!(kept, STRANGERS_MOST + 1);
        let told = strangers.refused(network(7), line(), Duration::from_secs(61));
        let number = |line: &NewAuditLine| line.object.as_ref()?.split(' ').next()?.parse::<u64>().ok();
        let counted: u64 = told.iter().filter_map(number).sum();
        assert_eq!((told.len(), counted + kept as u64), (STRANGERS_MOST + 2, 100_000));
        assert!(told.iter().any(|line| line.from.as_deref() == Some(FURTHER)));
        // Names that one network makes up leave the others their lines.
        let of_names = |strangers: &mut Strangers, name: u32| {
            let line = NewAuditLine { user: format!("name {name}"), ..line() };
            strangers.refused(network(1), line, Duration::from_secs(200)).len()
        };
        let kept: usize = (0..10_000).map(|name| of_names(&mut strangers, name)).sum();
        assert!(kept <= NAMES_MOST + 3, "{kept}");
        assert_eq!(strangers.refused(network(2), line(), Duration::from_secs(201)).len(), 1);
    }
}
