//! An item of a receipt: a line of JSON.

use std::collections::BTreeMap;

use carrack_core::attributes::{Attribute, AttributeKind, OtherAttributes, Time};
use carrack_core::plan::check::{CheckFinding, CheckedFacts};
use carrack_core::report::{ItemKind, ItemReport, Outcome};
use carrack_core::special::{SpecialFile, SpecialKind};
use carrack_core::words;
use data_encoding::{BASE64, HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Serialize};

words! {
    /// What a receipt says has become of an item.
    pub enum ItemOutcome {
        Copied "copied" "it was copied, and got its name"
        Same "same" "the destination had it already, as far as was compared"
        Kept "kept" "what stood at its name was left alone, as asked"
        Failed "failed" "it was not copied, or could not be read: the item says why"
        Deleted "deleted" "only the destination had it, and it was deleted"
        Changed "changed" "it was copied, and something else stood there when the receipt was made"
        Differs "differs" "both places have something there, and the two differ: the item says in what"
        Missing "missing" "the destination does not have it"
        Extra "extra" "only the destination has it"
        Holds "there" "it is the directory of another item, and has what it had when the receipt was made"
    }
}

impl ItemOutcome {
    /// Whether the receipt says that the destination has the item, and what it is like.
    pub fn is_claimed(self) -> bool {
        matches!(self, Self::Copied | Self::Same | Self::Holds)
    }
}

/// What a receipt says of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptItem {
    /// Relative to the destination's directory.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: ItemKind,
    /// What became of it.
    pub outcome: ItemOutcome,
    /// Bytes of its content; 0 of what is no file.
    pub size: u64,
    /// Its BLAKE3 digest, where one was made.
    pub blake3: Option<[u8; 32]>,
    /// What the destination had when the receipt was made.
    pub found: Option<FoundFacts>,
    /// Why it failed, was left alone or has changed.
    pub why: Option<String>,
}

/// What an item has beside its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundFacts {
    /// Permission bits (07777). Of a link they mean nothing.
    pub mode: u32,
    /// When it was last modified, of what is no directory, where it has such a time.
    pub mtime: Option<Time>,
    /// Where a link leads.
    pub link_target: Vec<u8>,
    /// Which FIFO, socket or device it is.
    pub special: Option<SpecialFile>,
    /// Owner and group, and of lists and extended attributes the BLAKE3 digest of their values.
    pub others: OtherAttributes,
}

/// Attributes as a receipt has them. What may be long or a secret is told by the digest of its value.
pub(crate) fn condensed(others: &OtherAttributes) -> OtherAttributes {
    let one = |attribute: &Attribute| match attribute.kind {
        AttributeKind::OWNER | AttributeKind::GROUP => Some(attribute.clone()),
        AttributeKind::ACL | AttributeKind::NFS4_ACL | AttributeKind::CAPABILITIES | AttributeKind::EXTENDED => {
            let digest = blake3::hash(&attribute.value).as_bytes().to_vec();
            attribute.travels().then(|| Attribute { kind: attribute.kind, value: digest.into() })
        }
        _ => None,
    };
    OtherAttributes::new(others.iter().filter_map(one).collect()).unwrap_or_default()
}

impl FoundFacts {
    /// Of what was found at the destination.
    pub fn of(facts: &CheckedFacts) -> Self {
        let CheckedFacts { state, link_target, special, mode, others, .. } = facts;
        // That of a directory is when something in it got or lost a name.
        let is_directory = state.kind == ItemKind::Directory;
        Self {
            mode: *mode,
            mtime: state.mtime.filter(|_| !is_directory),
            link_target: link_target.clone(),
            special: *special,
            others: condensed(others),
        }
    }
}

impl ReceiptItem {
    /// What a copy has told of an item; `None` where that is nothing that has happened.
    pub fn of(item: &ItemReport) -> Option<Self> {
        let (outcome, why) = match &item.outcome {
            Outcome::Published => (ItemOutcome::Copied, None),
            Outcome::Same => (ItemOutcome::Same, None),
            Outcome::Kept => (ItemOutcome::Kept, None),
            Outcome::Deleted => (ItemOutcome::Deleted, None),
            Outcome::Failed(why) => (ItemOutcome::Failed, Some(format!("{}: {}", why.code, why.why))),
            Outcome::Planned | Outcome::ToDelete => return None,
        };
        let is_file = item.kind == ItemKind::File;
        Some(Self {
            path: item.path.clone(),
            kind: item.kind,
            outcome,
            size: if is_file { item.size } else { 0 },
            blake3: item.digests.blake3.filter(|_| outcome.is_claimed()),
            found: None,
            why,
        })
    }

    /// What a comparison has found at a path; `None` of two directories that were named themselves and are the same.
    /// What was named has no path: a directory stays without one, a file is called by `name`, its last name at the
    /// destination.
    pub fn of_finding(path: &[u8], name: &[u8], finding: &CheckFinding) -> Option<Self> {
        let (outcome, facts, why) = match finding {
            CheckFinding::Same(facts) => (ItemOutcome::Same, Some(&facts[1]), None),
            CheckFinding::OnlySource(facts) => (ItemOutcome::Missing, Some(&**facts), None),
            CheckFinding::OnlyDestination(facts) => (ItemOutcome::Extra, Some(&**facts), None),
            CheckFinding::Differs(facts, differs) => {
                let words: Vec<&str> = differs.words().collect();
                (ItemOutcome::Differs, Some(&facts[1]), Some(words.join(", ")))
            }
            CheckFinding::Failed(why) => (ItemOutcome::Failed, None, Some(format!("{}: {}", why.code, why.why))),
        };
        let kind = facts.map_or(ItemKind::File, |facts| facts.state.kind);
        if outcome == ItemOutcome::Same && kind == ItemKind::Directory && path.is_empty() {
            return None;
        }
        let claimed = facts.filter(|_| outcome.is_claimed());
        let path = if path.is_empty() && kind != ItemKind::Directory { name } else { path };
        Some(Self {
            path: path.to_vec(),
            kind,
            outcome,
            size: facts.filter(|_| kind == ItemKind::File).map_or(0, |facts| facts.state.size),
            blake3: claimed.and_then(|facts| facts.digests.blake3),
            found: claimed.map(FoundFacts::of),
            why,
        })
    }

    /// A directory that holds items.
    pub(crate) fn holding(path: &[u8]) -> Self {
        let (kind, outcome) = (ItemKind::Directory, ItemOutcome::Holds);
        Self { path: path.to_vec(), kind, outcome, size: 0, blake3: None, found: None, why: None }
    }

    /// With what the destination has at its path.
    pub(crate) fn with(&mut self, facts: &CheckedFacts) {
        if !self.outcome.is_claimed() {
            return;
        }
        let is_it = facts.state.kind == self.kind && (self.kind != ItemKind::File || facts.state.size == self.size);
        match is_it {
            true => {
                self.found = Some(FoundFacts::of(facts));
                self.blake3 = self.blake3.or(facts.digests.blake3);
            }
            false => self.is_another("something else stood there when the receipt was made"),
        }
    }

    /// It is not what was copied any more.
    pub(crate) fn is_another(&mut self, why: &str) {
        self.outcome = ItemOutcome::Changed;
        self.blake3 = None;
        self.why = Some(why.to_owned());
    }

    /// Its line, without the line's end.
    pub fn line(&self) -> String {
        // No map of it has keys that are not texts.
        serde_json::to_string(&RawItem::of(self)).unwrap_or_default()
    }

    /// Of such a line.
    ///
    /// # Errors
    /// A sentence without its end.
    pub fn parse(line: &str) -> Result<Self, String> {
        let raw: RawItem = serde_json::from_str(line).map_err(|error| {
            let what = error.to_string();
            format!("it is no item that this version knows: {}", what.split(" at line ").next().unwrap_or_default())
        })?;
        raw.checked()
    }
}

/// An owner or a group.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAccount {
    id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

/// The line's fields. An unknown one is refused: what it claims could not be compared.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawItem {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_b64: Option<String>,
    kind: String,
    outcome: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blake3: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtime: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_target_b64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    special: Option<RawSpecial>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<RawAccount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<RawAccount>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSpecial {
    kind: String,
    #[serde(skip_serializing_if = "is_zero", default)]
    major: u32,
    #[serde(skip_serializing_if = "is_zero", default)]
    minor: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Bytes as a text where they are one, else in base64.
fn as_text(bytes: &[u8]) -> (Option<String>, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(BASE64.encode(bytes))),
    }
}

fn from_text(text: Option<String>, base64: Option<String>, what: &str) -> Result<Option<Vec<u8>>, String> {
    match (text, base64) {
        (None, None) => Ok(None),
        (Some(text), None) => Ok(Some(text.into_bytes())),
        (None, Some(base64)) => {
            BASE64.decode(base64.as_bytes()).map(Some).map_err(|_| format!("its {what} is not in base64"))
        }
        (Some(_), Some(_)) => Err(format!("it has two {what}s")),
    }
}

fn digest_of(hex: &str) -> Result<[u8; 32], String> {
    let bytes = HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| "a digest has not the form of one".to_owned())
}

/// A time as `stat --format %.9Y` prints it.
fn time_text(Time { seconds, nanos }: Time) -> String {
    format!("{seconds}.{nanos:09}")
}

fn time_of(text: &str) -> Option<Time> {
    let (seconds, nanos) = text.split_once('.')?;
    let is_short = nanos.len() == 9 && nanos.bytes().all(|byte| byte.is_ascii_digit());
    is_short.then_some(Time::new(seconds.parse().ok()?, nanos.parse().ok()?))
}

impl RawItem {
    fn of(item: &ReceiptItem) -> Self {
        let (path, path_b64) = as_text(&item.path);
        let mut raw = Self {
            path,
            path_b64,
            kind: item.kind.name().to_owned(),
            outcome: item.outcome.name().to_owned(),
            size: (item.kind == ItemKind::File).then_some(item.size),
            blake3: item.blake3.map(|digest| HEXLOWER.encode(&digest)),
            why: item.why.clone(),
            ..Self::default()
        };
        let Some(found) = &item.found else { return raw };
        raw.mode = (item.kind != ItemKind::Symlink).then(|| format!("{:04o}", found.mode));
        raw.mtime = found.mtime.map(time_text);
        if item.kind == ItemKind::Symlink {
            (raw.link_target, raw.link_target_b64) = as_text(&found.link_target);
        }
        raw.special = found.special.map(|special| RawSpecial {
            kind: special.kind.name().to_owned(),
            major: special.major,
            minor: special.minor,
        });
        for attribute in found.others.iter() {
            let account = |(id, name): (u32, &[u8])| RawAccount {
                id,
                name: std::str::from_utf8(name).ok().filter(|name| !name.is_empty()).map(str::to_owned),
            };
            match attribute.kind {
                AttributeKind::OWNER => raw.owner = attribute.as_account().map(account),
                AttributeKind::GROUP => raw.group = attribute.as_account().map(account),
                kind => {
                    raw.attributes.insert(kind.to_string(), HEXLOWER.encode(&attribute.value));
                }
            }
        }
        raw
    }

    fn checked(self) -> Result<ReceiptItem, String> {
        let path = from_text(self.path, self.path_b64, "path")?.ok_or("it has no path")?;
        let kind = ItemKind::parse(&self.kind)?;
        let outcome = ItemOutcome::parse(&self.outcome)?;
        let blake3 = self.blake3.as_deref().map(digest_of).transpose()?;
        let mode =
            self.mode.map(|mode| u32::from_str_radix(&mode, 8).map_err(|_| "its mode is no number")).transpose()?;
        let mtime = self.mtime.map(|time| time_of(&time).ok_or("its mtime is no time")).transpose()?;
        let link_target = from_text(self.link_target, self.link_target_b64, "link target")?;
        let special = self.special.map(|raw| {
            let kind = SpecialKind::parse(&raw.kind)?;
            Ok::<_, String>(SpecialFile { kind, major: raw.major, minor: raw.minor })
        });
        let special = special.transpose()?;
        let mut others = Vec::new();
        for (kind, account) in [(AttributeKind::OWNER, self.owner), (AttributeKind::GROUP, self.group)] {
            let of = |RawAccount { id, name }| Attribute::named(kind, id, name.unwrap_or_default().as_bytes());
            others.extend(account.map(of));
        }
        for (name, digest) in self.attributes {
            let kind = AttributeKind::named(&name).ok_or("it has an attribute of no known kind")?;
            others.push(Attribute { kind, value: digest_of(&digest)?.to_vec().into() });
        }
        others.sort_unstable_by_key(|attribute| attribute.kind);
        let others = OtherAttributes::new(others).map_err(|_| "its attributes are not those of one item")?;
        let is_found = mode.is_some() || mtime.is_some() || link_target.is_some() || special.is_some();
        let found = (is_found || !others.is_empty()).then(|| FoundFacts {
            mode: mode.unwrap_or_default(),
            mtime,
            link_target: link_target.unwrap_or_default(),
            special,
            others,
        });
        let size = self.size.unwrap_or_default();
        Ok(ReceiptItem { path, kind, outcome, size, blake3, found, why: self.why })
    }
}

#[cfg(test)]
mod tests {
    use carrack_core::report::FileDigests;

    use super::*;

    fn full() -> ReceiptItem {
        let owner = Attribute::named(AttributeKind::OWNER, 1000, b"ann");
        let group = Attribute::number(AttributeKind::GROUP, 7);
        let list = Attribute { kind: AttributeKind::ACL, value: vec![9; 32].into() };
        ReceiptItem {
            path: b"run/a \"b\"\n\\".to_vec(),
            kind: ItemKind::File,
            outcome: ItemOutcome::Copied,
            size: 7,
            blake3: Some([0xab; 32]),
            found: Some(FoundFacts {
                mode: 0o4755,
                mtime: Some(Time::new(-1, 999_999_999)),
                others: OtherAttributes::new(vec![owner, group, list]).expect("of one item"),
                ..FoundFacts::default()
            }),
            why: None,
        }
    }

    #[test]
    fn items_come_back_from_their_lines() {
        let link = ReceiptItem {
            path: b"link\xff".to_vec(),
            kind: ItemKind::Symlink,
            size: 0,
            blake3: None,
            found: Some(FoundFacts { link_target: b"\xfe".to_vec(), ..FoundFacts::default() }),
            ..full()
        };
        let device = SpecialFile { kind: SpecialKind::Character, major: 1, minor: 3 };
        let special = ReceiptItem {
            kind: ItemKind::Special,
            size: 0,
            found: Some(FoundFacts { mode: 0o600, special: Some(device), ..FoundFacts::default() }),
            ..full()
        };
        let failed = ReceiptItem {
            outcome: ItemOutcome::Failed,
            blake3: None,
            found: None,
            why: Some("no-space: the disk is full".into()),
            ..full()
        };
        for item in [full(), link, special, failed] {
            let line = item.line();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(ReceiptItem::parse(&line).as_ref(), Ok(&item), "{line}");
        }
    }

    #[test]
    fn line_of_another_form_is_refused() {
        let line = full().line();
        let changes = [
            ("\"kind\":\"file\"", "\"kind\":\"door\""),
            ("\"outcome\":\"copied\"", "\"outcome\":\"found\""),
            ("\"kind\":\"file\"", "\"kind\":\"file\",\"more\":1"),
            ("\"blake3\":\"ab", "\"blake3\":\"xx"),
            ("\"mode\":\"4755\"", "\"mode\":\"a\""),
            ("\"mtime\":\"-1.999999999\"", "\"mtime\":\"-1.9\""),
            ("\"path\":", "\"path_b64\":\"YQ==\",\"path\":"),
            ("\"path\":", "\"path_b64\":"),
            ("\"acl\":", "\"smell\":"),
        ];
        for (from, to) in changes {
            assert!(line.contains(from), "{from}");
            assert!(ReceiptItem::parse(&line.replacen(from, to, 1)).is_err(), "{to}");
        }
        for other in ["", "{}", "[]", "null", "{\"path\":\"a\"}"] {
            assert!(ReceiptItem::parse(other).is_err(), "{other}");
        }
    }

    #[test]
    fn what_did_not_happen_is_no_item_and_what_failed_claims_nothing() {
        let report = |outcome| ItemReport {
            path: b"a".to_vec(),
            kind: ItemKind::File,
            size: 3,
            digests: FileDigests { blake3: Some([1; 32]), ..FileDigests::default() },
            judgment: None,
            outcome,
        };
        assert_eq!(ReceiptItem::of(&report(Outcome::Planned)), None);
        let kept = ReceiptItem::of(&report(Outcome::Kept)).expect("an item");
        assert_eq!((kept.outcome, kept.blake3), (ItemOutcome::Kept, None));
        let copied = ReceiptItem::of(&report(Outcome::Published)).expect("an item");
        assert_eq!((copied.outcome, copied.blake3), (ItemOutcome::Copied, Some([1; 32])));
    }
}
