//! Times of messages as the system has them, and back.

use carrack_core::attributes::Time;
use carrack_sys::dir;

/// A time as the system takes it.
pub fn system_time(time: Time) -> dir::FileTime {
    dir::FileTime { seconds: time.seconds, nanos: time.nanos }
}

/// A time as the system tells it.
pub fn time_of(time: dir::FileTime) -> Time {
    Time { seconds: time.seconds, nanos: time.nanos }
}
