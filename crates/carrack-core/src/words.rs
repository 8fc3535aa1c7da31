//! Words: enums whose values people type, programs read and peers send.
//!
//! `words!` defines such an enum once, with a line for each value: its number in messages (where it has one), its word
//! in flags, JSON and configuration, and its meaning, which is its documentation and its help text. Words and numbers,
//! once shipped, keep their meaning.

/// What every enum defined by `words!` has, for code that serves all of them.
pub trait Word: Copy + PartialEq + 'static {
    /// Every value, in the order of help texts.
    const ALL: &'static [Self];

    /// The word for it in flags, JSON and configuration.
    fn name(self) -> &'static str;

    /// What it means, for a help text.
    fn meaning(self) -> &'static str;
}

/// Parses a word, where `among` are those that may be given.
///
/// # Errors
/// A text that shows what was given and names the words that may be.
pub fn parse_among<W: Word>(text: &str, among: &[W]) -> Result<W, String> {
    let found = among.iter().find(|word| word.name() == text);
    found.copied().ok_or_else(|| format!("{}: use {}", quoted(text), list(among)))
}

/// The most characters of a text that a refusal shows.
const QUOTED_CHARACTERS: usize = 80;

/// A text in quotes, for a refusal: control characters escaped, a long one cut.
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARACTERS) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}… ({} bytes)", &text[..end], text.len()),
    }
}

/// A word for a shell: quoted where it has to be.
pub fn shell_word(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:@%,".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Words as a sentence lists them: `group, each or none`.
pub fn list<W: Word>(words: &[W]) -> String {
    let names: Vec<&str> = words.iter().map(|word| word.name()).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
        None => String::new(),
    }
}

/// Words with their meanings, as a help text lists them, one a line: `tls: TLS 1.3 on every stream;`, `none: …`.
pub fn meanings(words: &[(&str, &str)]) -> String {
    let each = words.iter().map(|(word, meaning)| format!("{word}: {meaning}"));
    each.collect::<Vec<_>>().join(";\n")
}

/// Defines an enum, its words and, where each line begins with one, its numbers in messages.
#[macro_export]
macro_rules! words {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident {
            $($(#[$more:meta])* $number:literal $variant:ident $word:literal $meaning:literal)+
        }
    ) => {
        $crate::words! {
            $(#[$attribute])*
            pub enum $name { $($(#[$more])* $variant $word $meaning)+ }
        }

        impl $name {
            /// The number in messages.
            pub const fn number(self) -> u32 {
                match self { $(Self::$variant => $number,)+ }
            }

            /// From the number in messages; `None` if it is nobody's.
            pub const fn from_number(number: u32) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)+ _ => None }
            }
        }
    };
    (
        $(#[$attribute:meta])*
        pub enum $name:ident {
            $($(#[$more:meta])* $variant:ident $word:literal $meaning:literal)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = $meaning] $(#[$more])* $variant,)+
        }

        impl $name {
            /// Every value, in the order of help texts.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word for it in flags, JSON and configuration.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// What it means, for a help text.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)+ }
            }

            /// From its word.
            ///
            /// # Errors
            /// A text that shows what was given and names the words.
            pub fn parse(text: &str) -> Result<Self, String> {
                $crate::words::parse_among(text, Self::ALL)
            }
        }

        impl $crate::words::Word for $name {
            const ALL: &'static [Self] = Self::ALL;

            fn name(self) -> &'static str {
                Self::name(self)
            }

            fn meaning(self) -> &'static str {
                Self::meaning(self)
            }
        }
    };
}

pub use words;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::limit::Stage;
    use crate::pace::streams::Reason;
    use crate::report::{ItemKind, Side};
    use crate::request::{Durability, Encrypt, Existing, LinkKind, MainDigest, Verify};

    fn come_back<W: Word + std::fmt::Debug>(parse: impl Fn(&str) -> Result<W, String>) {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        for (index, word) in W::ALL.iter().enumerate() {
            assert_eq!(parse(word.name()), Ok(*word));
            assert!(!word.meaning().is_empty() && word.name().bytes().all(plain));
            assert!(W::ALL[..index].iter().all(|other| other.name() != word.name()), "{word:?}");
        }
        for text in ["", " ", "NONE", "no such word"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn words_come_back() {
        come_back(Verify::parse);
        come_back(Durability::parse);
        come_back(Encrypt::parse);
        come_back(Existing::parse);
        come_back(LinkKind::parse);
        come_back(MainDigest::parse);
        come_back(ItemKind::parse);
        come_back(Side::parse);
        come_back(Stage::parse);
        come_back(Reason::parse);
    }

    #[test]
    fn numbers_are_those_of_the_protocol() {
        assert_eq!([Verify::Wire, Verify::Disk, Verify::None, Verify::Source].map(Verify::number), [0, 1, 2, 3]);
        assert_eq!(
            [Existing::Replace, Existing::Keep, Existing::Only, Existing::Older].map(Existing::number),
            [0, 1, 2, 3]
        );
        assert_eq!([Durability::Group, Durability::Each, Durability::None].map(Durability::number), [0, 1, 2]);
        let kinds = [ItemKind::File, ItemKind::Directory, ItemKind::Symlink, ItemKind::Special];
        assert_eq!(kinds.map(ItemKind::number), [1, 2, 3, 4]);
        let sides = [Side::Source, Side::Destination, Side::Link, Side::Command];
        assert_eq!(sides.map(Side::number), [1, 2, 3, 4]);
        for number in 0..100 {
            assert!(Verify::from_number(number).is_none_or(|word| word.number() == number));
            assert!(Existing::from_number(number).is_none_or(|word| word.number() == number));
            assert!(Durability::from_number(number).is_none_or(|word| word.number() == number));
            assert!(Side::from_number(number).is_none_or(|word| word.number() == number));
            assert!(ItemKind::from_number(number).is_none_or(|word| word.number() == number));
        }
        assert_eq!((Verify::from_number(4), ItemKind::from_number(0)), (None, None));
    }

    #[test]
    fn words_are_listed_as_sentences_list_them() {
        assert_eq!(Verify::parse("yes"), Err("\"yes\": use wire, disk, source or none".to_owned()));
        assert_eq!(list(&[Encrypt::Tls, Encrypt::None]), "tls or none");
        assert_eq!(list(&[Encrypt::Tls]), "tls");
        let ways = [LinkKind::Direct, LinkKind::Tunnel];
        assert_eq!(parse_among("memory", &ways), Err("\"memory\": use direct or tunnel".to_owned()));
        let meant: Vec<_> = Encrypt::ALL.iter().map(|word| (word.name(), word.meaning())).collect();
        assert!(meanings(&meant).starts_with("tls: TLS 1.3 on every stream;\nnone: "));
    }
}
