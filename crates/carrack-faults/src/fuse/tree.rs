//! Numbers for paths: what the kernel calls a file by.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use fuser::INodeNo;

use super::Features;

/// Every path that the kernel has been told a number of. Numbers are not used again.
pub struct Tree {
    by_number: HashMap<u64, PathBuf>,
    by_path: HashMap<PathBuf, u64>,
    next: u64,
}

impl Tree {
    /// With the root, which has the number 1.
    pub fn new(root: &Path) -> Self {
        let root = root.to_path_buf();
        Self { by_number: [(1, root.clone())].into(), by_path: [(root, 1)].into(), next: 2 }
    }

    /// The path of a number; one that has no name any more keeps its last.
    pub fn path(&self, number: INodeNo) -> PathBuf {
        self.by_number.get(&number.0).cloned().unwrap_or_default()
    }

    /// The number of a path, given now if it has none.
    pub fn number(&mut self, path: &Path) -> u64 {
        if let Some(number) = self.by_path.get(path) {
            return *number;
        }
        let number = self.next;
        self.next += 1;
        self.by_path.insert(path.into(), number);
        self.by_number.insert(number, path.into());
        number
    }

    /// A name is gone. The next file of that name is another one.
    pub fn removed(&mut self, path: &Path) {
        self.by_path.remove(path);
    }

    /// A path, and everything below it, has another name now.
    pub fn renamed(&mut self, from: &Path, to: &Path) {
        self.removed(to);
        // Below anything else there is nothing, and looking for it takes long where there are many.
        let moved: Vec<(PathBuf, u64)> = if to.symlink_metadata().is_ok_and(|now| !now.is_dir()) {
            self.by_path.get(from).map(|number| (from.to_path_buf(), *number)).into_iter().collect()
        } else {
            let below = self.by_path.iter().filter(|(path, _)| path.starts_with(from));
            below.map(|(path, number)| (path.clone(), *number)).collect()
        };
        for (path, number) in moved {
            let new = match path.strip_prefix(from) {
                Ok(rest) if rest.as_os_str().is_empty() => to.to_path_buf(),
                Ok(rest) => to.join(rest),
                Err(_) => continue,
            };
            self.by_path.remove(&path);
            self.by_path.insert(new.clone(), number);
            self.by_number.insert(number, new);
        }
    }
}

/// Where the backing directory keeps a name.
pub fn stored(parent: &Path, name: &OsStr, features: &Features) -> PathBuf {
    let name = if features.decomposes { decomposed(name) } else { name.to_os_string() };
    if features.folds_case || folds_here(parent, features) {
        let folded = name.to_string_lossy().to_lowercase();
        for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().to_lowercase() == folded {
                return entry.path();
            }
        }
    }
    parent.join(name)
}

/// Whether upper and lower case are one in this directory, because of its name or that of one above.
pub fn folds_here(directory: &Path, features: &Features) -> bool {
    features.folds_case_in.is_some_and(|name| directory.iter().any(|part| part == name))
}

/// The canonical decomposition of the Latin letters of ISO 8859-1; other characters stay.
fn decomposed(name: &OsStr) -> OsString {
    const MARKS: [(char, &str); 6] = [
        ('\u{300}', "ÀAÈEÌIÒOÙUàaèeìiòoùu"),
        ('\u{301}', "ÁAÉEÍIÓOÚUÝYáaéeíióoúuýy"),
        ('\u{302}', "ÂAÊEÎIÔOÛUâaêeîiôoûu"),
        ('\u{303}', "ÃAÑNÕOãañnõo"),
        ('\u{308}', "ÄAËEÏIÖOÜUäaëeïiöoüuÿy"),
        ('\u{327}', "ÇCçc"),
    ];
    let Some(text) = name.to_str() else { return name.to_os_string() };
    let mut out = String::new();
    'next: for letter in text.chars() {
        for (mark, pairs) in MARKS {
            let pairs: Vec<char> = pairs.chars().collect();
            if let Some(pair) = pairs.chunks(2).find(|pair| pair[0] == letter) {
                out.extend([pair[1], mark]);
                continue 'next;
            }
        }
        out.push(letter);
    }
    out.into()
}
