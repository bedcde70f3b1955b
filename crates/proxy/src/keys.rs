//! Keys for cancel requests, and names of connections for the server.
//!
//! A client keeps the one that it was given at the start, also when its
//! session continues at another process of the server, which has another key.
//!
//! Invariant: only who knows a client's key can cancel its statements.
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_rustls::rustls::crypto::aws_lc_rs;

/// The keys of sessions that were continued: what the client was given, and what holds now.
#[derive(Clone, Default)]
pub struct Keys(Arc<Mutex<HashMap<Vec<u8>, Vec<u8>>>>);

impl Keys {
    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key that holds now.
    pub fn now(&self, given: &[u8]) -> Option<Vec<u8>> {
        self.lock().get(given).cloned()
    }
}

/// The key of a connection.
pub struct Key {
    keys: Keys,
    given: Vec<u8>,
    /// The number of the server's process that has sent the last one.
    pid: u32,
}

impl Key {
    /// A connection without a key.
    pub fn new(keys: Keys) -> Key {
        let given = Vec::new();
        Key {
            keys,
            given,
            pid: 0,
        }
    }

    /// The number of the server's process that has sent the key.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The server has sent a key; the first one is the client's.
    pub fn sent(&mut self, key: &[u8]) {
        let pid = key.first_chunk().map(|pid| u32::from_be_bytes(*pid));
        self.pid = pid.unwrap_or_default();
        match self.given.is_empty() {
            true => key.clone_into(&mut self.given),
            false => {
                self.keys.lock().insert(self.given.clone(), key.to_vec());
            }
        }
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.keys.lock().remove(&self.given);
    }
}

/// A name for a connection that nobody can guess, in letters and digits.
pub fn name() -> String {
    let mut bytes = [0; 16];
    // Without random numbers there is no TLS and no handshake either.
    let _ = aws_lc_rs::default_provider().secure_random.fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
