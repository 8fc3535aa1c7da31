//! A command typed as one text, split into words: what `--rsh` and `CARRACK_RSH` hold.

/// Splits on whitespace; single and double quotes keep it, and mean nothing else. No expansion of any kind: the
/// words go to `exec`, not to a shell.
pub fn split_words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for character in text.chars() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(character),
            (None, '\'' | '"') => {
                quote = Some(character);
                // Two quotes with nothing between them are an empty word.
                word.get_or_insert_default();
            }
            (None, _) if character.is_whitespace() => words.extend(word.take()),
            (None, '\0') => return Err("a command cannot hold a NUL".to_owned()),
            (None, _) => word.get_or_insert_default().push(character),
        }
    }
    if quote.is_some() {
        return Err(format!("{text:?} has a quote that is not closed"));
    }
    words.extend(word);
    match words.first() {
        Some(program) if !program.is_empty() => Ok(words),
        _ => Err("the command is empty".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let cases: &[(&str, &[&str])] = &[
            ("ssh", &["ssh"]),
            ("  ssh  -p 22\t-i key ", &["ssh", "-p", "22", "-i", "key"]),
            ("ssh -o 'ProxyCommand nc %h %p'", &["ssh", "-o", "ProxyCommand nc %h %p"]),
            ("ssh -o \"User O'Brien\"", &["ssh", "-o", "User O'Brien"]),
            ("a'b c'd", &["ab cd"]),
            ("ssh ''", &["ssh", ""]),
            ("ssh $HOME `x` ; rm \\", &["ssh", "$HOME", "`x`", ";", "rm", "\\"]),
        ];
        for (text, expected) in cases {
            let expected: Vec<String> = expected.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(split_words(text), Ok(expected), "{text}");
        }
        for text in ["", "   ", "'ssh", "ssh \"x", "''", "ssh 'a\"", "s\0h"] {
            assert!(split_words(text).is_err(), "{text:?}");
        }
    }
}
