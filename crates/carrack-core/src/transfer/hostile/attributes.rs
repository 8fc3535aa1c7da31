//! Attributes beside permissions and times: the receiver is told of all of them.
#![cfg(test)]

use std::time::Instant;

use super::sender::{file, finish};
use super::*;
use crate::attributes::{Attribute, AttributeKind};
use crate::ids::StreamId;
use crate::transfer::ScannedItem;
use crate::transfer::machine::Machine;
use crate::transfer::orders::options;
use crate::transfer::sender::{Job, Next, Sender, SenderAction, SenderConfig};
use crate::tuning::Tuning;

const LARGE: u64 = 2 << 20;

fn others() -> OtherAttributes {
    let of = |kind, value: &[u8]| Attribute { kind: AttributeKind(kind), value: value.into() };
    OtherAttributes::new(vec![of(7, b"value"), of(300, b"")]).unwrap()
}

/// A sender of the contents of a directory in which everything has attributes.
fn sender(now: Instant, known: bool) -> Sender {
    let options = options(BLOCK);
    let mut sender = Sender::new(SenderConfig { options, targets: vec![Vec::new()], known, tuning: Tuning::DEFAULT });
    sender.handle_stream(Instant::now(), StreamId(0));
    let kinds =
        [("", ItemKind::Directory), ("d", ItemKind::Directory), ("a", ItemKind::File), ("l", ItemKind::Symlink)];
    for (name, kind) in kinds {
        let item =
            ScannedItem { kind, fingerprint: Some([1; 16]), ..file(name, (kind == ItemKind::File).then_some(3)) };
        sender.handle_item(now, attributed(item));
    }
    sender.handle_item(now, attributed(file("large", Some(LARGE))));
    sender.handle_item(now, ScannedItem { kind: ItemKind::Directory, ..file("plain", None) });
    sender.handle_scan_complete(Instant::now());
    sender
}

fn attributed(mut item: ScannedItem) -> ScannedItem {
    item.attributes.others = others();
    item
}

fn said(sender: &mut Sender) -> Vec<PeerMessage> {
    let actions = std::iter::from_fn(|| sender.poll_action());
    actions.filter_map(|action| if let SenderAction::Send(message) = action { Some(message) } else { None }).collect()
}

/// Has the sender send everything but the large file, which the receiver refuses; what it said of attributes, by path.
fn told(now: Instant, sender: &mut Sender) -> Vec<(Vec<u8>, OtherAttributes)> {
    let mut told = Vec::new();
    loop {
        for message in said(sender) {
            match message {
                PeerMessage::Offer(offer) => {
                    told.push((offer.path, offer.attributes.others));
                    let answer = Answer::Refuse(failure());
                    sender.handle_message(now, PeerMessage::Answer { item: offer.item, answer }).unwrap();
                }
                PeerMessage::Directories(list) => {
                    told.extend(list.into_iter().map(|one| (one.path, one.attributes.others)));
                }
                PeerMessage::FinishContents(one) => told.push((b".".to_vec(), one.attributes.others)),
                other => panic!("{other:?}"),
            }
        }
        let Next::Job(job) = sender.next_job(now, StreamId(0)) else { return told };
        finish(sender, StreamId(0), &job);
        let Job::Bundle(bundle) = job else { panic!("{job:?}") };
        let done = PeerMessage::BundleDone { bundle: bundle.id, exceptions: Vec::new() };
        sender.handle_message(now, done).unwrap();
    }
}

#[test]
fn attributes_are_told_to_the_receiver() {
    let now = Instant::now();
    let mut sender = sender(now, false);
    let mut told = told(now, &mut sender);
    told.sort_by(|one, other| one.0.cmp(&other.0));
    let (none, some) = (OtherAttributes::default(), others());
    let expected = [(&b"."[..], &some), (b"d", &some), (b"large", &some), (b"plain", &none)];
    assert_eq!(told.iter().map(|(path, others)| (&path[..], others)).collect::<Vec<_>>(), expected);
}

#[test]
fn attributes_of_what_may_be_there_already_are_told_with_the_question() {
    let now = Instant::now();
    let mut sender = sender(now, true);
    let said = said(&mut sender);
    let items = said.iter().find_map(|one| if let PeerMessage::Query { items, .. } = one { Some(items) } else { None });
    let items = items.expect("a question");
    assert!(items.len() == 2 && items.iter().all(|item| item.others == others()), "{items:?}");
}
