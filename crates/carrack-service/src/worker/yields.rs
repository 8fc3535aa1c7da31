//! What a worker gives up before it begins.

use std::fs;

use carrack_core::location::Location;
use rustix::thread::set_no_new_privs;

use super::EndOrder;

/// Of 1000: when memory runs out the kernel ends workers before the service, which has each of them begin anew.
const OOM_SCORE: &str = "500";

/// When memory runs out, this process goes before the service.
pub(super) fn go_first() {
    // Where it cannot be said, the kernel ends whatever takes most.
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE);
}

/// No program that the caller's thread and its children start gains rights by set-user-id or capabilities of its file.
/// With an end behind ssh they may: ssh-keysign proves the host by a key that only root reads.
pub(super) fn give_up_rights<'a>(ends: impl IntoIterator<Item = &'a EndOrder>) {
    if ends.into_iter().any(|end| matches!(end.location, Location::Ssh { .. })) {
        return;
    }
    // A kernel that does not know it, before 3.5, has it without.
    let _ = set_no_new_privs(true);
}

#[cfg(test)]
mod tests {
    use rustix::thread::no_new_privs;

    use super::*;

    #[test]
    fn worker_gives_up_rights_unless_it_needs_ssh() {
        let end = |text| EndOrder::at_location(Location::parse_document(text).unwrap());
        let (local, ssh) = (end("/"), end("ssh://lab/"));
        for (ends, expected) in [(vec![&local, &ssh], false), (vec![&local, &local], true)] {
            let told = std::thread::scope(|scope| {
                let work = || {
                    give_up_rights(ends);
                    no_new_privs().unwrap()
                };
                scope.spawn(work).join().unwrap()
            });
            assert_eq!(told, expected);
        }
    }
}
