//! Values of options: each with its parser from text, and the text that parses back to it.

use std::time::Duration;

use crate::accounts::{AccountMap, AccountMaps, parse_owner};
use crate::backup::Backup;
use crate::duration::parse_duration;
use crate::filter::{AddedRule, Filters, RuleForm, lines_of};
use crate::growing::{GrowingIdle, GrowingLock};
use crate::limits;
use crate::mode_change::ModeChange;
use crate::path::display_bytes;
use crate::reference::{ReferenceDirectories, ReferenceUse};
use crate::request::{CongestionControl, Digests};
use crate::size::parse_size;
use crate::words::{Word, parse_among, quoted};

/// A value of an option.
pub trait OptionValue: Clone + PartialEq + std::fmt::Debug + 'static {
    /// Parses a text.
    ///
    /// # Errors
    /// The sentence that refuses it.
    fn parse(text: &str) -> Result<Self, String>;

    /// The text that [`OptionValue::parse`] makes this value of.
    fn text(&self) -> String;
}

impl<W: Word + std::fmt::Debug> OptionValue for W {
    fn parse(text: &str) -> Result<Self, String> {
        parse_among(text, W::ALL)
    }

    fn text(&self) -> String {
        self.name().to_owned()
    }
}

impl OptionValue for Digests {
    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }

    fn text(&self) -> String {
        let others = [(self.adler32, "adler32"), (self.crc32c, "crc32c")];
        let others = others.iter().filter(|other| other.0).map(|other| other.1);
        let names: Vec<&str> = self.main.iter().map(|main| main.name()).chain(others).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(",") }
    }
}

impl OptionValue for CongestionControl {
    fn parse(text: &str) -> Result<Self, String> {
        let refused = || format!("{} is no name of a congestion control: try cubic or bbr", quoted(text));
        Self::new(text).ok_or_else(refused)
    }

    fn text(&self) -> String {
        self.name().to_owned()
    }
}

/// The number of data connections of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Streams {
    /// The path and the processors decide, while the copy runs.
    #[default]
    Auto,
    /// A fixed number: 1 to [`limits::STREAMS`].
    Fixed(u16),
}

impl Streams {
    /// The word for [`Streams::Auto`].
    pub const AUTO: &'static str = "auto";

    /// Parses a number, or `auto`.
    ///
    /// # Errors
    /// The sentence that refuses the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        match decimal(text) {
            _ if text == Self::AUTO => Ok(Self::Auto),
            Some(streams) if (1..=limits::STREAMS.into()).contains(&streams) => Ok(Self::Fixed(streams as u16)),
            _ => Err(format!("{} is not a number of streams: use 1 to {}, or auto", quoted(text), limits::STREAMS)),
        }
    }

    /// The fixed number.
    pub const fn fixed(self) -> Option<u16> {
        match self {
            Self::Auto => None,
            Self::Fixed(streams) => Some(streams),
        }
    }
}

impl OptionValue for Streams {
    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }

    fn text(&self) -> String {
        self.fixed().map_or_else(|| Self::AUTO.to_owned(), |streams| streams.to_string())
    }
}

/// The longest window, in seconds: a day, as for clocks that differ by their zone.
pub const WINDOW_SECONDS_MAX: u32 = 86_400;

/// How far two modification times of one file may be apart, in seconds; at most [`WINDOW_SECONDS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSeconds(u32);

impl WindowSeconds {
    /// As a time.
    pub const fn time(self) -> Duration {
        Duration::from_secs(self.0 as u64)
    }
}

impl OptionValue for WindowSeconds {
    fn parse(text: &str) -> Result<Self, String> {
        let seconds = decimal(text).and_then(|seconds| u32::try_from(seconds).ok());
        let seconds = seconds.filter(|seconds| *seconds <= WINDOW_SECONDS_MAX);
        let refused = || format!("{} is no number of seconds: use 0 to {WINDOW_SECONDS_MAX}", quoted(text));
        seconds.map(Self).ok_or_else(refused)
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// The unit of sending, hashing and repair, in bytes: a power of two within [`limits::BLOCK_BYTES_MIN`] and
/// [`limits::BLOCK_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize(u32);

impl BlockSize {
    /// Parses a size.
    ///
    /// # Errors
    /// The sentence that refuses the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (min, max) = (limits::BLOCK_BYTES_MIN, limits::BLOCK_BYTES_MAX);
        match u32::try_from(parse_size(text)?) {
            Ok(bytes) if bytes.is_power_of_two() && (min..=max).contains(&bytes) => Ok(Self(bytes)),
            _ => Err(format!(
                "{} is not a block size: a power of two from {}K to {}M",
                quoted(text),
                min >> 10,
                max >> 20
            )),
        }
    }

    /// The number of bytes.
    pub const fn bytes(self) -> u32 {
        self.0
    }
}

impl OptionValue for BlockSize {
    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// Upper bound of a rate, in bytes a second; 0 is no bound, as in rsync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateBound(u64);

impl RateBound {
    /// A rate in bytes a second; 0 is no bound.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Parses a size, with or without `/s`.
    ///
    /// # Errors
    /// The sentence that refuses the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse_size(text.strip_suffix("/s").unwrap_or(text)).map(Self)
    }

    /// The bound, in bytes a second; `None` if there is none.
    pub const fn bytes(self) -> Option<u64> {
        match self.0 {
            0 => None,
            bytes => Some(bytes),
        }
    }
}

impl OptionValue for RateBound {
    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// A bound of the size of files, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSize(pub u64);

impl OptionValue for FileSize {
    fn parse(text: &str) -> Result<Self, String> {
        parse_size(text).map(Self)
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// How long ago something was changed, as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Age {
    text: String,
    time: Duration,
}

impl Age {
    /// As a time.
    pub const fn time(&self) -> Duration {
        self.time
    }
}

impl OptionValue for Age {
    fn parse(text: &str) -> Result<Self, String> {
        parse_duration(text).map(|time| Self { text: text.to_owned(), time })
    }

    fn text(&self) -> String {
        self.text.clone()
    }
}

impl OptionValue for GrowingIdle {
    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }

    fn text(&self) -> String {
        self.text().to_owned()
    }
}

impl OptionValue for GrowingLock {
    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }

    fn text(&self) -> String {
        self.text().to_owned()
    }
}

/// Changes of permissions, as they were typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeChanges {
    text: String,
    change: ModeChange,
}

impl ModeChanges {
    /// What they change.
    pub fn change(&self) -> ModeChange {
        self.change
    }
}

impl OptionValue for ModeChanges {
    fn parse(text: &str) -> Result<Self, String> {
        ModeChange::parse(text).map(|change| Self { text: text.to_owned(), change })
    }

    fn text(&self) -> String {
        self.text.clone()
    }
}

/// A new owner and group, as they were typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOwner {
    text: String,
    maps: AccountMaps,
}

impl NewOwner {
    /// Whom all items go to.
    pub fn maps(&self) -> &AccountMaps {
        &self.maps
    }
}

impl OptionValue for NewOwner {
    fn parse(text: &str) -> Result<Self, String> {
        parse_owner(text).map(|maps| Self { text: text.to_owned(), maps })
    }

    fn text(&self) -> String {
        self.text.clone()
    }
}

impl OptionValue for AccountMap {
    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }

    fn text(&self) -> String {
        self.text().to_owned()
    }
}

/// A directory below the destination, where what is replaced or deleted is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupDirectory(String);

impl BackupDirectory {
    /// Its path, relative to the destination.
    pub fn path(&self) -> Vec<u8> {
        self.0.clone().into_bytes()
    }
}

impl OptionValue for BackupDirectory {
    fn parse(text: &str) -> Result<Self, String> {
        let directory = Self(text.trim_end_matches('/').to_owned());
        if text.contains(char::is_control) {
            return Err(format!("{} is no directory of a plain name", quoted(text)));
        }
        Backup::new(Some(directory.path()), None).map(|_| directory)
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

/// Reference directories, one a line, as they were typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryLines(String);

impl DirectoryLines {
    /// The directories, used in one way.
    ///
    /// # Errors
    /// The sentence that refuses them.
    pub fn directories(&self, used: ReferenceUse) -> Result<ReferenceDirectories, String> {
        ReferenceDirectories::new(used, self.0.split('\n').map(|line| line.as_bytes().to_vec()).collect())
    }

    /// Each as it was typed.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split('\n')
    }
}

impl OptionValue for DirectoryLines {
    fn parse(text: &str) -> Result<Self, String> {
        let lines = Self(text.to_owned());
        if let Some(line) = lines.iter().find(|line| line.contains(char::is_control)) {
            return Err(format!("{} is no directory of a plain name", quoted(line)));
        }
        lines.directories(ReferenceUse::Link).map(|_| lines)
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

/// What is added to the names of what is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupSuffix(String);

impl BackupSuffix {
    /// The end of each name.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.clone().into_bytes()
    }
}

impl OptionValue for BackupSuffix {
    fn parse(text: &str) -> Result<Self, String> {
        Backup::new(None, Some(text.as_bytes().to_vec())).map(|_| Self(text.to_owned()))
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

/// How much may be deleted at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteLimit {
    /// So many items, or none where there are more.
    Items(u64),
    /// So many items, also where there are more.
    Partial(u64),
    /// So many hundredths of what the destination has, or nothing where there is more; 100: all may go.
    Share(u8),
}

impl DeleteLimit {
    const PARTIAL: &'static str = ",partial";
    const SHARE: &'static str = "%";
}

impl OptionValue for DeleteLimit {
    fn parse(text: &str) -> Result<Self, String> {
        let limit = if let Some(share) = text.strip_suffix(Self::SHARE) {
            decimal(share).and_then(|share| u8::try_from(share).ok()).filter(|share| *share <= 100).map(Self::Share)
        } else if let Some(number) = text.strip_suffix(Self::PARTIAL) {
            decimal(number).map(Self::Partial)
        } else {
            decimal(text).map(Self::Items)
        };
        let refused = || {
            let use_these = "use a number, with ,partial or without, or a share, like 50%";
            format!("{} is no number of items: {use_these}", quoted(text))
        };
        limit.ok_or_else(refused)
    }

    fn text(&self) -> String {
        match self {
            Self::Items(most) => most.to_string(),
            Self::Partial(most) => format!("{most}{}", Self::PARTIAL),
            Self::Share(share) => format!("{share}{}", Self::SHARE),
        }
    }
}

/// Rules that leave names out, one a line, as in a file of rsync's `--filter`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterLines(String);

impl FilterLines {
    /// The rules of flags.
    ///
    /// # Errors
    /// The sentence that refuses what no document can hold.
    pub fn of(filters: &Filters) -> Result<Option<Self>, String> {
        let mut text = String::new();
        for (form, line) in filters.lines() {
            let rule = form.as_rule(line);
            let line = std::str::from_utf8(&rule).ok().filter(|line| !line.contains(['\n', '\r']));
            let shown = || quoted(&display_bytes(&rule).to_string());
            text += line.ok_or_else(|| format!("{}: a rule of a task is one line of UTF-8", shown()))?;
            text.push('\n');
        }
        if text.is_empty() { Ok(None) } else { Self::parse(&text).map(Some) }
    }

    /// The rules. With `deletes_excluded` plain ones hide names and protect none.
    ///
    /// # Errors
    /// The sentence that refuses a line.
    pub fn filters(&self, deletes_excluded: bool) -> Result<Filters, String> {
        let mut filters = Filters::new(deletes_excluded);
        for (_, line) in lines_of(self.0.as_bytes()) {
            if let AddedRule::Merge(file, _) = filters.add(RuleForm::Rule, line)? {
                let file = quoted(&display_bytes(&file).to_string());
                return Err(format!("{file} is a file of one host: write its rules in its place"));
            }
        }
        Ok(filters)
    }
}

impl OptionValue for FilterLines {
    fn parse(text: &str) -> Result<Self, String> {
        let lines = Self(text.trim_end_matches(['\n', '\r']).to_owned());
        if lines.filters(false)?.is_empty() {
            return Err(format!("{} has no rule: use lines like - *.tmp", quoted(text)));
        }
        if text.len() > limits::FILTER_BYTES {
            return Err(format!("the rules have more than {} bytes", limits::FILTER_BYTES));
        }
        Ok(lines)
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

/// Parses the priority of a task: one digit.
///
/// # Errors
/// The sentence that refuses the text.
pub fn parse_priority(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [digit @ b'0'..=b'9'] => Ok(digit - b'0'),
        _ => Err(format!("{} is not a priority: use 0 to {}", quoted(text), limits::PRIORITY_MAX)),
    }
}

/// Checks the label of a task.
///
/// # Errors
/// The sentence that refuses the text.
pub fn check_label(text: &str) -> Result<(), String> {
    let fits = !text.is_empty() && text.chars().count() <= limits::LABEL_CHARACTERS_MAX;
    if fits && !text.contains(char::is_control) {
        return Ok(());
    }
    Err(format!("{} is no label: use 1 to {} printable characters", quoted(text), limits::LABEL_CHARACTERS_MAX))
}

/// A number of digits alone.
fn decimal(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_a_number_or_auto() {
        assert_eq!(Streams::parse("auto"), Ok(Streams::Auto));
        assert_eq!(Streams::parse("256").map(Streams::fixed), Ok(Some(256)));
        for text in ["", "0", "257", "+4", "-4", " 4", "４", "AUTO", "18446744073709551616"] {
            assert!(Streams::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn rates_are_sizes_by_the_second() {
        let bytes = |text| RateBound::parse(text).map(RateBound::bytes);
        assert_eq!(bytes("10MB"), Ok(Some(10_000_000)));
        assert_eq!(bytes("1G/s"), Ok(Some(1 << 30)));
        assert_eq!(bytes("0"), Ok(None));
        for text in ["", "/s", "1G/h", "1Gb/s", "-1M"] {
            assert!(bytes(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn blocks_are_powers_of_two_within_bounds() {
        let bytes = |text| BlockSize::parse(text).map(BlockSize::bytes);
        assert_eq!(bytes("4M"), Ok(4 << 20));
        assert_eq!(bytes("64K"), Ok(limits::BLOCK_BYTES_MIN));
        assert_eq!(bytes("65536"), Ok(limits::BLOCK_BYTES_MIN));
        assert_eq!(bytes("64M"), Ok(limits::BLOCK_BYTES_MAX));
        for text in ["0", "1", "32K", "128M", "3M", "4MB", "4G", "4P", "x", ""] {
            assert!(bytes(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn labels_are_printable() {
        assert_eq!(check_label(&"ü".repeat(limits::LABEL_CHARACTERS_MAX)), Ok(()));
        for text in ["", "a\nb", "\u{7f}", &"x".repeat(limits::LABEL_CHARACTERS_MAX + 1)] {
            assert!(check_label(text).is_err(), "{text:?}");
        }
    }
}
