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
const ASKED_EACH_TIME: &str = "no-cache";
/// Another content has another name.
const KEPT: &str = "public, max-age=31536000, immutable";

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
    /// It is named by its content.
    is_kept: bool,
    bytes: &'static [u8],
}

/// Every file that is served, as `build.rs` has made them of the page's own.
static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

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
    answered.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static(if found.file.is_kept { KEPT } else { ASKED_EACH_TIME }),
    );
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
#[path = "../../build/bundle.rs"]
mod bundle;

#[cfg(test)]
mod tests {
    use super::*;

    fn request(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    /// The page's own files, whose paths end so.
    fn sources(end: &str) -> Vec<(String, String)> {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let (mut found, mut open) = (Vec::new(), vec![root.clone()]);
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                if path.is_dir() {
                    open.push(path);
                } else if name.ends_with(end) {
                    found.push((name, std::fs::read_to_string(path).unwrap()));
                }
            }
        }
        found
    }

    /// What the bundle lacks nobody loads; types alone need no place in it.
    #[test]
    fn page_bundle_reads_every_file_of_the_page() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let read = std::cell::RefCell::new(Vec::new());
        let served = bundle::bundle(&|path| {
            read.borrow_mut().push(path.to_owned());
            std::fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))
        });
        let served: Vec<_> = served.unwrap().into_iter().map(|file| (file.name, file.is_named_by_content)).collect();
        assert_eq!(served, FILES.iter().map(|file| (file.path.to_owned(), file.is_kept)).collect::<Vec<_>>());
        let read = read.into_inner();
        let mut unread: Vec<_> =
            sources("").into_iter().map(|(name, _)| name).filter(|name| !read.contains(name)).collect();
        unread.retain(|name| !name.ends_with(".d.mts"));
        unread.sort_unstable();
        assert_eq!(unread, ["js/types.js", "tsconfig.json", "vendor/fetch.py", "vendor/manifest.json"]);
        let twice: Vec<_> = read.iter().filter(|path| read.iter().filter(|other| other == path).count() > 1).collect();
        assert!(twice.is_empty(), "{twice:?}");
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
        let all = sources("").into_iter().filter_map(|(name, _)| Some(name.strip_prefix("vendor/")?.to_owned()));
        let unknown = all.filter(|name| !known.contains(&name.as_str()) && !name.ends_with(".d.mts"));
        assert_eq!(unknown.collect::<Vec<_>>().len(), 2, "the manifest has all but itself and what fetches");
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
        let ours = sources(".js").into_iter().filter(|(name, _)| name.starts_with("js/"));
        let ways = ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "createContextualFragment"];
        let more = ["dangerouslySetInnerHTML", "DOMParser", "srcdoc", "eval(", "new Function", "javascript:"];
        for (name, text) in ours {
            for way in ways.iter().chain(&more) {
                assert!(!text.contains(way), "{name}: {way}");
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
        let script = FILES.iter().find(|file| file.path.starts_with("app-")).unwrap().path;
        let first = send(script, &HeaderMap::new());
        assert_eq!(first.headers()[header::CACHE_CONTROL], "public, max-age=31536000, immutable");
        assert_eq!(send(INDEX, &HeaderMap::new()).headers()[header::CACHE_CONTROL], "no-cache");
        let tag = first.headers()[header::ETAG].clone();
        let again = send(script, &HeaderMap::from_iter([(header::IF_NONE_MATCH, tag)]));
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        let other = send(script, &request(header::IF_NONE_MATCH, "\"00\""));
        assert_eq!(other.status(), StatusCode::OK);
        assert_eq!(send("js/app.js", &HeaderMap::new()).status(), StatusCode::NOT_FOUND);
    }
}
