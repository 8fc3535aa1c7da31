//! The clocks.

use super::{Check, Limit, Rule, Threshold, Told, View};
use crate::finding::EvidenceClass::{Kernel, Ours};
use crate::known::{Known, Unknown};
use std::time::Duration;

use crate::units;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "clock.synchronised",
        threshold: Threshold::plain("somebody keeps the clock right"),
        reason: "tokens, times of files and logs of two hosts are compared with each other",
        source: "adjtimex(2)",
        class: Kernel,
        check: Check::Host(synchronised),
    },
    Rule {
        id: "clock.offset",
        threshold: Threshold::of("less than {} from the clock of the host that asks", &[Limit::Time(OFFSET)]),
        reason: "a token that is valid for a time is refused by a clock that is off",
        source: "RFC 7519",
        class: Ours,
        check: Check::Host(offset),
    },
];

/// How far the clocks of two hosts may be apart.
const OFFSET: Duration = Duration::from_secs(1);
const MEND: &str = "systemctl enable --now chronyd   # or: timedatectl set-ntp true";

fn synchronised(view: &View<'_>) -> Known<Vec<Told>> {
    let (is, error) = view.facts.clock_discipline()?;
    if is {
        return Ok(vec![Told::ok(format!("synchronised, within {}", units::time(error)))]);
    }
    // A program may keep it without telling the kernel; the kernel's word is what others go by.
    let told = Told::warning("no time service is running");
    Ok(vec![told.costs("times that cannot be compared with another host's").command(MEND)])
}

fn offset(view: &View<'_>) -> Known<Vec<Told>> {
    let most = OFFSET.as_secs_f64();
    if view.facts.evidence().get("clock/asked").is_none() {
        return Ok(Vec::new());
    }
    let offset = view.facts.clock_offset()?;
    let off = offset.least.abs();
    let time = |seconds: f64| units::time(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    if off >= most {
        let way = if offset.least > 0.0 { "ahead" } else { "behind" };
        let told = Told::warning(format!("at least {} {way}", time(off)));
        return Ok(vec![
            told.costs("tokens that are refused, and files that seem to come from the future").command(MEND),
        ]);
    }
    if off + offset.within < most || off == 0.0 {
        return Ok(vec![Told::ok(format!("no more than {} apart", time(off + offset.within)))]);
    }
    Err(Unknown::because(format!("the answer took {}, and the clock may be off by as much", time(offset.within))))
}
