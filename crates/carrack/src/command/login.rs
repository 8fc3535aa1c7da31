//! `carrack login`, `logout` and `whoami`: who one is to a service that is reached over the network. On the host of
//! the service the account is enough.

use carrack_service::client::{Call, Target, parse_login_link, segment};
use carrack_service::model::{Login, LoginRequest, Secret, Whoami};
use clap::Command;

use super::reach::JSON;
use super::task::told;
use crate::cli::flag::{Positional, Switch};
use crate::cli::flags::Flags;
use crate::error::CommandError;
use crate::exit;
use crate::managed::secret;
use crate::managed::service::{self, Service, keep, node_of, target, token_path};
use crate::managed::show;
use crate::output::lines::Lines;
use crate::output::{human, say};

const USER: Positional = Positional::one("user", "USER");
const TOKEN: Switch = Switch::new("token", "Keep a token of `carrack service token` instead, read from standard input");
const LINK: Switch = Switch::new(
    "link",
    "Log in by a link that works once (carrack service user link), read from the terminal or standard input",
);
const EVERYWHERE: Switch = Switch::new("everywhere", "End all your other logins as well, also those of browsers");

/// What clap knows of `login`.
pub fn login_command() -> Command {
    Command::new("login")
        .about("Log in to a service on another host")
        .arg(
            USER.arg()
                .required_unless_present_any([TOKEN.name, LINK.name])
                .conflicts_with_all([TOKEN.name, LINK.name])
                .help("Your name there"),
        )
        .args([TOKEN.arg(), LINK.arg().conflicts_with(TOKEN.name), JSON.arg(), service::SERVICE.arg()])
        .after_help(
            "The password is read from the terminal, or from standard input. What the service answers is kept in a file\n\
             that only you can read. Later commands use this service, unless one runs on this host.\n\n\
             Example:\n  carrack login --service 'https://data.example.org#sha256:FINGERPRINT' ada",
        )
}

/// What clap knows of `logout`.
pub fn logout_command() -> Command {
    Command::new("logout").about("End a login, and forget it").args([
        EVERYWHERE.arg(),
        JSON.arg(),
        service::SERVICE.arg(),
    ])
}

/// What clap knows of `whoami`.
pub fn whoami_command() -> Command {
    Command::new("whoami").about("Show who you are to a service").args([JSON.arg(), service::SERVICE.arg()])
}

/// Runs `login`.
pub fn login(flags: &Flags) -> Result<u8, CommandError> {
    let link = match flags.has(&LINK) {
        true => {
            let link = secret::read("the login link")?;
            Some(parse_login_link(link.reveal()).map_err(CommandError::usage)?)
        }
        false => None,
    };
    let target = match (&link, flags.given(&service::SERVICE)) {
        // The link names its service, with its key.
        (Some((Some(target), _)), None) => target.clone(),
        _ => target(flags)?,
    };
    let Some(node) = node_of(&target) else {
        // Where no service runs, nobody is known.
        Service::at(target.clone(), None)?.reachable()?;
        return Err(CommandError::usage(format!("at {target} your account is known: no login is needed"))
            .hint("for a service on another host: carrack login --service https://HOST USER"));
    };
    let token = match (link, flags.has(&TOKEN)) {
        (Some((_, link)), _) => begin(&target, || Ok(LoginRequest { link: Some(link), ..LoginRequest::default() }))?,
        (None, true) => secret::read("the token")?,
        (None, false) => {
            let name = flags.words(&USER).next().and_then(|word| word.to_str());
            let name = name.ok_or_else(|| CommandError::usage("the user's name is missing, or not UTF-8"))?;
            begin(&target, || {
                let password = Some(secret::read(&format!("the password of {name}"))?);
                Ok(LoginRequest { user: Some(name.to_owned()), password, ..LoginRequest::default() })
            })?
        }
    };
    let service = Service::at(target.clone(), Some(token.clone()))?;
    let who: Whoami = service.get("/whoami")?;
    keep(&target, &node, &token)?;
    service.pin()?;
    tell(flags, &who)
}

/// Begins a session; `request` is asked for what is shown once the service has shown the right key.
fn begin(
    target: &Target,
    request: impl FnOnce() -> Result<LoginRequest, CommandError>,
) -> Result<Secret, CommandError> {
    let service = Service::at(target.clone(), None)?;
    service.reachable()?;
    let login: Login = service.call(&service.with(Call::post("/login"), &request()?)?)?;
    login.token.ok_or_else(|| CommandError::usage("the service has sent no token"))
}

/// Runs `logout`.
pub fn logout(flags: &Flags) -> Result<u8, CommandError> {
    let target = target(flags)?;
    let Some(node) = node_of(&target) else {
        return Err(CommandError::usage(format!("at {target} your account is known: there is no login to end")));
    };
    let path = token_path(&node);
    // That the service is gone does not keep anybody from forgetting.
    let ended = Service::open(flags).and_then(|service| end(&service, flags.has(&EVERYWHERE)));
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

fn end(service: &Service, everywhere: bool) -> Result<(), CommandError> {
    if !everywhere {
        return service.run(&Call::post("/logout"));
    }
    let who: Whoami = service.get("/whoami")?;
    service.run(&Call::delete(format!("/users/{}/sessions", segment(&who.user))))
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
