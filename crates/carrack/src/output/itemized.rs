//! `-i` and `--out-format`: a line for each item that was made, changed or deleted, in rsync's letters.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use carrack_core::path::display_bytes;
use carrack_core::report::{Differences, Done, ItemChange, ItemKind};
use data_encoding::HEXLOWER;

use super::format;

/// What stands in a line of `-i`.
const ITEMIZED: &[LinePart] = &[LinePart::Letters, LinePart::Space, LinePart::Name, LinePart::Target];

/// How such a line is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineFormat {
    parts: Vec<LinePart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum LinePart {
    Text(String),
    Space,
    Letters,
    Name,
    Path,
    Length,
    Sent,
    Modified,
    Now,
    Operation,
    Target,
    Digest,
}

/// Which way content goes, as rsync's letters tell it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContentWay {
    /// From this host to another one.
    Push,
    /// From another host to this one.
    Pull,
    /// Within this host, or between two others.
    #[default]
    Beside,
}

impl LineFormat {
    /// That of `-i`.
    pub fn itemized() -> Self {
        Self { parts: ITEMIZED.to_vec() }
    }

    /// Reads a format of rsync's.
    ///
    /// # Errors
    /// The sentence that names an escape which is not known.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut parts, mut plain) = (Vec::new(), String::new());
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            if character != '%' {
                plain.push(character);
                continue;
            }
            let part = match characters.next() {
                Some('%') => {
                    plain.push('%');
                    continue;
                }
                Some('i') => LinePart::Letters,
                Some('n') => LinePart::Name,
                Some('f') => LinePart::Path,
                Some('l') => LinePart::Length,
                Some('b') => LinePart::Sent,
                Some('M') => LinePart::Modified,
                Some('t') => LinePart::Now,
                Some('o') => LinePart::Operation,
                Some('L') => LinePart::Target,
                Some('C') => LinePart::Digest,
                other => {
                    let escape: String = ['%'].into_iter().chain(other).collect();
                    return Err(format!(
                        "{} is not told here: use %i %n %L %f %l %b %M %t %o %C, and %% for a %",
                        display_bytes(escape.as_bytes())
                    ));
                }
            };
            if !plain.is_empty() {
                parts.push(LinePart::Text(std::mem::take(&mut plain)));
            }
            parts.push(part);
        }
        if !plain.is_empty() {
            parts.push(LinePart::Text(plain));
        }
        Ok(Self { parts })
    }

    /// The line of a change; none where the format does not tell of such a one.
    pub fn line(&self, change: &ItemChange, direction: ContentWay, now: SystemTime) -> Option<String> {
        let has_letters = self.parts.contains(&LinePart::Letters);
        match change.done {
            _ if self.parts.is_empty() => return None,
            // Without letters nothing would tell it from a file that was copied.
            Done::Set(_) if !has_letters && change.kind != ItemKind::Directory => return None,
            Done::Deleted if !has_letters && !self.parts.contains(&LinePart::Operation) => {
                return Some(format!("deleting {}", name(change)));
            }
            _ => {}
        }
        let mut line = String::new();
        for part in &self.parts {
            // Writing into a string cannot fail.
            let _ = match part {
                LinePart::Text(text) => write!(line, "{text}"),
                LinePart::Space => write!(line, " "),
                LinePart::Letters => write!(line, "{}", letters(change, direction)),
                LinePart::Name => write!(line, "{}", name(change)),
                LinePart::Path => write!(line, "{}", path(change)),
                LinePart::Length => write!(line, "{}", length(change)),
                LinePart::Sent => write!(line, "{}", if has_content(change) { change.size } else { 0 }),
                LinePart::Modified => write!(line, "{}", modified(change)),
                LinePart::Now => write!(line, "{}", moment(seconds_of(now), ' ')),
                LinePart::Operation => write!(line, "{}", operation(change, direction)),
                LinePart::Target => write!(line, "{}", target(change)),
                LinePart::Digest => {
                    write!(line, "{}", change.digests.blake3.map(|digest| HEXLOWER.encode(&digest)).unwrap_or_default())
                }
            };
        }
        Some(line)
    }
}

/// The eleven letters of rsync.
fn letters(change: &ItemChange, direction: ContentWay) -> String {
    let is_file = change.kind == ItemKind::File;
    let first = match change.done {
        _ if change.is_further_name() => 'h',
        Done::Deleted => return "*deleting  ".to_owned(),
        Done::Set(_) => '.',
        Done::Linked | Done::Renamed => 'h',
        Done::Copied(_) => 'c',
        Done::Created | Done::Replaced(_) if !is_file => 'c',
        Done::Created | Done::Replaced(_) if direction == ContentWay::Push => '<',
        Done::Created | Done::Replaced(_) => '>',
    };
    let kind = match change.kind {
        ItemKind::File => 'f',
        ItemKind::Directory => 'd',
        ItemKind::Symlink => 'L',
        ItemKind::Special => 'S',
    };
    let rest = match change.done {
        Done::Created => "+++++++++".to_owned(),
        Done::Replaced(differs) => attributes(differs),
        Done::Set(differs) | Done::Copied(differs) => attributes(differs),
        Done::Linked | Done::Renamed => attributes(Differences::default()),
        Done::Deleted => String::new(),
    };
    // What was made anew and is the same.
    let is_blank = matches!(first, 'c' | 'h') && rest.bytes().all(|letter| letter == b'.');
    format!("{first}{kind}{}", if is_blank { " ".repeat(rest.len()) } else { rest })
}

/// What has changed. Times of access and making are never set.
fn attributes(differs: Differences) -> String {
    let letter = |is: bool, letter: char| if is { letter } else { '.' };
    let Differences { content, size, time, permissions, time_is_of_writing, owner, group, acl, xattrs } = differs;
    let time = if time_is_of_writing { 'T' } else { letter(time, 't') };
    let (content, size) = (letter(content, 'c'), letter(size, 's'));
    let (permissions, owner, group) = (letter(permissions, 'p'), letter(owner, 'o'), letter(group, 'g'));
    let (acl, xattrs) = (letter(acl, 'a'), letter(xattrs, 'x'));
    format!("{content}{size}{time}{permissions}{owner}{group}.{acl}{xattrs}")
}

fn path(change: &ItemChange) -> String {
    if change.path.is_empty() { ".".to_owned() } else { display_bytes(&change.path).to_string() }
}

/// A directory ends in a slash.
fn name(change: &ItemChange) -> String {
    let slash = if change.kind == ItemKind::Directory { "/" } else { "" };
    format!("{}{slash}", path(change))
}

fn target(change: &ItemChange) -> String {
    let says = change.kind == ItemKind::Symlink && change.done != Done::Deleted;
    if change.is_further_name() {
        format!(" => {}", display_bytes(&change.leads_to))
    } else if change.done == Done::Renamed {
        format!(" <= {}", display_bytes(&change.leads_to))
    } else if says {
        format!(" -> {}", display_bytes(&change.leads_to))
    } else {
        String::new()
    }
}

fn has_content(change: &ItemChange) -> bool {
    change.kind == ItemKind::File && change.done.has_content()
}

fn length(change: &ItemChange) -> u64 {
    if change.kind == ItemKind::Symlink { change.leads_to.len() as u64 } else { change.size }
}

fn operation(change: &ItemChange, direction: ContentWay) -> &'static str {
    match (change.done, direction) {
        (Done::Deleted, _) => "del.",
        (_, ContentWay::Pull) => "recv",
        (_, ContentWay::Push | ContentWay::Beside) => "send",
    }
}

fn modified(change: &ItemChange) -> String {
    change.mtime.map(|time| moment(time.seconds, '-')).unwrap_or_default()
}

fn seconds_of(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// A moment as rsync shows it, in UTC.
fn moment(seconds: i64, between: char) -> String {
    let text = format::rfc3339_seconds(seconds);
    text.trim_end_matches('Z').replace('-', "/").replace('T', &between.to_string())
}

#[cfg(test)]
mod tests {
    use carrack_core::attributes::Time;
    use carrack_core::report::FileDigests;

    use super::*;

    fn change(path: &str, kind: ItemKind, done: Done) -> ItemChange {
        let (path, mtime) = (path.as_bytes().to_vec(), Some(Time::new(981_173_106, 7)));
        let digests = FileDigests { blake3: Some([0xab; 32]), ..FileDigests::default() };
        let leads_to = if kind == ItemKind::Symlink { b"to\\x".to_vec() } else { Vec::new() };
        ItemChange { path, kind, size: 5, mtime, leads_to, digests, done }
    }

    fn itemized(change: &ItemChange, direction: ContentWay) -> String {
        LineFormat::itemized().line(change, direction, UNIX_EPOCH).expect("a line")
    }

    #[test]
    fn letters_are_those_of_rsync() {
        use ItemKind::{Directory, File, Symlink};
        let none = Differences::default();
        let all = Differences {
            content: true,
            size: true,
            time: true,
            permissions: true,
            time_is_of_writing: false,
            owner: false,
            group: true,
            acl: true,
            xattrs: true,
        };
        let attributes = Differences { time: true, permissions: true, ..none };
        let cases = [
            ("f", File, Done::Created, ">f+++++++++ f"),
            ("f", File, Done::Replaced(all), ">fcstp.g.ax f"),
            ("f", File, Done::Replaced(none), ">f......... f"),
            ("f", File, Done::Replaced(Differences { time_is_of_writing: true, ..none }), ">f..T...... f"),
            ("f", File, Done::Set(attributes), ".f..tp..... f"),
            ("f", File, Done::Deleted, "*deleting   f"),
            ("a/d", Directory, Done::Created, "cd+++++++++ a/d/"),
            ("", Directory, Done::Set(Differences { time: true, ..none }), ".d..t...... ./"),
            ("d", Directory, Done::Deleted, "*deleting   d/"),
            ("l", Symlink, Done::Created, "cL+++++++++ l -> to\\\\x"),
            ("l", Symlink, Done::Replaced(Differences { content: true, ..none }), "cLc........ l -> to\\\\x"),
            ("l", Symlink, Done::Replaced(none), "cL          l -> to\\\\x"),
            ("l", Symlink, Done::Set(Differences { time: true, ..none }), ".L..t...... l -> to\\\\x"),
            ("l", Symlink, Done::Deleted, "*deleting   l"),
            ("f", File, Done::Linked, "hf          f"),
            ("f", File, Done::Copied(none), "cf          f"),
            ("f", File, Done::Copied(Differences { permissions: true, ..none }), "cf...p..... f"),
            ("a\n\u{1b}[2J", File, Done::Created, ">f+++++++++ a\\x0a\\x1b[2J"),
        ];
        for (path, kind, done, line) in cases {
            assert_eq!(itemized(&change(path, kind, done), ContentWay::Pull), line);
            let pushed = line.replacen(">f", "<f", 1);
            assert_eq!(itemized(&change(path, kind, done), ContentWay::Push), pushed);
            assert_eq!(itemized(&change(path, kind, done), ContentWay::Beside), line);
        }
    }

    #[test]
    fn further_names_are_told_with_the_name_that_their_file_has() {
        let differs = Differences { time: true, ..Differences::default() };
        let cases = [
            (ItemKind::File, Done::Created, "hf+++++++++ b => a"),
            (ItemKind::File, Done::Replaced(differs), "hf..t...... b => a"),
            (ItemKind::File, Done::Replaced(Differences::default()), "hf          b => a"),
            (ItemKind::Special, Done::Created, "hS+++++++++ b => a"),
            (ItemKind::Symlink, Done::Linked, "hL          b => a"),
            (ItemKind::Symlink, Done::Created, "cL+++++++++ b -> a"),
        ];
        for (kind, done, line) in cases {
            let named = ItemChange { leads_to: b"a".to_vec(), ..change("b", kind, done) };
            assert_eq!(itemized(&named, ContentWay::Push), line);
        }
    }

    #[test]
    fn format_shows_its_escapes_and_refuses_others_by_name() {
        let shown = |format: &str, change: &ItemChange| {
            let format = LineFormat::parse(format).expect("a format");
            format.line(change, ContentWay::Push, UNIX_EPOCH)
        };
        let file = change("d/f", ItemKind::File, Done::Created);
        let digest = "ab".repeat(32);
        let line = format!("100% <f+++++++++|d/f|d/f|5|5|2001/02/03-04:05:06|1970/01/01 00:00:00|send||{digest}é");
        assert_eq!(shown("100%% %i|%n|%f|%l|%b|%M|%t|%o|%L|%Cé", &file), Some(line));
        let set = Done::Set(Differences { permissions: true, ..Differences::default() });
        let directory = change("d", ItemKind::Directory, set);
        assert_eq!(shown("%n %f %b", &directory).as_deref(), Some("d/ d 0"));
        // As rsync has it: what was only given attributes is told where letters say so, what was deleted always.
        assert_eq!(shown("%n", &change("f", ItemKind::File, set)), None);
        let deleted = change("d", ItemKind::Directory, Done::Deleted);
        assert_eq!(shown("%n", &deleted).as_deref(), Some("deleting d/"));
        assert_eq!(shown("%o %n", &deleted).as_deref(), Some("del. d/"));
        assert_eq!(shown("", &file), None);
        for (format, named) in [("%a", "%a"), ("x %", "%"), ("%-9n", "%-"), ("%'l", "%'"), ("%\u{1b}", "%\\x1b")] {
            let refused = LineFormat::parse(format).expect_err("refused");
            assert!(refused.starts_with(&format!("{named} is not told here")), "{refused}");
        }
    }
}
