//! Logins: passwords, links, cookies with their second proof.

use serde_json::json;

use super::bounds::exchange;
use super::rig::Rig;
use crate::client::{Call, Called, ClientError};
use crate::model::{Login, NewUser, ProblemCode, Role, Secret, Whoami};

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
    let link = rig.api().login_link().unwrap();
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
                "{head} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{}\r\n\r\n{body}",
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
        let text = format!("{head} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nCookie: {cookie}\r\n{more}\r\n");
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
