//! Tables for the parser of locations: what users type, and what nobody should get away with.

use super::*;

fn ssh(user: Option<&str>, host: &str, path: &[u8]) -> Location {
    let host = SshHost { user: user.map(str::to_owned), host: host.to_owned() };
    Location::Ssh { host, path: path.to_vec() }
}

fn node(host: &str, port: u16, pin: Option<[u8; 32]>, path: &[u8]) -> Location {
    Location::Node { node: NodeAddress { host: host.to_owned(), port, pin }, path: path.to_vec() }
}

fn local(path: &[u8]) -> Location {
    Location::Local(path.to_vec())
}

#[test]
fn locations_are_beside_each_other_where_one_connection_does_for_both() {
    let cases = [
        ("a", "/b", true),
        ("h:a", "h:b", true),
        ("h:a", "i:a", false),
        ("u@h:a", "h:a", false),
        ("h:a", "a", false),
        ("carrack://h/a", "carrack://h:7420/b", true),
        ("carrack://h/a", "carrack://h:1/a", false),
        ("carrack://h/a", "h:/a", false),
    ];
    for (one, other, beside) in cases {
        let parse = |text: &str| Location::parse_typed(text.as_bytes()).expect("a location");
        assert_eq!(parse(one).is_beside(&parse(other)), beside, "{one} {other}");
    }
}

#[test]
fn local_and_synthetic() {
    let cases: &[(&[u8], Location)] = &[
        (b"a", local(b"a")),
        (b"a/", local(b"a/")),
        (b"/", local(b"/")),
        (b".", local(b".")),
        (b"./a:b", local(b"./a:b")),
        (b"/x:y", local(b"/x:y")),
        (b"dir/a:b", local(b"dir/a:b")),
        (b"dir/carrack://x", local(b"dir/carrack://x")),
        (b"a\xff\nb", local(b"a\xff\nb")),
        (b"-rf", local(b"-rf")),
        (b"[x].txt", local(b"[x].txt")),
        (b"user@host", local(b"user@host")),
        (b"/dev/null", local(b"/dev/null")),
        (b"null", local(b"null")),
        (b"%41", local(b"%41")),
        (b"-", Location::Stdio),
        (b"null:", Location::Null),
        (b"zero:10M", Location::Zero(10 << 20)),
        (b"zero:0", Location::Zero(0)),
        (b"random:1.5GB", Location::Random(1_500_000_000)),
    ];
    for (text, expected) in cases {
        assert_eq!(Location::parse_typed(text).as_ref(), Ok(expected), "{}", display_bytes(text));
    }
}

#[test]
fn location_over_ssh() {
    let cases: &[(&[u8], Location)] = &[
        (b"host:", ssh(None, "host", b"")),
        (b"host:path", ssh(None, "host", b"path")),
        (b"host:/abs/path/", ssh(None, "host", b"/abs/path/")),
        (b"host::path", ssh(None, "host", b"path")),
        (b"host:::x", ssh(None, "host", b":x")),
        (b"host:a:b", ssh(None, "host", b"a:b")),
        (b"host:a@[b", ssh(None, "host", b"a@[b")),
        (b"host:~/x y\xff", ssh(None, "host", b"~/x y\xff")),
        (b"host:%41", ssh(None, "host", b"%41")),
        (b"me@host:p", ssh(Some("me"), "host", b"p")),
        (b"me@dom@host:p", ssh(Some("me@dom"), "host", b"p")),
        (b"DOM\\me@host:p", ssh(Some("DOM\\me"), "host", b"p")),
        (b"10.0.0.2:p", ssh(None, "10.0.0.2", b"p")),
        (b"[::1]:p", ssh(None, "::1", b"p")),
        (b"[2001:db8::2]:/x:y", ssh(None, "2001:db8::2", b"/x:y")),
        (b"[fe80::1%eth0]:p", ssh(None, "fe80::1%eth0", b"p")),
        (b"me@[::1]:p", ssh(Some("me"), "::1", b"p")),
        (b"ssh://me@host/x%20y/", ssh(Some("me"), "host", b"/x y/")),
        (b"ssh://me@[::1]/x", ssh(Some("me"), "::1", b"/x")),
        (b"ssh://host/~/x", ssh(None, "host", b"~/x")),
        (b"ssh://host/~bob/x", ssh(None, "host", b"/~bob/x")),
        (b"ssh://host/%7E/x", ssh(None, "host", b"/~/x")),
        (b"ssh://host", ssh(None, "host", b"")),
        (b"a.b-c_d:p", ssh(None, "a.b-c_d", b"p")),
        ("münchen:p".as_bytes(), ssh(None, "münchen", b"p")),
        (b"x@null:p", ssh(Some("x"), "null", b"p")),
    ];
    for (text, expected) in cases {
        assert_eq!(Location::parse_typed(text).as_ref(), Ok(expected), "{}", display_bytes(text));
    }
}

#[test]
fn location_at_a_node() {
    let hex = "ab".repeat(32);
    let pinned = format!("carrack://h/p#sha256:{hex}");
    let pin = Some([0xab; 32]);
    let cases: &[(&[u8], Location)] = &[
        (b"carrack://h", node("h", 7420, None, b"")),
        (b"carrack://h/", node("h", 7420, None, b"/")),
        (b"carrack://h:99/a/b/", node("h", 99, None, b"/a/b/")),
        (b"carrack://10.0.0.2/a%20b%2Fc%ff", node("10.0.0.2", 7420, None, b"/a b/c\xff")),
        (b"carrack://[::1]:5/a:b", node("::1", 5, None, b"/a:b")),
        (b"carrack://[::1]/x", node("::1", 7420, None, b"/x")),
        (pinned.as_bytes(), node("h", 7420, pin, b"/p")),
    ];
    for (text, expected) in cases {
        assert_eq!(Location::parse_typed(text).as_ref(), Ok(expected), "{}", display_bytes(text));
    }
}

const REFUSED: &[&[u8]] = &[
    b"",
    b":path",
    b"::path",
    b"@host:p",
    b"@lab:",
    b"@:/x",
    b"@a b:/x",
    b"@-a:/x",
    b"@user@host:/x",
    b"ssh:///x",
    b"ssh://box:22/x",
    b"ssh://me:secret@box/x",
    b"ssh://me\\@box/x",
    b"ssh://box/%zz",
    b"a%41b:p",
    b"me@:p",
    b"-oProxyCommand=touch x:p",
    b"-e:p",
    b"me@-e:p",
    b"-l@host:p",
    b"a b:p",
    b"a\tb:p",
    b"a\nb:p",
    b"a\x1b]0;x:p",
    b"a\x00b:p",
    b"a\xffb:p",
    "a\u{202e}b:p".as_bytes(),
    "a\u{a0}b:p".as_bytes(),
    b"me me@host:p",
    b"$(reboot):p",
    b"`id`:p",
    b"a;b:p",
    b"a|b:p",
    b"a'b:p",
    b"a\\b:p",
    b"me\\@host:p",
    b"$USER@host:p",
    b"fe80::1:p",
    b"fe80::1:",
    b"::1:/p",
    b"me@2001:db8::1:/p",
    b"[::1]",
    b"[::1]x:p",
    b"[::1:p",
    b"[host]:p",
    b"[]:p",
    b"[-e]:p",
    b"[fe80::1%]:p",
    b"[fe80::1%a b]:p",
    b"@[::1]:p",
    b"https://h/p",
    b"s3://bucket/key",
    b"file:///p",
    b"null:x",
    b"zero:",
    b"zero:x",
    b"zero:-1",
    b"random:1Mb",
    b"zero:10P0",
    b"zero:9223372036854775808",
    b"random:\xff",
    b"carrack://",
    b"carrack:///p",
    b"carrack://:7420/p",
    b"carrack://me@h/p",
    b"carrack://-h/p",
    b"carrack://h:0/p",
    b"carrack://h:/p",
    b"carrack://h:65536/p",
    b"carrack://h:+1/p",
    b"carrack://[::1/p",
    b"carrack://[::1]x/p",
    b"carrack://[h]/p",
    b"carrack://h/p?q",
    b"carrack://h/%",
    b"carrack://h/%4",
    b"carrack://h/%zz",
    b"carrack://h/%00",
    b"carrack://h/p#",
    b"carrack://h/p#md5:00",
    b"carrack://h/p#sha256:00",
];

#[test]
fn refused() {
    for text in REFUSED {
        let refused = Location::parse_typed(text);
        let Err(why) = refused else { panic!("{} became {refused:?}", display_bytes(text)) };
        assert!(!why.chars().any(char::is_control), "{why:?}");
    }
}

#[test]
fn location_refused_says_what_to_type_instead() {
    for (text, hint) in [
        (&b"fe80::1:p"[..], "[fe80::1]:PATH"),
        (b"-x:p", "./-x:p"),
        (b"carrack://me@h/", "leave USER@ out"),
        (b"https://h", "https://"),
    ] {
        let why = Location::parse_typed(text).expect_err("refused above");
        assert!(why.contains(hint), "{why}");
    }
}

/// What the core prints can be typed again.
#[test]
fn display_parses_back() {
    for text in [
        &b"a/b"[..],
        b"host:x/y",
        b"me@host:/x",
        b"me@[::1]:x",
        b"carrack://h:99/x",
        b"@lab:/x y",
        b"null:",
        b"zero:5",
        b"-",
    ] {
        let location = Location::parse_typed(text).expect("a good one");
        assert_eq!(Location::parse_typed(location.to_string().as_bytes()), Ok(location));
    }
}

#[test]
fn endpoints_are_told_from_files_and_hosts() {
    let at = |name: &str, path: &[u8]| Location::Endpoint { name: name.into(), path: path.to_vec() };
    for (text, expected) in [
        (&b"@lab:/run 42/"[..], at("lab", b"/run 42/")),
        (b"@lab:/100%", at("lab", b"/100%")),
        (b"@a.b-c_1:/\xff:x", at("a.b-c_1", b"/\xff:x")),
        (b"@lab", local(b"@lab")),
        (b"@lab/x:y", local(b"@lab/x:y")),
        (b"./@lab:/x", local(b"./@lab:/x")),
        (b"u@lab:/x", ssh(Some("u"), "lab", b"/x")),
    ] {
        assert_eq!(Location::parse_typed(text), Ok(expected));
    }
}

/// Each as typed, and as documents have it; what a document has is read as what was typed.
#[test]
fn documents_say_what_was_typed() {
    let pin = "ab".repeat(32);
    let pinned = format!("carrack://box/x%2520y#sha256:{pin}");
    let known = format!("carrack://box:7420/x%2520y#sha256:{pin}");
    for (typed, document) in [
        (&b"@archive:/run 42/"[..], "@archive:/run 42/"),
        (b"@archive:/100%", "@archive:/100%25"),
        (b"/data/a#b", "/data/a%23b"),
        (b"/a\xff\x1b", "/a%FF%1B"),
        (b"me@box:/x", "ssh://me@box/x"),
        (b"box:~/data", "ssh://box/~/data"),
        (b"box:/~/data", "ssh://box/%7E/data"),
        (b"box:/~", "ssh://box/%7E"),
        (b"box:/~bob/data", "ssh://box/~bob/data"),
        (b"DOM\\me@box:/x", "ssh://DOM\\me@box/x"),
        (b"ssh://me@box/x/", "ssh://me@box/x/"),
        (b"[::1]:/x", "ssh://[::1]/x"),
        (b"[fe80::1%eth0]:/x", "ssh://[fe80::1%eth0]/x"),
        (b"carrack://box/", "carrack://box:7420/"),
        (b"carrack://[::1]:5/a:b", "carrack://[::1]:5/a:b"),
        (pinned.as_bytes(), &known),
        (b"null:", "null:"),
        (b"zero:1K", "zero:1024"),
        (b"random:1.5GB", "random:1500000000"),
    ] {
        let location = Location::parse_typed(typed).expect("a good one");
        assert_eq!(location.document().as_deref(), Some(document));
        assert_eq!(Location::parse_document(document), Ok(location), "{document}");
    }
    // A path that is relative to the login directory, and the directory itself, stand below it.
    for (typed, document, path) in [
        (&b"box:data"[..], "ssh://box/~/data", &b"~/data"[..]),
        (b"box:", "ssh://box/~/", b"~/"),
        (b"box:~bob", "ssh://box/~/~bob", b"~/~bob"),
    ] {
        assert_eq!(Location::parse_typed(typed).unwrap().document().as_deref(), Some(document));
        assert_eq!(Location::parse_document(document), Ok(ssh(None, "box", path)));
    }
    for typed in [&b"-"[..], b"a", b"./a"] {
        assert_eq!(Location::parse_typed(typed).unwrap().document(), None);
    }
}

#[test]
fn documents_have_absolute_paths_and_percent_for_bytes() {
    for (text, expected) in [
        ("/data/x y", local(b"/data/x y")),
        ("/data/x%20y%ff", local(b"/data/x y\xff")),
        ("@lab:/run%2042/", Location::Endpoint { name: "lab".into(), path: b"/run 42/".to_vec() }),
        ("carrack://n", node("n", 7420, None, b"/")),
        ("carrack://n:0080/a", node("n", 80, None, b"/a")),
        ("ssh://host", ssh(None, "host", b"~/")),
        ("ssh://host/~", ssh(None, "host", b"~/")),
        ("ssh://me@realm@host/a", ssh(Some("me@realm"), "host", b"/a")),
        ("@lab:/a%252Fb", Location::Endpoint { name: "lab".into(), path: b"/a%2Fb".to_vec() }),
        ("zero:1G", Location::Zero(1 << 30)),
    ] {
        assert_eq!(Location::parse_document(text), Ok(expected), "{text}");
    }
    let long = format!("/{}", "a".repeat(limits::LOCATION_BYTES));
    for text in [
        "",
        "-",
        "a",
        "./a",
        "a:b",
        "box:/x",
        "@lab",
        "@lab:a",
        "@la b:/a",
        "@.lab:/a",
        "ftp://h/a",
        "file:///etc/passwd",
        "carrack://$(id)/",
        "ssh://-oProxyCommand=x/a",
        "ssh://`id`/",
        "ssh://-x@h/",
        "null:x",
        "zero:",
        "zero:-1",
        "/a\nb",
        "/\u{9b}",
        "/%",
        "/%zz",
        "/%00",
        "@lab:/a%0",
        "@lab:/a%2fb",
        &long,
    ] {
        let parsed = Location::parse_document(text);
        let Err(why) = parsed else { panic!("{text:?} became {parsed:?}") };
        assert!(!why.chars().any(char::is_control), "{why:?}");
    }
}

#[test]
fn address_of_another_scheme_is_answered_with_what_to_type() {
    for (text, typed) in [
        ("file:///d/a%20b", "type /d/a b"),
        ("file://localhost/d", "type /d"),
        ("sftp://me@box/x", "type me@box:/x (over ssh)"),
        ("sftp://box:2222/~/x", "type box:~/x (over ssh); a port of ssh stands in ssh_config"),
        ("sshftp://box/d/", "type box:/d/ (over ssh)"),
        ("gsiftp://box:2811/d", "type box:/d (over ssh)"),
        ("rsync://box/module/d", "type box:/module/d (over ssh, with the path of the module there)"),
        ("sftp://[fe80::1]/x", "type [fe80::1]:/x"),
        ("https://h/p", "from -, standard input"),
    ] {
        let why = Location::parse_typed(text.as_bytes()).expect_err(text);
        assert!(why.contains(typed), "{text}: {why}");
        let typed = typed.strip_prefix("type ").map(|typed| typed.split(" (").next().unwrap_or_default());
        assert!(typed.is_none_or(|typed| Location::parse_typed(typed.as_bytes()).is_ok()), "{text}: {typed:?}");
    }
}
