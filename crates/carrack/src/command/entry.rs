//! One file as `ls` and `stat` show it.

use carrack_core::attributes::{AccessEntry, AttributeKind, OtherAttributes, Who};
use carrack_core::path::display_bytes;
use carrack_core::report::ItemKind;
use carrack_engine::files::ListEntry;
use serde_json::{Value, json};

use crate::output::{format, json as objects};

/// The name only, printable.
pub fn short(entry: &ListEntry) -> String {
    display_bytes(&entry.path).to_string()
}

/// One line: mode, with a sign for what else there is, names, owner, group, size (in bytes, or for people),
/// modification time, name, and where a link points.
pub fn long(entry: &ListEntry, human: bool) -> String {
    let target = match entry.kind {
        ItemKind::Symlink => format!(" -> {}", display_bytes(&entry.link_target)),
        _ => String::new(),
    };
    let time = format::rfc3339_seconds(entry.mtime.seconds);
    let has = |kind| entry.attributes.of_kind(kind).is_some();
    let sign = match has(AttributeKind::ACL) {
        true => "+",
        false if has(AttributeKind::EXTENDED) || has(AttributeKind::CAPABILITIES) => "@",
        false => " ",
    };
    let account = |kind| account(&entry.attributes, kind).map_or("-".to_owned(), |(id, name)| name.unwrap_or(id));
    let (owner, group) = (account(AttributeKind::OWNER), account(AttributeKind::GROUP));
    let names = if entry.names == 0 { "-".to_owned() } else { entry.names.to_string() };
    let size = if human { format::size(entry.size) } else { entry.size.to_string() };
    let (mode, path) = (mode_letters(entry), display_bytes(&entry.path));
    format!("{mode}{sign} {names:>2} {owner:<8} {group:<8} {size:>13} {time} {path}{target}")
}

/// The number and the name of the owner or the group, where it is told.
fn account(attributes: &OtherAttributes, kind: AttributeKind) -> Option<(String, Option<String>)> {
    let (id, name) = attributes.of_kind(kind)?.as_account()?;
    let name = match (id, name) {
        (0, _) => Some("root".to_owned()),
        (_, b"") => None,
        (_, name) => Some(display_bytes(name).to_string()),
    };
    Some((id.to_string(), name))
}

/// An entry of an access control list, as `getfacl` has it.
fn access(AccessEntry { who, name, permissions }: &AccessEntry) -> String {
    let named = |id: u32| match (id, &name[..]) {
        (0, _) => "root".to_owned(),
        (_, b"") => id.to_string(),
        (_, name) => display_bytes(name).to_string(),
    };
    let who = match who {
        Who::Owner => "user:".to_owned(),
        Who::User(id) => format!("user:{}", named(*id)),
        Who::Group => "group:".to_owned(),
        Who::GroupOf(id) => format!("group:{}", named(*id)),
        Who::Mask => "mask:".to_owned(),
        Who::Others => "other:".to_owned(),
    };
    let letters = [(4, 'r'), (2, 'w'), (1, 'x')].map(|(bit, letter)| if permissions & bit != 0 { letter } else { '-' });
    format!("{who}:{}", letters.iter().collect::<String>())
}

/// The entries of its lists, for people and for programs; none where it has no list or the list is not told.
fn lists(attributes: &OtherAttributes) -> [(&'static str, Vec<String>); 2] {
    let lists = attributes.access_lists().unwrap_or_default();
    let shown = |list: &[AccessEntry]| list.iter().map(access).collect();
    [("acl", shown(&lists.access)), ("default_acl", shown(&lists.default))]
}

/// The names of its extended attributes, as far as they are told.
fn extended(attributes: &OtherAttributes) -> Vec<String> {
    let values = attributes.extended().unwrap_or_default().values;
    values.iter().map(|(name, _)| display_bytes(name).to_string()).collect()
}

/// Several lines, for `stat`. `path` is what was asked for.
pub fn block(path: &[u8], entry: &ListEntry) -> Vec<String> {
    let mut lines = vec![
        format!("    path: {}", display_bytes(path)),
        format!("    kind: {}", entry.kind.name()),
        format!("    size: {}", format::size_exact(entry.size)),
        format!("    mode: {} ({})", octal(entry.mode), mode_letters(entry)),
        format!("modified: {}", format::rfc3339_nanos(entry.mtime.seconds, entry.mtime.nanos)),
    ];
    if entry.kind == ItemKind::Symlink {
        lines.push(format!("  target: {}", display_bytes(&entry.link_target)));
    }
    for (label, kind) in [("   owner", AttributeKind::OWNER), ("   group", AttributeKind::GROUP)] {
        let shown = account(&entry.attributes, kind).map(|(id, name)| match name {
            Some(name) => format!("{label}: {name} ({id})"),
            None => format!("{label}: {id}"),
        });
        lines.extend(shown);
    }
    if entry.names > 1 && entry.kind == ItemKind::File {
        lines.push(format!("   names: {}", entry.names));
    }
    for (label, (_, list)) in ["     acl", " default"].into_iter().zip(lists(&entry.attributes)) {
        lines.extend((!list.is_empty()).then(|| format!("{label}: {}", list.join(" "))));
    }
    let has_rights = entry.attributes.of_kind(AttributeKind::CAPABILITIES).is_some();
    lines.extend(has_rights.then(|| "     has: capabilities".to_owned()));
    let names = extended(&entry.attributes);
    lines.extend((!names.is_empty()).then(|| format!("  xattrs: {}", names.join(", "))));
    lines
}

/// The fields of an `entry` object.
pub fn fields(path: &[u8], entry: &ListEntry) -> Value {
    let mut fields = json!({
        "kind": entry.kind.name(),
        "size": entry.size,
        "mode": octal(entry.mode),
        "mtime": format::rfc3339_nanos(entry.mtime.seconds, entry.mtime.nanos),
    });
    if entry.kind == ItemKind::Symlink {
        fields = objects::with_link_target(fields, &entry.link_target);
    }
    for (key, kind) in [("owner", AttributeKind::OWNER), ("group", AttributeKind::GROUP)] {
        if let Some((id, name)) = entry.attributes.of_kind(kind).and_then(|told| told.as_account()) {
            let name = Some(display_bytes(name).to_string()).filter(|name| !name.is_empty());
            fields[key] = json!({ "id": id, "name": name });
        }
    }
    if entry.names > 0 {
        fields["names"] = entry.names.into();
    }
    for (key, list) in lists(&entry.attributes).into_iter().filter(|(_, list)| !list.is_empty()) {
        fields[key] = list.into();
    }
    let names = extended(&entry.attributes);
    if !names.is_empty() {
        fields["extended_attributes"] = names.into();
    }
    if entry.attributes.of_kind(AttributeKind::CAPABILITIES).is_some() {
        fields["capabilities"] = true.into();
    }
    objects::with_path(fields, path)
}

/// The permission bits, as `chmod` takes them: JSON has no octal numbers.
fn octal(mode: u32) -> String {
    format!("{:04o}", mode & 0o7777)
}

/// `drwxr-xr-x`, as `ls -l` has it.
fn mode_letters(entry: &ListEntry) -> String {
    let kind = match entry.kind {
        ItemKind::File => '-',
        ItemKind::Directory => 'd',
        ItemKind::Symlink => 'l',
        ItemKind::Special => 's',
    };
    // For each of owner, group and others: the shift of its bits, its special bit, and the letter of that.
    let classes = [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')];
    let mut text = String::from(kind);
    for (shift, special, letter) in classes {
        let bits = entry.mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (entry.mode & special != 0, bits & 1 != 0) {
            (true, true) => letter,
            (true, false) => letter.to_ascii_uppercase(),
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use carrack_core::attributes::{AccessLists, Attribute, ExtendedAttributes, Time};

    use super::*;

    fn entry(kind: ItemKind, mode: u32) -> ListEntry {
        ListEntry {
            path: b"a\x1b\xff".to_vec(),
            kind,
            size: 2048,
            mode,
            mtime: Time::new(1_700_000_000, 7),
            link_target: b"t\n".to_vec(),
            error: None,
            allocated: None,
            twin: None,
            names: 0,
            attributes: OtherAttributes::default(),
        }
    }

    fn described() -> ListEntry {
        let extended = ExtendedAttributes { values: vec![(b"user.a\n".to_vec(), Vec::new())], ..Default::default() };
        let ann = AccessEntry { name: b"ann".to_vec(), ..AccessEntry::new(Who::User(1001), 6) };
        let access = vec![AccessEntry::new(Who::Owner, 7), ann, AccessEntry::new(Who::GroupOf(5), 0)];
        let default = vec![AccessEntry::new(Who::Others, 1)];
        let attributes = vec![
            Attribute::named(AttributeKind::OWNER, 1000, b"bob"),
            Attribute::number(AttributeKind::GROUP, 77),
            AccessLists { access, default }.attribute(),
            Attribute { kind: AttributeKind::CAPABILITIES, value: Box::new([1]) },
            extended.attribute(1000),
        ];
        let attributes = OtherAttributes::new(attributes).expect("in order");
        ListEntry { names: 2, attributes, ..entry(ItemKind::File, 0o644) }
    }

    #[test]
    fn what_else_an_entry_has_is_shown() {
        let described = described();
        assert_eq!(
            long(&described, false),
            "-rw-r--r--+  2 bob      77                2048 2023-11-14T22:13:20Z a\\x1b\\xff"
        );
        let lines = block(b"h", &described);
        let expected = [
            "   owner: bob (1000)",
            "   group: 77",
            "   names: 2",
            "     acl: user::rwx user:ann:rw- group:5:---",
            " default: other::--x",
            "     has: capabilities",
            "  xattrs: user.a\\x0a",
        ];
        assert_eq!(lines[5..], expected);
        let value = fields(b"p", &described);
        assert_eq!(value["owner"], json!({ "id": 1000, "name": "bob" }));
        assert_eq!(value["group"], json!({ "id": 77, "name": null }));
        assert_eq!((&value["names"], &value["capabilities"]), (&json!(2), &json!(true)));
        assert_eq!(value["acl"], json!(["user::rwx", "user:ann:rw-", "group:5:---"]));
        assert_eq!(
            (&value["default_acl"], &value["extended_attributes"]),
            (&json!(["other::--x"]), &json!(["user.a\\x0a"]))
        );
    }

    #[test]
    fn modes() {
        let cases = [
            (ItemKind::File, 0o644, "-rw-r--r--"),
            (ItemKind::Directory, 0o1777, "drwxrwxrwt"),
            (ItemKind::Directory, 0o1770, "drwxrwx--T"),
            (ItemKind::File, 0o104_755, "-rwsr-xr-x"),
            (ItemKind::File, 0o2640, "-rw-r-S---"),
            (ItemKind::Special, 0, "s---------"),
        ];
        for (kind, mode, letters) in cases {
            assert_eq!(mode_letters(&entry(kind, mode)), letters, "{mode:o}");
        }
        assert_eq!(octal(0o100_644), "0644");
    }

    #[test]
    fn lines() {
        let link = entry(ItemKind::Symlink, 0o777);
        assert_eq!(short(&link), "a\\x1b\\xff");
        let line = "lrwxrwxrwx   - -        -                 2048 2023-11-14T22:13:20Z a\\x1b\\xff -> t\\x0a";
        assert_eq!(long(&link, false), line);
        assert!(long(&link, true).contains(" 2.0 KiB 2023"), "{}", long(&link, true));
        let lines = block(b"h", &link);
        assert_eq!(lines[0], "    path: h");
        assert_eq!(lines[2], "    size: 2.0 KiB (2,048 bytes)");
        assert_eq!(lines[5], "  target: t\\x0a");
    }

    #[test]
    fn json_fields() {
        let value = fields(b"p", &entry(ItemKind::File, 0o644));
        let expected = json!({
            "path": "p", "kind": "file", "size": 2048, "mode": "0644", "mtime": "2023-11-14T22:13:20.000000007Z",
        });
        assert_eq!(value, expected);
        let value = fields(b"\xff", &entry(ItemKind::Symlink, 0));
        assert_eq!((&value["path_b64"], &value["link_target"]), (&json!("/w=="), &json!("t\n")));
    }
}
