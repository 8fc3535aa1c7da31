//! What becomes of a source's symbolic links, and which of them lead out of what is copied.

use crate::words::words;

words! {
    /// What becomes of the symbolic links of a source.
    #[derive(Default)]
    pub enum SourceLinks {
        #[default]
        0 Keep "keep" "copy each as a link"
        1 Follow "follow" "copy what they lead to in their place"
        2 FollowDirectories "follow-directories" "copy the directories that they lead to in their place, other links as links"
        3 FollowUnsafe "follow-unsafe" "copy what lies outside what is copied in their place, other links as links"
        4 Safe "safe" "leave out those that lead out of what is copied"
    }
}

impl SourceLinks {
    /// Whether any link is followed.
    pub fn follows(self) -> bool {
        matches!(self, Self::Follow | Self::FollowDirectories | Self::FollowUnsafe)
    }

    /// Whether a link in the place of a file is followed; `path` is the link's in the transfer, `target` what it says.
    pub fn follows_file(self, path: &[u8], target: &[u8]) -> bool {
        match self {
            Self::Follow => true,
            Self::FollowUnsafe => leads_out(path, target),
            Self::Keep | Self::FollowDirectories | Self::Safe => false,
        }
    }
}

/// Whether a link leads out of what is copied, as rsync has it: by its text alone. `path` is the link's in the
/// transfer.
pub fn leads_out(path: &[u8], target: &[u8]) -> bool {
    if target.is_empty() || target.starts_with(b"/") {
        return true;
    }
    let parts: Vec<&[u8]> = target.split(|&byte| byte == b'/').filter(|part| !part.is_empty()).collect();
    let up = parts.iter().take_while(|part| **part == b"..").count();
    let depth = path.iter().filter(|&&byte| byte == b'/').count();
    // What goes up behind a name goes up from wherever a link of that name leads.
    up > depth || parts[up..].contains(&&b".."[..]) || target.ends_with(b"/..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_leads_out_by_what_it_says_and_where_it_stands() {
        // What rsync 3.5 says of each.
        for (path, target, out) in [
            ("l", "a", false),
            ("l", "./a", false),
            ("l", "a/", false),
            ("l", ".", false),
            ("l", "a/./b", false),
            ("l", "..a/...", false),
            ("l", "..", true),
            ("l", "../a", true),
            ("l", "a/..", true),
            ("l", "a/../b", true),
            ("l", "/a", true),
            ("d/l", "..", false),
            ("d/l", "../a", false),
            ("d/l", "..//a", false),
            ("d/l", "../a/./b", false),
            ("d/l", "./../a", true),
            ("d/l", "../..", true),
            ("d/l", "../../a", true),
            ("d/l", "..//..//a", true),
            ("d/l", "d/..", true),
            ("d/e/l", "../../a", false),
            ("d/e/l", "..//..//a", false),
            ("d/e/l", "../..", true),
            ("d/e/l", "../a/..", true),
            ("d/e/l", "../../../a", true),
            ("d/e/l", "a/../../b", true),
        ] {
            assert_eq!(leads_out(path.as_bytes(), target.as_bytes()), out, "{path} -> {target}");
        }
    }

    #[test]
    fn links_are_followed_as_asked_for() {
        let follows = |links: SourceLinks, target: &str| links.follows_file(b"l", target.as_bytes());
        for (links, inside, outside) in [
            (SourceLinks::Keep, false, false),
            (SourceLinks::Follow, true, true),
            (SourceLinks::FollowDirectories, false, false),
            (SourceLinks::FollowUnsafe, false, true),
            (SourceLinks::Safe, false, false),
        ] {
            assert_eq!((follows(links, "a"), follows(links, "/a")), (inside, outside), "{links:?}");
        }
    }
}
