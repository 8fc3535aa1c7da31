//! `carrack verify RECEIPT [LOCATION]`: whether a receipt is what somebody signed, and whether a place still has what
//! it says.

use std::time::{Duration, Instant};

use carrack_core::credential::Credential;
use carrack_core::path::display_bytes;
use carrack_core::plan::check::{CheckCounts, CheckFinding};
use carrack_core::report::{ErrorCode, Event, Failure, ItemKind, Side};
use carrack_core::request::{Compare, CopyOptions, EndOptions};
use carrack_engine::check::{SurveyedPlace, survey};
use carrack_receipt::{ReadReceipt, ReceiptError, Statement};
use clap::{ArgAction, Command};
use serde_json::json;

use super::named::{self, Needs, VerbPlace};
use super::place::VerbRun;
use super::reach::{credential, reach, with_endpoints};
use super::receipt::{describe, statement_lines};
use crate::cli::flag::{Positional, Switch, Value};
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::exit;
use crate::output::{format, human, json as objects, say};
use crate::receipts::{self, Signer};

const RECEIPT: Positional = Positional::one("receipt", "RECEIPT");
const PLACE: Positional = Positional::one("place", "LOCATION");
const VERBOSE: Switch = Switch::short('v', "verbose", "Name also what is the same, and what the receipt does not name");
const SIGNED_BY: Value<String> = Value::new(
    "signed-by",
    "NAME",
    |text| Ok(text.to_owned()),
    "Accept a signature of this signer alone, as `carrack receipt keys` names it; self is your own key",
);
/// How often progress is told.
const PROGRESS: Duration = Duration::from_secs(10);

const NOTES: &str = "\
Without LOCATION only the receipt is looked at: whether it was altered, and who signed it. With LOCATION, the directory
that the receipt names as its destination or another place with the same files, everything that the receipt says of
content and attributes is compared; digests are made where the files are, and nothing is moved.

  *  something has changed, and what        +  only the receipt has it: it is not there any more
  -  only the place has it (with -v)        !  it could not be read

Exit code 27 says that something has changed, 26 that the receipt was altered, 77 that its signer is not known.";

/// What clap knows of it.
pub fn command() -> Command {
    let verb = Command::new("verify")
        .about("Check a receipt, and whether a place still has what it says")
        .after_help(NOTES)
        .arg(SIGNED_BY.arg())
        .arg(VERBOSE.arg().action(ArgAction::SetTrue).help_heading("Output"))
        .args([
            RECEIPT.arg().required(true).help("A file that --receipt has written"),
            PLACE.arg().help("Where the files are now; a LOCATION, as in `carrack --help`"),
        ]);
    with_endpoints(verb)
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let path = flags.words(&RECEIPT).next().map(|word| word.as_encoded_bytes().to_vec()).unwrap_or_default();
    let mut receipt = receipts::open(&path)?;
    let signer = check_signer(flags, &path, &receipt)?;
    let mut run = VerbRun::new("verify", flags)?;
    let places = named::places(flags, &PLACE, Needs::READ)?;
    if !run.quiet && !run.json {
        say(&format!("signed by {}", describe(&signer, receipt.signature.key)));
        statement_lines(&receipt.statement).iter().for_each(|line| say(line));
    }
    let Some(place) = places.first() else {
        run.done = receipt.statement.items;
        return finish(run, &receipt, &signer, None);
    };
    run.path_of(place)?;
    let mut verifying = Verifying {
        run,
        place,
        names_all: flags.has(&VERBOSE),
        began: Instant::now(),
        told: Instant::now(),
        unclaimed: 0,
    };
    let compared = verifying.compare(flags, &path, &mut receipt)?;
    let Verifying { run, unclaimed, .. } = verifying;
    tell_counts(&run, &receipt.statement, &compared, unclaimed);
    finish(run, &receipt, &signer, Some((compared, unclaimed)))
}

fn check_signer<R>(flags: &Flags, path: &[u8], receipt: &ReadReceipt<R>) -> Result<Signer, CommandError> {
    let key = receipt.signature.key;
    let signer = receipts::signer(key)?;
    let name = display_bytes(path);
    let refuse = |what: String| CommandError::from(Failure::new(ErrorCode::KeyMismatch, Side::Command, what));
    match (&signer, flags.get(&SIGNED_BY)?) {
        (Signer::Unknown, _) => {
            Err(refuse(format!("the receipt {name} is signed by a key that you do not know: {}", key.fingerprint()))
                .hint("ask its signer for the fingerprint; `carrack receipt keys` shows it there")
                .hint(format!("if it is this one: carrack receipt trust NAME '{key}'")))
        }
        (Signer::Own, Some(wanted)) if wanted != "self" => {
            Err(refuse(format!("the receipt {name} is signed by your own key, not by {wanted}")))
        }
        (Signer::Known(known), Some(wanted)) if *known != wanted => {
            Err(refuse(format!("the receipt {name} is signed by {known}, not by {wanted}")))
        }
        _ => Ok(signer),
    }
}

/// A receipt while it is compared with a place.
struct Verifying<'a> {
    run: VerbRun<'a>,
    place: &'a VerbPlace,
    names_all: bool,
    began: Instant,
    told: Instant,
    /// Items that only the place has.
    unclaimed: u64,
}

impl Verifying<'_> {
    fn compare(
        &mut self,
        flags: &Flags,
        path: &[u8],
        receipt: &mut ReadReceipt<std::fs::File>,
    ) -> Result<CheckCounts, CommandError> {
        let location = self.place.location().clone();
        // A receipt of one file may be compared with that file, whatever its name is now.
        let only = receipt.only_item().map_err(|error| receipts::refused(path, &error))?;
        let only = if only.is_some() && self.is_file()? { only } else { None };
        let own = match self.place.endpoint() {
            Some(_) => Credential::None,
            None => credential(flags, std::slice::from_ref(&location))?,
        };
        let credential = self.place.credential().unwrap_or(own);
        let end = EndOptions { reach: reach(flags)?, credential, ..EndOptions::default() };
        let options = CopyOptions {
            compare: Compare::Content,
            kept: receipt.statement.kept(),
            only: match only {
                Some(_) => None,
                None => carrack_receipt::tops(receipt).map_err(|error| receipts::refused(path, &error))?,
            },
            ..CopyOptions::default()
        };
        let surveyed = SurveyedPlace { location: &location, end: &end, options: &options, side: Side::Destination };
        let is_quiet = self.run.quiet || self.run.json;
        let observer = move |event: Event| {
            if let (false, Event::Note(_) | Event::SessionLost { .. }) = (is_quiet, &event) {
                human::event(&event, 0).iter().for_each(|line| say(line));
            }
        };
        let place = self.place;
        let compared = survey(surveyed, &super::context::context(), &observer, |pull| {
            carrack_receipt::compare(receipt, only.as_ref(), pull, &mut |path, finding| self.found(path, finding))
        })?;
        compared.map_err(|error| match error {
            ReceiptError::Unread(why) => place.tell(why).into(),
            other => receipts::refused(path, &other),
        })
    }

    fn is_file(&mut self) -> Result<bool, CommandError> {
        let mut is_file = false;
        let place = [self.place.clone()];
        self.run.each(&place, |_, files, place| {
            is_file = files.stat(place.path())?.kind == ItemKind::File;
            Ok(())
        })?;
        Ok(is_file)
    }

    fn found(&mut self, path: &[u8], finding: &CheckFinding) {
        self.run.done += 1;
        let name = if path.is_empty() { b"." } else { path };
        match finding {
            CheckFinding::Same(_) if self.names_all => self.line('=', name, &[]),
            CheckFinding::Same(_) => self.progress(),
            CheckFinding::OnlySource(_) => self.line('+', name, &[]),
            // A receipt names what is in directories.
            CheckFinding::OnlyDestination(facts) if facts.state.kind == ItemKind::Directory => self.run.done -= 1,
            CheckFinding::OnlyDestination(_) => {
                self.unclaimed += 1;
                if self.names_all {
                    self.line('-', name, &[]);
                }
            }
            CheckFinding::Differs(_, differs) => self.line('*', name, &differs.words().collect::<Vec<_>>()),
            CheckFinding::Failed(why) => {
                self.run.done -= 1;
                if !self.run.json {
                    self.run.line(format!("! {}", display_bytes(name)).as_bytes());
                }
                self.run.fail(name, why.clone());
            }
        }
    }

    fn line(&mut self, sign: char, name: &[u8], words: &[&str]) {
        if self.run.json {
            let mut fields = json!({ "sign": sign });
            if !words.is_empty() {
                fields["differs"] = json!(words);
            }
            return self.run.json("difference", objects::with_path(fields, name));
        }
        let why = if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) };
        self.run.line(format!("{sign} {}{why}", display_bytes(name)).as_bytes());
    }

    fn progress(&mut self) {
        if self.run.quiet || self.run.json || self.told.elapsed() < PROGRESS {
            return;
        }
        self.told = Instant::now();
        say(&format!("{} compared items: {}", format::clock(self.began.elapsed()), format::count(self.run.done)));
    }
}

fn tell_counts(run: &VerbRun, statement: &Statement, counts: &CheckCounts, unclaimed: u64) {
    if run.quiet || run.json {
        return;
    }
    let CheckCounts { same, differing, only_source, failed, .. } = *counts;
    let parts = [(differing, "changed"), (only_source, "not there"), (failed, "could not be read")];
    let parts: Vec<String> = parts
        .iter()
        .filter(|part| part.0 > 0)
        .map(|(count, what)| format!("{} {what}", format::count(*count)))
        .collect();
    let outcome = if parts.is_empty() { "nothing has changed".to_owned() } else { parts.join(", ") };
    let items = format::counted(same + differing + only_source, "item", "items");
    say(&format!("compared {items} of {}: {outcome}", format::count(statement.items)));
    if unclaimed > 0 {
        let items = format::counted(unclaimed, "item", "items");
        say(&format!("not in the receipt: {items} of the place (-v names them)"));
    }
}

fn finish<R>(
    run: VerbRun,
    receipt: &ReadReceipt<R>,
    signer: &Signer,
    compared: Option<(CheckCounts, u64)>,
) -> Result<u8, CommandError> {
    let mut fields = json!({
        "key": receipt.signature.key.fingerprint(),
        "statement": receipt.statement,
    });
    match signer {
        Signer::Own => fields["signer"] = json!("self"),
        Signer::Known(name) => fields["signer"] = json!(name),
        Signer::Unknown => {}
    }
    let mut code = exit::DONE;
    if let Some((CheckCounts { same, differing, only_source, failed, .. }, unclaimed)) = compared {
        fields["compared"] = json!({
            "same": same, "different": differing, "missing": only_source, "failed": failed, "unclaimed": unclaimed,
        });
        code = if differing + only_source > 0 { exit::DIFFERENCES } else { exit::DONE };
    }
    run.finish_with(code, fields)
}
