//! Manual pages and completions, written by the binary itself from its own command line, so that
//! they cannot disagree with it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{cargo, output};

/// Each shell with the file name under which it looks for completions.
const SHELLS: &[(&str, &str)] = &[("bash", "carrack.bash"), ("fish", "carrack.fish"), ("zsh", "_carrack")];

pub fn pages(dir: &str) -> Result<(), String> {
    make(dir)?;
    output(carrack().args(["man", dir])).map(drop)
}

pub fn completions(dir: &str) -> Result<(), String> {
    make(dir)?;
    for (shell, file) in SHELLS {
        let script = output(carrack().args(["completions", shell]))?;
        let path = Path::new(dir).join(file);
        fs::write(&path, script).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    Ok(())
}

/// The binary, built first if it must be.
fn carrack() -> Command {
    let mut command = cargo();
    command.args("run --release -q --locked -p carrack --".split(' ')).stdin(Stdio::null());
    command
}

fn make(dir: &str) -> Result<(), String> {
    fs::create_dir_all(dir).map_err(|e| format!("cannot make {dir}: {e}"))
}
