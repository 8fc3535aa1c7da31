//! Findings for a person: the worst first, each with what it costs and the line that mends it.

use carrack_core::path::drives_terminal;
use carrack_doctor::{Finding, Severity};

use super::diagnosis::Diagnosis;
use crate::output::format::counted;

/// Columns of the lines that are wrapped: as many as every terminal has.
const COLUMNS: usize = 80;
const INDENT: &str = "    ";

/// The lines. Findings that everything is as it should be are told if `with_ok`.
pub fn lines(diagnosis: &Diagnosis, with_ok: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for finding in diagnosis.findings.iter().filter(|finding| finding.severity >= Severity::Warning) {
        lines.extend(block(finding, diagnosis));
    }
    for (host, why, rules) in unknown(diagnosis) {
        wrap(&mut lines, &format!("unknown{host}: {why}: {}", rules.join(", ")), "");
    }
    for finding in diagnosis.findings.iter().filter(|finding| with_ok && finding.severity == Severity::Ok) {
        wrap(&mut lines, &format!("{}: {}", title(finding, diagnosis), finding.value), "");
    }
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines.push(counts(diagnosis));
    lines
}

/// How much was found.
pub fn counts(diagnosis: &Diagnosis) -> String {
    let count = |severity| diagnosis.count(severity) as u64;
    format!(
        "{}, {}, {} not checked, {} passed",
        counted(count(Severity::Failure), "failure", "failures"),
        counted(count(Severity::Warning), "warning", "warnings"),
        count(Severity::Unknown),
        count(Severity::Ok),
    )
}

/// What is not known, together for each reason: an interface that tells no speed leaves several rules without an
/// answer.
fn unknown(diagnosis: &Diagnosis) -> Vec<(String, &str, Vec<&str>)> {
    let mut reasons: Vec<(String, &str, Vec<&str>)> = Vec::new();
    for finding in diagnosis.findings.iter().filter(|finding| finding.severity == Severity::Unknown) {
        let (host, why) = (host(finding, diagnosis), finding.value.as_str());
        match reasons.iter_mut().find(|(of, reason, _)| *of == host && *reason == why) {
            Some((.., rules)) => rules.push(finding.rule),
            None => reasons.push((host, why, vec![finding.rule])),
        }
    }
    reasons
}

/// The host of a finding, behind a space; nothing of the path.
fn host(finding: &Finding, diagnosis: &Diagnosis) -> String {
    let name = finding.side.map(|side| diagnosis.hosts[side.number() as usize].as_deref().unwrap_or("?"));
    name.map(|name| format!(" {name}")).unwrap_or_default()
}

/// `failure node:7420: tcp.receive-buffer`
fn title(finding: &Finding, diagnosis: &Diagnosis) -> String {
    let host = host(finding, diagnosis);
    let subject = if finding.subject.is_empty() { String::new() } else { format!(" {}", finding.subject) };
    format!("{}{host}: {}{subject}", finding.severity.name(), finding.rule)
}

fn block(finding: &Finding, diagnosis: &Diagnosis) -> Vec<String> {
    let mut lines = vec![printable(&title(finding, diagnosis))];
    wrap(&mut lines, &finding.value, INDENT);
    wrap(&mut lines, &format!("should be: {}", finding.threshold), INDENT);
    if !finding.cost.is_empty() {
        wrap(&mut lines, &format!("costs: {}", finding.cost), INDENT);
    }
    match &finding.fix {
        // A command stays on one line, however long: it is copied.
        Some(fix) if fix.is_command() => lines.push(printable(&format!("{INDENT}fix: {}", fix.line()))),
        Some(fix) => wrap(&mut lines, &format!("fix: {}", fix.line()), INDENT),
        None => {}
    }
    wrap(&mut lines, &format!("from: {} ({})", finding.source, finding.class.name()), INDENT);
    lines.push(String::new());
    lines
}

/// Breaks a text between words; what follows the first line is indented further.
fn wrap(lines: &mut Vec<String>, text: &str, indent: &str) {
    let text = printable(text);
    let mut line = indent.to_owned();
    let mut is_first = true;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let is_begun = line.trim_start() != "";
        if is_begun && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            lines.push(std::mem::replace(&mut line, format!("{indent}  ")));
            is_first = false;
        } else if is_begun {
            line.push(' ');
        }
        line.push_str(word);
    }
    if is_first || line.trim_start() != "" {
        lines.push(line);
    }
}

/// What hosts say of themselves may be anything.
fn printable(text: &str) -> String {
    text.chars().map(|character| if drives_terminal(character) { '\u{fffd}' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrack_doctor::{EvidenceClass, Fix, HostSide};

    fn finding(severity: Severity) -> Finding {
        Finding {
            rule: "tcp.receive-buffer",
            side: Some(HostSide::Far),
            subject: String::new(),
            severity,
            value: "net.ipv4.tcp_rmem's largest receive buffer is 64 KiB".into(),
            threshold: "at least 120 MiB: 1.2 GB/s at 80 ms are 95 MiB on their way".into(),
            cost: "one stream is limited to 0.41 MB/s at 80 ms, 8 streams to 3.3 MB/s".into(),
            fix: Some(Fix::Sysctl { name: "net.ipv4.tcp_rmem".into(), value: "4096 131072 134217728".into() }),
            source: "fasterdata.es.net",
            class: EvidenceClass::Kernel,
        }
    }

    #[test]
    fn findings_are_told_worst_first_within_80_columns() {
        let mut unknown = finding(Severity::Unknown);
        unknown.value = "eth0 tells no speed\u{1b}[2J".into();
        let twin = Finding { rule: "tcp.send-buffer", ..unknown.clone() };
        let findings = vec![finding(Severity::Failure), unknown, twin, finding(Severity::Ok)];
        let diagnosis = Diagnosis { hosts: [Some("this host".into()), Some("node:7420".into())], findings };
        let told = lines(&diagnosis, false);
        assert_eq!(told[0], "failure node:7420: tcp.receive-buffer");
        assert!(told.iter().all(|line| line.chars().count() <= COLUMNS && !line.contains('\u{1b}')), "{told:#?}");
        assert!(told.contains(&"    fix: sysctl -w net.ipv4.tcp_rmem='4096 131072 134217728'".to_owned()), "{told:#?}");
        let grouped = told.iter().filter(|line| line.starts_with("unknown node:7420: eth0 tells no speed"));
        assert_eq!(grouped.count(), 1, "{told:#?}");
        assert_eq!(told.last().unwrap(), "1 failure, 0 warnings, 2 not checked, 1 passed");
        assert!(lines(&diagnosis, true).len() > told.len() && diagnosis.exit_code() == 3);
        let none = Diagnosis { hosts: [None, None], findings: Vec::new() };
        assert_eq!((lines(&none, true).len(), none.exit_code()), (1, 0));
    }
}
