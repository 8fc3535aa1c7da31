//! The flags of `carrack copy`, which are also those of `carrack SRC... DST`.

use carrack_core::request::{Durability, Encrypt, LinkKind, Verify};
use carrack_core::words::{list, meanings};
use clap::{Arg, ArgAction, Command};

use crate::cli::{flag, locations, reach_flags, value, word};

/// The verb.
pub fn copy() -> Command {
    Command::new("copy")
        .visible_alias("cp")
        .about("Copy files and trees; the same as `carrack SRC... DST`")
        .override_usage("carrack [copy] [OPTIONS] SRC... DST")
        .arg(locations("locations", "SRC... DST").help("What to copy, and last where it goes"))
        .args(what())
        .args(how())
        .args(faults())
        .args(reach_flags())
        .args(links())
        .args(output())
        .args(accepted())
}

fn what() -> [Arg; 8] {
    [
        flag("dry-run", Some('n'), "Say what would be copied; move nothing"),
        flag("no-clobber", None, "Leave names that exist already")
            .visible_alias("ignore-existing")
            .conflicts_with_all(["existing", "update"]),
        flag("existing", None, "Write only over names that exist").conflicts_with("update"),
        flag("update", Some('u'), "Replace what exists only if the source is newer"),
        value(
            "files-from",
            "FILE",
            "Of what is named, only the paths in FILE and what is below them, relative to the destination, one a \
             line, as --failed-list writes them; - is standard input",
        ),
        word("verify", "HOW", Verify::ALL, format!("{} [default: wire]", meanings(Verify::ALL))),
        value(
            "digest",
            "LIST",
            "blake3, or xxh128 in its place, of each block: cheap, finds accidents but no forger, and no digest of \
             whole files; adler32, crc32c besides; separated by commas; none needs --verify none [default: blake3]",
        ),
        value(
            "manifest",
            "FILE",
            "Write the BLAKE3 digest of every copied file, for `b3sum -c` in the destination; \
             - is standard output",
        )
        .conflicts_with("dry-run"),
    ]
    .map(|arg| arg.help_heading("What"))
}

fn how() -> [Arg; 5] {
    [
        value("streams", "N|auto", "Data connections [default: auto]"),
        value(
            "block",
            "SIZE",
            "Unit of sending and repair, a power of two, 64K to 64M [default: 256K for files up to 1G, 1M up to 256G, else 4M]",
        ),
        value(
            "congestion",
            "NAME",
            "Congestion control of the sending host's TCP, like cubic or bbr [default: that host's]",
        ),
        value("bwlimit", "RATE", "At most so many bytes a second, like 100MB; 0 is no limit"),
        word("encrypt", "HOW", Encrypt::ALL, format!("{} [default: tls]", meanings(Encrypt::ALL)),
        ),
    ]
    .map(|arg| arg.help_heading("How"))
}

fn faults() -> [Arg; 6] {
    [
        word("durable", "HOW", Durability::ALL, format!("{} [default: group]", meanings(Durability::ALL))),
        flag("allow-growing", None, "A source may grow: copy what it had when it was listed"),
        value(
            "retries",
            "N",
            "Attempts in a row that may get nowhere when a connection or a node is lost; 0 is one attempt only \
             [default: 40]",
        ),
        value("deadline", "TIME", "Give up after so long in all, like 6h [default: none]"),
        flag("no-resume", None, "Use nothing that an earlier attempt has left, and remove it"),
        value("failed-list", "FILE", "Write the paths of the items that failed, one a line, for --files-from")
            .conflicts_with("dry-run"),
    ]
    .map(|arg| arg.help_heading("Faults"))
}

fn links() -> [Arg; 5] {
    [
        value(
            "source-token-file",
            "FILE",
            "The bearer token for the source's node, where the destination is on another",
        ),
        value("destination-token-file", "FILE", "The bearer token for the destination's node"),
        value(
            "ports",
            "LO-HI",
            "Ports to accept data connections on, at the side that listens (a node has its own) [default: any]",
        ),
        value("data-address", "ADDR", "Where data connections go [default: where ssh went]"),
        word(
            "link",
            "KIND",
            LinkKind::BETWEEN_HOSTS,
            format!("Only {} [default: the first that works]", list(LinkKind::BETWEEN_HOSTS)),
        ),
    ]
    .map(|arg| arg.help_heading("Hosts"))
}

fn output() -> [Arg; 7] {
    [
        flag("verbose", Some('v'), "Name every file; twice: with its size and digest").action(ArgAction::Count),
        flag("quiet", Some('q'), "Print errors only").conflicts_with_all(["verbose", "progress"]),
        flag("json", None, "One JSON object a line on standard output"),
        value("log-file", "FILE", "Append what is said to FILE, with the time"),
        flag("progress", Some('P'), "Draw the bar even where there seems to be no terminal")
            .conflicts_with("no-progress"),
        flag("no-progress", None, "No bar and no progress lines"),
        value(
            "stats",
            "TIME",
            "How often a progress line is printed where no bar is drawn; 0 is never \
             [default: 5s]",
        ),
    ]
    .map(|arg| arg.help_heading("Output"))
}

/// What people type from habit, and what is always so: directories recurse, modes and times are kept.
fn accepted() -> [Arg; 3] {
    [("recursive", 'r'), ("archive", 'a'), ("preserve", 'p')]
        .map(|(name, letter)| flag(name, Some(letter), "Always on").hide(true))
}
