//! Pairs of one task that may write the same names: one pair would replace what another has brought, and of a move the
//! source of that is gone by then.

use crate::model::{Pair, TaskKind};

/// Two pairs, by their numbers, and the name that both may write; `None` where no two do, as far as their paths tell.
/// A copy may bring the contents of several directories into one: there only single names count.
pub(super) fn clash(kind: TaskKind, pairs: &[Pair]) -> Option<([usize; 2], String)> {
    let mut targets: Vec<(Vec<&str>, usize)> = Vec::new();
    for (number, pair) in pairs.iter().enumerate() {
        let Some(destination) = pair.destination.as_deref().filter(|text| *text != "null:") else { continue };
        let source = without_pin(&pair.source);
        let name = source.rsplit('/').next().filter(|name| !name.is_empty());
        let is_into = without_pin(destination).ends_with('/');
        let below = |name| [names(destination), vec![name]].concat();
        match (kind, name) {
            // Which of the two depends on whether a directory is there.
            (TaskKind::Move, Some(name)) if !is_into => {
                targets.extend([(names(destination), number), (below(name), number)]);
            }
            (TaskKind::Copy | TaskKind::Move, Some(name)) => targets.push((below(name), number)),
            (TaskKind::Move, None) => targets.push((names(destination), number)),
            _ => {}
        }
    }
    targets.sort_unstable();
    // What lies below something follows it at once.
    let mut above: Vec<&(Vec<&str>, usize)> = Vec::new();
    for target in &targets {
        above.retain(|held| target.0.starts_with(&held.0));
        let is_met = |held: &&&(Vec<&str>, usize)| {
            held.1 != target.1 && (kind == TaskKind::Move || held.0.len() == target.0.len())
        };
        if let Some(held) = above.iter().find(is_met) {
            return Some(([held.1.min(target.1), held.1.max(target.1)], target.0.join("/")));
        }
        above.push(target);
    }
    None
}

/// Without the key of a node, which is no part of a path.
fn without_pin(place: &str) -> &str {
    let pinned = place.starts_with("carrack://").then(|| place.split_once('#')).flatten();
    pinned.map_or(place, |(place, _)| place)
}

/// The names of a place: two ways to write it give the same.
fn names(place: &str) -> Vec<&str> {
    without_pin(place).split('/').filter(|name| !name.is_empty() && *name != ".").collect()
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
            (&[("@a:/x", "carrack://h/d/#sha256:1"), ("/y/x", "carrack://h/d/")], true, true),
            (&[("/a#1", "/d/"), ("/a#2", "/d/")], false, false),
            // A time in a name.
            (&[("@a:/x/28T10:00", "@b:/all/"), ("@a:/x/29T10:00", "@b:/all/")], false, false),
            (&[("@a:/x", "null:"), ("@a:/x", "null:")], false, false),
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
}
