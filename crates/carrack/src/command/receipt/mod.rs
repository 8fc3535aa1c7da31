//! `carrack receipt`: what a receipt says, whose signatures are believed, and other tools' lists from it.

mod bag;
mod lists;

use std::ffi::OsStr;
use std::path::Path;
use std::time::SystemTime;

use carrack_core::path::display_bytes;
use carrack_receipt::{KeptSigner, PublicKey, Statement};
use clap::Command;
use serde_json::json;

use super::reach::JSON;
use crate::cli::flag::Positional;
#[cfg(feature = "service")]
use crate::cli::flag::Switch;
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::exit;
use crate::output::lines::Lines;
use crate::output::{format, json as objects, say};
use crate::receipts::{self, Signer};

const FILE: Positional = Positional::one("file", "RECEIPT");
const NAME: Positional = Positional::one("name", "NAME");
const NAMES: Positional = Positional::several("names", "NAME...");
const KEY: Positional = Positional::one("key", "KEY");
const FORM: Positional = Positional::one("form", "FORM");
const DIRECTORY: Positional = Positional::one("directory", "DIR");

const NOTES: &str = "\
A receipt is a text file that `carrack copy --receipt FILE` or `sync --receipt FILE` writes: one line for each item, then
one that says what was done, then a signature. `carrack verify` compares it with the files. Others can check the signature
without Carrack:

  carrack receipt keys >signers
  sed '/^-----BEGIN SSH SIGNATURE-----/,$d' FILE |
    ssh-keygen -Y verify -f signers -I self -n carrack-receipt -s <(sed -n '/^-----BEGIN SSH/,$p' FILE)";

/// What clap knows of it.
pub fn command() -> Command {
    let file = || FILE.arg().required(true).help("A file that --receipt has written");
    let show = Command::new("show").about("Show what a receipt says as a whole, and who signed it").arg(file());
    let keys = Command::new("keys")
        .visible_alias("ls")
        .about("List your own key and those that you know, as `ssh-keygen -Y verify` reads them");
    let trust = Command::new("trust")
        .about("Believe what a key has signed")
        .arg(NAME.arg().required(true).help("Whose it is: one word, for instance ann@lab"))
        .arg(KEY.arg().help("The line 'ssh-ed25519 AAAA…' that `receipt keys` shows at its owner's"))
        .args(key_of_service());
    let forget = Command::new("forget").about("Believe signers no more").arg(NAMES.arg().required(true));
    let list = Command::new("list")
        .about("Print the digests of a receipt's files, for other tools")
        .arg(FORM.arg().required(true).help(
            "b3sum: for `b3sum -c`; sha256sum: for `sha256sum -c`, made from the files in DIR; ro-crate: the JSON of an RO-Crate",
        ))
        .arg(file())
        .arg(DIRECTORY.arg().help("For sha256sum: the directory with the files; each is compared with the receipt"));
    let bag = Command::new("bag")
        .about("Make a BagIt bag of a directory whose files are in DIR/data")
        .arg(file())
        .arg(DIRECTORY.arg().required(true).help("The bag: its files are in DIR/data, as the receipt names them"));
    Command::new("receipt")
        .about("Show receipts, keep the keys of their signers, export lists and bags")
        .after_help(NOTES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(JSON.arg().global(true))
        .subcommands([show, keys, trust, forget, list, bag])
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let Some((action, flags)) = flags.subcommand() else {
        return Err(CommandError::usage("receipt needs show, keys, trust, forget, list or bag"));
    };
    let json = flags.has(&JSON);
    match action {
        "show" => show(&flags, json)?,
        "keys" => keys(json)?,
        "trust" => trust(&flags, json)?,
        "forget" => forget(&flags)?,
        "list" => lists::list(&path(&flags), &text(&flags, &FORM)?, Path::new(word(&flags, &DIRECTORY)))?,
        _ => bag::make(&path(&flags), Path::new(word(&flags, &DIRECTORY)), json)?,
    }
    Ok(exit::DONE)
}

fn word<'a>(flags: &'a Flags, positional: &Positional) -> &'a OsStr {
    flags.words(positional).next().map_or(OsStr::new(""), |word| word)
}

fn text(flags: &Flags, positional: &Positional) -> Result<String, CommandError> {
    readable(word(flags, positional), positional)
}

fn readable(word: &OsStr, positional: &Positional) -> Result<String, CommandError> {
    let text = word.to_str().map(str::to_owned);
    text.ok_or_else(|| CommandError::usage(format!("{} is not UTF-8", positional.name)))
}

fn path(flags: &Flags) -> Vec<u8> {
    word(flags, &FILE).as_encoded_bytes().to_vec()
}

/// Whose a key is, in words.
pub fn describe(signer: &Signer, key: PublicKey) -> String {
    let fingerprint = key.fingerprint();
    match signer {
        Signer::Own => format!("your own key ({fingerprint})"),
        Signer::Known(name) => format!("{name} ({fingerprint})"),
        Signer::Unknown => format!("a key that you do not know ({fingerprint})"),
    }
}

/// What a receipt says as a whole.
pub fn statement_lines(statement: &Statement) -> Vec<String> {
    let Statement { of, ending, began, made, sources, destination, hosts, transport, verified, .. } = statement;
    let mut lines = vec![format!("a {of}, {ending}; begun {began}, receipt made {made}")];
    if let Some(error) = &statement.error {
        lines.push(format!("it ended early: {}", display_bytes(error.as_bytes())));
    }
    for source in sources {
        lines.push(format!("from {}", display_bytes(source.as_bytes())));
    }
    if !destination.is_empty() {
        lines.push(format!("to {}", display_bytes(destination.as_bytes())));
    }
    for host in hosts {
        let key = host.key.as_ref().map(|key| format!(", key {key}")).unwrap_or_default();
        let text = format!("{}: {} ({}, carrack {}{key})", host.side, host.name, host.system, host.program);
        lines.push(display_bytes(text.as_bytes()).to_string());
    }
    if let Some(transport) = transport {
        let text = format!("link: {}, cipher {}", transport.link, transport.cipher);
        lines.push(display_bytes(text.as_bytes()).to_string());
    }
    let durable = match (&statement.durable, statement.is_durable) {
        (Some(asked), Some(true)) => format!(", on stable storage ({asked})"),
        (Some(asked), _) => format!(", not known to be on stable storage ({asked})"),
        (None, _) => String::new(),
    };
    lines.extend(verified.as_ref().map(|level| format!("verified: {level}{durable}")));
    let outcomes: Vec<String> =
        statement.outcomes.iter().map(|(outcome, count)| format!("{} {outcome}", format::count(*count))).collect();
    let outcomes = if outcomes.is_empty() { "none".to_owned() } else { outcomes.join(", ") };
    lines.push(format!("items: {outcomes}; {} of files", format::size(statement.bytes)));
    for (what, count) in &statement.unkept {
        lines.push(format!("not kept: {what} of {}", format::counted(*count, "item", "items")));
    }
    for (what, count) in &statement.left_out {
        lines.push(format!("left out: {} {what}", format::count(*count)));
    }
    lines.extend(statement.not_claimed.iter().map(|what| format!("not claimed: {}", display_bytes(what.as_bytes()))));
    lines
}

fn show(flags: &Flags, json: bool) -> Result<(), CommandError> {
    let receipt = receipts::open(&path(flags))?;
    let key = receipt.signature.key;
    let signer = receipts::signer(key)?;
    let mut out = Lines::stdout(json);
    if json {
        let fields = json!({ "key": key.fingerprint(), "statement": receipt.statement });
        out.json(&objects::object("receipt", SystemTime::now(), fields));
    } else {
        out.line(format!("signed by {}", describe(&signer, key)).as_bytes());
        statement_lines(&receipt.statement).iter().for_each(|line| out.line(line.as_bytes()));
    }
    out.finish()
}

fn keys(json: bool) -> Result<(), CommandError> {
    let own = receipts::own_key_or_new()?.public();
    let signers = receipts::signers()?;
    let own = KeptSigner::new("self", own).map_err(CommandError::usage)?;
    let mut out = Lines::stdout(json);
    for signer in [&own].into_iter().chain(&signers.kept) {
        if json {
            let fields =
                json!({ "name": signer.name, "key": signer.key.to_string(), "fingerprint": signer.key.fingerprint() });
            out.json(&objects::object("receipt_key", SystemTime::now(), fields));
        } else {
            out.line(signer.to_string().as_bytes());
        }
    }
    if !signers.passed_over.is_empty() && !json {
        let lines: Vec<String> = signers.passed_over.iter().map(u64::to_string).collect();
        let file = receipts::signers_path();
        say(&format!("note: lines {} of {} are of no use here", lines.join(", "), file.display()));
    }
    out.finish()
}

fn trust(flags: &Flags, json: bool) -> Result<(), CommandError> {
    let name = &text(flags, &NAME)?;
    let text = match (flags.words(&KEY).next(), service_key(flags)?) {
        (Some(word), None) => readable(word, &KEY)?,
        (None, Some(key)) => key,
        _ => return Err(CommandError::usage("receipt trust needs a key, or --of-service")),
    };
    let key = PublicKey::parse(&text).ok_or_else(|| {
        CommandError::usage("that is no Ed25519 key as OpenSSH writes it")
            .hint("take the words 'ssh-ed25519 AAAA…' of the line that `carrack receipt keys` prints at its owner's")
    })?;
    if name == "self" {
        return Err(CommandError::usage("self is your own key: choose another name"));
    }
    let signer = KeptSigner::new(name, key).map_err(CommandError::usage)?;
    let known = receipts::signers()?;
    if known.kept.contains(&signer) {
        say(&format!("{name} is believed already"));
        return Ok(());
    }
    let line = signer.to_string();
    receipts::change_signers(|lines| lines.push(line.clone()))?;
    if json {
        let mut out = Lines::stdout(true);
        let fields = json!({ "name": name, "key": key.to_string(), "fingerprint": key.fingerprint() });
        out.json(&objects::object("receipt_key", SystemTime::now(), fields));
        return out.finish();
    }
    say(&format!("what {name} signs with {} is believed from now on", key.fingerprint()));
    Ok(())
}

#[cfg(feature = "service")]
const OF_SERVICE: Switch = Switch::new("of-service", "The key of the service that you are logged in to");

/// A service tells its key itself.
#[cfg(feature = "service")]
fn key_of_service() -> [clap::Arg; 2] {
    [OF_SERVICE.arg().conflicts_with(KEY.name), crate::managed::service::arg()]
}

#[cfg(not(feature = "service"))]
fn key_of_service() -> [clap::Arg; 0] {
    []
}

#[cfg(feature = "service")]
fn service_key(flags: &Flags) -> Result<Option<String>, CommandError> {
    if !flags.has(&OF_SERVICE) {
        return Ok(None);
    }
    let service = crate::managed::service::Service::open(flags)?;
    let signer: carrack_service::model::ReceiptSigner = service.get("/receipts/key")?;
    Ok(Some(signer.key))
}

#[cfg(not(feature = "service"))]
fn service_key(_: &Flags) -> Result<Option<String>, CommandError> {
    Ok(None)
}

fn forget(flags: &Flags) -> Result<(), CommandError> {
    let known = receipts::signers()?;
    let names: Result<Vec<String>, _> = flags.words(&NAMES).map(|word| readable(word, &NAMES)).collect();
    let names = names?;
    for name in &names {
        if !known.kept.iter().any(|signer| signer.name == *name) {
            return Err(CommandError::usage(format!("no key of {name:?} is known")));
        }
    }
    for name in &names {
        receipts::change_signers(|lines| lines.retain(|line| !receipts::is_line_of(line, name)))?;
        say(&format!("what {name} signs is not believed any more"));
    }
    Ok(())
}
