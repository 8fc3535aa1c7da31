//! The report of one small file that went as files usually go: a line.

use carrack_core::report::{Counts, Report};
use carrack_core::request::{Encrypt, LinkKind, MainDigest, Verify};

/// A file up to this size is small.
const SMALL_BYTES: u64 = 16 << 20;

/// The lines of a report, or the first alone where the others say what is always so.
pub fn shortened(report: &Report, mut lines: Vec<String>) -> Vec<String> {
    // How it was verified, by which way it went, what limited it, that it is durable: if there is more, it is told.
    let usual = [report.verify.is_some(), report.link.is_some(), report.limit.is_some(), report.durable.is_some()];
    let usual = usual.into_iter().filter(|is_told| *is_told).count();
    if !is_usual(report) || lines.len() != 1 + usual {
        return lines;
    }
    lines.truncate(1);
    lines.iter_mut().for_each(|line| line.push_str("; verified, durable"));
    lines
}

fn is_usual(report: &Report) -> bool {
    let Counts { files, bytes, symlinks, directories, .. } = report.counts;
    let is_small = files == 1 && bytes <= SMALL_BYTES && symlinks == 0 && directories == 0;
    let is_secret =
        report.encrypt != Some(Encrypt::None) || report.link.as_ref().is_some_and(|link| link.kind == LinkKind::Memory);
    let is_proved = report.verify == Some(Verify::Wire) && report.digest == Some(MainDigest::Blake3);
    is_small
        && is_secret
        && is_proved
        && report.durable == Some(true)
        && report.error.is_none()
        && report.failures.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::human;

    #[test]
    fn one_small_file_is_told_in_one_line_unless_something_is_unusual() {
        let small = Report {
            counts: Counts { files: 1, bytes: 5, ..Counts::default() },
            verify: Some(Verify::Wire),
            digest: Some(MainDigest::Blake3),
            encrypt: Some(Encrypt::Tls),
            durable: Some(true),
            ..Report::default()
        };
        let told = |report: &Report| shortened(report, human::report(report, false));
        let lines = told(&small);
        assert!(lines.len() == 1 && lines[0].starts_with("copied 1 file, 5 bytes in "), "{lines:?}");
        assert!(lines[0].ends_with("; verified, durable"), "{lines:?}");
        for unusual in [
            Report { durable: Some(false), ..small.clone() },
            Report { verify: Some(Verify::None), ..small.clone() },
            Report { encrypt: Some(Encrypt::None), ..small.clone() },
            Report { digest: Some(MainDigest::Xxh128), ..small.clone() },
            Report { counts: Counts { files: 1, bytes: SMALL_BYTES + 1, ..Counts::default() }, ..small.clone() },
            Report { counts: Counts { files: 2, bytes: 5, ..Counts::default() }, ..small.clone() },
            Report { counts: Counts { files: 1, bytes: 5, files_resumed: 1, ..Counts::default() }, ..small.clone() },
        ] {
            assert!(told(&unusual).len() > 1, "{unusual:?}");
        }
    }
}
