//! Names of many hosts as people write them down: `c[080-101]`, `c[080,082-101]`, `me@a,b`.

use carrack_core::location::SshHost;

/// More hosts than this are a slip of the finger.
const HOSTS_MAX: usize = 4096;

/// Hosts in the order in which they are named; one that is named twice stands once. Names are separated by commas or
/// white space. In brackets stand numbers and ranges, whose zeros are kept: `c[008-011]` is c008, c009, c010 and c011.
///
/// # Errors
/// What is wrong with the text, or with one of the names.
pub fn parse_hosts(text: &str) -> Result<Vec<SshHost>, String> {
    let mut hosts = Vec::new();
    for word in words(text)? {
        for name in expanded(&word, HOSTS_MAX)? {
            let host = SshHost::parse(name.as_bytes())?;
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        if hosts.len() > HOSTS_MAX {
            return Err(too_many());
        }
    }
    if hosts.is_empty() { Err("no host is named".to_owned()) } else { Ok(hosts) }
}

fn too_many() -> String {
    format!("these are more than {HOSTS_MAX} hosts")
}

/// What stands between commas and white space that are not in brackets.
fn words(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut inside) = (Vec::new(), String::new(), false);
    for character in text.chars() {
        match character {
            '[' | ']' if inside == (character == '[') => return Err(format!("{text:?}: the brackets do not fit")),
            '[' | ']' => inside = !inside,
            ',' if !inside => {
                words.push(std::mem::take(&mut word));
                continue;
            }
            _ if character.is_whitespace() && !inside => {
                words.push(std::mem::take(&mut word));
                continue;
            }
            _ => {}
        }
        word.push(character);
    }
    if inside {
        return Err(format!("{text:?}: a bracket is not closed"));
    }
    words.push(word);
    Ok(words.into_iter().filter(|word| !word.is_empty()).collect())
}

/// A word with everything that its brackets stand for, the last bracket counting fastest.
fn expanded(word: &str, most: usize) -> Result<Vec<String>, String> {
    let (before, rest) = match word.split_once('[') {
        // An IPv6 address stands in brackets, too.
        Some((_, rest)) if rest.contains(':') => return Ok(vec![word.to_owned()]),
        Some(parts) => parts,
        None => return Ok(vec![word.to_owned()]),
    };
    let (inside, behind) = rest.split_once(']').unwrap_or((rest, ""));
    let mut numbers = Vec::new();
    for part in inside.split(',') {
        numbers.extend(range(part, most).map_err(|why| format!("{word:?}: {why}"))?);
        if numbers.len() > most {
            return Err(too_many());
        }
    }
    let tails = expanded(behind, most / numbers.len().max(1))?;
    let joined = numbers.iter().flat_map(|number| tails.iter().map(move |tail| format!("{before}{number}{tail}")));
    Ok(joined.collect())
}

/// `080` or `081-101`.
fn range(part: &str, most: usize) -> Result<Vec<String>, String> {
    let number = |text: &str| match text.parse::<u64>() {
        Ok(number) if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(number),
        _ => Err(format!("{part:?} is neither a number nor a range like 080-101")),
    };
    let Some((first, last)) = part.split_once('-') else {
        return number(part).map(|_| vec![part.to_owned()]);
    };
    let (from, to) = (number(first)?, number(last)?);
    if from > to {
        return Err(format!("the range {part:?} runs backwards"));
    }
    if to - from >= most as u64 {
        return Err(too_many());
    }
    let width = first.len();
    Ok((from..=to).map(|number| format!("{number:0width$}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        parse_hosts(text).expect(text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn ranges_are_expanded_in_order_and_keep_their_zeros() {
        assert_eq!(names("c[080] c[098-101]"), ["c080", "c098", "c099", "c100", "c101"]);
        assert_eq!(names("me@a[1,3-4]-ib,b"), ["me@a1-ib", "me@a3-ib", "me@a4-ib", "b"]);
        assert_eq!(names("r[1-2]n[08-09]"), ["r1n08", "r1n09", "r2n08", "r2n09"]);
        assert_eq!(names(" a, a\tb\n"), ["a", "b"], "a host stands once");
        assert_eq!(names("[::1],me@[fe80::1%eth0]"), ["[::1]", "me@[fe80::1%eth0]"]);
        assert_eq!(names("c[0001-4096]").len(), HOSTS_MAX);
    }

    #[test]
    fn text_that_names_no_hosts_is_refused() {
        for text in [
            "",
            " , ",
            "c[",
            "c]",
            "c[1",
            "c[[1]]",
            "c[]",
            "c[a]",
            "c[1-]",
            "c[-3]",
            "c[3-1]",
            "c[1-5000]",
            "c[+1-2]",
            "a[1-4000]b[1-4000]",
            "-oProxyCommand=x",
            "a;b",
            "me@",
            "@a",
            "a:b",
            "a/b",
            "c[1-99999999999999999999]",
        ] {
            assert!(parse_hosts(text).is_err(), "{text:?}");
        }
    }
}
