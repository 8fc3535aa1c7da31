//! Findings as one page that needs nothing else, in the style of every page that Carrack writes.

use carrack_doctor::{Finding, Severity};

use super::diagnosis::Diagnosis;
use super::terminal;
use crate::output::plot::html::{escape, name};
use crate::output::plot::page::Page;

/// The page.
pub fn page(diagnosis: &Diagnosis, written: &str) -> String {
    let hosts: Vec<&str> = diagnosis.hosts.iter().flatten().map(String::as_str).collect();
    let title = format!("carrack doctor: {}", hosts.join(" and "));
    let mut page = Page::new(&title);
    page.html(&format!("<h1>{}</h1>", name(&title)));
    page.paragraph("lead", &format!("{} · {written}", terminal::counts(diagnosis)));
    for (severity, heading) in
        [(Severity::Failure, "Failures"), (Severity::Warning, "Warnings"), (Severity::Unknown, "Not known")]
    {
        let found: Vec<&Finding> = diagnosis.findings.iter().filter(|one| one.severity == severity).collect();
        if found.is_empty() {
            continue;
        }
        page.heading(2, heading);
        let is_bad = severity != Severity::Unknown;
        let head: &[&str] = if is_bad { &["where", "found", "costs", "mended by"] } else { &["where", "why"] };
        let row = |one: &&Finding| {
            let mut cells = vec![place(one, diagnosis), escape(&one.value)];
            if is_bad {
                cells[1] += &note(&format!("should be: {}", one.threshold));
                cells.extend([escape(&one.cost), fix(one) + &note(&source(one))]);
            }
            cells
        };
        page.table(head, &found.iter().map(row).collect::<Vec<_>>(), &[]);
    }
    let fine: Vec<&Finding> = diagnosis.findings.iter().filter(|one| one.severity == Severity::Ok).collect();
    page.heading(2, "As it should be");
    let rows: Vec<Vec<String>> = fine.iter().map(|one| vec![place(one, diagnosis), escape(&one.value)]).collect();
    page.table(&["where", "found"], &rows, &[]);
    page.html(&format!("<footer>Written by carrack doctor {}.</footer>", env!("CARGO_PKG_VERSION")));
    page.finish()
}

/// The rule, and the host or the interface that it is of.
fn place(finding: &Finding, diagnosis: &Diagnosis) -> String {
    let host = finding.side.and_then(|side| diagnosis.hosts[side.number() as usize].as_deref()).unwrap_or("the path");
    let subject = if finding.subject.is_empty() { String::new() } else { format!(", {}", name(&finding.subject)) };
    format!("<code>{}</code><br>{}{subject}", escape(finding.rule), name(host))
}

fn fix(finding: &Finding) -> String {
    match &finding.fix {
        Some(fix) if fix.is_command() => format!("<code>{}</code>", escape(&fix.line())),
        Some(fix) => escape(&fix.line()),
        None => String::new(),
    }
}

fn source(finding: &Finding) -> String {
    format!("from: {} ({})", finding.source, finding.class.name())
}

/// A line below, in a smaller type.
fn note(text: &str) -> String {
    format!("<p class=\"note\">{}</p>", escape(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrack_doctor::{EvidenceClass, Fix, HostSide};

    #[test]
    fn page_tells_findings_and_nothing_of_a_host_becomes_markup() {
        let finding = |severity, value: &str| Finding {
            rule: "tcp.sack",
            side: Some(HostSide::Far),
            subject: "<eth0>".into(),
            severity,
            value: value.into(),
            threshold: "on".into(),
            cost: "time".into(),
            fix: Some(Fix::Command("echo '<b>'".into())),
            source: "RFC 2018",
            class: EvidenceClass::Kernel,
        };
        let findings = vec![finding(Severity::Failure, "<script>"), finding(Severity::Ok, "on\u{1b}[2J")];
        let diagnosis = Diagnosis { hosts: [Some("this host".into()), Some("<far>".into())], findings };
        let page = page(&diagnosis, "2026-11-23");
        for text in ["Failures", "As it should be", "&lt;script&gt;", "<bdi>&lt;far&gt;</bdi>", "&#39;&lt;b&gt;&#39;"] {
            assert!(page.contains(text), "{text}: {page}");
        }
        assert!(!page.contains("<script>") && !page.contains('\u{1b}') && !page.contains("Warnings"), "{page}");
    }
}
