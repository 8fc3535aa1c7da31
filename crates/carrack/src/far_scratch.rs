//! A directory of a measurement's own at a place of any kind: hidden, and gone afterwards.
//!
//! A place on another host has no lock that this process could hold. So the name says whose the directory is: the boot
//! of this host, the process, and when that began (in a container every command may be process 1). Whoever measures
//! there next removes those whose process is gone, and those of other hosts once they are a day old.

// What only a ladder needs.
#![cfg_attr(not(feature = "terminal"), allow(dead_code))]

use carrack_sys::sync::lock;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure};
use carrack_core::location::Location;
use carrack_core::path::display_bytes;
use carrack_core::report::ItemKind;
use carrack_core::request::EndOptions;
use carrack_engine::files::Files;
use carrack_engine::{Context, Stop};
use carrack_sys::host;

/// What names begin with, before the kind of the measurement.
const PREFIX: &str = ".carrack-";
/// A directory whose process nobody knows, and that nothing was put into for so long, is nobody's any more.
const UNKNOWN_AGE_SECONDS: i64 = 24 * 3600;
/// How long it may take to reach the host of a copy that was stopped, and its far end to let go of its files.
const LETS_GO: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(100);

/// Hosts that could not be reached any more when a ladder cleaned up, and why: nobody waits for one of them twice.
#[derive(Clone, Default)]
pub struct LostHosts(Arc<Mutex<Vec<(Location, Failure)>>>);

impl LostHosts {
    fn add(&self, host: &Location, why: &Failure) {
        lock(&self.0).push((host.clone(), why.clone()));
    }

    fn why(&self, host: &Location) -> Option<Failure> {
        let all = lock(&self.0);
        all.iter().find(|(lost, _)| lost == host).map(|(_, why)| why.clone())
    }
}

/// A directory that is removed when this is dropped.
pub struct FarScratch {
    directory: Location,
    options: EndOptions,
    context: Context,
    files: Files,
    lost: LostHosts,
}

impl FarScratch {
    /// Removes what was left in `parent` by those of its kind that were killed, and makes a directory there; `number`
    /// tells those of one process apart. `lost` takes the host if it cannot be reached at the end; `note` takes what a
    /// person should know.
    ///
    /// # Errors
    /// Those of the place.
    pub fn create(
        parent: &Location,
        kind: &str,
        number: usize,
        options: &EndOptions,
        context: &Context,
        lost: &LostHosts,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, Failure> {
        let mut files = Files::open(parent, options, context, &|_| {})?;
        for name in left_behind(&mut files, parent, kind)? {
            let path = below(parent, name.as_bytes());
            if files.remove(path.path().unwrap_or_default(), true, &mut |_| {}).is_ok() {
                note(&format!("removed what a measurement that was killed had left: {path}"));
            }
        }
        let directory = below(parent, name(kind, boot(), &Owner::this(), number).as_bytes());
        files.make_dir(directory.path().unwrap_or_default(), false)?;
        Ok(Self { directory, options: options.clone(), context: context.clone(), files, lost: lost.clone() })
    }

    /// Its name in the directory that it was made in.
    pub fn name(&self) -> String {
        let path = self.directory.path().unwrap_or_default();
        let start = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        display_bytes(&path[start..]).to_string()
    }

    /// The conversation with the host of the place.
    pub fn files(&mut self) -> &mut Files {
        &mut self.files
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> Location {
        below(&self.directory, name.as_bytes())
    }

    /// Removes a file of it, if it is there.
    ///
    /// # Errors
    /// Those of the place.
    pub fn remove(&mut self, name: &str) -> Result<(), Failure> {
        self.remove_as(name, false)
    }

    /// Removes a directory of it with all that it holds, if it is there, and makes it anew.
    ///
    /// # Errors
    /// Those of the place.
    pub fn make_empty(&mut self, name: &str) -> Result<(), Failure> {
        self.remove_as(name, true)?;
        let directory = self.file(name);
        self.files.make_dir(directory.path().unwrap_or_default(), false)
    }

    fn remove_as(&mut self, name: &str, recursive: bool) -> Result<(), Failure> {
        let file = self.file(name);
        match self.files.remove(file.path().unwrap_or_default(), recursive, &mut |_| {}) {
            Err(why) if why.code != ErrorCode::NotFound => Err(why),
            _ => Ok(()),
        }
    }
}

impl Drop for FarScratch {
    fn drop(&mut self) {
        let path = self.directory.path().unwrap_or_default().to_vec();
        if self.context.stop.requested().is_none() && self.files.remove(&path, true, &mut |_| {}).is_ok() {
            return;
        }
        if let Err(why) = remove_anew(&self.directory, &self.options, &self.context, &self.lost, LETS_GO) {
            crate::output::say(&format!("warning: {} is left: {why}", self.directory));
        }
    }
}

/// Reaches the host anew and removes a directory there; both is tried again for so long.
fn remove_anew(
    directory: &Location,
    options: &EndOptions,
    context: &Context,
    lost: &LostHosts,
    patience: Duration,
) -> Result<(), Failure> {
    let host = directory.with_path(Vec::new());
    if let Some(why) = lost.why(&host) {
        return Err(why);
    }
    // The conversation ends with a signal, like everything else of this command: this one does not.
    let context = Context { stop: Stop::new(), ..context.clone() };
    let end = Instant::now() + patience;
    loop {
        let mut options = options.clone();
        let left = end.saturating_duration_since(Instant::now()).max(AGAIN);
        options.reach.connect_timeout = options.reach.connect_timeout.min(left);
        let removed = match Files::open(directory, &options, &context, &|_| {}) {
            Err(why) => {
                if Instant::now() >= end {
                    lost.add(&host, &why);
                }
                Err(why)
            }
            Ok(mut files) => files.remove(directory.path().unwrap_or_default(), true, &mut |_| {}),
        };
        match removed {
            Err(why) if why.code == ErrorCode::NotFound => return Ok(()),
            Err(_) if Instant::now() < end => std::thread::sleep(AGAIN),
            other => return other.map(drop),
        }
    }
}

/// A name in a directory that was typed.
pub fn below(directory: &Location, name: &[u8]) -> Location {
    let mut path = directory.path().unwrap_or_default().to_vec();
    if !path.is_empty() && !path.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    directory.with_path(path)
}

/// Names this boot of this host, and the numbers that its processes have here: in a container others.
fn boot() -> u64 {
    let mut hasher = DefaultHasher::new();
    (host::boot_id(), host::machine_id(), std::fs::read_link("/proc/self/ns/pid").ok()).hash(&mut hasher);
    hasher.finish()
}

/// The process that a directory belongs to, on one boot of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    process: u32,
    /// As [`host::process_began`] has it; 0 where nobody says.
    began: u64,
}

impl Owner {
    fn this() -> Self {
        Self::of(std::process::id())
    }

    /// The process that has this number now.
    fn of(process: u32) -> Self {
        Self { process, began: host::process_began(process).unwrap_or(0) }
    }
}

fn name(kind: &str, boot: u64, owner: &Owner, number: usize) -> String {
    format!("{PREFIX}{kind}-{boot:016x}-{}-{}-{number}", owner.process, owner.began)
}

fn left_behind(files: &mut Files, parent: &Location, kind: &str) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    let now = host::clock_seconds();
    let living = |process| host::process_alive(process).then(|| Owner::of(process));
    files.list(parent.path().unwrap_or_default(), false, &mut |entry| {
        let name = display_bytes(&entry.path).to_string();
        // What a host says of times may be any number.
        let age = now.saturating_sub(entry.mtime.seconds);
        if entry.kind == ItemKind::Directory && is_left_behind(&name, kind, boot(), age, &living) {
            found.push(name);
        }
    })?;
    Ok(found)
}

/// `living` knows the process of this boot that has a number now.
fn is_left_behind(name: &str, kind: &str, boot: u64, age_seconds: i64, living: &dyn Fn(u32) -> Option<Owner>) -> bool {
    let parse = || {
        let mut parts = name.strip_prefix(PREFIX)?.strip_prefix(kind)?.strip_prefix('-')?.splitn(4, '-');
        let (of, process, began, number) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        number.parse::<usize>().ok()?;
        let owner = Owner { process: process.parse().ok()?, began: began.parse().ok()? };
        Some((u64::from_str_radix(of, 16).ok()?, owner))
    };
    let Some((of, owner)) = parse() else { return false };
    let is_old = age_seconds > UNKNOWN_AGE_SECONDS;
    match living(owner.process) {
        _ if of != boot => is_old,
        None => true,
        // Another process may have its number by now.
        Some(now) if now.began == 0 || owner.began == 0 => is_old,
        Some(now) => now != owner,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: i64 = UNKNOWN_AGE_SECONDS + 1;

    /// Whether process 7 of 1000 processes, which began at 50, leaves a directory of this name and age.
    fn is_left(name: &str, age: i64) -> bool {
        is_left_behind(name, "ladder", 0xabc, age, &|process| (process == 7).then_some(Owner { process, began: 50 }))
    }

    #[test]
    fn what_nobody_uses_is_known_by_its_name() {
        assert!(is_left(".carrack-ladder-0000000000000abc-8-50-0", 0));
        assert!(!is_left(".carrack-ladder-0000000000000abc-7-50-0", 1 << 40), "its process runs");
        assert!(!is_left(".carrack-ladder-0000000000000abd-8-50-3", 3600), "another host's may run");
        assert!(is_left(".carrack-ladder-0000000000000abd-8-50-3", OLD));
        for name in [
            "data",
            ".carrack-load-0000000000000abc-8-50-0",
            ".carrack-ladder-",
            ".carrack-ladder-abc-8-50",
            ".carrack-ladder-abc-8-50-x",
            ".carrack-ladder-abc-8-x-0",
            "carrack-ladder-abc-8-50-0",
        ] {
            assert!(!is_left(name, 1 << 40), "{name}");
        }
    }

    /// As in a container, in which every command is process 1.
    #[test]
    fn what_another_process_of_the_same_number_left_is_nobodys() {
        assert!(is_left(".carrack-ladder-0000000000000abc-7-49-0", 0));
        let unknown = ".carrack-ladder-0000000000000abc-7-0-0";
        assert!(!is_left(unknown, 3600) && is_left(unknown, OLD), "nobody knows when that process began");
        let own = name("ladder", boot(), &Owner::this(), 2);
        let living = |process| Some(Owner::of(process));
        assert!(!is_left_behind(&own, "ladder", boot(), 0, &living), "{own}");
    }

    /// A host that takes connections and says nothing, as behind a firewall that has forgotten them.
    #[test]
    fn host_that_is_silent_holds_up_the_end_of_a_ladder_once_and_not_for_long() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = format!("carrack://{}/d", silent.local_addr().unwrap());
        let directory = crate::cli::location::parse_location(at.as_bytes()).unwrap();
        let (options, context, lost) = (EndOptions::default(), Context::default(), LostHosts::default());
        let patience = Duration::from_millis(300);
        let begin = Instant::now();
        let first = remove_anew(&directory, &options, &context, &lost, patience).unwrap_err();
        assert!(begin.elapsed() < options.reach.connect_timeout / 2, "{:?}", begin.elapsed());
        let (begin, other) = (Instant::now(), directory.with_path(b"e".to_vec()));
        let second = remove_anew(&other, &options, &context, &lost, patience).unwrap_err();
        assert!(begin.elapsed() < patience && second == first, "{second}");
    }

    #[test]
    fn names_are_joined_to_what_was_typed() {
        let joined = |path: &str| below(&Location::Local(path.into()), b"x").to_string();
        assert_eq!([joined(""), joined("/"), joined("a/b"), joined("a/")], ["x", "/x", "a/b/x", "a/x"]);
    }
}
