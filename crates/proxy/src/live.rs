//! The parts of the configuration that are read again while the proxy runs, upon RELOAD in the
//! console or SIGHUP: the files `pin_file` and `principals`. (`users_file` is read at each login.)
//!
//! Invariant: either everything takes effect or nothing. New connections use it immediately, open
//! ones after the schema of their database has been read again.
use std::collections::HashMap;
use std::path::Path;

use envelope::{Role, SecretKey};
use rewrite::Pins;

use crate::config::Config;

/// Settings whose files are read again.
const READ_AGAIN: [&str; 2] = ["pin_file", "principals"];

/// The data from these files.
#[derive(Default)]
pub struct Live {
    /// Columns that must be protected.
    pub pins: Pins,
    /// Keys of users that are separate principals.
    pub principals: HashMap<String, SecretKey>,
}

impl Live {
    /// Reads the files named in a configuration.
    pub fn read(config: &Config) -> Result<Live, String> {
        let pins = read_pins(&config.pin_file)?;
        let mut principals = HashMap::new();
        for (user, file) in &config.principals {
            let key = SecretKey::read_file(Role::Client, file);
            let key = key.map_err(|e| format!("{}: {e}", file.display()))?;
            principals.insert(user.clone(), key);
        }
        Ok(Live { pins, principals })
    }
}

fn read_pins(path: &Path) -> Result<Pins, String> {
    if path.as_os_str().is_empty() {
        return Ok(Pins::default());
    }
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Pins::parse(&text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Reads the configuration and its files again; also returns the changed settings that require a
/// restart.
pub fn again(source: Option<&Path>, before: &Config) -> Result<(Live, Vec<String>), String> {
    let config = Config::load(source, std::env::vars())?;
    if config.pin_file.as_os_str().is_empty() && !before.pin_file.as_os_str().is_empty() {
        return Err("pin_file is not set any more: restart the proxy to go on without it".into());
    }
    Ok((Live::read(&config)?, changed(before, &config)))
}

fn changed(before: &Config, after: &Config) -> Vec<String> {
    let table = |config: &Config| toml::Table::try_from(config).unwrap_or_default();
    // `--insecure` is not in the file.
    let after = table(&Config {
        insecure: before.insecure,
        ..after.clone()
    });
    let waits = |(name, value): (String, toml::Value)| {
        (!READ_AGAIN.contains(&name.as_str()) && after.get(&name) != Some(&value)).then_some(name)
    };
    table(before).into_iter().filter_map(waits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_a_restart() {
        let before = Config::default();
        let after = Config {
            max_clients: 7,
            pin_file: "/elsewhere".into(),
            insecure: true,
            ..Config::default()
        };
        assert_eq!(changed(&before, &after), ["max_clients"]);
        assert!(changed(&before, &before).is_empty());
    }
}
