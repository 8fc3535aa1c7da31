//! Evidence as fields of a message, and from there back.

use crate::evidence::EvidenceText;
use crate::limits;
use crate::wire::control::raw;
use crate::wire::{ProtocolError, peer_text};

/// A page of texts.
pub fn page(texts: Vec<(String, EvidenceText)>) -> raw::EvidencePage {
    let item = |(name, text)| {
        let (state, text) = match text {
            EvidenceText::Found(text) => (0, text),
            EvidenceText::Absent => (1, String::new()),
            EvidenceText::Denied => (2, String::new()),
            EvidenceText::Failed(why) => (3, why),
        };
        raw::EvidenceItem { name, state, text }
    };
    raw::EvidencePage { items: texts.into_iter().map(item).collect() }
}

/// The texts of a page, each within its bounds. A state that is not known here tells nothing.
///
/// # Errors
/// When no honest end sends such a page.
pub fn texts(page: raw::EvidencePage) -> Result<Vec<(String, EvidenceText)>, ProtocolError> {
    let count = page.items.len();
    if count > limits::PAGE_ENTRIES {
        return Err(ProtocolError::violation(format!("the peer sent {count} texts of evidence at once")));
    }
    let text = |item: raw::EvidenceItem| {
        let raw::EvidenceItem { name, state, text } = item;
        if name.len() > limits::EVIDENCE_NAME_BYTES || text.len() > limits::EVIDENCE_TEXT_BYTES {
            return Err(ProtocolError::violation("the peer sent evidence that is too long"));
        }
        let text = match state {
            0 => EvidenceText::Found(text),
            1 => EvidenceText::Absent,
            2 => EvidenceText::Denied,
            _ => EvidenceText::Failed(peer_text(&text)),
        };
        Ok((name, text))
    };
    page.items.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_of_a_peer_is_bounded_and_its_failures_can_be_shown() {
        let item = |name: &str, state, text: &str| raw::EvidenceItem { name: name.into(), state, text: text.into() };
        let told = |items| texts(raw::EvidencePage { items });
        let found = told(vec![item("a", 0, "1\t2\n"), item("b", 1, ""), item("c", 3, "\u{1b}"), item("d", 9, "?")]);
        let failed = |why: &str| EvidenceText::Failed(why.to_owned());
        let expected = [
            ("a", EvidenceText::Found("1\t2\n".to_owned())),
            ("b", EvidenceText::Absent),
            ("c", failed("\u{fffd}")),
            ("d", failed("?")),
        ];
        assert_eq!(found, Ok(expected.map(|(name, text)| (name.to_owned(), text)).to_vec()));
        assert!(told(vec![item("a", 0, ""); limits::PAGE_ENTRIES + 1]).is_err());
        assert!(told(vec![item(&"n".repeat(limits::EVIDENCE_NAME_BYTES + 1), 0, "")]).is_err());
        assert!(told(vec![item("n", 0, &"t".repeat(limits::EVIDENCE_TEXT_BYTES + 1))]).is_err());
    }
}
