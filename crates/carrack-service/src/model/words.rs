//! Enums whose values are words in JSON, in the ledger and at the command line.

/// Defines an enum with a word and a meaning for each value: serialized as its word, with a schema that lists them.
macro_rules! word_enum {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident {
            $($(#[$more:meta])* $variant:ident $word:literal $meaning:literal)+
        }
    ) => {
        carrack_core::words::words! {
            $(#[$attribute])*
            pub enum $name { $($(#[$more])* $variant $word $meaning)+ }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                Self::parse(&word).map_err(serde::de::Error::custom)
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                let words = Self::ALL.iter().map(|word| word.name());
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::Type::String)
                    .enum_values(Some(words))
                    .into()
            }
        }

        impl utoipa::ToSchema for $name {}
    };
}

pub(crate) use word_enum;
