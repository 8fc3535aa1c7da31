//! Each mutation stands where it says.

use super::*;

#[test]
fn mutations_still_find_their_place() {
    for mutation in MUTATIONS.iter().copied().flatten() {
        let text = read(&crate::root().join(mutation.file)).unwrap();
        let changed = mutated(mutation, &text).unwrap();
        assert_ne!(changed, text, "{}", mutation.name);
    }
}

#[test]
fn place_that_is_gone_or_doubled_is_an_error() {
    let one = mutation("x", "f", ["a", "b"], CORE);
    assert_eq!(mutated(&one, "-a-").unwrap(), "-b-");
    assert!(mutated(&one, "").is_err() && mutated(&one, "aa").is_err());
}
