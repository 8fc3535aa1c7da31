//! What a rule matches, and where in a path.

use super::wild::{Wild, is_wild};

/// What a rule matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// At the top of the transfer, or of the directory whose file has the rule.
    anchored: bool,
    /// Directories alone.
    directories: bool,
    place: MatchPlace,
    what: What,
    /// `***`, which matches a directory and what is in it.
    with_directory: bool,
    /// Begins with `**`, which may stand for nothing before a slash.
    from_slash: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MatchPlace {
    /// The last so many components of a path.
    Last(usize),
    /// Anything after a slash.
    AfterAnySlash,
    Whole,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Literal(Vec<u8>),
    /// One that cannot be parsed matches nothing.
    Wild(Option<Wild>),
}

impl Pattern {
    pub fn parse(text: &[u8]) -> Self {
        let directories = text.len() > 1 && text.ends_with(b"/");
        let text = if directories { &text[..text.len() - 1] } else { text };
        let anchored = text.starts_with(b"/");
        let body = text.strip_prefix(b"/").unwrap_or(text);
        let slashes = text.iter().filter(|byte| **byte == b'/').count();
        let wild = is_wild(text);
        let stars = text.windows(2).position(|two| two == b"**").filter(|_| wild);
        let from_slash = stars == Some(0);
        let place = match (anchored, stars) {
            (true, _) | (false, Some(0)) => MatchPlace::Whole,
            (false, Some(_)) => MatchPlace::AfterAnySlash,
            (false, None) => MatchPlace::Last(slashes + 1),
        };
        let what = if wild { What::Wild(Wild::parse(body)) } else { What::Literal(body.to_vec()) };
        let with_directory = wild && text.ends_with(b"***");
        Self { anchored, directories, place, what, with_directory, from_slash }
    }

    /// Whether it matches. `path` is relative to the transfer, `below` to the directory whose file has the rule.
    pub fn matches(&self, path: &[u8], below: &[u8], is_directory: bool) -> bool {
        if self.directories && !is_directory {
            return false;
        }
        let path = if self.anchored { below } else { path };
        let is_end = |index: usize| index == 0 || path[index - 1] == b'/';
        match self.place {
            MatchPlace::Whole => self.is_at(path, is_directory),
            MatchPlace::Last(components) => {
                let slashes =
                    path.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/').map(|(index, _)| index + 1);
                // Fewer components than that are too few.
                let start = slashes.chain([0]).nth(components - 1);
                start.is_some_and(|start| self.is_at(&path[start..], is_directory))
            }
            MatchPlace::AfterAnySlash => {
                (0..path.len()).any(|start| is_end(start) && self.is_at(&path[start..], is_directory))
            }
        }
    }

    fn is_at(&self, text: &[u8], is_directory: bool) -> bool {
        match &self.what {
            What::Literal(literal) => literal == text,
            What::Wild(None) => false,
            What::Wild(Some(wild)) => {
                let before: &[u8] = if self.from_slash { b"/" } else { b"" };
                let after: &[u8] = if self.with_directory && is_directory { b"/" } else { b"" };
                wild.matches(before.iter().chain(text).chain(after))
            }
        }
    }
}
