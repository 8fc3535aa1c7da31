//! Fixtures: directories of evidence.

use std::path::PathBuf;

use carrack_core::evidence::{Evidence, EvidenceText};
use carrack_doctor::Host;
use carrack_sys::facts::{FactText, read_tree};

/// The host that a directory describes.
pub fn host(fixture: &str) -> Host {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(fixture);
    let mut evidence = Evidence::default();
    for (name, text) in read_tree(&directory).unwrap() {
        evidence.put(
            &name,
            match text {
                FactText::Found(text) => EvidenceText::Found(text),
                FactText::Absent => EvidenceText::Absent,
                FactText::Denied => EvidenceText::Denied,
                FactText::Failed(why) => EvidenceText::Failed(why),
            },
        );
    }
    assert!(evidence.found("FROM").is_some_and(|from| from.len() > 40), "{fixture} does not say where it is from");
    Host { name: fixture.to_owned(), evidence: Ok(evidence) }
}
