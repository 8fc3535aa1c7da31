//! A host without an agent is sent the slim program: over a stand-in for ssh that runs the line of shell here, with
//! tools that the test chooses.

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use carrack_core::agents::{AgentProgram, HostKind};
use carrack_core::location::SshHost;
use carrack_core::report::{ErrorCode, Failure, ProgramSent};
use carrack_core::request::{Push, Reach};

use super::program::Program;
use super::ssh;
use crate::stop::Stop;

/// What the line of shell may call.
const TOOLS: [&str; 14] =
    ["sh", "uname", "mkdir", "mktemp", "head", "wc", "chmod", "mv", "rm", "id", "ls", "cksum", "rmdir", "gzip"];

/// Speaks as an agent does before the first message, and then listens for ever.
const AGENT: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do case $1 in --hello) n=$2;; --speaks) s=1;; esac; shift; done
if [ "$s" ]; then echo $n; exit; fi
echo; echo "carrack-agent $n 4 0"; exec /bin/cat >/dev/null
"#;

/// A far side: its tools, its cache, and all that reached it.
struct Far {
    directory: tempfile::TempDir,
}

impl Far {
    fn new() -> Self {
        let far = Self { directory: tempfile::tempdir().unwrap() };
        std::fs::create_dir(far.path("bin")).unwrap();
        for name in TOOLS {
            let mut places = ["/usr/bin", "/bin"].iter().map(|directory| Path::new(directory).join(name));
            symlink(places.find(|path| path.exists()).unwrap(), far.path("bin").join(name)).unwrap();
        }
        let [bin, cache, heard] = ["bin", "cache", "heard"].map(|name| far.path(name).display().to_string());
        let line = "for line; do :; done";
        let environment = format!("PATH={bin} HOME=/nowhere XDG_CACHE_HOME={cache}");
        far.tool("rsh", &format!("{line}\n/usr/bin/tee {heard} | /usr/bin/env -i {environment} /bin/sh -c \"$line\""));
        far
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Puts a script among the tools, in the place of another.
    fn tool(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// Brings up an agent; tells what was sent, and how many bytes reached the far side.
    fn start(&self, program: &'static AgentProgram) -> Result<(Option<ProgramSent>, u64), Failure> {
        let rsh = self.path("bin/rsh").display().to_string();
        let reach = Reach {
            rsh: vec![rsh],
            push: Push::Agents(std::slice::from_ref(program), || Err(std::io::ErrorKind::NotFound.into())),
            ..Reach::default()
        };
        let note: Arc<dyn Fn(String) + Send + Sync> = Arc::new(|_| {});
        let session = ssh::start(&SshHost { user: None, host: "far".into() }, &reach, &Stop::new(), &note)?;
        // When its input has ended and it is gone, all that it got has been counted.
        drop(session.input);
        drop(session.child);
        Ok((session.sent, std::fs::metadata(self.path("heard")).unwrap().len()))
    }

    fn fails(&self, program: &'static AgentProgram, words: &str) {
        let Err(failure) = self.start(program) else { panic!("it started") };
        assert_eq!(failure.code, ErrorCode::AgentMissing, "{failure:?}");
        assert!(failure.message().contains(words), "{failure:?}");
        assert_eq!(self.cached(), Vec::<PathBuf>::new());
    }

    /// What the cache holds, whole or not.
    fn cached(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path("cache/carrack")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

fn gzip(arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let mut command = Command::new("gzip");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || pipe.write_all(input));
        let output = child.wait_with_output().unwrap();
        output.status.success().then_some(output.stdout)
    })
}

/// An agent of its own for each test, so that no cache has it.
fn agent() -> Vec<u8> {
    let mut unique = [0; 16];
    carrack_sys::host::random_bytes(&mut unique).unwrap();
    let line = format!("# {unique:?}\n");
    [AGENT.as_bytes(), line.repeat(3000).as_bytes()].concat()
}

/// A slim program whose compressed form has gone through `change`.
fn slim(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> &'static AgentProgram {
    let known = Program::itself(bytes.to_vec());
    let mut packed = gzip(&["-9nc"], bytes).unwrap();
    change(&mut packed);
    let packed: &'static [u8] = packed.leak();
    Box::leak(Box::new(AgentProgram {
        kind: HostKind::own(),
        gzip_size: packed.len() as u64,
        gzip: Arc::new(|| Ok(packed.into())),
        size: known.size,
        blake3: *blake3::hash(bytes).as_bytes(),
        cksum: known.cksum,
        unpack: |packed| gzip(&["-dc"], packed),
    }))
}

#[test]
fn push_sends_compressed_program_once_and_counts_bytes() {
    let (far, bytes) = (Far::new(), agent());
    let program = slim(&bytes, |_| {});
    let (sent, heard) = far.start(program).unwrap();
    let packed = program.gzip_size;
    let told = ProgramSent { host: "far".into(), slim: true, bytes: packed, size: program.size, compressed: true };
    assert_eq!((sent, heard), (Some(told), packed));
    assert!(packed < program.size / 10);
    let name = format!("agent-{}", &blake3::hash(&bytes).to_hex()[..32]);
    assert_eq!(far.cached(), [far.path("cache/carrack").join(name)]);
    assert_eq!(std::fs::read(&far.cached()[0]).unwrap(), bytes);
    assert_eq!(far.start(program).unwrap(), (None, 0));
}

#[test]
fn push_sends_program_unpacked_where_gzip_is_missing_or_broken() {
    for broken in [None, Some("exit 0"), Some("exit 1"), Some("[ $1 = -c ] && exec /bin/gzip -c; exit 1")] {
        let (far, bytes) = (Far::new(), agent());
        match broken {
            Some(script) => far.tool("gzip", script),
            None => std::fs::remove_file(far.path("bin/gzip")).unwrap(),
        }
        let program = slim(&bytes, |_| {});
        let (sent, heard) = far.start(program).unwrap();
        let sent = sent.unwrap();
        assert_eq!((sent.bytes, sent.compressed, heard), (program.size, false, program.size), "{broken:?}");
        assert_eq!(std::fs::read(&far.cached()[0]).unwrap(), bytes);
    }
}

#[test]
fn push_keeps_no_program_that_does_not_unpack() {
    let bytes = agent();
    let program = slim(&bytes, |packed| {
        let middle = packed.len() / 2;
        packed[middle..middle + 16].fill(0xff);
    });
    Far::new().fails(program, "gzip");
    let far = Far::new();
    std::fs::remove_file(far.path("bin/gzip")).unwrap();
    far.fails(program, "is damaged");
}

/// Well-formed, and not what was announced: as long as it, or not.
#[test]
fn push_keeps_no_program_other_than_announced() {
    for length in [0, 1, 60_000] {
        let bytes = agent();
        let mut other = bytes.clone();
        other[bytes.len() - 2] ^= 1;
        other.truncate(bytes.len() - length);
        let program = slim(&bytes, |packed| *packed = gzip(&["-9nc"], &other).unwrap());
        Far::new().fails(program, "it did not come whole");
    }
}

#[test]
fn push_reports_disk_that_is_full_while_unpacking() {
    let far = Far::new();
    let asked = far.path("asked").display().to_string();
    // The first time it is asked whether it works.
    let script =
        format!("[ $1 = -c ] && exec /bin/gzip -c\n[ -e {asked} ] && exec /bin/gzip -dc >/dev/full\n:>{asked}");
    far.tool("gzip", &format!("{script}\nexec /bin/gzip -dc"));
    far.fails(slim(&agent(), |_| {}), "No space left on device");
}

/// It came whole, and the loader of the far side refuses it: nothing is kept, and the sentence is about the host.
#[test]
fn push_tells_of_an_agent_that_does_not_start_in_a_sentence() {
    let version = "/lib64/libc.so.6: version \\`GLIBC_2.17' not found (required by $0)";
    for (script, words) in [
        (
            format!("echo \"$0: {version}\" >&2; exit 1"),
            "C library is too old for Carrack's agent: it has no GLIBC_2.17",
        ),
        ("echo \"sh: 1: $0: Exec format error\" >&2; exit 126".to_owned(), "does not run programs for the processor"),
    ] {
        let mut agent = format!("#!/bin/sh\n{script}\n").into_bytes();
        agent.extend_from_slice(&self::agent());
        Far::new().fails(slim(&agent, |_| {}), words);
    }
}
