//! The question at a terminal before a sync deletes much.

use std::fmt;
use std::sync::{Arc, Mutex};

use carrack_core::request::DeletionExtent;
use carrack_engine::Asker;
use carrack_engine::sync::lock;

use crate::output::{Output, format, question};

/// Asks at the terminal.
pub struct TerminalAsker {
    output: Arc<Output>,
    /// The destination, as it is shown.
    place: String,
    /// There is one terminal: a session that is lost may still be asking when the next one does.
    one_at_a_time: Mutex<()>,
}

impl TerminalAsker {
    /// Of a copy that goes to this place.
    pub fn new(output: Arc<Output>, place: String) -> Self {
        Self { output, place, one_at_a_time: Mutex::default() }
    }
}

impl fmt::Debug for TerminalAsker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalAsker").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Asker for TerminalAsker {
    fn may_delete(&self, extent: &DeletionExtent, is_over: &dyn Fn() -> bool) -> bool {
        let _alone = lock(&self.one_at_a_time);
        if is_over() {
            return false;
        }
        self.output.make_room_for_a_question();
        question::ask(&asked(extent, &self.place), is_over)
    }
}

fn asked(extent: &DeletionExtent, place: &str) -> String {
    let DeletionExtent { items, of, bytes } = *extent;
    let items_counted = format::counted(items, "item", "items");
    let bytes = bytes.map(|bytes| format!(", {}", format::size(bytes))).unwrap_or_default();
    let (are, them) = if items == 1 { ("is", "it") } else { ("are", "them") };
    let of = format::count(of);
    format!("{items_counted} (of {of}){bytes} {are} to be deleted at {place}. Delete {them}? [y/N] ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_names_what_goes() {
        let all = DeletionExtent { items: 1500, of: 2000, bytes: Some(1 << 20) };
        assert_eq!(
            asked(&all, "host:/d"),
            "1,500 items (of 2,000), 1.0 MiB are to be deleted at host:/d. Delete them? [y/N] "
        );
        let one = DeletionExtent { items: 1, of: 1, bytes: None };
        assert_eq!(asked(&one, "d"), "1 item (of 1) is to be deleted at d. Delete it? [y/N] ");
    }
}
