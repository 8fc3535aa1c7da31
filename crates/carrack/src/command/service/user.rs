//! `carrack service user`: who may use a service.

use carrack_service::client::{Call, segment};
use carrack_service::model::{
    KnownBy, Listed, Login, LoginLink, NewUser, PasswordChange, Role, User, UserUpdate, Whoami,
};
use clap::Command;

use crate::cli::flag::{Positional, Switch, Value};
use crate::cli::flags::Flags;
use crate::command::reach::JSON;
use crate::command::task::told;
use crate::error::CommandError;
use crate::exit;
use crate::managed::service::{Service, keep, node_of};
use crate::managed::table::{AlignedRows, CSV, USER_CSV};
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
const DISABLE: Switch = Switch::new("disable", "Disable the user, end their sessions, cancel their tasks");
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
        .about("Add, list and change users, and let them in")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            add,
            Command::new("list").visible_alias("ls").about("List the users").arg(CSV.arg().conflicts_with(JSON.name)),
            edit,
            Command::new("password").about("Change your own password; your sessions end elsewhere").after_help(
                "The password until now and the new one are read from the terminal, or from standard input, a line each;\n\
                 an empty first line where there was none. Over the local socket only the new one is asked for.",
            ),
            Command::new("link")
                .about("Make a link that logs a user in once, within ten minutes")
                .arg(NAME.arg().help("[default: yourself]"))
                .after_help("Whoever gets it types carrack login --link."),
            Command::new("logout").about("End all sessions of a user, everywhere").arg(name()),
        ])
}

/// Runs the verb.
pub fn run(flags: &Flags) -> Result<u8, CommandError> {
    let Some((action, flags)) = flags.subcommand() else {
        return Err(CommandError::usage("user needs another word: see carrack service user --help"));
    };
    let (service, json) = (Service::open(&flags)?, flags.has(&JSON));
    let mut out = Lines::stdout(json);
    match action {
        "add" => {
            let new = NewUser {
                name: name(&flags)?,
                role: flags.get(&ROLE)?.unwrap_or(Role::User),
                account: flags.get(&ACCOUNT)?,
                password: if flags.has(&PASSWORD) { Some(secret::read_new("the new password")?) } else { None },
            };
            let user: User = service.call(&service.with(Call::post("/users"), &new)?)?;
            tell(&mut out, json, &user);
        }
        "list" => {
            let (csv, mut table) = (flags.has(&CSV), AlignedRows::new(show::USER_HEADINGS));
            if csv {
                out.line(USER_CSV.headings().as_bytes());
            }
            // The route has no pages: it takes neither a limit nor a cursor.
            let users: Listed<User> = service.get("/users")?;
            for user in users.items {
                if json {
                    out.json(&told::object("user", &user));
                } else if csv {
                    out.line(USER_CSV.line(&user).as_bytes());
                } else {
                    table.row(show::user_row(&user));
                }
            }
            if !json && !csv {
                table.write(&mut out);
            }
        }
        "edit" => {
            let update = update(&flags)?;
            let call = service.with(Call::patch(path_of(&name(&flags)?)), &update)?;
            let user: User = service.call(&call)?;
            tell(&mut out, json, &user);
        }
        "password" => change_password(&service, &mut out, json)?,
        "link" => {
            let name = match flags.words(&NAME).next() {
                Some(_) => name(&flags)?,
                None => service.get::<Whoami>("/whoami")?.user,
            };
            let made: LoginLink = service.call(&Call::post(format!("{}/links", path_of(&name))))?;
            if json {
                out.json(&told::object("login-link", &made));
            } else {
                out.line(made.link.reveal().as_bytes());
                say(&format!("logs {name} in once, within ten minutes; type carrack login --link, then the link"));
            }
        }
        _ => {
            let name = name(&flags)?;
            service.run(&Call::delete(format!("{}/sessions", path_of(&name))))?;
            if json {
                out.json(&told::object("logout", &serde_json::json!({ "user": name })));
            } else {
                say(&format!("all sessions of {name} have ended"));
            }
        }
    }
    out.finish()?;
    Ok(exit::DONE)
}

fn change_password(service: &Service, out: &mut Lines, json: bool) -> Result<(), CommandError> {
    let who: Whoami = service.get("/whoami")?;
    let old = match who.via {
        KnownBy::Socket => None,
        _ => secret::read_if_any("the password until now")?,
    };
    let change = PasswordChange { old, new: secret::read_new("the new password")? };
    let answer = service.answer(&service.with(Call::post("/password"), &change)?)?;
    if answer.status == 200 {
        // The session until now has ended with the password.
        let login: Login = answer.json().map_err(|error| service.error(error))?;
        if let (Some(node), Some(token)) = (node_of(service.target()), &login.token) {
            keep(service.target(), &node, token)?;
        }
    }
    if json {
        out.json(&told::object("password-changed", &serde_json::json!({ "user": who.user })));
    } else {
        say(&format!("the password of {} is changed", who.user));
    }
    Ok(())
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
        password: if flags.has(&PASSWORD) { Some(Some(secret::read_new("the new password")?)) } else { None },
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
