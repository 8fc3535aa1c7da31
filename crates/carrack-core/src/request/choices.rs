//! What a copy may be asked to do in one of several ways, each by a word.

use crate::words::words;

words! {
    /// What happens to a destination name that exists already, or does not.
    pub enum Existing {
        0 Replace "replace" "replace it, once the new file is whole"
        1 Keep "keep" "leave it as it is"
        2 Only "only" "write only over names that exist"
        3 Older "older" "replace it unless its modification time is later"
    }
}

words! {
    /// What makes two files the same, so that nothing is sent.
    #[derive(Default)]
    pub enum Compare {
        #[default]
        0 Nothing "none" "nothing: every file is sent"
        1 Size "size" "one size"
        2 SizeAndTime "size,mtime" "one size and one modification time"
        3 Content "checksum" "one size and one content, which both sides read"
    }
}

words! {
    /// How a file is proved before its name appears.
    pub enum Verify {
        0 Wire "wire" "compare the digest of what the receiver wrote"
        /// Storage is read past the cache.
        1 Disk "disk" "compare also what storage gives back"
        3 Source "source" "as wire, and compare the source read a second time"
        /// The report says so.
        2 None "none" "compare nothing"
    }
}

words! {
    /// Whether of a file that has changed only what differs is sent.
    #[derive(Default)]
    pub enum Delta {
        /// Where reading is faster than sending.
        #[default]
        0 Auto "auto" "send what differs where reading both files is faster than sending, else the whole file"
        1 Always "always" "send what differs"
        2 Never "never" "send the whole file"
    }
}

words! {
    /// What becomes of names of one file.
    pub enum HardLinks {
        0 Keep "keep" "they are names of one file at the destination, too"
        1 Separate "separate" "each becomes a file of its own"
    }
}

words! {
    /// Which extended attributes are kept.
    #[derive(Default)]
    pub enum KeptXattrs {
        /// The report counts items that have some.
        #[default]
        0 None "none" "keep none"
        1 User "user" "keep those of users, with names that begin with user."
        2 All "all" "keep those of users, and capabilities of programs"
    }
}

words! {
    /// Which file of the destination is believed to be one that the source has renamed.
    #[derive(Default)]
    pub enum Renames {
        /// Each is sent under its new name, and deleted under its old one.
        #[default]
        0 Never "never" "send each file under its new name"
        /// Both sides read it.
        1 Content "content" "rename where the digests of both whole files agree; nothing is sent of them"
        /// Size, time in nanoseconds and samples agree, and no other file has that size and time.
        2 Quick "quick" "rename where size, time in nanoseconds and three samples agree; the rest is not compared"
    }
}

words! {
    /// Which large files are written over where they stand, and not replaced once the new one is whole.
    #[derive(Default)]
    pub enum InPlace {
        #[default]
        0 Never "never" "replace files once the new ones are whole"
        1 Append "append" "write on files that are shorter than at the source; replace others"
        2 Always "always" "write over files"
    }
}

words! {
    /// Whether a file that is copied within a file system shares its blocks with its source, until one is written to.
    pub enum Reflink {
        /// Not where digests are told, files are read again, or sources are deleted.
        0 Auto "auto" "share the blocks of large files with the source, where the file system can"
        1 Never "never" "copy every byte"
    }
}

words! {
    /// What has to have reached stable storage before it is said to be there.
    #[derive(Default)]
    pub enum Durability {
        /// The names are synced at the end.
        #[default]
        0 Group "group" "sync files in groups before their names appear"
        1 Each "each" "sync each file before its name appears, and the name right after"
        /// The copy is *received*, not *durable*.
        2 None "none" "sync nothing"
    }
}

words! {
    /// The digest that what arrives is verified by.
    pub enum MainDigest {
        Blake3 "blake3" "cryptographic; the digests of blocks merge into the file's, which is what b3sum prints"
        /// XXH3 with 128 bits. Anyone who wants to can make other content with the same digest. The digests of blocks
        /// do not merge into the file's.
        Xxh128 "xxh128" "a small part of BLAKE3's cost; it finds accidents, not forgery"
    }
}
