//! What was found of a host, and hosts with other answers.

use carrack_core::evidence::EvidenceText;
use carrack_doctor::{Finding, Host, HostSide};

/// What a rule has found at a side.
pub fn of<'a>(findings: &'a [Finding], side: HostSide, rule: &str) -> Vec<&'a Finding> {
    findings.iter().filter(|finding| finding.side == Some(side) && finding.rule == rule).collect()
}

/// The only thing that it has found there.
pub fn one<'a>(findings: &'a [Finding], side: HostSide, rule: &str) -> &'a Finding {
    match of(findings, side, rule)[..] {
        [finding] => finding,
        ref other => panic!("{rule}: {other:#?}"),
    }
}

/// The line that mends it.
pub fn line(finding: &Finding) -> String {
    finding.fix.as_ref().map(|fix| fix.line()).unwrap_or_default()
}

/// The same host with other answers to some questions.
pub fn with(mut host: Host, texts: &[(&str, &str)]) -> Host {
    let evidence = host.evidence.as_mut().unwrap();
    texts.iter().for_each(|(name, text)| evidence.put(name, EvidenceText::Found(text.to_string())));
    host
}
