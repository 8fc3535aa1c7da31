//! `carrack endpoint`: the named places of a service.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use carrack_core::path::display_bytes;
use carrack_core::request::Verify;
use carrack_engine::secrets::read_token;
use carrack_service::client::{Call, segment};
use carrack_service::model::{
    Endpoint, EndpointDefaults, EndpointLimits, EndpointTest, EndpointUpdate, NewEndpoint, RateWindow, Secret, User,
};
use clap::{Arg, ArgAction, Command};

use super::reach::JSON;
use super::task::told;
use crate::cli::flag::{Positional, Switch, Value};
use crate::cli::flags::Flags;
use crate::cli::location::parse_endpoint_location;
use crate::cli::option_flags::typed::ENCRYPT;
use crate::cli::size::parse_rate;
use crate::cli::task_files::read_text;
use crate::cli::words::split_words;
use crate::error::CommandError;
use crate::exit;
use crate::managed::service::{self, Service};
use crate::managed::show;
use crate::managed::table::{AlignedRows, CSV, ENDPOINT_CSV};
use crate::output::format::{count, counted};
use crate::output::lines::Lines;
use crate::output::{human, question, say};
use carrack_core::location::check_endpoint_name;

const NAME: Positional = Positional::one("name", "NAME");
const NAMES: Positional = Positional::several("names", "NAME");
const LOCATION: Positional = Positional::one("location", "LOCATION");

const MOVED: Value<Vec<u8>> = Value::path("location", "LOCATION", "Where its root is from now on");
const NODE_TOKEN: Value<Vec<u8>> = Value::path(
    "token-file",
    "FILE",
    "File with the node's bearer token; the service keeps it sealed, and shows it to nobody",
);
const NO_TOKEN: Switch = Switch::new("no-token", "Forget the node's token");
const READ_ONLY: Switch = Switch::new("read-only", "Tasks may not change anything there");
const READ_WRITE: Switch = Switch::new("read-write", "Tasks may change what is there");
const UPLOADS: Switch = Switch::new("uploads", "Files may be uploaded to it through the service, from the page");
const OWNERSHIP: Switch = Switch::new(
    "ownership",
    "Tasks set owners, special bits and devices there, where the node does. Only an admin allows it",
);
const NO_OWNERSHIP: Switch = Switch::new("no-ownership", "Tasks set no owners, special bits and devices there");
const NO_UPLOADS: Switch = Switch::new("no-uploads", "No files may be uploaded to it through the service");
const TRANSFERS: Value<u32> = Value::new("transfers", "N", parse_most, "Transfers at once; 0: no limit");
const STREAMS: Value<u16> = Value::new("streams", "N", parse_streams, "Data connections of each transfer; 0: no limit");
const RATE: Value<Option<u64>> =
    Value::new("rate", "RATE", parse_rate, "Bytes a second of each transfer, like 100MB; 0: no limit");
const TIMETABLE: Value<RateWindow> = Value::new(
    "timetable",
    "HH:MM-HH:MM=RATE",
    parse_window,
    "Another rate in these hours of the day; 0: no transfer begins [repeatable]",
);
const DRAIN: Value<String> = Value::new(
    "drain",
    "REASON",
    |text| Ok(text.to_owned()),
    "No transfer begins there from now on; attempts that run go on. Whoever waits is told the reason",
);
const UNDRAIN: Switch = Switch::new("undrain", "Transfers begin there again");
const VERIFY: Value<Verify> = Value::word("verify", "HOW", Verify::ALL, "What tasks do that do not say it");
const DESCRIPTION: Value<String> = Value::new("description", "TEXT", |text| Ok(text.to_owned()), "Free text");
const USERS: Value<String> = Value::new(
    "users",
    "LIST",
    |text| Ok(text.to_owned()),
    "Users who may use it beside its owner, separated by commas; * is everybody",
);

const FROM: Value<Vec<u8>> = Value::path(
    "from",
    "FILE",
    "Add the endpoints in FILE, one a line, as `carrack serve` prints it or as it is typed behind `carrack endpoint add`; \
     - is standard input",
);
const YES: Switch = Switch::new("yes", "Remove without asking; at a terminal you are asked");

const OWNER: Value<String> =
    Value::new("owner", "USER", |text| Ok(text.to_owned()), "Who owns it from now on; for admins");

const EXAMPLES: &str = "\
Examples:
  carrack endpoint add lab 'carrack://lab.example.org/data#sha256:FINGERPRINT' \\
      --token-file lab.token
  carrack endpoint add archive /archive --read-only
  carrack endpoint add cluster ssh://me@cluster/scratch --transfers 4 --rate 500MB
  carrack endpoint add --from endpoints.txt
  carrack endpoint test lab
  carrack task submit @lab:/run42 @archive:/";

/// What clap knows of it.
pub fn command() -> Command {
    let name = || NAME.arg().required(true);
    let add = Command::new("add")
        .about("Add an endpoint: a directory of the service's host, a node, or a host behind ssh")
        .arg(FROM.arg().conflicts_with_all([NAME.name, LOCATION.name]))
        .arg(NAME.arg().required_unless_present(FROM.name))
        .arg(
            LOCATION
                .arg()
                .required_unless_present(FROM.name)
                .help("/PATH, carrack://HOST/PATH[#sha256:FINGERPRINT] or ssh://[USER@]HOST/PATH"),
        )
        .args(described())
        .args([READ_ONLY.arg(), UPLOADS.arg(), OWNERSHIP.arg()]);
    let edit = Command::new("edit").about("Change an endpoint").arg(name()).arg(MOVED.arg()).args(described()).args([
        READ_ONLY.arg().conflicts_with(READ_WRITE.name),
        READ_WRITE.arg(),
        UPLOADS.arg().conflicts_with(NO_UPLOADS.name),
        NO_UPLOADS.arg(),
        OWNERSHIP.arg().conflicts_with(NO_OWNERSHIP.name),
        NO_OWNERSHIP.arg(),
        NO_TOKEN.arg(),
        OWNER.arg(),
        DRAIN.arg().conflicts_with(UNDRAIN.name),
        UNDRAIN.arg(),
    ]);
    let of = |name: &'static str, about: &'static str| Command::new(name).about(about).arg(NAMES.arg().required(true));
    Command::new("endpoint")
        .about("Managed transfers: the places that tasks name by @NAME")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(JSON.arg().global(true))
        .args(service::args())
        .subcommands([
            add,
            Command::new("list")
                .visible_alias("ls")
                .about("List the endpoints that you may use")
                .arg(CSV.arg().conflicts_with(JSON.name)),
            of("show", "Show endpoints in full"),
            of("test", "Look whether endpoints can be used: token, permissions, space, data ports, clock"),
            edit,
            of("rm", "Remove endpoints; no task may use them").arg(YES.arg()),
        ])
}

fn described() -> Vec<Arg> {
    vec![
        NODE_TOKEN.arg(),
        TRANSFERS.arg(),
        STREAMS.arg(),
        RATE.arg(),
        TIMETABLE.arg().action(ArgAction::Append),
        VERIFY.arg(),
        ENCRYPT.arg(),
        DESCRIPTION.arg(),
        USERS.arg().action(ArgAction::Append),
    ]
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let Some((action, flags)) = flags.subcommand() else {
        return Err(CommandError::usage("endpoint needs another word: see carrack endpoint --help"));
    };
    match action {
        "add" => add(&flags),
        "list" => list(&flags),
        "show" => show(&flags),
        "test" => test(&flags),
        "edit" => edit(&flags),
        _ => remove(&flags),
    }
}

fn names(flags: &Flags, positional: &Positional) -> Result<Vec<String>, CommandError> {
    let name = |word: &std::ffi::OsString| {
        // As a task names it, too.
        let word = word.as_bytes();
        check_endpoint_name(word.strip_prefix(b"@").unwrap_or(word)).map(str::to_owned).map_err(CommandError::usage)
    };
    flags.words(positional).map(name).collect()
}

fn name(flags: &Flags) -> Result<String, CommandError> {
    names(flags, &NAME)?.pop().ok_or_else(|| CommandError::usage("the name is missing"))
}

fn path_of(name: &str) -> String {
    format!("/endpoints/{}", segment(name))
}

fn add(flags: &Flags) -> Result<u8, CommandError> {
    if let Some(file) = flags.get(&FROM)? {
        return add_from(flags, &file);
    }
    let new = new_endpoint(flags)?;
    let service = Service::open(flags)?;
    let endpoint = service.call(&service.with(Call::post("/endpoints"), &new)?)?;
    tell(flags, &endpoint)?;
    note_unknown_users(&service, &new.users);
    Ok(exit::DONE)
}

/// Adds the endpoints of a file. All lines are read before the first is added; one that the service refuses keeps none
/// of the others from being added.
fn add_from(flags: &Flags, file: &[u8]) -> Result<u8, CommandError> {
    let new = lines_of(file)?;
    let (service, json) = (Service::open(flags)?, flags.has(&JSON));
    let (mut out, mut added, mut refused) = (Lines::stdout(json), 0, None);
    for (number, new) in &new {
        let call = service.with(Call::post("/endpoints"), new)?;
        match service.call::<Endpoint>(&call) {
            Ok(endpoint) if json => out.json(&told::object("endpoint", &endpoint)),
            Ok(endpoint) => out.line(format!("endpoint {}", human::safe(&endpoint.name)).as_bytes()),
            Err(error) => {
                say(&format!("failed: line {number}: {}: {error}", human::safe(&new.name)));
                refused.get_or_insert(error);
                continue;
            }
        }
        added += 1;
    }
    out.finish()?;
    match refused {
        Some(_) if added > 0 => Ok(exit::PARTIAL),
        Some(error) => Ok(error.exit_code()),
        None => Ok(exit::DONE),
    }
}

/// The endpoints that a file names, each with the number of its line.
///
/// # Errors
/// A file that cannot be read, and a usage error that names the first bad line.
fn lines_of(file: &[u8]) -> Result<Vec<(usize, NewEndpoint)>, CommandError> {
    let text = read_text(file, "cannot read the endpoints")?;
    let at = |number: usize, why: String| {
        CommandError::usage(format!("--from {}: line {number}: {why}", display_bytes(file)))
    };
    let mut found = Vec::new();
    for (line, number) in text.lines().map(str::trim).zip(1..) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // `carrack serve` prints a line that begins with words of its own.
        let typed = line.split_once("carrack endpoint add ").map_or(line, |(_, typed)| typed);
        let words = split_words(typed).map_err(|why| at(number, why))?;
        let line = ["endpoint", "add"].map(str::to_owned).into_iter().chain(words);
        let matches = command().try_get_matches_from(line).map_err(|refusal| at(number, first_line(&refusal)))?;
        // clap has taken the line.
        let Some(below) = matches.subcommand_matches("add") else { return Err(at(number, "no endpoint".to_owned())) };
        let flags = Flags::new(below, &|_| None);
        if flags.get(&FROM)?.is_some() {
            return Err(at(number, "a line names one endpoint, and no further file".to_owned()));
        }
        let new = new_endpoint(&flags).map_err(|error| at(number, error.failure.why))?;
        found.push((number, new));
    }
    if found.is_empty() {
        return Err(CommandError::usage(format!("--from {}: it has no line with an endpoint", display_bytes(file))));
    }
    Ok(found)
}

/// What clap says is wrong, without its tips.
fn first_line(refusal: &clap::Error) -> String {
    let text = refusal.render().to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// The endpoint that flags describe.
fn new_endpoint(flags: &Flags) -> Result<NewEndpoint, CommandError> {
    let location = flags.words(&LOCATION).next().map(|word| word.as_bytes()).unwrap_or_default();
    Ok(NewEndpoint {
        name: name(flags)?,
        location: parse_endpoint_location(location).map_err(CommandError::usage)?,
        read_only: flags.has(&READ_ONLY),
        uploads: flags.has(&UPLOADS),
        ownership: flags.has(&OWNERSHIP),
        limits: limits(flags, EndpointLimits::default())?,
        defaults: defaults(flags, EndpointDefaults::default())?,
        description: flags.get(&DESCRIPTION)?.unwrap_or_default(),
        users: flags.all(&USERS)?,
        token: token(flags)?,
    })
}

/// Notes users that do not exist: the endpoint is theirs as soon as somebody adds them. Who may not see users is told
/// nothing.
fn note_unknown_users(service: &Service, names: &[String]) {
    for name in names.iter().filter(|name| *name != "*") {
        let found: Result<User, _> = service.get(&format!("/users/{}", segment(name)));
        if found.is_err_and(|error| error.exit_code() == exit::FILE) {
            let shown = display_bytes(name.as_bytes());
            say(&format!("note: there is no user {shown}; carrack service user add {shown} adds one"));
        }
    }
}

fn edit(flags: &Flags) -> Result<u8, CommandError> {
    let (name, service) = (name(flags)?, Service::open(flags)?);
    let old: Endpoint = service.get(&path_of(&name))?;
    let location = flags.get(&MOVED)?.map(|text| parse_endpoint_location(&text).map_err(CommandError::usage));
    let (mut limits, defaults) = (limits(flags, old.limits.clone())?, defaults(flags, old.defaults.clone())?);
    if flags.has(&UNDRAIN) {
        limits.drained = None;
    }
    limits.drained = flags.get(&DRAIN)?.or(limits.drained);
    let users: Vec<String> = flags.all(&USERS)?;
    let named = users.clone();
    let update = EndpointUpdate {
        location: location.transpose()?,
        read_only: switched(flags, &READ_ONLY, &READ_WRITE),
        uploads: switched(flags, &UPLOADS, &NO_UPLOADS),
        ownership: switched(flags, &OWNERSHIP, &NO_OWNERSHIP),
        limits: (limits != old.limits).then_some(limits),
        defaults: (defaults != old.defaults).then_some(defaults),
        description: flags.get(&DESCRIPTION)?,
        users: (!users.is_empty()).then_some(users),
        owner: flags.get(&OWNER)?,
        token: if flags.has(&NO_TOKEN) { Some(None) } else { token(flags)?.map(Some) },
    };
    // What is written is what was read: somebody else's change in between is not undone.
    let call = Call::patch(path_of(&name)).header("If-Match", format!("\"{}\"", old.version));
    let endpoint: Endpoint = service.call(&service.with(call, &update)?)?;
    if old.has_token && !endpoint.has_token && !flags.has(&NO_TOKEN) {
        say("note: the token was the one of the place before, and is forgotten; --token-file gives another");
    }
    tell(flags, &endpoint)?;
    note_unknown_users(&service, &named);
    Ok(exit::DONE)
}

/// What one of two switches says, if any is given.
fn switched(flags: &Flags, on: &Switch, off: &Switch) -> Option<bool> {
    (flags.has(on) || flags.has(off)).then(|| flags.has(on))
}

fn tell(flags: &Flags, endpoint: &Endpoint) -> Result<u8, CommandError> {
    let json = flags.has(&JSON);
    let mut out = Lines::stdout(json);
    tell_one(&mut out, json, endpoint);
    out.finish()?;
    Ok(exit::DONE)
}

fn tell_one(out: &mut Lines, json: bool, endpoint: &Endpoint) {
    if json {
        out.json(&told::object("endpoint", endpoint));
    } else {
        show::endpoint_lines(endpoint).iter().for_each(|line| out.line(line.as_bytes()));
    }
}

fn limits(flags: &Flags, old: EndpointLimits) -> Result<EndpointLimits, CommandError> {
    let timetable = flags.all(&TIMETABLE)?;
    Ok(EndpointLimits {
        transfers: flags.get(&TRANSFERS)?.map_or(old.transfers, |most| (most > 0).then_some(most)),
        streams: flags.get(&STREAMS)?.map_or(old.streams, |most| (most > 0).then_some(most)),
        rate: flags.get(&RATE)?.unwrap_or(old.rate),
        timetable: if timetable.is_empty() { old.timetable } else { timetable },
        drained: old.drained,
    })
}

fn defaults(flags: &Flags, old: EndpointDefaults) -> Result<EndpointDefaults, CommandError> {
    let encrypt = flags.get(&ENCRYPT)?;
    let verify = flags.get(&VERIFY)?;
    Ok(EndpointDefaults { verify: verify.or(old.verify), encrypt: encrypt.or(old.encrypt) })
}

fn token(flags: &Flags) -> Result<Option<Secret>, CommandError> {
    // The environment's is for whatever this command itself would reach.
    let Some(given) = flags.given(&NODE_TOKEN).filter(|given| given.origin.starts_with("--")) else { return Ok(None) };
    let token = read_token(Path::new(OsStr::from_bytes(&given.value)))?;
    Ok(Some(Secret::new(token.reveal())))
}

fn list(flags: &Flags) -> Result<u8, CommandError> {
    let (service, json) = (Service::open(flags)?, flags.has(&JSON));
    let mut out = Lines::stdout(json);
    let mut table = AlignedRows::new(show::ENDPOINT_HEADINGS);
    let csv = flags.has(&CSV);
    if csv {
        out.line(ENDPOINT_CSV.headings().as_bytes());
    }
    service.rows::<Endpoint>("/endpoints", None, &mut |endpoint| {
        if json {
            out.json(&told::object("endpoint", &endpoint));
        } else if csv {
            out.line(ENDPOINT_CSV.line(&endpoint).as_bytes());
        } else {
            table.row(show::endpoint_row(&endpoint));
        }
        Ok(())
    })?;
    if !json && !csv && !table.write(&mut out) {
        say("there are no endpoints; carrack endpoint add NAME LOCATION adds one");
    }
    out.finish()?;
    Ok(exit::DONE)
}

fn show(flags: &Flags) -> Result<u8, CommandError> {
    let (service, json) = (Service::open(flags)?, flags.has(&JSON));
    let mut out = Lines::stdout(json);
    for name in names(flags, &NAMES)? {
        tell_one(&mut out, json, &service.get(&path_of(&name))?);
    }
    out.finish()?;
    Ok(exit::DONE)
}

/// Runs `test`: exit code 1 where something is not as it should be.
fn test(flags: &Flags) -> Result<u8, CommandError> {
    let (service, json) = (Service::open(flags)?, flags.has(&JSON));
    let mut out = Lines::stdout(true);
    let mut code = exit::DONE;
    for name in names(flags, &NAMES)? {
        let found: EndpointTest = service.call(&Call::post(format!("{}/test", path_of(&name))))?;
        if !found.ok {
            code = exit::OTHER;
        }
        if json {
            let mut object = told::object("endpoint-test", &found);
            object["name"] = serde_json::json!(name);
            out.json(&object);
            continue;
        }
        out.line(human::safe(&test_summary(&name, &found)).as_bytes());
        for check in &found.checks {
            let state = match check.ok {
                Some(true) => "good",
                Some(false) => "BAD",
                None => "note",
            };
            out.line(human::safe(&format!("  {state}: {}: {}", check.name, check.told)).as_bytes());
            if let Some(fix) = &check.fix {
                out.line(human::safe(&format!("    to fix it: {fix}")).as_bytes());
            }
        }
    }
    out.finish()?;
    Ok(code)
}

/// How a test went, in a line.
fn test_summary(name: &str, found: &EndpointTest) -> String {
    let of = |ok: Option<bool>| found.checks.iter().filter(|check| check.ok == ok).count() as u64;
    let (good, bad, notes) = (of(Some(true)), of(Some(false)), of(None));
    let notes = if notes == 0 { String::new() } else { format!(", {}", counted(notes, "note", "notes")) };
    match found.ok {
        true => format!("{name}: can be used: {} passed{notes}", counted(good, "check", "checks")),
        false => format!("{name}: {} failed, {} passed{notes}", counted(bad, "check", "checks"), count(good)),
    }
}

/// Whether an endpoint is to be removed: a person at a terminal is asked.
fn is_agreed(flags: &Flags, service: &Service, name: &str) -> Result<bool, CommandError> {
    if flags.has(&YES) || flags.has(&JSON) || !question::is_watched() {
        return Ok(true);
    }
    let found: Endpoint = service.get(&path_of(name))?;
    let open = found.health.map_or(0, |health| health.open_tasks);
    let tasks =
        if open == 0 { String::new() } else { format!(", which {} use", counted(open, "open task", "open tasks")) };
    let asked = format!("Remove the endpoint {name} ({}){tasks}? [y/N] ", found.location.text());
    Ok(question::ask(&human::safe(&asked), &|| carrack_sys::signal::stop_requested().is_some()))
}

fn remove(flags: &Flags) -> Result<u8, CommandError> {
    let (service, json) = (Service::open(flags)?, flags.has(&JSON));
    let mut out = Lines::stdout(json);
    for name in names(flags, &NAMES)? {
        if !is_agreed(flags, &service, &name)? {
            say(&format!("the endpoint {name} stays"));
            continue;
        }
        service.run(&Call::delete(path_of(&name)))?;
        if json {
            out.json(&told::object("endpoint-removed", &serde_json::json!({ "name": name })));
        } else {
            say(&format!("the endpoint {name} is removed"));
        }
    }
    out.finish()?;
    Ok(exit::DONE)
}

fn parse_most(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}

fn parse_streams(text: &str) -> Result<u16, String> {
    let most = carrack_core::limits::STREAMS;
    text.parse().ok().filter(|streams| *streams <= most).ok_or_else(|| format!("{text:?} is not a number up to {most}"))
}

/// `08:00-18:00=100MB`
fn parse_window(text: &str) -> Result<RateWindow, String> {
    let bad = || format!("{text:?} is not hours with a rate, like 08:00-18:00=100MB");
    let (hours, rate) = text.split_once('=').ok_or_else(bad)?;
    let (from, until) = hours.split_once('-').ok_or_else(bad)?;
    let is_hour = |hour: &str| {
        let (hours, minutes) = hour.split_once(':')?;
        let number = |text: &str, most| text.parse::<u8>().ok().filter(|number| text.len() == 2 && *number < most);
        number(hours, 24)?;
        number(minutes, 60)
    };
    if is_hour(from).is_none() || is_hour(until).is_none() {
        return Err(bad());
    }
    Ok(RateWindow { from: from.to_owned(), until: until.to_owned(), rate: parse_rate(rate)?.unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_of_a_file_are_lines_as_they_are_typed_or_printed() {
        let directory = tempfile::tempdir().expect("a directory");
        let read = |text: &str| {
            let file = directory.path().join("endpoints");
            std::fs::write(&file, text).expect("written");
            lines_of(file.as_os_str().as_bytes()).map_err(|error| error.to_string())
        };
        let pin = "ab".repeat(32);
        let text = format!(
            "# ours\n\nlab 'carrack://lab/#sha256:{pin}' --transfers 4\n\
             to name it in a service: carrack endpoint add data carrack://box:7421/\narchive '/my archive' --read-only\n"
        );
        let found = read(&text).expect("three lines");
        let shown: Vec<_> = found.iter().map(|(line, new)| (*line, &new.name[..], new.location.text())).collect();
        assert_eq!(shown[0], (3, "lab", format!("carrack://lab:7420/#sha256:{pin}")));
        assert_eq!(shown[1], (4, "data", "carrack://box:7421/".to_owned()));
        assert_eq!(shown[2], (5, "archive", "/my archive".to_owned()));
        assert_eq!((found[0].1.limits.transfers, found[2].1.read_only), (Some(4), true));
        for (text, why) in [
            ("", "no line with an endpoint"),
            ("lab /x\nlab\n", "line 2: "),
            ("lab /x --nosuch\n", "line 1: unexpected argument '--nosuch'"),
            ("lab null:\n", "line 1: null:: an endpoint is"),
            ("--from other\n", "line 1: a line names one endpoint"),
            ("lab '/x\n", "a quote that is not closed"),
        ] {
            let told = read(text).expect_err(text);
            assert!(told.contains(why), "{text}: {told}");
        }
    }

    #[test]
    fn endpoint_test_is_summed_up_in_a_line() {
        let check = |ok| serde_json::json!({ "name": "n", "ok": ok, "told": "so" });
        let found = |ok: bool, checks: &[Option<bool>]| {
            let checks: Vec<_> = checks.iter().map(|ok| check(*ok)).collect();
            serde_json::from_value(serde_json::json!({ "ok": ok, "checks": checks })).expect("a test")
        };
        let good = found(true, &[Some(true), None]);
        assert_eq!(test_summary("lab", &good), "lab: can be used: 1 check passed, 1 note");
        let bad = found(false, &[Some(true), Some(false), Some(true)]);
        assert_eq!(test_summary("lab", &bad), "lab: 1 check failed, 2 passed");
    }

    #[test]
    fn endpoint_timetables_are_hours_with_a_rate() {
        let window = RateWindow { from: "22:00".into(), until: "06:30".into(), rate: 100_000_000 };
        assert_eq!(parse_window("22:00-06:30=100MB"), Ok(window));
        assert_eq!(parse_window("08:00-18:00=0").map(|window| window.rate), Ok(0));
        for text in
            ["", "8:00-18:00=1MB", "08:00-24:00=1MB", "08:00-18:60=1MB", "08:00=1MB", "08:00-18:00", "08:00-18:00=x"]
        {
            assert!(parse_window(text).is_err(), "{text}");
        }
    }
}
