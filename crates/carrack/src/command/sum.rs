//! `carrack sum`: digests made where the files are, printed as b3sum, xxhsum and sha256sum print theirs.
//!
//! One digest gives their plain lines, which `b3sum -c` and `xxhsum -c` read. Several give lines with a
//! tag, `BLAKE3 (name) = …`.

use std::io::IsTerminal;

use carrack_core::path::{display_bytes, join, split_name};
use carrack_core::report::{FileDigests, ItemKind};
use carrack_engine::files::{Files, SumEntry};
use clap::Command;
use data_encoding::HEXLOWER;
use serde_json::json;

use super::named::{self, Needs};
use super::place::VerbRun;
use super::reach::with_endpoints;
use super::sum_list;
use crate::cli::filters;
use crate::cli::flag::{Positional, Switch, Value};
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::output::{json as objects, manifest};
use carrack_core::request::Digests;

const DIGEST: Value<Digests> = Value::new(
    "digest",
    "LIST",
    Digests::parse,
    "blake3 or xxh128, adler32, crc32c, separated by commas [default: blake3]",
);
const CHECK: Value<Vec<u8>> = Value::path(
    "check",
    "FILE",
    "Compare files with the digests in FILE, which sum, b3sum or xxhsum printed; - is standard input. Names in FILE are \
     paths here, or below LOCATION",
)
.letter('c');
const RELATIVE: Switch =
    Switch::new("relative", "Print names below LOCATION, in a fixed order: lists of two trees can be compared by diff");
const LOCATIONS: Positional = Positional::several("locations", "LOCATION");

/// What clap knows of it.
pub fn command() -> Command {
    let verb = Command::new("sum")
        .about("Print digests of files, computed on the host that has them")
        .after_help(
            "With one digest, the lines are those of b3sum or xxhsum; with several, each line names its digest.\n\n\
             With --check, each file is OK, FAILED or MISSING; -q leaves out those that are OK. Exit code 27 if one is not.",
        )
        .args([DIGEST.arg(), CHECK.arg(), RELATIVE.arg().conflicts_with(CHECK.name)])
        .args(filters::of_listing())
        .arg(LOCATIONS.arg().required_unless_present(CHECK.name));
    with_endpoints(verb)
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let digests = wanted(flags)?;
    let rules = filters::of_verb(flags)?;
    if let Some(list) = flags.get(&CHECK)? {
        if !rules.is_empty() {
            return Err(CommandError::usage(
                "--check compares the files that its list names, and takes no rules: take lines out of the list",
            ));
        }
        return sum_list::run(flags, &list, &LOCATIONS, digests);
    }
    let places = named::places(flags, &LOCATIONS, Needs::READ)?;
    let is_relative = flags.has(&RELATIVE);
    let terminal = std::io::stdout().is_terminal();
    let mut run = VerbRun::new("sum", flags)?.without(rules);
    run.each(&places, |run, files, place| {
        if is_relative {
            let name = split_name(place.shown()).1;
            return files.sum_in_order(place.path(), digests, &mut |entry| {
                let path = if entry.path.is_empty() { name.to_vec() } else { entry.path.clone() };
                tell(run, &path, entry, terminal);
            });
        }
        let directory = is_directory(files, place.path());
        let shown = place.shown();
        files.sum(place.path(), digests, &mut |entry| tell(run, &name_of(shown, directory, &entry), entry, terminal))
    })?;
    run.finish()
}

/// The digests that were asked for, and no other.
fn wanted(flags: &Flags) -> Result<Digests, CommandError> {
    match flags.get(&DIGEST)? {
        None => Ok(Digests::BLAKE3),
        Some(Digests::NONE) => Err(CommandError::usage("--digest none: a sum of nothing")),
        Some(digests) => Ok(digests),
    }
}

/// A name as b3sum would have printed it: beginning with what was typed.
fn name_of(path: &[u8], directory: bool, entry: &SumEntry) -> Vec<u8> {
    if directory { join(path, &entry.path) } else { path.to_vec() }
}

/// Where a look fails, `sum` itself will say why.
fn is_directory(files: &mut Files, path: &[u8]) -> bool {
    path.is_empty() || path.ends_with(b"/") || files.stat(path).is_ok_and(|found| found.kind == ItemKind::Directory)
}

fn tell(run: &mut VerbRun, name: &[u8], entry: SumEntry, terminal: bool) {
    let digests = match entry.result {
        Ok(digests) => digests,
        Err(failure) => return run.fail(name, failure),
    };
    run.done += 1;
    if run.json {
        let fields = objects::with_path(json!({ "size": entry.size }), name);
        return run.json("sum", objects::with_digests(fields, &digests));
    }
    for line in lines(name, &digests, terminal) {
        run.line(&line);
    }
}

/// The lines of one file, without line feeds.
fn lines(name: &[u8], digests: &FileDigests, terminal: bool) -> Vec<Vec<u8>> {
    let all = [
        ("BLAKE3", digests.blake3.map(|digest| HEXLOWER.encode(&digest))),
        ("XXH128", digests.xxh128.map(|digest| HEXLOWER.encode(&digest))),
        ("ADLER32", digests.adler32.map(|digest| format!("{digest:08x}"))),
        ("CRC32C", digests.crc32c.map(|digest| format!("{digest:08x}"))),
    ];
    let made: Vec<(&str, String)> = all.into_iter().filter_map(|(tag, digest)| Some((tag, digest?))).collect();
    let (name, escaped) = printable(name, terminal);
    let backslash: &[u8] = if escaped { b"\\" } else { b"" };
    match &made[..] {
        [(_, digest)] => vec![[backslash, digest.as_bytes(), b"  ", &name].concat()],
        several => several
            .iter()
            .map(|(tag, digest)| [backslash, tag.as_bytes(), b" (", &name, b") = ", digest.as_bytes()].concat())
            .collect(),
    }
}

/// A file or another program gets the bytes of the name, as from b3sum; a terminal gets nothing it could obey.
fn printable(name: &[u8], terminal: bool) -> (Vec<u8>, bool) {
    if !terminal {
        return manifest::escape(name);
    }
    let shown = display_bytes(name).to_string().into_bytes();
    let escaped = shown != name;
    (shown, escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_and_tagged() {
        let one = FileDigests { blake3: Some([0x11; 32]), ..FileDigests::default() };
        let hex = "11".repeat(32);
        let cases: &[(&[u8], bool, String)] = &[
            (b"a b", false, format!("{hex}  a b")),
            (b"a\\\nb", false, format!("\\{hex}  a\\\\\\nb")),
            (b"a\x1b[2J", true, format!("\\{hex}  a\\x1b[2J")),
            (b"a\x1b[2J", false, format!("{hex}  a\x1b[2J")),
        ];
        for (name, terminal, line) in cases {
            assert_eq!(lines(name, &one, *terminal), [line.as_bytes()]);
        }
        let xxh128 = FileDigests { xxh128: Some([0x22; 16]), ..FileDigests::default() };
        assert_eq!(lines(b"a", &xxh128, false), [format!("{}  a", "22".repeat(16)).into_bytes()]);
        let adler = FileDigests { adler32: Some(0xab), ..FileDigests::default() };
        assert_eq!(lines(b"a", &adler, false), [b"000000ab  a"]);
        let both = FileDigests { crc32c: Some(1), ..adler };
        assert_eq!(lines(b"a", &both, false), [&b"ADLER32 (a) = 000000ab"[..], b"CRC32C (a) = 00000001"]);
        assert!(lines(b"a", &FileDigests::default(), false).is_empty());
    }

    #[test]
    fn names_begin_with_what_was_typed() {
        let entry = SumEntry { path: b"x/y".to_vec(), size: 0, result: Ok(FileDigests::default()) };
        let cases: &[(&[u8], bool, &[u8])] =
            &[(b"d", true, b"d/x/y"), (b"d/", true, b"d/x/y"), (b"", true, b"x/y"), (b"./f", false, b"./f")];
        for (typed, directory, name) in cases {
            assert_eq!(name_of(typed, *directory, &entry), *name);
        }
    }
}
