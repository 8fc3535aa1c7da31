//! Owners and groups that become others on the way: `--usermap`, `--groupmap`, `--chown`.

use crate::filter::wild::Wild;
use crate::words::quoted;

/// Which users, or groups, of the source become which of the destination: the first rule that fits counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountMap {
    text: String,
    rules: Vec<AccountRule>,
}

/// Both maps of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountMaps {
    /// Of owners.
    pub users: AccountMap,
    /// Of groups.
    pub groups: AccountMap,
}

impl AccountMaps {
    /// Whether everybody stays who they are.
    pub fn are_empty(&self) -> bool {
        self.users.rules.is_empty() && self.groups.rules.is_empty()
    }
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountRule {
    /// Whom it is about.
    from: AccountMatch,
    /// Whom they become.
    pub to: AccountTarget,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum AccountMatch {
    /// Everybody.
    Anybody,
    /// By a pattern of names.
    Name(Wild),
    /// These numbers, both included.
    Numbers(u32, u32),
    /// Who has no name.
    Nameless,
}

/// Whom somebody becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountTarget {
    /// Whoever has this name at the destination.
    Name(String),
    /// Whoever has this number.
    Number(u32),
}

impl AccountMap {
    /// The longest text.
    pub const CHARACTERS_MAX: usize = 4096;
    /// The most rules.
    pub const RULES_MAX: usize = 256;

    /// Parses rules `FROM:TO`, separated by commas. FROM is a name, a pattern of names (`*`), a number, a range of
    /// numbers (`0-99`), or nothing, for who has no name; TO is a name or a number.
    ///
    /// # Errors
    /// The sentence that refuses the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refused = || format!("{} names nobody: use FROM:TO, as in alice:bob,1000-1999:data,*:nobody", quoted(text));
        let rule = |rule: &str| {
            let (from, to) = rule.split_once(':')?;
            let from = match from {
                "" => AccountMatch::Nameless,
                "*" => AccountMatch::Anybody,
                _ if from.starts_with(|c: char| c.is_ascii_digit()) => {
                    let (first, last) = from.split_once('-').unwrap_or((from, from));
                    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
                    (first <= last).then_some(AccountMatch::Numbers(first, last))?
                }
                name => AccountMatch::Name(Wild::parse(checked(name)?.as_bytes())?),
            };
            Some(AccountRule { from, to: AccountTarget::parse(to)? })
        };
        let rules: Option<Vec<_>> = text.split(',').map(rule).collect();
        let fits = text.len() <= Self::CHARACTERS_MAX;
        let rules = rules.filter(|rules| fits && rules.len() <= Self::RULES_MAX).ok_or_else(refused)?;
        Ok(Self { text: text.to_owned(), rules })
    }

    /// Everybody becomes this one: a name or a number.
    ///
    /// # Errors
    /// The sentence that refuses the text.
    pub fn everybody(to: &str) -> Result<Self, String> {
        let target = AccountTarget::parse(to).ok_or_else(|| format!("{} is nobody's name", quoted(to)))?;
        Ok(Self { text: format!("*:{to}"), rules: vec![AccountRule { from: AccountMatch::Anybody, to: target }] })
    }

    /// As it was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its rules, in their order.
    pub fn rules(&self) -> &[AccountRule] {
        &self.rules
    }

    /// Which rule is about somebody of this number and name, by its index; without a name where there is none.
    pub fn find(&self, number: u32, name: &[u8]) -> Option<usize> {
        // Nobody's name is told of this one, whom everybody knows.
        let name: &[u8] = if number == 0 { b"root" } else { name };
        let is_about = |rule: &AccountRule| match &rule.from {
            AccountMatch::Anybody => true,
            AccountMatch::Name(pattern) => !name.is_empty() && pattern.matches(name.iter()),
            AccountMatch::Numbers(first, last) => (*first..=*last).contains(&number),
            AccountMatch::Nameless => name.is_empty(),
        };
        self.rules.iter().position(is_about)
    }
}

impl AccountTarget {
    fn parse(text: &str) -> Option<Self> {
        match text.parse() {
            // It stands for no change in the system's calls.
            Ok(u32::MAX) => None,
            Ok(number) => Some(Self::Number(number)),
            Err(_) => checked(text).filter(|name| !name.contains('*')).map(Self::Name),
        }
    }
}

/// A name that may be one.
fn checked(name: &str) -> Option<String> {
    let fits = (1..=crate::limits::ACCOUNT_NAME_BYTES).contains(&name.len());
    (fits && !name.contains(|c: char| c.is_control() || c == ':' || c == '/')).then(|| name.to_owned())
}

/// `USER:GROUP`, of which either may be missing, with or without the colon.
///
/// # Errors
/// The sentence that refuses the text.
pub fn parse_owner(text: &str) -> Result<AccountMaps, String> {
    let (user, group) = text.split_once(':').unwrap_or((text, ""));
    if user.is_empty() && group.is_empty() {
        return Err(format!("{} names nobody: use USER:GROUP, USER or :GROUP", quoted(text)));
    }
    let map = |to: &str| if to.is_empty() { Ok(AccountMap::default()) } else { AccountMap::everybody(to) };
    Ok(AccountMaps { users: map(user)?, groups: map(group)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_rule_that_fits_counts() {
        let map = AccountMap::parse("root:0,alice:bob,al*:data,1000-1999:7,:nobody,*:guest").unwrap();
        let cases = [
            (0, "", 0),
            (5, "alice", 1),
            (5, "albert", 2),
            (1000, "", 3),
            (1999, "x", 3),
            (2000, "", 4),
            (2000, "x", 5),
        ];
        for (number, name, index) in cases {
            assert_eq!(map.find(number, name.as_bytes()), Some(index), "{number} {name}");
        }
        assert_eq!(AccountMap::parse("a:b").unwrap().find(1, b"c"), None);
        assert_eq!(map.rules()[1].to, AccountTarget::Name("bob".into()));
        assert_eq!(AccountMap::parse(map.text()), Ok(map));
        let both = parse_owner("alice:7").unwrap();
        assert_eq!(both.users.find(9, b""), Some(0));
        assert_eq!(AccountMap::parse(both.groups.text()), Ok(both.groups.clone()));
        assert!(
            parse_owner("alice").unwrap().groups.rules().is_empty()
                && parse_owner(":g").unwrap().users.rules().is_empty()
        );
        for text in ["", "a", "a:", "a:*", "5-3:a", "1x:a", "[a:b", "a:4294967295", "a:b,", "a/b:c", "a:b:c", "\n:a"] {
            assert!(AccountMap::parse(text).is_err(), "{text:?}");
        }
        assert!(parse_owner("").is_err() && parse_owner(":").is_err() && parse_owner("a:b:c").is_err());
    }
}
