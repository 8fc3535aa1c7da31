//! `carrack bench`: what is measured is labelled, what is written is removed, what is printed other programs read, and
//! what is kept comes back.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::faults::Mounted;
use crate::support::browser::{Look, Picture, open};
use crate::support::process::signal;
use crate::support::running::Running;
use crate::support::{Ran, Sandbox, is_root, tool, wait_until};

/// A measurement of a few operations that takes as long as they do.
const SMALL: [&str; 5] = ["--size=8M", "--record=1M", "--time=0", "--files=20", "--no-keep"];

fn objects(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The row of an operation.
#[track_caller]
fn row(ran: &Ran, name: &str, mode: &str) -> Value {
    let is_it = |object: &Value| object["name"] == name && object["conditions"]["mode"] == mode;
    objects(ran).into_iter().find(is_it).unwrap_or_else(|| panic!("no {name} {mode}: {}", ran.stdout))
}

fn labels(row: &Value) -> Vec<&str> {
    row["labels"].as_array().unwrap().iter().map(|label| label.as_str().unwrap()).collect()
}

/// Everything that is in a directory, hidden names too.
fn names(directory: &Path) -> Vec<String> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn is_in_memory(directory: &Path) -> bool {
    carrack_sys::dir::file_system(fs::File::open(directory).unwrap()).unwrap().in_memory
}

#[test]
fn bench_disk_labels_what_came_from_the_cache() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("d")).unwrap();
    let arguments = ["bench", "disk", "d", "--json", "--op=write,read,reread", "--mode=cached,fdatasync"];
    let ran = sandbox.ok([&arguments[..], &SMALL].concat());
    if is_in_memory(&sandbox.path("d")) {
        let all = objects(&ran);
        let mut rows = all.iter().filter(|object| object["type"] == "row");
        assert!(rows.all(|row| labels(row).contains(&"memory")), "{}", ran.stdout);
        return;
    }
    // dd's trap: eight megabytes are in memory and not on the disk, whatever the rate says.
    let written = row(&ran, "write", "cached");
    // Without cachestat(2) nobody tells what has reached the disk, and the row says so.
    let probe = fs::File::create(sandbox.path("probe")).unwrap();
    let tells = carrack_sys::gauge::cached(&probe, 0, 4096).is_ok_and(|cached| cached.unwritten.is_some());
    let is_doubted = |label: &&str| if tells { label.ends_with("cached") } else { *label == "cache-unknown" };
    assert!(labels(&written).iter().any(is_doubted), "{written}");
    assert_eq!(written["values"]["bytes"], 8 << 20);
    // Waited for: it is the disk's.
    assert!(!labels(&row(&ran, "write", "fdatasync")).iter().any(|label| label.ends_with("cached")));
    // A file that fits into memory, read twice.
    let read = row(&ran, "read", "cached");
    assert!(read["values"]["cached"].as_f64().unwrap() < 0.05 && !labels(&read).contains(&"cached"), "{read}");
    let again = row(&ran, "reread", "cached");
    assert!(again["values"]["cached"].as_f64().unwrap() > 0.9 && labels(&again).contains(&"cached"), "{again}");
}

#[test]
fn bench_disk_measures_every_operation_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("d/mine", "mine");
    let arguments =
        ["bench", "disk", "d", "--json", "--mode=cached,fdatasync,dsync,direct", "--depth=2", "--threads=2"];
    let ran = sandbox.ok([&arguments[..], &SMALL].concat());
    for name in ["write", "rewrite", "read", "random-read", "random-write", "backward", "strided"] {
        assert_eq!(row(&ran, name, "cached")["values"]["bytes"], 8 << 20, "{name}");
    }
    for (name, mode) in [("reread", "cached"), ("mmap-read", "cached"), ("mmap-write", "fdatasync"), ("write", "dsync")]
    {
        let row = row(&ran, name, mode);
        assert_eq!((&row["values"]["operations"], &row["latency"]["count"]), (&8.into(), &8.into()), "{row}");
        assert!(row["values"]["first_done_bytes_per_second"].as_f64().unwrap() > 0.0, "{row}");
    }
    let files =
        objects(&ran).into_iter().filter(|row| row["name"] == "file-delete" && row["values"]["operations"] == 20);
    assert_eq!(files.count(), 2);
    assert_eq!(names(&sandbox.path("d")), ["mine"]);
    assert!(!sandbox.path("home/.local").exists(), "nothing is kept");
}

#[test]
fn bench_disk_at_a_rate_times_from_when_each_was_due() {
    let sandbox = Sandbox::in_memory();
    fs::create_dir(sandbox.path("d")).unwrap();
    let arguments = ["bench", "disk", "d", "--json", "--op=random-read", "--rate=500", "--size=64K", "--time=0"];
    let ran = sandbox.ok([&arguments[..], &["--no-keep"]].concat());
    let row = row(&ran, "random-read", "cached");
    assert_eq!((&row["values"]["arrivals_per_second"], &row["values"]["operations"]), (&500.into(), &16.into()));
    // The last of sixteen was due after 30 ms.
    assert!(row["values"]["seconds"].as_f64().unwrap() >= 0.03, "{row}");
}

/// A measurement that goes on until it is ended: an operation each second.
fn endless(sandbox: &Sandbox) -> Running {
    let before = names(&sandbox.path("d"));
    let arguments = ["bench", "disk", "d", "--op=random-read", "--rate=1", "--size=1M", "--time=0"];
    let running = Running::start(sandbox.carrack().args(arguments));
    wait_until("the file is there", || {
        let new = names(&sandbox.path("d")).into_iter().filter(|name| !before.contains(name));
        new.into_iter().any(|name| sandbox.path("d").join(name).join("data-0").exists())
    });
    running
}

#[test]
fn bench_disk_that_was_killed_is_swept_by_the_next_and_one_that_runs_is_not() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("d")).unwrap();
    let killed = endless(&sandbox);
    let left = names(&sandbox.path("d"));
    signal(killed.id(), "KILL");
    assert_eq!(killed.end().code, -1);
    assert_eq!(names(&sandbox.path("d")), left);

    let running = endless(&sandbox);
    let mut kept = names(&sandbox.path("d"));
    kept.retain(|name| !left.contains(name));
    assert_eq!(kept.len(), 1, "the one that runs has swept the other");
    let ran = sandbox.ok([&["bench", "disk", "d", "--op=write"][..], &SMALL].concat());
    assert!(!ran.stderr.contains("killed"), "{}", ran.stderr);
    assert_eq!(names(&sandbox.path("d")), kept, "the one that runs keeps its files");

    signal(running.id(), "KILL");
    running.end();
    let ran = sandbox.ok([&["bench", "disk", "d", "--op=write"][..], &SMALL].concat());
    assert!(ran.stderr.contains(&format!("killed had left: {}", kept[0])), "{}", ran.stderr);
    assert!(names(&sandbox.path("d")).is_empty());
}

#[test]
fn bench_disk_that_is_interrupted_ends_cleanly() {
    for (name, code) in [("INT", 20), ("TERM", 75)] {
        let sandbox = Sandbox::new();
        fs::create_dir(sandbox.path("d")).unwrap();
        let running = endless(&sandbox);
        signal(running.id(), name);
        let ran = running.end();
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert!(names(&sandbox.path("d")).is_empty() && !sandbox.path("home/.local").exists());
    }
}

#[test]
fn bench_disk_refuses_to_fill_the_file_system() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("d")).unwrap();
    let ran = sandbox.run(["bench", "disk", "d", "--size=1000T"]);
    ran.failed_with(11, &["a tenth of them stays free", "--size"]);
    assert!(names(&sandbox.path("d")).is_empty());
    if !is_root() {
        return;
    }
    let small = Mounted::new(sandbox.path("small"), "16m");
    for (size, code) in [("15M", 11), ("13M", 0)] {
        let arguments = ["bench", "disk", "small", "--op=write", "--files=1", "--time=0", "--no-keep", "--size", size];
        assert_eq!(sandbox.run(arguments).code, code, "{size}");
    }
    // A size that is found by itself fits.
    let ran = sandbox.ok(["bench", "disk", "small", "--op=write,read", "--files=1", "--no-keep", "--json"]);
    assert!(row(&ran, "write", "cached")["values"]["bytes"].as_u64().unwrap() <= 4 << 20);
    assert!(names(&small.0).is_empty());
}

#[test]
fn bench_usage_that_cannot_be_meant_is_refused() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("d")).unwrap();
    for words in [
        &["bench"][..],
        &["bench", "disk"],
        &["bench", "disk", "d", "d"],
        &["bench", "disk", "host:d"],
        &["bench", "disk", "d", "--record=1000"],
        &["bench", "disk", "d", "--op=fly"],
        &["bench", "disk", "d", "--depth=0"],
        &["bench", "disk", "d", "--format=xml"],
        &["bench", "disk", "d", "--json", "--format=csv"],
        &["bench", "disk", "d", "--size=1M", "--record=2M", "--op=write"],
        &["bench", "disk", "d", "--record=1G", "--depth=1024", "--size=1G"],
        &["bench", "cpu", "--format=bonnie"],
        &["bench", "show", "nothing"],
        &["bench", "diff"],
    ] {
        let ran = sandbox.run(words);
        assert_eq!(ran.code, 2, "{words:?}: {}{}", ran.stdout, ran.stderr);
    }
    sandbox.run(["bench", "disk", "absent"]).failed_with(11, &["absent"]);
    assert!(names(&sandbox.path("d")).is_empty());
}

/// A result that is kept, of every operation.
fn kept(sandbox: &Sandbox) -> String {
    fs::create_dir_all(sandbox.path("d")).unwrap();
    let arguments = ["bench", "disk", "d", "--json", "--mode=fdatasync", "--size=8M", "--time=0", "--files=2000"];
    sandbox.ok(arguments).summary()["id"].as_str().unwrap().to_owned()
}

#[test]
fn bonnie_line_is_rendered_by_bonnies_own_tool() {
    let sandbox = Sandbox::new();
    let id = kept(&sandbox);
    let line = sandbox.ok(["bench", "show", &id, "--format=bonnie"]).stdout;
    assert_eq!(line.trim_end().split(',').count(), 50, "{line}");
    let file = sandbox.write("line.csv", &line);
    let render = |program: &str| {
        let input = fs::File::open(&file).unwrap();
        tool(Command::new(program).stdin(Stdio::from(input)))
    };
    let html = render("bon_csv2html");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(html.contains(host.trim()) && html.contains("8M"), "{html}");
    // The rate and the latency of what was written stand there as numbers.
    let fields: Vec<&str> = line.split(',').collect();
    for index in [11, 13, 17, 19, 26, 28, 30, 32, 34, 36] {
        assert!(fields[index].parse::<u64>().is_ok_and(|number| number > 0), "{index}: {line}");
    }
    assert!(html.contains(&format!(">{}<", fields[39])) && html.contains(&format!(">{}<", fields[26])), "{html}");
    assert!(render("bon_csv2txt").contains(host.trim()));
}

#[test]
fn fio_document_is_converted_by_fios_own_tool() {
    let sandbox = Sandbox::new();
    let id = kept(&sandbox);
    let text = sandbox.ok(["bench", "show", &id, "--format=fio-json+"]).stdout;
    let source = sandbox.write("fio.json", &text);
    let document: Value = serde_json::from_str(&text).unwrap();
    let jobs = document["jobs"].as_array().unwrap();
    let converter = |more: &[&str]| {
        let mut command = Command::new("fio_jsonplus_clat2csv");
        tool(command.arg(&source).arg(sandbox.path("out.csv")).args(more))
    };
    converter(&[]);
    // It reads back what it has made, and compares each count with ours.
    let validated = converter(&["--validate"]);
    assert_eq!(validated.matches(" validated").count(), jobs.len(), "{validated}");
    let table = fs::read_to_string(sandbox.path("out_job0.csv")).unwrap();
    assert!(table.lines().count() > 1 && jobs[0]["write"]["clat_ns"]["N"] == 8, "{table}");
}

#[test]
fn results_are_kept_shown_and_compared() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.ok(["bench", "list"]).stdout, "");
    let (one, other) = (kept(&sandbox), kept(&sandbox));
    assert_ne!(one, other);
    let listed = sandbox.ok(["bench", "list"]).stdout;
    assert_eq!(listed.lines().count(), 2);
    assert!(listed.starts_with(&one) && listed.contains(&other), "{listed}");
    // The path of a file needs no slash, where no result is called so.
    fs::copy(sandbox.path(format!("home/.local/state/carrack/bench/{one}.json")), sandbox.path("r.json")).unwrap();
    let shown = sandbox.ok(["bench", "show", &one]);
    assert_eq!(sandbox.ok(["bench", "show", "r.json"]).stdout, shown.stdout);
    for words in ["disk: d", "random-read", "file-create", "p99"] {
        assert!(shown.stdout.contains(words), "{words}: {}", shown.stdout);
    }
    assert!(
        shown.stdout.lines().all(|line| line.starts_with("note:") || line.chars().count() <= 80),
        "{}",
        shown.stdout
    );
    let csv = sandbox.ok(["bench", "show", &one, "--format=csv"]).stdout;
    let columns = csv.lines().map(|line| line.split(',').count()).collect::<Vec<_>>();
    assert!(columns.len() > 10 && columns.iter().all(|count| *count == columns[0]), "{csv}");
    let changes = objects(&sandbox.ok(["bench", "diff", "--json"]));
    let numbers = changes.iter().filter(|change| change["what"] == "number").count();
    assert_eq!(numbers, columns.len() - 1, "every row of both has a number");
    assert!(changes.iter().all(|change| change["name"] != "kernel"), "the kernel is the same");
    // What is kept is for its owner's eyes.
    let file = sandbox.path(format!("home/.local/state/carrack/bench/{one}.json"));
    assert_eq!(crate::support::mode(&file), 0o600);
}

#[test]
fn bench_cpu_measures_each_digest_and_cipher() {
    let sandbox = Sandbox::new();
    let ran = sandbox.ok(["bench", "cpu", "--json", "--time=1ms"]);
    let rows = objects(&ran);
    for name in ["blake3", "xxh128", "crc32c", "adler32", "aes-128-gcm", "chacha20-poly1305", "memory-copy"] {
        let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}"));
        assert!(row["values"]["bytes_per_second"].as_f64().unwrap() > 0.0, "{row}");
    }
    assert_eq!(ran.summary()["kind"], "cpu");
    let table = sandbox.ok(["bench", "show"]).stdout;
    assert!(table.contains("one core") && table.contains("Gb/s"), "{table}");
}

#[test]
fn page_needs_nothing_else_and_is_gone_if_nothing_was_measured() {
    let sandbox = Sandbox::new();
    let id = kept(&sandbox);
    sandbox.ok(["bench", "show", &id, "--html=page.html"]);
    let page = fs::read_to_string(sandbox.path("page.html")).unwrap();
    assert!(page.ends_with("</html>\n") && page.matches("<svg").count() > 3);
    for foreign in ["<script", "http:", "https:", "url(//", "@import"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    sandbox.run(["bench", "disk", "d", "--size=1000T", "--html=other.html"]).failed_with(11, &[]);
    assert!(!sandbox.path("other.html").exists() && !sandbox.path("other.html.part").exists());
    sandbox.run(["bench", "disk", "d", "--html=absent/page.html"]).failed_with(11, &["absent/page.html"]);
}

/// Shows a page in a browser: nothing is asked for beside it, its console stays empty, and it is as light or dark as
/// the reader's system.
#[track_caller]
pub fn seen(sandbox: &Sandbox, page: &[u8], look: Look) -> Picture {
    let opened = open(sandbox, page.to_vec(), look);
    assert_eq!(opened.requests, ["GET / HTTP/1.1 Host: page.invalid"], "{look:?}");
    assert_eq!(opened.console, Vec::<String>::new(), "{look:?}");
    assert_eq!(opened.picture.width, look.width as usize);
    let brightness = opened.picture.brightness();
    assert!(if look.dark { brightness < 90.0 } else { brightness > 180.0 }, "{look:?}: {brightness}");
    opened.picture
}

/// The page of a short round, light and dark, wide and narrow: its bars are there in the colours of the scheme.
#[test]
fn bench_page_in_a_browser() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("d")).unwrap();
    sandbox.ok(["bench", "disk", "d", "--size=16M", "--time=250ms", "--files=200", "--no-keep", "--html=page.html"]);
    let page = fs::read(sandbox.path("page.html")).unwrap();
    let text = String::from_utf8(page.clone()).unwrap();
    for title in ["Rates", "Operations a second", "Time of one operation"] {
        assert!(text.contains(&format!("<h3>{title}</h3>")), "{title}");
    }
    let (light, dark) = ([[0xf6, 0xf7, 0xf8], [0x0b, 0x62, 0xa8]], [[0x12, 0x14, 0x17], [0x63, 0xb3, 0xf4]]);
    for (dark_scheme, colours) in [(false, light), (true, dark)] {
        for width in [1200, 700] {
            let look = Look { dark: dark_scheme, width };
            let picture = seen(&sandbox, &page, look);
            for (colour, least) in colours.into_iter().zip([20_000, 2000]) {
                let count = picture.count(colour);
                assert!(count > least, "{look:?}: {count} pixels of {colour:?}");
            }
        }
    }
}

/// The page of a grid of record sizes: a heat map from the darkest colour to the brightest, on both schemes.
#[test]
fn bench_page_of_a_grid_in_a_browser() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("d")).unwrap();
    let arguments = ["bench", "disk", "d", "--full", "--op=write,rewrite,read,reread,random-read", "--size=16M"];
    sandbox.ok([&arguments[..], &["--time=250ms", "--no-keep", "--html=page.html"]].concat());
    let page = fs::read(sandbox.path("page.html")).unwrap();
    for look in [Look { dark: false, width: 1200 }, Look { dark: true, width: 700 }] {
        let picture = seen(&sandbox, &page, look);
        for colour in [[0x44, 0x01, 0x54], [0xfd, 0xe7, 0x25]] {
            let count = picture.count(colour);
            assert!(count > 300, "{look:?}: {count} pixels of {colour:?}");
        }
    }
}
