//! Keys that somebody knows, in a file as `ssh-keygen -Y verify -f` reads it: a name, options, a key a line.

use crate::key::PublicKey;
use crate::signature::NAMESPACE;

/// A key that is known, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSigner {
    /// Whose it is: one word.
    pub name: String,
    /// The key.
    pub key: PublicKey,
}

/// Keys that are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signers {
    /// In the order of the file.
    pub kept: Vec<KeptSigner>,
    /// Lines that are of no use here: other kinds of keys, for other things, until some day, or of no such form.
    pub passed_over: Vec<u64>,
}

impl Signers {
    /// Of the text of such a file. Empty lines and those that begin with `#` are none.
    pub fn parse(text: &str) -> Self {
        let mut signers = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match parse_line(line) {
                Some(signer) => signers.kept.push(signer),
                None => signers.passed_over.push(number),
            }
        }
        signers
    }

    /// Whose a key is.
    pub fn name_of(&self, key: PublicKey) -> Option<&str> {
        self.kept.iter().find(|signer| signer.key == key).map(|signer| signer.name.as_str())
    }
}

impl KeptSigner {
    /// One that can stand in such a file.
    ///
    /// # Errors
    /// When the name is no word of it.
    pub fn new(name: &str, key: PublicKey) -> Result<Self, String> {
        let is_plain = |letter: char| letter.is_alphanumeric() || "@._+-".contains(letter);
        let is_word = !name.is_empty() && name.chars().all(is_plain) && !name.starts_with('-');
        match is_word && name.len() <= 255 {
            true => Ok(Self { name: name.to_owned(), key }),
            false => Err("a name has letters, digits and @ . _ + - alone, and 255 bytes at most".into()),
        }
    }
}

impl std::fmt::Display for KeptSigner {
    /// Its line, good for receipts alone.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} namespaces=\"{NAMESPACE}\" {}", self.name, self.key)
    }
}

fn parse_line(line: &str) -> Option<KeptSigner> {
    let (name, rest) = line.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let key = match rest.split_once(char::is_whitespace)? {
        // What else an option may ask for is not known here, and nobody is taken at his word without it.
        (options, key) if options.starts_with("namespaces=") => {
            let listed = options.strip_prefix("namespaces=")?.trim_matches('"');
            listed.split(',').any(|one| one == NAMESPACE).then_some(key)?
        }
        _ => rest,
    };
    KeptSigner::new(name, PublicKey::parse(key)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::ReceiptKey;

    #[test]
    fn lines_come_back_and_those_for_something_else_are_passed_over() {
        let key = ReceiptKey::generate().expect("a key").0.public();
        let ours = KeptSigner::new("ann@lab", key).expect("a name");
        let text = format!(
            "# keys\n\n{ours} comment\nbob {key}\neve namespaces=\"git,{NAMESPACE}\" {key}\n\
             git namespaces=\"git\" {key}\nold valid-before=\"20200101\" {key}\nrsa ssh-rsa AAAA\nalone\n"
        );
        let signers = Signers::parse(&text);
        let names: Vec<&str> = signers.kept.iter().map(|signer| signer.name.as_str()).collect();
        assert_eq!(names, ["ann@lab", "bob", "eve"]);
        assert_eq!(signers.passed_over, [6, 7, 8, 9]);
        assert_eq!(signers.name_of(key), Some("ann@lab"));
        assert_eq!(signers.name_of(ReceiptKey::generate().expect("a key").0.public()), None);
        for name in ["", "two words", "a\nb", "-x", "a\"b", "#"] {
            assert!(KeptSigner::new(name, key).is_err(), "{name:?}");
        }
    }
}
