//! Logins: passwords, links, cookies with their second proof.

use serde_json::json;

use super::bounds::exchange;
use super::rig::Rig;
use crate::client::{Call, Called, Client, ClientError, Target, parse_login_link};
use crate::model::{Login, LoginLink, NewUser, PasswordChange, ProblemCode, Role, Scope, Secret, Verb, Whoami};

fn add(rig: &Rig, name: &str, password: &str) {
    let new = NewUser { name: name.into(), role: Role::User, account: None, password: Some(Secret::new(password)) };
    rig.local().call(&Call::post("/users").body(&new).unwrap()).unwrap();
}

fn login(rig: &Rig, user: &str, password: &str) -> Called<Login> {
    rig.stranger().call(&Call::post("/login").body(&json!({"user": user, "password": password}))?)?.json()
}

#[test]
fn password_begins_a_session_that_logout_ends() {
    let rig = Rig::start();
    add(&rig, "ann", "correct horse battery");
    let begun = login(&rig, "ann", "correct horse battery").unwrap();
    let ann = rig.with_token(&begun.token.unwrap());
    assert_eq!(ann.get::<Whoami>("/whoami").unwrap().user, "ann");
    ann.call(&Call::post("/logout")).unwrap();
    assert!(matches!(ann.get::<Whoami>("/whoami"), Err(ClientError::Problem(problem)) if problem.status == 401));
    // A new password ends the sessions that the one before has begun.
    let begun = login(&rig, "ann", "correct horse battery").unwrap();
    rig.local().call(&Call::patch("/users/ann").body(&json!({"password": "another password"})).unwrap()).unwrap();
    assert!(rig.with_token(&begun.token.unwrap()).get::<Whoami>("/whoami").is_err());
    for password in ["short", ""] {
        let new = json!({"name": "bob", "role": "user", "password": password});
        let refused = rig.local().call(&Call::post("/users").body(&new).unwrap());
        assert!(matches!(refused, Err(ClientError::Problem(problem)) if problem.status == 400));
    }
}

#[test]
fn wrong_passwords_are_slowed_down() {
    let rig = Rig::start();
    add(&rig, "ann", "correct horse battery");
    let codes: Vec<_> =
        (0..8).map(|number| login(&rig, "ann", &format!("wrong {number}")).unwrap_err().code()).collect();
    assert_eq!(codes[..5], [Some(ProblemCode::WrongLogin); 5]);
    assert!(codes[5..].contains(&Some(ProblemCode::TooMany)), "{codes:?}");
    // While it lasts, the right one is of no use either: an attacker could not tell.
    let Err(ClientError::Problem(problem)) = login(&rig, "ann", "correct horse battery") else { panic!() };
    assert_eq!((problem.status, problem.code), (429, ProblemCode::TooMany));
    // No user at all looks the same as a wrong password.
    let (Err(ClientError::Problem(none)), Err(ClientError::Problem(wrong))) =
        (login(&rig, "nobody", "some password"), login(&rig, "local", "some password"))
    else {
        panic!()
    };
    assert_eq!(none, wrong);
}

#[test]
fn link_logs_in_once() {
    let rig = Rig::start();
    let link = rig.api().login_link("local").unwrap();
    let (_, link) = parse_login_link(link.link.reveal()).unwrap();
    let call = || Call::post("/login").body(&json!({"link": link.reveal(), "cookie": false})).unwrap();
    let begun: Login = rig.stranger().call(&call()).unwrap().json().unwrap();
    assert_eq!((begun.user.as_str(), begun.role), ("local", Role::Admin));
    assert_eq!(rig.stranger().call(&call()).unwrap_err().code(), Some(ProblemCode::WrongLogin));
}

#[test]
fn cookie_changes_nothing_without_its_second_proof() {
    let rig = Rig::start();
    add(&rig, "ann", "correct horse battery");
    let port = rig.port();
    let body = json!({"user": "ann", "password": "correct horse battery", "cookie": true}).to_string();
    let request = |head: &str, body: &str| {
        exchange(
            port,
            format!(
                "{head} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{}\r\n\r\n{body}",
                if body.is_empty() {
                    "X-Nothing: 1".to_owned()
                } else {
                    format!("Content-Type: application/json\r\nContent-Length: {}", body.len())
                }
            )
            .as_bytes(),
        )
    };
    let answer = request("POST /api/v1/login", &body);
    let line = answer.lines().find(|line| line.to_ascii_lowercase().starts_with("set-cookie:")).unwrap();
    for part in ["__Host-carrack=carrack_", "HttpOnly", "Secure", "SameSite=Strict", "Path=/"] {
        assert!(line.contains(part), "{line}");
    }
    let begun: Login = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert!(begun.token.is_none(), "a page's script has no use for it");
    let cookie = line.split([' ', ';']).nth(1).unwrap().to_owned();
    let with = |head: &str, more: &str| {
        let text = format!("{head} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nCookie: {cookie}\r\n{more}\r\n");
        exchange(port, text.as_bytes())
    };
    assert!(with("GET /api/v1/whoami", "").starts_with("HTTP/1.1 200"));
    let csrf = begun.csrf.unwrap();
    for (more, expected) in [
        (String::new(), "HTTP/1.1 403"),
        ("X-Carrack-Csrf: 0123\r\n".to_owned(), "HTTP/1.1 403"),
        (format!("X-Carrack-Csrf: {csrf}\r\nCookie: {cookie}x\r\n"), "HTTP/1.1 401"),
        (format!("X-Carrack-Csrf: {csrf}\r\n"), "HTTP/1.1 200"),
    ] {
        let answer = with("POST /api/v1/tasks/cancel", &more);
        assert!(answer.starts_with(expected), "{more}: {answer}");
    }
    assert!(with("POST /api/v1/logout", &format!("X-Carrack-Csrf: {csrf}\r\n")).starts_with("HTTP/1.1 204"));
    assert!(with("GET /api/v1/whoami", "").starts_with("HTTP/1.1 401"));
}

fn by_link(rig: &Rig, made: &LoginLink) -> Called<Login> {
    let (_, secret) = parse_login_link(made.link.reveal()).unwrap();
    rig.stranger().call(&Call::post("/login").body(&json!({"link": secret.reveal()}))?)?.json()
}

fn link_for(client: &Client, name: &str) -> Called<LoginLink> {
    client.call(&Call::post(format!("/users/{name}/links")))?.json()
}

#[test]
fn link_is_made_for_oneself_or_by_an_admin_and_names_the_service() {
    let rig = Rig::start();
    let pin = format!("sha256:{}", "ab".repeat(32));
    rig.api().set_address(format!("https://box:7420#{pin}"));
    let ann = rig.user("ann", Role::User);
    rig.user("bob", Role::User);
    let made = link_for(&ann, "ann").unwrap();
    let (target, _) = parse_login_link(made.link.reveal()).unwrap();
    assert_eq!(target, Some(Target::Tls { host: "box".into(), port: 7420, pin: Some([0xab; 32]) }));
    assert_eq!(by_link(&rig, &made).unwrap().user, "ann");
    assert_eq!(by_link(&rig, &made).unwrap_err().code(), Some(ProblemCode::WrongLogin));
    assert_eq!(link_for(&ann, "bob").unwrap_err().code(), Some(ProblemCode::NotFound));
    let for_bob = link_for(&rig.local(), "bob").unwrap();
    // Whoever is disabled is not let in by a link from before, and gets no other.
    rig.local().call(&Call::patch("/users/bob").body(&json!({"enabled": false})).unwrap()).unwrap();
    rig.local().call(&Call::patch("/users/bob").body(&json!({"enabled": true})).unwrap()).unwrap();
    assert_eq!(by_link(&rig, &for_bob).unwrap_err().code(), Some(ProblemCode::WrongLogin));
    rig.local().call(&Call::patch("/users/bob").body(&json!({"enabled": false})).unwrap()).unwrap();
    assert_eq!(link_for(&rig.local(), "bob").unwrap_err().code(), Some(ProblemCode::Conflict));
    assert_eq!(link_for(&rig.local(), "nobody").unwrap_err().code(), Some(ProblemCode::NotFound));
}

fn change(client: &Client, old: Option<&str>, new: &str) -> Called<Option<Login>> {
    let change = PasswordChange { old: old.map(Secret::new), new: Secret::new(new) };
    let answer = client.call(&Call::post("/password").body(&change)?)?;
    if answer.status == 204 { Ok(None) } else { answer.json().map(Some) }
}

#[test]
fn own_password_is_changed_by_whoever_knows_the_old_one_and_ends_other_sessions() {
    let rig = Rig::start();
    add(&rig, "ann", "correct horse battery");
    let session = || rig.with_token(&login(&rig, "ann", "correct horse battery").unwrap().token.unwrap());
    let (one, other) = (session(), session());
    let token = rig.with_token(&rig.token("ann", None).token);
    let link = link_for(&one, "ann").unwrap();
    for (old, code) in [
        (None, ProblemCode::Malformed),
        (Some("correct horse"), ProblemCode::WrongLogin),
        (Some(""), ProblemCode::WrongLogin),
    ] {
        assert_eq!(change(&one, old, "another password").unwrap_err().code(), Some(code), "{old:?}");
    }
    let short = change(&one, Some("correct horse battery"), "short").unwrap_err();
    assert_eq!(short.code(), Some(ProblemCode::Malformed));
    assert!(other.get::<Whoami>("/whoami").is_ok(), "nothing has changed so far");
    let next = change(&one, Some("correct horse battery"), "another password").unwrap().unwrap();
    for client in [&one, &other] {
        assert_eq!(client.get::<Whoami>("/whoami").unwrap_err().code(), Some(ProblemCode::Unauthenticated));
    }
    assert_eq!(rig.with_token(&next.token.unwrap()).get::<Whoami>("/whoami").unwrap().user, "ann");
    // A token is made on purpose, and revoked on purpose.
    assert!(token.get::<Whoami>("/whoami").is_ok());
    assert!(by_link(&rig, &link).is_err());
    assert!(login(&rig, "ann", "correct horse battery").is_err());
    assert!(login(&rig, "ann", "another password").is_ok());
    // Over the socket the account is proof enough; a scoped token is none.
    assert!(change(&rig.local(), None, "of the local user").unwrap().is_none());
    assert!(login(&rig, "local", "of the local user").is_ok());
    let scope = Scope { verbs: vec![Verb::Tasks, Verb::View], ..Scope::default() };
    let scoped = rig.with_token(&rig.token("ann", Some(scope)).token);
    let refused = change(&scoped, Some("another password"), "a third password").unwrap_err();
    assert_eq!(refused.code(), Some(ProblemCode::Forbidden));
}

#[test]
fn guessing_the_old_password_is_slowed_as_logins_are() {
    let rig = Rig::start();
    add(&rig, "ann", "correct horse battery");
    let ann = rig.with_token(&login(&rig, "ann", "correct horse battery").unwrap().token.unwrap());
    let wrong = |number: u32| change(&ann, Some(&format!("wrong {number}")), "another password").unwrap_err().code();
    let codes: Vec<_> = (0..8).map(wrong).collect();
    assert!(codes.contains(&Some(ProblemCode::TooMany)), "{codes:?}");
    assert_eq!(codes[0], Some(ProblemCode::WrongLogin));
}

#[test]
fn all_sessions_of_a_user_end_at_once() {
    let rig = Rig::start();
    add(&rig, "ann", "correct horse battery");
    let bob = rig.user("bob", Role::User);
    let session = || rig.with_token(&login(&rig, "ann", "correct horse battery").unwrap().token.unwrap());
    let all = [session(), session(), session()];
    let token = rig.with_token(&rig.token("ann", None).token);
    let end = Call::delete("/users/ann/sessions");
    assert_eq!(bob.call(&end).unwrap_err().code(), Some(ProblemCode::NotFound));
    all[0].call(&end).unwrap();
    for client in &all {
        assert_eq!(client.get::<Whoami>("/whoami").unwrap_err().code(), Some(ProblemCode::Unauthenticated));
    }
    assert!(token.get::<Whoami>("/whoami").is_ok());
    let again = session();
    rig.local().call(&end).unwrap();
    assert!(again.get::<Whoami>("/whoami").is_err());
}
