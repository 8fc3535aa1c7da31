//! A comparison with a receipt, and one without: the build that is sent to other hosts makes none.

use carrack_core::plan::check::CheckFinding;
use carrack_core::request::CopyOptions;
use carrack_engine::check::ComparisonReport;
use clap::Arg;
use serde_json::Value as Json;

use crate::cli::flags::Flags;
use crate::command::copy::options;
use crate::error::CommandError;
#[cfg(feature = "terminal")]
use crate::output::receipt::CheckReceipt;

/// The flag, where there are receipts.
pub fn arg() -> Option<Arg> {
    let help = "Write a signed account of the comparison: each item with its attributes, its digest if content is \
                compared, and what differs; `carrack verify` reads it";
    cfg!(feature = "terminal").then(|| options::RECEIPT.arg().help(help))
}

/// The receipt of a comparison, where one was asked for.
#[derive(Default)]
pub struct CheckSigning {
    #[cfg(feature = "terminal")]
    receipt: Option<CheckReceipt>,
}

#[cfg(feature = "terminal")]
impl CheckSigning {
    /// Before anything is compared.
    pub fn begin(flags: &Flags) -> Result<Self, CommandError> {
        let path = options::receipt(flags)?;
        Ok(Self { receipt: path.map(|path| CheckReceipt::create(&path)).transpose()? })
    }

    pub fn is_any(&self) -> bool {
        self.receipt.is_some()
    }

    /// Takes what was found at a path; `name` is the last one of what was named at the destination.
    pub fn found(&mut self, path: &[u8], name: &[u8], finding: &CheckFinding) {
        self.receipt.iter_mut().for_each(|receipt| receipt.found(path, name, finding));
    }

    /// Writes it, and gives the line and the object that say so.
    pub fn finish(
        self,
        places: [String; 2],
        report: &ComparisonReport,
        options: &CopyOptions,
    ) -> Result<Option<(String, Json)>, CommandError> {
        let Some(receipt) = self.receipt else { return Ok(None) };
        let made = receipt.finish(places, report, options)?;
        Ok(Some((made.line(), made.fields())))
    }
}

#[cfg(not(feature = "terminal"))]
impl CheckSigning {
    pub fn begin(_: &Flags) -> Result<Self, CommandError> {
        Ok(Self {})
    }

    pub fn is_any(&self) -> bool {
        false
    }

    pub fn found(&mut self, _: &[u8], _: &[u8], _: &CheckFinding) {}

    pub fn finish(
        self,
        _: [String; 2],
        _: &ComparisonReport,
        _: &CopyOptions,
    ) -> Result<Option<(String, Json)>, CommandError> {
        Ok(None)
    }
}
