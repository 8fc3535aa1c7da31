//! Which bytes of a file a request asks for: RFC 9110, sections 13 and 14.

use axum::http::{HeaderMap, header};

/// What of a file is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All of it.
    Whole,
    /// This range, which has at least one byte and lies within the file.
    Range {
        /// Where it begins.
        offset: u64,
        /// Its bytes.
        length: u64,
    },
    /// A range behind the file's end.
    Nothing,
}

/// What a request asks for of a file with this tag and size. What cannot be understood, and several ranges at once,
/// stand for all of it.
pub(super) fn wanted(headers: &HeaderMap, tag: Option<&str>, size: u64) -> Wanted {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default().trim());
    let Some(range) = text(header::RANGE) else { return Wanted::Whole };
    // A date proves too little: the range may be of another state of the file.
    if text(header::IF_RANGE).is_some_and(|condition| tag != Some(condition)) {
        return Wanted::Whole;
    }
    parse(range, size).unwrap_or(Wanted::Whole)
}

fn parse(range: &str, size: u64) -> Option<Wanted> {
    let (unit, range) = range.split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // One that is too large lies behind the end of every file.
        is_number.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let (first, end) = match (first.trim(), last.trim()) {
        ("", last) => (size.saturating_sub(number(last)?), size),
        (first, "") => (number(first)?, size),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            (first, last.saturating_add(1).min(size))
        }
    };
    let length = end.saturating_sub(first);
    Some(if length == 0 { Wanted::Nothing } else { Wanted::Range { offset: first, length } })
}

/// Whether `If-None-Match` names this tag.
pub(super) fn matches_any(headers: &HeaderMap, tag: &str) -> bool {
    let weak = |text: &str| text.trim().trim_start_matches("W/").to_owned();
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.split(',').map(weak).any(|named| named == "*" || named == tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(range: &str, if_range: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, range.parse().unwrap());
        if let Some(condition) = if_range {
            headers.insert(header::IF_RANGE, condition.parse().unwrap());
        }
        headers
    }

    #[test]
    fn range_is_what_the_standard_says() {
        let whole = |range: &str| wanted(&asked(range, None), None, 1000) == Wanted::Whole;
        let found = |range: &str| wanted(&asked(range, None), None, 1000);
        let part = |offset, length| Wanted::Range { offset, length };
        for (range, expected) in [
            ("bytes=0-0", part(0, 1)),
            ("bytes=0-499", part(0, 500)),
            ("bytes=500-", part(500, 500)),
            ("bytes=-1", part(999, 1)),
            ("bytes=-5000", part(0, 1000)),
            ("bytes=990-5000", part(990, 10)),
            ("BYTES = 1 - 2", part(1, 2)),
            ("bytes=1000-", Wanted::Nothing),
            ("bytes=1000-2000", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=99999999999999999999999-", Wanted::Nothing),
            ("bytes=5-99999999999999999999999", part(5, 995)),
        ] {
            let range = range.replace(" =", "=");
            assert_eq!(found(&range), expected, "{range}");
        }
        for range in
            ["bytes=0-1,5-6", "bytes=2-1", "items=0-1", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=+1-2"]
        {
            assert!(whole(range), "{range}");
        }
        assert_eq!(wanted(&HeaderMap::new(), None, 1000), Wanted::Whole);
        assert_eq!(wanted(&asked("bytes=0-", None), None, 0), Wanted::Nothing);
    }

    #[test]
    fn range_of_another_state_of_the_file_is_the_whole_file() {
        let found = |condition, tag| wanted(&asked("bytes=5-", Some(condition)), tag, 10);
        assert_eq!(found("\"a\"", Some("\"a\"")), Wanted::Range { offset: 5, length: 5 });
        assert_eq!(found("\"b\"", Some("\"a\"")), Wanted::Whole);
        assert_eq!(found("W/\"a\"", Some("\"a\"")), Wanted::Whole, "a weak tag proves nothing");
        assert_eq!(found("Wed, 21 Oct 2015 07:28:00 GMT", Some("\"a\"")), Wanted::Whole);
        assert_eq!(found("\"a\"", None), Wanted::Whole);
    }

    #[test]
    fn none_match_names_tags_in_lists() {
        let matches = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, text.parse().unwrap());
            matches_any(&headers, "\"a\"")
        };
        assert!(matches("\"a\"") && matches("\"b\", W/\"a\"") && matches("*"));
        assert!(!matches("\"b\"") && !matches("a") && !matches_any(&HeaderMap::new(), "\"a\""));
    }
}
