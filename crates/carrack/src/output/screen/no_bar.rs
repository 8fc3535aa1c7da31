//! In place of [`bar`](super::bar) in a program without the feature `terminal`: there is no bar.

use carrack_core::report::Progress;

/// A bar that cannot be made.
pub enum Bar {}

impl Bar {
    /// There is no bar on a terminal.
    pub fn on_terminal() -> Option<Self> {
        None
    }

    /// There is no bar anywhere else.
    pub fn anywhere() -> Option<Self> {
        None
    }

    /// Never called.
    pub fn draw(&self, _: &Progress, _: Option<f64>) {
        match *self {}
    }

    /// Never called.
    pub fn suspend(&self, _: impl FnOnce()) {
        match *self {}
    }

    /// Never called.
    pub fn end(&self) {
        match *self {}
    }
}
