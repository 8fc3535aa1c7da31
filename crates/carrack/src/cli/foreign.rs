//! Flags of other programs that people type from habit: what becomes of each, in one table.

use std::ffi::{OsStr, OsString};

use carrack_core::duration::parse_duration;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction};

use crate::error::CommandError;

/// What Carrack does with a flag of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignEffect {
    /// Carrack always does what it asks for: it is taken in silence.
    Always,
    /// It is taken, and does what these words of ours do.
    Taken(&'static str),
    /// It is refused, and these words of ours do the same, or what comes nearest to it.
    Ours(&'static str),
    /// It is refused: nothing does that.
    Refused,
}

/// A flag of another program.
#[derive(Clone, Copy, Debug)]
pub struct ForeignFlag {
    /// Its spellings, with their dashes.
    pub names: &'static [&'static str],
    /// Which programs have it.
    pub whose: &'static str,
    /// What becomes of it.
    pub effect: ForeignEffect,
    /// Why, as the end of a sentence.
    pub why: &'static str,
}

const fn always(names: &'static [&'static str], whose: &'static str, why: &'static str) -> ForeignFlag {
    ForeignFlag { names, whose, effect: ForeignEffect::Always, why }
}

const fn ours(
    names: &'static [&'static str],
    whose: &'static str,
    why: &'static str,
    ours: &'static str,
) -> ForeignFlag {
    ForeignFlag { names, whose, effect: ForeignEffect::Ours(ours), why }
}

const fn taken_as(
    names: &'static [&'static str],
    whose: &'static str,
    why: &'static str,
    ours: &'static str,
) -> ForeignFlag {
    ForeignFlag { names, whose, effect: ForeignEffect::Taken(ours), why }
}

const fn refused(names: &'static [&'static str], whose: &'static str, why: &'static str) -> ForeignFlag {
    ForeignFlag { names, whose, effect: ForeignEffect::Refused, why }
}

/// Flags for copying. What `copy` has itself is not here.
pub const FOREIGN_FLAGS: &[ForeignFlag] = &[
    always(&["-r", "--recursive"], "rsync, scp, cp", "directories are copied with all that is in them"),
    always(&["--fsync"], "rsync", "what is copied is on stable storage before it counts as there"),
    always(
        &["--inc-recursive", "--i-r", "--no-inc-recursive", "--no-i-r"],
        "rsync",
        "nothing waits for a whole listing",
    ),
    always(&["--preserve"], "cp", "permissions and times are kept"),
    always(&["--times"], "rsync", "times are kept"),
    always(&["--links"], "rsync", "symbolic links are copied as links"),
    always(&["--sparse"], "rsync", "holes stay holes"),
    always(&["--partial"], "rsync", "a copy that was interrupted goes on when it is started again"),
    always(&["--mkpath"], "rsync", "missing directories above the destination are made"),
    always(&["--human-readable"], "rsync", "sizes are shown with their units"),
    always(&["--protect-args", "--secluded-args"], "rsync", "no shell at the far side reads a path"),
    always(&["--no-motd"], "rsync", "no node greets"),
    always(&["--trust-sender"], "rsync", "whatever a source claims, it reaches nothing outside the destination"),
    ours(&["--rsync-path"], "rsync", "the far side needs carrack", "--remote-path PATH"),
    taken_as(&["--info"], "rsync", "the bar shows the whole copy", "--progress"),
    // Letters that mean one thing here and another there, where a value would become a source: never taken in silence.
    refused(&["-t"], "rsync and cp", "times are kept, and the last path is the destination"),
    ours(
        &["-l"],
        "rsync, scp and cp",
        "links are copied as links; a limit of the rate is typed otherwise",
        "--bwlimit RATE",
    ),
    ours(&["-S"], "rsync, scp and cp", "holes stay holes; another ssh is typed otherwise", "-e COMMAND"),
    refused(
        &["-s"],
        "rsync, scp and cp",
        "no shell at the far side reads a path, and no link is made in place of a copy",
    ),
    ours(&["--transfers", "--checkers"], "rclone", "many files are copied at once by itself", "--streams N"),
    ours(
        &["--parallel", "-parallel"],
        "globus-url-copy",
        "data connections are chosen while the copy runs",
        "--streams N",
    ),
    ours(&["-dbg"], "globus-url-copy", "the bar shows the rate", "--progress, -v"),
    ours(&["-sync"], "globus-url-copy", "only newer files are copied", "--update"),
    ours(
        &["-tcp-bs", "-tcp-buffer-size"],
        "globus-url-copy",
        "the kernel chooses the buffers of TCP",
        "carrack doctor",
    ),
    ours(
        &["-F"],
        "rsync and scp",
        "rules in directories have a name of yours, and ssh is started with words of yours",
        "--filter 'dir-merge .rsync-filter', -e 'ssh -F FILE'",
    ),
    ours(&["-J"], "rsync and scp", "times are kept, and ssh is started with words of yours", "-e 'ssh -J HOST'"),
    ours(
        &["-3"],
        "scp",
        "data of two other hosts goes from one to the other by itself",
        "--link tunnel leads it through here",
    ),
    ours(
        &[
            "--delete",
            "--delete-after",
            "--delete-delay",
            "--delete-before",
            "--delete-during",
            "--del",
            "--delete-excluded",
            "--max-delete",
            "--ignore-errors",
        ],
        "rsync",
        "a copy deletes nothing at its destination",
        "carrack sync --delete",
    ),
    ours(
        &["--compress-choice", "--zc", "--compress-level", "--zl", "--compress-threads", "--zt"],
        "rsync",
        "zstd compresses, as hard as the path leaves time for",
        "--compress",
    ),
    ours(&["--skip-compress"], "rsync", "what does not shrink is found out, and left alone", "--compress"),
    ours(&["-C"], "rsync and scp", "only rules leave names out", "-z, as with scp"),
    refused(&["--cvs-exclude"], "rsync", "only rules leave names out"),
    refused(
        &["--drop-D", "--super"],
        "rsync",
        "who may not make devices or set owners leaves them out, and the report counts them",
    ),
    refused(
        &["--copy-as", "-E", "--executability"],
        "rsync",
        "permissions are those of the source, or as --chmod changes them; owners its own (-o), or as --chown says",
    ),
    refused(
        &["--munge-links", "--insecure-links"],
        "rsync",
        "links say at the destination what they say at the source",
    ),
    refused(&["--no-implied-dirs"], "rsync", "directories above a source get its permissions and times"),
    refused(&["--fuzzy", "-y"], "rsync", "a file is compared with what has its name, and with no other"),
    ours(&["--append-verify"], "rsync", "what a file has is always compared", "--append"),
    refused(&["--write-devices"], "rsync", "a device takes one file, named as the destination"),
    refused(&["--delay-updates"], "rsync", "each file gets its name as soon as it is whole and verified"),
    refused(
        &["--partial-dir", "--temp-dir", "-T"],
        "rsync",
        "what is not yet whole waits beside its place under a hidden name, and the next run goes on from it",
    ),
    refused(&["-d", "--dirs", "--old-dirs", "--old-d"], "rsync", "directories are copied with all that is in them"),
    refused(&["-m", "--prune-empty-dirs"], "rsync", "empty directories are copied, too"),
    ours(&["--no-whole-file", "--no-W"], "rsync", "the blocks that differ are asked for otherwise", "--delta always"),
    ours(&["-B", "--block-size"], "rsync", "the unit that is compared is the one that is sent", "--block SIZE"),
    refused(&["--force"], "rsync", "no file takes the place of a directory with something in it"),
    refused(
        &["--ignore-missing-args", "--delete-missing-args"],
        "rsync",
        "a source that is missing is an error, and nothing is deleted for it",
    ),
    ours(&["--open-noatime"], "rsync", "reading leaves access times alone where they are kept", "--atimes"),
    refused(&["-N", "--crtimes"], "rsync", "Linux lets nobody set when a file was made"),
    refused(&["-O", "--omit-dir-times", "--omit-link-times"], "rsync", "times are kept"),
    refused(&["--copy-devices"], "rsync", "devices are not read"),
    refused(&["--preallocate"], "rsync", "room is reserved as a file grows"),
    ours(&["--checksum-choice", "--cc"], "rsync", "the digest is chosen otherwise", "--digest LIST"),
    refused(&["--checksum-seed", "--protocol", "--max-alloc", "--confine-root"], "rsync", "there is no such setting"),
    refused(&["--iconv"], "rsync", "names are copied as they are, byte for byte"),
    refused(&["--write-batch", "--only-write-batch", "--read-batch"], "rsync", "nothing is copied by way of a file"),
    ours(&["--list-only"], "rsync", "files are listed otherwise", "carrack ls"),
    ours(
        &["--log-file-format"],
        "rsync",
        "the log has the lines that are printed",
        "--log-file FILE, --out-format FORMAT",
    ),
    ours(&["--debug", "--stderr", "--outbuf"], "rsync", "the command says more", "-v, --log-file FILE"),
    refused(
        &["--8-bit-output", "-8"],
        "rsync",
        "letters of UTF-8 are shown as they are, and what drives a terminal is not",
    ),
    ours(&["--stop-after", "--stop-at"], "rsync", "a copy ends by a time in all", "--deadline TIME"),
    ours(&["--password-file", "--early-input"], "rsync", "a node is shown a token", "--token-file FILE"),
    refused(&["--port"], "rsync", "a node's port stands in its address: carrack://HOST:PORT/PATH"),
    ours(&["-@"], "rsync", "this letter is not taken", "--modify-window SECONDS"),
    ours(
        &["--address", "-4", "--ipv4", "-6", "--ipv6"],
        "rsync",
        "connections leave from an address of yours",
        "--bind ADDR",
    ),
    refused(
        &["--sockopts", "--blocking-io", "--old-args", "--remote-option", "-M"],
        "rsync",
        "there is no such setting",
    ),
    refused(&["--no-perms", "--no-links"], "rsync", "permissions and links are kept"),
];

/// Flags for tasks. What `task submit` has itself is not here.
pub const FOREIGN_TASK_FLAGS: &[ForeignFlag] = &[
    always(&["-r", "--recursive"], "Globus", "directories are copied with all that is in them"),
    taken_as(&["--perf-cc", "--perf-p"], "Globus", "all files share all data connections", "--streams N"),
    taken_as(&["--sync-level"], "Globus", "files that exist may stay", "--no-clobber, --compare, --update"),
    refused(&["--perf-pp"], "Globus", "small files travel in bundles, and no command waits for another"),
    refused(&["--perf-udt"], "Globus", "data travels over TCP"),
];

/// The flags of others that a command line may have, by its verb.
fn table_of(arguments: &[OsString]) -> &'static [ForeignFlag] {
    let word = |at: usize| arguments.get(at).and_then(|word| word.to_str());
    match (word(1), word(2)) {
        (Some("copy" | "cp" | "sync"), _) => FOREIGN_FLAGS,
        (Some("task"), Some("submit" | "preview")) | (Some("timer"), Some("create")) => FOREIGN_TASK_FLAGS,
        _ => &[],
    }
}

/// The flags of a table that are taken in silence, as clap knows them.
pub fn taken(table: &[ForeignFlag]) -> Vec<Arg> {
    let rows = table.iter().filter(|row| row.effect == ForeignEffect::Always);
    let arg = |row: &ForeignFlag| {
        let mut arg = Arg::new(row.names[0]).hide(true).action(ArgAction::Count);
        for name in row.names {
            arg = match name.strip_prefix("--") {
                Some(long) if arg.get_long().is_none() => arg.long(long),
                Some(long) => arg.alias(long),
                None => arg.short(name.chars().nth(1)),
            };
        }
        arg.help(row.why)
    };
    rows.map(arg).collect()
}

/// What is said of a command line that has one of these flags in the place of ours. `parsed` is what clap says of it;
/// `arguments` are those of the line, the program's name and the verb included.
pub fn explain<T>(parsed: &Result<T, clap::Error>, arguments: &[OsString]) -> Option<CommandError> {
    let table = table_of(arguments);
    // A time that is not joined to its flag would be a source.
    let apart = arguments.windows(2).find_map(|pair| {
        let time = pair[1].to_str().filter(|time| pair[0] == "--stats" && parse_duration(time).is_ok())?;
        Some(CommandError::usage(format!("--stats: the time is joined to it: --stats={time}")))
    });
    let before_paths = arguments.split(|argument| argument == "--").next().unwrap_or_default();
    let key = before_paths.windows(2).find(|pair| pair[0] == "-i" && is_key(&pair[1])).map(|pair| {
        let named = pair[1].display();
        CommandError::usage(format!("-i prints what changes, and {named} would be copied: a key is an option of ssh"))
            .hint("-e 'ssh -i KEY'")
            .hint("to copy it: --itemize-changes in place of -i")
    });
    if let Some(misread) = apart.or(key).filter(|_| !table.is_empty()) {
        return Some(misread);
    }
    let row_of = |typed: &str| row_of(table, typed);
    let words = arguments.iter().filter_map(|argument| argument.to_str()).take_while(|argument| *argument != "--");
    // clap takes `-sync` for letters of flags, some of which we have: what was typed says more.
    let mut long_words =
        words.filter(|word| word.len() > "-x".len() && word.starts_with('-') && !word.starts_with("--"));
    let word = long_words.find_map(row_of);
    let (name, row) = match (word, parsed) {
        (Some(word), _) => word,
        (None, Err(refusal)) if refusal.kind() == ErrorKind::UnknownArgument => {
            let Some(ContextValue::String(unknown)) = refusal.get(ContextKind::InvalidArg) else { return None };
            row_of(unknown)?
        }
        (None, _) => return None,
    };
    let error = CommandError::usage(format!("{name} is a flag of {}: here, {}", row.whose, row.why));
    Some(match row.effect {
        ForeignEffect::Ours(ours) => error.hint(ours),
        ForeignEffect::Always | ForeignEffect::Taken(_) | ForeignEffect::Refused => error,
    })
}

/// Whether a word looks like the key that scp takes there.
fn is_key(word: &OsStr) -> bool {
    let word = word.to_string_lossy();
    let (directory, name) = word.rsplit_once('/').unwrap_or(("", &word));
    directory.ends_with(".ssh") || name.starts_with("id_") || name.ends_with(".pem")
}

/// clap's tip would have a flag that it does not know copied as a file. Whoever means a file is told how it is typed.
pub fn tell_no_file(refusal: &mut clap::Error) {
    if refusal.remove(ContextKind::Suggested).is_some()
        && let Some(ContextValue::String(unknown)) = refusal.get(ContextKind::InvalidArg)
    {
        let tip = format!("a path that begins with a dash is typed ./{unknown}");
        refusal.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}

fn row_of(table: &'static [ForeignFlag], typed: &str) -> Option<(&'static str, &'static ForeignFlag)> {
    let bare = typed.split_once('=').map_or(typed, |(name, _)| name);
    table.iter().find_map(|row| {
        let name = row.names.iter().find(|name| **name == typed || **name == bare)?;
        Some((*name, row))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::command::whole_tree;

    /// The verbs that have foreign flags, and whose they are.
    const VERBS: [(&[&str], &[ForeignFlag]); 2] =
        [(&["copy"], FOREIGN_FLAGS), (&["task", "submit"], FOREIGN_TASK_FLAGS)];

    fn refusal(verb: &[&str], words: &[&str]) -> Result<(), CommandError> {
        let line: Vec<OsString> = ["carrack"].iter().chain(verb).chain(words).map(OsString::from).collect();
        let parsed = whole_tree().try_get_matches_from(&line);
        match (explain(&parsed, &line), parsed) {
            (Some(error), _) => Err(error),
            (None, Ok(_)) => Ok(()),
            (None, Err(refusal)) => panic!("{words:?}: {refusal}"),
        }
    }

    /// The verb's own flags.
    fn flags_of(verb: &[&str]) -> Vec<Arg> {
        let mut tree = whole_tree();
        for word in verb {
            tree = tree.find_subcommand(word).unwrap().clone();
        }
        tree.get_arguments().cloned().collect()
    }

    #[test]
    fn each_flag_is_taken_or_answered_by_its_row() {
        for (verb, table) in VERBS {
            let (mut seen, own) = (BTreeSet::new(), flags_of(verb));
            for (row, name) in table.iter().flat_map(|row| row.names.iter().map(move |name| (row, *name))) {
                assert!(seen.insert(name), "{name} stands twice");
                if let ForeignEffect::Taken(_) = row.effect {
                    let flag = own.iter().find(|flag| flag.get_long() == name.strip_prefix("--"));
                    assert!(flag.is_some_and(Arg::is_hide_set), "{name}");
                    continue;
                }
                match (refusal(verb, &[name, "a", "b"]), row.effect) {
                    (Ok(()), ForeignEffect::Always) => {}
                    (Err(error), ForeignEffect::Ours(_) | ForeignEffect::Refused) => {
                        assert!(error.failure.why.contains(row.why) && error.failure.why.starts_with(name), "{name}");
                    }
                    (answer, effect) => panic!("{name}: {effect:?}, and {answer:?}"),
                }
            }
        }
    }

    /// Each flag that rsync 3.5 helps with is ours, is taken, or is refused by its row.
    #[test]
    fn each_flag_of_rsync_is_answered() {
        for flag in include_str!("../../tests/golden/rsync-3.5-flags.txt").lines() {
            let words = flag.strip_suffix('=').map_or(vec![flag], |flag| vec![flag, "1"]);
            for verb in ["copy", "sync"] {
                let words = [&["carrack", verb][..], &words, &["a", "b"]].concat();
                let line: Vec<OsString> = words.iter().map(OsString::from).collect();
                let parsed = whole_tree().try_get_matches_from(&line);
                let is_unknown = parsed.as_ref().is_err_and(|why| why.kind() == ErrorKind::UnknownArgument);
                assert!(!is_unknown || explain(&parsed, &line).is_some(), "{verb} {flag}");
            }
        }
    }

    #[test]
    fn words_of_ours_are_words_that_we_have() {
        for (verb, table) in VERBS {
            let known = |own: &[Arg], word: &str| match word.strip_prefix("--") {
                Some(long) => own.iter().any(|arg| arg.get_long() == Some(long)),
                None => own.iter().any(|arg| arg.get_short() == word.chars().nth(1)),
            };
            for row in table {
                let (ForeignEffect::Ours(ours) | ForeignEffect::Taken(ours)) = row.effect else { continue };
                // Another verb may be what does it.
                let other = ours.strip_prefix("carrack ").unwrap_or_default();
                let other: Vec<&str> = other.split(' ').take_while(|word| !word.starts_with('-')).collect();
                let own = flags_of(if ours.starts_with("carrack ") { &other } else { verb });
                let words = ours.split([' ', ',', '\'']).filter(|word| word.starts_with('-'));
                for word in words.take_while(|word| !matches!(*word, "-F" | "-J" | "-i" | "-o")) {
                    assert!(known(&own, word), "{ours}");
                }
            }
        }
    }

    #[test]
    fn values_and_words_with_one_dash_are_found() {
        for (words, name) in [
            (&["--temp-dir=../x", "a", "b"][..], "--temp-dir"),
            (&["-dbg", "a", "b"], "-dbg"),
            (&["-avN", "a", "b"], "-N"),
            (&["-a", "--delete", "a", "b"], "--delete"),
            (&["-r", "-tcp-bs=4M", "a", "b"], "-tcp-bs"),
            (
                &["-i", "/home/u/.ssh/key", "a", "host:b"],
                "-i prints what changes, and /home/u/.ssh/key would be copied",
            ),
            (&["-i", "id_ed25519", "a", "host:b"], "-i prints what changes"),
            (&["--stats", "5s", "a", "b"], "--stats: the time is joined to it: --stats=5s"),
        ] {
            let error = refusal(&["copy"], words).expect_err("a foreign flag");
            assert!(error.failure.why.starts_with(name), "{words:?}: {}", error.failure.why);
        }
    }
}
