//! Both resolvers over one table; every fallback beside what it stands in for.

use super::*;
use crate::file::{clear_nonblock, read_full_at, write_all_at};
use std::collections::BTreeSet;
use tempfile::TempDir;

type Resolver = Box<dyn Fn(BorrowedFd<'_>, &[&[u8]], Links, OFlags) -> io::Result<OwnedFd>>;

type Answer = Result<&'static [u8], i32>;

/// The walk, alone and with what is kept of the one before, what this system chooses, and `openat2` where there is one.
/// For one root.
fn resolvers() -> Vec<(&'static str, Resolver)> {
    let mut all: Vec<(_, Resolver)> = vec![
        ("walk", Box::new(beneath::by_walk)),
        ("chosen", Box::new(beneath::open)),
        ("passed", walk_from_the_last(PassedWays::default())),
    ];
    #[cfg(target_os = "linux")]
    if beneath::kernel_resolves() {
        all.push(("kernel", Box::new(beneath::by_kernel)));
    }
    all
}

fn walk_from_the_last(passed: PassedWays) -> Resolver {
    Box::new(move |root, parts, links, flags| {
        passed.open(root, parts, flags).map_or_else(|| beneath::by_walk(root, parts, links, flags), Ok)
    })
}

fn scratch() -> (TempDir, Dir) {
    let temp = tempfile::tempdir().unwrap();
    let dir = Dir::open_ambient(temp.path()).unwrap();
    (temp, dir)
}

fn put(dir: &Dir, name: &[u8], content: &[u8]) {
    write_all_at(&dir.create_new(name).unwrap(), content, 0).unwrap();
}

/// What a resolver read, or the error's number.
fn read_by(resolver: &Resolver, dir: &Dir, rel: &[u8], links: Links) -> Result<Vec<u8>, i32> {
    let number = |error: io::Error| error.raw_os_error().unwrap();
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = resolver(dir.as_fd(), &components(rel).unwrap(), links, flags).map_err(number)?;
    let mut buffer = vec![0; 64];
    let count = read_full_at(&fd.into(), &mut buffer, 0).map_err(number)?;
    buffer.truncate(count);
    Ok(buffer)
}

#[test]
fn resolvers_give_the_same_answers() {
    let (_temp, outer) = scratch();
    put(&outer, b"secret", b"outside");
    let root = outer.make_dir_all(b"root", Links::Refuse).unwrap();
    let deep = root.make_dir_all(b"a/b/c", Links::Refuse).unwrap();
    put(&root, b"file", b"top");
    put(&deep, b"file", b"deep");
    let links: &[(&[u8], &[u8])] = &[
        (b"file", b"to-file"),
        (b"a/b", b"to-dir"),
        (b"a/b/../../file", b"there-and-back"),
        (b"to-dir/c/file", b"through-link"),
        (b"../secret", b"escape"),
        (b"a/../../secret", b"late-escape"),
        (b"a/../../root/file", b"out-and-in"),
        (b"/etc/passwd", b"absolute"),
        (b"loop", b"loop"),
        (b"pong", b"ping"),
        (b"ping", b"pong"),
        (b"nothing", b"dangling"),
        (b"file/..", b"not-a-dir"),
        (b"a/b/..", b"ends-in-dots"),
    ];
    for (target, name) in links {
        root.symlink(target, name).unwrap();
    }
    deep.symlink(b"../../../file", b"up").unwrap();
    deep.symlink(b"../../../../secret", b"up-and-out").unwrap();

    let (xdev, many) = (libc::EXDEV, libc::ELOOP);
    let (absent, not_dir, is_dir) = (libc::ENOENT, libc::ENOTDIR, libc::EISDIR);
    let top: Answer = Ok(b"top");
    let low: Answer = Ok(b"deep");
    // Path, answer under Refuse, answer under Beneath.
    let table: &[(&[u8], Answer, Answer)] = &[
        (b"file", top, top),
        (b"./a//b/./c/file", low, low),
        (b"", Err(is_dir), Err(is_dir)),
        (b"a/none", Err(absent), Err(absent)),
        (b"file/x", Err(not_dir), Err(not_dir)),
        (b"to-file", Err(many), top),
        (b"to-dir/c/file", Err(many), low),
        (b"there-and-back", Err(many), top),
        (b"through-link", Err(many), low),
        (b"escape", Err(many), Err(xdev)),
        (b"late-escape", Err(many), Err(xdev)),
        (b"out-and-in", Err(many), Err(xdev)),
        (b"absolute", Err(many), Err(xdev)),
        (b"loop", Err(many), Err(many)),
        (b"ping", Err(many), Err(many)),
        (b"dangling", Err(many), Err(absent)),
        (b"not-a-dir", Err(many), Err(not_dir)),
        (b"ends-in-dots", Err(many), Err(is_dir)),
        (b"ends-in-dots/b/c/file", Err(many), low),
        (b"a/b/c/up", Err(many), top),
        (b"a/b/c/up-and-out", Err(many), Err(xdev)),
    ];
    for (name, resolver) in resolvers() {
        for (rel, refuse, beneath) in table {
            for (links, expected) in [(Links::Refuse, refuse), (Links::Beneath, beneath)] {
                let found = read_by(&resolver, &root, rel, links);
                let expected = expected.map(<[u8]>::to_vec);
                let path = String::from_utf8_lossy(rel);
                assert_eq!(found, expected, "{name}: {path} under {links:?}");
            }
        }
    }
}

/// What is kept of a walk counts only as long as its names lead there.
#[test]
fn directory_that_was_passed_is_not_used_when_something_else_has_its_name() {
    let (_temp, outer) = scratch();
    let root = outer.make_dir_all(b"root", Links::Refuse).unwrap();
    put(&root.make_dir_all(b"a/b", Links::Refuse).unwrap(), b"f", b"first");
    put(&root.make_dir_all(b"c/b", Links::Refuse).unwrap(), b"f", b"second");
    let resolver = walk_from_the_last(PassedWays::default());
    let read = |rel: &[u8]| read_by(&resolver, &root, rel, Links::Beneath);
    assert_eq!(read(b"a/b/f"), Ok(b"first".to_vec()));
    // Moved away, and out of the root.
    root.rename(b"a", &outer, b"a").unwrap();
    assert_eq!(read(b"a/b/f"), Err(libc::ENOENT));
    root.rename(b"c", &root, b"a").unwrap();
    assert_eq!(read(b"a/b/f"), Ok(b"second".to_vec()));
    // The same names, each a directory beneath, and the last led astray.
    let inner = root.open_dir(b"a", Links::Refuse).unwrap();
    inner.rename(b"b", &root, b"elsewhere").unwrap();
    inner.symlink(b"../../a/b", b"b").unwrap();
    assert_eq!(read(b"a/b/f"), Err(libc::EXDEV));
    assert_eq!(read_by(&resolver, &root, b"a/b/f", Links::Refuse), Err(libc::ELOOP));
    inner.unlink(b"b").unwrap();
    root.rename(b"elsewhere", &inner, b"b").unwrap();
    assert_eq!(read(b"a/b/f"), Ok(b"second".to_vec()));
}

#[test]
fn looking_tells_the_path_without_links() {
    let (_temp, outer) = scratch();
    put(&outer, b"secret", b"outside");
    let root = outer.make_dir_all(b"root", Links::Refuse).unwrap();
    let deep = root.make_dir_all(b"a/b", Links::Refuse).unwrap();
    put(&deep, b"file", b"deep");
    let links: [(&[u8], &[u8]); 8] = [
        (b"a/b", b"to-dir"),
        (b"to-dir/file", b"to-file"),
        (b"a/b/../none/x", b"dangling"),
        (b"a/b/..", b"ends-in-dots"),
        (b".", b"here"),
        (b"../secret", b"escape"),
        (b"/etc/passwd", b"absolute"),
        (b"loop", b"loop"),
    ];
    for (target, name) in links {
        root.symlink(target, name).unwrap();
    }
    let file = Some(Kind::File);
    type Seen = (Option<Kind>, &'static [u8]);
    let table: [(&[u8], Result<Seen, i32>); 15] = [
        (b"", Ok((Some(Kind::Dir), b""))),
        (b"a/b/file", Ok((file, b"a/b/file"))),
        (b"./a//b/", Ok((Some(Kind::Dir), b"a/b"))),
        (b"to-dir/file", Ok((file, b"a/b/file"))),
        (b"to-file", Ok((file, b"a/b/file"))),
        (b"here/here/to-file", Ok((file, b"a/b/file"))),
        (b"ends-in-dots", Ok((Some(Kind::Dir), b"a"))),
        (b"to-dir/none/deep", Ok((None, b"a/b/none/deep"))),
        (b"none", Ok((None, b"none"))),
        // The link itself is what would be replaced.
        (b"dangling", Ok((None, b"dangling"))),
        (b"here/dangling/y", Ok((None, b"dangling/y"))),
        (b"a/b/file/x", Err(libc::ENOTDIR)),
        (b"escape", Err(libc::EXDEV)),
        (b"absolute", Err(libc::EXDEV)),
        (b"loop", Err(libc::ELOOP)),
    ];
    for (rel, expected) in table {
        let found = root.look(rel).map(|(stat, path)| (stat.map(|stat| stat.kind), path));
        let found = found.map_err(|error| error.raw_os_error().unwrap());
        let path = String::from_utf8_lossy(rel);
        assert_eq!(found, expected.map(|(kind, path)| (kind, path.to_vec())), "{path}");
        if let Ok((Some(_), _)) = found {
            assert_eq!(root.look(rel).unwrap().0, Some(root.stat(rel, Links::Beneath).unwrap()), "{path}");
        }
    }
}

/// Whoever exchanges a directory for a link that leads out, and back, never has the way out named.
#[test]
fn looking_names_nothing_outside_whatever_is_renamed_meanwhile() {
    let (_temp, outer) = scratch();
    outer.make_dir_all(b"outside/inner", Links::Refuse).unwrap();
    let root = outer.make_dir_all(b"root", Links::Refuse).unwrap();
    root.make_dir_all(b"d/inner", Links::Refuse).unwrap();
    root.symlink(b"../outside", b"bait").unwrap();
    if root.exchange(b"d", b"bait").is_err() {
        return;
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    let seen: Vec<_> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                root.exchange(b"d", b"bait").unwrap();
            }
        });
        let seen = (0..5000).map(|_| root.look(b"d/inner").map(|(_, path)| path)).collect();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        seen
    });
    for one in seen {
        match one {
            Ok(path) => assert_eq!(path, b"d/inner"),
            // A link that leads out; or it was a directory, and a link when it was to be opened.
            Err(error) => assert!(is(&error, Errno::XDEV) || is(&error, Errno::NOTDIR), "{error}"),
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn magic_links_lead_nowhere() {
    let proc = Dir::open_ambient(Path::new("/proc/self")).unwrap();
    let (pipe, _write) = rustix::pipe::pipe().unwrap();
    let by_number = format!("fd/{}", std::os::fd::AsRawFd::as_raw_fd(&pipe));
    for (name, resolver) in resolvers() {
        for rel in ["exe", "cwd", "root/etc/passwd", "ns/mnt", &by_number] {
            let found = read_by(&resolver, &proc, rel.as_bytes(), Links::Beneath);
            assert!(found.is_err(), "{name}: {rel}");
        }
    }
}

#[test]
fn paths_of_any_length_and_depth() {
    let (_temp, root) = scratch();
    put(&root, b"top", b"top");
    let many = vec![b"d".as_slice(); 200].join(&b'/');
    let name = [b'n'; 200];
    let long = vec![name.as_slice(); 30].join(&b'/');
    assert!(long.len() > 4096);
    for rel in [many, long] {
        let dir = root.make_dir_all(&rel, Links::Refuse).unwrap();
        put(&dir, b"leaf", b"leaf");
        let depth = components(&rel).unwrap().len();
        let up = [b"../".repeat(depth), b"top".to_vec()].concat();
        dir.symlink(&up, b"up").unwrap();
        dir.symlink(&[b"../", up.as_slice()].concat(), b"out").unwrap();
        let leaf = [rel.as_slice(), b"/leaf"].concat();
        let up = [rel.as_slice(), b"/up"].concat();
        let out = [rel.as_slice(), b"/out"].concat();
        for (_, resolver) in resolvers() {
            let read = |rel, links| read_by(&resolver, &root, rel, links);
            assert_eq!(read(&leaf, Links::Refuse).unwrap(), b"leaf");
            assert_eq!(read(&up, Links::Beneath).unwrap(), b"top");
            assert_eq!(read(&up, Links::Refuse), Err(libc::ELOOP));
            assert_eq!(read(&out, Links::Beneath), Err(libc::EXDEV));
        }
        let stat = root.stat(&leaf, Links::Refuse).unwrap();
        assert_eq!(stat, dir.stat_at(b"leaf").unwrap());
    }
    let endless = [b'x'; 5000];
    let error = root.open_read(&endless, Links::Refuse).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENAMETOOLONG));
}

/// As the system does it, also over paths that it takes in no single call.
#[test]
fn links_lead_anywhere_where_that_is_allowed() {
    let (temp, outer) = scratch();
    put(&outer, b"secret", b"outside");
    let root =
        outer.make_dir_all(b"root/d", Links::Refuse).and_then(|_| outer.open_dir(b"root", Links::Refuse)).unwrap();
    root.symlink(b"../secret", b"up").unwrap();
    root.symlink(temp.path().join("secret").as_os_str().as_encoded_bytes(), b"absolute").unwrap();
    root.symlink(b"none", b"dangling").unwrap();
    root.symlink(b"circle", b"circle").unwrap();
    let open = |rel: &[u8], links| read_by(&(Box::new(beneath::open) as Resolver), &root, rel, links);
    for link in [&b"up"[..], b"absolute"] {
        assert_eq!(open(link, Links::Anywhere).unwrap(), b"outside");
        assert_eq!(open(link, Links::Beneath), Err(libc::EXDEV));
        let reached = root.reach(link, Links::Anywhere).unwrap();
        let secret = outer.stat(b"secret", Links::Refuse).unwrap();
        assert_eq!(stat_file(&reached).unwrap(), secret);
        assert_eq!(root.stat(link, Links::Anywhere).unwrap(), secret);
        assert_eq!(root.reach(link, Links::Beneath).unwrap_err().raw_os_error(), Some(libc::EXDEV));
        assert_eq!(root.reach(link, Links::Refuse).unwrap_err().raw_os_error(), Some(libc::ELOOP));
    }
    assert_eq!(open(b"dangling", Links::Anywhere), Err(libc::ENOENT));
    assert_eq!(open(b"circle", Links::Anywhere), Err(libc::ELOOP));
    let deep = b"d/".repeat(1500);
    root.make_dir_all(&deep, Links::Refuse).unwrap().symlink(b"../d", b"link").unwrap();
    let link = [&deep[..], b"link"].concat();
    assert_eq!(root.reach(&link, Links::Anywhere).and_then(stat_file).unwrap().kind, Kind::Dir);
    assert_eq!(root.pass_dir(&deep, Links::Refuse).unwrap().stat_at(b"link").unwrap().kind, Kind::Symlink);
}

#[test]
fn tree_built_to_waste_time_is_given_up() {
    let (_temp, root) = scratch();
    root.make_dir_all(&b"d/".repeat(100), Links::Refuse).unwrap();
    let zigzag = [b"d/".repeat(100), b"../d/".repeat(700)].concat();
    root.symlink(&zigzag, b"zigzag").unwrap();
    let found = read_by(&(Box::new(beneath::by_walk) as Resolver), &root, b"zigzag", Links::Beneath);
    assert_eq!(found, Err(libc::ELOOP));
}

#[test]
fn names_that_could_mean_something_else_are_refused() {
    let (_temp, dir) = scratch();
    let refused = |result: io::Result<()>| {
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    };
    for rel in [b"..".as_slice(), b"a/../b", b"/etc", b"a\0b", b"a/.."] {
        refused(dir.open_dir(rel, Links::Beneath).map(drop));
        refused(dir.open_read(rel, Links::Beneath).map(drop));
        refused(dir.stat(rel, Links::Beneath).map(drop));
        refused(dir.make_dir_all(rel, Links::Beneath).map(drop));
    }
    let time = FileTime { seconds: 0, nanos: 0 };
    for name in [b"".as_slice(), b".", b"..", b"a/b", b"/", b"a\0b"] {
        refused(dir.create_new(name).map(drop));
        refused(dir.open_write(name).map(drop));
        refused(dir.stat_at(name).map(drop));
        refused(dir.make_dir(name, 0o700));
        refused(dir.rename(name, &dir, b"x"));
        refused(dir.rename(b"x", &dir, name));
        refused(dir.rename_noreplace(name, &dir, b"x"));
        refused(dir.unlink(name));
        refused(dir.remove_dir(name));
        refused(dir.symlink(b"x", name));
        refused(dir.read_link(name).map(drop));
        refused(dir.set_times(name, time));
        refused(dir.set_mode(name, 0o600));
    }
    refused(dir.symlink(b"a\0b", b"link"));
}

#[test]
fn missing_directories_are_made_once() {
    let (_temp, root) = scratch();
    root.make_dir_all(b"a/b", Links::Refuse).unwrap();
    root.make_dir_all(b"./a/b/", Links::Refuse).unwrap();
    assert_eq!(root.stat(b"a/b", Links::Refuse).unwrap().mode, 0o700);
    put(&root, b"file", b"");
    let error = root.make_dir_all(b"file/x", Links::Refuse).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotADirectory);

    root.symlink(b"a", b"link").unwrap();
    let error = root.make_dir_all(b"link/x", Links::Refuse).unwrap_err();
    assert!(is(&error, Errno::LOOP));
    root.make_dir_all(b"link/x", Links::Beneath).unwrap();
    assert_eq!(root.stat(b"a/x", Links::Refuse).unwrap().kind, Kind::Dir);
    // A link that leaves its own directory, but not the root.
    let b = root.open_dir(b"a/b", Links::Refuse).unwrap();
    b.symlink(b"../../a", b"up").unwrap();
    root.make_dir_all(b"a/b/up/y", Links::Beneath).unwrap();
    assert_eq!(root.stat(b"a/y", Links::Refuse).unwrap().kind, Kind::Dir);
    root.symlink(b"nowhere", b"dangling").unwrap();
    let error = root.make_dir_all(b"dangling/x", Links::Beneath);
    assert_eq!(error.unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn stat_follows_only_when_told() {
    let (temp, root) = scratch();
    let dir = root.make_dir_all(b"d", Links::Refuse).unwrap();
    put(&dir, b"file", &[1; 5000]);
    dir.symlink(b"../d/file", b"link").unwrap();
    let file = root.stat(b"d/file", Links::Refuse).unwrap();
    assert_eq!((file.kind, file.size, file.links), (Kind::File, 5000, 1));
    assert_eq!(root.stat(b"d/link", Links::Beneath).unwrap(), file);
    let link = root.stat(b"d/link", Links::Refuse).unwrap();
    assert_eq!(link.kind, Kind::Symlink);
    assert_eq!(dir.stat_at(b"link").unwrap(), link);
    assert_eq!(dir.read_link(b"link").unwrap(), b"../d/file");
    let path = temp.path().join("d/link");
    assert_eq!(stat_path(&path, true).unwrap(), file);
    assert_eq!(stat_path(&path, false).unwrap(), link);
    let own = dir.stat_self().unwrap();
    assert_eq!(root.stat(b"d/", Links::Refuse).unwrap(), own);
    assert_eq!(dir.stat(b"", Links::Refuse).unwrap(), own);
}

#[test]
fn fifo_hangs_nobody() {
    let (_temp, dir) = scratch();
    let mode = mode_bits(0o600);
    rustix::fs::mknodat(&dir, "fifo", rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let fifo = dir.open_read(b"fifo", Links::Refuse).unwrap();
    assert_eq!(stat_file(&fifo).unwrap().kind, Kind::Fifo);
    clear_nonblock(&fifo).unwrap();
    let flags = rustix::fs::fcntl_getfl(&fifo).unwrap();
    assert!(!flags.contains(OFlags::NONBLOCK));
    // With a reader there, a writer does not wait either; nor without.
    dir.open_write(b"fifo").unwrap();
    drop(fifo);
    assert_eq!(dir.open_write(b"fifo").unwrap_err().raw_os_error(), Some(crate::errno::ENXIO));
}

#[test]
fn rename_replaces_only_when_told() {
    let (_temp, dir) = scratch();
    type Rename = fn(&Dir, &[u8], &Dir, &[u8]) -> io::Result<()>;
    for rename in [Dir::rename_noreplace as Rename, Dir::rename_by_link] {
        put(&dir, b"old", b"old");
        put(&dir, b"new", b"new");
        let error = rename(&dir, b"old", &dir, b"new").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        rename(&dir, b"new", &dir, b"free").unwrap();
        assert!(dir.stat_at(b"new").is_err());
        dir.rename(b"old", &dir, b"free").unwrap();
        assert_eq!(dir.stat_at(b"free").unwrap().links, 1);
        dir.unlink(b"free").unwrap();
    }
    assert!(dir.create_new(b"x").is_ok() && dir.create_new(b"x").is_err());
}

#[test]
fn metadata_is_set_on_the_entry_itself() {
    let (_temp, dir) = scratch();
    put(&dir, b"file", b"");
    dir.symlink(b"file", b"link").unwrap();
    let before = dir.stat_at(b"file").unwrap();
    let old = FileTime { seconds: -1, nanos: 500_000_000 };
    dir.set_times(b"link", old).unwrap();
    assert_eq!(dir.stat_at(b"link").unwrap().mtime, old);
    type SetMode = fn(&Dir, &[u8], u32) -> io::Result<()>;
    let by_open: SetMode = |dir, name, mode| dir.set_mode_by_open(name, mode_bits(mode));
    for (set_mode, mode) in [(Dir::set_mode as SetMode, 0o4751), (by_open, 0o640)] {
        assert!(set_mode(&dir, b"link", 0o777).is_err());
        assert_eq!(dir.stat_at(b"file").unwrap().mtime, before.mtime);
        set_mode(&dir, b"file", 0o100_000 | mode).unwrap();
        assert_eq!(dir.stat_at(b"file").unwrap().mode, mode);
    }
    dir.make_dir(b"own", 0o700).unwrap();
    let own = dir.open_dir(b"own", Links::Refuse).unwrap();
    own.set_own_mode(0o2751).unwrap();
    own.set_own_times(old).unwrap();
    let found = dir.stat_at(b"own").unwrap();
    assert_eq!((found.mode, found.mtime), (0o2751, old));
    dir.make_dir(b"d", 0o700).unwrap();
    dir.set_mode(b"d", 0o500).unwrap();
    assert_eq!(dir.stat_at(b"d").unwrap().mode, 0o500);
    dir.remove_dir(b"d").unwrap();
}

#[test]
fn listing_by_both_readers_has_every_entry() {
    let (_temp, dir) = scratch();
    let mut names: BTreeSet<Vec<u8>> = (0..5000).map(|n| format!("entry-{n:060}").into_bytes()).collect();
    names.insert(b"not \xff utf-8\n".to_vec());
    for name in &names {
        dir.symlink(b"x", name).unwrap();
    }
    let drain = |next: &mut dyn FnMut(&mut Vec<DirEntry>) -> io::Result<bool>| {
        let mut all = Vec::new();
        let mut batches = 0;
        while next(&mut all).unwrap() {
            batches += 1;
        }
        assert!(batches > 1, "a large directory must not come in one piece");
        assert_eq!(all.len(), names.len());
        let found: BTreeSet<Vec<u8>> = all.iter().map(|entry| entry.name.clone()).collect();
        assert_eq!(found, names);
        all
    };
    let mut entries = dir.entries().unwrap();
    let mut again = dir.entries().unwrap();
    let mut portable = entries::Portable::new(dir.as_fd().try_clone_to_owned().unwrap()).unwrap();
    let one = drain(&mut |out| entries.next_batch(out));
    let two = drain(&mut |out| again.next_batch(out));
    let three = drain(&mut |out| Ok(portable.next_batch(out)?));
    assert_eq!(one, two);
    let sorted = |mut all: Vec<DirEntry>| {
        all.sort();
        all
    };
    let one = sorted(one);
    assert_eq!(one, sorted(three));
    let stat = dir.stat_at(&one[0].name).unwrap();
    assert_eq!(one[0].inode, stat.inode);
    assert!(one[0].kind.is_none_or(|kind| kind == Kind::Symlink));
}

#[test]
fn listing_what_is_gone_or_never_was_a_directory_is_an_error_or_empty() {
    let (_temp, dir) = scratch();
    put(&dir, b"file", b"");
    let file = dir.open_read(b"file", Links::Refuse).unwrap();
    let mut entries = Entries::new(file.into()).unwrap();
    for _ in 0..2 {
        assert!(entries.next_batch(&mut Vec::new()).is_err());
    }
    let empty = dir.make_dir_all(b"d", Links::Refuse).unwrap();
    let mut out = Vec::new();
    let mut entries = empty.entries().unwrap();
    while entries.next_batch(&mut out).unwrap() {}
    assert!(out.is_empty());
}

#[test]
fn file_system_answers() {
    let (_temp, dir) = scratch();
    dir.sync().unwrap();
    dir.sync_filesystem().unwrap();
    let space = dir.try_clone().unwrap().free_space().unwrap();
    assert!(space.bytes_available > 0 && space.inodes_available > 0);
}

#[cfg(not(carrack_portable))]
#[test]
fn names_are_exchanged_or_nothing_happens() {
    let (_temp, dir) = scratch();
    put(&dir, b"one", b"1");
    put(&dir, b"two", b"2");
    let content = |name: &[u8]| {
        let mut buffer = [0; 1];
        read_full_at(&dir.open_existing(name).unwrap(), &mut buffer, 0).unwrap();
        buffer[0]
    };
    match dir.exchange(b"one", b"two") {
        Ok(()) => assert_eq!((content(b"one"), content(b"two")), (b'2', b'1')),
        Err(error) => {
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
            assert_eq!((content(b"one"), content(b"two")), (b'1', b'2'));
        }
    }
    assert_eq!(dir.exchange(b"one", b"three").unwrap_err().kind(), io::ErrorKind::NotFound);
    dir.symlink(b"one", b"link").unwrap();
    assert!(dir.open_existing(b"link").is_err());
}
