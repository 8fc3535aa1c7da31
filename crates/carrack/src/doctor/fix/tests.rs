//! Fixes on a machine of the tests' own, which dies at any call.

use std::collections::BTreeMap;
use std::io;

use carrack_doctor::{EvidenceClass, Finding, Fix, HostSide, Parameter, Severity};

use super::machine::HostSettings;
use super::{apply, changed_since, difference, is_label, plan, state, undo};

/// A machine in memory. Its kernel clears one of a pair when the other is set, and takes no zero for either.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    parameters: BTreeMap<String, String>,
    drop_in: Option<String>,
    notes: BTreeMap<String, String>,
    /// Changes that are still made; then the process is dead. `None` for one that lives.
    left: Option<usize>,
    /// A parameter that refuses to be set.
    refuses: Option<String>,
    /// A parameter that nobody may set.
    forbids: Option<String>,
    changes: usize,
}

impl Model {
    fn new() -> Self {
        let pairs = [
            ("net.ipv4.tcp_rmem", "4096\t131072\t6291456"),
            ("net.ipv4.tcp_congestion_control", "reno"),
            ("vm.dirty_bytes", "0"),
            ("vm.dirty_ratio", "20"),
        ];
        let parameters = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        Self { parameters, ..Self::default() }
    }

    /// One change: made, or not made because the process is dead.
    fn step(&mut self) -> io::Result<()> {
        self.changes += 1;
        match &mut self.left {
            None => Ok(()),
            Some(0) => Err(io::Error::other("killed")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    /// What lasts, but for notes.
    fn dump(&self) -> (BTreeMap<String, String>, Option<String>) {
        (self.parameters.clone(), self.drop_in.clone())
    }
}

impl HostSettings for Model {
    fn parameter(&self, name: &str) -> io::Result<String> {
        self.parameters.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
    fn set_parameter(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.step()?;
        let partner = match name {
            "vm.dirty_bytes" => Some("vm.dirty_ratio"),
            "vm.dirty_ratio" => Some("vm.dirty_bytes"),
            _ => None,
        };
        if self.forbids.as_deref() == Some(name) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if self.refuses.as_deref() == Some(name) || (partner.is_some() && value == "0") {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        partner.map(|partner| self.parameters.insert(partner.to_owned(), "0".to_owned()));
        // The kernel shows numbers with tabs between them.
        self.parameters.insert(name.to_owned(), value.split_whitespace().collect::<Vec<_>>().join("\t"));
        Ok(())
    }
    fn drop_in(&self) -> io::Result<Option<String>> {
        Ok(self.drop_in.clone())
    }
    fn set_drop_in(&mut self, text: Option<&str>) -> io::Result<()> {
        self.step()?;
        self.drop_in = text.map(str::to_owned);
        Ok(())
    }
    fn labels(&self) -> io::Result<Vec<String>> {
        Ok(self.notes.keys().cloned().collect())
    }
    fn note(&self, label: &str) -> io::Result<String> {
        self.notes.get(label).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
    fn set_note(&mut self, label: &str, text: Option<&str>) -> io::Result<()> {
        self.step()?;
        match text {
            Some(text) => drop(self.notes.insert(label.to_owned(), text.to_owned())),
            None => drop(self.notes.remove(label)),
        }
        Ok(())
    }
}

fn wanted() -> Vec<(String, String)> {
    let pairs = [
        ("net.ipv4.tcp_rmem", "4096 131072 268435456"),
        ("net.core.absent", "1"),
        ("vm.dirty_bytes", "268435456"),
        ("net.ipv4.tcp_congestion_control", "bbr"),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

#[test]
fn fix_sets_everything_and_undo_restores_it() {
    let mut machine = Model::new();
    let before = machine.dump();
    let fixed = apply(&mut machine, "one", 7, &wanted()).unwrap();
    assert_eq!(fixed.absent, ["net.core.absent"]);
    assert_eq!(fixed.changed[0].2, "4096\t131072\t268435456");
    assert_eq!(
        (machine.parameters["vm.dirty_bytes"].as_str(), machine.parameters["vm.dirty_ratio"].as_str()),
        ("268435456", "0")
    );
    let lines = machine.drop_in.clone().unwrap();
    assert!(lines.ends_with("net.ipv4.tcp_congestion_control = bbr\n") && !lines.contains("absent"), "{lines}");
    let told = difference(&machine, &state(&machine, "one").unwrap()).unwrap();
    assert_eq!(told.len(), 5, "{told:?}");
    assert!(apply(&mut machine, "one", 8, &wanted()).unwrap_err().to_string().contains("label"));
    assert_eq!(undo(&mut machine, "one").unwrap().len(), 5);
    assert_eq!((machine.dump(), machine.notes.len()), (before, 0));
    let none = undo(&mut machine, "one").unwrap_err();
    assert!(none.to_string().contains("no state") && none.hints[0].contains("there is none"), "{none:?}");
}

#[test]
fn fix_sets_what_it_may_and_undo_tells_what_others_have_changed_since() {
    let mut machine = Model { forbids: Some("net.ipv4.tcp_congestion_control".into()), ..Model::new() };
    let before = machine.dump();
    let fixed = apply(&mut machine, "one", 7, &wanted()).unwrap();
    assert_eq!(fixed.changed.len(), 2, "{fixed:?}");
    assert_eq!(fixed.refused[0].0, "net.ipv4.tcp_congestion_control");
    assert!(!machine.drop_in.clone().unwrap().contains("congestion"), "{:?}", machine.drop_in);
    assert_eq!(changed_since(&machine, &state(&machine, "one").unwrap()), []);
    machine.parameters.insert("net.ipv4.tcp_rmem".into(), "4096\t1\t2".into());
    let since = changed_since(&machine, &state(&machine, "one").unwrap());
    assert_eq!(since, [("net.ipv4.tcp_rmem".into(), "4096 131072 268435456".into(), "4096\t1\t2".into())]);
    undo(&mut machine, "one").unwrap();
    assert_eq!((machine.dump(), machine.notes.len()), (before, 0));
}

#[test]
fn note_that_sets_what_no_fix_does_is_not_carried_out() {
    let mut machine = Model::new();
    apply(&mut machine, "one", 7, &wanted()).unwrap();
    let forged = machine.notes["one"].replace("net.ipv4.tcp_congestion_control", "kernel.core_pattern");
    machine.notes.insert("one".into(), forged);
    let before = machine.dump();
    let refused = undo(&mut machine, "one").unwrap_err();
    assert!(refused.to_string().contains("no fix sets \"kernel.core_pattern\""), "{refused:?}");
    assert_eq!(machine.dump(), before);
}

#[test]
fn fix_of_each_parameter_that_a_rule_names_is_undone() {
    for parameter in Parameter::ALL {
        let mut machine = Model::new();
        machine.parameters.entry(parameter.name().to_owned()).or_insert_with(|| "1".to_owned());
        let before = machine.dump();
        apply(&mut machine, "one", 7, &[(parameter.name().to_owned(), "2".to_owned())]).unwrap();
        undo(&mut machine, "one").unwrap_or_else(|why| panic!("{}: {why:?}", parameter.name()));
        assert_eq!((machine.dump(), machine.notes.len()), (before, 0));
    }
}

#[test]
fn fix_that_could_not_be_undone_is_refused_before_anything_is_changed() {
    let mut machine = Model::new();
    machine.parameters.insert("kernel.core_pattern".into(), "core".into());
    let before = machine.clone();
    let foreign = ("kernel.core_pattern".to_owned(), "|/tmp/x".to_owned());
    let refused = apply(&mut machine, "one", 7, &[wanted(), vec![foreign]].concat()).unwrap_err();
    assert!(refused.to_string().contains("no fix sets \"kernel.core_pattern\""), "{refused:?}");
    assert_eq!(machine, before);
}

#[test]
fn fix_killed_at_any_change_is_undone_by_an_undo_killed_at_any_change() {
    let before = Model::new().dump();
    let all = {
        let mut machine = Model::new();
        apply(&mut machine, "one", 7, &wanted()).unwrap();
        machine.changes
    };
    assert_eq!(all, 5, "a note, a drop-in, three parameters");
    for killed in 0..=all {
        for undo_killed in 0..6 {
            let mut machine = Model { left: Some(killed), ..Model::new() };
            assert_eq!(apply(&mut machine, "one", 7, &wanted()).is_ok(), killed == all, "{killed}");
            machine.left = Some(undo_killed);
            let _ = undo(&mut machine, "one");
            machine.left = None;
            match machine.notes.is_empty() {
                // Nothing was begun, or all of it was taken back.
                true => assert_eq!(machine.dump(), before, "{killed} {undo_killed}"),
                false => {
                    undo(&mut machine, "one").unwrap();
                    assert_eq!(machine.dump(), before, "{killed} {undo_killed}");
                }
            }
        }
    }
}

#[test]
fn fix_that_the_kernel_refuses_is_taken_back() {
    let mut machine = Model { refuses: Some("net.ipv4.tcp_congestion_control".into()), ..Model::new() };
    let before = machine.dump();
    let refused = apply(&mut machine, "one", 7, &wanted()).unwrap_err();
    assert!(
        refused.to_string().contains("tcp_congestion_control")
            && refused.hints.contains(&"everything is as it was".to_owned()),
        "{refused:?}"
    );
    assert_eq!((machine.dump(), machine.notes.len()), (before, 0));
}

#[test]
fn second_fix_stands_upon_the_first_and_is_undone_before_it() {
    let mut machine = Model::new();
    let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    apply(&mut machine, "z", 7, &pair("net.ipv4.tcp_rmem", "1 2 3")).unwrap();
    let first = machine.dump();
    apply(&mut machine, "a", 7, &[pair("net.ipv4.tcp_rmem", "4 5 6"), pair("vm.dirty_ratio", "5")].concat()).unwrap();
    let lines = machine.drop_in.clone().unwrap();
    assert!(!lines.contains("1 2 3") && lines.contains("net.ipv4.tcp_rmem = 4 5 6\nvm.dirty_ratio = 5\n"), "{lines}");
    let refused = undo(&mut machine, "z").unwrap_err();
    assert_eq!(refused.hints, ["take that back first: carrack doctor --undo a"]);
    undo(&mut machine, "a").unwrap();
    assert_eq!(machine.dump(), first);
    undo(&mut machine, "z").unwrap();
    assert_eq!(machine.dump(), Model::new().dump());
}

#[test]
fn plan_takes_parameters_of_this_host_and_no_queueing_unless_asked() {
    let finding = |side, severity, name: &str, value: &str| Finding {
        rule: "tcp.receive-buffer",
        side: Some(side),
        subject: String::new(),
        severity,
        value: String::new(),
        threshold: String::new(),
        cost: String::new(),
        fix: Some(Fix::Sysctl { name: name.into(), value: value.into() }),
        source: "",
        class: EvidenceClass::Kernel,
    };
    let all = [
        finding(HostSide::Near, Severity::Failure, "net.ipv4.tcp_rmem", "1"),
        finding(HostSide::Near, Severity::Warning, "net.ipv4.tcp_rmem", "2"),
        finding(HostSide::Far, Severity::Failure, "net.ipv4.tcp_wmem", "3"),
        finding(HostSide::Near, Severity::Ok, "net.ipv4.tcp_sack", "1"),
        finding(HostSide::Near, Severity::Warning, "net.core.default_qdisc", "fq"),
    ];
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let queueing = pair("net.core.default_qdisc", "fq");
    assert_eq!(plan(&all, false), (vec![pair("net.ipv4.tcp_rmem", "1")], vec![queueing.clone()]));
    assert_eq!(plan(&all, true), (vec![pair("net.ipv4.tcp_rmem", "1"), queueing], vec![]));
}

#[test]
fn labels_are_plain_names() {
    for (text, is) in [("20261122T211500Z", true), ("a.b-c_d", true), ("", false), (".x", false), ("a/b", false)] {
        assert_eq!(is_label(text), is, "{text}");
    }
    assert!(!is_label(&"x".repeat(65)));
}
