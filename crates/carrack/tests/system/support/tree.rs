//! Trees to copy.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Everything below a directory, itself not.
pub fn walk(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(path) = waiting.pop() {
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found
}

/// Bytes that differ everywhere, from a seed.
pub fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut chance = carrack_core::chance::Chance::new(seed);
    let mut out = Vec::with_capacity(length + 8);
    while out.len() < length {
        out.extend_from_slice(&chance.number().to_le_bytes());
    }
    out.truncate(length);
    out
}

/// The same with another byte in each of these blocks.
pub fn changed(content: &[u8], block_bytes: usize, blocks: &[usize]) -> Vec<u8> {
    let mut content = content.to_vec();
    blocks.iter().for_each(|block| content[block * block_bytes + 10] ^= 1);
    content
}

/// `count` files of `size` bytes, 100 to a directory.
pub fn many(directory: &Path, count: usize, size: usize) {
    for index in 0..count {
        let parent = directory.join(format!("d{:03}", index / 100));
        if index % 100 == 0 {
            std::fs::create_dir_all(&parent).unwrap();
        }
        std::fs::write(parent.join(format!("f{index:06}")), bytes(size, index as u64 + 1)).unwrap();
    }
}

/// A small tree with one of everything that is copied: empty directories, links, odd names, sizes around the borders.
pub fn mixed(directory: &Path) {
    for name in ["empty", "deep/a/b/c", "with space"] {
        std::fs::create_dir_all(directory.join(name)).unwrap();
    }
    let write = |name: &[u8], size: usize| {
        let path = directory.join(std::ffi::OsStr::from_bytes(name));
        std::fs::write(path, bytes(size, size as u64 + name.len() as u64)).unwrap();
    };
    write(b"zero", 0);
    write(b"one", 1);
    write(b"deep/a/b/c/file", 5000);
    write(b"with space/new\nline", 4096);
    write(b"-rf", 10);
    write(b"not-utf8-\xff\xfe", 77);
    write(b"block", 4 << 20);
    write(b"block-less-one", (4 << 20) - 1);
    write(b"blocks", (9 << 20) + 12_345);
    std::os::unix::fs::symlink("one", directory.join("link")).unwrap();
    std::os::unix::fs::symlink("/nowhere/at/all", directory.join("dangling")).unwrap();
}
