//! Zeros in what is written to a file that has holes: they are not written.

use std::ops::Range;

/// What file systems give room by, almost all of them.
const PAGE_BYTES: u64 = 4096;

/// Bytes from an offset on in pieces: those that are zeros, by whole pages of the file, and those between them.
pub fn pieces(bytes: &[u8], offset: u64) -> impl Iterator<Item = (Range<usize>, bool)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        let is_zeros = |at: usize| page(bytes, offset, at).map(|page| is_page_of_zeros(&bytes[page]));
        let kind = is_zeros(at)?;
        while is_zeros(at) == Some(kind) {
            at = page(bytes, offset, at).map_or(bytes.len(), |page| page.end);
        }
        Some((start..at, kind))
    })
}

/// The part of a page that begins there; `None` at the end.
fn page(bytes: &[u8], offset: u64, at: usize) -> Option<Range<usize>> {
    let left = PAGE_BYTES - (offset + at as u64) % PAGE_BYTES;
    let end = bytes.len().min(at + left as usize);
    (at < end).then_some(at..end)
}

fn is_page_of_zeros(page: &[u8]) -> bool {
    // What is data shows it at once.
    page.first() == Some(&0) && page.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_pages_of_zeros_and_all_else() {
        let mut bytes = vec![0; 20_000];
        assert_eq!(pieces(&bytes, 4096).collect::<Vec<_>>(), [(0..20_000, true)]);
        assert_eq!(pieces(&[], 7).count(), 0);
        bytes[5000] = 1;
        assert_eq!(pieces(&bytes, 0).collect::<Vec<_>>(), [(0..4096, true), (4096..8192, false), (8192..20_000, true)]);
        // Pages are those of the file.
        let shifted: Vec<_> = pieces(&bytes, 1000).collect();
        assert_eq!(shifted, [(0..3096, true), (3096..7192, false), (7192..20_000, true)]);
        for offset in [0, 1, 4095, 4096, u64::from(u32::MAX)] {
            let all: Vec<_> = pieces(&bytes, offset).collect();
            assert!(all.windows(2).all(|two| two[0].0.end == two[1].0.start && two[0].1 != two[1].1), "{all:?}");
            assert_eq!((all[0].0.start, all[all.len() - 1].0.end), (0, bytes.len()));
            assert!(
                all.iter().all(|(range, is_zeros)| !is_zeros || bytes[range.clone()].iter().all(|byte| *byte == 0))
            );
        }
    }
}
