//! Facts kept in a directory, to be looked at later or elsewhere: a file for each text, at the path of its name.

use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path};

use super::FactText;

/// A file for each reason why there is no text; the name of the text stands before it.
const WITHOUT: [&str; 3] = [".absent", ".denied", ".failed"];
/// Files that are read at most.
const FILES: usize = 8192;
const DEPTH: usize = 32;
/// Bytes of one text, and of all.
const TEXT_BYTES: u64 = 4 << 20;
const ALL_BYTES: usize = 64 << 20;

/// Writes each text as a file below a directory, which is made. A text whose name could lead elsewhere is left out.
///
/// # Errors
/// What making directories and files says.
pub fn write_tree(directory: &Path, texts: &[(String, FactText)]) -> io::Result<()> {
    for (name, text) in texts {
        let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if !inside || name.is_empty() {
            continue;
        }
        let (suffix, content) = match text {
            FactText::Found(text) => ("", text.as_str()),
            FactText::Absent => (WITHOUT[0], ""),
            FactText::Denied => (WITHOUT[1], ""),
            FactText::Failed(why) => (WITHOUT[2], why.as_str()),
        };
        let file = directory.join(format!("{name}{suffix}"));
        file.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(file, content)?;
    }
    Ok(())
}

/// Reads what [`write_tree`] has written, or what somebody has put together in the same form.
///
/// # Errors
/// What reading says, and that there is too much.
pub fn read_tree(directory: &Path) -> io::Result<Vec<(String, FactText)>> {
    let mut texts = Vec::new();
    read_below(directory, "", DEPTH, &mut texts, &mut 0)?;
    texts.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(texts)
}

/// A regular file, and no more of it than a text has: somebody else may have made the directory.
///
/// # Errors
/// What reading says, and that it is something else, or too large.
pub fn read_text(path: &Path) -> io::Result<Vec<u8>> {
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
    let file = std::fs::File::options().read(true).custom_flags(flags as i32).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it has something that is no regular file"));
    }
    let mut text = Vec::new();
    file.take(TEXT_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > TEXT_BYTES { Err(io::Error::other("a file is too large")) } else { Ok(text) }
}

fn read_below(
    directory: &Path,
    name: &str,
    depth: usize,
    texts: &mut Vec<(String, FactText)>,
    bytes: &mut usize,
) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let own = entry.file_name().to_string_lossy().into_owned();
        let full = if name.is_empty() { own } else { format!("{name}/{own}") };
        if entry.file_type()?.is_dir() {
            if depth == 0 {
                return Err(io::Error::other("directories lie too deep in it"));
            }
            read_below(&entry.path(), &full, depth - 1, texts, bytes)?;
            continue;
        }
        if texts.len() >= FILES {
            return Err(io::Error::other("it has too many files"));
        }
        let content = String::from_utf8_lossy(&read_text(&entry.path())?).into_owned();
        *bytes += content.len();
        if *bytes > ALL_BYTES {
            return Err(io::Error::other("its files are too large"));
        }
        let without = WITHOUT.iter().position(|suffix| full.ends_with(suffix));
        texts.push(match without {
            None => (full, FactText::Found(content)),
            Some(which) => {
                let name = full[..full.len() - WITHOUT[which].len()].to_owned();
                (name, [FactText::Absent, FactText::Denied, FactText::Failed(content)][which].clone())
            }
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_come_back_as_they_were_written() {
        let directory = tempfile::tempdir().unwrap();
        let text = |name: &str, text| (name.to_owned(), text);
        let texts = vec![
            text("command/sshd -T", FactText::Denied),
            text("proc/sys/net/ipv4/tcp_rmem", FactText::Found("4096 131072 6291456\n".to_owned())),
            text("sys/class/net/eth0/duplex", FactText::Failed("Invalid argument".to_owned())),
            text("sys/class/net/eth0/speed", FactText::Absent),
        ];
        let mut more = texts.clone();
        more.extend(["../out", "/etc/out", ""].map(|name| text(name, FactText::Absent)));
        write_tree(&directory.path().join("new"), &more).unwrap();
        assert_eq!(read_tree(&directory.path().join("new")).unwrap(), texts);
        assert!(!directory.path().join("out.absent").exists());
        assert!(read_tree(&directory.path().join("none")).is_err());
        // Nothing but regular files of a text's size: a pipe would never end, a link leads elsewhere.
        let new = |name: &str| directory.path().join("new").join(name);
        for bad in ["link", "large"] {
            match bad {
                "link" => std::os::unix::fs::symlink("/dev/zero", new(bad)).unwrap(),
                _ => std::fs::File::create(new(bad)).unwrap().set_len(TEXT_BYTES + 1).unwrap(),
            }
            assert!(read_tree(&directory.path().join("new")).is_err(), "{bad}");
            std::fs::remove_file(new(bad)).unwrap();
        }
        let made = std::process::Command::new("mkfifo").arg(new("pipe")).status().unwrap();
        assert!(made.success() && read_tree(&directory.path().join("new")).is_err());
    }
}
