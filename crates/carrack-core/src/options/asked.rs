//! The options of a copy as they were asked for.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::{BlockSize, RateBound, Streams};
use crate::request::{CongestionControl, CopyOptions, Digests, Durability, Encrypt, Existing, Verify};

/// The options of a copy that were asked for, each a field with the name of its definition. What is left out is as in
/// [`CopyOptions::default`]. The documents of tasks have these fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default, deny_unknown_fields))]
pub struct AskedOptions {
    /// See [`super::EXISTING`].
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub existing: Option<Existing>,
    /// See [`super::VERIFY`].
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub verify: Option<Verify>,
    /// See [`super::ENCRYPT`].
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub encrypt: Option<Encrypt>,
    /// See [`super::DIGEST`].
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub digest: Option<Digests>,
    /// See [`super::STREAMS`].
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub streams: Option<Streams>,
    /// See [`super::POLITE`].
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "is_false"))]
    pub polite: bool,
    /// See [`super::BLOCK_BYTES`].
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub block_bytes: Option<BlockSize>,
    /// See [`super::RATE_LIMIT`].
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub rate_limit: Option<RateBound>,
    /// See [`super::CONGESTION`].
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub congestion: Option<CongestionControl>,
    /// See [`super::DURABLE`].
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub durable: Option<Durability>,
    /// See [`super::ALLOW_GROWING`].
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "is_false"))]
    pub allow_growing: bool,
    /// Only these paths and what is below them, relative to the destination.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub only: Option<Vec<String>>,
}

#[cfg(feature = "serde")]
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

impl AskedOptions {
    /// The digests that the copy computes.
    ///
    /// # Errors
    /// The sentence that refuses to verify by nothing.
    pub fn digests(&self) -> Result<Digests, &'static str> {
        let default = CopyOptions::default();
        Digests::of_copy(self.digest, self.verify.unwrap_or(default.verify), self.encrypt.unwrap_or(default.encrypt))
    }

    /// Has a copy do what was asked for; but `only`, whose paths the caller chooses.
    ///
    /// # Errors
    /// As [`AskedOptions::digests`].
    pub fn apply(&self, options: &mut CopyOptions) -> Result<(), &'static str> {
        options.digest = self.digests()?;
        options.existing = self.existing.unwrap_or(options.existing);
        options.verify = self.verify.unwrap_or(options.verify);
        options.encrypt = self.encrypt.unwrap_or(options.encrypt);
        options.streams = self.streams.map_or(options.streams, Streams::fixed);
        options.polite |= self.polite;
        options.block_bytes = self.block_bytes.map(BlockSize::bytes).or(options.block_bytes);
        options.rate_limit = self.rate_limit.map_or(options.rate_limit, RateBound::bytes);
        options.congestion = self.congestion.or(options.congestion);
        options.durability = self.durable.unwrap_or(options.durability);
        options.allow_growing |= self.allow_growing;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_is_as_asked_for_and_else_as_by_default() {
        let applied = |asked: AskedOptions| {
            let mut options = CopyOptions::default();
            asked.apply(&mut options).map(|()| options)
        };
        let default = CopyOptions::default();
        let plain = applied(AskedOptions::default()).unwrap();
        assert_eq!((plain.verify, plain.digest, plain.encrypt), (default.verify, default.digest, default.encrypt));
        assert_eq!((plain.existing, plain.durability), (default.existing, default.durability));
        let with = |verify, encrypt, digest| AskedOptions { verify, encrypt, digest, ..AskedOptions::default() };
        let none = Some(Verify::None);
        // What nothing is verified by is not computed, but in the clear it is.
        assert_eq!(applied(with(none, None, None)).unwrap().digest, Digests::NONE);
        assert_eq!(applied(with(none, Some(Encrypt::None), None)).unwrap().digest, Digests::BLAKE3);
        assert!(applied(with(None, None, Some(Digests::NONE))).is_err());
        let numbers = AskedOptions {
            streams: Some(Streams::Fixed(3)),
            rate_limit: Some(RateBound::new(7)),
            allow_growing: true,
            ..AskedOptions::default()
        };
        let numbers = applied(numbers).unwrap();
        assert_eq!((numbers.streams, numbers.rate_limit, numbers.allow_growing), (Some(3), Some(7), true));
        let none = AskedOptions {
            streams: Some(Streams::Auto),
            rate_limit: Some(RateBound::new(0)),
            ..AskedOptions::default()
        };
        let mut options = CopyOptions { streams: Some(4), rate_limit: Some(9), ..CopyOptions::default() };
        none.apply(&mut options).unwrap();
        assert_eq!((options.streams, options.rate_limit), (None, None));
    }
}
