//! A tree compared with what a store has of it: by what both keep. Where the store has no directories, none is missed.

use std::path::Path;

use carrack_core::plan::check::{CheckCounts, CheckFinding};
use carrack_core::request::{Compare, CopyOptions, CopyRequest};
use carrack_engine::check::{CheckEvent, check};

use crate::object::Service;
use crate::{at, context, copy, filled, here, store};

/// What is not the same, and all counts.
fn compared(service: &Service, from: &Path, compare: Compare) -> (Vec<(String, char)>, CheckCounts) {
    let options = CopyOptions { compare, retries: 0, ..CopyOptions::default() };
    let request = CopyRequest { sources: vec![here(from)], destination: at("bucket"), options };
    let mut found = Vec::new();
    let report = check(&request, &context(store(service)), &|_| {}, &mut |event| {
        let CheckEvent::Found(path, finding, _) = event else { return };
        let sign = match finding {
            CheckFinding::Same(_) => return,
            CheckFinding::OnlySource(_) => '+',
            CheckFinding::OnlyDestination(_) => '-',
            CheckFinding::Differs(..) => '*',
            CheckFinding::Failed(why) => panic!("{why}"),
        };
        found.push((String::from_utf8(path.to_vec()).unwrap(), sign));
    });
    assert!(report.error.is_none(), "{report:?}");
    (found, report.counts)
}

#[test]
fn tree_is_compared_with_a_store_by_what_both_keep() {
    let ((place, _), service) = (filled(), Service::default());
    let from = place.path().join("from/");
    copy(store(&service), here(&from), at("bucket"));
    for (compare, timeless) in [(Compare::SizeAndTime, 3), (Compare::Content, 0)] {
        let (found, counts) = compared(&service, &from, compare);
        assert_eq!((found, counts.same, counts.timeless), (Vec::new(), 3, timeless), "{compare:?}");
    }
    std::fs::write(from.join("d/small"), "Small").unwrap();
    std::fs::remove_file(from.join("d/e/empty")).unwrap();
    std::fs::create_dir(from.join("new")).unwrap();
    std::fs::write(from.join("new/file"), "").unwrap();
    let expected = [("new", '+'), ("d/small", '*'), ("d/e/empty", '-'), ("new/file", '+')];
    let (found, _) = compared(&service, &from, Compare::Content);
    assert_eq!(found, expected.map(|(path, sign)| (path.to_owned(), sign)));
    let (found, _) = compared(&service, &from, Compare::SizeAndTime);
    assert_eq!(found.len(), 3, "no time, no other size: {found:?}");
}
