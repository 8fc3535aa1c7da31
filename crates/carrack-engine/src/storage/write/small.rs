//! Small items: hidden ones that wait for their names, and those that are written as they come.

use carrack_core::report::Failure;

use super::SmallFile;

/// What became of a small item.
pub enum Stored {
    /// What is at its name is kept, as was asked for.
    Kept,
    /// What is at its name is the same.
    Same,
    /// Nothing is left to be done.
    Done,
    /// No further name could be made of the file: it is to come by itself.
    Unlinked,
    /// It waits under a hidden name.
    Hidden(Box<dyn Entry>),
}

/// How a small file is to be written in pieces.
pub enum Begun {
    /// What is at its name is kept, as was asked for.
    Kept,
    /// It is not: the store wants all of it at once, by [`super::Destination::write_small`].
    AtOnce,
    /// Piece by piece.
    Growing(Box<dyn Growing>),
}

/// A small item that is whole and waits for its name.
pub trait Entry: Send {
    /// Whether its group has to be synced before it may get its name.
    fn awaits_sync(&self) -> bool {
        false
    }

    /// Where it gets its name: those of one directory are named one after the other. A store without directories says
    /// nothing.
    fn directory(&self) -> &[u8] {
        b""
    }

    /// Reads back what storage holds of a small file, past any cache, and compares, where that was asked for. May be
    /// repeated.
    ///
    /// # Errors
    /// With [`carrack_core::report::ErrorCode::DigestMismatch`] when storage gives back something else.
    fn verify(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Gives it its name; `false` when what has come to stand there is to be kept. When this returns the name shows all
    /// of it. Once; without its name the entry is gone.
    ///
    /// # Errors
    /// Those of [`super::Part::publish`].
    fn publish(&self) -> Result<bool, Failure>;

    /// Removes it: its item will not come. May be repeated.
    fn remove(&self);
}

/// A small file that is written in pieces under its hidden name. Dropped before it is finished, it is removed.
pub trait Growing: Send {
    /// Writes what comes next. An error is told by [`Growing::finish`].
    fn write(&mut self, bytes: &[u8]);

    /// What was written is all of it.
    ///
    /// # Errors
    /// Those of the store, of the writes before as well; nothing is left behind.
    fn finish(self: Box<Self>, small: &SmallFile<'_>) -> Result<Stored, Failure>;
}
