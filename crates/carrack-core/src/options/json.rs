//! Options in JSON: words and texts as strings, numbers as numbers, each read by the option's own parser. A number in
//! quotes is refused: a document has one form.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use super::values::{
    Age, BackupDirectory, BackupSuffix, BlockSize, DeleteLimit, DirectoryLines, FileSize, FilterLines, ModeChanges,
    NewOwner, OptionValue, RateBound, Streams, WindowSeconds, parse_priority,
};
use crate::accounts::AccountMap;
use crate::filter::SourceLinks;
use crate::growing::{GrowingIdle, GrowingLock, GrowingSources};
use crate::request::{
    Compare, CongestionControl, Delta, Digests, Durability, Encrypt, Existing, HardLinks, KeptXattrs, Renames, Verify,
};
use crate::words::quoted;

macro_rules! as_text {
    ($($value:ident)+) => { $(
        impl Serialize for $value {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.text())
            }
        }

        impl<'de> Deserialize<'de> for $value {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Text(<Self as OptionValue>::parse))
            }
        }
    )+ };
}

macro_rules! as_number {
    ($($value:ident)+) => { $(
        impl Serialize for $value {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self.text().parse() {
                    Ok(number) => serializer.serialize_u64(number),
                    Err(_) => serializer.serialize_str(&self.text()),
                }
            }
        }

        impl<'de> Deserialize<'de> for $value {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Number(<Self as OptionValue>::parse, PhantomData))
            }
        }
    )+ };
}

as_text!(Existing Compare SourceLinks Verify Encrypt Durability Delta Renames KeptXattrs HardLinks Digests CongestionControl);
as_text!(FilterLines DeleteLimit Age BackupDirectory BackupSuffix DirectoryLines);
as_text!(GrowingSources GrowingIdle GrowingLock ModeChanges NewOwner AccountMap);
as_number!(BlockSize FileSize RateBound Streams WindowSeconds);

/// Reads the priority of a task, where there is one.
///
/// # Errors
/// The sentence that refuses it.
pub fn priority<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u8>, D::Error> {
    struct Priority(u8);

    impl<'de> Deserialize<'de> for Priority {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(Number(|text| parse_priority(text).map(Self), PhantomData))
        }
    }
    Option::<Priority>::deserialize(deserializer).map(|priority| priority.map(|Priority(priority)| priority))
}

type Parse<T> = fn(&str) -> Result<T, String>;

/// Takes a string.
struct Text<T>(Parse<T>);

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(E::custom)
    }
}

/// Takes a number, and such words as the parser takes in its place.
struct Number<T>(Parse<T>, PhantomData<T>);

impl<T> Visitor<'_> for Number<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        (self.0)(&number.to_string()).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        (self.0)(&number.to_string()).map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        // With its point: 4.0 is no whole number.
        (self.0)(&format!("{number:?}")).map_err(E::custom)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        let value = (self.0)(text).map_err(E::custom)?;
        if text.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(E::custom(format!("{} is a text: write a number, without quotes", quoted(text))));
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_in_json_come_back() {
        fn comes_back<T: OptionValue + Serialize + for<'de> Deserialize<'de>>(text: &str, json: &str) {
            let value = <T as OptionValue>::parse(text).unwrap();
            assert_eq!(serde_json::to_string(&value).unwrap(), json);
            assert_eq!(serde_json::from_str::<T>(json).unwrap(), value);
        }
        comes_back::<Verify>("source", "\"source\"");
        comes_back::<Digests>("crc32c,blake3", "\"blake3,crc32c\"");
        comes_back::<CongestionControl>("bbr", "\"bbr\"");
        comes_back::<Streams>("auto", "\"auto\"");
        comes_back::<Streams>("7", "7");
        comes_back::<BlockSize>("64K", "65536");
        comes_back::<RateBound>("0", "0");
        comes_back::<DeleteLimit>("7", "\"7\"");
        comes_back::<DeleteLimit>("7,partial", "\"7,partial\"");
        comes_back::<FilterLines>("- *.tmp\nprotect keep/", "\"- *.tmp\\nprotect keep/\"");
    }

    #[test]
    fn options_in_json_are_refused_with_the_sentence_of_their_parser() {
        for json in ["0", "257", "-4", "\"\"", "\" 4\"", "\"AUTO\"", "18446744073709551615"] {
            let why = serde_json::from_str::<Streams>(json).unwrap_err().to_string();
            assert!(why.contains("is not a number of streams: use 1 to 256, or auto"), "{json}: {why}");
        }
        for json in ["4.0", "\"4\"", "true", "[4]", "{}", "null"] {
            assert!(serde_json::from_str::<Streams>(json).is_err(), "{json}");
            assert!(serde_json::from_str::<RateBound>(json).is_err(), "{json}");
        }
        for json in ["\"WIRE\"", "7", "true", "[\"wire\"]", "null"] {
            assert!(serde_json::from_str::<Verify>(json).is_err(), "{json}");
        }
    }
}
