//! Grants: words that let a client do less at a node than the node's token does, for a limited time.
//!
//! Whoever has the node's token makes a grant without asking the node: the claims, and a MAC over them under a key that
//! is derived from the token. The node derives the same key and checks the MAC; it keeps no list. A grant travels where
//! the token does, and is a [`Token`] itself: `carrack1.CLAIMS.MAC`, both parts in base64url without padding. Claims
//! cannot be narrowed by who has the grant alone: that takes the node's token.
//!
//! Claims are protobuf, in their shortest encoding and without unknown fields: a claim that a node does not know may be
//! a restriction, so the node refuses the grant.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use prost::Message;

use crate::credential::Token;
use crate::limits;
use crate::path::{PathError, check_relative};
use crate::words::words;

/// What a grant begins with. Another version of grants has another word.
const BEGINNING: &str = "carrack1.";
/// What the key is derived for.
const CONTEXT: &str = "carrack 2026-11 grants of a node's token v1";

/// Tells a grant from all others of its node.
pub type GrantId = [u8; 16];

words! {
    /// What a grant allows. A client without the node's whole token neither measures the path to the node, nor asks
    /// what its host is made of, nor collects leftovers, whatever the grant says.
    pub enum Right {
        0 Read "read" "list, describe, sum, and be the source of a copy"
        1 Write "write" "be the destination of a copy, which replaces files, make directories, and rename to free names"
        2 Delete "delete" "remove, and replace by a rename"
        3 Ownership "ownership" "with write: give owners, special bits, devices and attributes of root, where the node does"
    }
}

impl Right {
    fn bit(self) -> u32 {
        1 << self.number()
    }
}

/// Some rights.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Rights(u32);

impl Rights {
    /// All of them.
    pub fn all() -> Self {
        Self::of(Right::ALL)
    }

    /// These.
    pub fn of(rights: &[Right]) -> Self {
        Self(rights.iter().fold(0, |bits, right| bits | right.bit()))
    }

    /// Whether this one is among them.
    pub fn allow(self, right: Right) -> bool {
        self.0 & right.bit() != 0
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// These but one.
    #[must_use]
    pub fn without(self, right: Right) -> Self {
        Self(self.0 & !right.bit())
    }

    /// Those that are also among `others`.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// From the bits of a message; `None` where one of them is no right.
    fn from_bits(bits: u32) -> Option<Self> {
        (bits & !Self::all().0 == 0).then_some(Self(bits))
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(Right::ALL.iter().filter(|right| self.allow(**right)).map(|right| right.name())).finish()
    }
}

words! {
    /// What a grant limits. All sessions with the grant count together, as long as the node runs. What is sent again
    /// counts again.
    pub enum Ceiling {
        0 Entries "entries" "files, links and directories that a copy sends or makes"
        1 Bytes "bytes" "bytes of content that a copy reads or writes at the node"
        2 Deletions "deletions" "files, links and directories that are removed or replaced by a rename"
        3 RunSeconds "run-seconds" "seconds since the first session with the grant began"
    }
}

/// At most so much of each; `None` for any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ceilings {
    /// See [`Ceiling::Entries`].
    pub entries: Option<u64>,
    /// See [`Ceiling::Bytes`].
    pub bytes: Option<u64>,
    /// See [`Ceiling::Deletions`].
    pub deletions: Option<u64>,
    /// See [`Ceiling::RunSeconds`].
    pub run_seconds: Option<u64>,
}

impl Ceilings {
    /// The highest that one may come to.
    pub fn of(&self, ceiling: Ceiling) -> Option<u64> {
        match ceiling {
            Ceiling::Entries => self.entries,
            Ceiling::Bytes => self.bytes,
            Ceiling::Deletions => self.deletions,
            Ceiling::RunSeconds => self.run_seconds,
        }
    }
}

/// What a grant says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// What it is revoked by, and counted by.
    pub id: GrantId,
    /// What may be done.
    pub rights: Rights,
    /// Where: this path and what is below it, relative to the node's root; empty for all of it. No component of it may
    /// be a symbolic link.
    pub prefix: Vec<u8>,
    /// The first second since 1970 in which it is no longer valid.
    pub expires: u64,
    /// How much.
    pub ceilings: Ceilings,
}

impl Claims {
    /// The bytes that a MAC is made of.
    ///
    /// # Errors
    /// When no grant may say this.
    pub fn encode(&self) -> Result<Vec<u8>, GrantError> {
        self.check()?;
        let Self { id, rights, prefix, expires, ceilings } = self.clone();
        let Ceilings { entries, bytes, deletions, run_seconds } = ceilings;
        let raw =
            RawClaims { id: id.to_vec(), rights: rights.0, prefix, expires, entries, bytes, deletions, run_seconds };
        Ok(raw.encode_to_vec())
    }

    /// What bytes say that [`Claims::encode`] has made.
    ///
    /// # Errors
    /// Of all others.
    pub fn decode(encoded: &[u8]) -> Result<Self, GrantError> {
        let raw = RawClaims::decode(encoded).map_err(|_| GrantError::Unknown)?;
        // Unknown fields are not in what it is encoded to again.
        if raw.encode_to_vec() != encoded {
            return Err(GrantError::Unknown);
        }
        let RawClaims { id, rights, prefix, expires, entries, bytes, deletions, run_seconds } = raw;
        let claims = Self {
            id: id.try_into().map_err(|_| GrantError::Unknown)?,
            rights: Rights::from_bits(rights).ok_or(GrantError::Unknown)?,
            prefix,
            expires,
            ceilings: Ceilings { entries, bytes, deletions, run_seconds },
        };
        claims.check().map(|()| claims)
    }

    /// # Errors
    /// Why no grant may say this.
    fn check(&self) -> Result<(), GrantError> {
        if self.rights.is_empty() {
            return Err(GrantError::NoRight);
        }
        if self.prefix.len() > limits::GRANT_PREFIX_BYTES {
            return Err(GrantError::Prefix(PathError::TooLong));
        }
        if self.prefix.is_empty() { Ok(()) } else { check_relative(&self.prefix).map_err(GrantError::Prefix) }
    }
}

/// The same on the wire. A number, once given, keeps its meaning.
#[derive(Clone, PartialEq, prost::Message)]
struct RawClaims {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(uint32, tag = "2")]
    rights: u32,
    #[prost(bytes = "vec", tag = "3")]
    prefix: Vec<u8>,
    #[prost(uint64, tag = "4")]
    expires: u64,
    #[prost(uint64, optional, tag = "5")]
    entries: Option<u64>,
    #[prost(uint64, optional, tag = "6")]
    bytes: Option<u64>,
    #[prost(uint64, optional, tag = "7")]
    deletions: Option<u64>,
    #[prost(uint64, optional, tag = "8")]
    run_seconds: Option<u64>,
}

/// Why a text is no grant that may be used, or claims may not become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantError {
    /// It was not made with this node's token, or was changed since.
    Forged,
    /// It was made with this node's token, and says what this version does not understand.
    Unknown,
    /// It is no longer valid.
    Expired,
    /// It allows nothing.
    NoRight,
    /// The path that it is for.
    Prefix(PathError),
}

impl fmt::Display for GrantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forged => f.write_str("the grant was not made with this node's token"),
            Self::Unknown => f.write_str("the grant says what this version does not understand"),
            Self::Expired => f.write_str("the grant has expired"),
            Self::NoRight => f.write_str("the grant allows nothing"),
            Self::Prefix(why) => write!(f, "the grant's path: {why}"),
        }
    }
}

impl std::error::Error for GrantError {}

/// Whether a token claims to be a grant: then a node that does not know it as its own token checks it as one.
pub fn claims_to_be_grant(token: &str) -> bool {
    token.starts_with(BEGINNING)
}

/// What seals a node's grants, and opens them. It is derived from the node's token, which cannot be found from it.
#[derive(Clone)]
pub struct GrantKey([u8; 32]);

impl fmt::Debug for GrantKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GrantKey(..)")
    }
}

impl GrantKey {
    /// Of the node whose token this is.
    pub fn of(token: &Token) -> Self {
        Self(blake3::derive_key(CONTEXT, token.reveal().as_bytes()))
    }

    /// A grant that says this: what a client shows the node as its token.
    ///
    /// # Errors
    /// When no grant may say it.
    pub fn seal(&self, claims: &Claims) -> Result<Token, GrantError> {
        let encoded = claims.encode()?;
        let (claims, mac) = (BASE64URL_NOPAD.encode(&encoded), BASE64URL_NOPAD.encode(self.mac(&encoded).as_bytes()));
        Token::new(format!("{BEGINNING}{claims}.{mac}").as_bytes()).map_err(|_| GrantError::Prefix(PathError::TooLong))
    }

    /// What a grant says that is valid now, in seconds since 1970. The time that it takes tells nothing of how much of
    /// a MAC was right.
    ///
    /// # Errors
    /// When it was not made with the node's token, has expired, or is not understood.
    pub fn open(&self, text: &str, now: u64) -> Result<Claims, GrantError> {
        if text.len() > limits::TOKEN_BYTES {
            return Err(GrantError::Forged);
        }
        let parts = text.strip_prefix(BEGINNING).and_then(|rest| rest.split_once('.')).ok_or(GrantError::Forged)?;
        let decode = |part: &str| BASE64URL_NOPAD.decode(part.as_bytes()).map_err(|_| GrantError::Forged);
        let (encoded, mac) = (decode(parts.0)?, decode(parts.1)?);
        let mac = <[u8; 32]>::try_from(mac).map_err(|_| GrantError::Forged)?;
        // Nothing of the claims is read before: hashes are compared in constant time.
        if self.mac(&encoded) != blake3::Hash::from_bytes(mac) {
            return Err(GrantError::Forged);
        }
        let claims = Claims::decode(&encoded)?;
        if now >= claims.expires {
            return Err(GrantError::Expired);
        }
        Ok(claims)
    }

    fn mac(&self, encoded: &[u8]) -> blake3::Hash {
        blake3::keyed_hash(&self.0, encoded)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn key() -> GrantKey {
        GrantKey::of(&Token::new(b"0123456789abcdef").unwrap())
    }

    fn claims() -> Claims {
        Claims {
            id: *b"0123456789abcdef",
            rights: Rights::of(&[Right::Read, Right::Delete]),
            prefix: b"runs/42".to_vec(),
            expires: NOW + 60,
            ceilings: Ceilings { bytes: Some(0), entries: Some(7), ..Ceilings::default() },
        }
    }

    /// A grant with these bytes for its claims, and the right MAC.
    fn sealed(encoded: &[u8]) -> String {
        let mac = BASE64URL_NOPAD.encode(key().mac(encoded).as_bytes());
        format!("{BEGINNING}{}.{mac}", BASE64URL_NOPAD.encode(encoded))
    }

    fn raw() -> RawClaims {
        let text = key().seal(&claims()).unwrap();
        let encoded = text.reveal().split('.').nth(1).unwrap().as_bytes();
        RawClaims::decode(&*BASE64URL_NOPAD.decode(encoded).unwrap()).unwrap()
    }

    /// What is on the wire keeps its shape: nodes and services of different versions meet.
    #[test]
    fn golden_grant() {
        // The MAC is what `b3sum --derive-key` of the token and `b3sum --keyed` of the claims say.
        let golden = "carrack1.ChAwMTIzNDU2Nzg5YWJjZGVmEAUaB3J1bnMvNDIgvKSn2gYoBzAA.\
                      grOCZthBjog2lKlj82UM_tE-FWVnUBLpgUIwVaPGTcg";
        assert_eq!(key().seal(&claims()).unwrap().reveal(), golden);
        assert_eq!(key().open(golden, NOW), Ok(claims()));
    }

    #[test]
    fn grant_is_valid_until_it_expires() {
        let text = key().seal(&claims()).unwrap();
        assert_eq!(key().open(text.reveal(), NOW + 59), Ok(claims()));
        for late in [NOW + 60, NOW + 61, u64::MAX] {
            assert_eq!(key().open(text.reveal(), late), Err(GrantError::Expired));
        }
    }

    #[test]
    fn grant_of_another_node_is_forged() {
        let other = GrantKey::of(&Token::new(b"0123456789abcdeg").unwrap());
        let text = other.seal(&claims()).unwrap();
        assert_eq!(key().open(text.reveal(), NOW), Err(GrantError::Forged));
    }

    #[test]
    fn grant_with_any_letter_changed_is_forged() {
        let text = key().seal(&claims()).unwrap().reveal().to_owned();
        for at in 0..text.len() {
            for letter in [b'A', b'.', b'=', b'~', 1] {
                let mut bytes = text.clone().into_bytes();
                if bytes[at] != letter {
                    bytes[at] = letter;
                    let changed = String::from_utf8(bytes).unwrap();
                    assert_eq!(key().open(&changed, NOW), Err(GrantError::Forged), "{changed}");
                }
            }
        }
        for (shorter, longer) in (0..text.len()).map(|end| (&text[..end], format!("{text}{}", &text[end..]))) {
            assert_eq!(key().open(shorter, NOW), Err(GrantError::Forged));
            assert_eq!(key().open(&longer, NOW), Err(GrantError::Forged));
        }
        assert_eq!(key().open(&format!("{text}{}", "A".repeat(limits::TOKEN_BYTES)), NOW), Err(GrantError::Forged));
    }

    #[test]
    fn grant_that_is_not_understood_is_refused() {
        let good = raw().encode_to_vec();
        assert_eq!(key().open(&sealed(&good), NOW), Ok(claims()));
        let unknown: [(&str, Vec<u8>); 6] = [
            ("a field of a later version", [&good[..], &[0x48, 1]].concat()),
            ("a field twice", [&good[..], &[0x10, 5]].concat()),
            ("a long number", [&[0x10, 0x85, 0], &good[..]].concat()),
            ("a right of a later version", RawClaims { rights: 17, ..raw() }.encode_to_vec()),
            ("a short number", RawClaims { id: vec![1; 15], ..raw() }.encode_to_vec()),
            ("no protobuf", vec![0xff]),
        ];
        for (what, encoded) in unknown {
            assert_eq!(key().open(&sealed(&encoded), NOW), Err(GrantError::Unknown), "{what}");
        }
        let nothing = RawClaims { rights: 0, ..raw() };
        assert_eq!(key().open(&sealed(&nothing.encode_to_vec()), NOW), Err(GrantError::NoRight));
        for prefix in [&b"/a"[..], b"a/../b", b"a//b", b"a/", b".", b"a\0b", &[b'a'; 256]] {
            let raw = RawClaims { prefix: prefix.to_vec(), ..raw() };
            assert!(matches!(key().open(&sealed(&raw.encode_to_vec()), NOW), Err(GrantError::Prefix(_))));
            let claims = Claims { prefix: prefix.to_vec(), ..claims() };
            assert!(matches!(key().seal(&claims), Err(GrantError::Prefix(_))));
        }
        assert_eq!(key().seal(&Claims { rights: Rights::default(), ..claims() }), Err(GrantError::NoRight));
    }

    #[test]
    fn longest_grant_is_a_token() {
        let prefix: Vec<u8> = [&[b'a'; 255][..], b"/"].concat().repeat(limits::GRANT_PREFIX_BYTES / 256);
        let prefix = prefix[..prefix.len() - 1].to_vec();
        let most = Some(u64::MAX);
        let ceilings = Ceilings { entries: most, bytes: most, deletions: most, run_seconds: most };
        let claims = Claims { prefix, expires: u64::MAX, rights: Rights::all(), ceilings, ..claims() };
        let text = key().seal(&claims).unwrap();
        assert_eq!(key().open(text.reveal(), NOW), Ok(claims.clone()));
        let longer = Claims { prefix: [&claims.prefix[..], b"/a"].concat(), ..claims };
        assert_eq!(key().seal(&longer), Err(GrantError::Prefix(PathError::TooLong)));
    }

    #[test]
    fn key_does_not_print() {
        assert_eq!(format!("{:?}", key()), "GrantKey(..)");
    }

    proptest! {
        #[test]
        fn grants_come_back(
            id in any::<[u8; 16]>(),
            bits in 1..8u32,
            names in proptest::collection::vec("[a-z.]{3,20}", 0..5),
            expires in NOW + 1..,
            limits in any::<[Option<u64>; 4]>(),
        ) {
            let [entries, bytes, deletions, run_seconds] = limits;
            let ceilings = Ceilings { entries, bytes, deletions, run_seconds };
            let prefix = names.join("/").into_bytes();
            let claims = Claims { id, rights: Rights(bits), prefix, expires, ceilings };
            let text = key().seal(&claims).unwrap();
            prop_assert!(claims_to_be_grant(text.reveal()));
            prop_assert_eq!(key().open(text.reveal(), NOW), Ok(claims));
        }

        #[test]
        fn texts_that_nobody_sealed_are_forged(text in "(carrack1\\.)?[-A-Za-z0-9_.]{0,200}") {
            prop_assert_eq!(key().open(&text, NOW), Err(GrantError::Forged));
        }
    }
}
