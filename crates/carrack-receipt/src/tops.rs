//! Which part of a directory has all items of a receipt.

use std::collections::BTreeSet;

/// The first names of paths that are remembered; with more of them the whole directory is listed.
const TOPS: usize = 1000;

/// The first names of paths, as long as they are few.
pub(crate) struct Tops(Option<BTreeSet<Vec<u8>>>);

impl Default for Tops {
    fn default() -> Self {
        Self(Some(BTreeSet::new()))
    }
}

impl Tops {
    pub(crate) fn add(&mut self, path: &[u8]) {
        let Some(tops) = &mut self.0 else { return };
        let top = path.split(|byte| *byte == b'/').next().unwrap_or_default();
        if !tops.contains(top) {
            tops.insert(top.to_vec());
        }
        // The directory itself is an item of a copy of its contents.
        if tops.len() > TOPS || top.is_empty() {
            self.0 = None;
        }
    }

    pub(crate) fn few(&self) -> Option<Vec<Vec<u8>>> {
        self.0.as_ref().map(|tops| tops.iter().cloned().collect())
    }
}
