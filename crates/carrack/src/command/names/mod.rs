//! Carrack under the name of an older program: a link named `bbcp` or `globus-url-copy` takes that program's lines.
//!
//! [`mod@line`] takes a line apart by that program's table (`cli::foreign`), [`bbcp`] and [`guc`] translate it into
//! [`step`]s, which are lines of `carrack copy`, and [`runner`] makes the copies and has them told in the program's
//! words. Nothing further in knows of it.
//!
//! Where data is at stake the other program's default holds: bbcp replaces nothing without `-f` and keeps no times
//! without `-p`. What it would do unsafely is done safely: a name gets its file when the file is whole and verified.

mod bbcp;
mod guc;
mod line;
mod links;
mod programs;
mod runner;
mod step;
mod told;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

pub use links::{command, run};

/// A program whose lines are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalledAs {
    /// `bbcp`
    Bbcp,
    /// `globus-url-copy`
    GlobusUrlCopy,
}

impl CalledAs {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Bbcp, Self::GlobusUrlCopy];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bbcp => "bbcp",
            Self::GlobusUrlCopy => "globus-url-copy",
        }
    }

    /// The program that Carrack was called as, by the first word of its line.
    pub fn called(program: &OsStr) -> Option<Self> {
        let name = Path::new(program).file_name()?;
        Self::ALL.into_iter().find(|old| name == old.name())
    }

    /// Runs the line of the program (its name first), and answers with the exit code.
    pub fn run(self, arguments: Vec<OsString>) -> u8 {
        let words: Vec<Vec<u8>> = arguments.into_iter().skip(1).map(OsStringExt::into_vec).collect();
        match self {
            Self::Bbcp => bbcp::run(&words),
            Self::GlobusUrlCopy => guc::run(&words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_files() {
        for (program, name) in [
            ("bbcp", Some(CalledAs::Bbcp)),
            ("/opt/x/bbcp", Some(CalledAs::Bbcp)),
            ("./globus-url-copy", Some(CalledAs::GlobusUrlCopy)),
            ("carrack", None),
            ("/bbcp/carrack", None),
            ("bbcp2", None),
            ("", None),
            ("/", None),
        ] {
            assert_eq!(CalledAs::called(OsStr::new(program)), name, "{program}");
        }
    }
}
