//! Makes of the page's files those that are served: one script, one style, and the document that names them. Each is
//! named by its content, so that browsers keep it for as long as they like.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

#[path = "build/bundle.rs"]
mod bundle;

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=page");
    let page = PathBuf::from(env("CARGO_MANIFEST_DIR")?).join("page");
    let out = PathBuf::from(env("OUT_DIR")?);
    let files = bundle::bundle(&|path| read(&page.join(path)))?;
    let mut table = "&[\n".to_owned();
    for file in files {
        let name = file.name.replace('/', "-");
        std::fs::write(out.join(&name), &file.text).map_err(|error| format!("{name}: {error}"))?;
        let (path, kind, kept) = (&file.name, file.kind, file.is_named_by_content);
        let bytes = format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}\"))");
        let _ = writeln!(table, "    File {{ path: {path:?}, kind: {kind}, is_kept: {kept}, bytes: {bytes} }},");
    }
    table.push(']');
    std::fs::write(out.join("page.rs"), table).map_err(|error| format!("page.rs: {error}"))
}

fn env(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|error| format!("{name}: {error}"))
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
