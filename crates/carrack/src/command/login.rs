//! `carrack login`, `logout` and `whoami`: who one is to a service that is reached over the network. On the host of
//! the service the account is enough.

use carrack_engine::secrets::write_whole;
use carrack_service::client::{Call, Target};
use carrack_service::model::{Login, LoginRequest, Secret, Whoami};
use clap::Command;

use super::reach::JSON;
use super::task::told;
use crate::cli::flag::{Positional, Switch};
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::exit;
use crate::managed::secret;
use crate::managed::service::{self, Service, node_of, remembered_path, target, token_path};
use crate::managed::show;
use crate::output::lines::Lines;
use crate::output::{human, say};

const USER: Positional = Positional::one("user", "USER");
const TOKEN: Switch = Switch::new("token", "Keep a token of `carrack service token` instead, read from standard input");

/// What clap knows of `login`.
pub fn login_command() -> Command {
    Command::new("login")
        .about("Log in to a service on another host")
        .arg(USER.arg().required_unless_present(TOKEN.name).conflicts_with(TOKEN.name).help("Your name there"))
        .args([TOKEN.arg(), JSON.arg(), service::SERVICE.arg()])
        .after_help(
            "The password is read from the terminal, or from standard input. What the service answers is kept in a file\n\
             that only you can read. Later commands use this service, unless one runs on this host.\n\n\
             Example:\n  carrack login --service 'https://data.example.org#sha256:FINGERPRINT' ada",
        )
}

/// What clap knows of `logout`.
pub fn logout_command() -> Command {
    Command::new("logout").about("End a login, and forget it").args([JSON.arg(), service::SERVICE.arg()])
}

/// What clap knows of `whoami`.
pub fn whoami_command() -> Command {
    Command::new("whoami").about("Show who you are to a service").args([JSON.arg(), service::SERVICE.arg()])
}

/// Runs `login`.
pub fn login(flags: &Flags) -> Result<u8, CommandError> {
    let target = target(flags)?;
    let Some(node) = node_of(&target) else {
        return Err(CommandError::usage(format!("at {target} your account is known: no login is needed"))
            .hint("for a service on another host: carrack login --service https://HOST USER"));
    };
    let token = if flags.has(&TOKEN) {
        secret::read("the token")?
    } else {
        let name = flags.words(&USER).next().and_then(|word| word.to_str());
        let name = name.ok_or_else(|| CommandError::usage("the user's name is missing, or not UTF-8"))?;
        let service = Service::at(target.clone(), None)?;
        // Before a person types a password: is it the right service?
        service.reachable()?;
        let password = secret::read(&format!("the password of {name}"))?;
        let request = LoginRequest { user: Some(name.to_owned()), password: Some(password), ..LoginRequest::default() };
        let login: Login = service.call(&service.with(Call::post("/login"), &request)?)?;
        login.token.ok_or_else(|| CommandError::usage("the service has sent no token"))?
    };
    let service = Service::at(target.clone(), Some(token.clone()))?;
    let who: Whoami = service.get("/whoami")?;
    keep(&target, &node, &token)?;
    service.pin()?;
    tell(flags, &who)
}

fn keep(target: &Target, node: &carrack_core::location::NodeAddress, token: &Secret) -> Result<(), CommandError> {
    for (path, text) in [(token_path(node), token.reveal().to_owned()), (remembered_path(), target.to_string())] {
        write_whole(&path, format!("{text}\n").as_bytes())
            .map_err(|error| CommandError::file("cannot write", path.as_os_str().as_encoded_bytes(), &error))?;
    }
    Ok(())
}

/// Runs `logout`.
pub fn logout(flags: &Flags) -> Result<u8, CommandError> {
    let target = target(flags)?;
    let Some(node) = node_of(&target) else {
        return Err(CommandError::usage(format!("at {target} your account is known: there is no login to end")));
    };
    let path = token_path(&node);
    // That the service is gone does not keep anybody from forgetting.
    let ended = Service::open(flags).and_then(|service| service.run(&Call::post("/logout")));
    match std::fs::remove_file(&path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(CommandError::usage(format!("there is no login at {target}")));
        }
        Err(error) => {
            return Err(CommandError::file("cannot remove", path.as_os_str().as_encoded_bytes(), &error));
        }
    }
    if let Err(error) = ended {
        say(&format!("note: forgotten here; the service was not told: {error}"));
    }
    if flags.has(&JSON) {
        let mut out = Lines::stdout(true);
        out.json(&told::object("logout", &serde_json::json!({ "service": target.to_string() })));
        out.finish()?;
    } else {
        say(&format!("logged out of {target}"));
    }
    Ok(exit::DONE)
}

/// Runs `whoami`.
pub fn whoami(flags: &Flags) -> Result<u8, CommandError> {
    let who: Whoami = Service::open(flags)?.get("/whoami")?;
    tell(flags, &who)
}

fn tell(flags: &Flags, who: &Whoami) -> Result<u8, CommandError> {
    let json = flags.has(&JSON);
    let mut out = Lines::stdout(json);
    if json {
        let mut who = who.clone();
        // For browsers alone.
        who.csrf = None;
        out.json(&told::object("whoami", &who));
    } else {
        out.line(human::safe(&show::whoami_line(who)).as_bytes());
    }
    out.finish()?;
    Ok(exit::DONE)
}
