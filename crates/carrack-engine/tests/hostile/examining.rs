//! Hosts that are examined and do not play along: telling without end.

use carrack_core::evidence::EvidenceText;
use carrack_core::limits;
use carrack_core::report::ErrorCode;
use carrack_core::request::EndOptions;
use carrack_core::wire::control::raw::{Ask, Counted, EvidenceItem, EvidencePage, Tell};
use carrack_engine::Context;
use carrack_engine::examine::{ExaminedPlace, HostEvidence, host};

use crate::fake_node::FakeNode;
use crate::watch::Watch;

fn examine(node: FakeNode) -> HostEvidence {
    let there = node.at("/");
    let place = ExaminedPlace { location: &there, options: &EndOptions::default() };
    let said = host(place, &Context::default(), &|_| ()).unwrap();
    node.join();
    said
}

#[test]
fn evidence_without_end_is_kept_within_its_bounds() {
    let _watch = Watch::start();
    let text = "x".repeat(limits::EVIDENCE_TEXT_BYTES);
    let node = FakeNode::start(move |node| {
        while let Some((request, ask)) = node.next() {
            if !matches!(ask, Ask::Evidence(_)) {
                let Some(answer) = node.honest(&ask) else { return };
                node.tell(request, answer);
                continue;
            }
            for page in 0..20 * limits::EVIDENCE_BYTES / (4 * text.len()) {
                let item = |number| EvidenceItem { name: format!("{page}/{number}"), state: 0, text: text.clone() };
                node.tell(request, Tell::Evidence(EvidencePage { items: (0..4).map(item).collect() }));
            }
            node.tell(request, Tell::Done(Counted { count: 1 }));
        }
    });
    let evidence = examine(node).evidence.unwrap();
    let held = |text: &EvidenceText| if let EvidenceText::Found(text) = text { text.len() } else { 0 };
    let bytes: usize = evidence.iter().map(|(name, text)| name.len() + held(text)).sum();
    assert!(evidence.is_cut() && bytes <= limits::EVIDENCE_BYTES && bytes > limits::EVIDENCE_BYTES / 2, "{bytes}");
}

#[test]
fn evidence_that_is_longer_than_a_text_may_be_ends_the_conversation() {
    let _watch = Watch::start();
    let node = FakeNode::start(|node| {
        while let Some((request, ask)) = node.next() {
            if !matches!(ask, Ask::Evidence(_)) {
                let Some(answer) = node.honest(&ask) else { return };
                node.tell(request, answer);
                continue;
            }
            let text = "x".repeat(limits::EVIDENCE_TEXT_BYTES + 1);
            let items = vec![EvidenceItem { name: "n".into(), state: 0, text }];
            node.tell(request, Tell::Evidence(EvidencePage { items }));
        }
    });
    let why = examine(node).evidence.expect_err("no honest end sends that");
    assert_eq!(why.code, ErrorCode::ProtocolViolation, "{why:?}");
}
