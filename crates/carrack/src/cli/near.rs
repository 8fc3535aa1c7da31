//! What is said of a word that stands where a verb belongs and is none: which verbs are near it, and what does here
//! what other programs call by that word.

use std::cmp::min;
use std::ffi::OsString;
use std::path::Path;

use clap::Command;

use crate::error::CommandError;

/// Verbs of other programs, and the line that does the same here. None of them is taken for ours: a directory may have
/// such a name, and a copy of it is no removal of something else.
const HABITS: &[(&str, &str)] = &[
    ("b3sum", "carrack sum"),
    ("cat", "carrack LOCATION -"),
    ("checksum", "carrack sum"),
    ("cmp", "carrack check"),
    ("compare", "carrack check"),
    ("config", "carrack service config"),
    ("delete", "carrack rm"),
    ("del", "carrack rm"),
    ("diff", "carrack check"),
    ("dir", "carrack ls"),
    ("download", "carrack copy"),
    ("endpoints", "carrack endpoint list"),
    ("find", "carrack ls -R"),
    ("get", "carrack copy"),
    ("hash", "carrack sum"),
    ("hashsum", "carrack sum"),
    ("jobs", "carrack task list"),
    ("list", "carrack ls"),
    ("logs", "carrack task events"),
    ("md5sum", "carrack sum"),
    ("mirror", "carrack sync"),
    ("move", "carrack mv"),
    ("ping", "carrack doctor"),
    ("pull", "carrack copy"),
    ("push", "carrack copy"),
    ("put", "carrack copy"),
    ("remove", "carrack rm"),
    ("rename", "carrack mv"),
    ("rsync", "carrack sync"),
    ("scp", "carrack copy"),
    ("send", "carrack copy"),
    ("server", "carrack serve"),
    ("size", "carrack du"),
    ("start", "carrack serve"),
    ("status", "carrack service status"),
    ("submit", "carrack task submit"),
    ("tasks", "carrack task list"),
    ("timers", "carrack timer list"),
    ("transfer", "carrack copy"),
    ("tree", "carrack ls -R"),
    ("update", "carrack sync"),
    ("upload", "carrack copy"),
    ("users", "carrack service user list"),
    ("version", "carrack --version"),
    ("wait", "carrack task wait"),
];

/// The refusal of a line whose first word, at `index`, was meant as a verb: nothing here has this name, and it is near
/// a verb, is one elsewhere, or stands alone.
pub fn misspelt_verb(tree: &Command, arguments: &[OsString], index: usize) -> Option<CommandError> {
    let word = arguments.get(index)?.to_str()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    // A path or a place has other signs, a flag begins with a dash.
    if word.starts_with('-') || !word.bytes().all(is_plain) || Path::new(word).symlink_metadata().is_ok() {
        return None;
    }
    let lines = lines_for(tree, "carrack", word);
    let is_flag = |word: &OsString| word.len() > 1 && word.as_encoded_bytes().starts_with(b"-");
    let is_alone = index == 1 && arguments[index + 1..].iter().all(is_flag);
    if lines.is_empty() && !is_alone {
        return None;
    }
    let why = format!("{word} is no verb, and the current directory has nothing of this name");
    let verbs = lines.is_empty().then(|| "carrack --help lists the verbs".to_owned());
    Some(lines.into_iter().chain(verbs).fold(CommandError::usage(why), CommandError::hint))
}

/// The refusal of `carrack help WORD...`, where there is no such verb.
pub fn help_of_nothing(tree: &Command, arguments: &[OsString]) -> Option<CommandError> {
    let words = arguments.get(2..).filter(|_| arguments[1] == "help")?;
    let (mut verb, mut above) = (tree, "carrack".to_owned());
    for word in words.iter().filter_map(|word| word.to_str()).take_while(|word| !word.starts_with('-')) {
        let Some(below) = verb.find_subcommand(word) else {
            let lines = lines_for(verb, &above, word).into_iter().map(|line| format!("{line} --help"));
            let lines: Vec<String> = lines.collect();
            let verbs = lines.is_empty().then(|| format!("{above} --help lists the verbs"));
            let error = CommandError::usage(format!("{word} is no verb of {above}"));
            return Some(lines.into_iter().chain(verbs).fold(error, CommandError::hint));
        };
        above = format!("{above} {}", below.get_name());
        verb = below;
    }
    None
}

/// What may have been meant by a word behind `above`, as the beginnings of lines.
fn lines_for(verb: &Command, above: &str, word: &str) -> Vec<String> {
    let habit = HABITS.iter().filter(|(theirs, _)| above == "carrack" && *theirs == word);
    let habit = habit.map(|(_, ours)| (*ours).to_owned());
    let names = verb.get_subcommands().filter(|below| !below.is_hide_set()).map(Command::get_name);
    let mut lines: Vec<String> = habit.collect();
    for name in names.filter(|name| is_near(word, name)) {
        let line = format!("{above} {name}");
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Whether one is the other with a slip: a letter that is missing, too many, another, or in its neighbour's place; of
/// longer words two. Three letters or more may also be the beginning.
fn is_near(typed: &str, name: &str) -> bool {
    let slips = if min(typed.len(), name.len()) < 7 { 1 } else { 2 };
    let is_beginning = typed.len() >= 3 && name.starts_with(typed);
    is_beginning || (typed.len() > 1 && distance(typed.as_bytes(), name.as_bytes()) <= slips)
}

/// How many slips lead from one word to the other.
fn distance(one: &[u8], other: &[u8]) -> usize {
    // In the first row and column one of the words has no letters.
    let row = |a: usize| (0..=other.len()).map(|b| if a == 0 { b } else { a }).collect();
    let mut rows: Vec<Vec<usize>> = (0..=one.len()).map(row).collect();
    for a in 1..=one.len() {
        for b in 1..=other.len() {
            let same = usize::from(one[a - 1] != other[b - 1]);
            let mut least = min(rows[a - 1][b - 1] + same, min(rows[a - 1][b], rows[a][b - 1]) + 1);
            if a > 1 && b > 1 && one[a - 1] == other[b - 2] && one[a - 2] == other[b - 1] {
                least = min(least, rows[a - 2][b - 2] + 1);
            }
            rows[a][b] = least;
        }
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::whole_tree;

    fn line(text: &str) -> Vec<OsString> {
        std::iter::once("carrack").chain(text.split(' ')).map(OsString::from).collect()
    }

    #[test]
    fn words_are_near_by_a_slip() {
        for (typed, name) in [
            ("lss", "ls"),
            ("sl", "ls"),
            ("cpoy", "copy"),
            ("endpint", "endpoint"),
            ("doc", "doctor"),
            ("copmletoins", "completions"),
        ] {
            assert!(is_near(typed, name), "{typed} {name}");
        }
        for (typed, name) in
            [("run", "rm"), ("lab", "ls"), ("a", "ls"), ("data", "du"), ("absent", "agent"), ("s", "sum")]
        {
            assert!(!is_near(typed, name), "{typed} {name}");
        }
    }

    #[test]
    fn word_in_the_place_of_a_verb_is_answered_as_one() {
        let tree = whole_tree();
        let told = |text: &str| misspelt_verb(&tree, &line(text), 1);
        assert_eq!(told("lss host:").expect("a slip").hints, ["carrack ls"]);
        assert_eq!(told("remove x").expect("a habit").hints, ["carrack rm"]);
        assert_eq!(told("frobnicate --json").expect("alone").hints, ["carrack --help lists the verbs"]);
        let why = told("tsak list").expect("a slip");
        assert_eq!((why.exit_code(), &why.hints[..]), (crate::exit::USAGE, &["carrack task".to_owned()][..]));
        // What may well be a source is one: it is there, is a place, or goes somewhere.
        for text in
            ["src x", "absent x:", "./lss x", "host:lss x", "lss/ x", "a.b x", "- x", "@lss:/x y", "zero:5", "absent -"]
        {
            assert_eq!(told(text), None, "{text}");
        }
    }

    #[test]
    fn help_of_a_word_that_is_no_verb_names_those_near_it() {
        let tree = whole_tree();
        let told = |text: &str| help_of_nothing(&tree, &line(text)).map(|error| error.hints);
        assert_eq!(told("help lss"), Some(vec!["carrack ls --help".to_owned()]));
        assert_eq!(told("help task lst"), Some(vec!["carrack task list --help".to_owned()]));
        assert_eq!(told("help zzz"), Some(vec!["carrack --help lists the verbs".to_owned()]));
        for text in ["help", "help ls", "help task list", "help --all", "ls lss", "--help"] {
            assert_eq!(told(text), None, "{text}");
        }
    }

    #[test]
    fn habits_lead_to_verbs_that_are_there() {
        let tree = whole_tree();
        for (theirs, ours) in HABITS {
            assert!(tree.find_subcommand(theirs).is_none(), "{theirs}");
            let mut verb = &tree;
            for word in ours.split(' ').skip(1).filter(|word| word.starts_with(char::is_lowercase)) {
                verb = verb.find_subcommand(word).unwrap_or_else(|| panic!("{ours}: {word}"));
            }
        }
    }
}
