//! What the service tells systemd, or whatever else has started it and listens at `NOTIFY_SOCKET`.

use std::time::Duration;

use sd_notify::NotifyState;

/// Tells that the service can be used.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Tells how it is, in words.
pub fn status(status: &str) {
    tell(&[NotifyState::Status(status)]);
}

/// Tells that the configuration is being read again; [`ready`] follows.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// Tells that it ends.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Tells that it lives.
pub fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// How often [`alive`] is to be called: half of the time after which the service would be ended. `None`: never.
pub fn watchdog_interval() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|most| most / 2)
}

fn tell(states: &[NotifyState<'_>]) {
    // Without a socket this does nothing, and a manager that does not listen is not ours to mend.
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager could not be told");
    }
}
