//! What a package contains of others: a bill of materials, and the licences under which it does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::{metadata, output};

/// The libraries of the web page, which no registry of Rust knows.
const PAGE: &str = "crates/carrack-service/page/vendor";
/// How names of files begin that say under which licence a package is, in lower case.
const LICENCES: &[&str] = &["license", "licence", "copying", "copyright", "notice", "unlicense"];

/// A package whose parts are in the program.
struct Part {
    /// With its version.
    name: String,
    licence: String,
    texts: Vec<String>,
}

/// Writes the bill of materials, in the form of CycloneDX: what maturin has put into the wheel, without the packages
/// that only another system or feature would have used, and with the page's libraries.
pub fn bill(root: &Path, wheel: &Path, used: &BTreeSet<String>, to: &Path) -> Result<(), String> {
    // The names and contents of a zip, read by Python's own library.
    const READ: &str = "import sys, zipfile\nfiles = zipfile.ZipFile(sys.argv[1])\n\
                        [name] = [name for name in files.namelist() if '/sboms/' in name]\n\
                        print(files.read(name).decode())";
    let told = output(std::process::Command::new("python3").args(["-c", READ]).arg(wheel))?;
    let fault = |why: String| format!("the bill of materials in {}: {why}", wheel.display());
    // Our own packages are named by where they were built.
    let told = told.replace(&format!("path+file://{}/", root.display()), "path+file:///");
    let mut bill: Value = serde_json::from_str(&told).map_err(|error| fault(error.to_string()))?;
    trim(&mut bill, used).map_err(fault)?;
    let components = bill["components"].as_array_mut().ok_or("it has no components")?;
    components.extend(page(root)?.iter().map(component));
    let text = serde_json::to_string_pretty(&bill).map_err(|error| fault(error.to_string()))?;
    fs::write(to, text + "\n").map_err(|error| format!("{}: {error}", to.display()))
}

/// Leaves ours and those that are used.
fn trim(bill: &mut Value, used: &BTreeSet<String>) -> Result<(), String> {
    let all = bill["components"].as_array_mut().ok_or("it has no components")?;
    all.retain(|part| {
        let id = format!("{} v{}", text(part, "name"), text(part, "version"));
        used.contains(&id) || text(part, "bom-ref").starts_with("path+file:")
    });
    let mut kept: BTreeSet<String> = all.iter().map(|part| text(part, "bom-ref").to_owned()).collect();
    let foreign = kept.iter().filter(|kept| !kept.starts_with("path+file:")).count();
    if foreign != used.len() {
        return Err(format!("it has {foreign} of the {} packages that are used", used.len()));
    }
    kept.insert(text(&bill["metadata"]["component"], "bom-ref").to_owned());
    let Some(dependencies) = bill["dependencies"].as_array_mut() else { return Ok(()) };
    dependencies.retain(|part| kept.contains(text(part, "ref")));
    for part in dependencies {
        if let Some(on) = part["dependsOn"].as_array_mut() {
            on.retain(|on| on.as_str().is_some_and(|on| kept.contains(on)));
        }
    }
    Ok(())
}

/// The page's libraries, as `manifest.json` beside them has them.
fn page(root: &Path) -> Result<Vec<Value>, String> {
    let manifest = root.join(PAGE).join("manifest.json");
    let fault = |why: String| format!("{}: {why}", manifest.display());
    let text = fs::read_to_string(&manifest).map_err(|error| fault(error.to_string()))?;
    let mut told: Value = serde_json::from_str(&text).map_err(|error| fault(error.to_string()))?;
    match told["packages"].take() {
        Value::Array(packages) if !packages.is_empty() => Ok(packages),
        _ => Err(fault("it names no packages".to_owned())),
    }
}

fn component(package: &Value) -> Value {
    let (name, version) = (text(package, "name"), text(package, "version"));
    let purl = format!("pkg:npm/{name}@{version}");
    let licences = json!([{"expression": package["licence"]}]);
    json!({"type": "library", "bom-ref": purl, "name": name, "version": version, "licenses": licences, "purl": purl})
}

/// Writes which packages the program contains parts of, each with its licence, and the texts of these: each once.
pub fn licences(root: &Path, used: &BTreeSet<String>, to: &Path) -> Result<(), String> {
    let mut parts = crates(root, used)?;
    for package in page(root)? {
        let name = text(&package, "name");
        let mut files = package["files"].as_array().map_or(&[][..], Vec::as_slice).iter().map(|file| text(file, "to"));
        let file = files.find(|file| file.starts_with("LICENSE")).ok_or(format!("{PAGE}: {name} has no licence"))?;
        let licence = root.join(PAGE).join(file);
        let licence_text = fs::read_to_string(&licence).map_err(|error| format!("{}: {error}", licence.display()))?;
        parts.push(Part {
            name: format!("{name} {} (of the web page)", text(&package, "version")),
            licence: text(&package, "licence").to_owned(),
            texts: vec![licence_text],
        });
    }
    fs::write(to, written(&parts)).map_err(|error| format!("{}: {error}", to.display()))
}

fn written(parts: &[Part]) -> String {
    let mut document =
        "Carrack itself is licensed under MIT OR Apache-2.0. The program contains parts of these, and of \
                        Rust's\nstandard library (MIT OR Apache-2.0). The texts of the licences follow, each with the \
                        names of those whose\npackage has it.\n\n"
            .to_owned();
    let mut named = BTreeMap::<&str, Vec<&str>>::new();
    for part in parts {
        document += &format!("{}: {}\n", part.name, part.licence);
        for text in &part.texts {
            named.entry(text.trim()).or_default().push(&part.name);
        }
    }
    for (text, names) in named {
        document += &format!("\n{}\n{}\n\n{text}\n", "=".repeat(80), names.join(", "));
    }
    document
}

/// The used packages of Rust, with what their sources say of their licence.
fn crates(root: &Path, used: &BTreeSet<String>) -> Result<Vec<Part>, String> {
    let told = metadata::everything(root)?;
    let packages = told["packages"].as_array().ok_or("cargo metadata names no packages")?;
    let mut parts = Vec::new();
    for package in packages {
        if !used.contains(&format!("{} v{}", text(package, "name"), text(package, "version"))) {
            continue;
        }
        let manifest = Path::new(text(package, "manifest_path"));
        let directory = manifest.parent().ok_or("cargo metadata names a manifest without a directory")?;
        parts.push(Part {
            name: format!("{} {}", text(package, "name"), text(package, "version")),
            licence: package["license"].as_str().unwrap_or("see its text").to_owned(),
            texts: texts(directory)?,
        });
    }
    if parts.len() == used.len() {
        return Ok(parts);
    }
    Err(format!("cargo metadata knows {} of {} packages", parts.len(), used.len()))
}

/// The licences in a directory and in those right below it, where C sources of others have theirs.
fn texts(directory: &Path) -> Result<Vec<String>, String> {
    let fault = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut texts = Vec::new();
    let mut directories = vec![directory.to_path_buf()];
    for entry in fs::read_dir(directory).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        if entry.file_type().map_err(fault)?.is_dir() {
            directories.push(entry.path());
        }
    }
    directories.sort();
    for directory in directories {
        let entries = fs::read_dir(&directory).map_err(fault)?;
        let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        files.sort();
        for file in files {
            let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            if LICENCES.iter().any(|begin| name.starts_with(begin)) && !name.ends_with(".rs") {
                let bytes = fs::read(&file).map_err(fault)?;
                texts.push(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
    }
    Ok(texts)
}

fn text<'a>(of: &'a Value, key: &str) -> &'a str {
    of[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_that_are_the_same_stand_once() {
        let part = |name: &str, texts: &[&str]| Part {
            name: name.to_owned(),
            licence: "MIT".to_owned(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        };
        let document = written(&[part("a 1", &["same\n"]), part("b 2", &["same", "other"])]);
        assert!(document.contains("\na 1: MIT\nb 2: MIT\n"), "{document}");
        assert_eq!(document.matches("\nsame\n").count(), 1, "{document}");
        assert!(document.contains("\na 1, b 2\n\nsame\n") && document.contains("\nb 2\n\nother\n"), "{document}");
    }

    #[test]
    fn bill_leaves_out_what_is_not_used() {
        let mut bill = json!({
            "metadata": {"component": {"bom-ref": "path+file:///crates/carrack"}},
            "components": [
                {"bom-ref": "path+file:///crates/carrack-core", "name": "carrack-core", "version": "0.1.0"},
                {"bom-ref": "registry#a@1.0.0", "name": "a", "version": "1.0.0"},
                {"bom-ref": "registry#a@2.0.0", "name": "a", "version": "2.0.0"}],
            "dependencies": [
                {"ref": "path+file:///crates/carrack", "dependsOn": ["registry#a@1.0.0", "registry#a@2.0.0"]},
                {"ref": "registry#a@2.0.0"}]});
        let used = BTreeSet::from(["a v1.0.0".to_owned()]);
        trim(&mut bill, &used).unwrap();
        assert_eq!(bill["components"].as_array().unwrap().len(), 2, "{bill}");
        let expected = json!([{"ref": "path+file:///crates/carrack", "dependsOn": ["registry#a@1.0.0"]}]);
        assert_eq!(bill["dependencies"], expected);
        assert!(trim(&mut bill, &BTreeSet::from(["b v1.0.0".to_owned()])).is_err());
    }

    #[test]
    fn licences_of_the_page_are_there() {
        let to = std::env::temp_dir().join(format!("carrack-licences-{}", std::process::id()));
        licences(&crate::root(), &BTreeSet::new(), &to).unwrap();
        let written = fs::read_to_string(&to).unwrap();
        fs::remove_file(&to).unwrap();
        assert!(written.contains("uplot 1") && written.contains("Permission is hereby granted"), "{written}");
    }

    #[test]
    fn bill_has_the_libraries_of_the_page() {
        let packages = page(&crate::root()).unwrap();
        let preact = packages.iter().map(component).find(|found| found["name"] == "preact").unwrap();
        assert!(preact["purl"].as_str().unwrap().starts_with("pkg:npm/preact@1"), "{preact}");
        assert_eq!(preact["licenses"][0]["expression"], "MIT");
    }
}
