//! The slim program, built for each kind of host that the installed targets allow, against the oldest glibc that Rust
//! serves: by zig, which has the symbols of every glibc. Where zig cannot be had, for this host alone.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{cargo, metadata, output};

/// A kind of host.
pub struct Target {
    /// As `rustc` names it.
    pub triple: &'static str,
    /// The oldest glibc that Rust's own library will do with.
    glibc: &'static str,
    /// The name of the file.
    pub name: &'static str,
    /// As Debian names the machine.
    pub debian: &'static str,
}

const TARGETS: &[Target] = &[
    Target { triple: "x86_64-unknown-linux-gnu", glibc: "2.17", name: "linux-x86_64", debian: "amd64" },
    Target { triple: "aarch64-unknown-linux-gnu", glibc: "2.17", name: "linux-aarch64", debian: "arm64" },
];

/// Where they are put, below the root; nothing else is there.
const DIRECTORY: &str = "target/agents";
/// Where zig and what calls it are put.
pub const ZIG: &str = "target/zig";
const BUILD: &[&str] = &["--profile", "slim", "--no-default-features", "--locked", "-p", "carrack"];
/// What AWS-LC leaves out of an agent.
const AWS_LC: &str = "xtask/aws-lc-small.h";
/// What zstd leaves out of one: the ways to compress of levels that no copy uses (the engine's `pieces` has 1 and 3),
/// words for errors that nobody is shown, and what unpacks at 2 GB/s instead of 1.
const ZSTD: &str = "-DZSTD_EXCLUDE_GREEDY_BLOCK_COMPRESSOR=1 -DZSTD_EXCLUDE_LAZY_BLOCK_COMPRESSOR=1 \
                    -DZSTD_EXCLUDE_LAZY2_BLOCK_COMPRESSOR=1 -DZSTD_EXCLUDE_BTLAZY2_BLOCK_COMPRESSOR=1 \
                    -DZSTD_EXCLUDE_BTOPT_BLOCK_COMPRESSOR=1 -DZSTD_EXCLUDE_BTULTRA_BLOCK_COMPRESSOR=1 \
                    -DZSTD_STRIP_ERROR_STRINGS=1 -DHUF_FORCE_DECOMPRESS_X1=1 \
                    -DZSTD_FORCE_DECOMPRESS_SEQUENCES_SHORT=1 -DZSTD_NO_INLINE=1 -fno-asynchronous-unwind-tables";

pub fn build(root: &Path, options: &[&str]) -> Result<(), String> {
    let is_plain = match options {
        [] => false,
        ["--plain"] => true,
        _ => return Err("it takes --plain or nothing".to_owned()),
    };
    let host = metadata::host()?;
    let zig = if is_plain { Err("--plain".to_owned()) } else { zig(root) };
    let built = match &zig {
        Ok(path) => with_zig(root, path)?,
        Err(why) => {
            eprintln!("agents: without zig ({why}): the agent starts only where glibc is no older than this host's");
            plain(root, &host)?
        }
    };
    let directory = root.join(DIRECTORY);
    let fault = |error: std::io::Error| format!("{DIRECTORY}: {error}");
    fs::create_dir_all(&directory).map_err(fault)?;
    for entry in fs::read_dir(&directory).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        if !built.iter().any(|(name, _)| entry.file_name() == name.as_str()) {
            fs::remove_file(entry.path()).map_err(fault)?;
        }
    }
    for (name, program) in built {
        let (from, to) = (fs::read(&program).map_err(fault)?, directory.join(&name));
        // Whoever packs it looks at its time.
        if fs::read(&to).ok().as_ref() != Some(&from) {
            fs::copy(&program, &to).map_err(fault)?;
        }
        println!("{DIRECTORY}/{name}: {} bytes", from.len());
    }
    Ok(())
}

/// The kind of host that `rustc` names so.
pub fn target(triple: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.triple == triple)
}

/// A search path on which zig is. It is installed first where it is not yet.
fn zig(root: &Path) -> Result<String, String> {
    let path = std::env::var("PATH").unwrap_or_default();
    Ok(format!("{}:{path}", tools(root, ZIG, "zig.txt")?))
}

/// The directory of the programs that a list names, put below the root where they are not yet.
pub fn tools(root: &Path, directory: &str, list: &str) -> Result<String, String> {
    let script = root.join("xtask/install-tools.sh");
    let mut install = Command::new("bash");
    install.arg(script).arg(root.join(directory)).arg(list).stdin(Stdio::null()).stderr(Stdio::inherit());
    let done = install.status().map_err(|error| format!("bash: {error}"))?;
    if !done.success() {
        return Err(format!("the programs of xtask/{list} cannot be installed"));
    }
    Ok(root.join(directory).join("bin").display().to_string())
}

type Built = Vec<(String, std::path::PathBuf)>;

fn with_zig(root: &Path, path: &str) -> Result<Built, String> {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let mut built = Vec::new();
    for Target { triple, glibc, name, .. } in TARGETS {
        if !Path::new(sysroot.trim()).join("lib/rustlib").join(triple).join("lib").is_dir() {
            eprintln!("agents: none for {name}: Rust's library for it is not installed (rustup target add {triple})");
            continue;
        }
        let mut zigbuild = cargo();
        zigbuild.arg("zigbuild").args(["--target", &format!("{triple}.{glibc}")]).args(BUILD).env("PATH", path);
        run(root, &mut zigbuild)?;
        built.push(((*name).to_owned(), metadata::target_directory(root).join(triple).join("slim/carrack")));
    }
    Ok(built)
}

fn plain(root: &Path, host: &str) -> Result<Built, String> {
    run(root, cargo().arg("build").args(BUILD))?;
    let name = target(host).map_or("own", |target| target.name);
    Ok(vec![(name.to_owned(), metadata::target_directory(root).join("slim/carrack"))])
}

/// Builds, with few bytes of AWS-LC: none of C's tables for unwinding, which Rust does not do through it.
fn run(root: &Path, build: &mut Command) -> Result<(), String> {
    let flags = format!("-include {} -fno-asynchronous-unwind-tables", root.join(AWS_LC).display());
    build.env("AWS_LC_SYS_SMALL", "0").env("AWS_LC_SYS_CFLAGS", flags).env("CFLAGS", ZSTD);
    let done = build.stdin(Stdio::null()).status().map_err(|error| format!("cannot run {build:?}: {error}"))?;
    if done.success() { Ok(()) } else { Err(format!("{build:?}: {done}")) }
}
