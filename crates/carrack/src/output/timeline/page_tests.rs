//! Pages of recordings: well-formed, nothing loaded, nothing of a peer's obeyed, and good where an end tells nothing.

use std::fmt::Write;

use super::page::page;
use super::read::{Recording, read};
use super::terminal;
use super::view::View;
use crate::output::plot::text::Paper;

const FELL: &str = include_str!("../../../tests/golden/report/fell.timeline");

fn recording(text: &str) -> Recording {
    read(text.as_bytes()).unwrap()
}

fn page_of(text: &str) -> String {
    page(&View::of(&recording(text)))
}

/// Every element is closed in its turn, and no text has a character that should have been escaped.
#[track_caller]
fn is_well_formed(html: &str) {
    const VOID: [&str; 2] = ["meta", "!DOCTYPE"];
    let mut open: Vec<&str> = Vec::new();
    // Style sheets have `>` in them, and no tags.
    let (before, rest) = html.split_once("<style>").unwrap();
    let (_, after) = rest.split_once("</style>").unwrap();
    for piece in [before, after] {
        for part in piece.split('<').skip(1) {
            let (tag, text) = part.split_once('>').unwrap_or_else(|| panic!("a tag has no end: {part:.80}"));
            assert!(!text.contains('>'), "{part:.200}");
            let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap();
            assert!(tag.matches('"').count().is_multiple_of(2), "{tag}");
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(name));
            } else if !tag.ends_with('/') && !VOID.contains(&name) {
                open.push(name);
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

/// What a browser would fetch or run.
#[track_caller]
fn loads_nothing(html: &str) {
    for word in ["<script", "http:", "https:", "src=", "href=", "@import", "javascript:", " onload", " onerror"] {
        assert!(!html.contains(word), "{word}");
    }
    let policy = "content=\"default-src 'none'; style-src 'unsafe-inline'";
    assert!(html.contains(policy));
    // Patterns of the page itself.
    assert!(html.match_indices("url(").all(|(at, _)| html[at..].starts_with("url(#hatch-")));
}

#[test]
fn page_is_well_formed_and_loads_nothing() {
    let html = page_of(FELL);
    is_well_formed(&html);
    loads_nothing(&html);
    for title in
        ["Rate", "Streams", "Retransmits", "Processors of the destination", "Disks: share of the time", "Round trip"]
    {
        assert!(html.contains(&format!("<h3>{title}")), "{title}");
    }
    assert!(html.contains("Limited by the destination&#39;s storage"), "the verdict");
    assert!(html.contains("rate fell to 138 MB/s") && html.contains("stream lost"), "what happened");
    assert!(html.contains("iut2-dc1") && html.contains("Linux 6.1.0-25-amd64"), "the facts");
    assert!(html.len() < 1 << 20, "{} bytes", html.len());
}

#[test]
fn page_obeys_no_name_of_a_peer() {
    let hostile = r#"</title></h1><script>alert(1)</script>\"' onload=x \u001b[31m\u202e\u0000&amp;"#;
    let text = FELL
        .replace("/scratch/test", hostile)
        .replace("uct2-c001", hostile)
        .replace("\"program\":\"0.9.0\"", &format!("\"program\":\"{hostile}\""))
        .replace("\"congestion\":\"cubic\"", &format!("\"congestion\":\"{hostile}\""))
        .replace("Linux 6.1.0-25-amd64", hostile)
        .replace("md0", hostile)
        .replace("eth0", hostile)
        .replace("read: Connection reset by peer", hostile)
        .replace(
            "\"link\",\"at_us\":600000,\"kind\":\"direct\"",
            &format!("\"link\",\"at_us\":600000,\"kind\":\"{hostile}\""),
        )
        .replace("\"reason\":\"try-more\"", &format!("\"reason\":\"{hostile}\""))
        .replace(
            "\"limited_by\":{\"stage\":\"destination-storage\"",
            &format!("\"limited_by\":{{\"stage\":\"{hostile}\""),
        );
    let html = page_of(&text);
    assert!(html.matches("&lt;script&gt;").count() > 8, "the names are there");
    assert!(!html.contains("<script") && !html.contains(" onload=x \u{1b}"));
    assert!(!html.contains(['\u{1b}', '\u{202e}', '\0']) && html.contains("\\x1b[31m"));
    is_well_formed(&html);
    let lines = terminal::lines(&View::of(&recording(&text)), Paper { columns: 80, is_ascii: false });
    assert!(!lines.concat().contains(['\u{1b}', '\u{202e}', '\0', '\n']));
    let silent: String =
        text.lines().filter(|line| !line.contains("sample\",")).flat_map(|line| [line, "\n"]).collect();
    let recording = recording(&silent);
    let view = View::of(&recording);
    let said = [terminal::lines(&view, Paper { columns: 80, is_ascii: false }), vec![page(&view)]].concat().concat();
    assert!(said.contains("has told nothing") && !said.contains(['\u{1b}', '\u{202e}', '\0']));
}

/// A far end tells any numbers: all of them together are too large for the integers that they travel in.
#[test]
fn page_and_lines_of_the_largest_numbers_are_made() {
    let most = "18446744073709551615";
    let stages: Vec<String> = carrack_core::timeline::Work::ALL
        .iter()
        .map(|work| format!("\"{}\":{{\"worked_us\":{most},\"waited_us\":{most},\"calls\":{most}}}", work.name()))
        .collect();
    let interface = format!("\"sent_dropped\":{most},\"received_dropped\":{most},\"sent_bytes\":{most}");
    // The last sample of each end tells them: before that, there was little.
    let last = ["source", "destination"].map(|side| {
        let told = format!("\"type\":\"sample\",\"time\":\"2008-05-01T20:31:14.000Z\",\"side\":\"{side}\"");
        FELL.lines().rfind(|line| line.contains(&told)).unwrap()
    });
    let text: String = FELL.lines().fold(String::new(), |mut text, line| {
        let is_last = last.contains(&line);
        let replaced = line.find("\"stages\":{").zip(line.find("},\"queues\"")).filter(|_| is_last);
        match replaced {
            Some((from, to)) => {
                let altered = format!("{}\"stages\":{{{}{}", &line[..from], stages.join(","), &line[to..]);
                let altered = altered.replace("\"interface\":{", &format!("\"interface\":{{{interface},"));
                // Of two fields of one name, the later one counts.
                writeln!(text, "{altered}").unwrap();
            }
            None => writeln!(text, "{line}").unwrap(),
        }
        text
    });
    assert_ne!(text, FELL);
    let recording = recording(&text);
    let view = View::of(&recording);
    let html = page(&view);
    is_well_formed(&html);
    assert!(!html.contains("NaN") && !html.contains("inf") && html.contains("The destination dropped"));
    assert!(!terminal::lines(&view, Paper { columns: 80, is_ascii: true }).is_empty());
}

#[test]
fn page_of_what_is_not_there_says_so() {
    let lines: Vec<&str> = FELL.lines().collect();
    let first = format!("{}\n", lines[0]);
    let html = page_of(&first);
    is_well_formed(&html);
    assert!(html.contains("no sample") && html.contains("ends early") && !html.contains("role=\"img\""));
    // One end alone: its pictures are there, and the other is named.
    let of_source: String =
        lines.iter().filter(|line| !line.contains("\"side\":\"destination\"")).fold(String::new(), |mut text, line| {
            writeln!(text, "{line}").unwrap();
            text
        });
    let html = page_of(&of_source);
    is_well_formed(&html);
    assert!(html.contains("The destination has told nothing.") && html.contains("Processors of the source"));
    assert!(!html.contains("Processors of the destination"));
}

/// Wherever a killed copy left its file, and whatever is altered in it, there is a page.
#[test]
fn page_and_lines_of_any_recording_end_with_an_answer() {
    let mut state = 5_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let numbers = ["0", "1", "18446744073709551615", "9007199254740993", "999999999999999", "3"];
    let mut shown = 0;
    for _ in 0..300 {
        let mut text = FELL[..next(FELL.len())].to_owned();
        for _ in 0..next(40) {
            // A number becomes another one.
            let Some(at) = text[next(text.len().max(1)).min(text.len())..].find(':') else { continue };
            let Some(digit) = text[at..].find(|c: char| c.is_ascii_digit()).map(|found| at + found) else { continue };
            let length = text[digit..].find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
            text.replace_range(digit..digit + length, numbers[next(numbers.len())]);
        }
        let Ok(recording) = read(text.as_bytes()) else { continue };
        let view = View::of(&recording);
        let html = page(&view);
        assert!(!html.contains("NaN") && !html.contains("inf"), "{text:.3000}");
        terminal::lines(&view, Paper { columns: 80, is_ascii: true });
        shown += 1;
    }
    assert!(shown > 50, "{shown}");
}
