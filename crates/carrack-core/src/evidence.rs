//! Evidence: what the kernel, the files and the tools of a host say of it, as they say it. A host that is examined only
//! gathers and sends these texts; what they mean is decided by who asked.
//!
//! Each text has a name. What is read from a file bears the file's path without the leading slash
//! (`proc/sys/net/ipv4/tcp_rmem`); what comes from a system call or a command has a name of its own kind
//! (`ethtool/eth0/rings`, `command/sshd -T`).

use std::collections::BTreeMap;

use crate::limits;

/// What became of one question to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvidenceText {
    /// The answer, as it was given.
    Found(String),
    /// There is no such thing on this host.
    Absent,
    /// The user may not look.
    Denied,
    /// Looking failed, and why.
    Failed(String),
}

/// The texts that a host has given of itself, by their names: at most [`limits::EVIDENCE_TEXTS`], and together at most
/// [`limits::EVIDENCE_BYTES`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    texts: BTreeMap<String, EvidenceText>,
    bytes: usize,
    is_cut: bool,
}

impl Evidence {
    /// Adds a text, in the place of one of the same name. Whatever is beyond a bound is left out, and the evidence says
    /// so: of a text its end, of the texts the later ones.
    pub fn put(&mut self, name: &str, text: EvidenceText) {
        let is_name = !name.is_empty() && name.len() <= limits::EVIDENCE_NAME_BYTES;
        if !is_name || name.chars().any(char::is_control) {
            self.is_cut = true;
            return;
        }
        let text = self.bounded(text);
        let bytes = name.len() + text.bytes();
        let before = self.texts.get(name).map_or(0, |old| name.len() + old.bytes());
        let is_full = before == 0 && self.texts.len() >= limits::EVIDENCE_TEXTS;
        if is_full || self.bytes - before + bytes > limits::EVIDENCE_BYTES {
            self.is_cut = true;
            return;
        }
        self.bytes = self.bytes - before + bytes;
        self.texts.insert(name.to_owned(), text);
    }

    fn bounded(&mut self, text: EvidenceText) -> EvidenceText {
        let mut cut = |mut text: String, most: usize| {
            if text.len() > most {
                let end = (0..=most).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
                text.truncate(end);
                self.is_cut = true;
            }
            text
        };
        match text {
            EvidenceText::Found(text) => EvidenceText::Found(cut(text, limits::EVIDENCE_TEXT_BYTES)),
            EvidenceText::Failed(why) => EvidenceText::Failed(cut(why, limits::ERROR_TEXT_BYTES)),
            other => other,
        }
    }

    /// What became of the question with this name; `None` if it was not asked.
    pub fn get(&self, name: &str) -> Option<&EvidenceText> {
        self.texts.get(name)
    }

    /// The text of this name, if it was found.
    pub fn found(&self, name: &str) -> Option<&str> {
        match self.texts.get(name) {
            Some(EvidenceText::Found(text)) => Some(text),
            _ => None,
        }
    }

    /// Every text whose name begins so, with the rest of its name, in the order of the names.
    pub fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a EvidenceText)> {
        let from = self.texts.range::<str, _>((std::ops::Bound::Included(prefix), std::ops::Bound::Unbounded));
        from.map_while(move |(name, text)| Some((name.strip_prefix(prefix)?, text)))
    }

    /// The names directly below this one, as the entries of a directory: of `sys/class/net/` the interfaces.
    pub fn entries<'a>(&'a self, prefix: &'a str) -> Vec<&'a str> {
        let mut names: Vec<&str> =
            self.below(prefix).map(|(rest, _)| rest.split('/').next().unwrap_or_default()).collect();
        names.dedup();
        names
    }

    /// All texts, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &EvidenceText)> {
        self.texts.iter().map(|(name, text)| (name.as_str(), text))
    }

    /// Whether nothing was asked.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Something was beyond a bound and is left out.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

impl EvidenceText {
    fn bytes(&self) -> usize {
        match self {
            Self::Found(text) | Self::Failed(text) => text.len(),
            Self::Absent | Self::Denied => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> EvidenceText {
        EvidenceText::Found(text.to_owned())
    }

    #[test]
    fn evidence_is_found_by_name_and_listed_like_directories() {
        let mut evidence = Evidence::default();
        for (name, text) in [("sys/class/net/eth0/mtu", "9000"), ("sys/class/net/lo/mtu", "65536"), ("sys/x", "y")] {
            evidence.put(name, found(text));
        }
        evidence.put("sys/class/net/eth0/speed", EvidenceText::Failed("Invalid argument".to_owned()));
        assert_eq!(evidence.entries("sys/class/net/"), ["eth0", "lo"]);
        assert_eq!(evidence.found("sys/class/net/eth0/mtu"), Some("9000"));
        assert_eq!((evidence.found("sys/class/net/eth0/speed"), evidence.get("none")), (None, None));
        evidence.put("sys/x", found("z"));
        assert_eq!((evidence.found("sys/x"), evidence.iter().count(), evidence.is_cut()), (Some("z"), 4, false));
    }

    #[test]
    fn evidence_stays_within_its_bounds_and_says_so() {
        let mut evidence = Evidence::default();
        evidence.put("long", found(&"é".repeat(limits::EVIDENCE_TEXT_BYTES)));
        let kept = evidence.found("long").map_or(0, str::len);
        assert!(evidence.is_cut() && (limits::EVIDENCE_TEXT_BYTES - 1..=limits::EVIDENCE_TEXT_BYTES).contains(&kept));
        let text = "x".repeat(limits::EVIDENCE_TEXT_BYTES);
        (0..limits::EVIDENCE_TEXTS).for_each(|number| evidence.put(&number.to_string(), found(&text)));
        assert!(evidence.bytes <= limits::EVIDENCE_BYTES && evidence.bytes + text.len() > limits::EVIDENCE_BYTES / 2);
        let mut many = Evidence::default();
        (0..=limits::EVIDENCE_TEXTS).for_each(|number| many.put(&number.to_string(), EvidenceText::Absent));
        assert_eq!((many.iter().count(), many.is_cut()), (limits::EVIDENCE_TEXTS, true));
        // In the place of another it takes the other's room.
        let mut one = Evidence::default();
        (0..1000).for_each(|_| one.put("name", found(&text)));
        assert!(!one.is_cut() && one.bytes == "name".len() + text.len());
        for name in ["", "a\n", &"n".repeat(limits::EVIDENCE_NAME_BYTES + 1)] {
            one.put(name, EvidenceText::Absent);
        }
        assert_eq!((one.iter().count(), one.is_cut()), (1, true));
    }
}
