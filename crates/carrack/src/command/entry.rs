//! One file as `ls` and `stat` show it.

use carrack_core::path::display_bytes;
use carrack_core::report::ItemKind;
use carrack_engine::files::ListEntry;
use serde_json::{Value, json};

use crate::output::{format, json as objects};

/// The name only, printable.
pub fn short(entry: &ListEntry) -> String {
    display_bytes(&entry.path).to_string()
}

/// One line: mode, size in bytes, modification time, name, and where a link points.
pub fn long(entry: &ListEntry) -> String {
    let target = match entry.kind {
        ItemKind::Symlink => format!(" -> {}", display_bytes(&entry.link_target)),
        _ => String::new(),
    };
    let time = format::rfc3339_seconds(entry.mtime.seconds);
    format!("{} {:>15} {time} {}{target}", mode_letters(entry), entry.size, display_bytes(&entry.path))
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
    use carrack_core::attributes::Time;

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
        }
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
        assert_eq!(long(&link), "lrwxrwxrwx            2048 2023-11-14T22:13:20Z a\\x1b\\xff -> t\\x0a");
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
