//! Each flag of each program against its row.

use std::collections::BTreeSet;

use super::*;
use crate::command::whole_tree;

/// The verbs that have foreign flags, and whose they are.
const VERBS: [(&[&str], &[ForeignFlag]); 2] = [(&["copy"], FOREIGN_FLAGS), (&["task", "submit"], FOREIGN_TASK_FLAGS)];

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
    let (mut tree, mut flags) = (whole_tree(), Vec::new());
    for word in verb {
        tree = tree.find_subcommand(word).unwrap().clone();
        // What holds for all below stands above.
        flags.extend(tree.get_arguments().cloned());
    }
    flags
}

#[test]
fn each_flag_is_taken_or_answered_by_its_row() {
    for (verb, table) in VERBS {
        let (mut seen, own) = (BTreeSet::new(), flags_of(verb));
        for (row, name) in table.iter().flat_map(|row| row.names.iter().map(move |name| (row, *name))) {
            assert!(seen.insert(name), "{name} stands twice");
            if let ForeignEffect::Different(_) = row.effect {
                let is_it =
                    |flag: &&Arg| flag.get_long() == name.strip_prefix("--") || flag.get_short() == name.chars().nth(1);
                assert!(own.iter().any(|flag| is_it(&flag) && !flag.is_hide_set()) || name == "-h", "{name}");
                continue;
            }
            if let ForeignEffect::Taken(_) = row.effect {
                let flag = own.iter().find(|flag| flag.get_long() == name.strip_prefix("--"));
                assert!(flag.is_some_and(Arg::is_hide_set), "{name}");
                continue;
            }
            match (refusal(verb, &[name, "a", "b"]), row.effect) {
                (Ok(()), ForeignEffect::Always | ForeignEffect::Unless(_)) => {}
                (Err(error), ForeignEffect::Ours(_) | ForeignEffect::Refused | ForeignEffect::Amid(_)) => {
                    assert!(error.failure.why.contains(row.why) && error.failure.why.starts_with(name), "{name}");
                    assert!(!error.hints.is_empty(), "{name}: what is typed in its place?");
                }
                (answer, effect) => panic!("{name}: {effect:?}, and {answer:?}"),
            }
        }
    }
}

fn check_all_are_answered(flags: &str) {
    for flag in flags.lines() {
        let words = match flag.split_once('=') {
            Some((flag, "")) => vec![flag, "1"],
            Some((flag, given)) => vec![flag, given],
            None => vec![flag],
        };
        for verb in ["copy", "sync"] {
            let words = [&["carrack", verb][..], &words, &["a", "b"]].concat();
            let line: Vec<OsString> = words.iter().map(OsString::from).collect();
            let parsed = whole_tree().try_get_matches_from(&line);
            let is_unknown = parsed.as_ref().is_err_and(|why| why.kind() == ErrorKind::UnknownArgument);
            assert!(!is_unknown || explain(&parsed, &line).is_some(), "{verb} {flag}");
        }
    }
}

/// Each flag that rsync 3.5 helps with is ours, is taken, or is refused by its row.
#[test]
fn each_flag_of_rsync_is_answered() {
    check_all_are_answered(include_str!("../../../tests/golden/rsync-3.5-flags.txt"));
}

/// Each flag of scp of OpenSSH 9.2 is ours, is taken, or is answered by its row; and what follows it there is never
/// a source.
#[test]
fn each_flag_of_scp_is_answered() {
    let flags = include_str!("../../../tests/golden/scp-9.2-flags.txt");
    check_all_are_answered(flags);
    for (flag, value) in flags.lines().filter_map(|line| line.split_once('=')) {
        let error = refusal(&["copy"], &[flag, value, "a", "b"]).expect_err("a flag of scp");
        assert!(!error.hints.is_empty(), "{flag}: {error}");
    }
}

/// Each flag of bbcp has a row where Carrack copies, or means the same there.
#[cfg(feature = "terminal")]
#[test]
fn each_flag_of_bbcp_is_answered_where_carrack_copies() {
    let own = flags_of(&["copy"]);
    let same = |name: &str| {
        matches!(name, "-p" | "-r" | "-v" | "-h" | "--help")
            || own.iter().any(|arg| arg.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long)))
    };
    for name in BBCP_FLAGS.iter().flat_map(|row| row.names).filter(|name| !same(name)) {
        if row_of(FOREIGN_FLAGS, name).is_some() {
            continue;
        }
        let error = refusal(&["copy"], &[name, "a", "b"]).expect_err(name);
        assert!(error.failure.why.starts_with(&format!("{name} is a flag of bbcp: here, ")), "{error}");
    }
}

/// Each flag of `globus transfer` is one of a task, is taken, or is answered by its row.
#[cfg(feature = "service")]
#[test]
fn each_flag_of_globus_is_answered_where_a_task_is_submitted() {
    for flag in include_str!("../../../tests/golden/globus-transfer-flags.txt").lines() {
        let (name, value) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
        let value = value.map(|value| if value.is_empty() { "1" } else { value });
        let line = ["carrack", "task", "submit", name].into_iter().chain(value).chain(["@a:/x", "@b:/y"]);
        let line: Vec<OsString> = line.map(OsString::from).collect();
        let parsed = whole_tree().try_get_matches_from(&line);
        let is_unknown = parsed.as_ref().is_err_and(|why| why.kind() == ErrorKind::UnknownArgument);
        assert!(!is_unknown || explain(&parsed, &line).is_some(), "{flag}");
    }
    let told = refusal(&["task", "submit"], &["--sparse", "@a:/x", "@b:/y"]).expect_err("no flag of tasks");
    assert_eq!(told.failure.why, "--sparse is a flag of rsync, and tasks have none of this name");
}

/// Each flag that rclone 1.60 has for all its verbs is ours, is taken, or is answered by its row.
#[test]
fn each_flag_of_rclone_is_answered() {
    check_all_are_answered(include_str!("../../../tests/golden/rclone-1.60-flags.txt"));
}

#[cfg(feature = "terminal")]
#[test]
fn words_of_globus_url_copy_are_answered_where_carrack_copies() {
    for row in GLOBUS_URL_COPY_FLAGS {
        for name in row.names.iter().filter(|name| is_a_word(name)) {
            let error = refusal(&["copy"], &[name, "a", "b"]).expect_err("a flag of globus-url-copy");
            assert!(!error.hints.is_empty(), "{name}: what is typed in its place?");
            assert!(error.failure.why.starts_with(name), "{name}: {}", error.failure.why);
            assert!(error.failure.why.contains("globus-url-copy"), "{name}: {}", error.failure.why);
        }
    }
}

#[test]
fn words_of_ours_are_words_that_we_have() {
    for (verb, table) in VERBS {
        let known = |own: &[Arg], word: &str| match word.strip_prefix("--") {
            // A value may be joined to it.
            Some(long) => own.iter().any(|arg| arg.get_long() == long.split('=').next()),
            None => own.iter().any(|arg| arg.get_short() == word.chars().nth(1)),
        };
        for row in table {
            let ours = match row.effect {
                ForeignEffect::Ours(ours) | ForeignEffect::Taken(ours) => ours,
                ForeignEffect::Different(ours) | ForeignEffect::Amid(ours) => ours,
                ForeignEffect::Always | ForeignEffect::Unless(_) | ForeignEffect::Refused => continue,
            };
            // Another verb may be what does it.
            let other = ours.strip_prefix("carrack ").unwrap_or_default();
            let is_verb = |word: &&str| !word.starts_with('-') && !word.starts_with(char::is_uppercase);
            let other: Vec<&str> = other.split(' ').take_while(is_verb).collect();
            let own = flags_of(if ours.starts_with("carrack ") { &other } else { verb });
            // What is quoted is for ssh, or a rule.
            let plain = ours.split('\'').step_by(2).flat_map(|part| part.split([' ', ',']));
            for word in plain.filter(|word| word.starts_with('-') && word.len() > 1) {
                assert!(known(&own, word), "{ours}");
            }
        }
    }
}

#[test]
fn values_and_words_with_one_dash_are_found() {
    for (words, name, hint) in [
        (&["--temp-dir=../x", "a", "b"][..], "--temp-dir", "leave it out"),
        (&["-avN", "a", "b"], "-N", "leave it out"),
        (&["-a", "--delete", "a", "b"], "--delete", "carrack sync --delete"),
        (&["-i", "/home/u/.ssh/key", "a", "host:b"], "-i prints what changes, and /home/u/.ssh/key would be", "ssh -i"),
        (&["--stats", "5s", "a", "b"], "--stats adds figures at the end, and 5s would be copied", "--stats=TIME"),
        (&["-P2222", "a", "host:b"], "-P draws the bar, and takes no 2222", "ssh -p 2222"),
        (&["--preserve=all", "a", "b"], "--preserve", "leave it out"),
        (&["-6", "a", "host:b"], "-6", "-e 'ssh -6'"),
        (&["-rt", "a", "b"], "-t", "leave it out"),
        (&["-rS", "ssh", "a", "host:b"], "-S", "-e COMMAND"),
        (&["-l", "8000", "a", "host:b"], "-l copies links as links, and 8000 would be copied", "--bwlimit 1000K"),
        (&["-a", "--no-o", "a", "b"], "--archive and --no-owner contradict", "leave -a out"),
        (&["--no-z", "-z", "a", "b"], "--no-compress and --compress contradict", "leave one of them out"),
    ] {
        let error = refusal(&["copy"], words).expect_err("a foreign flag");
        assert!(error.failure.why.starts_with(name), "{words:?}: {}", error.failure.why);
        assert!(error.hints.iter().any(|told| told.contains(hint)), "{words:?}: {:?}", error.hints);
    }
}

#[cfg(feature = "terminal")]
#[test]
fn words_of_globus_url_copy_with_values_and_without_are_found() {
    for (words, name) in [
        (&["-dbg", "a", "b"][..], "-dbg"),
        (&["-sync", "a", "b"], "-sync"),
        (&["-r", "-tcp-bs=4M", "a", "b"], "-tcp-bs"),
        (&["-cc", "2", "a", "b"], "-cc"),
    ] {
        let error = refusal(&["copy"], words).expect_err("a foreign flag");
        assert!(error.failure.why.starts_with(name), "{words:?}: {}", error.failure.why);
    }
}

#[test]
fn flag_without_effect_is_no_tip() {
    let tip = |typed: &str| {
        let mut refusal = whole_tree().try_get_matches_from(["carrack", "copy", typed, "a", "b"]).expect_err(typed);
        tell_no_file(&mut refusal);
        refusal.get(ContextKind::SuggestedArg).map(ToString::to_string)
    };
    assert_eq!(tip("--no-acl"), None);
    assert_eq!(tip("--checksun").as_deref(), Some("--checksum"));
}

#[test]
fn letters_and_negations_that_say_what_is_so_already_are_taken() {
    for words in [
        &["-rlptgoD", "a", "b"][..],
        &["-rtv", "a", "b"],
        &["-aSv", "a", "b"],
        &["--no-o", "--no-g", "a", "b"],
        &["-g", "--no-owner", "a", "b"],
        &["--no-z", "--no-D", "a", "b"],
        &["-e", "ssh -t", "a", "b"],
        &["-f", "-x-t", "a", "b"],
        &["--", "-t", "b"],
        &["--", "--stats", "5"],
    ] {
        for verb in ["copy", "sync"] {
            assert_eq!(refusal(&[verb], words), Ok(()), "{verb} {words:?}");
        }
    }
}
