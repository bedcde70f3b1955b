//! The file of the proxy's users: a table of TOML for each, with what it proves itself by and
//! with what the proxy proves itself to the server in its name.
//!
//! Invariant: a file that others than its owner may read is not read; a file is replaced as a
//! whole, and nobody else can read the new one at any time.
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::scram::Verifier;

/// One user. What is not there is no way in.
#[derive(Clone, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// What is kept of its password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scram: Option<String>,
    /// The common name of its certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// The user of the operating system, on the Unix socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The password that the database server wants, if it wants one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_password: Option<String>,
}

impl User {
    /// What is kept of its password.
    pub fn verifier(&self) -> Option<Verifier> {
        self.scram.as_deref().and_then(|text| text.parse().ok())
    }
}

/// All users, by name.
#[derive(Clone, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(transparent)]
pub struct Users(pub BTreeMap<String, User>);

impl Users {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Users, String> {
        let at = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let found = std::fs::metadata(path).map_err(|e| at(&e))?;
        if found.mode() & 0o077 != 0 {
            return Err(at(&"others than its owner may use it; chmod 600 it"));
        }
        let text = std::fs::read_to_string(path).map_err(|e| at(&e))?;
        // Not the error of the parser: it quotes the line.
        let users: Users = toml::from_str(&text).map_err(|_| at(&"not a file of users"))?;
        for (name, user) in &users.0 {
            if user.scram.is_some() && user.verifier().is_none() {
                return Err(at(&format!("{name}: scram is no verifier")));
            }
        }
        Ok(users)
    }

    /// Writes a file anew.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let at = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let text = toml::to_string(self).map_err(|e| at(&e))?;
        let new = path.with_extension("new");
        let write = || -> std::io::Result<()> {
            // What an earlier attempt has left may have other rights.
            let _ = std::fs::remove_file(&new);
            let mut options = std::fs::OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, path)
        };
        write().map_err(|e| at(&e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn file_and_its_rights() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("users.toml");
        let user = User {
            scram: Some(Verifier::new("x").unwrap().to_string()),
            server_password: Some("y \"z".into()),
            ..User::default()
        };
        let users = Users(BTreeMap::from([("app one".to_owned(), user)]));
        users.write(&path).unwrap();
        users.write(&path).unwrap();
        assert!(Users::read(&path).unwrap() == users);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Users::read(&path).is_err());
    }

    #[test]
    fn no_line_is_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("users.toml");
        Users::default().write(&path).unwrap();
        for text in [
            "[app]\nserver_password = secret\n",
            "[app]\nsecret = \"secret\"\n",
            "[app]\nscram = \"secret\"\n",
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Users::read(&path).err().unwrap();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
