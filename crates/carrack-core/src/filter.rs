//! Rules that leave names out of a copy, and keep them from being deleted, as rsync has them: the first rule that
//! matches decides, and a name that no rule matches is taken.
//!
//! A rule is for one side or both. At the source it hides a name: what is hidden is not listed, and nothing below it.
//! At the destination it protects a name from deletion. A plain rule does both, so that what is left out is not
//! deleted.
//!
//! Files may also be left out by what they are ([`FileBounds`]), links by where they lead ([`SourceLinks`]), and what
//! is on other file systems; of these a destination keeps what it has.

mod bounds;
mod links;
mod pattern;
pub(crate) mod wild;

pub use self::bounds::FileBounds;
pub use self::links::{SourceLinks, leads_out};
use self::pattern::Pattern;
use crate::limits;
use crate::path::{display_bytes, split_name, within};
use crate::words::{quoted, words};

/// The end that a rule is asked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterSide {
    /// Whether a name is listed.
    Source,
    /// Whether a name may be deleted.
    Destination,
}

words! {
    /// In which form a rule is given.
    pub enum RuleForm {
        0 Rule "filter" "with its kind before it: - *.o, protect keep/"
        1 Exclude "exclude" "a pattern to leave out; + and - before it are understood"
        2 Include "include" "a pattern to take; + and - before it are understood"
        3 OnlyExclude "exclude-only" "a pattern to leave out, whatever it begins with"
        4 OnlyInclude "include-only" "a pattern to take, whatever it begins with"
    }
}

impl RuleForm {
    /// A line in this form, as a rule with its kind.
    pub fn as_rule(self, line: &[u8]) -> Vec<u8> {
        let has_kind = matches!(line, [b'+' | b'-', b' ', ..] | b"!");
        let kind: &[u8] = match self {
            Self::Rule => b"",
            Self::Exclude | Self::Include if has_kind => b"",
            Self::Exclude | Self::OnlyExclude => b"- ",
            Self::Include | Self::OnlyInclude => b"+ ",
        };
        [kind, line].concat()
    }
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddedRule {
    /// Nothing, or a rule that has been added.
    Taken,
    /// The rules of this file stand here. Whoever reads the line reads the file.
    Merge(Vec<u8>, RuleForm),
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    takes: bool,
    source: bool,
    destination: bool,
    negated: bool,
    /// Has no effect in a directory that is being deleted.
    perishable: bool,
    pattern: Pattern,
}

/// Rules in files of that name, in any directory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PerDirectory {
    name: Vec<u8>,
    form: RuleForm,
    /// Rules hold below the directory, too.
    inherits: bool,
    source: bool,
    destination: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Rule(Rule),
    PerDirectory(PerDirectory),
}

/// Rules in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    entries: Vec<Entry>,
    /// As they were given, for the other end.
    lines: Vec<(RuleForm, Vec<u8>)>,
    bytes: usize,
    /// What is excluded is deleted, unless a rule protects it.
    deletes_excluded: bool,
    /// Of the files that the rules take, only those within these bounds are taken.
    pub files: FileBounds,
    /// Directories where another file system begins are taken as empty.
    pub one_file_system: bool,
    /// What becomes of symbolic links.
    pub links: SourceLinks,
}

const KINDS: [(&str, u8); 9] = [
    ("exclude", b'-'),
    ("include", b'+'),
    ("merge", b'.'),
    ("dir-merge", b':'),
    ("hide", b'H'),
    ("show", b'S'),
    ("protect", b'P'),
    ("risk", b'R'),
    ("clear", b'!'),
];

impl Filters {
    /// No rules. With `deletes_excluded` plain rules hide names and protect none.
    pub fn new(deletes_excluded: bool) -> Self {
        Self { deletes_excluded, ..Self::default() }
    }

    /// Whether nothing is left out, and every link is copied as one.
    pub fn is_empty(&self) -> bool {
        let links = self.links == SourceLinks::Keep;
        self.entries.is_empty() && self.files.take_all() && !self.one_file_system && links
    }

    fn has_files(&self, name: &[u8]) -> bool {
        self.entries.iter().any(|entry| matches!(entry, Entry::PerDirectory(of) if of.name == name))
    }

    /// Whether plain rules hide names and protect none.
    pub fn deletes_excluded(&self) -> bool {
        self.deletes_excluded
    }

    /// Whether there are rules in files of the directories.
    pub fn are_per_directory(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry, Entry::PerDirectory(_)))
    }

    /// The rules as they were given: added in this order to others without any, they are the same.
    pub fn lines(&self) -> impl Iterator<Item = (RuleForm, &[u8])> {
        self.lines.iter().map(|(form, line)| (*form, line.as_slice()))
    }

    /// Adds a rule.
    ///
    /// # Errors
    /// The sentence that refuses it.
    pub fn add(&mut self, form: RuleForm, line: &[u8]) -> Result<AddedRule, String> {
        let parsed = parse(form, line, self.deletes_excluded)?;
        let entry = match parsed {
            Parsed::Nothing => return Ok(AddedRule::Taken),
            Parsed::Merge(name, form) => return Ok(AddedRule::Merge(name, form)),
            Parsed::Clear => {
                self.entries.clear();
                self.lines.clear();
                self.bytes = 0;
                return Ok(AddedRule::Taken);
            }
            // Files of one name are read once, as they were first mentioned.
            Parsed::Entry(Entry::PerDirectory(of)) if self.has_files(&of.name) => return Ok(AddedRule::Taken),
            Parsed::Entry(entry) => entry,
        };
        self.bytes += line.len();
        if self.entries.len() >= limits::FILTER_RULES || self.bytes > limits::FILTER_BYTES {
            let most = (limits::FILTER_RULES, limits::FILTER_BYTES);
            return Err(format!("there are more than {} rules, or {} bytes of them", most.0, most.1));
        }
        self.entries.push(entry);
        self.lines.push((form, line.to_vec()));
        Ok(AddedRule::Taken)
    }

    /// The rules as they hold at the top of the transfer.
    pub fn scope(&self, side: FilterSide) -> Scope<'_> {
        Scope { filters: self, side, levels: Vec::new() }
    }
}

enum Parsed {
    Nothing,
    Clear,
    Merge(Vec<u8>, RuleForm),
    Entry(Entry),
}

fn parse(form: RuleForm, line: &[u8], deletes_excluded: bool) -> Result<Parsed, String> {
    if line.is_empty() {
        return Ok(Parsed::Nothing);
    }
    if line.contains(&0) {
        return Err("a rule has a NUL in it".to_owned());
    }
    let plain = |takes| rule(if takes { b'+' } else { b'-' }, &[], line, deletes_excluded);
    match (form, line) {
        (RuleForm::Exclude | RuleForm::Include, b"!") => Ok(Parsed::Clear),
        (RuleForm::Exclude | RuleForm::Include, [kind @ (b'+' | b'-'), b' ', pattern @ ..]) => {
            rule(*kind, &[], pattern, deletes_excluded)
        }
        (RuleForm::Exclude | RuleForm::OnlyExclude, _) => plain(false),
        (RuleForm::Include | RuleForm::OnlyInclude, _) => plain(true),
        (RuleForm::Rule, _) => {
            let (kind, modifiers, pattern) = head(line)?;
            rule(kind, modifiers, pattern, deletes_excluded)
        }
    }
}

/// Kind, modifiers and pattern of a rule.
fn head(line: &[u8]) -> Result<(u8, &[u8], &[u8]), String> {
    let unknown = || {
        let shown = quoted(&display_bytes(line).to_string());
        format!(
            "{shown} is no rule: it begins with -, +, merge, dir-merge, hide, show, protect, risk, or their letters"
        )
    };
    let is_end = |byte: &u8| matches!(byte, b' ' | b'_');
    let long = KINDS.iter().find_map(|(word, kind)| {
        let rest = line.strip_prefix(word.as_bytes())?;
        (rest.is_empty() || rest[0] == b',' || is_end(&rest[0])).then_some((*kind, rest))
    });
    let short = line.split_first().filter(|(first, _)| KINDS.iter().any(|(_, kind)| kind == *first));
    let (kind, rest) = long.or(short.map(|(kind, rest)| (*kind, rest))).ok_or_else(unknown)?;
    let rest = rest.strip_prefix(b",").unwrap_or(rest);
    let end = rest.iter().position(is_end).unwrap_or(rest.len());
    Ok((kind, &rest[..end], rest.get(end + 1..).unwrap_or_default()))
}

fn rule(kind: u8, modifiers: &[u8], pattern: &[u8], deletes_excluded: bool) -> Result<Parsed, String> {
    let shown = || quoted(&display_bytes(pattern).to_string());
    let merges = matches!(kind, b'.' | b':');
    let (mut source, mut destination) = match kind {
        b'H' | b'S' => (true, false),
        b'P' | b'R' => (false, true),
        _ => (modifiers.contains(&b's'), modifiers.contains(&b'r')),
    };
    if !source && !destination {
        (source, destination) = (true, !deletes_excluded || merges);
    }
    for modifier in modifiers {
        let is_known = match modifier {
            b's' | b'r' => true,
            b'!' | b'p' => !merges,
            b'-' | b'+' | b'n' | b'e' => merges,
            b'/' => {
                return Err(format!("{}: absolute paths differ between two hosts: anchor it at the transfer", shown()));
            }
            _ => false,
        };
        if !is_known {
            let modifier = char::from(*modifier);
            return Err(format!("the modifier {modifier:?} of the rule {} is not known here", shown()));
        }
    }
    if kind == b'!' {
        let is_alone = pattern.is_empty() && modifiers.is_empty();
        return if is_alone { Ok(Parsed::Clear) } else { Err("nothing follows ! or clear".to_owned()) };
    }
    if pattern.is_empty() {
        return Err("a rule has no pattern".to_owned());
    }
    if merges {
        let form = match (modifiers.contains(&b'-'), modifiers.contains(&b'+')) {
            (true, _) => RuleForm::OnlyExclude,
            (_, true) => RuleForm::OnlyInclude,
            _ => RuleForm::Rule,
        };
        if kind == b'.' {
            return Ok(Parsed::Merge(pattern.to_vec(), form));
        }
        let name = pattern.strip_prefix(b"/").unwrap_or(pattern);
        if name.is_empty() || name.contains(&b'/') || name == b"." || name == b".." {
            return Err(format!("{} is no name of a file in a directory", shown()));
        }
        let inherits = !modifiers.contains(&b'n');
        let per_directory = PerDirectory { name: name.to_vec(), form, inherits, source, destination };
        return Ok(Parsed::Entry(Entry::PerDirectory(per_directory)));
    }
    let rule = Rule {
        takes: matches!(kind, b'+' | b'S' | b'R'),
        source,
        destination,
        negated: modifiers.contains(&b'!'),
        perishable: modifiers.contains(&b'p'),
        pattern: Pattern::parse(pattern),
    };
    Ok(Parsed::Entry(Entry::Rule(rule)))
}

/// The rules as they hold in a directory, with those of its own files and of the files above it.
#[derive(Debug)]
pub struct Scope<'a> {
    filters: &'a Filters,
    side: FilterSide,
    levels: Vec<RuleLevel>,
}

/// Rules from the files of one directory.
#[derive(Debug)]
struct RuleLevel {
    directory: Vec<u8>,
    /// Of each entry that stands for such files, by its index.
    rules: Vec<(usize, Vec<Rule>)>,
    /// Entries whose rules from further above do not hold any more.
    cleared: Vec<usize>,
}

/// Gives the content of a file by its name; nothing where there is none.
///
/// # Errors
/// Why it cannot be read.
pub type ReadRules<'a> = dyn FnMut(&[u8]) -> Result<Option<Vec<u8>>, String> + 'a;

impl Scope<'_> {
    /// Enters a directory, `path` relative to the transfer: one in one that was entered last, or beside it. `read`
    /// gives the content of a file in it; nothing where there is none.
    ///
    /// # Errors
    /// When a file cannot be read, or has what is no rule. Then nothing of the directory may be taken or deleted: a
    /// rule that nobody could read may have left it out. The sentence shows nothing of the file.
    pub fn enter(&mut self, path: &[u8], read: &mut ReadRules<'_>) -> Result<(), String> {
        let is_above = |level: &RuleLevel| level.directory != path && within(path, &level.directory).is_some();
        let keep = self.levels.iter().take_while(|level| is_above(level)).count();
        self.levels.truncate(keep);
        let mut level = RuleLevel { directory: path.to_vec(), rules: Vec::new(), cleared: Vec::new() };
        for (index, entry) in self.filters.entries.iter().enumerate() {
            let Entry::PerDirectory(of) = entry else { continue };
            if !self.counts(of.source, of.destination) {
                continue;
            }
            let Some(content) = read(&of.name)? else { continue };
            let (rules, is_cleared) = rules_of(&content, of, self.filters.deletes_excluded)
                .map_err(|line| format!("line {line} of {} in it is no rule", display_bytes(&of.name)))?;
            level.rules.push((index, rules));
            if is_cleared || !of.inherits {
                level.cleared.push(index);
            }
        }
        if !level.rules.is_empty() {
            self.levels.push(level);
        }
        Ok(())
    }

    fn counts(&self, source: bool, destination: bool) -> bool {
        match self.side {
            FilterSide::Source => source,
            FilterSide::Destination => destination,
        }
    }

    /// Whether a name is taken at the source, or may be deleted at the destination. `path` is relative to the
    /// transfer, in the directory that was entered last or in one above that. In a directory that is itself being
    /// `deleted`, some rules do not hold.
    pub fn takes(&self, path: &[u8], is_directory: bool, deleted: bool) -> bool {
        let decides = |rule: &Rule, below: &[u8]| {
            let is_asked = self.counts(rule.source, rule.destination) && !(deleted && rule.perishable);
            (is_asked && rule.pattern.matches(path, below, is_directory) != rule.negated).then_some(rule.takes)
        };
        for (index, entry) in self.filters.entries.iter().enumerate() {
            let decided = match entry {
                Entry::Rule(rule) => decides(rule, path),
                Entry::PerDirectory(of) => self.in_files(index, of, path, &decides),
            };
            if let Some(takes) = decided {
                return takes;
            }
        }
        true
    }

    /// What the rules in files say: those of the innermost directory first.
    fn in_files(
        &self,
        index: usize,
        of: &PerDirectory,
        path: &[u8],
        decides: &dyn Fn(&Rule, &[u8]) -> Option<bool>,
    ) -> Option<bool> {
        let own = split_name(path).0;
        for level in self.levels.iter().rev() {
            // Not those of a directory beside it, which was entered since.
            let Some(below) = within(path, &level.directory) else { continue };
            if !of.inherits && level.directory != own {
                return None;
            }
            let rules = level.rules.iter().filter(|(entry, _)| *entry == index).flat_map(|(_, rules)| rules);
            if let Some(takes) = rules.filter_map(|rule| decides(rule, below)).next() {
                return Some(takes);
            }
            if level.cleared.contains(&index) {
                return None;
            }
        }
        None
    }
}

/// The lines of a file that are rules: not those that are empty or begin with `#` or `;`.
pub fn lines_of(content: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    entries_of(content, b'\n')
}

/// The same where each ends with this byte.
pub fn entries_of(content: &[u8], end: u8) -> impl Iterator<Item = (usize, &[u8])> {
    let lines = content.split(move |byte| *byte == end);
    let lines = lines.map(move |line| if end == b'\n' { line.strip_suffix(b"\r").unwrap_or(line) } else { line });
    (1..).zip(lines).filter(|(_, line)| !matches!(line.first(), None | Some(b'#' | b';')))
}

/// The rules in a file of a directory, and whether it gives up those from further above; the number of a line that is
/// none.
fn rules_of(content: &[u8], of: &PerDirectory, deletes_excluded: bool) -> Result<(Vec<Rule>, bool), usize> {
    let (mut rules, mut is_cleared) = (Vec::new(), false);
    if content.len() > limits::FILTER_BYTES {
        return Err(1);
    }
    for (number, line) in lines_of(content) {
        match parse(of.form, line, deletes_excluded) {
            Ok(Parsed::Entry(Entry::Rule(rule))) => rules.push(rule),
            Ok(Parsed::Clear) => {
                rules.clear();
                is_cleared = true;
            }
            // A file that a peer may have written names no other files.
            _ => return Err(number),
        }
        if rules.len() > limits::FILTER_RULES {
            return Err(number);
        }
    }
    Ok((rules, is_cleared))
}

#[cfg(test)]
mod tests;
