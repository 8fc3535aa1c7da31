//! Groups of numbers, each number named once: a field, its name in documents, and its place in the list that travels.
//! Fields are only ever added at the end of a group, and a reader takes the fields that are missing for 0.

/// Defines a group: a struct of `u64`, the names of its fields, and both ways between it and a list.
macro_rules! group {
    ($(#[$attribute:meta])* pub struct $name:ident { $($(#[$more:meta])* $field:ident,)+ }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$more])* pub $field: u64,)+
        }

        impl $name {
            /// The names of its fields, in their order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),+];

            /// Its fields, in the order of [`Self::NAMES`].
            pub fn values(&self) -> Vec<u64> {
                vec![$(self.$field),+]
            }

            /// The same, each with its name.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                Self::NAMES.iter().copied().zip(self.values())
            }

            /// From its fields in their order. Those that are missing are 0, further ones are passed over.
            pub fn from_values(values: impl IntoIterator<Item = u64>) -> Self {
                let mut values = values.into_iter();
                Self { $($field: values.next().unwrap_or(0),)+ }
            }

            /// Sets the field of this name; false if there is none.
            pub fn set(&mut self, name: &str, value: u64) -> bool {
                match name {
                    $(stringify!($field) => self.$field = value,)+
                    _ => return false,
                }
                true
            }
        }
    };
}

/// Defines a group of counters.
macro_rules! counters {
    ($(#[$attribute:meta])* pub struct $name:ident { $($(#[$more:meta])* $field:ident,)+ }) => {
        $crate::groups::group! { $(#[$attribute])* pub struct $name { $($(#[$more])* $field,)+ } }

        impl $name {
            /// What has been added since an earlier state; nothing where a counter went backwards.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($field: self.$field.saturating_sub(earlier.$field),)+ }
            }

            /// The sum of both.
            #[must_use]
            pub fn plus(&self, other: &Self) -> Self {
                Self { $($field: self.$field.saturating_add(other.$field),)+ }
            }
        }
    };
}

/// Defines a group of gauges.
macro_rules! gauges {
    ($(#[$attribute:meta])* pub struct $name:ident { $($(#[$more:meta])* $field:ident,)+ }) => {
        $crate::groups::group! { $(#[$attribute])* pub struct $name { $($(#[$more])* $field,)+ } }

        impl $name {
            /// Of two moments the larger of each: a peak stays to be seen where moments are merged.
            #[must_use]
            pub fn peak(&self, other: &Self) -> Self {
                Self { $($field: self.$field.max(other.$field),)+ }
            }
        }
    };
}

pub(crate) use {counters, gauges, group};
