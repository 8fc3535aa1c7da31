//! Each mutation stands where it says.

use super::*;

#[test]
fn mutations_still_find_their_place() {
    let check = |mutation: &Mutation| {
        let text = read(&crate::root().join(mutation.file))?;
        mutated(mutation, &text).map(|changed| assert_ne!(changed, text, "{}", mutation.name))
    };
    let gone: Vec<String> = MUTATIONS.iter().copied().flatten().filter_map(|one| check(one).err()).collect();
    assert!(gone.is_empty(), "{}", gone.join("\n"));
}

#[test]
fn place_that_is_gone_or_doubled_is_an_error() {
    let one = mutation("x", "f", ["a", "b"], CORE);
    assert_eq!(mutated(&one, "-a-").unwrap(), "-b-");
    assert!(mutated(&one, "").is_err() && mutated(&one, "aa").is_err());
}
