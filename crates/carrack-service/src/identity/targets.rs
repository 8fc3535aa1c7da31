//! Pairs of one task that may write the same names: one pair would replace what another has brought, and of a move the
//! source of that is gone by then. Names are compared decoded, and of a move without regard to case: a file system may
//! take upper and lower case for one.

use carrack_core::location::Location;
use carrack_core::path::display_bytes;
use carrack_core::unicode::fold_case;

use crate::model::{Pair, TaskKind};

/// A name that a pair may write.
struct Target {
    /// Its place, and the names of its path, as they are compared.
    names: Vec<Vec<u8>>,
    /// The same as they were submitted.
    told: Vec<Vec<u8>>,
    /// The pair's number.
    pair: usize,
}

/// Two pairs, by their numbers, and the name that both may write, in words; `None` where no two do, as far as their
/// paths tell. A copy may bring the contents of several directories into one: there only single names count. What
/// cannot be read as a location is left out, and refused by others.
pub(super) fn clash(kind: TaskKind, pairs: &[Pair]) -> Option<([usize; 2], String)> {
    let is_move = kind == TaskKind::Move;
    let mut targets = Vec::new();
    for (pair, Pair { source, destination }) in pairs.iter().enumerate() {
        let parsed =
            destination.as_deref().map(|text| (Location::parse_document(source), Location::parse_document(text)));
        let Some((Ok(source), Ok(destination))) = parsed else { continue };
        let Some(path) = destination.path() else { continue };
        let into = names(&destination, path);
        let below = |name: &Vec<u8>| [&into[..], std::slice::from_ref(name)].concat();
        let name = name_of(&source);
        let written = match (kind, &name) {
            // Which of the two depends on whether a directory is there.
            (TaskKind::Move, Some(name)) if !path.ends_with(b"/") => vec![below(name), into],
            (TaskKind::Copy | TaskKind::Move, Some(name)) => vec![below(name)],
            (TaskKind::Move, None) => vec![into],
            _ => Vec::new(),
        };
        targets.extend(written.into_iter().map(|told| {
            let mut names = told.clone();
            // The first is the place: names of endpoints are no file system's.
            names.iter_mut().skip(1).filter(|_| is_move).for_each(|name| *name = fold_case(name));
            Target { names, told, pair }
        }));
    }
    targets.sort_unstable_by(|one, other| (&one.names, one.pair).cmp(&(&other.names, other.pair)));
    // What lies below something follows it at once.
    let mut above: Vec<&Target> = Vec::new();
    for target in &targets {
        above.retain(|held| target.names.starts_with(&held.names));
        let is_met = |held: &&&Target| held.pair != target.pair && (is_move || held.names.len() == target.names.len());
        if let Some(held) = above.iter().find(is_met) {
            let by_case = !target.told.starts_with(&held.told);
            let case =
                if by_case { ", where upper and lower case are one (submit two tasks where they are not)" } else { "" };
            let told = format!("{}{case}", display_bytes(&target.told.join(&b'/')));
            return Some(([held.pair.min(target.pair), held.pair.max(target.pair)], told));
        }
        above.push(target);
    }
    None
}

/// What a source is called at its destination, by the engine's rule; `None` where its contents are meant.
fn name_of(source: &Location) -> Option<Vec<u8>> {
    let path = match source {
        Location::Zero(_) => &b"zero"[..],
        Location::Random(_) => &b"random"[..],
        other => other.path()?,
    };
    let name = path.rsplit(|&byte| byte == b'/').next()?;
    (!matches!(name, b"" | b"." | b".." | b"~")).then(|| name.to_vec())
}

/// A place, and the names of a path there: two ways to write it give the same.
fn names(location: &Location, path: &[u8]) -> Vec<Vec<u8>> {
    let place = match location {
        // A key is no part of a place, and the case of a host's name means nothing.
        Location::Node { node, .. } => format!("carrack://{}:{}", node.host.to_ascii_lowercase(), node.port),
        Location::Ssh { host, .. } if path.starts_with(b"/") => format!("ssh://{host}"),
        Location::Ssh { host, .. } => format!("ssh://{host}/~"),
        Location::Endpoint { name, .. } => format!("@{name}:"),
        _ => String::new(),
    };
    let mut names = vec![place.into_bytes()];
    for name in path.split(|&byte| byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => names.truncate(1.max(names.len() - 1)),
            b"~" if names.len() == 1 && !path.starts_with(b"/") => {}
            name => names.push(name.to_vec()),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(kind: TaskKind, pairs: &[(&str, &str)]) -> Option<[usize; 2]> {
        let pair = |(source, destination): &(&str, &str)| Pair {
            source: (*source).to_owned(),
            destination: Some((*destination).to_owned()),
        };
        clash(kind, &pairs.iter().map(pair).collect::<Vec<_>>()).map(|(numbers, _)| numbers)
    }

    const PINNED: &str = "carrack://h/d/#sha256:abababababababababababababababababababababababababababababababab";

    #[test]
    fn targets_that_are_one_or_lie_in_each_other_are_found() {
        use TaskKind::{Copy, Move};
        for (pairs, of_copy, of_move) in [
            (&[("@a:/run1/out.h5", "@b:/all/"), ("@a:/run2/out.h5", "@b:/all/")][..], true, true),
            (&[("@a:/run1/out.h5", "@b:/all"), ("@a:/run2/out.h5", "@b://all/./")], true, true),
            (&[("@a:/x", "@b:/all/"), ("@a:/y", "@b:/all/")], false, false),
            // Where no directory is there, both become it.
            (&[("@a:/x", "@b:/all"), ("@a:/y", "@b:/all")], false, true),
            // Contents may have the same names.
            (&[("@a:/run1/", "@b:/all/"), ("@a:/run2/", "@b:/all/")], false, true),
            (&[("@a:/run1/", "@b:/all/"), ("@a:/run2", "@b:/all/")], false, true),
            (&[("@a:/run1/", "@b:/all/run2/sub"), ("@a:/run2", "@b:/all/")], false, true),
            (&[("@a:/run1/", "@b:/all/1/"), ("@a:/run2/", "@b:/all/2/")], false, false),
            (&[("@a:/run1/", "@b:/all/1/"), ("@a:/run2/", "@b:/all/10/")], false, false),
            (&[("@a:/x", "@b:/all/"), ("@a:/x", "@c:/all/")], false, false),
            (&[("@a:/x", PINNED), ("/y/x", "carrack://h/d/")], true, true),
            (&[("@a:/x", "carrack://H:7420/d/"), ("/y/x", "carrack://h/d/")], true, true),
            // A byte that is written otherwise.
            (&[("/one/x", "@b:/out/"), ("/two/%78", "@b:/out/")], true, true),
            (&[("/one/x", "@b:/out/"), ("/two/x", "@b:/%6Fut/")], true, true),
            (&[("/one/%2578", "@b:/out/"), ("/two/x", "@b:/out/")], false, false),
            (&[("/one/x", "/out/"), ("/two/x", "/in/../out/./")], true, true),
            (&[("/one/x", "ssh://h/~/out/"), ("/two/x", "ssh://h/~/out")], true, true),
            (&[("/one/x", "ssh://h/~/out/"), ("/two/x", "ssh://h/%7E/out/")], false, false),
            // Some file systems take them for one.
            (&[("/one/x", "@b:/out/"), ("/two/X", "@b:/out/")], false, true),
            (&[("/one/x", "@b:/out/"), ("/two/x", "@b:/OUT/")], false, true),
            (&[("/one/%C3%A9", "@b:/out/"), ("/two/É", "@b:/out/")], false, true),
            (&[("/one/x", "@b:/out/"), ("/two/x", "@B:/out/")], false, false),
            // What is no location is refused by others.
            (&[("/one/x", "@b:/out/"), ("/two/x", "out/")], false, false),
            (&[("/a%231", "/d/"), ("/a%232", "/d/")], false, false),
            // A time in a name.
            (&[("@a:/x/28T10:00", "@b:/all/"), ("@a:/x/29T10:00", "@b:/all/")], false, false),
            (&[("@a:/x", "null:"), ("@a:/x", "null:")], false, false),
            (&[("zero:1", "/d/"), ("zero:2", "/d/")], true, true),
        ] {
            assert_eq!((met(Copy, pairs).is_some(), met(Move, pairs).is_some()), (of_copy, of_move), "{pairs:?}");
        }
        let many: Vec<_> = (0..5).map(|number| (format!("@a:/{number}"), "@b:/all/")).collect();
        let mut many: Vec<(&str, &str)> = many.iter().map(|(source, to)| (source.as_str(), *to)).collect();
        assert_eq!(met(Move, &many), None);
        many.push(("@a:/deep/3", "@b:/all/"));
        assert_eq!(met(Move, &many), Some([3, 5]));
        assert_eq!(met(TaskKind::Check, &many), None);
    }
    #[test]
    fn name_that_both_may_become_is_told() {
        let pairs = |source: &str| {
            let pair = |source: &str| Pair { source: source.to_owned(), destination: Some("@b:/out/".to_owned()) };
            vec![pair("/one/x y"), pair(source)]
        };
        let told = |source: &str| clash(TaskKind::Move, &pairs(source)).map(|(_, told)| told).unwrap();
        assert_eq!(told("/two/x%20y"), "@b:/out/x y");
        assert_eq!(
            told("/two/X y"),
            "@b:/out/X y, where upper and lower case are one (submit two tasks where they are not)"
        );
    }
}
