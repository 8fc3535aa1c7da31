//! What is told of a further name of a file.

use super::codec::decode;
use super::frame::check_entry_path;
use super::values::RawDigests;
use super::{ProtocolError, fields};
use crate::digest::FileDigests;
use crate::limits;

/// What follows the path of an entry that is a further name of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkedNames {
    /// Names that the file has, relative to the destination: at least one, at most [`limits::NAMES_OF_ONE`].
    pub names: Vec<Vec<u8>>,
    /// Bytes of a file.
    pub size: Option<u64>,
    /// What it holds, where that is known.
    pub digests: FileDigests,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RawLinkedNames {
    #[prost(bytes = "vec", repeated, tag = "1")]
    names: Vec<Vec<u8>>,
    #[prost(message, optional, tag = "2")]
    digests: Option<RawDigests>,
    #[prost(uint64, optional, tag = "3")]
    size: Option<u64>,
}

impl LinkedNames {
    /// Encodes it as it travels.
    pub fn encode(&self) -> Vec<u8> {
        use prost::Message as _;
        RawLinkedNames { names: self.names.clone(), digests: Some(self.digests.into()), size: self.size }
            .encode_to_vec()
    }

    /// Decodes from bytes.
    ///
    /// # Errors
    /// When it has no names or too many, or one that could lead out of the destination.
    pub fn decode(bytes: &[u8]) -> Result<Self, ProtocolError> {
        let RawLinkedNames { names, digests, size } = decode(bytes, "names of a file", fields::NAMES)?;
        if names.is_empty() || names.len() > limits::NAMES_OF_ONE {
            return Err(ProtocolError::violation(format!("the peer told of {} names of one file", names.len())));
        }
        names.iter().try_for_each(|name| check_entry_path(name))?;
        Ok(Self { names, size, digests: digests.unwrap_or_default().into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_and_none_leads_out_of_the_destination() {
        let digests = FileDigests { blake3: Some([7; 32]), ..FileDigests::default() };
        let of = |names: &[&str]| LinkedNames {
            names: names.iter().map(|name| name.as_bytes().to_vec()).collect(),
            size: Some(3),
            digests,
        };
        let good = of(&["a/b", "c"]);
        assert_eq!(LinkedNames::decode(&good.encode()).unwrap(), good);
        let longest = LinkedNames { names: vec![vec![b'x'; 200]; limits::NAMES_OF_ONE], size: None, digests };
        assert_eq!(LinkedNames::decode(&longest.encode()).unwrap(), longest);
        let many = of(&["a"; limits::NAMES_OF_ONE + 1]);
        for bad in [of(&[]), many, of(&["../a"]), of(&["a", "/b"]), of(&[""]), of(&["a\0b"])] {
            assert!(LinkedNames::decode(&bad.encode()).is_err(), "{bad:?}");
        }
        let bytes = good.encode();
        for end in 0..bytes.len() {
            assert!(LinkedNames::decode(&bytes[..end]).map_or(true, |found| found != good), "{end}");
        }
    }
}
