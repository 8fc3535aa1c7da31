//! The web page: files that are part of the program, served from `/` and `/page/` to anybody who asks. They hold no
//! data; what the page shows it reads from the API, as every other client does.

use std::io::Write as _;
use std::sync::OnceLock;

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, body::Bytes};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::problem::ApiError;

/// Scripts, workers, styles, images and connections of the page's own origin, and nothing written into the document
/// itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// Browsers ask each time, and are told that nothing has changed: another version of the service brings another page.
const CACHE: &str = "no-cache";

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";
const TEXT: &str = "text/plain; charset=utf-8";

/// What `/` answers.
const INDEX: &str = "index.html";

/// A file of the page.
struct File {
    /// Below `/page/`.
    path: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! files {
    ($($kind:ident: $($path:literal)+;)+) => {
        &[$($(File { path: $path, kind: $kind, bytes: include_bytes!(concat!("../../page/", $path)) },)+)+]
    };
}

/// Every file of the page; a test compares them with the directory.
static FILES: &[File] = files! {
    HTML: "index.html";
    STYLE: "css/base.css" "css/files.css" "css/parts.css" "css/views.css" "vendor/uPlot.min.css";
    IMAGE: "icon.svg";
    SCRIPT: "js/api.js" "js/app.js" "js/command.js" "js/format.js" "js/live.js" "js/login.js" "js/parts.js"
        "js/plot.js" "js/store.js" "js/submit.js" "js/table.js" "js/types.js" "js/ui.js" "js/windows.js"
        "js/files/actions.js" "js/files/dialogs.js" "js/files/listing.js" "js/files/names.js" "js/files/pane.js"
        "js/files/places.js" "js/files/selection.js" "js/files/sheet.js" "js/files/upload.js" "js/files/upload-worker.js"
        "js/views/access.js" "js/views/audit.js" "js/views/endpoints.js" "js/views/files.js" "js/views/items.js"
        "js/views/measured.js" "js/views/node.js" "js/views/overview.js" "js/views/task.js"
        "js/views/tasks.js" "js/views/timers.js"
        "vendor/hooks.mjs" "vendor/htm.mjs" "vendor/preact.mjs" "vendor/uPlot.iife.min.js";
    TEXT: "vendor/LICENSE-htm" "vendor/LICENSE-preact" "vendor/LICENSE-uPlot";
};

/// A file as it is sent.
struct Ready {
    file: &'static File,
    tag: HeaderValue,
    packed: Bytes,
}

/// The files with their tags, and packed: made when the first of them is asked for.
fn ready() -> &'static [Ready] {
    static READY: OnceLock<Vec<Ready>> = OnceLock::new();
    READY.get_or_init(|| FILES.iter().filter_map(prepare).collect())
}

/// The digest of the whole page. It is the first document's tag: by it an open page learns that there is another.
fn whole() -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for file in FILES {
        hasher.update(file.path.as_bytes()).update(&[0]).update(&file.bytes.len().to_le_bytes()).update(file.bytes);
    }
    hasher.finalize()
}

fn prepare(file: &'static File) -> Option<Ready> {
    let digest = if file.path == INDEX { whole() } else { blake3::hash(file.bytes) }.to_hex();
    let tag = HeaderValue::from_str(&format!("\"{}\"", digest.get(..32)?)).ok()?;
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(file.bytes).ok()?;
    Some(Ready { file, tag, packed: packer.finish().ok()?.into() })
}

/// The page's routes. They stand outside of what asks who calls.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/", get(async |headers: HeaderMap| send(INDEX, &headers)))
        .route("/page/{*path}", get(async |Path(path): Path<String>, headers: HeaderMap| send(&path, &headers)))
}

fn send(path: &str, headers: &HeaderMap) -> Response {
    let Some(found) = ready().iter().find(|ready| ready.file.path == path) else {
        return guarded(ApiError::not_found().into_response());
    };
    let is_known = |value: &HeaderValue| value.to_str().is_ok_and(|text| text.split(',').any(|tag| names(tag, found)));
    let mut response = if headers.get_all(header::IF_NONE_MATCH).iter().any(is_known) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if takes_gzip(headers) {
        ([(header::CONTENT_ENCODING, "gzip")], found.packed.clone()).into_response()
    } else {
        found.file.bytes.into_response()
    };
    let answered = response.headers_mut();
    answered.insert(header::CONTENT_TYPE, HeaderValue::from_static(found.file.kind));
    answered.insert(header::ETAG, found.tag.clone());
    answered.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    answered.insert(header::CACHE_CONTROL, HeaderValue::from_static(CACHE));
    guarded(response)
}

/// Whether a tag of `If-None-Match` is that of the file. Proxies that pack again mark it as weak.
fn names(tag: &str, ready: &Ready) -> bool {
    tag.trim().trim_start_matches("W/").as_bytes() == ready.tag.as_bytes()
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let all = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut codings = all.flat_map(|line| line.split(','));
    codings.any(|coding| {
        let (name, rest) = coding.split_once(';').unwrap_or((coding, ""));
        let is_refused = rest.trim().strip_prefix("q=").is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

/// What a browser may not do with an answer.
fn guarded(mut response: Response) -> Response {
    let said = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in said {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn page_table_names_every_file_that_browsers_load() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let mut found = Vec::new();
        let mut open = vec![root.clone()];
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else {
                    found.push(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        found.retain(|path| !["tsconfig.json", "vendor/manifest.json", "vendor/fetch.py"].contains(&path.as_str()));
        found.retain(|path| !path.ends_with(".d.mts"));
        let mut named: Vec<_> = FILES.iter().map(|file| file.path.to_owned()).collect();
        found.sort_unstable();
        named.sort_unstable();
        assert_eq!(named, found);
    }

    /// What was fetched from elsewhere is what it was when somebody looked at it.
    #[test]
    fn page_libraries_are_those_of_the_manifest() {
        let vendor = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("page/vendor");
        let manifest = std::fs::read_to_string(vendor.join("manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        let packages = manifest["packages"].as_array().unwrap();
        let mut known: Vec<&str> = Vec::new();
        for file in packages.iter().flat_map(|package| package["files"].as_array().unwrap()) {
            let name = file["to"].as_str().unwrap();
            let digest = crate::identity::digest::sha256(&std::fs::read(vendor.join(name)).unwrap());
            assert_eq!(file["sha256"], data_encoding::HEXLOWER.encode(&digest), "{name}");
            known.push(name);
        }
        let served = FILES.iter().filter_map(|file| file.path.strip_prefix("vendor/"));
        let unknown: Vec<_> = served.filter(|name| !known.contains(name)).collect();
        assert!(unknown.is_empty(), "the manifest does not have {unknown:?}");
    }

    #[test]
    fn page_is_small_when_packed() {
        let bytes: usize = ready().iter().map(|ready| ready.packed.len()).sum();
        assert!(bytes < 150_000, "{bytes} bytes");
    }

    #[test]
    fn page_document_holds_no_script_and_no_style() {
        let html = FILES.iter().find(|file| file.path == "index.html").unwrap();
        let text = std::str::from_utf8(html.bytes).unwrap();
        assert!(!text.contains("<style") && !text.contains(" style=") && !text.contains(" onload="));
        assert!(text.split("<script").skip(1).all(|rest| rest.split('>').next().unwrap().contains(" src=")));
        assert!(!text.contains("://"));
    }

    /// Names of files come from anywhere: they stay text in every script of the page.
    #[test]
    fn page_scripts_never_turn_text_into_markup_or_code() {
        let ours = FILES.iter().filter(|file| file.kind == SCRIPT && !file.path.starts_with("vendor/"));
        let ways = ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "createContextualFragment"];
        let more = ["dangerouslySetInnerHTML", "DOMParser", "srcdoc", "eval(", "new Function", "javascript:"];
        for file in ours {
            let text = std::str::from_utf8(file.bytes).unwrap();
            for way in ways.iter().chain(&more) {
                assert!(!text.contains(way), "{}: {way}", file.path);
            }
        }
    }

    #[test]
    fn page_files_are_packed_for_those_who_take_it_alone() {
        let packed = send("index.html", &request(header::ACCEPT_ENCODING, "br, gzip;q=0.5"));
        assert_eq!(packed.headers()[header::CONTENT_ENCODING], "gzip");
        let plain = send("index.html", &request(header::ACCEPT_ENCODING, "gzip;q=0, br"));
        assert!(!plain.headers().contains_key(header::CONTENT_ENCODING));
        for response in [packed, plain, send("../index.html", &HeaderMap::new())] {
            assert_eq!(response.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
            assert!(
                response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().starts_with("default-src 'none'")
            );
        }
    }

    #[test]
    fn page_file_that_the_browser_has_is_not_sent_again() {
        let first = send("js/app.js", &HeaderMap::new());
        let tag = first.headers()[header::ETAG].clone();
        let again = send("js/app.js", &HeaderMap::from_iter([(header::IF_NONE_MATCH, tag)]));
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        let other = send("js/app.js", &request(header::IF_NONE_MATCH, "\"00\""));
        assert_eq!(other.status(), StatusCode::OK);
        assert_eq!(send("js/none.js", &HeaderMap::new()).status(), StatusCode::NOT_FOUND);
    }
}
