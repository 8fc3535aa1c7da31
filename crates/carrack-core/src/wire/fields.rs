//! How much memory a message will take, before it is decoded. An empty element of a list is two bytes on the
//! wire and hundreds in memory; so fields that bring more than a number are counted first, whichever message
//! they are in and however deep. A packed list of numbers is one field: it takes up to eight times its bytes for a
//! moment, and a message is bounded.

use super::ProtocolError;
use crate::limits;

/// What a kind of message may have, and how deep its lists lie. Names and texts are not looked into: their bytes are
/// their owner's choice, and may look like fields.
#[derive(Clone, Copy)]
pub struct Most {
    fields: usize,
    depth: u32,
}

/// A request: what is asked, a role, its sources, their fields.
pub const REQUEST: Most = Most { fields: limits::REQUEST_FIELDS, depth: 3 };
/// An answer: what is told, a list, its elements' fields.
pub const ANSWER: Most = Most { fields: limits::ANSWER_FIELDS, depth: 2 };
/// A message of the peer conversation: its body, a list, its elements' fields.
pub const PEER: Most = Most { fields: limits::PEER_FIELDS, depth: 2 };

/// Names of a file: each of them, their digests, the fields of those.
pub const NAMES: Most = Most { fields: 64, depth: 1 };

/// Refuses a message with more fields than any honest one has.
///
/// # Errors
/// A protocol violation when the message has more.
pub fn check(bytes: &[u8], what: &str, most: Most) -> Result<(), ProtocolError> {
    let count = count(bytes, most.depth);
    if count > most.fields {
        return Err(ProtocolError::violation(format!("the peer sent {what} of {count} parts")));
    }
    Ok(())
}

/// Fields that are strings, lists or messages. Whether bytes are a message or a name is not known here: what is none
/// counts as far as it looks like one, as a decoder would take it.
fn count(bytes: &[u8], depth: u32) -> usize {
    let (mut rest, mut found) = (bytes, 0);
    while let Some(tag) = varint(&mut rest) {
        let skipped = match tag & 7 {
            0 => varint(&mut rest).map(|_| &[][..]),
            1 => take(&mut rest, 8).map(|_| &[][..]),
            5 => take(&mut rest, 4).map(|_| &[][..]),
            2 => varint(&mut rest).and_then(|length| take(&mut rest, usize::try_from(length).ok()?)),
            // The beginning and the end of a group: what is in it counts, too.
            3 | 4 => Some(&[][..]),
            _ => None,
        };
        found += usize::from(matches!(tag & 7, 2 | 3));
        match skipped {
            Some(inside) if depth > 0 => found += count(inside, depth - 1),
            Some(_) => {}
            None => break,
        }
    }
    found
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

/// Takes a number off the front: seven bits a byte, the lowest first. `None` where it does not end, or does not fit.
pub fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, left) = rest.split_first()?;
        *rest = left;
        let part = u64::from(byte & 0x7f);
        // What does not fit would be lost.
        if part << shift >> shift != part {
            return None;
        }
        value |= part << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{ErrorCode, Failure, Side};
    use crate::ids::BundleId;
    use crate::wire::control::raw::*;
    use crate::wire::peer::{PeerMessage, QueryItem};
    use crate::wire::values::RawDigests;

    /// Length-delimited field `tag` with this content.
    fn field(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![tag << 3 | 2];
        let mut length = content.len();
        while length >= 0x80 {
            bytes.push(length as u8 | 0x80);
            length >>= 7;
        }
        bytes.push(length as u8);
        bytes.extend_from_slice(content);
        bytes
    }

    fn refused(error: Result<impl Sized, ProtocolError>) {
        let what = error.err().map(|error| error.what).unwrap_or_default();
        assert!(what.contains("parts"), "{what:?}");
    }

    /// A megabyte of empty elements, in each list that there is, also where what follows cannot be read.
    #[test]
    fn lists_of_nothing_are_refused_before_they_are_decoded() {
        for tail in [&[][..], &[0xff; 3]] {
            let list = |tag: u8| [field(tag, &[]).repeat(500_000), tail.to_vec()].concat();
            for tag in [5, 8, 9, 12] {
                refused(FromAgent::from_bytes(&field(tag, &list(1))));
            }
            refused(FromAgent::from_bytes(&list(12)));
            refused(ToAgent::from_bytes(&field(3, &list(1))));
            refused(ToAgent::from_bytes(&field(5, &list(2))));
            refused(ToAgent::from_bytes(&field(7, &field(2, &list(1)))));
            refused(ToAgent::from_bytes(&field(7, &field(3, &list(3)))));
            for tag in 1..16 {
                for inner in 1..4 {
                    refused(PeerMessage::decode(&field(tag, &list(inner))));
                }
            }
        }
        // The old way to put messages into messages.
        refused(FromAgent::from_bytes(&[0x63, 0x64].repeat(500_000)));
    }

    /// The longest answers, full of failures.
    fn answers(failure: &RawFailure) -> Vec<Tell> {
        let digests = Some(RawDigests { blake3: vec![9; 32], adler32: Some(1), ..RawDigests::default() });
        let item = Item { path: b"a/b".to_vec(), digests, failure: Some(failure.clone()), ..Item::default() };
        let entry = Entry { path: b"a/b".to_vec(), failure: Some(failure.clone()), ..Entry::default() };
        vec![
            Tell::Items(Items { list: vec![item.clone(); 2000] }),
            Tell::Sums(Sums { list: vec![item; limits::PAGE_ENTRIES] }),
            Tell::Page(Page { entries: vec![entry; limits::PAGE_ENTRIES] }),
            Tell::Inspected(Inspected { facts: vec![PathFacts::default(); limits::INSPECTED_PATHS] }),
        ]
    }

    #[test]
    fn fields_of_honest_ends_are_not_refused() {
        let source =
            |n: u32| Source { path: format!("{n:x}").into(), target: format!("{n:x}").into(), ..Source::default() };
        let sources: Vec<Source> = (0..limits::SOURCES as u32).map(source).collect();
        let begin =
            Begin { options: Some(RawOptions::default()), role: Some(Role::Send(SendRole { sources, known: true })) };
        let ask = ToAgent { request: 1, ask: Some(Ask::Begin(begin)) }.to_bytes();
        assert!(ask.len() > limits::MESSAGE_BYTES || ToAgent::from_bytes(&ask).is_ok());
        let paths = Paths { paths: vec![b"n".to_vec(); 128 << 7] };
        assert!(ToAgent::from_bytes(&ToAgent { request: 1, ask: Some(Ask::Select(paths)) }.to_bytes()).is_ok());
        let plain = RawFailure { message: "x".repeat(200), ..Default::default() };
        let inner = Failure::new(ErrorCode::NoSpace, Side::Source, "x").during("write").at_path(&b"a/b"[..]);
        let whole = Failure::new(ErrorCode::NoSpace, Side::Source, "why").at_path(&b"a/b"[..]).caused_by(inner);
        for failure in [plain, whole.into()] {
            for tell in answers(&failure) {
                let said = FromAgent { request: 1, tell: Some(tell) }.to_bytes();
                assert!(FromAgent::from_bytes(&said).is_ok());
            }
        }
        let asked = |index| QueryItem {
            index,
            path: b"dir/name".to_vec(),
            kind: crate::report::ItemKind::File,
            size: 1,
            mode: 0o644,
            mtime: crate::attributes::Time::new(1, 1),
            others: crate::attributes::OtherAttributes::default(),
            fingerprint: Some([1; 16]),
        };
        let items = (0..limits::BUNDLE_ITEMS).map(asked).collect();
        assert!(PeerMessage::decode(&PeerMessage::Query { bundle: BundleId(1), items }.encode()).is_ok());
    }

    /// Every byte of these names looks like a field, and a directory may be full of them.
    #[test]
    fn names_that_look_like_fields_are_not_counted() {
        for byte in [b's', b'+', b'{', b'r'] {
            let path = vec![byte; limits::NAME_BYTES];
            let items = Items { list: vec![Item { path: path.clone(), ..Item::default() }; 2000] };
            let entries = vec![Entry { path: path.clone(), ..Entry::default() }; limits::PAGE_ENTRIES];
            for tell in [Tell::Items(items), Tell::Page(Page { entries })] {
                let said = FromAgent { request: 1, tell: Some(tell) }.to_bytes();
                assert!(FromAgent::from_bytes(&said).is_ok(), "{byte}");
            }
            let item = |index| field(2, &[vec![0x08, (index & 0x7f) as u8], field(2, &path)].concat());
            let query: Vec<u8> = [vec![0x08, 1], (0..3000).flat_map(item).collect()].concat();
            assert!(check(&field(14, &query), "a query", PEER).is_ok(), "{byte}");
        }
    }

    #[test]
    fn fields_foresee_their_memory() {
        assert!(size_of::<Item>() <= limits::FIELD_BYTES && size_of::<Entry>() <= limits::FIELD_BYTES);
        assert!(size_of::<PathFacts>() <= limits::FIELD_BYTES && size_of::<Source>() <= limits::FIELD_BYTES);
    }
}
