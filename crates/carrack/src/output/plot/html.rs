//! Text inside HTML.

use carrack_core::path::drives_terminal;

/// Text for HTML, in an element or an attribute. What drives a terminal or turns the direction of text becomes U+FFFD;
/// the end of a line stays one.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push('\n'),
            other if drives_terminal(other) => out.push('\u{fffd}'),
            _ => out.push(character),
        }
    }
    out
}

/// A name that somebody else has chosen, whichever way its script runs.
pub fn name(text: &str) -> String {
    format!("<bdi>{}</bdi>", escape(text))
}
