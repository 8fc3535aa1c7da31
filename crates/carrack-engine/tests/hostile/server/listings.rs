//! Listings of a hostile node.

use super::*;

fn list(node: &FakeNode, each: &mut dyn FnMut(&[u8])) -> Result<(), Failure> {
    let location = carrack_core::location::Location::Node { node: node.node.clone(), path: b"/d".to_vec() };
    let mut files = Files::open(&location, &EndOptions::default(), &Context::default(), &|_| {})?;
    files.list(b"/d", true, &mut |entry| each(&entry.path))
}

/// Names in a listing are names below what was listed, or the listing is refused.
#[test]
fn listings_with_hostile_names() {
    let _watch = Watch::start();
    for (path, why) in hostile_paths() {
        let sent = path.clone();
        let node = FakeNode::start(move |node| {
            while let Some((request, ask)) = node.next() {
                match (node.honest(&ask), ask) {
                    (Some(answer), _) => node.tell(request, answer),
                    (None, Ask::List(_)) => {
                        node.tell(request, Tell::Page(Page { entries: vec![entry(b"good"), entry(&sent)] }));
                        node.tell(request, Tell::Done(Counted { count: 2 }));
                    }
                    _ => return,
                }
            }
        });
        let mut seen = Vec::new();
        let failure = list(&node, &mut |path| seen.push(path.to_vec())).expect_err("a hostile name");
        node.join();
        assert_told(&failure, ErrorCode::BadPath, "the peer sent the path \"");
        assert!(failure.message().contains(why), "{failure:?}");
        assert_eq!(seen, [b"good"]);
    }
}

/// Pages without end cost no memory, and end with the connection.
#[test]
fn listings_without_end() {
    let _watch = Watch::memory();
    let node = FakeNode::start(|node| {
        while let Some((request, ask)) = node.next() {
            match (node.honest(&ask), ask) {
                (Some(answer), _) => node.tell(request, answer),
                (None, Ask::List(_)) => {
                    let name = vec![b'n'; 200];
                    let page = Page { entries: vec![entry(&name); carrack_core::limits::PAGE_ENTRIES] };
                    (0..100).for_each(|_| node.tell(request, Tell::Page(page.clone())));
                    return;
                }
                _ => return,
            }
        }
    });
    let mut seen = 0;
    let failure = list(&node, &mut |_| seen += 1).expect_err("it has no end");
    node.join();
    assert_told(&failure, ErrorCode::ConnectionLost, "the control connection was");
    assert_eq!(seen, 100_000);
}
