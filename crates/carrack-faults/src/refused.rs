//! System calls that the kernel refuses, as older kernels and older sandboxes do: by seccomp, for a thread and for all
//! that it starts.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};

/// A system call, or one flag or option of it, that an older kernel does not know.
#[derive(Clone, Copy, Debug)]
pub struct Newer {
    /// What the kernel's manual calls it.
    pub name: &'static str,
    call: libc::c_long,
    /// The arguments by which it is known: the place of each, the bits that count, and what they are.
    arguments: &'static [(u8, u64, u64)],
}

const fn call(name: &'static str, call: libc::c_long) -> Newer {
    Newer { name, call, arguments: &[] }
}

const fn flag(name: &'static str, call: libc::c_long, arguments: &'static [(u8, u64, u64)]) -> Newer {
    Newer { name, call, arguments }
}

/// Calls that came after Linux 3.10, as far as programs use them by themselves. `clone3` is left out: it is the C
/// library that calls it, and that of an old host does not know it.
pub const CALLS: &[Newer] = &[
    call("renameat2", libc::SYS_renameat2),
    call("getrandom", libc::SYS_getrandom),
    call("memfd_create", libc::SYS_memfd_create),
    call("execveat", libc::SYS_execveat),
    call("copy_file_range", libc::SYS_copy_file_range),
    call("preadv2", libc::SYS_preadv2),
    call("pwritev2", libc::SYS_pwritev2),
    call("statx", libc::SYS_statx),
    call("pidfd_send_signal", libc::SYS_pidfd_send_signal),
    call("pidfd_open", libc::SYS_pidfd_open),
    call("close_range", libc::SYS_close_range),
    call("openat2", libc::SYS_openat2),
    call("faccessat2", libc::SYS_faccessat2),
    call("cachestat", 451),
    call("fchmodat2", 452),
];

const SOL_SOCKET: u64 = libc::SOL_SOCKET as u64;
const IPPROTO_TCP: u64 = libc::IPPROTO_TCP as u64;
const WHOLE: u64 = u32::MAX as u64;

/// Flags and options that came after Linux 3.10, or that a file system need not know.
pub const FLAGS: &[Newer] = &[
    flag("O_TMPFILE", libc::SYS_openat, &[(2, 0o20_000_000, 0o20_000_000)]),
    flag("RENAME_NOREPLACE", libc::SYS_renameat2, &[(4, 1, 1)]),
    flag("RENAME_EXCHANGE", libc::SYS_renameat2, &[(4, 2, 2)]),
    flag("RWF_NOWAIT", libc::SYS_preadv2, &[(5, 8, 8)]),
    flag("RWF_DONTCACHE", libc::SYS_pwritev2, &[(5, 0x80, 0x80)]),
    flag("FALLOC_FL_PUNCH_HOLE", libc::SYS_fallocate, &[(1, 2, 2)]),
    flag("fallocate", libc::SYS_fallocate, &[(1, WHOLE, 0)]),
    flag("SO_MAX_PACING_RATE", libc::SYS_setsockopt, &[(1, WHOLE, SOL_SOCKET), (2, WHOLE, 47)]),
    flag("TCP_NOTSENT_LOWAT", libc::SYS_setsockopt, &[(1, WHOLE, IPPROTO_TCP), (2, WHOLE, 25)]),
];

/// As many refusals that refuse nothing: of calls that no kernel has, and of arguments that no call can have. So what
/// it costs to look at a call is the same, also where Linux remembers which calls it need not look at.
pub fn of_nothing(refused: &[Newer]) -> Vec<Newer> {
    const NO_CALL: libc::c_long = 5000;
    const NEVER: &[(u8, u64, u64)] = &[(0, WHOLE, 1), (0, WHOLE, 2)];
    let of_nothing = |newer: &Newer| match newer.arguments {
        [] => Newer { call: newer.call + NO_CALL, ..*newer },
        _ => Newer { arguments: NEVER, ..*newer },
    };
    refused.iter().map(of_nothing).collect()
}

/// Runs something on a thread for which these are refused with this error, and for all that it starts.
pub fn within<T: Send>(refused: &[Newer], error: i32, run: impl FnOnce() -> T + Send) -> T {
    let filter = filter(refused, error);
    std::thread::scope(|scope| {
        let filtered = scope.spawn(|| {
            apply_filter(&filter).unwrap();
            run()
        });
        filtered.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn filter(refused: &[Newer], error: i32) -> BpfProgram {
    let mut rules = BTreeMap::<i64, Vec<SeccompRule>>::new();
    for Newer { call, arguments, .. } in refused {
        let condition = |&(place, bits, value): &(u8, u64, u64)| {
            SeccompCondition::new(place, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), value).unwrap()
        };
        let of_call = rules.entry(*call).or_default();
        if !arguments.is_empty() {
            of_call.push(SeccompRule::new(arguments.iter().map(condition).collect()).unwrap());
        }
    }
    let refuse = SeccompAction::Errno(u32::try_from(error).unwrap());
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture).unwrap().try_into().unwrap()
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn refused_call_fails_for_the_thread_and_what_it_starts_and_for_nobody_else() {
        let directory = tempfile::tempdir().unwrap();
        let name = |name: &str| directory.path().join(name);
        std::fs::write(name("a"), "a").unwrap();
        let rename = |from: &str, to: &str, flags| renameat_with(CWD, name(from), CWD, name(to), flags);
        let renameat2 = CALLS.iter().find(|newer| newer.name == "renameat2").unwrap();
        let refused = within(&[*renameat2], libc::EPERM, || rename("a", "b", RenameFlags::NOREPLACE));
        assert_eq!(refused, Err(Errno::PERM));
        assert_eq!(rename("a", "b", RenameFlags::NOREPLACE), Ok(()));
        let no_replace = FLAGS.iter().find(|newer| newer.name == "RENAME_NOREPLACE").unwrap();
        std::fs::write(name("c"), "c").unwrap();
        within(&[*no_replace], libc::EINVAL, || {
            assert_eq!(rename("b", "d", RenameFlags::NOREPLACE), Err(Errno::INVAL));
            assert_eq!(rename("b", "c", RenameFlags::EXCHANGE), Ok(()));
        });
        // Ours has another way, which replaces nothing either. It asks once in a process: here.
        within(&[*renameat2], libc::EPERM, || {
            let here = carrack_sys::dir::Dir::open_ambient(directory.path()).unwrap();
            assert_eq!(here.rename_noreplace(b"c", &here, b"b").unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
            here.rename_noreplace(b"c", &here, b"e").unwrap();
            assert!(!name("c").exists() && name("e").exists());
        });
        std::fs::write(name("g"), "g").unwrap();
        within(&of_nothing(&[*renameat2, *no_replace]), libc::EPERM, || {
            assert_eq!(rename("g", "h", RenameFlags::NOREPLACE), Ok(()));
        });
        let told = within(&[*renameat2], libc::ENOSYS, || {
            std::process::Command::new("grep").args(["Seccomp:", "/proc/self/status"]).output().unwrap()
        });
        assert_eq!(String::from_utf8_lossy(&told.stdout).trim_end(), "Seccomp:\t2");
    }
}
