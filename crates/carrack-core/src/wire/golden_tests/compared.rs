//! Lines of what compares both sides, leaves out and deletes.

use super::*;
use crate::accounts::{AccountMap, AccountMaps};
use crate::attributes::{Attribute, AttributeKind, OtherAttributes, Time};
use crate::backup::Backup;
use crate::filter::{FileBounds, RuleForm, SourceLinks};
use crate::judgment::{ItemDifference, Judgment, LeftBecause};
use crate::reference::{ReferenceDirectories, ReferenceUse};
use crate::report::{Differences, Done, ItemChange};

use crate::request::{Compare, DeleteOrder, DeletionExtent};
use crate::wire::control::Filter;
use crate::wire::peer::{AskedIndex, AskedItem, Question};

fn compared() -> TransferOptions {
    TransferOptions {
        compare: Compare::SizeAndTime,
        window_ns: 2_000_000_000,
        plan_only: true,
        tells_names: true,
        folds_case: true,
        item_changes: true,
        no_times: true,
        keeps_links: true,
        delta: crate::request::Delta::Always,
        shares: true,
        compress: true,
        items_in_flight: true,
        ..options()
    }
}

pub fn lines() -> Vec<Line> {
    let rules = vec![
        (RuleForm::Rule, b"P own".to_vec()),
        (RuleForm::Exclude, b"*.o".to_vec()),
        (RuleForm::Include, b"\xff".to_vec()),
    ];
    let number = BundleId(300);
    let order = DeleteOrder {
        most: Some(300),
        partial: true,
        share: Some(50),
        allow_empty: true,
        ignore_errors: true,
        asks: true,
    };
    let into = ReceiveRole {
        sink: Sink::Files,
        directory: b"/in".to_vec(),
        targets: Vec::new(),
        marker: None,
        anew: false,
        partial: false,
        lacks_top: true,
        delete: Some(order),
        backup: None,
    };
    let backup = Backup::new(Some(b"old".to_vec()), Some(b"~".to_vec())).ok();
    let kept = ReceiveRole { backup: backup.clone(), ..into.clone() };
    let kept = Begin { options: compared(), role: Role::Receive(kept) };
    let begin = Begin { options: compared(), role: Role::Receive(into) };
    let question = question();
    let asked = AskedIndex { number, index: 2 };
    let chunked = PeerMessage::ContentCompared { asked, same: false, chunks: vec![1, 0xdead_beef] };
    let undeleted = Ended { at_destination: at_destination(), undeleted: Some(no_space()), ..Ended::default() };
    vec![
        ask("ask Begin-receive-compared", Ask::Begin(begin)),
        ask("ask Begin-receive-kept", Ask::Begin(kept)),
        ask("ask Filter", Ask::Filter(Filter { rules, deletes_excluded: true, ..Filter::default() })),
        ask(
            "ask Filter-files",
            Ask::Filter(Filter { files: bounds(), one_file_system: true, backup, ..Filter::default() }),
        ),
        ask("ask MayDelete", Ask::MayDelete(true)),
        ask("ask Refer", Ask::Refer(references())),
        ask("ask Accounts", Ask::Accounts(accounts())),
        tell("tell Deletion", Tell::Deletion(DeletionExtent { items: 300, of: 301, bytes: Some(1 << 40) })),
        tell("tell FoldsCase", Tell::FoldsCase),
        ask("ask Filter-links", Ask::Filter(Filter { links: SourceLinks::Safe, ..Filter::default() })),
        tell("tell Items-compared", Tell::Items(compared_items())),
        tell("tell Changes", Tell::Changes(changes())),
        tell("tell Ended-undeleted", Tell::Ended(Box::new(undeleted))),
        peer("peer Compare", PeerMessage::Compare { number, question }),
        peer("peer Compared", PeerMessage::Compared { number, judgments: judgments() }),
        peer("peer Content", PeerMessage::Content { asked, digest: Some([13; 32]) }),
        peer("peer Content-unread", PeerMessage::Content { asked, digest: None }),
        peer("peer ContentCompared", PeerMessage::ContentCompared { asked, same: true, chunks: vec![] }),
        peer("peer ContentCompared-chunks", chunked),
        peer("peer Delete", PeerMessage::Delete { failed: 300 }),
        peer("peer AskStillThere", PeerMessage::AskStillThere { number, paths: paths(&[b"d/f1", b"d/f2"]) }),
        peer("peer Deleted", PeerMessage::Deleted),
        peer("peer StillThere", PeerMessage::StillThere { number, there: vec![true, false] }),
        peer("peer Done-same", done(ItemResult::Same)),
    ]
}

fn references() -> ReferenceDirectories {
    ReferenceDirectories::new(ReferenceUse::Copy, paths(&[b"../monday", b"/old"])).unwrap()
}

fn accounts() -> AccountMaps {
    AccountMaps { users: AccountMap::parse("al*:7,:bob").unwrap(), groups: AccountMap::everybody("data").unwrap() }
}

fn question() -> Question {
    let file = |path: &[u8], size| AskedItem {
        path: path.to_vec(),
        kind: ItemKind::File,
        size,
        mtime: Some(Time::new(6, 7)),
        mode: 0o644,
        others: OtherAttributes::default(),
        leads_to: Vec::new(),
        hard_link: None,
    };
    let link = AskedItem { kind: ItemKind::Symlink, mtime: None, mode: 0o777, ..file(b"d/l", 0) };
    let link = AskedItem { leads_to: b"f1".to_vec(), ..link };
    let directory = AskedItem { kind: ItemKind::Directory, mode: 0o755, ..file(b"d", 0) };
    let owner = vec![Attribute::named(AttributeKind::OWNER, 1000, b"ann")];
    let owned = AskedItem { others: OtherAttributes::new(owner).unwrap(), ..file(b"d/f3", 1) };
    Question {
        items: vec![file(b"d/f1", 300), file(b"d/f2", 0), link, directory, owned],
        names: paths(&[b"d", b"d/g"]),
        listed: vec![(b"d".to_vec(), true), (Vec::new(), false)],
    }
}

fn judgments() -> Vec<Judgment> {
    vec![
        Judgment::New,
        Judgment::Same,
        Judgment::Undecided,
        Judgment::Chunked(ItemDifference { size: true, ..ItemDifference::default() }),
        Judgment::Left(LeftBecause::Newer),
        Judgment::Differs(ItemDifference { kind: false, size: true, time: true }),
    ]
}

fn at_destination() -> DestinationCounts {
    DestinationCounts {
        items_deleted: 27,
        bytes_deleted: 28,
        items_only_there: 29,
        bytes_only_there: 30,
        files_replaced_same: 31,
        attributes_set: 32,
        files_linked: 33,
        bytes_linked: 34,
        files_copied_there: 35,
        bytes_copied_there: 36,
        ..DestinationCounts::default()
    }
}

fn changes() -> Vec<ItemChange> {
    let differs = Differences { size: true, time: true, permissions: true, ..Differences::default() };
    let content = Differences { content: true, time_is_of_writing: true, ..Differences::default() };
    let digests = FileDigests { blake3: Some([15; 32]), ..FileDigests::default() };
    let file = ItemChange {
        path: b"d/f".to_vec(),
        kind: ItemKind::File,
        size: 300,
        mtime: Some(Time::new(-6, 7)),
        leads_to: Vec::new(),
        digests,
        done: Done::Created,
    };
    let link = ItemChange { kind: ItemKind::Symlink, size: 0, leads_to: b"f".to_vec(), ..file.clone() };
    let top = ItemChange { path: Vec::new(), kind: ItemKind::Directory, size: 0, mtime: None, ..file.clone() };
    let top = ItemChange { digests: FileDigests::default(), ..top };
    vec![
        ItemChange { done: Done::Replaced(content), ..link },
        ItemChange { done: Done::Set(differs), ..top.clone() },
        ItemChange { done: Done::Deleted, path: b"e".to_vec(), ..top },
        ItemChange { done: Done::Linked, ..file.clone() },
        ItemChange { done: Done::Copied(differs), ..file.clone() },
        file,
    ]
}

fn bounds() -> FileBounds {
    FileBounds {
        size_min: Some(0),
        size_max: Some(1 << 40),
        modified_first: Some(Time::new(-1, 5)),
        modified_last: Some(Time::new(1 << 33, 999_999_999)),
    }
}

fn paths(paths: &[&[u8]]) -> Vec<Vec<u8>> {
    paths.iter().map(|path| path.to_vec()).collect()
}

fn compared_items() -> Vec<ItemReport> {
    let judged = ItemReport {
        judgment: Some(Judgment::Differs(ItemDifference { time: true, ..ItemDifference::default() })),
        ..item(b"d/f", ItemKind::File, FileDigests::default(), Outcome::Planned)
    };
    let ended = |outcome| item(b"d/f", ItemKind::File, FileDigests::default(), outcome);
    vec![judged, ended(Outcome::Same), ended(Outcome::Deleted), ended(Outcome::ToDelete)]
}

pub fn no_offer() -> Offer {
    Offer {
        item: ItemId(1),
        path: Vec::new(),
        size: None,
        attributes: Attributes::default(),
        sparse: false,
        fingerprint: None,
    }
}
