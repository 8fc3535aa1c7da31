//! Processors: what they are, and how their speed is governed.

use std::collections::BTreeMap;

use super::{About, FactText, Gatherer};

const FILES: &[&str] = &[
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/smt/active",
    "sys/devices/system/cpu/intel_pstate/no_turbo",
    "sys/devices/system/cpu/cpufreq/boost",
    "proc/loadavg",
];
/// Processors whose governor is asked for.
const PROCESSORS: usize = 4096;

pub(super) fn gather(facts: &mut Gatherer, _: About<'_>) {
    FILES.iter().for_each(|file| facts.file(file));
    let info = facts.read("proc/cpuinfo").map(|text| text.split("\n\n").next().unwrap_or_default().to_owned());
    // All processors of a host are alike: the first one is told.
    facts.put("proc/cpuinfo", info);
    governors(facts);
}

/// How many processors each governor has: there may be hundreds.
fn governors(facts: &mut Gatherer) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for number in 0..PROCESSORS {
        let place = format!("sys/devices/system/cpu/cpu{number}");
        if !facts.root.join(&place).exists() {
            break;
        }
        if let Ok(governor) = facts.read(&format!("{place}/cpufreq/scaling_governor")) {
            *counts.entry(governor.trim().to_owned()).or_default() += 1;
        }
    }
    let lines: Vec<String> = counts.iter().map(|(governor, count)| format!("{governor} {count}")).collect();
    let text = if lines.is_empty() { FactText::Absent } else { FactText::Found(lines.join("\n")) };
    facts.put("processor/governors", text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn governors_are_counted_and_one_processor_is_told() {
        let root = tempfile::tempdir().unwrap();
        for (number, governor) in ["powersave", "performance", "powersave"].iter().enumerate() {
            let place = root.path().join(format!("sys/devices/system/cpu/cpu{number}/cpufreq"));
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("scaling_governor"), format!("{governor}\n")).unwrap();
        }
        std::fs::create_dir_all(root.path().join("proc")).unwrap();
        std::fs::write(root.path().join("proc/cpuinfo"), "processor\t: 0\nflags\t: aes\n\nprocessor\t: 1\n").unwrap();
        let mut facts = Gatherer::at(root.path());
        gather(&mut facts, About::default());
        let text = |name: &str| facts.texts.iter().find(|(known, _)| known == name).unwrap().1.clone();
        assert_eq!(text("processor/governors"), FactText::Found("performance 1\npowersave 2".into()));
        assert_eq!(text("proc/cpuinfo"), FactText::Found("processor\t: 0\nflags\t: aes".into()));
        assert_eq!(text("sys/devices/system/cpu/smt/active"), FactText::Absent);
        let mut none = Gatherer::at(&root.path().join("proc"));
        governors(&mut none);
        assert_eq!(none.texts, [("processor/governors".to_owned(), FactText::Absent)]);
    }
}
