//! By what somebody has logged in, in words: the browser, the system and the address. A hint for the reader of the list
//! of sessions; a client may say of itself whatever it likes.

use std::net::IpAddr;

/// What browsers call themselves by, the special before the general: most also name those that they are like.
const BROWSERS: &[(&str, &str)] = &[
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chromium/", "Chromium"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
];
/// What systems are called there.
const SYSTEMS: &[(&str, &str)] = &[
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("iPhone", "iOS"),
    ("iPad", "iOS"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
];

/// The label of a session. `agent` is the header `User-Agent`.
pub(super) fn label(is_browser: bool, agent: Option<&str>, address: Option<IpAddr>) -> String {
    let agent = agent.unwrap_or_default();
    let find =
        |words: &[(&str, &'static str)]| words.iter().find(|(mark, _)| agent.contains(mark)).map(|(_, word)| *word);
    let by = match (is_browser, find(BROWSERS), find(SYSTEMS)) {
        (false, ..) => "the command line".to_owned(),
        (true, Some(browser), Some(system)) => format!("{browser} on {system}"),
        (true, Some(browser), None) => browser.to_owned(),
        (true, None, _) => "a browser".to_owned(),
    };
    address.map_or_else(|| by.clone(), |address| format!("{by}, from {}", address.to_canonical()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_is_named_by_what_browsers_say_and_by_nothing_else_of_it() {
        let at = Some("::ffff:192.0.2.7".parse().unwrap());
        for (agent, expected) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0",
                "Firefox on Linux, from 192.0.2.7",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 \
                 Safari/537.36 Edg/130.0",
                "Edge on Windows, from 192.0.2.7",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605 Version/17.0 Mobile Safari/604",
                "Safari on iOS, from 192.0.2.7",
            ),
            ("<script>alert(1)</script>", "a browser, from 192.0.2.7"),
            ("", "a browser, from 192.0.2.7"),
        ] {
            assert_eq!(label(true, Some(agent), at), expected);
        }
        assert_eq!(label(false, Some("carrack/0.1"), at), "the command line, from 192.0.2.7");
        assert_eq!(label(true, None, None), "a browser");
    }
}
