//! The log of an operator, on standard error: one line an event, as text or as JSON.

use carrack_core::path::display_bytes;
use carrack_engine::node::SessionEnd;
use tracing::Level;

use crate::model::word_enum;

/// How lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

word_enum! {
    /// What the log has.
    #[derive(Default)]
    pub enum LogLevel {
        Error "error" "what has failed and needs a hand"
        Warn "warn" "that, and what is not as it should be"
        #[default]
        Info "info" "that, and each session, login, change and end"
        Debug "debug" "that, and what helps whoever looks for a fault"
    }
}

/// Begins the log of this process. A second call changes nothing.
pub fn start(format: LogFormat, level: LogLevel) {
    let level = match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
    };
    let lines = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_ansi(false);
    // Whoever has set another one wants that.
    let _ = match format {
        LogFormat::Text => tracing::subscriber::set_global_default(lines.finish()),
        LogFormat::Json => tracing::subscriber::set_global_default(lines.json().flatten_event(true).finish()),
    };
}

/// A line for a session of a node: who, from where, what, how many bytes, and how it ended.
pub fn session(end: &SessionEnd) {
    let peer = end.peer.ip().to_canonical();
    let seconds = end.lasted.as_secs_f64();
    if let Some(why) = &end.refused {
        tracing::warn!(
            target: "carrack::node", %peer, outcome = "refused", code = why.code.name(), why = why.message(),
            "session refused"
        );
        return;
    }
    let work = &end.work;
    let who = if end.has_shown_token { "token" } else { "anonymous" };
    let path = display_bytes(&work.path).to_string();
    let (outcome, why) = match &work.failure {
        Some(failure) => (failure.code.name(), failure.message()),
        None => ("done", String::new()),
    };
    tracing::info!(
        target: "carrack::node", %peer, who, what = work.verb.unwrap_or("nothing"), path, requests = work.requests,
        bytes_sent = work.bytes_sent, bytes_received = work.bytes_received, seconds, outcome, why,
        "session"
    );
}

/// A line for whoever runs the service.
pub fn note(text: &str) {
    tracing::info!(target: "carrack::service", "{text}");
}

/// The same for what is not as it should be.
pub fn warn(text: &str) {
    tracing::warn!(target: "carrack::service", "{text}");
}
