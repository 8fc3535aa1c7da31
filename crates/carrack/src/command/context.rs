//! What the engine works with: all that it may know of this process and its environment is gathered here.

use std::sync::Arc;

use carrack_engine::keys::KnownNodes;
use carrack_engine::tuned::TuningFile;
use carrack_engine::{Context, Standard, Stop, StopReason};
use carrack_sys::{signal, standard};

use crate::directories::config_directory;

/// For the one verb of this process.
pub fn context() -> Context {
    // Not the library's standard output: that keeps a last line to itself, and swallows the error
    // when it cannot be written.
    let standard = Standard { input: Some(Arc::new(standard::input)), output: Some(Arc::new(standard::output)) };
    let keys = Arc::new(KnownNodes::new(config_directory().join("known_nodes")));
    let tuned = Arc::new(TuningFile::new(super::tuning::path()));
    Context { stop: stop(), keys, tuned, standard, ..Context::default() }
}

/// Ends the work when the process gets a signal.
pub fn stop() -> Stop {
    Stop::watching(|| {
        signal::stop_requested().map(|stop| match stop {
            signal::StopSignal::Interrupt => StopReason::Interrupt,
            signal::StopSignal::Terminate => StopReason::Terminate,
            signal::StopSignal::Hangup => StopReason::Hangup,
        })
    })
}
