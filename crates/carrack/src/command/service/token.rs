//! `carrack service token`: tokens that act for a user.

use carrack_core::words::parse_among;
use carrack_service::client::{Call, segment, with_query};
use carrack_service::clock::Moment;
use carrack_service::model::{Ceilings, Listed, MadeToken, NewToken, Scope, TokenRow, Verb};
use clap::{ArgAction, Command};

use crate::cli::flag::{Positional, Value};
use crate::cli::flags::Flags;
use crate::cli::moment::parse_until;
use crate::command::reach::JSON;
use crate::command::task::told;
use crate::error::CommandError;
use crate::exit;
use crate::managed::identifier::{Identified, identifier};
use crate::managed::service::Service;
use crate::managed::show;
use crate::managed::table::{AlignedRows, CSV, TOKEN_CSV};
use crate::output::lines::Lines;
use crate::output::say;
use carrack_core::duration::parse_timeout;
use carrack_core::size::parse_size;

const TOKENS: Positional = Positional::several("token", "TOKEN");
const USER: Value<String> =
    Value::new("user", "USER", |text| Ok(text.to_owned()), "Of this user (for administrators) [default: you]");
const LABEL: Value<String> = Value::new("label", "TEXT", |text| Ok(text.to_owned()), "What it is for");
const VERBS: Value<Verb> = Value::new(
    "verbs",
    "LIST",
    |text| parse_among(text, Verb::ALL),
    "What it may be used for: read, write, delete, ownership, tasks, view, metrics, admin, separated by commas [default: \
     all that its user may do]",
);
const ENDPOINT: Value<String> = Value::new(
    "endpoint",
    "NAME",
    |text| Ok(text.strip_prefix('@').unwrap_or(text).to_owned()),
    "Only at this endpoint; a token that copies between two names both [repeatable]",
);
const PATH: Value<String> =
    Value::new("path", "PATH", |text| Ok(text.to_owned()), "Only at this path of the one endpoint, and below it");
const EXPIRES: Value<Moment> =
    Value::new("expires", "TIME", parse_until, "When it ends: 30d from now, or a time [default: never]");
const ENTRIES: Value<u64> =
    Value::new("most-entries", "N", parse_count, "At most so many files and directories, in all");
const BYTES: Value<u64> = Value::new("most-bytes", "SIZE", parse_size, "At most so many bytes, in all");
const DELETIONS: Value<u64> = Value::new("most-deletions", "N", parse_count, "At most so many deletions, in all");
const RUN_TIME: Value<std::time::Duration> =
    Value::new("most-time", "TIME", parse_timeout, "No attempt of a task, and no request, longer than TIME");

/// What clap knows of it.
pub fn command() -> Command {
    let create = Command::new("create")
        .about("Make a token; it is printed once, and known to nobody afterwards")
        .args([USER.arg(), LABEL.arg()])
        .arg(VERBS.arg().action(ArgAction::Append))
        .args([ENDPOINT.arg().action(ArgAction::Append), PATH.arg().requires(ENDPOINT.name), EXPIRES.arg()])
        .args([ENTRIES.arg(), BYTES.arg(), DELETIONS.arg(), RUN_TIME.arg()]);
    Command::new("token")
        .about("Make, list and revoke tokens")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            create,
            Command::new("list")
                .visible_alias("ls")
                .about("List tokens; none is shown")
                .args([USER.arg(), CSV.arg().conflicts_with(JSON.name)]),
            Command::new("revoke")
                .visible_alias("rm")
                .about("Revoke tokens; work under way with them ends within seconds")
                .arg(TOKENS.arg().required(true)),
        ])
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let Some((action, flags)) = flags.subcommand() else {
        return Err(CommandError::usage("token needs another word: create, list or revoke"));
    };
    let (service, json) = (Service::open(&flags)?, flags.has(&JSON));
    let mut out = Lines::stdout(json);
    match action {
        "create" => {
            let new = new_token(&flags)?;
            let made: MadeToken = service.call(&service.with(Call::post("/tokens"), &new)?)?;
            if json {
                let mut object = told::object("service-token", &made.row);
                object["token"] = serde_json::json!(made.token.reveal());
                out.json(&object);
            } else {
                out.line(made.token.reveal().as_bytes());
                say(&format!("the token {} is shown this once; keep it where only its user can read it", made.row.id));
            }
        }
        "list" => {
            let (csv, mut table) = (flags.has(&CSV), AlignedRows::new(show::TOKEN_HEADINGS));
            if csv {
                out.line(TOKEN_CSV.headings().as_bytes());
            }
            let path = match flags.get(&USER)? {
                Some(user) => with_query("/tokens", &[("user", &user)]),
                None => "/tokens".to_owned(),
            };
            // A user's tokens are few: they come all at once.
            for row in service.get::<Listed<TokenRow>>(&path)?.items {
                if json {
                    out.json(&told::object("service-token", &row));
                } else if csv {
                    out.line(TOKEN_CSV.line(&row).as_bytes());
                } else {
                    table.row(show::token_row(&row));
                }
            }
            if !json && !csv && !table.write(&mut out) {
                say("there are no tokens");
            }
        }
        _ => {
            for word in flags.words(&TOKENS) {
                let id = identifier(&service, Identified::Token, word)?;
                service.run(&Call::delete(format!("/tokens/{}", segment(&id))))?;
                if json {
                    out.json(&told::object("service-token-revoked", &serde_json::json!({ "id": id })));
                } else {
                    say(&format!("the token {id} is revoked"));
                }
            }
        }
    }
    out.finish()?;
    Ok(exit::DONE)
}

fn new_token(flags: &Flags) -> Result<NewToken, CommandError> {
    let ceilings = Ceilings {
        entries: flags.get(&ENTRIES)?,
        bytes: flags.get(&BYTES)?,
        deletions: flags.get(&DELETIONS)?,
        run_seconds: flags.get(&RUN_TIME)?.map(|time| time.as_secs().max(1)),
    };
    let scope =
        Scope { verbs: flags.all(&VERBS)?, endpoints: flags.all(&ENDPOINT)?, path: flags.get(&PATH)?, ceilings };
    if scope.endpoints.len() > 1 && scope.path.is_some() {
        return Err(CommandError::usage("--path is one of one endpoint, and --endpoint names several")
            .hint("make a token for each place, or leave --path out"));
    }
    if scope.verbs.is_empty() && scope != Scope::default() {
        return Err(CommandError::usage("a token that is limited needs --verbs: what is not named is refused"));
    }
    Ok(NewToken {
        user: flags.get(&USER)?,
        label: flags.get(&LABEL)?.unwrap_or_default(),
        scope: (scope != Scope::default()).then_some(scope),
        expires: flags.get(&EXPIRES)?,
    })
}

fn parse_count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}
