//! Checks that the tests notice when a promise is broken: each mutation takes one safeguard out of a copy of the tree,
//! and a quick test that is named beside it must then fail. A mutation whose text is no longer found is an error, so
//! that the list cannot rot.

mod attributes;
mod borders;
mod check;
mod core;
mod engine;
mod exceptions;
mod grants;
mod measure;
mod options;
mod program;
mod receipt;
mod service;
mod speed;
mod storage;
mod sync;
mod tasks;

use std::collections::HashMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::{Finding, cargo, output};

/// A mutant that makes its test hang has been noticed, too: after so long, and so many times what the test takes
/// without it.
const PATIENCE: Duration = Duration::from_secs(20);
const PATIENCE_FACTOR: u32 = 4;
/// For a test that has not been run yet.
const FIRST_PATIENCE: Duration = Duration::from_secs(600);

/// One safeguard taken out.
struct Mutation {
    /// What is broken.
    name: &'static str,
    file: &'static str,
    /// Must be there exactly once.
    text: &'static str,
    replacement: &'static str,
    /// What follows `cargo test`.
    test: &'static str,
}

const fn mutation(
    name: &'static str,
    file: &'static str,
    [text, replacement]: [&'static str; 2],
    test: &'static str,
) -> Mutation {
    Mutation { name, file, text, replacement, test }
}

const CORE: &str = "-p carrack-core --lib";
const SIMULATION: &str = "-p carrack-core --lib simulation";
const SYS: &str = "-p carrack-sys --lib";
const ENGINE: &str = "-p carrack-engine --lib";
const TOKEN: &str = "-p carrack --bin carrack tokens::";
const KNOWN_NODES: &str = "-p carrack-engine --lib control::known_nodes::";
const DIAL: &str = "-p carrack-engine --lib data::dial::";
const HOSTILE: &str = "-p carrack-engine --test hostile";
const BINARY: &str = "-p carrack --bin carrack";
const DISK: &str = "-p carrack --test system disk::";
const COLLECT: &str = "-p carrack-engine --lib storage::posix::collect::tests";
const FAULTS: &str = "-p carrack --test system faults::";
const STORES: &str = "-p carrack-engine --test stores";

/// By what they are about.
const MUTATIONS: &[&[Mutation]] = &[
    borders::MUTATIONS,
    check::MUTATIONS,
    core::MUTATIONS,
    engine::MUTATIONS,
    grants::MUTATIONS,
    storage::MUTATIONS,
    sync::MUTATIONS,
    attributes::MUTATIONS,
    exceptions::MUTATIONS,
    options::MUTATIONS,
    program::MUTATIONS,
    service::MUTATIONS,
    speed::MUTATIONS,
    measure::MUTATIONS,
    receipt::MUTATIONS,
    tasks::MUTATIONS,
];

/// Runs those whose name or test contains one of `words`; without words, all.
pub fn check(root: &Path, words: &[&str]) -> Result<Vec<Finding>, String> {
    let copy = root.join("target/mutants/tree");
    let is_chosen = |mutation: &&Mutation| {
        words.is_empty() || words.iter().any(|word| mutation.name.contains(word) || mutation.test.contains(word))
    };
    let chosen: Vec<&Mutation> = MUTATIONS.iter().copied().flatten().filter(is_chosen).collect();
    if chosen.is_empty() {
        return Err(format!("no mutation, and no test of one, contains any of {words:?}"));
    }
    mirror(root, &copy)?;
    // Tests that need a disk work in the target directory beside the sources.
    fs::create_dir_all(copy.join("target")).map_err(|e| format!("cannot make a target directory: {e}"))?;
    // All are looked for first: a rotten list is found before an hour of tests.
    for mutation in &chosen {
        mutated(mutation, &read(&copy.join(mutation.file))?)?;
    }
    let mut tests: Vec<&str> = chosen.iter().map(|mutation| mutation.test).collect();
    tests.sort_unstable();
    tests.dedup();
    let mut patience = HashMap::new();
    for test in tests {
        let (passed, took) = passes(&copy, test, FIRST_PATIENCE)?;
        if !passed {
            return Err(format!("cargo test {test} fails without any mutation"));
        }
        patience.insert(test, PATIENCE + PATIENCE_FACTOR * took);
    }
    let mut findings = Vec::new();
    for mutation in chosen {
        let path = copy.join(mutation.file);
        let text = read(&path)?;
        write(&path, &mutated(mutation, &text)?)?;
        let survived = passes(&copy, mutation.test, patience[mutation.test]);
        write(&path, &text)?;
        // One that cannot be built proves nothing, and is no reason to leave out the others.
        let (end, what) = match survived {
            Ok((false, _)) => ("caught", None),
            Ok((true, _)) => ("SURVIVED", Some(format!("`cargo test {}` passes", mutation.test))),
            Err(why) => ("NOT BUILT", Some(why)),
        };
        println!("{}: {end}", mutation.name);
        if let Some(what) = what {
            let line = text[..text.find(mutation.text).unwrap_or(0)].lines().count() + 1;
            findings.push(Finding::new(mutation.file, line, format!("{}: {what}", mutation.name)));
        }
    }
    Ok(findings)
}

fn mutated(mutation: &Mutation, text: &str) -> Result<String, String> {
    match text.matches(mutation.text).count() {
        1 => Ok(text.replace(mutation.text, mutation.replacement)),
        count => {
            Err(format!("{}: {} has {count} places like {:?}, not one", mutation.name, mutation.file, mutation.text))
        }
    }
}

/// Copies every file that git knows or would take; what is unchanged stays, so that little is built again.
fn mirror(root: &Path, copy: &Path) -> Result<(), String> {
    let listed = output(Command::new("git").current_dir(root).args(["ls-files", "-z", "-co", "--exclude-standard"]))?;
    let names: Vec<&str> = listed.split('\0').filter(|name| root.join(name).is_file()).collect();
    for old in files(&copy.join("crates")) {
        if !old.strip_prefix(copy).is_ok_and(|name| names.iter().any(|known| Path::new(known) == name)) {
            fs::remove_file(&old).map_err(|e| format!("cannot remove {}: {e}", old.display()))?;
        }
    }
    for name in names {
        let (from, to) = (root.join(name), copy.join(name));
        let fresh = fs::read(&from).map_err(|e| format!("cannot read {}: {e}", from.display()))?;
        if fs::read(&to).is_ok_and(|there| there == fresh) {
            continue;
        }
        let parent = to.parent().unwrap_or(copy);
        fs::create_dir_all(parent).map_err(|e| format!("cannot make {}: {e}", parent.display()))?;
        fs::copy(&from, &to).map_err(|e| format!("cannot copy to {}: {e}", to.display()))?;
    }
    Ok(())
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(path) = waiting.pop() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            (if is_directory { &mut waiting } else { &mut found }).push(entry.path());
        }
    }
    found
}

/// Whether tests pass in the copy in the time that is given them, and how long they took. That it cannot be built is
/// an error.
fn passes(copy: &Path, test: &str, patience: Duration) -> Result<(bool, Duration), String> {
    let (words, filter) = match test.rsplit_once(' ') {
        Some((words, filter)) if filter.contains("::") || filter == "simulation" => (words, Some(filter)),
        _ => (test, None),
    };
    let command = |more: &[&str]| {
        let mut command = cargo();
        command.current_dir(copy).env("CARGO_TARGET_DIR", copy.with_file_name("target")).stdin(Stdio::null());
        // Hundreds are linked and nobody debugs one.
        command.env("CARGO_PROFILE_DEV_DEBUG", "false");
        command.args(["test", "--locked"]).args(words.split(' ')).args(more);
        command
    };
    output(&mut command(&["--no-run"]))?;
    let mut run = command(filter.as_slice());
    // A group of its own: what a hung test has started ends with it.
    let child = run.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn();
    let mut child = child.map_err(|e| format!("cannot run {run:?}: {e}"))?;
    let start = Instant::now();
    loop {
        let ended: Option<ExitStatus> = child.try_wait().map_err(|e| format!("cannot wait for {run:?}: {e}"))?;
        match ended {
            Some(status) => return Ok((status.success(), start.elapsed())),
            None if start.elapsed() > patience => {
                output(Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]))?;
                let _ = child.wait();
                return Ok((false, patience));
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

#[cfg(test)]
mod tests;
