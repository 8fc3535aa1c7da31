//! The slim program that this one carries for ssh hosts that have none: this program built with no features (`make run`
//! does it so), packed by the build script. A build that was not told of one carries none, and sends itself.

use carrack_core::request::Push;

/// What an ssh host without the program is sent, where `asked` lets it be sent one.
pub fn push(asked: Push) -> Push {
    match asked {
        Push::Itself(_) => BEST,
        other => other,
    }
}

#[cfg(not(slim_inside))]
const BEST: Push = Push::Itself(carrack_sys::host::own_program);
#[cfg(slim_inside)]
const BEST: Push = Push::Slim(&inside::PROGRAM);

#[cfg(slim_inside)]
mod inside {
    use std::io::Read;

    use carrack_core::request::SlimProgram;
    use flate2::read::GzDecoder;

    // `PROGRAM`, which names `unpack`.
    include!(concat!(env!("OUT_DIR"), "/slim.rs"));

    /// `None` if it is damaged: gzip's format has a checksum.
    pub fn unpack(gzip: &[u8]) -> Option<Vec<u8>> {
        let mut program = Vec::new();
        GzDecoder::new(gzip).read_to_end(&mut program).ok()?;
        Some(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn push_sends_nothing_where_nothing_may_be_sent() {
        assert!(matches!(push(Push::Never), Push::Never));
    }

    #[cfg(slim_inside)]
    #[test]
    fn slim_program_inside_is_whole_and_its_damage_is_noticed() {
        let Push::Slim(program) = push(Push::Itself(carrack_sys::host::own_program)) else { panic!("it is not sent") };
        let unpacked = (program.unpack)(program.gzip).expect("whole");
        assert_eq!(unpacked.len() as u64, program.size);
        let mut damaged = program.gzip.to_vec();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        assert_eq!((program.unpack)(&damaged), None);
        assert_eq!((program.unpack)(&program.gzip[..middle]), None);
    }
}
