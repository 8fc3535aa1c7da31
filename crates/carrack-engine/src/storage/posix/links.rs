//! Following the symbolic links of a source, where that was asked for.
//!
//! Whatever is followed is opened by its path from a directory that links may not lead out of, in one resolution: of
//! nothing it is looked first where it leads, and opened then. So a link that is exchanged meanwhile leads to something
//! else within these bounds, or nowhere.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use carrack_core::attributes::OtherAttributes;
use carrack_core::filter::SourceLinks;
use carrack_core::path::{display_bytes, join, split_name};
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::selection::place;
use carrack_sys::dir::{Dir, Kind, Links, Stat, stat_file, stat_file_uncached};
use carrack_sys::errno::{ELOOP, EXDEV};

use super::descriptors::patiently;
use super::extended::Holder;
use super::telling::Telling;
use crate::error::{code_of, failure, io_failure};
use crate::storage::read::Freshness;

/// Where links that are followed may lead.
#[derive(Debug, Default)]
pub enum LinkBounds {
    /// To what is below the source.
    #[default]
    Source,
    /// To what is below this directory, in which the source has this path.
    Below(Arc<Dir>, Vec<u8>),
    /// Wherever this process may read.
    Anywhere,
}

/// What becomes of the links of a source.
#[derive(Debug, Default)]
pub struct Following {
    links: SourceLinks,
    /// Where the source goes: its links stand below that.
    target: Vec<u8>,
    bounds: LinkBounds,
}

impl From<LinkBounds> for Following {
    /// Every link is copied as one, until something else is asked for.
    fn from(bounds: LinkBounds) -> Self {
        Self { bounds, ..Self::default() }
    }
}

/// What an entry of a directory is.
pub struct SeenEntry {
    /// Of a link that is followed, what it leads to.
    pub stat: Stat,
    /// What a link leads to that is followed, opened to be looked at.
    pub reached: Option<OwnedFd>,
}

/// Why nothing is known of an entry.
pub enum Unseen {
    /// It cannot be looked at.
    Entry(io::Error),
    /// It is a link that is to be followed, and leads to nothing that may be read.
    Link(Failure),
}

impl From<io::Error> for Unseen {
    fn from(error: io::Error) -> Self {
        Self::Entry(error)
    }
}

impl Freshness {
    pub(super) fn stat(self, directory: &Dir, name: &[u8], links: Links) -> io::Result<Stat> {
        match self {
            Self::Cached => directory.stat(name, links),
            Self::Stored => directory.stat_uncached(name, links),
        }
    }

    fn stat_open(self, open: &OwnedFd) -> io::Result<Stat> {
        match self {
            Self::Cached => stat_file(open),
            Self::Stored => stat_file_uncached(open),
        }
    }
}

impl Following {
    /// From now on links are treated so; the source goes to `target`.
    pub fn begin(&mut self, links: SourceLinks, target: &[u8]) {
        self.links = links;
        self.target = target.to_vec();
    }

    /// Whether any link is followed.
    pub fn follows(&self) -> bool {
        self.links.follows()
    }

    /// Opens something below the source's directory `top`; `open` is given a directory, a path below it, and what links
    /// on that path may do.
    fn below<T>(&self, top: &Dir, path: &[u8], open: impl Fn(&Dir, &[u8], Links) -> io::Result<T>) -> io::Result<T> {
        match &self.bounds {
            _ if !self.follows() => open(top, path, Links::Refuse),
            LinkBounds::Source => open(top, path, Links::Beneath),
            LinkBounds::Anywhere => open(top, path, Links::Anywhere),
            // Most links stay in the source, whose handle leads to it whatever its name has become.
            LinkBounds::Below(outer, way) => match open(top, path, Links::Beneath) {
                Err(error) if error.raw_os_error() == Some(EXDEV) => open(outer, &join(way, path), Links::Beneath),
                opened => opened,
            },
        }
    }

    /// Opens a directory of the source.
    ///
    /// # Errors
    /// Those of the system; `EXDEV` where a link leads out of the bounds.
    pub fn open_dir(&self, top: &Dir, path: &[u8]) -> io::Result<Dir> {
        patiently(|| self.below(top, path, |directory, path, links| directory.open_dir(path, links)))
    }

    /// Opens a directory of the source to look at what is in it by name. It need not be readable.
    ///
    /// # Errors
    /// As [`Following::open_dir`].
    pub fn pass_dir(&self, top: &Dir, path: &[u8]) -> io::Result<Dir> {
        patiently(|| self.below(top, path, |directory, path, links| directory.pass_dir(path, links)))
    }

    /// Opens a file of the source. A link in its place is followed only if such links are.
    ///
    /// # Errors
    /// As [`Following::open_dir`]; `ELOOP` for a link that is copied as one.
    pub fn open_read(&self, top: &Dir, path: &[u8]) -> io::Result<File> {
        let follow = || patiently(|| self.below(top, path, |directory, path, links| directory.open_read(path, links)));
        if self.links == SourceLinks::Follow {
            return follow();
        }
        let (parent, name) = split_name(path);
        let directory = self.pass_dir(top, parent)?;
        match patiently(|| directory.open_read(name, Links::Refuse)) {
            Err(error) if error.raw_os_error() == Some(ELOOP) => match directory.read_link(name) {
                Ok(said) if self.follows_file(path, &said) => follow(),
                _ => Err(error),
            },
            opened => opened,
        }
    }

    fn follows_file(&self, path: &[u8], said: &[u8]) -> bool {
        self.links.follows_file(&place(&self.target, path), said)
    }

    /// What something counts as, which a link leads to; nothing is opened where nothing is written down.
    pub fn reached_shown(&self, top: &Dir, path: &[u8], stat: Stat, telling: &Telling) -> Stat {
        let shown = match stat.kind {
            _ if !telling.is_faked() => return stat,
            Kind::Dir => self.open_dir(top, path).map(|open| telling.shown(stat, Holder::Directory(&open))),
            Kind::File => self.open_read(top, path).map(|open| telling.shown(stat, Holder::File(&open))),
            _ => return stat,
        };
        shown.unwrap_or(stat)
    }

    /// What something has besides, which a link leads to.
    pub fn reached_attributes(&self, top: &Dir, path: &[u8], stat: &Stat, telling: &Telling) -> OtherAttributes {
        match stat.kind {
            Kind::Dir => self.open_dir(top, path).map(|directory| telling.of(stat, Holder::Directory(&directory))),
            _ => self.open_read(top, path).map(|file| telling.of(stat, Holder::File(&file))),
        }
        .unwrap_or_else(|_| telling.of_unreadable(stat))
    }

    /// Looks at what is at a path.
    ///
    /// # Errors
    /// Every [`Unseen`].
    pub fn at(&self, top: &Dir, path: &[u8]) -> Result<SeenEntry, Unseen> {
        if path.is_empty() || !self.follows() {
            return Ok(SeenEntry { stat: top.stat(path, Links::Refuse)?, reached: None });
        }
        let (parent, name) = split_name(path);
        self.entry(top, (&self.pass_dir(top, parent)?, parent), name, Freshness::Cached)
    }

    /// Looks at an entry of an open directory, which has this path in the source.
    ///
    /// # Errors
    /// Every [`Unseen`].
    pub fn entry(
        &self,
        top: &Dir,
        (directory, path): (&Dir, &[u8]),
        name: &[u8],
        freshness: Freshness,
    ) -> Result<SeenEntry, Unseen> {
        let stat = freshness.stat(directory, name, Links::Refuse)?;
        let itself = SeenEntry { stat, reached: None };
        if stat.kind != Kind::Symlink || !self.follows() {
            return Ok(itself);
        }
        let (said, path) = (directory.read_link(name)?, &join(path, name)[..]);
        let is_for_directories = self.links == SourceLinks::FollowDirectories;
        if !is_for_directories && !self.follows_file(path, &said) {
            return Ok(itself);
        }
        let reached = patiently(|| self.below(top, path, |directory, path, links| directory.reach(path, links)));
        match reached.and_then(|open| Ok((freshness.stat_open(&open)?, open))) {
            Ok((stat, open)) if !is_for_directories || stat.kind == Kind::Dir => {
                Ok(SeenEntry { stat, reached: Some(open) })
            }
            Ok(_) => Ok(itself),
            // What it leads to is no directory. Of what lies outside nobody may know.
            Err(error) if is_for_directories && code_of(&error) != ErrorCode::OutsideRoot => Ok(itself),
            Err(error) => Err(Unseen::Link(leads_astray(&said, &error))),
        }
    }
}

/// Why a link that says this is not followed.
fn leads_astray(said: &[u8], error: &io::Error) -> Failure {
    let shown = display_bytes(said);
    let told = |code, why: String| failure(code, Side::Source, why);
    match code_of(error) {
        code @ (ErrorCode::NotFound | ErrorCode::NotADirectory) => {
            told(code, format!("is a symbolic link to {shown}, where nothing is"))
        }
        code @ ErrorCode::OutsideRoot => {
            told(code, format!("is a symbolic link to {shown}, which leads outside what is served: it is not followed"))
        }
        code @ ErrorCode::SymlinkRefused => {
            told(code, format!("is a symbolic link to {shown}, which leads in a circle or over too many links"))
        }
        _ => io_failure(Side::Source, format!("follow the symbolic link to {shown}"), error),
    }
}

/// A directory that links lead to and that stands above the one with the link.
pub fn leads_round() -> Failure {
    let why = "is a symbolic link to one of the directories that it stands in: it is not followed";
    failure(ErrorCode::SymlinkRefused, Side::Source, why)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    use carrack_core::report::ItemKind;
    use carrack_core::selection::Selection;
    use carrack_core::transfer::ScannedItem;
    use carrack_core::tuning::Tuning;

    use super::super::place::Place;
    use super::super::source::PosixSource;
    use super::*;
    use crate::storage::read::{Found, OpenOptions, Source, There, Walk};

    const CANARY: &str = "nobody may read this";
    const ALL: [SourceLinks; 5] = [
        SourceLinks::Keep,
        SourceLinks::Follow,
        SourceLinks::FollowDirectories,
        SourceLinks::FollowUnsafe,
        SourceLinks::Safe,
    ];

    /// `top/root/src` with links of each kind, and a file beside the root.
    fn grown() -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        let at = |path: &str| top.path().join(path);
        for directory in ["out", "root/beside", "root/src/d/e"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        fs::write(at("out/secret"), CANARY).unwrap();
        fs::write(at("root/beside/b"), "beside").unwrap();
        fs::write(at("root/src/f"), "file").unwrap();
        fs::write(at("root/src/d/g"), "deep").unwrap();
        for (name, leads_to) in [
            ("to-file", "f"),
            ("to-directory", "d"),
            ("chain", "to-directory"),
            ("dangling", "none"),
            ("circle", "circle"),
            ("d/e/round", "../../d"),
            ("beside", "../beside"),
            ("out", "../../out/secret"),
            ("out-directory", "../../out"),
            ("d/inside", "../f"),
        ] {
            symlink(leads_to, at("root/src").join(name)).unwrap();
        }
        symlink(at("out/secret"), at("root/src/absolute")).unwrap();
        top
    }

    fn opened(place: &Place, path: &[u8], links: SourceLinks) -> PosixSource {
        let mut source = PosixSource::open(place, path).unwrap();
        source.follow(links, b"");
        source
    }

    /// What a walk finds, by path: a letter for each kind, or a failure's code.
    fn walked(source: &PosixSource) -> BTreeMap<String, Result<ScannedItem, ErrorCode>> {
        let mut found = BTreeMap::new();
        source.walk(&Walk::plain(0), &mut |one| {
            let (item, result) = match one {
                Found::Item(item) => (item.clone(), Ok(item)),
                Found::Failure(item, why) => (item, Err(why.code)),
                _ => return true,
            };
            let path = String::from_utf8(item.path).unwrap();
            assert!(found.insert(path.clone(), result).is_none(), "{path} was found twice");
            true
        });
        found
    }

    fn told(found: &BTreeMap<String, Result<ScannedItem, ErrorCode>>, path: &str) -> String {
        match found.get(path) {
            None => "absent".to_owned(),
            Some(Ok(item)) => format!("{:?}", item.kind).to_lowercase(),
            Some(Err(code)) => code.name().to_owned(),
        }
    }

    fn read(source: &PosixSource, item: &ScannedItem) -> Result<Vec<u8>, Failure> {
        let options = &mut OpenOptions { tuning: &Tuning::DEFAULT, may_grow: true, rest: &mut |_| true };
        let reader = source.open(item, options)?;
        reader.check_listed(item)?;
        let mut content = Vec::new();
        reader.read_whole(&mut content, 1 << 16).map(|_| content)
    }

    /// Of each rule and place, what becomes of a link; every other method says the same as the walk.
    #[test]
    fn links_are_followed_as_asked_for_and_all_methods_agree() {
        let top = grown();
        let root = top.path().join("root");
        let cases: [(&str, [&str; 5], &str); 13] = [
            ("to-file", ["symlink", "file", "symlink", "symlink", "symlink"], "file"),
            ("to-directory", ["symlink", "directory", "directory", "symlink", "symlink"], "directory"),
            ("to-directory/g", ["absent", "file", "file", "absent", "absent"], "file"),
            ("chain/e", ["absent", "directory", "directory", "absent", "absent"], "directory"),
            ("dangling", ["symlink", "not-found", "symlink", "symlink", "symlink"], "not-found"),
            ("circle", ["symlink", "symlink-refused", "symlink", "symlink", "symlink"], "symlink-refused"),
            ("d/e/round", ["symlink", "symlink-refused", "symlink-refused", "symlink", "symlink"], "symlink-refused"),
            ("d/inside", ["symlink", "file", "symlink", "symlink", "symlink"], "file"),
            ("beside", ["symlink", "directory", "directory", "directory", "symlink"], "directory"),
            ("beside/b", ["absent", "file", "file", "file", "absent"], "file"),
            ("out", ["symlink", "file", "symlink", "file", "symlink"], "outside-root"),
            ("out-directory/secret", ["absent", "file", "file", "file", "absent"], "absent"),
            ("absolute", ["symlink", "file", "symlink", "file", "symlink"], "outside-root"),
        ];
        let anywhere = Place::anywhere();
        let path = root.join("src");
        for (number, links) in ALL.into_iter().enumerate() {
            let source = opened(&anywhere, path.to_str().unwrap().as_bytes(), links);
            let found = walked(&source);
            for (path, expected, _) in &cases {
                assert_eq!(told(&found, path), expected[number], "{links:?} {path}");
            }
            check_agrees(&source, &found);
        }
        let beneath = Place::beneath(&root).unwrap();
        let source = opened(&beneath, b"/src", SourceLinks::Follow);
        let found = walked(&source);
        for (path, _, expected) in &cases {
            assert_eq!(told(&found, path), *expected, "below a root: {path}");
        }
        assert_eq!(told(&found, "out-directory"), "outside-root");
        check_agrees(&source, &found);
        // Nobody knows whether what lies outside is a directory.
        let found = walked(&opened(&beneath, b"/src", SourceLinks::FollowDirectories));
        for (path, expected) in [("out", "outside-root"), ("dangling", "symlink"), ("to-file", "symlink")] {
            assert_eq!(told(&found, path), expected, "{path}");
        }
    }

    fn check_agrees(source: &PosixSource, found: &BTreeMap<String, Result<ScannedItem, ErrorCode>>) {
        for (path, found) in found.iter().filter(|(path, _)| !path.is_empty()) {
            let bytes = path.as_bytes();
            assert!(source.has(&Walk::plain(0), bytes), "{path}: its name is there");
            let there = source.find(bytes).unwrap();
            match found {
                // Whether a directory stands in itself only a walk knows.
                Err(_) => assert!(matches!(there, There::Nothing) || path.ends_with("round"), "{path}"),
                Ok(item) => {
                    let again = source.look_again(item).unwrap();
                    assert_eq!((again.kind, again.size, again.file), (item.kind, item.size, item.file), "{path}");
                    assert_eq!(matches!(there, There::Directory(_)), item.kind == ItemKind::Directory, "{path}");
                    if item.kind == ItemKind::File {
                        assert_eq!(read(source, item).unwrap().len() as u64, item.size.unwrap(), "{path}");
                    }
                }
            }
        }
        for absent in ["none", "dangling/x", "f/x"] {
            assert!(!source.has(&Walk::plain(0), absent.as_bytes()), "{absent}");
        }
    }

    #[test]
    fn links_of_a_grant_lead_nowhere_outside_of_it() {
        let top = grown();
        let root = Arc::new(Dir::open_ambient(&top.path().join("root")).unwrap());
        for (prefix, path, beside) in [("src", "/src", "outside-root"), ("src/d", "/src/d", "absent")] {
            let place = Place::Granted(Arc::clone(&root), prefix.into());
            let found = walked(&opened(&place, path.as_bytes(), SourceLinks::Follow));
            assert_eq!(told(&found, "beside"), beside, "{prefix}");
            let inside = if prefix == "src" { ("d/inside", "file") } else { ("inside", "outside-root") };
            assert_eq!(told(&found, inside.0), inside.1, "{prefix}");
        }
    }

    /// A later session knows it by the file itself, whichever link leads to it; a link that leads to another file is a
    /// source that has changed.
    #[test]
    fn file_behind_a_link_is_known_by_itself() {
        let top = grown();
        let path = top.path().join("root/src");
        let source = opened(&Place::anywhere(), path.to_str().unwrap().as_bytes(), SourceLinks::Follow);
        let found = walked(&source);
        let item = |path: &str| found[path].clone().unwrap();
        assert_eq!(item("f").file, item("to-file").file);
        assert_eq!(item("f").fingerprint, item("to-file").fingerprint);
        let options = &mut OpenOptions { tuning: &Tuning::DEFAULT, may_grow: true, rest: &mut |_| true };
        let state = |item: &ScannedItem, options: &mut OpenOptions<'_>| source.open(item, options).unwrap().state();
        assert_eq!(state(&item("f"), options), state(&item("to-file"), options));
        fs::remove_file(path.join("to-file")).unwrap();
        symlink("d/g", path.join("to-file")).unwrap();
        assert_eq!(read(&source, &item("to-file")).unwrap_err().code, ErrorCode::SourceChanged);
        assert_eq!(read(&source, &source.look_again(&item("to-file")).unwrap()).unwrap(), b"deep");
    }

    /// What is opened is below the root, whatever a link becomes between two looks.
    #[test]
    fn link_that_is_exchanged_meanwhile_leads_to_nothing_outside() {
        let top = grown();
        let src = top.path().join("root/src");
        let place = Place::beneath(&top.path().join("root")).unwrap();
        let source = opened(&place, b"/src", SourceLinks::Follow);
        let turned = |leads_to: &str| {
            symlink(leads_to, src.join("next")).unwrap();
            fs::rename(src.join("next"), src.join("to-directory")).unwrap();
        };
        // Those that are outside have the names of those inside.
        fs::write(top.path().join("out/g"), CANARY).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    turned("../../out");
                    turned("d");
                }
            });
            let (mut inside, mut refused) = (0, 0);
            // The other thread may have to wait for a processor while the link leads out.
            while inside + refused < 2000 || inside == 0 && refused < 1_000_000 {
                let item = Walk::plain(0).item(b"to-directory/g", ItemKind::File);
                match source.look_again(&item).and_then(|item| read(&source, &item)) {
                    Ok(content) if content == b"deep" => inside += 1,
                    Ok(content) => {
                        over.store(true, Ordering::Relaxed);
                        panic!("read {:?}", String::from_utf8(content));
                    }
                    Err(_) => refused += 1,
                }
            }
            over.store(true, Ordering::Relaxed);
            assert!(inside > 0, "{refused} were refused");
        });
    }

    /// The directories above what is wanted are not listed; one that may only be passed through need not be readable.
    #[test]
    fn directories_above_what_is_wanted_are_passed_through() {
        let top = grown();
        let src = top.path().join("root/src");
        let mut selection = Selection::default();
        for path in ["d/e", "to-directory/g", "f", "absent/x"] {
            selection.add(path.into());
        }
        for (links, expected) in [
            (SourceLinks::Keep, &["d", "d/e", "d/e/round", "f"][..]),
            (SourceLinks::FollowDirectories, &["d", "d/e", "f", "to-directory", "to-directory/g"]),
        ] {
            let source = opened(&Place::anywhere(), src.to_str().unwrap().as_bytes(), links);
            let mut found = Vec::new();
            let walk = Walk { selection: Some(&selection), ..Walk::plain(0) };
            source.walk(&walk, &mut |one| {
                if let Found::Item(item) = one {
                    found.push(String::from_utf8(item.path).unwrap());
                }
                true
            });
            found.sort();
            assert_eq!(found, expected, "{links:?}");
        }
        assert_eq!(selection.missing().collect::<Vec<_>>(), [b"absent/x"]);
    }

    #[test]
    fn failure_says_where_a_link_leads() {
        let top = grown();
        let place = Place::beneath(&top.path().join("root")).unwrap();
        let source = opened(&place, b"/src", SourceLinks::Follow);
        let mut told = String::new();
        source.walk(&Walk::plain(0), &mut |found| {
            if let Found::Failure(item, why) = found {
                told += &format!("{}: {}\n", display_bytes(&item.path), why.message());
            }
            true
        });
        for words in [
            "dangling: is a symbolic link to none, where nothing is",
            "out: is a symbolic link to ../../out/secret, which leads outside what is served",
            "d/e/round: is a symbolic link to one of the directories",
            "circle: is a symbolic link to circle, which leads in a circle",
        ] {
            assert!(told.contains(words), "{words}: {told}");
        }
        assert!(!told.contains(CANARY) && Path::new(&top.path().join("out/secret")).exists());
    }
}
