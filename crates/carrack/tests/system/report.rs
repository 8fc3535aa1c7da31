//! `carrack report`: what it prints of a fixed timeline, of a real copy's, and its page in a real browser.

use std::path::Path;

use crate::golden::Stage;
use crate::support::browser::{Look, open};
use crate::support::node::Node;
use crate::support::{Sandbox, golden};

fn fell() -> std::path::PathBuf {
    golden::directory().join("report/fell.timeline")
}

#[test]
fn golden_report() {
    let stage = Stage::new();
    std::fs::copy(fell(), stage.sandbox.path("fell.timeline")).unwrap();
    stage.transcript("report/report.txt");
}

#[test]
fn report_of_a_real_copy_names_its_ends() {
    let sandbox = Sandbox::new();
    let node = Node::start(&sandbox, "root", &[]);
    sandbox.write("data", vec![7; 3 << 20]);
    sandbox.ok(["data", &node.at("there"), &node.token(), "--timeline=t"]);
    let shown = sandbox.ok(["report", "t"]).stdout;
    assert!(shown.starts_with("Copy of data to carrack://") && shown.contains(", ended after "), "{shown}");
    assert!(!shown.contains("ends early"), "{shown}");
    sandbox.ok(["report", "t", "--html", "page.html"]);
    let page = std::fs::read_to_string(sandbox.path("page.html")).unwrap();
    assert!(page.ends_with("</html>\n") && page.contains("127.0.0.1"));
}

fn page(sandbox: &Sandbox) -> Vec<u8> {
    let fell = fell();
    sandbox.ok(["report".as_ref(), fell.as_os_str(), "--html".as_ref(), Path::new("page.html").as_os_str()]);
    std::fs::read(sandbox.path("page.html")).unwrap()
}

/// The page in a browser, light and dark, wide and narrow: its lines are there in the colours of the scheme, nothing is
/// asked for beside the page, and the console stays empty.
#[test]
fn report_page_in_a_browser() {
    let sandbox = Sandbox::new();
    let page = page(&sandbox);
    // Page, source and destination as the style sheet has them.
    let (light, dark) = (
        [[0xf6, 0xf7, 0xf8], [0x0b, 0x62, 0xa8], [0xc2, 0x57, 0x0c]],
        [[0x12, 0x14, 0x17], [0x63, 0xb3, 0xf4], [0xf5, 0xa1, 0x4a]],
    );
    for (look, colours) in [
        (Look { dark: false, width: 1200 }, light),
        (Look { dark: true, width: 1200 }, dark),
        (Look { dark: false, width: 700 }, light),
        (Look { dark: true, width: 700 }, dark),
    ] {
        let opened = open(&sandbox, page.clone(), look);
        assert_eq!(opened.requests, ["GET / HTTP/1.1 Host: page.invalid"], "{look:?}");
        assert_eq!(opened.console, Vec::<String>::new(), "{look:?}");
        let picture = opened.picture;
        assert_eq!(picture.width, look.width as usize);
        let brightness = picture.brightness();
        assert!(if look.dark { brightness < 70.0 } else { brightness > 190.0 }, "{look:?}: {brightness}");
        for (colour, least) in colours.into_iter().zip([20_000, 1000, 300]) {
            let count = picture.count(colour);
            assert!(count > least, "{look:?}: {count} pixels of {colour:?}");
        }
    }
}

/// The browser would tell: a page that loads and runs something makes requests, and its console is not empty.
#[test]
fn report_page_test_notices_requests_and_errors() {
    let sandbox = Sandbox::new();
    let page = String::from_utf8(page(&sandbox)).unwrap();
    let loud = "<img src=\"http://elsewhere.invalid/pixel\"><script>console.log('here')</script></body>";
    let look = Look { dark: false, width: 700 };
    // With the page's policy both are refused, and the console says so.
    let refused = open(&sandbox, page.replace("</body>", loud).into_bytes(), look);
    assert_eq!(refused.requests.len(), 1, "{:?}", refused.requests);
    assert!(refused.console.len() >= 2, "{:?}", refused.console);
    // Without it they are not.
    let without = page.replace("Content-Security-Policy", "X-Nothing").replace("</body>", loud);
    let taken = open(&sandbox, without.into_bytes(), look);
    assert!(taken.requests.iter().any(|request| request.contains("elsewhere.invalid")), "{:?}", taken.requests);
    assert!(taken.console.iter().any(|line| line.contains("here")), "{:?}", taken.console);
}
