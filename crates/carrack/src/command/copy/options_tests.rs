//! Whole command lines, through the verb rewriting and clap, to requests.

use std::collections::HashMap;
use std::ffi::OsString;

use super::*;
use carrack_core::filter::SourceLinks;
use carrack_core::request::{Digests, Encrypt, Existing, Push};

use crate::cli::bare;
use crate::command::whole_tree;
use crate::exit;

type Parsed = Result<(CopyRequest, OutputOptions), CommandError>;

/// Words are split at each space: two in a row have an empty word between them; `None` if clap itself refuses the line.
fn parse_with(line: &str, variables: &[(&str, &str)]) -> Option<Parsed> {
    let words = std::iter::once("carrack").chain(line.split(' ')).map(OsString::from).collect();
    let tree = whole_tree();
    let matches = tree.clone().try_get_matches_from(bare::with_verb(&tree, words)).ok()?;
    let (verb, matches) = matches.subcommand()?;
    assert_eq!(verb, "copy");
    let variables: HashMap<&str, &str> = variables.iter().copied().collect();
    Some(copy(&Flags::new(matches, &|name| variables.get(name).map(OsString::from))))
}

fn request(line: &str) -> (CopyRequest, OutputOptions) {
    parse_with(line, &[]).expect("clap takes it").expect("and so do we")
}

fn options(line: &str) -> CopyOptions {
    request(format!("{line} a b").trim_start()).0.options
}

#[test]
fn defaults_are_what_nothing_typed_means() {
    let (request, output) = request("a b host:c");
    assert_eq!(request.sources, [Location::Local(b"a".to_vec()), Location::Local(b"b".to_vec())]);
    assert!(request.destination.is_remote());
    let reach = Reach { push: crate::agents::push(), ..Reach::default() };
    let end = EndOptions { reach, credential: tokens::search(false), ..EndOptions::default() };
    let own = CopyOptions { reflink: Reflink::Auto, ..CopyOptions::default() };
    let expected = CopyOptions { source: end.clone(), destination: end, ..own };
    assert_eq!(format!("{:?}", request.options), format!("{expected:?}"));
    assert_eq!(output.stats, Duration::from_secs(5));
    assert_eq!(output.bar, BarChoice::Terminal);
}

#[test]
fn flags_reach_the_request() {
    assert!(options("-n").dry_run);
    assert_eq!(options("--no-clobber").existing, Existing::Keep);
    assert_eq!(options("--ignore-existing").existing, Existing::Keep);
    assert_eq!(options("--existing").existing, Existing::Only);
    assert_eq!(options("-u").existing, Existing::Older);
    assert_eq!(options("--verify disk").verify, Verify::Disk);
    assert_eq!(options("--verify=none").verify, Verify::None);
    assert_eq!(options("--verify=source").verify, Verify::Source);
    assert_eq!(options("--encrypt none").encrypt, Encrypt::None);
    assert_eq!(options("--streams 8").streams, Some(8));
    assert_eq!(options("--streams auto").streams, None);
    assert!(options("--polite").polite && !options("").polite);
    assert_eq!(options("--block 1M").block_bytes, Some(1 << 20));
    assert_eq!(options("--bwlimit 10MB/s").rate_limit, Some(10_000_000));
    assert_eq!(options("--bwlimit 0").rate_limit, None);
    let all = Digests { adler32: true, crc32c: true, ..Digests::BLAKE3 };
    assert_eq!(options("--digest adler32,crc32c").digest, all);
    assert_eq!(options("--digest none --verify none").digest, Digests::NONE);
    assert_eq!(options("--verify none").digest, Digests::NONE);
    assert_eq!(options("--verify none --encrypt none").digest, Digests::BLAKE3);
    assert_eq!(options("--verify none --encrypt none --digest none").digest, Digests::NONE);
    assert_eq!(options("--digest xxh128").digest, Digests::XXH128);
    let with = Digests { crc32c: true, ..Digests::XXH128 };
    assert_eq!(options("--digest crc32c,xxh128 --verify none").digest, with);
    assert_eq!(options("-rap").existing, Existing::Replace);
}

#[test]
fn flags_reach_the_hosts() {
    let options = options(
        "-e ssh --remote-path /opt/carrack --no-push --ports 5000-5100 --data-address [::1] --link reverse \
         --connect-timeout 2m",
    );
    let reach = &options.source.reach;
    assert_eq!(format!("{reach:?}"), format!("{:?}", options.destination.reach));
    assert_eq!(reach.rsh, ["ssh"]);
    assert_eq!(reach.remote_path.as_deref(), Some("/opt/carrack"));
    assert!(matches!(reach.push, Push::Never));
    assert_eq!(reach.ports, Some((5000, 5100)));
    assert_eq!(reach.data_address.as_deref(), Some("::1"));
    assert_eq!(options.links, LinkSet::only(LinkKind::Reverse));
    assert_eq!(reach.connect_timeout, Duration::from_secs(120));
}

#[test]
fn credentials_belong_to_ends() {
    let said = |credential: &Credential| format!("{credential:?}");
    let file = |name: &str| said(&Credential::File(name.as_bytes().to_vec()));
    // What is only found goes to none of two nodes: one of them would learn the other's.
    let (found, kept) = (said(&tokens::search(false)), said(&tokens::search(true)));
    assert_ne!(found, kept);
    let of = |line: &str, variables: &[(&str, &str)]| {
        let parsed = parse_with(line, variables).expect("clap takes it");
        parsed.map(|(request, _)| {
            (said(&request.options.source.credential), said(&request.options.destination.credential))
        })
    };
    let (one, two) = ("carrack://one/a", "carrack://two/b");
    let both = "--source-token-file s --destination-token-file d";
    for (line, expected) in [
        (format!("--token-file t {one} b"), (file("t"), found.clone())),
        (format!("--token-file t a {two}"), (found.clone(), file("t"))),
        (format!("--token-file t {one} carrack://ONE.:7420/c"), (file("t"), file("t"))),
        ("--token-file t a b".into(), (found.clone(), found.clone())),
        (format!("{one} {two}"), (kept.clone(), kept.clone())),
        (format!("{one} carrack://one:99/b"), (kept.clone(), kept.clone())),
        (format!("{one} carrack://ONE.:7420/b"), (found.clone(), found.clone())),
        (format!("{one} carrack://one/b"), (found.clone(), found.clone())),
        (format!("{both} {one} {two}"), (file("s"), file("d"))),
        (format!("--source-token-file s {one} {two}"), (file("s"), kept.clone())),
        (format!("--token-file t --source-token-file s {one} b"), (file("s"), found.clone())),
        (format!("--token-file t {both} {one} {two}"), (file("s"), file("d"))),
    ] {
        assert_eq!(of(&line, &[]), Ok(expected), "{line}");
    }
    let everywhere = [("CARRACK_TOKEN_FILE", "t"), ("CARRACK_SOURCE_TOKEN_FILE", "s")];
    assert_eq!(of(&format!("a {two}"), &everywhere), Ok((found.clone(), file("t"))));
    for (line, variables, words) in [
        (format!("--token-file t {one} {two}"), &[][..], ["--token-file", "--destination-token-file"]),
        (format!("--token-file t --source-token-file s {one} {two}"), &[], ["--token-file", "two nodes"]),
        (format!("{one} carrack://one:99/b"), &everywhere[..1], ["CARRACK_TOKEN_FILE", "carrack token add one:7420"]),
        (format!("--source-token-file s a {two}"), &[], ["--source-token-file is for a node", "a is not"]),
    ] {
        let error = of(&line, variables).expect_err(&line);
        let said = format!("{error} {}", error.hints.join(" "));
        assert!(words.iter().all(|word| said.contains(word)), "{line}: {said}");
        assert_eq!(error.exit_code(), exit::USAGE);
    }
}

#[test]
fn items_are_asked_for_when_somebody_reads_them() {
    for (line, wanted) in [("", false), ("-v ", true), ("--json ", true), ("--manifest m ", true), ("-q ", false)] {
        assert_eq!(request(&format!("{line}a b")).0.options.item_events, wanted, "{line}");
    }
}

#[test]
fn environment_stands_behind_the_flags() {
    let environment = [("CARRACK_STREAMS", "8"), ("CARRACK_RSH", "ssh -p '2 2'"), ("CARRACK_CONNECT_TIMEOUT", "")];
    let (request, _) = parse_with("a b", &environment).expect("clap").expect("good");
    assert_eq!(request.options.streams, Some(8));
    assert_eq!(request.options.source.reach.rsh, ["ssh", "-p", "2 2"]);
    assert_eq!(request.options.source.reach.connect_timeout, Reach::default().connect_timeout);

    let (request, _) = parse_with("--streams 2 a b", &environment).expect("clap").expect("good");
    assert_eq!(request.options.streams, Some(2));

    let error = parse_with("a b", &[("CARRACK_BLOCK", "3M")]).expect("clap").expect_err("3M");
    assert!(error.to_string().contains("CARRACK_BLOCK"), "{error}");
    assert_eq!(error.exit_code(), exit::USAGE);
}

#[test]
fn refused_with_a_usage_error() {
    let cases = [
        ("a", "a source and a destination"),
        ("-n", "a source and a destination"),
        ("null: b", "null:"),
        ("a zero:5", "null:"),
        ("a random:5", "null:"),
        ("- - b", "standard input"),
        ("a b -", "standard output"),
        ("--json a -", "--json"),
        ("--manifest - a -", "--manifest"),
        ("--manifest - --json a b", "--manifest"),
        ("--digest none a b", "--digest none"),
        ("--digest none --verify disk a b", "--digest none"),
        ("--digest none --verify source a b", "--digest none"),
        ("--digest none --verify none --manifest m a b", "--manifest"),
        ("--digest xxh128 --manifest m a b", "--digest xxh128 leaves out"),
        ("--digest blake3,xxh128 a b", "blake3 and xxh128"),
        ("--digest md5 a b", "--digest"),
        ("--digest blake3,none a b", "--digest"),
        ("--digest  a b", "--digest"),
        ("--verify yes a b", "--verify"),
        ("--encrypt rot13 a b", "--encrypt"),
        ("--link memory a b", "--link"),
        ("--streams 0 a b", "--streams"),
        ("--streams 257 a b", "--streams"),
        ("--streams +4 a b", "--streams"),
        ("--streams=-4 a b", "--streams"),
        ("--block 5M a b", "--block"),
        ("--bwlimit 1Mb a b", "--bwlimit"),
        ("--ports 9-1 a b", "--ports"),
        ("--data-address=-x a b", "--data-address"),
        ("--remote-path=-x a b", "--remote-path"),
        ("--connect-timeout 0 a b", "--connect-timeout"),
        ("-e ' a b", "--rsh"),
        ("-- -x:p b", "-x"),
    ];
    for (line, named) in cases {
        let parsed = parse_with(line, &[]).unwrap_or_else(|| panic!("clap refused {line}"));
        let error = parsed.err().unwrap_or_else(|| panic!("{line} was taken"));
        assert!(error.to_string().contains(named), "{line}: {error}");
        assert_eq!(error.exit_code(), exit::USAGE, "{line}");
    }
}

#[test]
fn refused_by_clap() {
    for line in [
        "--no-clobber --update a b",
        "--existing --ignore-existing a b",
        "-q -v a b",
        "-q -P a b",
        "-P --no-progress a b",
        "-n --manifest m a b",
        "--no-such-flag a b",
        "--streams",
        "--manifest --json a b",
        "-x:p b",
    ] {
        assert!(parse_with(line, &[]).is_none(), "{line}");
    }
}

#[test]
fn links_and_relative_paths_are_as_typed() {
    for (typed, links) in [
        ("-L", SourceLinks::Follow),
        ("-k", SourceLinks::FollowDirectories),
        ("--copy-unsafe-links", SourceLinks::FollowUnsafe),
        ("--safe-links", SourceLinks::Safe),
        ("--links", SourceLinks::Keep),
    ] {
        assert_eq!(options(typed).filters.links, links, "{typed}");
    }
    let (request, _) = request("-R x/./y/z x/./w there");
    assert_eq!(request.sources, [Location::Local(b"x/".to_vec())]);
    assert_eq!(request.options.only, Some(vec![b"y/z".to_vec(), b"w".to_vec()]));
}
