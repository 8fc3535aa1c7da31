//! The clock: what it shows, and whether the kernel says that somebody keeps it right.

use super::{About, FactText, Gatherer};

pub(super) fn gather(facts: &mut Gatherer, _: About<'_>) {
    facts.file("sys/devices/system/clocksource/clocksource0/current_clocksource");
    if !facts.is_host() {
        return;
    }
    facts.put("clock/discipline", discipline());
    // It is read where nothing that takes long follows: whoever asks knows between which two moments that was.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    facts.put("clock/now", FactText::Found(now.as_nanos().to_string()));
}

/// `adjtimex(2)`: whether the clock is synchronised, and how wrong it may be.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn discipline() -> FactText {
    // SAFETY: all fields are integers, for which zeros are values.
    let mut told: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is whole and this thread's own; with `modes` zero the call only reads.
    let state = unsafe { libc::adjtimex(&mut told) };
    if state < 0 {
        return std::io::Error::last_os_error().into();
    }
    let synchronised = state != libc::TIME_ERROR && told.status & libc::STA_UNSYNC == 0;
    FactText::Found(format!(
        "synchronised {}\nestimated-error-us {}\nmaximum-error-us {}\n",
        u8::from(synchronised),
        told.esterror,
        told.maxerror
    ))
}

#[cfg(not(target_os = "linux"))]
fn discipline() -> FactText {
    FactText::Failed("this system does not tell whether its clock is synchronised".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn clock_tells_the_time_and_who_keeps_it() {
        let mut facts = Gatherer::at(Path::new("/"));
        gather(&mut facts, About::default());
        let text = |name: &str| facts.texts.iter().find(|(known, _)| known == name).unwrap().1.clone();
        let FactText::Found(now) = text("clock/now") else { panic!() };
        assert!((now.parse::<u128>().unwrap() / 1_000_000_000).abs_diff(crate::host::clock_seconds() as u128) < 60);
        #[cfg(target_os = "linux")]
        assert!(matches!(text("clock/discipline"), FactText::Found(text) if text.starts_with("synchronised ")));
        // What was put into a directory has no clock.
        let mut facts = Gatherer::at(Path::new("/proc/self"));
        gather(&mut facts, About::default());
        assert_eq!(facts.texts.len(), 1);
    }
}
