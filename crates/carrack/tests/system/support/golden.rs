//! Golden files: committed texts that a test compares with what the program shows now, so that each change of a help
//! text, a message or a JSON line is seen as a difference in a commit. `CARRACK_GOLDEN=write` rewrites them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The directory of the golden files.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Compares `shown` with a golden file, or writes it there where `CARRACK_GOLDEN=write` is set.
#[track_caller]
pub fn compare(name: &str, shown: &str) {
    let path = directory().join(name);
    if std::env::var_os("CARRACK_GOLDEN").is_some_and(|word| word == "write") {
        std::fs::create_dir_all(path.parent().expect("golden files have a directory")).expect("directory");
        return std::fs::write(&path, shown).expect("golden file");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    if golden == shown {
        return;
    }
    panic!(
        "{} is not what is shown now; see \"Golden files\" in docs/internals/testing.md\n{}",
        path.display(),
        difference(&path, shown)
    );
}

/// What `diff` says.
fn difference(golden: &Path, shown: &str) -> String {
    let mut diff = Command::new("diff");
    diff.arg("-uN").arg(golden).arg("-").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut diff = diff.spawn().expect("diff");
    // It ends early if the golden file cannot be read, and says so.
    let _ = diff.stdin.take().expect("piped").write_all(shown.as_bytes());
    String::from_utf8_lossy(&diff.wait_with_output().expect("diff ended").stdout).into_owned()
}
