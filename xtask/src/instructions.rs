//! Instructions that the hot loop takes for each KiB, counted by callgrind: unlike seconds they are the same on a busy
//! machine. What was counted when the loop was last looked at is kept beside the benchmarks.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Finding, cargo};

/// Where the counts are kept: a way and its instructions for each KiB, one a line.
const KEPT: &str = "bench/instructions.txt";
/// Compilers differ by a few per cent; a copy more, or a look at each byte more, does not hide in this.
const TOLERANCE: f64 = 0.10;
/// The difference of two runs leaves out what starting takes.
const MIB: [u64; 2] = [16, 48];

/// `instructions`.
pub fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let kept = fs::read_to_string(root.join(KEPT)).map_err(|error| format!("{KEPT}: {error}"))?;
    let built = cargo()
        .args("build --release --locked -p carrack-engine --example hot_loop".split(' '))
        .current_dir(root)
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if !built.success() {
        return Err("hot_loop could not be built".into());
    }
    let mut findings = Vec::new();
    for (place, line) in kept.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let (way, expected) = parse(line).ok_or_else(|| format!("{KEPT}:{}: not a way and a number", place + 1))?;
        let [few, many] = [count(root, way, MIB[0])?, count(root, way, MIB[1])?];
        let found = many.saturating_sub(few) as f64 / ((MIB[1] - MIB[0]) * 1024) as f64;
        println!("{way}: {found:.0} instructions for each KiB, {expected:.0} kept");
        if (found / expected - 1.0).abs() > TOLERANCE {
            let what = format!("{way}: {found:.0} instructions for each KiB; explain it, and keep it here, or mend it");
            findings.push(Finding::new(KEPT, place + 1, what));
        }
    }
    Ok(findings)
}

fn parse(line: &str) -> Option<(&str, f64)> {
    let (way, count) = line.split_once(' ')?;
    count.trim().parse().ok().filter(|count| *count > 0.0).map(|count| (way, count))
}

fn count(root: &Path, way: &str, mib: u64) -> Result<u64, String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(root.join("target/release/examples/hot_loop"))
        .args([way, &mib.to_string()])
        .output()
        .map_err(|error| format!("valgrind: {error}; it is in the package valgrind"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(format!("hot_loop {way} {mib} under valgrind: {}: {}", output.status, said.trim()));
    }
    collected(&said).ok_or_else(|| format!("valgrind counted nothing: {}", said.trim()))
}

/// From `==123== Collected : 4567`.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valgrind_output_is_understood() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 123456\n==7==\n"), Some(123_456));
        assert_eq!(collected("==7== no such tool\n"), None);
        assert_eq!(parse("tls 1234"), Some(("tls", 1234.0)));
        assert_eq!(parse("tls"), None);
        assert_eq!(parse("tls 0"), None);
    }
}
