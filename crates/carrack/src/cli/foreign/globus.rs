//! Flags of `globus transfer`, typed where a task is submitted.

use super::{ForeignFlag, always, different, ours, refused, taken_as};

/// Flags for tasks. What `task submit` has itself is not here.
pub const FOREIGN_TASK_FLAGS: &[ForeignFlag] = &[
    always(&["-r", "--recursive"], "Globus", "directories are copied with all that is in them"),
    always(&["--preserve-timestamp", "--preserve-mtime"], "Globus", "times are kept, of directories, too"),
    always(&["--verify-checksum"], "Globus", "each file is verified"),
    always(&["--encrypt-data"], "Globus", "all data is encrypted"),
    always(&["--skip-activation-check"], "Globus", "no endpoint is activated"),
    taken_as(&["--perf-cc", "--perf-p"], "Globus", "all files share all data connections", "--streams N"),
    taken_as(
        &["--sync-level"],
        "Globus",
        "files that are the same by that level are not sent",
        "--no-clobber, --compare, --update",
    ),
    ours(&["-s"], "Globus", "the level is typed in full", "--sync-level LEVEL"),
    ours(&["--no-verify-checksum"], "Globus", "each file is verified, unless that is turned off", "--verify none"),
    ours(&["--delete-destination-extra"], "Globus", "what the destination alone has is deleted otherwise", "--delete"),
    ours(
        &["--external-checksum"],
        "Globus",
        "digests that files must have are read from a list, and are BLAKE3, not MD5",
        "--expect-digests FILE",
    ),
    ours(&["--checksum-algorithm"], "Globus", "the digest is chosen otherwise", "--digest LIST"),
    ours(&["--format", "-F", "--jmespath", "--jq"], "Globus", "programs read JSON, an object a line", "--json"),
    different(&["--encrypt"], "Globus", "it takes tls or none, and all data is encrypted without it", ""),
    different(
        &["--deadline"],
        "Globus",
        "a time of day has its zone, like 2026-11-23T08:00:00Z; a time from now has a unit",
        "--deadline 6h",
    ),
    different(
        &["--include", "--exclude"],
        "Globus",
        "rules are for directories, too: * leaves them out, unless a rule before takes them",
        "--include '*/' --include '*.txt' --exclude '*'",
    ),
    different(&["--notify"], "Globus", "it takes ends, such as succeeded,failed", ""),
    different(
        &["--dry-run"],
        "Globus",
        "what would be copied is counted, and how long it may take; a preview compares both places",
        "carrack task preview",
    ),
    ours(&["--no-recursive"], "Globus", "what is named is copied with all that is in it", "--exclude '*/' with SRC/"),
    refused(&["--quiet", "-q"], "Globus", "the command prints little, and --json is for programs"),
    refused(
        &["--source-local-user", "--destination-local-user"],
        "Globus",
        "the account at a place is that of its node, or the one that ssh logs in to",
    ),
    refused(&["--map-http-status"], "Globus", "exit codes are those of carrack --help"),
    refused(&["--perf-pp"], "Globus", "small files travel in bundles, and no command waits for another"),
    refused(&["--perf-udt"], "Globus", "data travels over TCP"),
];
