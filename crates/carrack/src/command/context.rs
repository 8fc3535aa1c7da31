//! What the engine works with: all that it may know of this process and its environment is gathered here.

use carrack_engine::context::Context;
use carrack_engine::stop::{Stop, StopReason};
use carrack_sys::signal;

/// For the one verb of this process.
pub fn context() -> Context {
    Context { stop: stop() }
}

/// Ends the work when the process gets a signal.
pub fn stop() -> Stop {
    Stop::watching(|| {
        signal::stop_requested().map(|stop| match stop {
            signal::Stop::Interrupt => StopReason::Interrupt,
            signal::Stop::Terminate => StopReason::Terminate,
        })
    })
}
