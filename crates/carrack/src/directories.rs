//! Where this user's configuration and state are.

use std::path::PathBuf;

/// `$XDG_CONFIG_HOME/carrack` or `~/.config/carrack`.
pub fn config_directory() -> PathBuf {
    base_directory("XDG_CONFIG_HOME", ".config")
}

/// `$XDG_STATE_HOME/carrack` or `~/.local/state/carrack`.
pub fn state_directory() -> PathBuf {
    base_directory("XDG_STATE_HOME", ".local/state")
}

/// `$XDG_DATA_HOME/carrack` or `~/.local/share/carrack`.
#[cfg(feature = "slim-inside")]
pub fn data_directory() -> PathBuf {
    base_directory("XDG_DATA_HOME", ".local/share")
}

fn base_directory(variable: &str, below_home: &str) -> PathBuf {
    let set = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    // One that is relative would lead into whatever directory the command is run in.
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let home = || home.unwrap_or_else(|| PathBuf::from("/")).join(below_home);
    set.unwrap_or_else(home).join("carrack")
}
