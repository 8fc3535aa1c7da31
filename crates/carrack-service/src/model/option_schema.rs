//! How the description of the API shows the fields that are options: words and bounds come from their definitions.

use carrack_core::options::{self, Definition, Takes};
use serde_json::Value;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, Object, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type,
};

macro_rules! schemas {
    ($($name:ident $definition:ident)+) => { $(
        pub(super) fn $name() -> Schema {
            of(&options::$definition)
        }
    )+ };
}

schemas! {
    verify VERIFY
    encrypt ENCRYPT
    priority PRIORITY
}

/// The options of a copy, and which of its paths are meant.
pub(super) fn task_options() -> Object {
    let words = "How a task copies; what is left out is as at the command line. Words are those of the flags of the same \
        names.";
    let object = ObjectBuilder::new().schema_type(Type::Object).description(Some(words));
    let object = options::OF_A_COPY.iter().fold(object, |object, option| object.property(option.name, of(option)));
    let only = "Only these paths and what is below them, relative to the destination.";
    let paths = ArrayBuilder::new().items(ObjectBuilder::new().schema_type(Type::String));
    let paths = paths.schema_type(SchemaType::Array(vec![Type::Array, Type::Null])).description(Some(only));
    object.property("only", paths).additional_properties(Some(AdditionalProperties::FreeForm(false))).build()
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
        Takes::Text { characters_max } | Takes::Lines { characters_max } => {
            let length = usize::try_from(characters_max).ok();
            let text = typed(Type::String).min_length(Some(1)).max_length(length);
            text.examples(definition.examples.iter().map(|example| Value::from(*example))).into()
        }
    }
}
