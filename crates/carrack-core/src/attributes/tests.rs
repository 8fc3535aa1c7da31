//! Attributes: what is kept of them, lacks, and travels.

use super::*;

fn of(kinds: &[u16]) -> Vec<Attribute> {
    kinds.iter().map(|&kind| Attribute { kind: AttributeKind(kind), value: Box::from(&b"v"[..]) }).collect()
}

#[test]
fn attributes_of_one_item_have_each_kind_once_and_in_order() {
    for kinds in [&[][..], &[1], &[1, 2, u16::MAX]] {
        assert!(OtherAttributes::new(of(kinds)).is_ok(), "{kinds:?}");
    }
    for kinds in [&[0][..], &[0, 1], &[1, 1], &[2, 1], &[1, 2, 2]] {
        assert_eq!(OtherAttributes::new(of(kinds)), Err(AttributesError::Order), "{kinds:?}");
    }
}

#[test]
fn attributes_without_others_are_those_that_are_missing_or_differ() {
    let one = OtherAttributes::new(of(&[1, 2, 3])).unwrap();
    let mut changed = of(&[2, 3, 4]);
    changed[1].value = Box::from(&b"w"[..]);
    let left = one.without(&OtherAttributes::new(changed).unwrap());
    assert_eq!(left, OtherAttributes::new(of(&[1, 3])).unwrap());
    assert!(one.without(&one).is_empty());
}

#[test]
fn attributes_that_a_copy_shows_are_kept_and_all_others_are_not() {
    let of = |list| OtherAttributes::new(list).unwrap();
    let full = of(vec![
        Attribute::number(AttributeKind::OWNER, 1000),
        Attribute::number(AttributeKind::GROUP, 100),
        Attribute::special_bits(0o6755),
        Attribute::present(AttributeKind::HARD_LINK),
        Attribute::present(AttributeKind::ACL),
    ]);
    let none = OtherAttributes::default();
    let unkept =
        |owner, group, mode| full.not_kept(&CopyFacts { owner, group, mode }, &none).map(|kind| kind.0).collect();
    let (all, all_but_shown): (Vec<u16>, Vec<u16>) = (unkept(0, 0, 0o755), unkept(1000, 100, 0o7755));
    assert_eq!((all, all_but_shown), (vec![1, 2, 3, 4, 5], vec![4, 5]));
    // One of two bits is not both; an owner's number is no group's.
    let some: [Vec<u16>; 2] = [unkept(1000, 100, 0o4755), unkept(100, 1000, 0o6755)];
    assert_eq!(some, [vec![3, 4, 5], vec![1, 2, 4, 5]]);
}

#[test]
fn values_of_no_known_form_are_not_kept() {
    let shown = CopyFacts { owner: 0, group: 0, mode: 0o7777 };
    for kind in 1..=7 {
        for value in [&[][..], &[0], &[0; 3], &[0; 5], &[0xff; 4]] {
            let one = vec![Attribute { kind: AttributeKind(kind), value: Box::from(value) }];
            let unkept = OtherAttributes::new(one).unwrap().not_kept(&shown, &OtherAttributes::default()).count();
            // A copy with all special bits has the ones that a byte of 0 names; one without extended attributes has
            // all of none.
            let is_kept = matches!(kind, 3 | 7) && value == [0];
            assert_eq!(unkept == 0, is_kept, "{kind} {value:?}");
        }
    }
}

fn listed(lists: Option<AccessLists>, values: &[(&str, &str)], are_cut: bool) -> OtherAttributes {
    let values = values.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect();
    let values = ExtendedAttributes { values, has_others: false, are_cut };
    let values = (!values.are_none()).then(|| values.attribute(1000));
    OtherAttributes::new(lists.map(|lists| lists.attribute()).into_iter().chain(values).collect()).unwrap()
}

fn of_user(id: u32, name: &str) -> AccessLists {
    let named = AccessEntry { name: name.into(), ..AccessEntry::new(Who::User(id), 6) };
    AccessLists { access: vec![AccessEntry::new(Who::Owner, 7), named], default: Vec::new() }
}

#[test]
fn lists_and_values_are_kept_where_the_copy_has_the_same() {
    let shown = CopyFacts { owner: 0, group: 0, mode: 0 };
    let wanted = listed(Some(of_user(7, "")), &[("user.a", "1")], false);
    let unkept = |wanted: &OtherAttributes, has: &OtherAttributes| -> Vec<u16> {
        wanted.not_kept(&shown, has).map(|kind| kind.0).collect()
    };
    assert!(unkept(&wanted, &wanted).is_empty());
    assert_eq!(unkept(&wanted, &OtherAttributes::default()), [5, 7]);
    assert_eq!(unkept(&wanted, &listed(Some(of_user(8, "")), &[("user.a", "1")], true)), [5]);
    // Others of the item that came with nothing are not kept.
    let cut = listed(None, &[("user.a", "1")], true);
    assert_eq!(unkept(&cut, &cut), [7]);
}

#[test]
fn item_lacks_what_differs_of_what_is_kept_and_is_known() {
    let all = KeptAttributes::ALL;
    let (none, some) = (OtherAttributes::default(), listed(Some(of_user(7, "")), &[("user.a", "1")], false));
    let both = Lacks { capabilities: false, ..Lacks::ALL };
    assert_eq!((none.lacks(&some, all), some.lacks(&none, all)), (both, both));
    assert!(!some.lacks(&some, all).any() && !none.lacks(&some, KeptAttributes::NONE).any());
    let other = listed(Some(of_user(7, "")), &[("user.a", "2")], false);
    assert_eq!(other.lacks(&some, all), Lacks { xattrs: true, ..Lacks::default() });
    let unknown = [AttributeKind::ACL, AttributeKind::CAPABILITIES, AttributeKind::EXTENDED];
    let unknown = OtherAttributes::new(unknown.map(Attribute::present).to_vec()).unwrap();
    assert!(!some.lacks(&unknown, all).any());
    // Of what is not all known only what is known counts.
    let more = listed(Some(of_user(7, "")), &[("user.a", "1"), ("user.b", "2")], false);
    let cut = listed(Some(of_user(7, "")), &[("user.a", "1")], true);
    assert!(!more.lacks(&cut, all).any() && more.lacks(&some, all).any() && none.lacks(&cut, all).xattrs);
    // A label that the source does not have is left; another one is not.
    let labelled = |label| listed(Some(of_user(7, "")), &[("security.selinux", label), ("user.a", "1")], false);
    assert!(!labelled("x").lacks(&some, all).any() && some.lacks(&labelled("x"), all).xattrs);
    assert!(labelled("y").lacks(&labelled("x"), all).xattrs && !labelled("x").lacks(&labelled("x"), all).any());
    // What is not kept here is not missed.
    let root = listed(None, &[("trusted.a", "1")], false);
    let users = KeptAttributes { trusted_xattrs: false, ..all };
    assert!(none.lacks(&root, all).xattrs && !none.lacks(&root, users).any());
}

#[test]
fn numbers_of_lists_become_those_of_this_host_and_come_in_order() {
    let here = |lists: AccessLists| {
        let told = listed(Some(lists), &[], false);
        told.with_numbers(false, |_, id, name| if name == b"ann" { 1 } else { id }).access_lists().unwrap().access
    };
    assert_eq!(here(of_user(7, "ann")), of_user(1, "").access);
    assert_eq!(here(of_user(7, "")), of_user(7, "").access);
    let garbled = vec![Attribute { kind: AttributeKind::ACL, value: Box::new([1]) }];
    let garbled = OtherAttributes::new(garbled).unwrap().with_numbers(false, |_, id, _| id);
    assert_eq!(garbled.of_kind(AttributeKind::ACL), Some(&Attribute::present(AttributeKind::ACL)));
}

#[test]
fn attributes_of_one_item_are_bounded_in_number_and_bytes() {
    let most = limits::ATTRIBUTES as u16;
    assert!(OtherAttributes::new(of(&(1..=most).collect::<Vec<_>>())).is_ok());
    assert_eq!(OtherAttributes::new(of(&(1..=most + 1).collect::<Vec<_>>())), Err(AttributesError::TooMany));
    let long = |length: usize| vec![Attribute { kind: AttributeKind(1), value: vec![0; length].into() }];
    let most = limits::ATTRIBUTE_BYTES - OtherAttributes::HEAD_BYTES;
    assert_eq!(OtherAttributes::new(long(most)).map(|fits| fits.encoded_bytes()), Ok(limits::ATTRIBUTE_BYTES));
    assert_eq!(OtherAttributes::new(long(most + 1)), Err(AttributesError::TooLong));
}

#[test]
fn owners_are_told_by_number_and_name() {
    let told = |attribute: Attribute| OtherAttributes::new(vec![attribute]).unwrap();
    let named = told(Attribute::named(AttributeKind::OWNER, 1000, b"ann"));
    assert_eq!((named.number(AttributeKind::OWNER), named.number(AttributeKind::GROUP)), (Some(1000), None));
    let here = named.clone().with_numbers(false, |kind, id, name| {
        assert_eq!((kind, id, name), (AttributeKind::OWNER, 1000, &b"ann"[..]));
        7
    });
    assert_eq!(here, told(Attribute::number(AttributeKind::OWNER, 7)));
    assert_eq!(here.clone().with_numbers(false, |_, _, _| panic!("it has no name")), here);
    let nameless = here.clone().with_numbers(true, |_, id, name| id + u32::from(name.is_empty()));
    assert_eq!(nameless, told(Attribute::number(AttributeKind::OWNER, 8)));
    let short = told(Attribute { kind: AttributeKind::OWNER, value: Box::from(&b"abc"[..]) });
    assert_eq!((short.number(AttributeKind::OWNER), short.clone().with_numbers(false, |_, _, _| 1)), (None, short));
    let strange = told(Attribute { kind: AttributeKind(99), value: Box::from(&b"longer"[..]) });
    assert_eq!(strange.clone().with_numbers(false, |_, _, _| 1), strange);
    let kept = KeptAttributes { owner: true, ..KeptAttributes::default() };
    assert_eq!((named.kept(kept), strange.kept(kept)), (named.clone(), OtherAttributes::default()));
    assert!(named.kept(KeptAttributes::default()).is_empty());
}

#[test]
fn times_before_others() {
    let age = |seconds, nanos| Duration::new(seconds, nanos);
    assert_eq!(Time::new(10, 5).before(age(3, 5)), Time::new(7, 0));
    assert_eq!(Time::new(10, 5).before(age(3, 6)), Time::new(6, 999_999_999));
    assert_eq!(Time::new(0, 0).before(age(1, 1)), Time::new(-2, 999_999_999));
    assert_eq!(Time::new(i64::MIN, 0).before(age(0, 1)), Time::new(i64::MIN, 0));
    assert_eq!(Time::new(-9, 0).before(Duration::MAX), Time::new(i64::MIN, 0));
}
