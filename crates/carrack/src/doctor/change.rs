//! What `carrack doctor` changes on this host when it is told to, and the way back: `--fix`, `--diff` and `--undo`.

use std::time::{Duration, SystemTime};

use carrack_core::location::Location;
use carrack_core::path::display_bytes;
use carrack_core::report::Event;
use carrack_doctor::facts::HostFacts;
use carrack_doctor::{HostSide, Path, Situation};
use carrack_engine::Context;
use carrack_measure::disk::plan::Mode;
use serde_json::{Value, json};

use super::diagnosis::{Diagnosis, DoctorRequest};
use super::fix::{self, Fixed, HostSettings, Setting, ThisHost};
use super::gain::Gain;
use super::{measured, path};
use crate::directories::state_directory;
use crate::error::CommandError;
use crate::output::format;
use crate::output::json as with_type;
use crate::output::lines::Lines;

/// The storage is written for so long, to see what a fix has brought.
const STORAGE_TIME: Duration = Duration::from_secs(3);

/// Where root keeps its notes if its state directory can be another's: `sudo` may keep the user's HOME.
const NOTES_OF_ROOT: &str = "/var/lib/carrack/doctor";

/// This host, with its notes in the user's state directory. Root carries out no note that somebody else could have
/// written.
pub fn this_host() -> ThisHost {
    let own = state_directory().join("doctor");
    let is_others = carrack_sys::host::user_id() == 0 && !fix::is_roots_alone(&own);
    ThisHost::new("/", if is_others { NOTES_OF_ROOT.into() } else { own })
}

/// How `--fix` was asked for.
#[derive(Clone, Debug)]
pub struct FixOptions {
    /// The name under which the state is kept; else the time.
    pub label: Option<String>,
    /// Whether queueing may be changed as well.
    pub with_queueing: bool,
}

/// A change of this host, as it is told.
#[derive(Debug, Default)]
pub struct HostChange {
    /// The state's name.
    pub label: String,
    /// What was set, restored, or differs: name, value then, value now.
    pub settings: Vec<(String, String, String)>,
    /// Sentences beside.
    pub notes: Vec<String>,
    /// What it has brought.
    pub gains: Vec<Gain>,
}

/// Sets what the findings would have set on this host, and measures what that has brought. `None` if there was nothing
/// to set.
///
/// # Errors
/// That the first host is another one, what could not be written, and that the work is to stop.
pub fn fix(
    request: &DoctorRequest,
    context: &Context,
    observer: &(dyn Fn(Event) + Send + Sync),
    situation: &Situation,
    options: &FixOptions,
) -> Result<Option<HostChange>, CommandError> {
    if !matches!(request.near.0, Location::Local(_)) {
        let why = "--fix changes the host where it is typed, and that is not among those examined";
        return Err(CommandError::usage(why).hint("log in there, and use carrack doctor --fix"));
    }
    let (wanted, left) = fix::plan(&Diagnosis::of(situation).findings, options.with_queueing);
    let skipped: Vec<String> = left
        .iter()
        .map(|(name, _)| format!("{name} is left alone: it decides how packets wait. --with-qdisc sets it"))
        .collect();
    if wanted.is_empty() {
        skipped.into_iter().for_each(|text| observer(Event::Note(text)));
        return Ok(None);
    }
    let label = options.label.clone().unwrap_or_else(time_label);
    let rungs = Rungs::of(request, &wanted);
    let before = [rungs.measure(request, context, observer)?, rungs.measure(request, context, observer)?];
    let Fixed { changed, absent, refused } = fix::apply(&mut this_host(), &label, now(), &wanted)?;
    let mut notes = skipped;
    notes.extend(
        absent.iter().map(|name| format!("{name} is not a parameter of this kernel, or not of this container")),
    );
    notes.extend(refused.iter().map(|(name, why)| format!("{name} is left as it is: it cannot be set here: {why}")));
    notes.extend(overruled(situation, &changed));
    let after = [rungs.measure(request, context, observer)?, rungs.measure(request, context, observer)?];
    let gains = rungs.gains(&before, &after);
    Ok(Some(HostChange { label, settings: changed, notes, gains }))
}

fn now() -> i64 {
    carrack_sys::host::clock_seconds()
}

fn time_label() -> String {
    format::rfc3339_seconds(now()).chars().filter(char::is_ascii_alphanumeric).collect()
}

/// Files that have the last word over the drop-in at the next boot.
fn overruled(situation: &Situation, changed: &[(String, String, String)]) -> Vec<String> {
    let Ok(facts) = HostFacts::of(HostSide::Near, &situation.near) else { return Vec::new() };
    let files = facts.at_boot();
    let drop_in = format!("/{}", fix::DROP_IN);
    let last = |file: &str| file.rsplit('/').next().unwrap_or_default().to_owned();
    let wins = |file: &str| file == "/etc/sysctl.conf" || last(file) > last(&drop_in);
    let all = changed.iter().filter_map(|(name, ..)| Some((name, files.get(name).filter(|file| wins(&file.file))?)));
    all.map(|(name, file)| {
        let file_name = display_bytes(file.file.as_bytes());
        format!(
            "{name}: {file_name} is read after {drop_in}, and says {} at the next boot",
            display_bytes(file.value.as_bytes())
        )
    })
    .collect()
}

/// What is measured again: the path for parameters of the network, the storage for those of memory.
struct Rungs {
    path: bool,
    storage: bool,
}

/// Rates of the path there and back, and of the storage.
type Rates = [Option<f64>; 3];
const NAMES: [&str; 3] = ["there", "back", "storage"];

impl Rungs {
    fn of(request: &DoctorRequest, wanted: &[Setting]) -> Self {
        let any = |start: &str| wanted.iter().any(|(name, _)| name.starts_with(start));
        Self {
            path: any("net.") && request.far.is_some() && request.measures,
            storage: any("vm.") && request.measures_host,
        }
    }

    fn measure(
        &self,
        request: &DoctorRequest,
        context: &Context,
        observer: &(dyn Fn(Event) + Send + Sync),
    ) -> Result<Rates, CommandError> {
        let mut rates = Rates::default();
        if self.path {
            let mut path = Path::default();
            path::rates(request, context, observer, &mut path)?;
            rates[0] = path.there.rate.map(|(rate, _)| rate);
            rates[1] = path.back.rate.map(|(rate, _)| rate);
        }
        rates[2] = self.write_rate(request, context, observer);
        context.stop.check()?;
        Ok(rates)
    }

    fn write_rate(
        &self,
        request: &DoctorRequest,
        context: &Context,
        observer: &(dyn Fn(Event) + Send + Sync),
    ) -> Option<f64> {
        let directory = measured::directory(request).filter(|_| self.storage)?;
        let stop = || context.stop.requested().is_some();
        // What is written through the page cache, and synced, is what these parameters are about.
        let rates = measured::storage(&directory, Mode::Fdatasync, STORAGE_TIME, &stop, observer).ok()?;
        Some(rates[0].1)
    }

    fn gains(&self, before: &[Rates; 2], after: &[Rates; 2]) -> Vec<Gain> {
        let of = |at: usize| Gain::of(NAMES[at], [before[0][at], before[1][at]], [after[0][at], after[1][at]]);
        (0..NAMES.len()).filter_map(of).collect()
    }
}

/// Tells what a fix, or the way back, has done.
pub fn tell(action: &str, change: &HostChange, out: &mut Lines, as_json: bool) {
    if as_json {
        return out.json(&with_type::object("state", SystemTime::now(), object(action, change)));
    }
    let mut line = |text: String| out.line(text.as_bytes());
    // The kernel shows numbers with tabs between them.
    let shown = |text: &str| display_bytes(text.replace('\t', " ").as_bytes()).to_string();
    for (name, before, now) in &change.settings {
        line(format!("{}: {} -> {}", shown(name), shown(before), shown(now)));
    }
    change.notes.iter().for_each(|text| line(text.clone()));
    for gain in &change.gains {
        let ((before, after), percent) = (gain.means(), gain.share() * 100.0);
        let (before, after) = (format::rate(before), format::rate(after));
        line(format!(
            "{}: {before} before, {after} after: {percent:+.0} %, noise {:.0} %",
            gain.what,
            gain.noise() * 100.0
        ));
    }
    if action == "fix" && !change.settings.is_empty() {
        let noise = !change.gains.is_empty() && change.gains.iter().all(Gain::is_noise);
        let why = if noise { "the gain is within the noise; to take it back" } else { "to take it back" };
        line(format!("{why}: carrack doctor --undo {}", change.label));
    }
}

fn object(action: &str, change: &HostChange) -> Value {
    let settings = change.settings.iter();
    let settings: Vec<Value> =
        settings.map(|(name, before, now)| json!({ "name": name, "before": before, "now": now })).collect();
    json!({
        "action": action,
        "label": change.label,
        "settings": settings,
        "notes": change.notes,
        "gains": change.gains.iter().map(Gain::json).collect::<Vec<_>>(),
    })
}

/// Restores what there was before a fix.
///
/// # Errors
/// As [`fix::undo`].
pub fn undo(machine: &mut dyn HostSettings, label: &str) -> Result<HostChange, CommandError> {
    // Then and now change places: what stood there is there again.
    let state = fix::state(machine, label)?;
    let notes = fix::changed_since(machine, &state).into_iter().map(|(name, set, now)| {
        let [set, now] = [set, now].map(|value| display_bytes(value.replace('\t', " ").as_bytes()).to_string());
        format!("{name} was changed by somebody else since: the fix had set it to {set}, and it was {now}")
    });
    let notes = notes.collect();
    let settings = fix::undo(machine, label)?.into_iter().map(|(name, then, now)| (name, now, then)).collect();
    Ok(HostChange { label: label.to_owned(), settings, notes, ..HostChange::default() })
}

/// What is not now as it was when a state was saved.
///
/// # Errors
/// As [`fix::difference`].
pub fn difference(machine: &dyn HostSettings, label: &str) -> Result<HostChange, CommandError> {
    let settings = fix::difference(machine, &fix::state(machine, label)?)?;
    Ok(HostChange { label: label.to_owned(), settings, ..HostChange::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    use crate::golden::compare;
    use crate::json_schema::Schema;

    #[test]
    fn golden_states_are_as_ever() {
        let change = HostChange {
            label: "one".into(),
            settings: vec![("net.ipv4.tcp_sack".into(), "0".into(), "1".into())],
            notes: vec!["note".into()],
            gains: Gain::of("there", [Some(100.0); 2], [Some(200.0); 2]).into_iter().collect(),
        };
        let time = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let line = with_type::object("state", time, object("fix", &change));
        Schema::published().check(&line).unwrap();
        compare("json/doctor-state.txt", &format!("{}\n", with_type::text(&line)));
    }
}
