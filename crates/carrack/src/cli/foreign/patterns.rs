//! Rules that mean something else in another program, and here would have an effect that nobody meant.

use carrack_core::filter::Filters;
use carrack_core::path::display_bytes;

/// The sentence that refuses a pattern of rclone's or a shell's: here braces stand for themselves, and it would match
/// nothing.
///
/// # Errors
/// That, if a brace has a choice in it. One behind a backslash, or in brackets, is meant as it stands.
pub fn check_braces(pattern: &[u8]) -> Result<(), String> {
    let is_plain = |at: usize| at == 0 || !matches!(pattern[at - 1], b'\\' | b'[');
    let open = (0..pattern.len()).find(|at| pattern[*at] == b'{' && is_plain(*at));
    let choice = open.and_then(|open| {
        let length = pattern[open..].iter().position(|byte| *byte == b'}')?;
        Some(&pattern[open..=open + length]).filter(|choice| choice.contains(&b','))
    });
    match choice {
        Some(choice) => Err(format!(
            "{} is no choice in a pattern of rsync's: type a rule for each. For a brace in a name write [{{]",
            display_bytes(choice)
        )),
        None => Ok(()),
    }
}

/// What is typed for rclone's `--include`, which takes nothing else.
pub const INCLUDE_ONLY: &str = "--include '*/' --include PATTERN --exclude '*' takes only what matches";

/// Whether all rules take something: here they have no effect.
pub fn only_include(filters: &Filters) -> bool {
    let mut rules = filters.lines().map(|(form, line)| form.as_rule(line)).peekable();
    rules.peek().is_some() && rules.all(|rule| rule.starts_with(b"+ "))
}

/// What is said of rules by which some files are taken and no directory is.
pub fn note_of_directories(filters: &Filters) -> Option<&'static str> {
    let mut takes_files = false;
    for (form, line) in filters.lines() {
        match form.as_rule(line).as_slice() {
            b"- *" if takes_files => {
                return Some(
                    "note: --exclude '*' leaves directories out, too: put --include '*/' before it to take what \
                     matches below them",
                );
            }
            // Whoever names a directory knows.
            [b'+', b' ', .., b'/'] | [b'+', b' ', .., b'*', b'*', b'*'] => return None,
            [b'+', b' ', ..] => takes_files = true,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use carrack_core::filter::RuleForm;

    use super::*;

    #[test]
    fn choices_in_braces_are_refused_and_other_braces_are_not() {
        for pattern in ["*.{jpg,png}", "{a,b}", "/x/{a*,b}/c"] {
            let why = check_braces(pattern.as_bytes()).expect_err(pattern);
            assert!(why.contains("a rule for each"), "{why}");
        }
        for pattern in ["*.jpg", "{a}", "{", "a{b", "x}{y,z", r"\{a,b}", "[{]a,b}", "{a}b,c"] {
            assert_eq!(check_braces(pattern.as_bytes()), Ok(()), "{pattern}");
        }
    }

    #[test]
    fn rules_of_others_that_mean_something_else_here_are_known() {
        let filters = |rules: &[&str]| {
            let mut filters = Filters::new(false);
            rules.iter().for_each(|rule| drop(filters.add(RuleForm::Rule, rule.as_bytes()).expect("a rule")));
            filters
        };
        for (rules, alone, directories) in [
            (&["+ *.jpg"][..], true, false),
            (&["+ *.jpg", "+ */"], true, false),
            (&["+ *.jpg", "- *"], false, true),
            (&["- .git", "+ *.jpg", "- *"], false, true),
            (&["+ */", "+ *.jpg", "- *"], false, false),
            (&["+ /run/***", "- *"], false, false),
            (&["+ *.jpg", "- *.tmp"], false, false),
            (&["- *"], false, false),
            (&[": .rules", "+ x"], false, false),
            (&[], false, false),
        ] {
            let filters = filters(rules);
            assert_eq!(
                (only_include(&filters), note_of_directories(&filters).is_some()),
                (alone, directories),
                "{rules:?}"
            );
        }
    }
}
