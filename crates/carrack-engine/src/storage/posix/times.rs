//! Times of messages as the system has them, and back.

use carrack_core::attributes::{OtherAttributes, Time};
use carrack_sys::dir::{self, ItemTimes};

/// A time as the system takes it.
pub fn system_time(time: Time) -> dir::FileTime {
    dir::FileTime { seconds: time.seconds, nanos: time.nanos }
}

/// A time as the system tells it.
pub fn time_of(time: dir::FileTime) -> Time {
    Time { seconds: time.seconds, nanos: time.nanos }
}

/// The times that an item is to have; `None` where none is set.
pub fn times_to_set(mtime: Option<Time>, others: &OtherAttributes) -> Option<ItemTimes> {
    let (modified, accessed) = (mtime.map(system_time), others.access_time().map(system_time));
    (modified.is_some() || accessed.is_some()).then_some(ItemTimes { modified, accessed })
}
