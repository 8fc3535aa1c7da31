//! The rungs: from bytes that are made and dropped in memory up to a copy from disk to disk. Each adds one thing to the
//! rung below it, so that the rung where the rate falls names what makes it fall.

use carrack_core::words;

words! {
    /// Where the bytes of a rung come from.
    pub enum RungSource {
        0 Zero "zero" "zeros that are made as they are sent"
        1 Ram "ram" "a file in memory"
        2 Disk "disk" "a file"
        3 Random "random" "random bytes that are made as they are sent"
    }
}

words! {
    /// Where they go.
    pub enum RungSink {
        0 Null "null" "nowhere: they are dropped as they come"
        1 Ram "ram" "a file in memory"
        2 Disk "disk" "a file, synced"
    }
}

/// One step of the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rung {
    /// Where its bytes come from.
    pub from: RungSource,
    /// Where they go.
    pub to: RungSink,
    /// Those that it may stand on, the best first: of several in one list the slower counts.
    below: &'static [&'static [&'static str]],
    /// What it adds to them.
    pub adds: &'static str,
}

const READING: &str = "reading the source's storage";
const WRITING: &str = "writing the destination's storage";

/// All of them, from bottom to top.
pub const LADDER: [Rung; 7] = [
    Rung { from: RungSource::Zero, to: RungSink::Null, below: &[], adds: "the network and the processors" },
    Rung {
        from: RungSource::Ram,
        to: RungSink::Null,
        below: &[&["zero->null"]],
        adds: "reading a file, even from memory",
    },
    Rung {
        from: RungSource::Ram,
        to: RungSink::Ram,
        below: &[&["ram->null"], &["zero->null"]],
        adds: "writing a file, even to memory",
    },
    Rung { from: RungSource::Disk, to: RungSink::Null, below: &[&["ram->null"], &["zero->null"]], adds: READING },
    Rung { from: RungSource::Disk, to: RungSink::Ram, below: &[&["ram->ram"], &["disk->null"]], adds: READING },
    Rung { from: RungSource::Random, to: RungSink::Disk, below: &[&["ram->ram"], &["zero->null"]], adds: WRITING },
    Rung {
        from: RungSource::Disk,
        to: RungSink::Disk,
        below: &[&["disk->ram", "random->disk"], &["disk->null", "random->disk"]],
        adds: "reading and writing storage at the same time",
    },
];

/// A rung that loses less than this share of what is below it loses nothing.
const LITTLE: f64 = 0.1;
/// Of rungs that lose almost the same, the lowest is named: this share of the largest loss.
const ALMOST: f64 = 0.9;

impl Rung {
    /// As it is called: `disk->ram`.
    pub fn name(&self) -> String {
        format!("{}->{}", self.from.name(), self.to.name())
    }

    /// What it stands on among those that were measured: the name and the rate.
    pub fn stands_on<'a>(&self, measured: &'a [(String, f64)]) -> Option<&'a (String, f64)> {
        self.below.iter().find_map(|together| {
            let found: Option<Vec<_>> = together.iter().map(|name| measured.iter().find(|(n, _)| n == name)).collect();
            found?.into_iter().min_by(|a, b| a.1.total_cmp(&b.1))
        })
    }
}

/// The share of the rate below that is lost; nothing where it is faster.
pub fn loss(rate: f64, below: f64) -> f64 {
    if below > 0.0 { (1.0 - rate / below).max(0.0) } else { 0.0 }
}

/// Where the loss enters, in a sentence. `measured` has the rungs' names and rates in their order.
pub fn verdict(measured: &[(String, f64)]) -> Option<String> {
    let losses: Vec<(&Rung, f64)> = LADDER
        .iter()
        .filter_map(|rung| {
            let (_, rate) = measured.iter().find(|(name, _)| *name == rung.name())?;
            Some((rung, loss(*rate, rung.stands_on(measured)?.1)))
        })
        .collect();
    let largest = losses.iter().map(|(_, loss)| *loss).reduce(f64::max)?;
    if largest < LITTLE {
        return Some(format!("no rung loses a tenth: {} limit all of them", LADDER[0].adds));
    }
    let (rung, loss) = losses.into_iter().find(|(_, loss)| *loss >= largest * ALMOST)?;
    Some(format!("the loss enters at {}: {} ({:.0} %)", rung.name(), rung.adds, loss * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(rates: &[(&str, f64)]) -> String {
        let measured: Vec<(String, f64)> = rates.iter().map(|(name, rate)| ((*name).to_owned(), *rate)).collect();
        verdict(&measured).unwrap()
    }

    const ALL: [&str; 7] =
        ["zero->null", "ram->null", "ram->ram", "disk->null", "disk->ram", "random->disk", "disk->disk"];

    fn all(rates: [f64; 7]) -> String {
        told(&std::array::from_fn::<_, 7, _>(|at| (ALL[at], rates[at])))
    }

    #[test]
    fn rungs_are_called_by_what_they_join() {
        assert_eq!(LADDER.map(|rung| rung.name()), ALL);
    }

    #[test]
    fn rung_where_the_loss_enters_is_named() {
        let read = all([5.0, 4.8, 4.0, 0.5, 0.5, 3.8, 0.5]);
        assert_eq!(read, "the loss enters at disk->null: reading the source's storage (90 %)");
        let write = all([5.0, 4.8, 4.0, 4.6, 3.9, 0.2, 0.2]);
        assert_eq!(write, "the loss enters at random->disk: writing the destination's storage (95 %)");
        // Each alone is fast: the same disk is read and written.
        let both = all([5.0, 4.8, 4.0, 4.6, 3.9, 3.8, 1.2]);
        assert_eq!(both, "the loss enters at disk->disk: reading and writing storage at the same time (68 %)");
        assert!(all([1.0, 1.02, 0.99, 1.0, 0.97, 0.99, 0.98]).starts_with("no rung loses a tenth: the network"));
    }

    #[test]
    fn rungs_without_memory_stand_on_what_there_is() {
        let rates = [("zero->null", 4.0), ("disk->null", 1.0), ("random->disk", 3.9), ("disk->disk", 0.99)];
        assert_eq!(told(&rates), "the loss enters at disk->null: reading the source's storage (75 %)");
        assert_eq!(verdict(&[("zero->null".to_owned(), 4.0)]), None, "one rung is no ladder");
    }

    #[test]
    fn faster_than_below_is_no_loss() {
        assert_eq!((loss(5.0, 4.0), loss(1.0, 4.0), loss(1.0, 0.0)), (0.0, 0.75, 0.0));
    }
}
