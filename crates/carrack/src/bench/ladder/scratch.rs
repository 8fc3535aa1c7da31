//! A directory of the ladder's own at a place of any kind: hidden, and gone afterwards.
//!
//! A place on another host has no lock that this process could hold. So the name says whose the directory is: the boot
//! of this host and the process. Whoever measures there next removes those whose process is gone, and those of other
//! hosts once they are a day old.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use carrack_core::failure::{ErrorCode, Failure};
use carrack_core::location::Location;
use carrack_core::path::display_bytes;
use carrack_core::report::ItemKind;
use carrack_core::request::EndOptions;
use carrack_engine::files::Files;
use carrack_engine::{Context, Stop};
use carrack_sys::host;

const PREFIX: &str = ".carrack-ladder-";
/// A directory of another host that nothing was put into for so long is nobody's any more.
const FOREIGN_AGE_SECONDS: i64 = 24 * 3600;
/// How long the far end of a copy that was stopped may take to let go of its files.
const LETS_GO: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(100);

/// A directory that is removed when this is dropped.
pub struct FarScratch {
    directory: Location,
    options: EndOptions,
    context: Context,
    files: Files,
}

impl FarScratch {
    /// Removes what was left in `parent` by those that were killed, and makes a directory there; `number` tells those
    /// of one process apart. `note` takes what a person should know.
    ///
    /// # Errors
    /// Those of the place.
    pub fn create(
        parent: &Location,
        number: usize,
        options: &EndOptions,
        context: &Context,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, Failure> {
        let mut files = Files::open(parent, options, context, &|_| {})?;
        for name in left_behind(&mut files, parent)? {
            let path = below(parent, name.as_bytes());
            if files.remove(path.path().unwrap_or_default(), true, &mut |_| {}).is_ok() {
                note(&format!("removed what a ladder that was killed had left: {path}"));
            }
        }
        let directory = below(parent, format!("{PREFIX}{:016x}-{}-{number}", boot(), std::process::id()).as_bytes());
        files.make_dir(directory.path().unwrap_or_default(), false)?;
        Ok(Self { directory, options: options.clone(), context: context.clone(), files })
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
        let file = self.file(name);
        match self.files.remove(file.path().unwrap_or_default(), false, &mut |_| {}) {
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
        // The conversation ends with a signal, like everything else of this command: this one does not.
        let context = Context { stop: Stop::new(), ..self.context.clone() };
        let end = Instant::now() + LETS_GO;
        loop {
            let removed = Files::open(&self.directory, &self.options, &context, &|_| {})
                .and_then(|mut files| files.remove(&path, true, &mut |_| {}));
            match removed {
                Err(why) if why.code != ErrorCode::NotFound && Instant::now() < end => std::thread::sleep(AGAIN),
                Err(why) if why.code != ErrorCode::NotFound => {
                    crate::output::say(&format!("warning: {} is left: {why}", self.directory));
                    return;
                }
                _ => return,
            }
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

fn left_behind(files: &mut Files, parent: &Location) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    let now = host::clock_seconds();
    files.list(parent.path().unwrap_or_default(), false, &mut |entry| {
        let name = display_bytes(&entry.path).to_string();
        if entry.kind == ItemKind::Directory
            && is_left_behind(&name, boot(), now - entry.mtime.seconds, &host::process_alive)
        {
            found.push(name);
        }
    })?;
    Ok(found)
}

fn is_left_behind(name: &str, boot: u64, age_seconds: i64, is_alive: &dyn Fn(u32) -> bool) -> bool {
    let parse = || {
        let mut parts = name.strip_prefix(PREFIX)?.splitn(3, '-');
        let (of, process, number) = (parts.next()?, parts.next()?, parts.next()?);
        number.parse::<usize>().ok()?;
        Some((u64::from_str_radix(of, 16).ok()?, process.parse().ok()?))
    };
    match parse() {
        None => false,
        Some((of, process)) if of == boot => !is_alive(process),
        Some(_) => age_seconds > FOREIGN_AGE_SECONDS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_uses_is_known_by_its_name() {
        let alive = |process| process == 7;
        let is_left = |name: &str, age| is_left_behind(name, 0xabc, age, &alive);
        assert!(is_left(".carrack-ladder-0000000000000abc-8-0", 0));
        assert!(!is_left(".carrack-ladder-0000000000000abc-7-0", 1 << 40), "its process runs");
        assert!(!is_left(".carrack-ladder-0000000000000abd-8-3", 3600), "another host's may run");
        assert!(is_left(".carrack-ladder-0000000000000abd-8-3", FOREIGN_AGE_SECONDS + 1));
        for name in
            ["data", ".carrack-ladder-", ".carrack-ladder-abc-8", ".carrack-ladder-abc-8-x", "carrack-ladder-abc-8-0"]
        {
            assert!(!is_left(name, 1 << 40), "{name}");
        }
    }

    #[test]
    fn names_are_joined_to_what_was_typed() {
        let joined = |path: &str| below(&Location::Local(path.into()), b"x").to_string();
        assert_eq!([joined(""), joined("/"), joined("a/b"), joined("a/")], ["x", "/x", "a/b/x", "a/x"]);
    }
}
