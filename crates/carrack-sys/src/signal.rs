//! Signals, turned into questions that the program asks when it is ready.
//!
//! A handler may interrupt anything, even the allocator, so ours only store to atomics
//! (signal-safety(7)). Nothing is woken: loops that can wait long pass a timeout and ask here.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Why the program should end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    /// `SIGINT`: the user pressed Ctrl-C.
    Interrupt,
    /// `SIGTERM`: a batch system or service manager wants an orderly end.
    Terminate,
    /// `SIGHUP`: the terminal, or the login that the program was started from, is gone.
    Hangup,
}

const INTERRUPT: u8 = 1;
const TERMINATE: u8 = 2;
const HANGUP: u8 = 3;

static STOP: AtomicU8 = AtomicU8::new(0);
static REPORT: AtomicBool = AtomicBool::new(false);
static RELOAD: AtomicBool = AtomicBool::new(false);

/// Takes over `SIGINT`, `SIGTERM` and `SIGUSR1`, and `SIGHUP` unless it is ignored (nohup(1)). Ignores `SIGPIPE` and
/// `SIGXFSZ`, whose calls then fail with `EPIPE` and `EFBIG`. A second `SIGINT` finds the default restored and ends the
/// program at once, for the user whose first was not enough. May be called again.
pub fn install() {
    // Rust ignores SIGPIPE at start-up, but a library may have changed that since.
    ignore(libc::SIGPIPE);
    ignore(libc::SIGXFSZ);
    handle(libc::SIGINT, on_interrupt, libc::SA_RESETHAND);
    handle(libc::SIGTERM, on_terminate, 0);
    handle(libc::SIGUSR1, on_report, 0);
    if !is_ignored(libc::SIGHUP) {
        handle(libc::SIGHUP, on_hangup, 0);
    }
}

/// Takes over `SIGHUP`, for a program that goes on without its terminal and reads its configuration again instead.
pub fn install_reload() {
    handle(libc::SIGHUP, on_reload, 0);
}

/// Whether the configuration is to be read again (`SIGHUP`) since the last call.
pub fn take_reload_request() -> bool {
    RELOAD.swap(false, Ordering::Relaxed)
}

/// The first request to end, which stays.
pub fn stop_requested() -> Option<StopSignal> {
    match STOP.load(Ordering::Relaxed) {
        INTERRUPT => Some(StopSignal::Interrupt),
        TERMINATE => Some(StopSignal::Terminate),
        HANGUP => Some(StopSignal::Hangup),
        _ => None,
    }
}

/// Whether a progress line was asked for (`SIGUSR1`) since the last call.
pub fn take_report_request() -> bool {
    REPORT.swap(false, Ordering::Relaxed)
}

fn stop(reason: u8) {
    // The first reason decides the exit code; a later one is kept out.
    let _ = STOP.compare_exchange(0, reason, Ordering::Relaxed, Ordering::Relaxed);
}

extern "C" fn on_interrupt(_: libc::c_int) {
    stop(INTERRUPT);
}

extern "C" fn on_terminate(_: libc::c_int) {
    stop(TERMINATE);
}

extern "C" fn on_hangup(_: libc::c_int) {
    stop(HANGUP);
}

extern "C" fn on_reload(_: libc::c_int) {
    RELOAD.store(true, Ordering::Relaxed);
}

extern "C" fn on_report(_: libc::c_int) {
    REPORT.store(true, Ordering::Relaxed);
}

#[allow(unsafe_code)]
fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int), flags: libc::c_int) {
    // SAFETY: sigaction is integers, a signal set and an optional pointer: zero is a value, and
    // the empty set on every system we build for.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    // Restarted calls keep a progress request from failing someone's read.
    action.sa_flags = libc::SA_RESTART | flags;
    // SAFETY: `action` is initialised and outlives the call; without SA_SIGINFO the handler is
    // called with one int, its signature, and it does only what signal-safety(7) allows.
    let done = unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    debug_assert_eq!(done, 0, "sigaction fails only for a signal that cannot be caught");
}

#[allow(unsafe_code)]
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: zero is a value for sigaction, and it is writable for the call, which changes nothing.
    unsafe {
        let mut found: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut found) == 0 && found.sa_sigaction == libc::SIG_IGN
    }
}

#[allow(unsafe_code)]
fn ignore(signal: libc::c_int) {
    // SAFETY: SIG_IGN runs no code; the call has no other effect on memory.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Signal, getpid, kill_process};

    #[allow(unsafe_code)]
    fn raise(signal: libc::c_int) {
        // SAFETY: sends this thread a signal that has a handler; it runs before raise returns.
        assert_eq!(unsafe { libc::raise(signal) }, 0);
    }

    #[allow(unsafe_code)]
    fn disposition(signal: libc::c_int) -> libc::sighandler_t {
        // SAFETY: zero is a value for sigaction, and it is writable for the call.
        unsafe {
            let mut found: libc::sigaction = std::mem::zeroed();
            assert_eq!(libc::sigaction(signal, std::ptr::null(), &mut found), 0);
            found.sa_sigaction
        }
    }

    // One test: handlers and answers belong to the whole process.
    #[test]
    fn signals_become_answers() {
        install();
        assert_eq!(stop_requested(), None);
        assert!(!take_report_request());
        raise(libc::SIGUSR1);
        assert!(take_report_request());
        assert!(!take_report_request());

        install_reload();
        assert!(!take_reload_request());
        raise(libc::SIGHUP);
        assert!(take_reload_request() && !take_reload_request());

        raise(libc::SIGINT);
        assert_eq!(stop_requested(), Some(StopSignal::Interrupt));
        assert_eq!(disposition(libc::SIGINT), libc::SIG_DFL);
        raise(libc::SIGTERM);
        assert_eq!(stop_requested(), Some(StopSignal::Interrupt));

        // Would end the test run were they not ignored.
        kill_process(getpid(), Signal::XFSZ).unwrap();
        kill_process(getpid(), Signal::PIPE).unwrap();
        install();
        assert_ne!(disposition(libc::SIGINT), libc::SIG_DFL);

        // As nohup(1) starts a program.
        ignore(libc::SIGHUP);
        install();
        assert_eq!(disposition(libc::SIGHUP), libc::SIG_IGN);
    }
}
