//! Facts kept in a directory, to be looked at later or elsewhere: a file for each text, at the path of its name.

use std::io;
use std::path::{Component, Path};

use super::FactText;

/// A file for each reason why there is no text; the name of the text stands before it.
const WITHOUT: [&str; 3] = [".absent", ".denied", ".failed"];
/// Files that are read at most.
const FILES: usize = 8192;
const DEPTH: usize = 32;

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
    read_below(directory, "", DEPTH, &mut texts)?;
    texts.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(texts)
}

fn read_below(directory: &Path, name: &str, depth: usize, texts: &mut Vec<(String, FactText)>) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let own = entry.file_name().to_string_lossy().into_owned();
        let full = if name.is_empty() { own } else { format!("{name}/{own}") };
        if entry.file_type()?.is_dir() {
            if depth == 0 {
                return Err(io::Error::other("directories lie too deep in it"));
            }
            read_below(&entry.path(), &full, depth - 1, texts)?;
            continue;
        }
        if texts.len() >= FILES {
            return Err(io::Error::other("it has too many files"));
        }
        let content = String::from_utf8_lossy(&std::fs::read(entry.path())?).into_owned();
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
    }
}
