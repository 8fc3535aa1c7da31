//! How the description of the API shows the fields that are options: words and bounds come from their definitions.

use carrack_core::options::{self, Definition, Takes};
use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type};

macro_rules! schemas {
    ($($name:ident $definition:ident)+) => { $(
        pub(super) fn $name() -> Schema {
            of(&options::$definition)
        }
    )+ };
}

schemas! {
    existing EXISTING
    verify VERIFY
    encrypt ENCRYPT
    digest DIGEST
    streams STREAMS
    block_bytes BLOCK_BYTES
    rate_limit RATE_LIMIT
    congestion CONGESTION
    durable DURABLE
    priority PRIORITY
}

/// The schema of an option that may be left out.
fn of(definition: &Definition) -> Schema {
    let typed = |kind: Type| {
        let types = SchemaType::Array(vec![kind, Type::Null]);
        ObjectBuilder::new().schema_type(types).description(Some(definition.help))
    };
    let words = |words: Vec<&str>| {
        let words = words.into_iter().map(Value::from).chain([Value::Null]);
        typed(Type::String).enum_values(Some(words))
    };
    let integer = |min: u64, max: u64| {
        // A greater number than i64's is written as a fraction by some readers.
        let bound = |bound: u64| i64::try_from(bound).ok();
        let object = ObjectBuilder::new().schema_type(SchemaType::Array(vec![Type::Integer, Type::Null]));
        let object = object.description(Some(definition.help)).minimum(bound(min));
        object.maximum(bound(max))
    };
    match definition.kind {
        Takes::Switch => ObjectBuilder::new().schema_type(Type::Boolean).description(Some(definition.help)).into(),
        Takes::Words(choices) => words(choices().iter().map(|choice| choice.word).collect()).into(),
        Takes::Number { min, max, words: [] } | Takes::Bytes { min, max } => integer(min, max).into(),
        Takes::Number { min, max, words: in_place } => {
            let number = ObjectBuilder::new().schema_type(Type::Integer);
            let number = number.minimum(i64::try_from(min).ok()).maximum(i64::try_from(max).ok());
            let in_place = in_place.iter().map(|word| Value::from(*word)).chain([Value::Null]);
            let word = SchemaType::Array(vec![Type::String, Type::Null]);
            let word = ObjectBuilder::new().schema_type(word).enum_values(Some(in_place));
            let either = OneOfBuilder::new().item(number).item(word);
            either.description(Some(definition.help)).into()
        }
        Takes::Text { characters_max } => {
            let length = usize::try_from(characters_max).ok();
            let text = typed(Type::String).min_length(Some(1)).max_length(length);
            text.examples(definition.examples.iter().map(|example| Value::from(*example))).into()
        }
    }
}
