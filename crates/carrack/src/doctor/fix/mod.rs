//! `carrack doctor --fix`: sets kernel parameters of this host, now and for every boot, and takes that back.
//!
//! Before anything is changed, what there is goes into a note under a label. Then one drop-in is written, and then the
//! parameters are set. A process that is killed at any point leaves either nothing changed, or a note by which
//! [`undo`] restores everything; undoing twice, or going on with one that was killed, does no harm.

mod machine;
mod note;
#[cfg(test)]
mod tests;

use std::io;

use carrack_doctor::{Finding, Fix, HostSide, Severity};

pub use machine::{DROP_IN, HostSettings, ThisHost, is_roots_alone};
pub use note::SavedState;

use crate::error::CommandError;

/// A parameter and the value that it should have.
pub type Setting = (String, String);

/// Parameters of which setting one clears the other.
const PAIRS: &[(&str, &str)] =
    &[("vm.dirty_bytes", "vm.dirty_ratio"), ("vm.dirty_background_bytes", "vm.dirty_background_ratio")];
/// Parameters that decide in which queue packets wait: they are set only on request.
const QUEUEING: &[&str] = &["net.core.default_qdisc"];
/// How the names of the parameters begin that a rule has set. A note sets no others.
const OURS: &[&str] = &["net.core.", "net.ipv4.tcp_", "net.netfilter.nf_conntrack_max", "vm.dirty_"];
const HEAD: &str = "# Written by carrack doctor --fix. carrack doctor --undo LABEL takes it back.\n";
const LABEL_BYTES: usize = 64;

/// Whether a text can name a note.
pub fn is_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !text.is_empty() && text.len() <= LABEL_BYTES && !text.starts_with('.') && text.bytes().all(plain)
}

/// What the findings would have set on this host, and which of them need to be asked for.
pub fn plan(findings: &[Finding], with_queueing: bool) -> (Vec<Setting>, Vec<Setting>) {
    let (mut wanted, mut left): (Vec<Setting>, Vec<Setting>) = (Vec::new(), Vec::new());
    let of_here = findings.iter().filter(|one| one.side == Some(HostSide::Near) && one.severity >= Severity::Warning);
    for finding in of_here {
        let Some(Fix::Sysctl { name, value }) = &finding.fix else { continue };
        let list = if QUEUEING.contains(&name.as_str()) && !with_queueing { &mut left } else { &mut wanted };
        // The worst finding comes first, and has the word.
        if !list.iter().any(|(known, _)| known == name) {
            list.push((name.clone(), value.clone()));
        }
    }
    (wanted, left)
}

/// What a fix has done.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fixed {
    /// Each parameter with its value before and after, as the kernel has them.
    pub changed: Vec<(String, String, String)>,
    /// Parameters that this kernel, or this container, does not have.
    pub absent: Vec<String>,
    /// Parameters that may not be written here, as in a container, and why.
    pub refused: Vec<(String, String)>,
}

/// Saves the state under the label, writes the drop-in, and sets the parameters.
///
/// # Errors
/// What could not be read or written. What had been changed by then is taken back.
pub fn apply(
    machine: &mut dyn HostSettings,
    label: &str,
    time: i64,
    wanted: &[Setting],
) -> Result<Fixed, CommandError> {
    if machine.labels().map_err(|error| failed("read the notes", &error))?.iter().any(|known| known == label) {
        return Err(CommandError::usage(format!("there is a state with the label {label:?}"))
            .hint(format!("take that back first, carrack doctor --undo {label}, or use another label")));
    }
    // A note of it could not be read again: nobody could take it back, and no other fix could be made.
    if let Some(why) = foreign(wanted) {
        return Err(CommandError::usage(why));
    }
    let mut fixed = Fixed::default();
    let mut settings = Vec::new();
    for (name, value) in wanted {
        match machine.parameter(name) {
            Ok(_) => settings.push((name.clone(), value.clone())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => fixed.absent.push(name.clone()),
            Err(error) => return Err(failed(&format!("read {name}"), &error)),
        }
    }
    if settings.is_empty() {
        return Ok(fixed);
    }
    let state = saved(machine, label, time, settings)?;
    machine.set_note(label, Some(&state.to_json())).map_err(|error| failed("keep the state", &error))?;
    match carry_out(machine, &state) {
        Ok((changed, refused)) => Ok(Fixed { changed, refused, ..fixed }),
        Err(error) => {
            // Whoever may not write one parameter has written none, or can write back those that it has.
            let error = match restore(machine, &state) {
                Ok(_) => error.hint("everything is as it was"),
                Err(_) => error.hint(format!("take back what was changed: carrack doctor --undo {label}")),
            };
            Err(error)
        }
    }
}

/// The state now, with all that setting these will change.
fn saved(machine: &dyn HostSettings, label: &str, time: i64, wanted: Vec<Setting>) -> Result<SavedState, CommandError> {
    let mut before = Vec::new();
    for (name, _) in &wanted {
        let partner = PAIRS.iter().find_map(|(a, b)| match name {
            name if name == a => Some(*b),
            name if name == b => Some(*a),
            _ => None,
        });
        for name in [Some(name.as_str()), partner].into_iter().flatten() {
            let value = machine.parameter(name).map_err(|error| failed(&format!("read {name}"), &error))?;
            before.push((name.to_owned(), value));
        }
    }
    let drop_in = machine.drop_in().map_err(|error| failed(&format!("read /{DROP_IN}"), &error))?;
    let number = states(machine)?.iter().map(|state| state.number).max().unwrap_or(0) + 1;
    Ok(SavedState { label: label.to_owned(), number, time, before, wanted, drop_in })
}

/// Parameters that were changed, with their values before and after; and those that may not be written, with why.
type CarriedOut = (Vec<(String, String, String)>, Vec<(String, String)>);

fn carry_out(machine: &mut dyn HostSettings, state: &SavedState) -> Result<CarriedOut, CommandError> {
    let write = |machine: &mut dyn HostSettings, settings: &[Setting]| {
        let text = drop_in(state.drop_in.as_deref(), settings);
        machine.set_drop_in(Some(&text)).map_err(|error| failed(&format!("write /{DROP_IN}"), &error))
    };
    write(machine, &state.wanted)?;
    let (mut changed, mut refused) = (Vec::new(), Vec::new());
    let mut first = None;
    for (name, value) in &state.wanted {
        match machine.set_parameter(name, value) {
            Ok(()) => {}
            Err(error)
                if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) =>
            {
                refused.push((name.clone(), error.to_string()));
                first = first.or_else(|| Some(failed(&format!("set {name} to {value}"), &error)));
                continue;
            }
            Err(error) => return Err(failed(&format!("set {name} to {value}"), &error)),
        }
        let now = machine.parameter(name).map_err(|error| failed(&format!("read {name}"), &error))?;
        let before = state.before.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        changed.push((name.clone(), before.unwrap_or_default(), now));
    }
    match first {
        // Whoever may not write one may write none.
        Some(error) if changed.is_empty() => return Err(error),
        Some(_) => {
            let is_set = |setting: &&Setting| !refused.iter().any(|(name, _)| *name == setting.0);
            let set: Vec<Setting> = state.wanted.iter().filter(is_set).cloned().collect();
            write(machine, &set)?;
        }
        None => {}
    }
    Ok((changed, refused))
}

/// The drop-in with these settings in the place of older ones.
fn drop_in(before: Option<&str>, settings: &[Setting]) -> String {
    let name_of = |line: &str| line.split_once('=').map(|(name, _)| name.trim().to_owned());
    let kept = before.unwrap_or(HEAD).lines().filter(|line| {
        let partner = |name: &str| {
            PAIRS
                .iter()
                .any(|(a, b)| settings.iter().any(|(own, _)| (own == a && name == *b) || (own == b && name == *a)))
        };
        !name_of(line).is_some_and(|name| settings.iter().any(|(own, _)| *own == name) || partner(&name))
    });
    let mut text: String = kept.map(|line| format!("{line}\n")).collect();
    settings.iter().for_each(|(name, value)| text += &format!("{name} = {value}\n"));
    text
}

/// What is wrong with settings of which one is none that a rule has set.
fn foreign<'a>(settings: impl IntoIterator<Item = &'a Setting>) -> Option<String> {
    let is_ours = |name: &str| OURS.iter().any(|ours| name.starts_with(ours));
    let (name, _) = settings.into_iter().find(|(name, _)| !is_ours(name))?;
    Some(format!("no fix sets {name:?}"))
}

/// All states that are kept.
fn states(machine: &dyn HostSettings) -> Result<Vec<SavedState>, CommandError> {
    let labels = machine.labels().map_err(|error| failed("read the notes", &error))?;
    labels.iter().map(|label| state(machine, label)).collect()
}

/// The state that was saved under a label.
///
/// # Errors
/// That there is none, and which there are; or that it cannot be read.
pub fn state(machine: &dyn HostSettings, label: &str) -> Result<SavedState, CommandError> {
    match machine.note(label) {
        Ok(text) => SavedState::parse(&text)
            .and_then(|state| match foreign(state.before.iter().chain(&state.wanted)) {
                Some(why) => Err(why),
                None => Ok(state),
            })
            .map_err(|why| CommandError::usage(format!("the state with the label {label:?} cannot be read: {why}"))),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => {
            let labels = machine.labels().unwrap_or_default();
            let known = if labels.is_empty() { "there is none".to_owned() } else { labels.join(", ") };
            Err(CommandError::usage(format!("no state has the label {label:?}")).hint(format!("labels: {known}")))
        }
        Err(error) => Err(failed(&format!("read the state {label:?}"), &error)),
    }
}

/// What is not now as it was when the state was saved: name, then, now.
///
/// # Errors
/// That something cannot be read.
pub fn difference(
    machine: &dyn HostSettings,
    state: &SavedState,
) -> Result<Vec<(String, String, String)>, CommandError> {
    let mut all = Vec::new();
    for (name, before) in &state.before {
        let now = machine.parameter(name).map_err(|error| failed(&format!("read {name}"), &error))?;
        if now != *before {
            all.push((name.clone(), before.clone(), now));
        }
    }
    let now = machine.drop_in().map_err(|error| failed(&format!("read /{DROP_IN}"), &error))?;
    if now != state.drop_in {
        let told = |text: &Option<String>| {
            text.as_ref().map_or("absent".to_owned(), |text| format!("{} lines", text.lines().count()))
        };
        all.push((format!("/{DROP_IN}"), told(&state.drop_in), told(&now)));
    }
    Ok(all)
}

/// Parameters that are neither as the fix has set them nor as they were before it: name, as set, now. What cannot be
/// read is told by whoever sets it back.
pub fn changed_since(machine: &dyn HostSettings, state: &SavedState) -> Vec<(String, String, String)> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let others = state.wanted.iter().filter_map(|(name, set)| {
        let now = machine.parameter(name).ok()?;
        let before = state.before.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value);
        let is_known = [set, before].iter().any(|value| words(value) == words(&now));
        (!is_known).then(|| (name.clone(), set.clone(), now))
    });
    others.collect()
}

/// Restores what there was before a fix, and forgets its note.
///
/// # Errors
/// That there is no such state, that a later fix stands upon it, or what could not be written: the note stays then.
pub fn undo(machine: &mut dyn HostSettings, label: &str) -> Result<Vec<(String, String, String)>, CommandError> {
    let state = state(machine, label)?;
    let later = states(machine)?.into_iter().filter(|other| other.number > state.number).max_by_key(|one| one.number);
    if let Some(later) = later {
        return Err(CommandError::usage(format!("the fix {:?} was made after {label:?}", later.label))
            .hint(format!("take that back first: carrack doctor --undo {}", later.label)));
    }
    let difference = difference(machine, &state)?;
    restore(machine, &state)?;
    Ok(difference)
}

fn restore(machine: &mut dyn HostSettings, state: &SavedState) -> Result<(), CommandError> {
    for (name, value) in &state.before {
        if is_cleared(state, name, value) || machine.parameter(name).is_ok_and(|now| now == *value) {
            continue;
        }
        machine.set_parameter(name, value).map_err(|error| failed(&format!("set {name} back to {value}"), &error))?;
    }
    machine.set_drop_in(state.drop_in.as_deref()).map_err(|error| failed(&format!("write /{DROP_IN}"), &error))?;
    machine.set_note(&state.label, None).map_err(|error| failed("remove the state", &error))
}

/// Whether this was the one of a pair that is not in force: the kernel clears it when the other one is set, and takes
/// no zero for it.
fn is_cleared(state: &SavedState, name: &str, value: &str) -> bool {
    let partner = PAIRS.iter().find_map(|(a, b)| if name == *a { Some(*b) } else { Some(*a).filter(|_| name == *b) });
    let other = partner.and_then(|partner| state.before.iter().find(|(known, _)| known == partner));
    value == "0" && other.is_some_and(|(_, value)| value != "0")
}

fn failed(what: &str, error: &io::Error) -> CommandError {
    let told = CommandError::file("cannot", what.as_bytes(), error);
    if error.kind() == io::ErrorKind::PermissionDenied {
        return told.hint("only an administrator may change settings of a host: sudo carrack doctor --fix");
    }
    told
}
