//! `carrack service user`: who may use a service.

use carrack_service::client::{Call, segment};
use carrack_service::model::{NewUser, Role, User, UserUpdate};
use clap::Command;

use crate::cli::flag::{Positional, Switch, Value};
use crate::cli::flags::Flags;
use crate::command::reach::JSON;
use crate::command::task::told;
use crate::error::CommandError;
use crate::exit;
use crate::managed::service::Service;
use crate::managed::table::AlignedRows;
use crate::managed::{secret, show};
use crate::output::lines::Lines;
use crate::output::say;

const NAME: Positional = Positional::one("name", "USER");
const ROLE: Value<Role> = Value::word("role", "ROLE", Role::ALL, "[default: user]");
const ACCOUNT: Value<u32> = Value::new(
    "account",
    "NAME|UID",
    parse_account,
    "The account of the service's host that is this user, without a password",
);
const PASSWORD: Switch =
    Switch::new("password", "Set a password; it is read from the terminal, or from standard input");
const NO_ACCOUNT: Switch = Switch::new("no-account", "No account of the service's host is this user");
const DISABLE: Switch = Switch::new("disable", "Let them in no more; their sessions end, and their work is cancelled");
const ENABLE: Switch = Switch::new("enable", "Let them in again");

/// What clap knows of it.
pub fn command() -> Command {
    let name = || NAME.arg().required(true);
    let add = Command::new("add").about("Add a user").arg(name()).args([ROLE.arg(), ACCOUNT.arg(), PASSWORD.arg()]);
    let edit = Command::new("edit").about("Change a user").arg(name()).args([
        ROLE.arg(),
        ACCOUNT.arg().conflicts_with(NO_ACCOUNT.name),
        NO_ACCOUNT.arg(),
        PASSWORD.arg(),
        DISABLE.arg().conflicts_with(ENABLE.name),
        ENABLE.arg(),
    ]);
    Command::new("user")
        .about("Add, list, change and remove users")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            add,
            Command::new("list").visible_alias("ls").about("List the users"),
            edit,
            Command::new("rm").about("Remove a user").arg(name()),
        ])
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let Some((action, flags)) = flags.subcommand() else {
        return Err(CommandError::usage("user needs another word: add, list, edit or rm"));
    };
    let (service, json) = (Service::open(&flags)?, flags.has(&JSON));
    let mut out = Lines::stdout(json);
    match action {
        "add" => {
            let new = NewUser {
                name: name(&flags)?,
                role: flags.get(&ROLE)?.unwrap_or(Role::User),
                account: flags.get(&ACCOUNT)?,
                password: if flags.has(&PASSWORD) { Some(secret::read("the new password")?) } else { None },
            };
            let user: User = service.call(&service.with(Call::post("/users"), &new)?)?;
            tell(&mut out, json, &user);
        }
        "list" => {
            let mut table = AlignedRows::new(show::USER_HEADINGS);
            service.rows::<User>("/users", None, &mut |user| {
                if json {
                    out.json(&told::object("user", &user))
                } else {
                    table.row(show::user_row(&user))
                }
                Ok(())
            })?;
            if !json {
                table.write(&mut out);
            }
        }
        "edit" => {
            let update = update(&flags)?;
            let call = service.with(Call::patch(path_of(&name(&flags)?)), &update)?;
            let user: User = service.call(&call)?;
            tell(&mut out, json, &user);
        }
        _ => {
            let name = name(&flags)?;
            service.run(&Call::delete(path_of(&name)))?;
            if json {
                out.json(&told::object("user-removed", &serde_json::json!({ "name": name })));
            } else {
                say(&format!("the user {name} is removed"));
            }
        }
    }
    out.finish()?;
    Ok(exit::DONE)
}

fn update(flags: &Flags) -> Result<UserUpdate, CommandError> {
    Ok(UserUpdate {
        role: flags.get(&ROLE)?,
        account: if flags.has(&NO_ACCOUNT) { Some(None) } else { flags.get(&ACCOUNT)?.map(Some) },
        enabled: match (flags.has(&DISABLE), flags.has(&ENABLE)) {
            (true, _) => Some(false),
            (_, true) => Some(true),
            _ => None,
        },
        password: if flags.has(&PASSWORD) { Some(Some(secret::read("the new password")?)) } else { None },
    })
}

fn name(flags: &Flags) -> Result<String, CommandError> {
    let name = flags.words(&NAME).next().and_then(|word| word.to_str());
    name.map(str::to_owned).ok_or_else(|| CommandError::usage("the user's name is missing, or not UTF-8"))
}

fn path_of(name: &str) -> String {
    format!("/users/{}", segment(name))
}

fn tell(out: &mut Lines, json: bool, user: &User) {
    if json {
        out.json(&told::object("user", user));
        return;
    }
    let mut table = AlignedRows::new(show::USER_HEADINGS);
    table.row(show::user_row(user));
    table.write(out);
}

/// A number, or a name that the host knows.
fn parse_account(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let accounts = std::fs::read_to_string("/etc/passwd").map_err(|error| format!("/etc/passwd: {error}"))?;
    account_of(&accounts, text).ok_or_else(|| {
        format!("{text:?} is no account in /etc/passwd of this host; give its number, as `id -u {text}` prints it")
    })
}

fn account_of(accounts: &str, name: &str) -> Option<u32> {
    let mut lines = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>());
    lines.find(|fields| fields.first() == Some(&name)).and_then(|fields| fields.get(2)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_named_by_number_or_name() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\nada:x:1001:1001::/home/ada:/bin/sh\nbad:x\n";
        assert_eq!(account_of(accounts, "ada"), Some(1001));
        assert_eq!((account_of(accounts, "x"), account_of(accounts, "bad")), (None, None));
        assert_eq!(parse_account("1002"), Ok(1002));
        assert_eq!(parse_account("root"), Ok(0));
    }
}
