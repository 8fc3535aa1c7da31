//! `-f`: pairs of places in a file; and `-list`: the names in a directory.

use std::io::Read;

use carrack_core::path::display_bytes;
use carrack_core::report::{Failure, ItemKind, Side};
use carrack_engine::files::Files;

use super::url::Url;
use super::{path_of, word};
use crate::command::context::context;
use crate::command::names::runner::request;
use crate::command::names::step::CopyStep;
use crate::error::CommandError;
use crate::exit;
use crate::output::stream;

/// What a list of places may hold, in bytes.
const BYTES_MAX: u64 = 256 << 20;

/// Where something comes from, and where it goes.
pub type FromTo = (Vec<u8>, Vec<u8>);

/// The pairs in a file, one a line; `-` is standard input.
///
/// # Errors
/// A file that cannot be read, and a line that is no pair.
pub fn pairs(file: &[u8]) -> Result<Vec<FromTo>, CommandError> {
    let failed = |error: std::io::Error| CommandError::file("cannot read", file, &error);
    let mut text = Vec::new();
    if file == b"-" {
        stream::input().map_err(failed)?.take(BYTES_MAX + 1).read_to_end(&mut text).map_err(failed)?;
    } else {
        let opened = std::fs::File::open(path_of(file)).map_err(failed)?;
        opened.take(BYTES_MAX + 1).read_to_end(&mut text).map_err(failed)?;
    }
    if text.len() as u64 > BYTES_MAX {
        return Err(CommandError::usage(format!("{} has more than {BYTES_MAX} bytes", display_bytes(file))));
    }
    let mut pairs = Vec::new();
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let words = words(line).filter(|words| words.len() >= 2).ok_or_else(|| {
            let place = format!("line {} of {}", index + 1, display_bytes(file));
            CommandError::usage(format!(
                "{place} is no pair of places: SOURCE DESTINATION, in quotes where they have spaces"
            ))
        })?;
        // A file that -df or -do wrote has offsets behind the places.
        pairs.push((words[0].clone(), words[1].clone()));
    }
    match pairs.is_empty() {
        true => Err(CommandError::usage(format!("{} has no pair of places", display_bytes(file)))),
        false => Ok(pairs),
    }
}

/// Words of a line, which may stand in double quotes; none where these do not end.
fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii_start();
    while let Some(first) = rest.first() {
        let (word, after) = if *first == b'"' {
            let end = rest[1..].iter().position(|&byte| byte == b'"')? + 1;
            (&rest[1..end], &rest[end + 1..])
        } else {
            rest.split_at(rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len()))
        };
        words.push(word.to_vec());
        rest = after.trim_ascii_start();
    }
    Some(words)
}

/// Prints the names in a directory as globus-url-copy does.
///
/// # Errors
/// What cannot be listed.
pub fn list(url: &Url) -> Result<u8, CommandError> {
    let mut step = CopyStep { sources: vec![word(url, false)], destination: "null:".into(), ..CopyStep::default() };
    if let Some(port) = url.port {
        step.flags.extend(["--rsh".into(), format!("ssh -p {port}").into()]);
    }
    let (request, _) = request(&step)?;
    let [place] = request.sources.as_slice() else { return Err(CommandError::usage("one place is listed")) };
    let Some(path) = place.path() else {
        return Err(CommandError::usage(format!("{}: there is nothing to list", url.typed)));
    };
    let mut files = Files::open(place, &request.options.source, &context(), &|_| {})?;
    let (mut text, mut failed): (Vec<u8>, Option<Failure>) = (format!("{}\n", url.typed).into_bytes(), None);
    files.list(path, false, &mut |entry| {
        if let Some(failure) = entry.error {
            failed.get_or_insert(failure);
            return;
        }
        let name = display_bytes(entry.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()).to_string();
        let end = if entry.kind == ItemKind::Directory { "/" } else { " " };
        text.extend_from_slice(format!("    {name}{end}\n").as_bytes());
    })?;
    text.push(b'\n');
    stream::print(&text)?;
    failed.map_or(Ok(exit::DONE), |failure| Err(Failure { side: Side::Command, ..failure }.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_in_quotes_or_between_spaces() {
        let of = |line: &str| {
            let words = words(line.as_bytes())?;
            Some(words.iter().map(|word| display_bytes(word).to_string()).collect::<Vec<_>>().join("|"))
        };
        for (line, expected) in [
            ("file:/a file:/b", Some("file:/a|file:/b")),
            ("\"file:/a b\"  file:/c\t0,-1", Some("file:/a b|file:/c|0,-1")),
            ("\"\" x", Some("|x")),
            ("\"file:/a", None),
        ] {
            assert_eq!(of(line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn lists_have_comments_and_empty_lines() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("list");
        let pairs_of = |text: &str| {
            std::fs::write(&path, text).expect("written");
            pairs(path.as_os_str().as_encoded_bytes()).map(|pairs| pairs.len())
        };
        assert_eq!(pairs_of("# mine\n\na b\n  c d  \r\n"), Ok(2));
        assert!(pairs_of("a b\nc\n").is_err_and(|error| error.failure.why.starts_with("line 2 of")));
        assert!(pairs_of("# none\n").is_err());
    }
}
