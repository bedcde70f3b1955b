//! Which provider a setting names.

use crate::provider::{Error, Provider};
use crate::simulated::Simulated;
use crate::tsm::{self, Tsm};
use std::path::PathBuf;

/// The directory that the provider of a setting works in, if it works in one.
pub fn directory(setting: &str) -> Option<PathBuf> {
    match setting.split_once(':') {
        None if setting == "tsm" => Some(tsm::KERNEL.into()),
        Some(("tsm", directory)) => Some(directory.into()),
        _ => None,
    }
}

/// The provider of a setting: `simulated`, `tsm`, or `tsm:` and another directory than the
/// kernel's.
///
/// # Errors
/// [`Error::Setting`], or what the provider lacks.
pub fn provider(setting: &str) -> Result<Box<dyn Provider>, Error> {
    Ok(match (setting, directory(setting)) {
        ("simulated", _) => Box::new(Simulated::new()?),
        (_, Some(directory)) => Box::new(Tsm::new(&directory)?),
        _ => return Err(Error::Setting(setting.to_owned())),
    })
}
