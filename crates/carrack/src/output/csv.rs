//! Lines of values separated by commas, as RFC 4180 says.

/// A line, without its end.
pub fn line<T: AsRef<str>>(fields: &[T]) -> String {
    fields.iter().map(|text| field(text.as_ref())).collect::<Vec<_>>().join(",")
}

/// A text of somebody else's, which no spreadsheet is to take for a formula.
pub fn text(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t']) { format!("'{text}") } else { text.to_owned() }
}

fn field(text: &str) -> String {
    let is_plain = !text.contains([',', '"', '\n', '\r']);
    if is_plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_have_to_be() {
        assert_eq!(line(&["a b", "", "a,\"b\"", "c\nd"]), "a b,,\"a,\"\"b\"\"\",\"c\nd\"");
    }

    #[test]
    fn texts_are_no_formulas() {
        assert_eq!(["=1+1", "-x", "a=b", ""].map(text), ["'=1+1", "'-x", "a=b", ""]);
    }
}
