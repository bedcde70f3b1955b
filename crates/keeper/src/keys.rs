//! The keeper's own keys: the static key that authenticates it, and the root key from which the
//! keys of export envelopes, hashes, redo records and the store are derived.
//!
//! The root key is wrapped by crate `rootkey`.
//!
//! Invariant: no new root key is created if a store was written under another one.

use crate::brokered;
use crate::config::Config;
use crate::zone::Zone;
use aws_lc_rs::hmac;
use channel::hidden;
use channel::secret::{Secret, wipe_stack};
use envelope::{Error, ExportKey, Opener, PublicKey, Role, Sealer, SecretKey};
use ledger::SigningKey;
use rootkey::{KeySource, RootKey, RootKeyFile, Source};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

/// File in the data directory that names the root key of the store.
const OWNER_FILE: &str = "root-key-id";
/// Maximum number of epochs of export envelopes whose keys are cached.
const EPOCHS_MAX: usize = 64;

type Epoch = [u8; contract::envelope::EPOCH_BYTES];

/// The keeper's own keys.
pub struct Keys {
    /// Authenticates this keeper to clients.
    pub secret: SecretKey,
    /// Identifies it to clients.
    pub public: PublicKey,
    /// Signs results and checkpoints.
    pub signing: Arc<SigningKey>,
    /// Seals export envelopes.
    pub export: Sealer,
    /// Key of declassified hashes.
    pub hash: Box<Zeroizing<[u8; 16]>>,
    /// Source of the key of standing grants at rest.
    pub standing: Box<Zeroizing<[u8; 32]>>,
    /// Key of the hashes of protected values in logs of ledger tables.
    pub ledger: Box<hmac::Key>,
    root: Arc<Secret<32>>,
    openers: Mutex<HashMap<Epoch, Arc<Opener>>>,
}

struct Length(usize);

impl aws_lc_rs::hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Equal in every run, because hashes may be stored in indexes.
fn derived<const N: usize>(root: &[u8; 32], what: &[u8]) -> Result<Zeroizing<[u8; N]>, Error> {
    use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
    let mut key = Zeroizing::new([0; N]);
    Salt::new(HKDF_SHA256, b"confide")
        .extract(root)
        .expand(&[what], Length(N))
        .and_then(|okm| okm.fill(&mut *key))
        .map_err(|_| Error::KeyFormat("cannot derive"))?;
    Ok(key)
}

impl Keys {
    /// The keys derived from a static key and a root key.
    fn new(secret: SecretKey, root: Arc<Secret<32>>) -> Result<Keys, Error> {
        let epoch = ExportKey::fresh_epoch()?;
        Ok(Keys {
            public: secret.public()?,
            signing: Arc::new(signing_key(&secret)?),
            secret,
            export: Sealer::export(ExportKey::derive(&root, epoch))?,
            hash: derived(&root, b"confide hash 1").map(Box::new)?,
            standing: derived(&root, b"confide standing grants 1").map(Box::new)?,
            ledger: Box::new(hmac::Key::new(
                hmac::HMAC_SHA256,
                &*derived::<32>(&root, b"confide ledger 1")?,
            )),
            root,
            openers: Mutex::new(HashMap::new()),
        })
    }

    /// The keys of a configuration. Creates the static key if it does not exist, and the root key
    /// if there is no store either.
    ///
    /// # Errors
    /// Each names the file or the key source.
    pub fn of(config: &Config) -> Result<Keys, Trouble> {
        let keys = hidden::keys(|| Keys::read(config));
        wipe_stack::<256>();
        keys.unwrap_or_else(|full| Err(Trouble::Other(format!("secret_memory_size: {full}"))))
    }

    fn read(config: &Config) -> Result<Keys, Trouble> {
        let secret = static_key(&config.key_file)?;
        let source = source(config, &secret)?;
        let root = root_key(config, &*source).map_err(Trouble::Root)?;
        let root = hide(config, root).map_err(Trouble::Other)?;
        Keys::new(secret, root).map_err(|e| Trouble::Other(e.to_string()))
    }

    /// The keys in two files, for tests.
    pub fn load(key_file: &Path, root_file: &Path) -> Result<Keys, String> {
        let config = Config {
            key_file: key_file.into(),
            root_key_file: root_file.into(),
            ..Config::default()
        };
        Keys::of(&config).map_err(|e| e.to_string())
    }

    /// The root key, from which other modules derive keys.
    pub fn root(&self) -> &Arc<Secret<32>> {
        &self.root
    }

    /// The opener of export envelopes of an epoch.
    pub fn export_opener(&self, epoch: Epoch) -> Result<Arc<Opener>, Error> {
        let mut openers = self.openers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opener) = openers.get(&epoch) {
            return Ok(Arc::clone(opener));
        }
        let opener = hidden::keys(|| Opener::export(&ExportKey::derive(&self.root, epoch)));
        let opener = Arc::new(opener.map_err(|_| Error::NoRoom)??);
        if openers.len() >= EPOCHS_MAX {
            openers.clear();
        }
        openers.insert(epoch, Arc::clone(&opener));
        Ok(opener)
    }
}

/// Why no keys are available.
#[derive(Debug)]
pub enum Trouble {
    /// The root key is not available.
    Root(rootkey::Error),
    /// Anything else.
    Other(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Root(error) => write!(f, "{error}\nHint: {}", error.hint()),
            Trouble::Other(what) => f.write_str(what),
        }
    }
}

/// The root key in memory of its own; what it was unwrapped in is overwritten.
fn hide(config: &Config, root: RootKey) -> Result<Arc<Secret<32>>, String> {
    let hidden = Secret::new(root.expose(), config.secret_memory.into());
    let hidden = hidden.map_err(|e| format!("secret_memory: no memfd_secret: {e}"))?;
    match hidden.is_hidden() {
        true => tracing::info!("the root key is in hidden memory"),
        false => tracing::info!("the root key is in memory that root can read (secret_memory)"),
    }
    Ok(Arc::new(hidden))
}

fn static_key(path: &Path) -> Result<SecretKey, Trouble> {
    let at = |error: Error| Trouble::Other(format!("{}: {error}", path.display()));
    if !path.exists() {
        let made = SecretKey::generate();
        made.and_then(|key| key.write_file(Role::Keeper, path))
            .map_err(at)?;
        tracing::info!(file = %path.display(), "made a new static key");
    }
    SecretKey::read_file(Role::Keeper, path).map_err(at)
}

/// The source of the key that wraps the root key.
fn source(config: &Config, secret: &SecretKey) -> Result<Source, Trouble> {
    let text = &config.root_key_source;
    if !text.starts_with(brokered::KIND) {
        let file = RootKeyFile::new(&config.root_key_file);
        return file.source(text).map_err(Trouble::Root);
    }
    let zone = zone(config, secret)?;
    let source = brokered::source(text, secret, zone).map_err(Trouble::Root)?;
    Ok(Box::new(source))
}

/// A key for an encrypted disk, from the broker that has the root key's wrapping key (docs/attestation.md). What
/// asks has a key of its own: `key_file` may be on that disk.
///
/// # Errors
/// There is no broker, or it gives none.
pub fn disk_key(config: &Config, name: &str) -> Result<broker::WrappingKey, Trouble> {
    let secret = SecretKey::generate().map_err(|e| Trouble::Other(e.to_string()))?;
    let zone = zone(config, &secret)?;
    brokered::disk_key(&config.root_key_source, name, &secret, &zone).map_err(Trouble::Root)
}

/// What shows which program has a key.
fn zone(config: &Config, secret: &SecretKey) -> Result<Zone, Trouble> {
    let other = |e: Error| Trouble::Other(e.to_string());
    let public = secret.public().map_err(other)?;
    let signing = signing_key(secret).map_err(other)?;
    Zone::of(&config.evidence, &public, &signing).map_err(Trouble::Other)
}

fn signing_key(secret: &SecretKey) -> Result<SigningKey, Error> {
    let key = SigningKey::from_seed(&*secret.signing_seed()?);
    key.map_err(|_| Error::KeyFormat("cannot sign"))
}

fn root_key(config: &Config, source: &dyn KeySource) -> Result<RootKey, rootkey::Error> {
    let file = RootKeyFile::new(&config.root_key_file);
    let name = config.root_key_file.display();
    let durable = !config.data_dir.as_os_str().is_empty();
    let root = if file.exists() || (durable && holds_a_store(&config.data_dir)) {
        file.open(source)?
    } else {
        tracing::info!(file = %name, source = source.name(), "making a new root key");
        file.create(source)?
    };
    if source.is_weak() {
        tracing::warn!(
            file = %name,
            source = source.name(),
            "THE ROOT KEY IS WRAPPED BY A FILE: whoever can read both files can read \
             everything. For development only; see root_key_source"
        );
    }
    if durable {
        check_owner(&config.data_dir, &root)?;
    }
    Ok(root)
}

fn holds_a_store(directory: &Path) -> bool {
    let files = [OWNER_FILE, "manifest", "manifest.next"];
    files.iter().any(|name| directory.join(name).exists())
}

/// A store names its root key, so that a wrong key can be reported. This is no protection; every
/// file of the store is sealed anyway.
fn check_owner(directory: &Path, root: &RootKey) -> Result<(), rootkey::Error> {
    let path = directory.join(OWNER_FILE);
    let io = |error| rootkey::Error::Io {
        file: path.display().to_string(),
        error,
    };
    match std::fs::read_to_string(&path) {
        Ok(text) if text.trim() == root.name() => Ok(()),
        Ok(text) => Err(rootkey::Error::OtherKey {
            directory: directory.display().to_string(),
            found: root.name(),
            expected: text.trim().chars().take(64).collect(),
        }),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            use std::os::unix::fs::DirBuilderExt;
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true).mode(0o700);
            builder.create(directory).map_err(io)?;
            std::fs::write(&path, format!("{}\n", root.name())).map_err(io)
        }
        Err(e) => Err(io(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A keeper that starts again with the same files opens its old exports and
    /// hashes as before.
    #[test]
    fn keys_survive() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let (key, root) = (dir.path().join("k"), dir.path().join("r"));
        let first = Keys::load(&key, &root)?;
        let second = Keys::load(&key, &root)?;
        assert_eq!(first.public, second.public);
        assert_eq!(*first.hash, *second.hash);
        let mut sealed = Vec::new();
        first.export.seal(3, 0, b"abcd", &mut sealed)?;
        let epoch = envelope::Envelope::parse(&sealed)?.epoch.ok_or("epoch")?;
        let mut plain = Vec::new();
        second.export_opener(epoch)?.open(&sealed, &mut plain)?;
        assert_eq!(plain, b"abcd");
        std::fs::set_permissions(&root, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        assert!(Keys::load(&key, &root).is_err());
        Ok(())
    }
}
