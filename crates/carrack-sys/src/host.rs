//! Facts about this machine and this process.

use rustix::process::{Pid, Resource, Rlimit};
use std::io;

/// Fills `bytes` with what nobody can guess: keys, secrets, names of temporary files.
pub fn random_bytes(bytes: &mut [u8]) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if !crate::PORTABLE {
        match random_from_kernel(bytes) {
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {}
            other => return Ok(other?),
        }
    }
    random_from_device(bytes)
}

#[cfg(target_os = "linux")]
fn random_from_kernel(bytes: &mut [u8]) -> Result<(), rustix::io::Errno> {
    let mut filled = 0;
    while filled < bytes.len() {
        let flags = rustix::rand::GetRandomFlags::empty();
        filled += crate::retry(|| rustix::rand::getrandom(&mut bytes[filled..], flags))?;
    }
    Ok(())
}

fn random_from_device(bytes: &mut [u8]) -> io::Result<()> {
    use std::io::Read;
    std::fs::File::open("/dev/urandom")?.read_exact(bytes)
}

/// Processors this process may use, by affinity and by the container's quota.
pub fn cpu_count() -> usize {
    // The standard library asks sched_getaffinity and the control group.
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Whether AES-GCM runs in hardware; without it ChaCha20-Poly1305 is several times faster.
pub fn has_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    let found = is_x86_feature_detected!("aes") && is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    let found = std::arch::is_aarch64_feature_detected!("aes") && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let found = false;
    found
}

/// Raises the soft limit of open files to the hard one; returns the limit then in force
/// (`u64::MAX` for none).
pub fn raise_open_files_limit() -> u64 {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // macOS refuses more than OPEN_MAX; the old limit then stands, and is what we return.
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
    let in_force = rustix::process::getrlimit(Resource::Nofile);
    in_force.current.unwrap_or(u64::MAX)
}

/// The most memory this process ever held at once, in bytes.
pub fn peak_memory_bytes() -> u64 {
    // ru_maxrss is in kibibytes, except on macOS, where it is in bytes.
    let unit = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
    let peak = usage(libc::RUSAGE_SELF).ru_maxrss;
    u64::try_from(peak).unwrap_or(0).saturating_mul(unit)
}

/// Processor time used so far, by this process and by the children it has waited for, in user and
/// system mode together.
pub fn cpu_seconds() -> f64 {
    cpu_seconds_of(libc::RUSAGE_SELF) + children_cpu_seconds()
}

/// Processor time of the children that this process has waited for, and of those that they have waited for, in user and
/// system mode together.
pub fn children_cpu_seconds() -> f64 {
    cpu_seconds_of(libc::RUSAGE_CHILDREN)
}

fn cpu_seconds_of(whose: libc::c_int) -> f64 {
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let used = usage(whose);
    seconds(used.ru_utime) + seconds(used.ru_stime)
}

#[allow(unsafe_code)]
fn usage(whose: libc::c_int) -> libc::rusage {
    // SAFETY: rusage is integers only; it is writable for the call, which fills it or leaves the
    // zeros, and cannot fail for these two values of `whose`.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(whose, &mut usage);
        usage
    }
}

/// For a process that serves many peers for months: memory for what is large is given back to the system as soon as it
/// is not used any more, and few threads have heaps of their own. glibc else keeps what a hundred sessions needed at
/// their busiest, in a heap for each of a hundred threads. Other allocators are left as they are.
pub fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code)]
    // SAFETY: mallopt takes two numbers and touches nothing but the allocator's own settings, under its own lock.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 1 << 20);
        libc::mallopt(libc::M_ARENA_MAX, 4);
    }
}

/// Ends the process with this exit code, as it is: destructors of libraries do not run, and nothing is flushed. Threads
/// may still be at work, such as one that dials a connection that nobody needs any more. Where the destructors of
/// AWS-LC have begun to run, a thread that asks it for random bytes aborts the process.
pub fn exit_at_once(code: u8) -> ! {
    #[allow(unsafe_code)]
    // SAFETY: it ends the process and does not return; nothing of this process is used after it.
    unsafe {
        libc::_exit(code.into())
    }
}

/// Whether a process of this number exists, whoever owns it; one that ended but was not waited
/// for still does. Numbers are used again: this can say "gone", never "still the same one".
pub fn process_alive(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return false;
    };
    match rustix::process::test_kill_process(pid) {
        Ok(()) => true,
        Err(error) => error == rustix::io::Errno::PERM,
    }
}

/// When a process began, in ticks since the boot; with its number this is the same for no two processes of one boot.
/// `None` where nobody says: off Linux, for hidden processes, and where `/proc` counts in another namespace.
pub fn process_began(pid: u32) -> Option<u64> {
    let own = std::fs::read_link("/proc/self").ok()?;
    if own.to_str() != Some(&std::process::id().to_string()) {
        return None;
    }
    began_in(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The 22nd field. The second, the program's name in brackets, may have blanks and brackets in it.
fn began_in(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Processor time that the calling thread has used so far.
pub fn thread_cpu_time() -> std::time::Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    std::time::Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Tells this boot of the machine from all others; zeros where the system does not say. What was written since, synced
/// or not, is still there for this boot.
pub fn boot_id() -> [u8; 16] {
    let digits: Vec<u8> = boot_text().bytes().filter(u8::is_ascii_hexdigit).collect();
    let mut id = [0; 16];
    if digits.len() == 2 * id.len() {
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).unwrap_or_default();
            *byte = u8::from_str_radix(pair, 16).unwrap_or_default();
        }
    }
    id
}

/// Tells this running system and this mount namespace from all others; of a system that says neither, one space.
pub fn host_id() -> String {
    let mounts = std::fs::read_link("/proc/self/ns/mnt").map(|link| link.display().to_string()).unwrap_or_default();
    format!("{} {mounts}", boot_text())
}

fn boot_text() -> String {
    read_line("/proc/sys/kernel/random/boot_id")
}

/// The operating system and its version, such as `Linux 6.8.0`; empty where it cannot be asked.
pub fn system_version() -> String {
    let words = ["/proc/sys/kernel/ostype", "/proc/sys/kernel/osrelease"].map(read_line);
    words.join(" ").trim().to_owned()
}

/// This host's name, as it calls itself; empty where it does not say.
pub fn host_name() -> String {
    read_line("/proc/sys/kernel/hostname")
}

/// A file of one line without its end; empty where it cannot be read.
fn read_line(path: &str) -> String {
    std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// The program that runs in this process, as a file's bytes.
///
/// # Errors
/// Where its file cannot be found or read.
pub fn own_program() -> std::io::Result<Vec<u8>> {
    // Linux' own way to the file also leads to one that was replaced meanwhile: a long copy that
    // connects again goes on as it is.
    std::fs::read("/proc/self/exe").or_else(|_| std::env::current_exe().and_then(std::fs::read))
}

/// This host's clock, by which it keeps files' times.
pub fn clock() -> crate::dir::FileTime {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    crate::dir::FileTime { seconds: now.tv_sec, nanos: u32::try_from(now.tv_nsec).unwrap_or(0) }
}

/// Tells this machine from all others, also after a reboot; containers may share it with their host, and clones with
/// each other. Where the system has no such number, its name has to do.
pub fn machine_id() -> String {
    let read = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_string());
    let first = |paths: &[&str], fits: fn(&String) -> bool| paths.iter().filter_map(|path| read(path).ok()).find(fits);
    // "uninitialized", or nothing, is what an image has before its first boot.
    let is_number = |id: &String| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    first(&["/etc/machine-id", "/var/lib/dbus/machine-id"], is_number)
        .or_else(|| first(&["/proc/sys/kernel/hostname", "/etc/hostname"], |name| !name.is_empty()))
        .unwrap_or_default()
}

/// Seconds since 1970 by this host's clock, as files' times are kept; negative before.
pub fn clock_seconds() -> i64 {
    rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec
}

/// The congestion control that this host gives to new connections; empty where it cannot be asked.
pub fn default_congestion_control() -> String {
    read_line("/proc/sys/net/ipv4/tcp_congestion_control")
}

/// The congestion controls that every user of this host may choose, separated by spaces; empty
/// where it cannot be asked.
pub fn allowed_congestion_controls() -> String {
    read_line("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
}

/// The user whose rights this process has (the effective id).
pub fn user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The groups whose rights this process has, the effective one first.
pub fn group_ids() -> Vec<u32> {
    let others = rustix::process::getgroups().unwrap_or_default();
    std::iter::once(rustix::process::getegid()).chain(others).map(rustix::process::Gid::as_raw).collect()
}

const CAP_SYS_ADMIN: u32 = 21;
const CAP_MKNOD: u32 = 27;
const CAP_SETFCAP: u32 = 31;

/// Whether this process may give programs capabilities; a container may keep it from root.
pub fn may_set_capabilities() -> bool {
    has_capability(CAP_SETFCAP)
}

/// Whether this process may make devices.
pub fn may_make_devices() -> bool {
    has_capability(CAP_MKNOD)
}

/// Whether the system shows this process extended attributes that only root sees (`trusted.`). Root of a container is
/// another one.
pub fn sees_trusted_attributes() -> bool {
    let all = |map: String| map.split_whitespace().eq(["0", "0", "4294967295"]);
    has_capability(CAP_SYS_ADMIN) && std::fs::read_to_string("/proc/self/uid_map").is_ok_and(all)
}

fn has_capability(number: u32) -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/thread-self/status") else { return false };
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    bits >> number & 1 == 1
}

/// Asks a process that this one started to end; one that has ended already is no error.
pub fn terminate(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // ESRCH: it has ended.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// Asks a process group that this process started to end, or ends it: the process of this number leads it. A group that
/// has ended already is no error.
pub fn end_group(leader: u32, at_once: bool) {
    let group = i32::try_from(leader).ok().and_then(Pid::from_raw);
    let signal = if at_once { rustix::process::Signal::KILL } else { rustix::process::Signal::TERM };
    if let Some(group) = group {
        // ESRCH: it has ended.
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_fill_and_differ() {
        for fill in [random_bytes, random_from_device] {
            let (mut one, mut two) = ([0; 1000], [0; 1000]);
            fill(&mut one).unwrap();
            fill(&mut two).unwrap();
            assert_ne!(one, two);
            assert!(one[992..].iter().any(|&byte| byte != 0));
        }
        random_bytes(&mut []).unwrap();
    }

    #[test]
    fn facts_are_plausible() {
        assert!(cpu_count() >= 1);
        assert!(peak_memory_bytes() > 100_000);
        assert!(cpu_seconds() >= 0.0);
        assert_eq!(boot_id(), boot_id());
        assert_eq!(machine_id(), machine_id());
        assert_eq!(boot_id() != [0; 16], std::path::Path::new("/proc/sys/kernel/random/boot_id").exists());
        let limit = raise_open_files_limit();
        assert!(limit > 2 && limit == raise_open_files_limit());
        #[cfg(target_os = "linux")]
        {
            let info = std::fs::read_to_string("/proc/cpuinfo").unwrap();
            let listed = info.split_whitespace().any(|word| word == "aes");
            assert_eq!(has_aes(), listed);
        }
    }

    #[test]
    fn groups_end_with_all_their_processes_and_their_time_is_counted_once_waited_for() {
        use std::io::Read;
        use std::os::unix::process::CommandExt;
        let before = children_cpu_seconds();
        let mut shell = std::process::Command::new("sh");
        // The pipe is closed once the shell and what it started have both ended.
        let script = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; echo; sleep 1000 & wait";
        let mut child =
            shell.args(["-c", script]).process_group(0).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut said = child.stdout.take().unwrap();
        said.read_exact(&mut [0]).unwrap();
        end_group(child.id(), true);
        said.read_to_end(&mut Vec::new()).unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(children_cpu_seconds() > before);
        end_group(u32::MAX, false);
    }

    #[test]
    fn processes_are_alive_until_waited_for() {
        assert!(process_alive(std::process::id()));
        assert!(!process_alive(0));
        assert!(!process_alive(u32::MAX));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        assert!(process_alive(pid));
        child.wait().unwrap();
        assert!(!process_alive(pid));
    }

    #[test]
    fn process_is_told_from_a_later_one_of_its_number() {
        let line = "1 (a ) (b) S 0 1 1 0 -1 4194560 98 0 0 0 1 2 0 0 20 0 1 0 424242 9 8";
        assert_eq!((began_in(line), began_in("1 (a) S 0"), began_in("")), (Some(424_242), None, None));
        let own = process_began(std::process::id());
        assert_eq!(own, process_began(std::process::id()));
        assert_eq!(process_began(u32::MAX), None);
        #[cfg(target_os = "linux")]
        {
            let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
            let later = process_began(child.id());
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(own.is_some() && own <= later, "{own:?} {later:?}");
        }
    }
}
