//! Whether another attempt can help, in the words that all of the program's JSON has for it.

use carrack_core::failure::Retryable;
use serde::{Deserialize as _, Deserializer, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

pub(super) fn serialize<S: Serializer>(can: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if *can { Retryable::Yes } else { Retryable::No }.name())
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let word = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
    let word = Retryable::parse(&word).map_err(serde::de::Error::custom)?;
    Ok(word == Retryable::Yes)
}

pub(super) fn schema() -> Schema {
    let words = [Retryable::Yes, Retryable::No].map(|word| word.name());
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).into()
}
