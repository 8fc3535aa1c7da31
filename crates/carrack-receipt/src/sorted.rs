//! Lines in the order of their paths, whatever their number: sorted in parts, which are kept in a file and merged.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use carrack_core::plan::check::listing_order;

/// Bytes of lines that are held before they are sorted and put aside.
const HELD_BYTES: usize = 32 << 20;
/// Bytes that are read ahead of each part.
const WINDOW_BYTES: usize = 64 << 10;

/// Paths and what is said of them, in no order.
pub(crate) struct Sorting {
    spool: File,
    /// Bytes of it that are taken.
    end: u64,
    parts: Vec<(u64, u64)>,
    held: Vec<Entry>,
    held_bytes: usize,
    held_bytes_max: usize,
    count: u64,
}

struct Entry {
    path: Vec<u8>,
    /// Of two of one path the one with the higher number is meant.
    number: u64,
    line: Vec<u8>,
}

impl Entry {
    fn order(&self, other: &Self) -> Ordering {
        listing_order(&self.path, &other.path).then(self.number.cmp(&other.number))
    }

    const HEAD_BYTES: usize = 4 + 4 + 8;

    fn put(&self, out: &mut Vec<u8>) {
        for part in [&self.path, &self.line] {
            out.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
        }
        out.extend_from_slice(&self.number.to_be_bytes());
        out.extend_from_slice(&self.path);
        out.extend_from_slice(&self.line);
    }
}

impl Sorting {
    /// `spool` is a file of nobody else's; it is written from its start.
    pub(crate) fn new(spool: File) -> Self {
        Self { spool, end: 0, parts: Vec::new(), held: Vec::new(), held_bytes: 0, held_bytes_max: HELD_BYTES, count: 0 }
    }

    /// What is said of a path, in the place of what was said of it before.
    pub(crate) fn push(&mut self, path: Vec<u8>, line: Vec<u8>) -> io::Result<()> {
        self.count += 1;
        self.hold(Entry { path, number: self.count, line })
    }

    /// What is said of a path of which nothing else is said.
    pub(crate) fn push_weakly(&mut self, path: Vec<u8>, line: Vec<u8>) -> io::Result<()> {
        self.hold(Entry { path, number: 0, line })
    }

    fn hold(&mut self, entry: Entry) -> io::Result<()> {
        self.held_bytes += entry.path.len() + entry.line.len() + size_of::<Entry>();
        self.held.push(entry);
        if self.held_bytes < self.held_bytes_max { Ok(()) } else { self.put_aside() }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.parts.clear();
        self.held.clear();
        (self.held_bytes, self.end) = (0, 0);
    }

    fn put_aside(&mut self) -> io::Result<()> {
        self.held.sort_unstable_by(Entry::order);
        let (begin, mut bytes) = (self.end, Vec::with_capacity(WINDOW_BYTES * 2));
        for entry in self.held.drain(..) {
            entry.put(&mut bytes);
            if bytes.len() >= WINDOW_BYTES {
                self.spool.write_all_at(&bytes, self.end)?;
                self.end += bytes.len() as u64;
                bytes.clear();
            }
        }
        self.spool.write_all_at(&bytes, self.end)?;
        self.end += bytes.len() as u64;
        self.parts.push((begin, self.end));
        self.held_bytes = 0;
        Ok(())
    }

    /// All of them, the last of each path, in [`listing_order`].
    pub(crate) fn sorted(mut self) -> io::Result<Sorted> {
        if !self.held.is_empty() {
            self.put_aside()?;
        }
        let mut sorted = Sorted { spool: self.spool, parts: Vec::new(), next: BinaryHeap::new() };
        for (begin, end) in self.parts {
            sorted.parts.push(SortedPart { at: begin, end, window: Vec::new(), taken: 0 });
            sorted.refill(sorted.parts.len() - 1)?;
        }
        Ok(sorted)
    }
}

/// Paths and what is said of them, in [`listing_order`].
pub(crate) struct Sorted {
    spool: File,
    parts: Vec<SortedPart>,
    next: BinaryHeap<Reverse<Next>>,
}

struct SortedPart {
    /// Where the rest of it is.
    at: u64,
    end: u64,
    /// What was read of it,
    window: Vec<u8>,
    /// and how much of that is used up.
    taken: usize,
}

struct Next {
    entry: Entry,
    part: usize,
}

impl Ord for Next {
    fn cmp(&self, other: &Self) -> Ordering {
        self.entry.order(&other.entry)
    }
}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Next {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Next {}

impl SortedPart {
    /// Has so many bytes behind those that are used up.
    fn fill(&mut self, spool: &File, bytes: usize) -> io::Result<bool> {
        let ready = self.window.len() - self.taken;
        if ready >= bytes {
            return Ok(true);
        }
        self.window.drain(..std::mem::take(&mut self.taken));
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let more = left.min(WINDOW_BYTES.max(bytes - ready));
        self.window.resize(ready + more, 0);
        spool.read_exact_at(&mut self.window[ready..], self.at)?;
        self.at += more as u64;
        Ok(self.window.len() >= bytes)
    }

    fn next(&mut self, spool: &File) -> io::Result<Option<Entry>> {
        if !self.fill(spool, Entry::HEAD_BYTES)? {
            return Ok(None);
        }
        let head = &self.window[self.taken..];
        let number = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (path, line) = (number(0) as usize, number(4) as usize);
        let counted = u64::from(number(8)) << 32 | u64::from(number(12));
        let bytes = Entry::HEAD_BYTES + path + line;
        if !self.fill(spool, bytes)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let entry = &self.window[self.taken + Entry::HEAD_BYTES..self.taken + bytes];
        let entry = Entry { path: entry[..path].to_vec(), number: counted, line: entry[path..].to_vec() };
        self.taken += bytes;
        Ok(Some(entry))
    }
}

impl Sorted {
    fn refill(&mut self, part: usize) -> io::Result<()> {
        let entry = self.parts[part].next(&self.spool)?;
        self.next.extend(entry.map(|entry| Reverse(Next { entry, part })));
        Ok(())
    }

    fn take(&mut self) -> io::Result<Option<Entry>> {
        let Some(Reverse(Next { entry, part })) = self.next.pop() else { return Ok(None) };
        self.refill(part)?;
        Ok(Some(entry))
    }

    /// The next path and what was said of it last.
    pub(crate) fn next(&mut self) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
        let Some(mut entry) = self.take()? else { return Ok(None) };
        while self.next.peek().is_some_and(|Reverse(next)| next.entry.path == entry.path) {
            entry = self.take()?.unwrap_or(entry);
        }
        Ok(Some((entry.path, entry.line)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_path_comes_once_in_order_with_what_was_said_last(
            said in proptest::collection::vec(("[a-c]{1,2}(/[a-c]{1,2}){0,2}", "[a-z]{0,40}"), 0..60),
            held_bytes_max in 1_usize..4000,
        ) {
            let mut sorting = Sorting::new(tempfile::tempfile().expect("a file"));
            sorting.held_bytes_max = held_bytes_max;
            let mut expected = std::collections::BTreeMap::new();
            for (path, line) in &said {
                sorting.push(path.clone().into_bytes(), line.clone().into_bytes()).expect("kept");
                expected.insert(path.as_bytes(), line.as_bytes());
            }
            let mut expected: Vec<_> = expected.into_iter().collect();
            expected.sort_by(|one, other| listing_order(one.0, other.0));
            let mut sorted = sorting.sorted().expect("sorted");
            for (path, line) in expected {
                prop_assert_eq!(sorted.next().expect("read"), Some((path.to_vec(), line.to_vec())));
            }
            prop_assert_eq!(sorted.next().expect("read"), None);
        }
    }

    #[test]
    fn lines_longer_than_a_window_come_back() {
        let mut sorting = Sorting::new(tempfile::tempfile().expect("a file"));
        let long = vec![b'x'; 3 * WINDOW_BYTES];
        for path in [b"b", b"a"] {
            sorting.push(path.to_vec(), long.clone()).expect("kept");
        }
        let mut sorted = sorting.sorted().expect("sorted");
        assert_eq!(sorted.next().expect("read"), Some((b"a".to_vec(), long.clone())));
        assert_eq!(sorted.next().expect("read"), Some((b"b".to_vec(), long)));
    }
}
