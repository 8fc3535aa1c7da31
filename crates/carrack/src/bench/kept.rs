//! Results that are kept: one file each in the user's state directory, named by kind and time.

use std::io;
use std::path::{Path, PathBuf};

use carrack_core::path::display_bytes;
use carrack_engine::secrets::write_whole;
use carrack_measure::result::Measurement;

use super::document;
use crate::directories::state_directory;
use crate::error::CommandError;

/// A result that is kept.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Its name: `20261122T211500Z-disk`.
    pub id: String,
    /// Its file.
    pub path: PathBuf,
    /// What was measured.
    pub measured: Measurement,
}

/// The directory of kept results.
pub fn directory() -> PathBuf {
    state_directory().join("bench")
}

/// Keeps a result and answers with its name.
///
/// # Errors
/// If the file cannot be written.
pub fn keep(measured: &Measurement) -> Result<String, CommandError> {
    keep_in(&directory(), measured)
}

fn keep_in(directory: &Path, measured: &Measurement) -> Result<String, CommandError> {
    let text = format!("{}\n", document::to_json(measured));
    let name = first_name(measured);
    for number in 1..1000 {
        // Two that began within one second.
        let id = if number == 1 { name.clone() } else { format!("{name}-{number}") };
        let path = directory.join(format!("{id}.json"));
        if !path.exists() {
            write_whole(&path, text.as_bytes()).map_err(|error| refused("cannot keep the result in", &path, &error))?;
            return Ok(id);
        }
    }
    Err(refused("cannot keep the result in", directory, &io::ErrorKind::AlreadyExists.into()))
}

fn first_name(measured: &Measurement) -> String {
    let time = crate::output::format::rfc3339_seconds(measured.started);
    let digits: String = time.chars().filter(char::is_ascii_alphanumeric).collect();
    // It may be the word of another host.
    let kind: String = measured.kind.chars().filter(|c| c.is_ascii_lowercase() || *c == '-').take(20).collect();
    format!("{digits}-{kind}")
}

/// All of them, the oldest first. Files that hold no result are told of, and left out.
///
/// # Errors
/// If the directory is there and cannot be read.
pub fn all(note: &mut dyn FnMut(String)) -> Result<Vec<Kept>, CommandError> {
    all_in(&directory(), note)
}

fn all_in(directory: &Path, note: &mut dyn FnMut(String)) -> Result<Vec<Kept>, CommandError> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| refused("cannot read", directory, &error))?,
    };
    let mut all = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let Some(id) = id_of(&path) else { continue };
        match read(&path) {
            Ok(measured) => all.push(Kept { id, path, measured }),
            Err(why) => note(format!("{} is no result: {why}", shown(&path))),
        }
    }
    // Within a second, the second has a number behind its name.
    all.sort_by(|one, other| {
        (one.measured.started, one.id.len(), &one.id).cmp(&(other.measured.started, other.id.len(), &other.id))
    });
    Ok(all)
}

fn id_of(path: &Path) -> Option<String> {
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    let stem = path.file_stem()?.to_str()?;
    (is_json && !stem.starts_with('.')).then(|| stem.to_owned())
}

fn read(path: &Path) -> Result<Measurement, String> {
    let text = std::fs::read(path).map_err(|error| error.to_string())?;
    document::from_json(&serde_json::from_slice(&text).map_err(|error| error.to_string())?)
}

/// The one that a user named: by its name, by the beginning of it, or by the path of a file.
///
/// # Errors
/// If there is none, or several begin so.
pub fn find<'a>(all: &'a [Kept], wanted: &str) -> Result<std::borrow::Cow<'a, Kept>, CommandError> {
    use std::borrow::Cow;
    if let Some(exact) = all.iter().find(|kept| kept.id == wanted) {
        return Ok(Cow::Borrowed(exact));
    }
    let begin: Vec<&Kept> = all.iter().filter(|kept| kept.id.starts_with(wanted)).collect();
    // A file of this directory needs no slash before its name, where no result is called so.
    let path = PathBuf::from(wanted);
    if wanted.contains('/') || begin.is_empty() && path.is_file() {
        let measured =
            read(&path).map_err(|why| CommandError::usage(format!("{} is no result: {why}", shown(&path))))?;
        return Ok(Cow::Owned(Kept { id: shown(&path), path, measured }));
    }
    let wanted = display_bytes(wanted.as_bytes());
    match begin[..] {
        [one] => Ok(Cow::Borrowed(one)),
        [] => Err(CommandError::usage(format!("no result is called {wanted}")).hint("carrack bench list shows all")),
        _ => Err(CommandError::usage(format!("{} results begin with {wanted}", begin.len()))
            .hint("give more of the name: carrack bench list shows all")),
    }
}

fn shown(path: &Path) -> String {
    display_bytes(path.as_os_str().as_encoded_bytes()).to_string()
}

fn refused(what: &str, path: &Path, error: &io::Error) -> CommandError {
    CommandError::file(what, path.as_os_str().as_encoded_bytes(), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::document::tests::sample;

    #[test]
    fn results_are_kept_listed_and_found_by_the_beginning_of_their_names() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("bench");
        let mut notes = Vec::new();
        assert!(all_in(&place, &mut |note| notes.push(note)).expect("no results").is_empty());
        let earlier = Measurement { started: 1_780_000_000, kind: "cpu".to_owned(), ..sample() };
        let names: Vec<String> =
            [sample(), earlier, sample()].iter().map(|one| keep_in(&place, one).expect("kept")).collect();
        assert_eq!(names, ["20260921T141320Z-disk", "20260528T202640Z-cpu", "20260921T141320Z-disk-2"]);
        std::fs::write(place.join("broken.json"), "{").expect("written");
        std::fs::write(place.join("notes.txt"), "mine").expect("written");
        let kept = all_in(&place, &mut |note| notes.push(note)).expect("results");
        let ids: Vec<&str> = kept.iter().map(|kept| kept.id.as_str()).collect();
        assert_eq!(ids, ["20260528T202640Z-cpu", "20260921T141320Z-disk", "20260921T141320Z-disk-2"]);
        assert_eq!((notes.len(), &kept[1].measured), (1, &sample()));
        assert_eq!(find(&kept, "202605").expect("one").id, "20260528T202640Z-cpu");
        assert_eq!(find(&kept, "20260921T141320Z-disk").expect("one").id, "20260921T141320Z-disk");
        assert!(find(&kept, "2026").is_err() && find(&kept, "1999").is_err());
        // A result of another host leads nowhere else.
        let far = Measurement { kind: "x/../../planted".to_owned(), ..sample() };
        assert_eq!(keep_in(&place, &far).expect("kept"), "20260921T141320Z-xplanted");
        let path = place.join("20260528T202640Z-cpu.json");
        assert_eq!(find(&[], path.to_str().expect("UTF-8")).expect("one").measured.kind, "cpu");
    }
}
