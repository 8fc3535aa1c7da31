//! Findings as JSON.

use carrack_doctor::{Finding, Fix};
use serde_json::{Value, json};

use super::diagnosis::Diagnosis;

/// The fields of a finding.
pub fn finding(finding: &Finding, diagnosis: &Diagnosis) -> Value {
    let host = finding.side.and_then(|side| diagnosis.hosts[side.number() as usize].as_deref());
    json!({
        "rule": finding.rule,
        "severity": finding.severity.name(),
        "side": finding.side.map(|side| side.name()),
        "host": host,
        "subject": finding.subject,
        "value": finding.value,
        "threshold": finding.threshold,
        "cost": finding.cost,
        "fix": finding.fix.as_ref().map(fix),
        "source": finding.source,
        "evidence": finding.class.name(),
    })
}

fn fix(fix: &Fix) -> Value {
    let mut fields = json!({ "line": fix.line(), "is_command": fix.is_command() });
    if let Fix::Sysctl { name, value } = fix {
        fields["sysctl"] = json!({ "name": name, "value": value });
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;
    use std::time::{Duration, UNIX_EPOCH};

    use carrack_doctor::{EvidenceClass, HostSide, Severity};

    use crate::golden::compare;
    use crate::json_schema::Schema;
    use crate::output::json::{object, text as line_text};

    #[test]
    fn golden_findings_are_as_ever() {
        let plain = Finding {
            rule: "path.symmetry",
            side: None,
            subject: String::new(),
            severity: Severity::Ok,
            value: "2 steps there, 2 back".into(),
            threshold: "as many routers there as back".into(),
            cost: String::new(),
            fix: None,
            source: "ours",
            class: EvidenceClass::Ours,
        };
        let sysctl = Fix::Sysctl { name: "net.ipv4.tcp_sack".into(), value: "1".into() };
        let told = [
            plain.clone(),
            Finding { side: Some(HostSide::Far), severity: Severity::Warning, fix: Some(sysctl), ..plain.clone() },
            Finding {
                side: Some(HostSide::Near),
                fix: Some(Fix::Advice("look".into())),
                subject: "eth0".into(),
                ..plain
            },
        ];
        let diagnosis = Diagnosis { hosts: [Some("this host".into()), Some("far".into())], findings: Vec::new() };
        let mut text = String::new();
        for one in &told {
            let line = object("finding", UNIX_EPOCH + Duration::from_secs(1_700_000_000), finding(one, &diagnosis));
            Schema::published().check(&line).unwrap();
            writeln!(text, "{}", line_text(&line)).unwrap();
        }
        compare("json/doctor.txt", &text);
    }
}
