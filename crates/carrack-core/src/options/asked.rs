//! The options of a copy as they were asked for.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::{
    Age, BackupDirectory, BackupSuffix, BlockSize, Definition, DeleteLimit, DirectoryLines, FileSize, FilterLines,
    ModeChanges, NewOwner, OptionValue, RateBound, Streams, WindowSeconds, parse_switch,
};
use crate::accounts::{AccountMap, AccountMaps};
use crate::attributes::Time;
use crate::backup::Backup;
use crate::filter::{FileBounds, Filters, SourceLinks};
use crate::growing::{GrowingIdle, GrowingLock, GrowingSources};
use crate::reference::{ReferenceDirectories, ReferenceUse};
use crate::request::{
    Compare, CongestionControl, CopyOptions, DeleteOrder, Delta, Digests, Durability, Encrypt, Existing, HardLinks,
    InPlace, KeptXattrs, Renames, Verify,
};

/// An option as it was asked for, or left out.
trait AskedValue: Sized {
    /// Reads a text.
    ///
    /// # Errors
    /// The sentence that refuses it.
    fn read(text: &str) -> Result<Self, String>;

    /// What reads back to it; none where nobody asked for it.
    #[cfg(test)]
    fn text(&self) -> Option<String>;

    /// Whether nobody asked for it.
    #[cfg(feature = "serde")]
    fn is_left_out(&self) -> bool;
}

impl AskedValue for bool {
    fn read(text: &str) -> Result<Self, String> {
        parse_switch(text)
    }

    #[cfg(test)]
    fn text(&self) -> Option<String> {
        self.then(|| self.to_string())
    }

    #[cfg(feature = "serde")]
    fn is_left_out(&self) -> bool {
        !self
    }
}

impl<V: OptionValue> AskedValue for Option<V> {
    fn read(text: &str) -> Result<Self, String> {
        V::parse(text).map(Some)
    }

    #[cfg(test)]
    fn text(&self) -> Option<String> {
        self.as_ref().map(OptionValue::text)
    }

    #[cfg(feature = "serde")]
    fn is_left_out(&self) -> bool {
        self.is_none()
    }
}

/// Defines the options that were asked for: a field with the name of each definition.
macro_rules! asked {
    ($($field:ident: $type:ty,)+) => {
        /// The options of a copy that were asked for, each a field with the name of its [`Definition`]. What is left
        /// out is as in [`CopyOptions::default`]. The documents of tasks have these fields.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default, deny_unknown_fields))]
        pub struct AskedOptions {
            $(
                #[doc = concat!("The option `", stringify!($field), "` of [`super::OF_A_COPY`].")]
                #[cfg_attr(feature = "serde", serde(skip_serializing_if = "AskedValue::is_left_out"))]
                pub $field: $type,
            )+
            /// Only these paths and what is below them, relative to the destination.
            #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
            pub only: Option<Vec<String>>,
        }

        impl AskedOptions {
            /// Sets an option of a copy to what a text says.
            ///
            /// # Errors
            /// The sentence that refuses the text; an option that no copy has.
            pub fn set(&mut self, option: &Definition, text: &str) -> Result<(), String> {
                match option.name {
                    $(stringify!($field) => self.$field = AskedValue::read(text)?,)+
                    name => return Err(format!("{name} is no option of a copy")),
                }
                Ok(())
            }

            /// What [`Self::set`] reads back to it; none for an option that was left out.
            #[cfg(test)]
            pub fn text(&self, option: &Definition) -> Option<String> {
                match option.name {
                    $(stringify!($field) => self.$field.text(),)+
                    _ => None,
                }
            }
        }
    };
}

asked! {
    existing: Option<Existing>,
    compare: Option<Compare>,
    modify_window: Option<WindowSeconds>,
    no_times: bool,
    owner: bool,
    group: bool,
    special_bits: bool,
    acls: bool,
    xattrs: Option<KeptXattrs>,
    trusted: bool,
    selinux: bool,
    hard_links: Option<HardLinks>,
    devices: bool,
    specials: bool,
    access_times: bool,
    chmod: Option<ModeChanges>,
    chown: Option<NewOwner>,
    usermap: Option<AccountMap>,
    groupmap: Option<AccountMap>,
    numeric_ids: bool,
    fake_super: bool,
    from_fake_super: bool,
    top_attributes: bool,
    filters: Option<FilterLines>,
    min_size: Option<FileSize>,
    max_size: Option<FileSize>,
    min_age: Option<Age>,
    max_age: Option<Age>,
    one_file_system: bool,
    require_mount: bool,
    links: Option<SourceLinks>,
    backup: bool,
    backup_dir: Option<BackupDirectory>,
    backup_suffix: Option<BackupSuffix>,
    link_dest: Option<DirectoryLines>,
    copy_dest: Option<DirectoryLines>,
    compare_dest: Option<DirectoryLines>,
    delete: bool,
    delete_excluded: bool,
    max_delete: Option<DeleteLimit>,
    allow_empty: bool,
    ignore_errors: bool,
    delete_before: bool,
    detect_renames: Option<Renames>,
    verify: Option<Verify>,
    encrypt: Option<Encrypt>,
    digest: Option<Digests>,
    streams: Option<Streams>,
    polite: bool,
    block_bytes: Option<BlockSize>,
    rate_limit: Option<RateBound>,
    congestion: Option<CongestionControl>,
    durable: Option<Durability>,
    delta: Option<Delta>,
    inplace: bool,
    append: bool,
    compress: bool,
    growing: Option<GrowingSources>,
    growing_idle: Option<GrowingIdle>,
    growing_lock: Option<GrowingLock>,
}

impl AskedOptions {
    /// The digests that the copy computes.
    ///
    /// # Errors
    /// The sentence that refuses to verify by nothing.
    pub fn digests(&self) -> Result<Digests, &'static str> {
        let default = CopyOptions::default();
        Digests::of_copy(self.digest, self.verify.unwrap_or(default.verify), self.encrypt.unwrap_or(default.encrypt))
    }

    /// Whether links of the sources are copied as what they lead to.
    pub fn follows_links(&self) -> bool {
        self.links.is_some_and(SourceLinks::follows)
    }

    /// Whether something of the sources is left out.
    pub fn leaves_out(&self) -> bool {
        let is_left_out = self.links == Some(SourceLinks::Safe);
        let by_what_they_are = is_left_out || self.files(Time::default()) != FileBounds::default();
        by_what_they_are || self.one_file_system || self.filters.is_some() || self.only.is_some()
    }

    /// Whether what is replaced or deleted at the destination is kept.
    pub fn keeps(&self) -> bool {
        self.backup || self.backup_dir.is_some() || self.backup_suffix.is_some()
    }

    /// Whether anything may be deleted at the destination.
    pub fn deletes(&self) -> bool {
        self.delete || self.delete_excluded || self.delete_before
    }

    /// What is deleted at the destination, if anything is.
    fn deletion(&self) -> Option<DeleteOrder> {
        let Self { max_delete, allow_empty, ignore_errors, .. } = *self;
        let (most, partial, share) = match max_delete {
            None => (None, false, None),
            Some(DeleteLimit::Items(most)) => (Some(most), false, None),
            Some(DeleteLimit::Partial(most)) => (Some(most), true, None),
            Some(DeleteLimit::Share(share)) => (None, false, Some(share)),
        };
        let order = DeleteOrder { most, partial, share, allow_empty, ignore_errors, asks: false };
        self.deletes().then_some(order)
    }

    /// Where what is replaced or deleted is kept, if it is.
    fn backup(&self) -> Result<Option<Backup>, String> {
        let directory = self.backup_dir.as_ref().map(BackupDirectory::path);
        let suffix = self.backup_suffix.as_ref().map(BackupSuffix::bytes);
        self.keeps().then(|| Backup::new(directory, suffix)).transpose()
    }

    /// Directories at the destination that may have a file already, if any are named.
    ///
    /// # Errors
    /// The sentence that refuses two kinds of them.
    pub fn references(&self) -> Result<Option<ReferenceDirectories>, &'static str> {
        let Self { link_dest, copy_dest, compare_dest, .. } = self;
        let uses =
            [(link_dest, ReferenceUse::Link), (copy_dest, ReferenceUse::Copy), (compare_dest, ReferenceUse::Compare)];
        let mut named = uses.iter().filter_map(|(lines, used)| Some((lines.as_ref()?, *used)));
        match (named.next(), named.next()) {
            (_, Some(_)) => {
                Err("link-dest, copy-dest and compare-dest exclude each other: name directories of one kind")
            }
            (Some((lines, used)), None) => {
                lines.directories(used).map(Some).map_err(|_| "a directory has no such path")
            }
            (None, None) => Ok(None),
        }
    }

    /// Which files are believed to be renamed: none where nothing is deleted.
    ///
    /// # Errors
    /// The sentence that refuses to delete them before anything is sent.
    pub fn renames(&self) -> Result<Renames, &'static str> {
        match self.detect_renames.filter(|_| self.deletes()).unwrap_or_default() {
            Renames::Never => Ok(Renames::Never),
            _ if self.delete_before => {
                Err("delete-before and detect-renames exclude each other: what is deleted first cannot be renamed")
            }
            renames => Ok(renames),
        }
    }

    /// Who becomes whom.
    ///
    /// # Errors
    /// The sentence that refuses two new owners, or groups, of one item.
    pub fn accounts(&self) -> Result<AccountMaps, &'static str> {
        let given = self.chown.as_ref().map(NewOwner::maps).cloned().unwrap_or_default();
        let one = |given: AccountMap, mapped: &Option<AccountMap>, refused| match mapped {
            None => Ok(given),
            Some(mapped) if given.rules().is_empty() => Ok(mapped.clone()),
            Some(_) => Err(refused),
        };
        Ok(AccountMaps {
            users: one(
                given.users,
                &self.usermap,
                "chown names an owner for all, and usermap others: give one of them",
            )?,
            groups: one(
                given.groups,
                &self.groupmap,
                "chown names a group for all, and groupmap others: give one of them",
            )?,
        })
    }

    /// Which files are written over where they stand.
    ///
    /// # Errors
    /// The sentence that refuses what needs the old file to stay as it is.
    pub fn in_place(&self) -> Result<InPlace, &'static str> {
        let in_place = match (self.inplace, self.append) {
            (true, _) => InPlace::Always,
            (false, true) => InPlace::Append,
            (false, false) => return Ok(InPlace::Never),
        };
        if self.keeps() {
            return Err("what is written in place is not kept: copy without inplace and append, or without backup");
        }
        if self.references()?.is_some() {
            return Err(
                "what is linked must not change: copy without inplace and append, or without link-dest, copy-dest \
                        and compare-dest",
            );
        }
        Ok(in_place)
    }

    /// Which files are taken; ages are counted from `now`.
    fn files(&self, now: Time) -> FileBounds {
        let since = |age: &Option<Age>| age.as_ref().map(|age| now.before(age.time()));
        FileBounds {
            size_min: self.min_size.map(|size| size.0),
            size_max: self.max_size.map(|size| size.0),
            modified_first: since(&self.max_age),
            modified_last: since(&self.min_age),
        }
    }

    /// Has filters leave out the files that [`super::OF_FILES`] leave out; their ages are counted from `now`.
    pub fn choose_files(&self, now: Time, filters: &mut Filters) {
        filters.files = self.files(now);
        filters.one_file_system = self.one_file_system;
    }

    /// Has a copy do what was asked for; but `only`, whose paths the caller chooses. The ages of files are counted
    /// from `now`, which is one for all attempts.
    ///
    /// # Errors
    /// As [`AskedOptions::digests`].
    pub fn apply(&self, now: Time, options: &mut CopyOptions) -> Result<(), &'static str> {
        options.digest = self.digests()?;
        options.delete = self.deletion();
        options.delete_first = self.delete_before;
        options.renames = self.renames()?;
        options.backup = self.backup().map_err(|_| "what is kept has no such name")?;
        if let Some(lines) = &self.filters {
            options.filters = lines.filters(self.delete_excluded).map_err(|_| "the rules cannot be read")?;
        }
        self.choose_files(now, &mut options.filters);
        options.filters.links = self.links.unwrap_or_default();
        options.require_mount |= self.require_mount;
        options.existing = self.existing.unwrap_or(options.existing);
        // What is not newer is replaced, but not by what it is already. Who deletes wants both sides to be alike.
        options.references = self.references()?;
        let refers = options.references.is_some();
        let compares = options.existing == Existing::Older || options.delete.is_some() || refers;
        let default = if compares { Compare::SizeAndTime } else { options.compare };
        options.compare = self.compare.unwrap_or(default);
        options.modify_window = self.modify_window.map_or(options.modify_window, WindowSeconds::time);
        options.no_times |= self.no_times;
        options.kept.owner |= self.owner;
        options.kept.group |= self.group;
        options.kept.special_bits |= self.special_bits;
        options.kept.acls |= self.acls;
        let xattrs = self.xattrs.unwrap_or_default();
        options.kept.user_xattrs |= xattrs != KeptXattrs::None;
        options.kept.capabilities |= xattrs == KeptXattrs::All;
        options.kept.trusted_xattrs |= self.trusted;
        options.kept.selinux |= self.selinux;
        // Who deletes wants both sides to be alike.
        let links = options.kept.hard_links || options.delete.is_some();
        options.kept.hard_links = self.hard_links.map_or(links, |links| links == HardLinks::Keep);
        options.kept.devices |= self.devices;
        options.kept.specials |= self.specials;
        options.kept.access_times |= self.access_times;
        options.mode_change = self.chmod.as_ref().map(ModeChanges::change).or(options.mode_change);
        options.accounts = self.accounts()?;
        options.kept.owner |= !options.accounts.users.rules().is_empty();
        options.kept.group |= !options.accounts.groups.rules().is_empty();
        options.numeric_ids |= self.numeric_ids;
        options.fake_super |= self.fake_super;
        options.from_fake_super |= self.from_fake_super;
        options.top_attributes |= self.top_attributes;
        options.verify = self.verify.unwrap_or(options.verify);
        options.encrypt = self.encrypt.unwrap_or(options.encrypt);
        options.streams = self.streams.map_or(options.streams, Streams::fixed);
        options.polite |= self.polite;
        options.block_bytes = self.block_bytes.map(BlockSize::bytes).or(options.block_bytes);
        options.rate_limit = self.rate_limit.map_or(options.rate_limit, RateBound::bytes);
        options.congestion = self.congestion.or(options.congestion);
        options.durability = self.durable.unwrap_or(options.durability);
        options.delta = self.delta.unwrap_or(options.delta);
        options.in_place = self.in_place()?;
        options.compress |= self.compress;
        options.growing = self.growing.unwrap_or(options.growing);
        options.growing_idle = self.growing_idle.as_ref().map_or(options.growing_idle, GrowingIdle::time);
        options.growing_lock = self.growing_lock.or(options.growing_lock);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{OF_A_COPY, PRIORITY, Takes};
    use super::*;

    #[test]
    fn each_option_of_a_copy_is_set_by_the_text_that_its_definition_takes() {
        for option in OF_A_COPY {
            let words = match option.kind {
                Takes::Words(choices) => choices().iter().map(|choice| choice.word).collect(),
                Takes::Switch => vec!["true"],
                _ => option.examples.to_vec(),
            };
            for text in words {
                let mut asked = AskedOptions::default();
                assert_eq!(asked.set(option, text), Ok(()), "{}", option.name);
                assert_ne!(asked, AskedOptions::default(), "{}: {text}", option.name);
            }
            let mut asked = AskedOptions::default();
            assert!(asked.set(option, "no such value\n").is_err(), "{}", option.name);
            assert_eq!(asked, AskedOptions::default(), "{}: what is refused is not asked for", option.name);
        }
        assert!(AskedOptions::default().set(&PRIORITY, "3").is_err());
    }

    #[test]
    fn copy_is_as_asked_for_and_else_as_by_default() {
        let applied = |asked: AskedOptions| {
            let mut options = CopyOptions::default();
            asked.apply(Time::default(), &mut options).map(|()| options)
        };
        let default = CopyOptions::default();
        let plain = applied(AskedOptions::default()).unwrap();
        assert_eq!((plain.verify, plain.digest, plain.encrypt), (default.verify, default.digest, default.encrypt));
        assert_eq!((plain.existing, plain.durability), (default.existing, default.durability));
        let with = |verify, encrypt, digest| AskedOptions { verify, encrypt, digest, ..AskedOptions::default() };
        let none = Some(Verify::None);
        // What nothing is verified by is not computed, but in the clear it is.
        assert_eq!(applied(with(none, None, None)).unwrap().digest, Digests::NONE);
        assert_eq!(applied(with(none, Some(Encrypt::None), None)).unwrap().digest, Digests::BLAKE3);
        assert!(applied(with(None, None, Some(Digests::NONE))).is_err());
        let numbers = AskedOptions {
            streams: Some(Streams::Fixed(3)),
            rate_limit: Some(RateBound::new(7)),
            growing: Some(GrowingSources::Snapshot),
            ..AskedOptions::default()
        };
        let numbers = applied(numbers).unwrap();
        assert_eq!(
            (numbers.streams, numbers.rate_limit, numbers.growing),
            (Some(3), Some(7), GrowingSources::Snapshot)
        );
        let none = AskedOptions {
            streams: Some(Streams::Auto),
            rate_limit: Some(RateBound::new(0)),
            ..AskedOptions::default()
        };
        let mut options = CopyOptions { streams: Some(4), rate_limit: Some(9), ..CopyOptions::default() };
        none.apply(Time::default(), &mut options).unwrap();
        assert_eq!((options.streams, options.rate_limit), (None, None));
    }
}
