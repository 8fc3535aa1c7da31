//! Attributes of an item, as a block of bytes: the same in frames and in messages.
//!
//! One attribute after the other, in the order of their kinds, each kind once: its kind (2 bytes), the length of its
//! value (2 bytes), the value. Integers are big-endian. Whoever does not know a kind knows where the next one begins.
//! The block's own length stands before it; where there are no attributes there is no block.

use super::ProtocolError;
use crate::attributes::{Attribute, AttributeKind, AttributesError, OtherAttributes};
use crate::limits;

/// As bytes; none of no attributes.
pub fn encode(attributes: &OtherAttributes) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(attributes.encoded_bytes());
    for Attribute { kind, value } in attributes.iter() {
        bytes.extend_from_slice(&kind.0.to_be_bytes());
        // Less than the whole block, whose length is bounded.
        bytes.extend_from_slice(&(value.len() as u16).to_be_bytes());
        bytes.extend_from_slice(value);
    }
    bytes
}

/// From the bytes of a block.
///
/// # Errors
/// When there is nothing in it, an attribute is cut short, there are too many or too many bytes of them, or they are
/// not in the order of their kinds, each once.
pub fn decode(block: &[u8]) -> Result<OtherAttributes, ProtocolError> {
    if block.is_empty() || block.len() > limits::ATTRIBUTE_BYTES {
        return Err(ProtocolError::violation(format!("the peer sent {} bytes of attributes", block.len())));
    }
    let mut list = Vec::new();
    let mut rest = block;
    while !rest.is_empty() {
        if list.len() == limits::ATTRIBUTES {
            return Err(refused(AttributesError::TooMany));
        }
        let (attribute, left) =
            take(rest).ok_or_else(|| ProtocolError::violation("the peer sent an attribute that is cut short"))?;
        list.push(attribute);
        rest = left;
    }
    OtherAttributes::new(list).map_err(refused)
}

fn take(bytes: &[u8]) -> Option<(Attribute, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<{ OtherAttributes::HEAD_BYTES }>()?;
    let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([head[2], head[3]])))?;
    Some((Attribute { kind: AttributeKind(u16::from_be_bytes([head[0], head[1]])), value: value.into() }, rest))
}

fn refused(why: AttributesError) -> ProtocolError {
    ProtocolError::violation(match why {
        AttributesError::TooMany => "the peer sent more attributes of one item than the protocol allows",
        AttributesError::TooLong => "the peer sent longer attributes of one item than the protocol allows",
        AttributesError::Order => "the peer sent attributes of one item twice or out of order",
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn attributes_come_back(values in prop::collection::btree_map(1u16.., prop::collection::vec(any::<u8>(), 0..200), 1..limits::ATTRIBUTES)) {
            let list = values.into_iter().map(|(kind, value)| Attribute { kind: AttributeKind(kind), value: value.into() });
            let attributes = OtherAttributes::new(list.collect()).unwrap();
            let block = encode(&attributes);
            prop_assert_eq!(block.len(), attributes.encoded_bytes());
            prop_assert_eq!(decode(&block), Ok(attributes));
        }

        #[test]
        fn attributes_that_decode_encode_to_the_same(block in prop::collection::vec(0u8..4, 0..64)) {
            if let Ok(attributes) = decode(&block) {
                prop_assert_eq!(encode(&attributes), block);
            }
        }
    }

    fn one(kind: u16, value: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &(value.len() as u16).to_be_bytes(), value].concat()
    }

    #[test]
    fn attributes_of_kinds_that_nobody_knows_are_read() {
        let block = [one(1, b""), one(0x8000, b"value"), one(u16::MAX, &[0xff; 300])].concat();
        let decoded = decode(&block).unwrap();
        assert_eq!(decoded.iter().map(|one| one.kind.0).collect::<Vec<_>>(), [1, 0x8000, u16::MAX]);
        assert_eq!(encode(&decoded), block);
        assert_eq!(encode(&OtherAttributes::default()), b"");
    }

    #[test]
    fn attributes_that_no_honest_end_sends_are_refused() {
        let two = [one(1, b"a"), one(2, b"bcd")].concat();
        assert!(decode(&two).is_ok());
        let cuts = (0..two.len()).filter(|cut| ![one(1, b"a").len()].contains(cut));
        for cut in cuts {
            assert!(decode(&two[..cut]).is_err(), "cut short at {cut}");
        }
        let many: Vec<u8> = (1..=limits::ATTRIBUTES as u16 + 1).flat_map(|kind| one(kind, b"")).collect();
        for (what, block) in [
            ("nothing", Vec::new()),
            ("no kind", one(0, b"x")),
            ("twice", [one(7, b"x"), one(7, b"x")].concat()),
            ("backwards", [one(8, b"x"), one(7, b"x")].concat()),
            ("one too many", many.clone()),
            ("longer than the block", [&[0, 1, 0xff, 0xff][..], &[0; 100]].concat()),
            ("a byte too many", [one(1, b"x"), vec![0]].concat()),
            ("longer than any", vec![0; limits::ATTRIBUTE_BYTES + 1]),
        ] {
            assert!(decode(&block).is_err(), "{what}");
        }
        assert!(decode(&many[..many.len() - 4]).is_ok(), "as many as are allowed");
    }
}
