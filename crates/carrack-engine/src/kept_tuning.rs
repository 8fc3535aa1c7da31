//! What copies have found about the ways between hosts, kept for the next copy over the same way.
//!
//! It is advice, and no copy depends on it: a file that cannot be read, or that somebody has written nonsense into, is
//! set aside and told of, and the copy begins as if nothing were known.

#![expect(clippy::disallowed_methods, reason = "a file of the user's own, by the path that its owner gave")]

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use carrack_core::limits;
use carrack_core::path::display_bytes;
use carrack_core::words::words;

use crate::error::describe;
use crate::own_files::{lock_beside, write_whole};

/// The first line of a file. One with another version is left alone.
const HEADER: &str = "carrack-tuning 1";
/// What every version's first line begins with.
const HEADER_OF_ANY: &str = "carrack-tuning ";
/// How long the file is waited for while other commands write it. After that, what was found is not kept.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

words! {
    /// What is found while a copy runs.
    pub enum Knob {
        Streams "streams" "data connections; its rate is in bytes a second"
        List "list" "workers that look at files of the source; its rate is in files a second"
        Find "find" "workers that open files of the source; its rate is in files a second"
        Create "create" "workers that make files at the destination; its rate is in files a second"
        Publish "publish" "workers that give files their names; its rate is in files a second"
    }
}

/// A way on which numbers are found: from one host to another, over one kind of link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeptWay {
    /// The host of the sources.
    pub from: String,
    /// The host of the destination.
    pub to: String,
    /// The kind of link, and the addresses that were asked for.
    pub link: String,
}

impl KeptWay {
    /// `None` where one of the words cannot stand in a line: it is empty, long, or has letters that no host's name has.
    pub fn new(from: &str, to: &str, link: &str) -> Option<Self> {
        let is_word = |word: &&str| {
            (1..=limits::NAME_BYTES).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_graphic())
        };
        let words = [from, to, link];
        words.iter().all(is_word).then(|| Self { from: from.into(), to: to.into(), link: link.into() })
    }

    /// Whether it leads from one of these hosts to the other, in either direction.
    pub fn is_between(&self, (one, other): (&str, &str)) -> bool {
        let is = |from: &str, to: &str| self.from.eq_ignore_ascii_case(from) && self.to.eq_ignore_ascii_case(to);
        is(one, other) || is(other, one)
    }
}

/// A number that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundNumber {
    /// Of what.
    pub knob: Knob,
    /// How many.
    pub number: u16,
    /// What they brought, in what the knob counts.
    pub rate: u64,
    /// When, in seconds since 1970.
    pub at: u64,
}

/// Keeps what copies find. Nothing here fails: what cannot be kept is forgotten.
pub trait KeptTuning: fmt::Debug + Send + Sync {
    /// What was found on a way. `note` takes what a person should know.
    fn look_up(&self, way: &KeptWay, note: &dyn Fn(String)) -> Vec<FoundNumber>;

    /// Keeps what was found, in the place of what was kept of the same.
    fn keep(&self, way: &KeptWay, found: &[FoundNumber], note: &dyn Fn(String));
}

/// Keeps nothing.
#[derive(Debug, Default)]
pub struct ForgetTuning;

impl KeptTuning for ForgetTuning {
    fn look_up(&self, _way: &KeptWay, _note: &dyn Fn(String)) -> Vec<FoundNumber> {
        Vec::new()
    }

    fn keep(&self, _way: &KeptWay, _found: &[FoundNumber], _note: &dyn Fn(String)) {}
}

/// Keeps it in a file, a line for each number, for [`limits::KEPT_TUNING_AGE`] and at most
/// [`limits::KEPT_TUNING_ENTRIES`] of them: the oldest make way.
#[derive(Debug)]
pub struct TuningFile {
    path: PathBuf,
    clock: fn() -> u64,
}

/// Why a file was not read.
#[derive(Debug, PartialEq, Eq)]
pub enum UnreadTuning {
    /// A later version has written it.
    Later,
    /// It is of no use.
    Unfit(String),
}

impl fmt::Display for UnreadTuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Later => f.write_str("a later version has written it"),
            Self::Unfit(why) => f.write_str(why),
        }
    }
}

impl TuningFile {
    /// That at this path, which need not be there.
    pub fn new(path: PathBuf) -> Self {
        Self { path, clock: || u64::try_from(carrack_sys::host::clock_seconds()).unwrap_or(0) }
    }

    /// All that is kept, in the order in which it was found.
    ///
    /// # Errors
    /// When the file is there and cannot be used.
    pub fn entries(&self) -> Result<Vec<(KeptWay, FoundNumber)>, UnreadTuning> {
        let mut entries = parse(&read(&self.path)?)?;
        let now = (self.clock)();
        // A time in the future is that of a clock that was wrong: nobody knows when it was.
        let lasts = |found: &FoundNumber| found.at <= now && now - found.at <= limits::KEPT_TUNING_AGE.as_secs();
        entries.retain(|(_, found)| lasts(found));
        Ok(entries)
    }

    /// Forgets what was found between two hosts, in both directions, or everything. Tells how many numbers it was.
    ///
    /// # Errors
    /// When the file cannot be written, or be read to leave the rest in it; it is as it was then.
    pub fn forget(&self, pair: Option<(&str, &str)>) -> Result<usize, String> {
        if !self.path.exists() {
            return Ok(0);
        }
        let lock = lock_beside(&self.path, LOCK_PATIENCE).ok_or("other commands hold its lock")?;
        let entries = match (self.entries(), pair) {
            (Ok(entries), _) => entries,
            (Err(UnreadTuning::Unfit(_)), None) => Vec::new(),
            (Err(why), _) => return Err(why.to_string()),
        };
        let before = entries.len();
        let stays = |way: &KeptWay| pair.is_some_and(|pair| !way.is_between(pair));
        let left: Vec<_> = entries.into_iter().filter(|(way, _)| stays(way)).collect();
        let count = before - left.len();
        write_whole(&self.path, text(&left).as_bytes()).map_err(|error| describe(&error))?;
        drop(lock);
        Ok(count)
    }

    /// What is kept; what cannot be used is moved out of the way, under the lock: another command may have done so by
    /// now, and begun a new file.
    fn entries_or_aside(&self, note: &dyn Fn(String)) -> Vec<(KeptWay, FoundNumber)> {
        let why = match self.entries() {
            Ok(entries) => return entries,
            Err(UnreadTuning::Later) => return Vec::new(),
            Err(UnreadTuning::Unfit(why)) => why,
        };
        let Some(_lock) = lock_beside(&self.path, LOCK_PATIENCE) else { return Vec::new() };
        match self.entries() {
            Ok(entries) => return entries,
            Err(UnreadTuning::Later) => return Vec::new(),
            Err(UnreadTuning::Unfit(_)) => {}
        }
        note(self.set_aside(&why));
        Vec::new()
    }

    /// Moves the file out of the way, and says so. To be called with the lock.
    fn set_aside(&self, why: &str) -> String {
        let aside = self.path.with_extension("unreadable");
        let kept = "what earlier copies have found is not known";
        match std::fs::rename(&self.path, &aside) {
            Ok(()) => format!("{}: {why}; it is now {}, and {kept}", shown(&self.path), shown(&aside)),
            Err(error) => format!("{}: {why}; {kept} ({})", shown(&self.path), describe(&error)),
        }
    }
}

impl KeptTuning for TuningFile {
    fn look_up(&self, way: &KeptWay, note: &dyn Fn(String)) -> Vec<FoundNumber> {
        let entries = self.entries_or_aside(note);
        entries.into_iter().filter(|(of, _)| of == way).map(|(_, found)| found).collect()
    }

    fn keep(&self, way: &KeptWay, found: &[FoundNumber], note: &dyn Fn(String)) {
        // Without the lock another command's numbers could be lost. Where nothing can be written nothing is kept.
        let Some(_lock) = lock_beside(&self.path, LOCK_PATIENCE) else { return };
        let mut entries = match self.entries() {
            Ok(entries) => entries,
            Err(UnreadTuning::Later) => return,
            Err(UnreadTuning::Unfit(why)) => {
                note(self.set_aside(&why));
                Vec::new()
            }
        };
        let at = (self.clock)();
        for one in found {
            entries.retain(|(of, before)| of != way || before.knob != one.knob);
            entries.push((way.clone(), FoundNumber { at, ..*one }));
        }
        let surplus = entries.len().saturating_sub(limits::KEPT_TUNING_ENTRIES);
        let _ = write_whole(&self.path, text(&entries[surplus..]).as_bytes());
    }
}

fn shown(path: &Path) -> String {
    display_bytes(path.as_os_str().as_encoded_bytes()).to_string()
}

fn read(path: &Path) -> Result<String, UnreadTuning> {
    let unfit = |why: &str| UnreadTuning::Unfit(why.to_owned());
    let file = match carrack_sys::file::open_unfollowed(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(UnreadTuning::Unfit(describe(&error))),
    };
    let facts = file.metadata().map_err(|error| UnreadTuning::Unfit(describe(&error)))?;
    if !facts.is_file() {
        return Err(unfit("it is no regular file"));
    }
    let mut bytes = Vec::new();
    let most = limits::KEPT_TUNING_BYTES;
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(|error| UnreadTuning::Unfit(describe(&error)))?;
    if bytes.len() > most {
        return Err(UnreadTuning::Unfit(format!("it has more than {most} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| unfit("it is not text"))
}

/// Every line, or what is wrong with the first that is none.
fn parse(text: &str) -> Result<Vec<(KeptWay, FoundNumber)>, UnreadTuning> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut lines = text.lines().zip(1..);
    match lines.next() {
        Some((HEADER, _)) => {}
        Some((first, _)) if is_header(first) => return Err(UnreadTuning::Later),
        _ => return Err(UnreadTuning::Unfit("it does not begin as Carrack's does".into())),
    }
    let torn = || UnreadTuning::Unfit("its last line has no end".into());
    text.ends_with('\n').then_some(()).ok_or_else(torn)?;
    let entries: Vec<_> = lines
        .map(|(line, number)| {
            entry(line).ok_or_else(|| UnreadTuning::Unfit(format!("line {number} is none of Carrack's")))
        })
        .collect::<Result<_, _>>()?;
    if entries.len() > limits::KEPT_TUNING_ENTRIES {
        return Err(UnreadTuning::Unfit(format!("it has more than {} lines", limits::KEPT_TUNING_ENTRIES)));
    }
    Ok(entries)
}

fn is_header(line: &str) -> bool {
    line.strip_prefix(HEADER_OF_ANY).is_some_and(|version| version.parse::<u32>().is_ok())
}

fn entry(line: &str) -> Option<(KeptWay, FoundNumber)> {
    let words: Vec<&str> = line.split(' ').collect();
    let [from, to, link, knob, number, rate, at] = words[..] else { return None };
    let found = FoundNumber {
        knob: Knob::parse(knob).ok()?,
        number: number.parse().ok().filter(|number| (1..=limits::STREAMS).contains(number))?,
        rate: rate.parse().ok()?,
        at: at.parse().ok()?,
    };
    Some((KeptWay::new(from, to, link)?, found))
}

fn text(entries: &[(KeptWay, FoundNumber)]) -> String {
    let line = |(way, found): &(KeptWay, FoundNumber)| {
        let (KeptWay { from, to, link }, FoundNumber { knob, number, rate, at }) = (way, found);
        format!("{from} {to} {link} {} {number} {rate} {at}\n", knob.name())
    };
    std::iter::once(format!("{HEADER}\n")).chain(entries.iter().map(line)).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn way(to: &str) -> KeptWay {
        KeptWay::new("here", to, "direct").unwrap()
    }

    fn streams(number: u16) -> FoundNumber {
        FoundNumber { knob: Knob::Streams, number, rate: 1_000_000, at: 0 }
    }

    fn at(path: &Path, clock: fn() -> u64) -> TuningFile {
        TuningFile { path: path.into(), clock }
    }

    fn numbers(found: &[FoundNumber]) -> Vec<(Knob, u16)> {
        found.iter().map(|found| (found.knob, found.number)).collect()
    }

    fn quiet(note: String) {
        panic!("{note}");
    }

    #[test]
    fn kept_tuning_comes_back_for_the_same_way_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state/tuning");
        let file = at(&path, || 1000);
        assert!(file.look_up(&way("a"), &quiet).is_empty() && !path.exists());
        file.keep(&way("a"), &[streams(8), FoundNumber { knob: Knob::Create, ..streams(12) }], &quiet);
        file.keep(&way("a"), &[streams(16)], &quiet);
        file.keep(&KeptWay::new("a", "here", "direct").unwrap(), &[streams(4)], &quiet);
        assert_eq!(numbers(&file.look_up(&way("a"), &quiet)), [(Knob::Create, 12), (Knob::Streams, 16)]);
        assert!(file.look_up(&KeptWay::new("here", "a", "reverse").unwrap(), &quiet).is_empty());
        assert_eq!(file.entries().unwrap().len(), 3);
        assert_eq!(file.forget(Some(("a", "here"))), Ok(3));
        assert_eq!(file.entries(), Ok(Vec::new()));
        for word in ["", "a b", "a\n", "\u{fc}", &"x".repeat(256)] {
            assert_eq!(KeptWay::new("here", word, "direct"), None);
        }
    }

    #[test]
    fn kept_tuning_is_bounded_in_number_and_in_age() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tuning");
        let file = at(&path, || 1000);
        for host in 0..limits::KEPT_TUNING_ENTRIES + 10 {
            file.keep(&way(&format!("h{host}")), &[streams(8)], &quiet);
        }
        let entries = file.entries().unwrap();
        assert_eq!(entries.len(), limits::KEPT_TUNING_ENTRIES);
        assert_eq!((&*entries[0].0.to, std::fs::metadata(&path).unwrap().len() < 1 << 20), ("h10", true));
        let later = at(&path, || 1000 + limits::KEPT_TUNING_AGE.as_secs());
        assert_eq!(later.entries().unwrap().len(), limits::KEPT_TUNING_ENTRIES);
        let too_late = at(&path, || 1001 + limits::KEPT_TUNING_AGE.as_secs());
        assert_eq!(too_late.entries().unwrap().len(), 0);
        assert_eq!(at(&path, || 999).entries().unwrap().len(), 0, "by a clock that was wrong");
    }

    /// A file that is hostile or torn is no error: it is set aside once, and told of.
    #[test]
    fn kept_tuning_of_no_use_is_set_aside_and_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tuning");
        let good = "carrack-tuning 1\nhere a direct streams 8 5 900\n";
        let many = format!("carrack-tuning 1\n{}", "here a direct streams 8 5 900\n".repeat(1000));
        let bad: [&[u8]; 12] = [
            &good.as_bytes()[..good.len() - 1],
            &good.as_bytes()[..20],
            &good.as_bytes()[..10],
            b"\0\0\0\0\0\0\0\0",
            b"carrack-tuning 1\nhere a direct streams 0 5 900\n",
            b"carrack-tuning 1\nhere a direct streams 257 5 900\n",
            b"carrack-tuning 1\nhere a direct threads 8 5 900\n",
            b"carrack-tuning 1\nhere a direct streams 8 -5 900\n",
            b"carrack-tuning 1\nhere \x1b[31m direct streams 8 5 900\n",
            b"carrack-tuning 1\nhere a  direct streams 8 5 900\n",
            b"carrack-tuning 1\n\xff\n",
            many.as_bytes(),
        ];
        for bytes in bad {
            std::fs::write(&path, bytes).unwrap();
            let notes = RefCell::new(Vec::new());
            let note = |text: String| notes.borrow_mut().push(text);
            let file = at(&path, || 1000);
            assert!(file.look_up(&way("a"), &note).is_empty());
            let told = notes.borrow();
            assert!(told.len() == 1 && told[0].contains("tuning.unreadable"), "{told:?}");
            assert_eq!(std::fs::read(path.with_extension("unreadable")).unwrap(), bytes);
            assert!(!path.exists() && file.look_up(&way("a"), &quiet).is_empty(), "told once");
            std::fs::write(&path, bytes).unwrap();
            let kept = RefCell::new(0);
            file.keep(&way("a"), &[streams(8)], &|_| *kept.borrow_mut() += 1);
            assert_eq!((*kept.borrow(), numbers(&file.look_up(&way("a"), &quiet))), (1, vec![(Knob::Streams, 8)]));
        }
        // Neither a link nor a pipe is followed or waited for.
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        let notes = RefCell::new(0);
        assert!(at(&path, || 1000).look_up(&way("a"), &|_| *notes.borrow_mut() += 1).is_empty());
        assert_eq!(*notes.borrow(), 1);
        // What a later version has written stays as it is.
        std::fs::write(&path, "carrack-tuning 2\nsomething else\n").unwrap();
        let file = at(&path, || 1000);
        file.keep(&way("a"), &[streams(8)], &quiet);
        assert!(file.look_up(&way("a"), &quiet).is_empty() && file.forget(None).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "carrack-tuning 2\nsomething else\n");
    }

    #[test]
    fn commands_at_once_lose_no_number_of_each_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tuning");
        std::thread::scope(|scope| {
            for host in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    let file = at(path, || 1000);
                    for number in 1..=8 {
                        file.keep(&way(&format!("h{host}-{number}")), &[streams(number)], &quiet);
                    }
                });
            }
        });
        assert_eq!(at(&path, || 1000).entries().unwrap().len(), 64);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}
