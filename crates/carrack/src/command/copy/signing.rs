//! A copy with a receipt, and one without: the build that is sent to other hosts makes none.

use carrack_core::report::{Event, Report};
use carrack_core::request::CopyOptions;
use carrack_engine::Context;

use crate::error::CommandError;
use crate::output::Output;
#[cfg(feature = "terminal")]
use crate::output::receipt::Receipt;

/// The receipt of a copy, where one was asked for.
pub struct Signing {
    #[cfg(feature = "terminal")]
    receipt: Option<Receipt>,
}

#[cfg(feature = "terminal")]
impl Signing {
    /// Before anything is moved; `of` is what it is of.
    pub fn begin(path: Option<&[u8]>, of: &str) -> Result<Self, CommandError> {
        Ok(Self { receipt: path.map(|path| Receipt::create(path, of)).transpose()? })
    }

    /// Takes what a copy tells.
    pub fn event(&mut self, event: &Event) {
        self.receipt.iter_mut().for_each(|receipt| receipt.event(event));
    }

    /// Writes it, when the copy has ended.
    pub fn finish(
        self,
        output: &Output,
        report: &Report,
        options: &CopyOptions,
        context: &Context,
    ) -> Result<(), CommandError> {
        let Some(receipt) = self.receipt else { return Ok(()) };
        let made = receipt.finish(report, options, context)?;
        output.made(&made.line(), "receipt", made.fields());
        Ok(())
    }
}

#[cfg(not(feature = "terminal"))]
impl Signing {
    pub fn begin(_: Option<&[u8]>, _: &str) -> Result<Self, CommandError> {
        Ok(Self {})
    }

    pub fn event(&mut self, _: &Event) {}

    pub fn finish(self, _: &Output, _: &Report, _: &CopyOptions, _: &Context) -> Result<(), CommandError> {
        Ok(())
    }
}
