//! Options in JSON: words and texts as strings, numbers as numbers, each read by the option's own parser. A number in
//! quotes is refused: a document has one form.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use super::values::{BlockBytes, OptionValue, RateLimit, Streams, parse_priority};
use crate::request::{CongestionControl, Digests, Durability, Encrypt, Existing, Verify};
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

as_text!(Existing Verify Encrypt Durability Digests CongestionControl);
as_number!(BlockBytes RateLimit Streams);

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
