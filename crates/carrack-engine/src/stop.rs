//! Whether the work is to stop.

use carrack_core::report::{ErrorCode, Failure, Side};
use carrack_sys::signal::{Stop, stop_requested};

use crate::error::failure;

/// Whether the user, or the system, wants the command to stop.
pub fn stopped() -> Option<Failure> {
    stop_requested().map(|stop| match stop {
        Stop::Interrupt => failure(
            ErrorCode::Interrupted,
            Side::Command,
            "interrupted; run the same command again to copy what is missing",
        ),
        Stop::Terminate => failure(
            ErrorCode::Terminated,
            Side::Command,
            "terminated; run the same command again to copy what is missing",
        ),
    })
}
