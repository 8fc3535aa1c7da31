//! Whether a source and its target may be one, or lie in each other, beside what their paths and inodes say.

use carrack_core::path::within;
use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_core::request::CopyOptions;
use carrack_core::selection::place;
use carrack_core::wire::control::{PathFacts, SourceSpec};

use crate::error::failure;

/// Two hosts may have mounted one directory: what is the same there is the only one, and is not deleted.
///
/// # Errors
/// That it may be so, of a copy that deletes its sources, or whose sources are deleted afterwards.
pub fn check_not_one(options: &CopyOptions, facts: &PathFacts, at_target: &PathFacts) -> Result<(), Failure> {
    let is_known = facts.kind.is_some() && facts.inode != 0 && facts.file_system.is_some();
    let is_one =
        (facts.kind, facts.file_system, facts.inode) == (at_target.kind, at_target.file_system, at_target.inode);
    if (options.remove_sources || options.moves) && is_known && is_one {
        let why = "source and target may be one, on a file system that is mounted at both hosts: nothing was copied or \
                   deleted";
        return Err(failure(ErrorCode::SameFile, Side::Command, why));
    }
    Ok(())
}

/// Whether a target lies below a source, and outside all that was chosen of it.
pub fn is_beside_chosen(options: &CopyOptions, source: &SourceSpec, resolved: &[u8], target: &[u8]) -> bool {
    let directory = resolved.strip_suffix(b"/").unwrap_or(resolved);
    let below = target.strip_prefix(directory).and_then(|rest| rest.strip_prefix(b"/"));
    let only = options.only.as_ref().filter(|_| !options.remove_sources);
    let (Some(only), Some(below)) = (only, below) else { return false };
    let below = place(&source.target, below);
    !only.iter().any(|chosen| within(&below, chosen).is_some())
}

#[cfg(test)]
mod tests {
    use carrack_core::wire::control::Origin;

    use super::*;

    #[test]
    fn target_may_lie_beside_what_was_chosen_of_a_source() {
        let chosen = |only: Option<&[&str]>, of: &str, resolved: &str, target: &str| {
            let only = only.map(|only| only.iter().map(|path| path.as_bytes().to_vec()).collect::<Vec<_>>());
            let source = SourceSpec { origin: Origin::Path(Vec::new()), target: of.as_bytes().to_vec() };
            is_beside_chosen(
                &CopyOptions { only, ..CopyOptions::default() },
                &source,
                resolved.as_bytes(),
                target.as_bytes(),
            )
        };
        for (only, resolved, target, is_beside) in [
            (&["a/b"][..], "/x", "/x/dst", true),
            (&["a/b"], "/x", "/x/a", true),
            (&["a/b"], "/", "/a/bc", true),
            (&["a/b"], "/x", "/x/a/b", false),
            (&["a/b", "c"], "/x", "/x/c/d", false),
            (&["a/b"], "/", "/a/b/c", false),
            // It is the source, or elsewhere.
            (&["a/b"], "/x", "/x", false),
            (&["a/b"], "/x", "/xy/z", false),
        ] {
            assert_eq!(chosen(Some(only), "", resolved, target), is_beside, "{only:?} {resolved} {target}");
        }
        assert!(!chosen(None, "", "/x", "/x/dst"), "all of it is chosen");
        assert!(chosen(Some(&["s/a"]), "s", "/x/s", "/x/s/b") && !chosen(Some(&["s/a"]), "s", "/x/s", "/x/s/a/b"));
    }
}
