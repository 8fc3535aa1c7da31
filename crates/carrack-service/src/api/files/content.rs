//! Routes that answer with the bytes of files: a file, or a range of it, and archives. The service relays what the file
//! worker reads, part by part, and keeps nothing.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use super::range::{Wanted, matches_any, wanted};
use super::relay::relay;
use super::{audit, lease, path};
use crate::api::caller::Known;
use crate::api::extract::{PathOf, QueryOf};
use crate::api::problem::{ApiError, Done};
use crate::api::state::{Api, STREAMS_OF_A_DOWNLOAD};
use crate::files::{Conversation, Lease};
use crate::identity::ScopePath;
use crate::model::{Problem, ProblemCode, TokenUse, Verb, text_of};
use crate::worker::files::{Ask, ContentFacts, Range};

/// Paths of one archive.
const PATHS_MAX: usize = 1000;
/// What a browser shows of it can do nothing.
const SANDBOX: &str = "sandbox; default-src 'none'";

/// Which file is sent.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::api) struct ContentQuery {
    /// The path, below the endpoint's root; begins with `/`.
    path: String,
    /// For a browser to show, in place of a download.
    #[serde(default)]
    inline: bool,
}

/// Sends a file, or the range of it that `Range` asks for. `HEAD` tells what it is. `ETag` is of one state of the file:
/// with `If-Range` a download goes on where it broke off, and only of the same file. Where the file changes while it is
/// sent, the connection is cut.
#[utoipa::path(
    get, path = "/endpoints/{name}/files/content", tag = "files",
    params(("name" = String, Path, description = "The endpoint."), ContentQuery,
        ("Range" = Option<String>, Header, description = "One range, as `bytes=0-499`; of several, all is sent."),
        ("If-Range" = Option<String>, Header, description = "The entity tag that the range is of; else all is sent."),
        ("If-None-Match" = Option<String>, Header, description = "Entity tags that the caller has the file of.")),
    responses(
        (status = 200, description = "The file.", body = String, content_type = "application/octet-stream"),
        (status = 206, description = "The range.", body = String, content_type = "application/octet-stream"),
        (status = 304, description = "It is the caller's."),
        (status = 416, description = "The file ends before the range.", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn content(
    State(api): State<Arc<Api>>,
    known: Known,
    method: Method,
    PathOf(name): PathOf<String>,
    QueryOf(query): QueryOf<ContentQuery>,
    headers: HeaderMap,
) -> Done<Response> {
    let at = path("path", &query.path)?;
    let place = api.stream(&known, STREAMS_OF_A_DOWNLOAD)?;
    let (caller, endpoint, asked) = (Arc::clone(&known.caller), name.clone(), at.clone());
    let lease = api.run(move |api| lease(api, &caller, &endpoint, &[(Verb::Read, &asked)])).await?;
    let none = Range { offset: 0, length: 0, identity: None };
    let (facts, _) = open(&lease, &at, &none).await?;
    let mut response = head(&facts, &at, query.inline)?;
    if facts.tag().is_some_and(|tag| matches_any(&headers, &tag)) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return Ok(response);
    }
    // Only what is sent has ranges.
    let tag = facts.tag();
    let asked = if method == Method::HEAD { Wanted::Whole } else { wanted(&headers, tag.as_deref(), facts.size) };
    let (offset, length) = match asked {
        Wanted::Whole => (0, facts.size),
        Wanted::Range { offset, length } => {
            let last = offset + length - 1;
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            set(&mut response, header::CONTENT_RANGE, &format!("bytes {offset}-{last}/{}", facts.size))?;
            (offset, length)
        }
        Wanted::Nothing => {
            let detail = format!("the file has {} bytes, and ends before the range", facts.size);
            let problem = ApiError::new(StatusCode::RANGE_NOT_SATISFIABLE, ProblemCode::Malformed, detail);
            let mut response = problem.into_response();
            set(&mut response, header::CONTENT_RANGE, &format!("bytes */{}", facts.size))?;
            return Ok(response);
        }
    };
    set(&mut response, header::CONTENT_LENGTH, &length.to_string())?;
    if method == Method::HEAD || length == 0 {
        return Ok(response);
    }
    let caller = Arc::clone(&known.caller);
    api.run(move |api| api.count_use(&caller, TokenUse::of(0, length))).await?;
    let (again, conversation) = open(&lease, &at, &Range { offset, length, identity: facts.identity }).await?;
    if again.size != facts.size {
        return Err(ApiError::conflict("the file changes just now").hint("try again"));
    }
    audit(&known.caller, &name, "download", &at, Ok(()));
    *response.body_mut() = relay(conversation, None, Some(length), place);
    Ok(response)
}

/// Asks for a range, and takes what the file is.
async fn open(lease: &Lease, at: &ScopePath, range: &Range) -> Done<(ContentFacts, Conversation)> {
    let ask = Ask::Content { path: at.to_string(), range: range.clone() };
    let mut conversation = lease.ask(ask, b"")?;
    let first = conversation.flow().await?.map(|part| part.body).unwrap_or_default();
    Ok((serde_json::from_slice(&first).map_err(ApiError::internal)?, conversation))
}

/// An answer that says what the file is, and has no body yet.
fn head(facts: &ContentFacts, at: &ScopePath, inline: bool) -> Done<Response> {
    let mut response = download(&file_name(at), inline, "application/octet-stream")?;
    set(&mut response, header::ACCEPT_RANGES, "bytes")?;
    if let Some(tag) = facts.tag() {
        set(&mut response, header::ETAG, &tag)?;
    }
    if let Some(modified) = facts.modified.and_then(|moment| moment.http_date()) {
        set(&mut response, header::LAST_MODIFIED, &modified)?;
    }
    Ok(response)
}

/// An answer that is saved under a name.
fn download(name: &str, inline: bool, kind: &'static str) -> Done<Response> {
    let mut response = Response::new(Body::empty());
    let how = if inline { "inline" } else { "attachment" };
    set(&mut response, header::CONTENT_DISPOSITION, &format!("{how}; filename*=UTF-8''{}", escaped(name)))?;
    set(&mut response, header::CONTENT_TYPE, kind)?;
    set(&mut response, header::CONTENT_SECURITY_POLICY, SANDBOX)?;
    Ok(response)
}

fn set(response: &mut Response, name: HeaderName, value: &str) -> Done<()> {
    let value = HeaderValue::from_str(value).map_err(ApiError::internal)?;
    response.headers_mut().insert(name, value);
    Ok(())
}

/// The last name of a path as text; of the root, a name for what is below it.
fn file_name(at: &ScopePath) -> String {
    let bytes = at.bytes();
    match bytes.rsplit(|byte| *byte == b'/').next() {
        Some(name) if !name.is_empty() => text_of(name),
        _ => "files".to_owned(),
    }
}

/// As RFC 8187 has a value: letters and digits stand for themselves, everything else as `%HH`.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escape = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}

/// Sends an archive (tar) of several paths, made while it is sent. Symbolic links stay links; FIFOs, sockets and
/// devices are left out. Where something cannot be read the connection is cut before the archive's end.
#[utoipa::path(
    get, path = "/endpoints/{name}/files/archive", tag = "files",
    params(("name" = String, Path, description = "The endpoint."),
        ("path" = Vec<String>, Query, description = "The paths, below the endpoint's root: `path=/a&path=/b`.")),
    responses(
        (status = 200, description = "The archive.", body = String, content_type = "application/x-tar"),
        (status = "default", description = "A problem.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn archive(
    State(api): State<Arc<Api>>,
    known: Known,
    PathOf(name): PathOf<String>,
    QueryOf(query): QueryOf<Vec<(String, String)>>,
) -> Done<Response> {
    if let Some((key, _)) = query.iter().find(|(key, _)| key != "path") {
        return Err(ApiError::malformed(format!("{key}: there is no such parameter")));
    }
    if query.is_empty() || query.len() > PATHS_MAX {
        return Err(ApiError::malformed(format!("path: 1 to {PATHS_MAX} of them")));
    }
    let paths = query.iter().map(|(_, text)| path("path", text)).collect::<Done<Vec<_>>>()?;
    let place = api.stream(&known, STREAMS_OF_A_DOWNLOAD)?;
    let (caller, endpoint, asked) = (Arc::clone(&known.caller), name.clone(), paths.clone());
    let lease = api.run(move |api| {
        let wanted: Vec<_> = asked.iter().map(|path| (Verb::Read, path)).collect();
        let lease = lease(api, &caller, &endpoint, &wanted)?;
        if caller.ceilings().bytes.is_some() {
            let error = ApiError::forbidden("scope-ceiling");
            return Err(error.hint("the token counts bytes, and nobody knows before how many an archive has"));
        }
        Ok(lease)
    });
    let ask = Ask::Archive { paths: paths.iter().map(ToString::to_string).collect() };
    let mut conversation = lease.await?.ask(ask, b"")?;
    // What cannot be begun is a problem, and no archive.
    let first = conversation.flow().await?;
    for at in &paths {
        audit(&known.caller, &name, "archive", at, Ok(()));
    }
    let called = if let [one] = &paths[..] { file_name(one) } else { name };
    let mut response = download(&format!("{called}.tar"), false, "application/x-tar")?;
    *response.body_mut() = relay(conversation, first, None, place);
    Ok(response)
}
