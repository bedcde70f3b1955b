//! The broker's side.

use crate::ask::contract_bytea;
use crate::audit::{Audit, Entry};
use crate::{Secret, frame, is_name};
use envelope::SecretKey;
use envelope::handshake::{Initiator, Keeper, Use};
use std::io::{Read, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Says what a keeper's evidence shows, or why it is not good enough for the key of this name. It is
/// asked before the name is known (`None`), and again with it.
pub type Judge = dyn Fn(&Keeper, Option<&str>) -> Result<String, String> + Send + Sync;

/// A broker.
pub struct Broker {
    /// Its static key, which keepers know.
    pub key: SecretKey,
    /// What wrapping keys come from.
    pub secret: Secret,
    /// What is written down.
    pub audit: Mutex<Audit>,
    /// What evidence is good enough.
    pub judge: Box<Judge>,
}

/// How far a request came.
#[derive(Default)]
struct Progress {
    keeper: String,
    name: String,
}

impl Broker {
    /// Serves one keeper on a stream. What it came to is in the log.
    ///
    /// # Errors
    /// Why nothing was given out.
    pub fn serve<S: Read + Write>(&self, stream: &mut S) -> Result<(), String> {
        let mut progress = Progress::default();
        let done = self.release(stream, &mut progress);
        if let Err(why) = &done {
            self.write(&progress, "refused", why)?;
            let _ = frame::send(stream, frame::REFUSED, why.as_bytes());
        }
        done
    }

    fn release<S: Read + Write>(
        &self,
        stream: &mut S,
        progress: &mut Progress,
    ) -> Result<(), String> {
        let begun = Initiator::begin(&self.key, Use::Broker, true);
        let (mut initiator, one) = begun.map_err(|e| e.to_string())?;
        frame::send(stream, frame::HANDSHAKE, &one).map_err(|e| e.to_string())?;
        let two = next(stream, frame::HANDSHAKE)?;
        let keeper = initiator.receive(&two).map_err(|e| e.to_string())?;
        progress.keeper = keeper.key.to_string();
        (self.judge)(&keeper, None)?;
        let (three, keys) = initiator.finish().map_err(|e| e.to_string())?;
        frame::send(stream, frame::HANDSHAKE, &three).map_err(|e| e.to_string())?;
        let (sealer, opener) = keys.into_client().map_err(|e| e.to_string())?;
        let request = next(stream, frame::SEALED)?;
        let mut name = Vec::new();
        opener
            .open(&request, &mut name)
            .map_err(|e| e.to_string())?;
        let name = String::from_utf8(name).ok().filter(|name| is_name(name));
        let name = name.ok_or("it is no name of a key")?;
        progress.name.clone_from(&name);
        let shown = (self.judge)(&keeper, Some(&name))?;
        let key = self.secret.wrapping_key(&name)?;
        let mut answer = Vec::new();
        sealer
            .seal(contract_bytea(), 0, key.as_slice(), &mut answer)
            .map_err(|e| e.to_string())?;
        self.write(progress, "released", &shown)?;
        frame::send(stream, frame::SEALED, &answer).map_err(|e| e.to_string())
    }

    fn write(&self, progress: &Progress, outcome: &str, detail: &str) -> Result<(), String> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let entry = Entry {
            time: since.map_or(0, |since| since.as_secs()),
            keeper: &progress.keeper,
            name: &progress.name,
            outcome,
            detail,
        };
        let mut audit = self.audit.lock().unwrap_or_else(PoisonError::into_inner);
        audit.write(&entry)
    }
}

fn next(stream: &mut impl Read, wanted: u8) -> Result<Vec<u8>, String> {
    match frame::receive(stream) {
        Ok((kind, content)) if kind == wanted => Ok(content),
        Ok(_) => Err("it does not speak as a keeper does".into()),
        Err(e) => Err(format!("no answer: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Asking, ask};
    use std::os::unix::net::UnixStream;

    /// Nothing is given out that cannot be written down.
    #[test]
    fn no_log_no_key() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let key = SecretKey::from_bytes([1; 32]);
        let known = key.public()?;
        let broker = Broker {
            key,
            secret: Secret::from_key(SecretKey::from_bytes([2; 32])),
            audit: Mutex::new(Audit::closed(&dir.path().join("audit"))?),
            judge: Box::new(|_, _| Ok("good".into())),
        };
        let (mut near, mut far) = UnixStream::pair()?;
        let serving = std::thread::spawn(move || broker.serve(&mut far));
        let asking = Asking {
            secret: &SecretKey::from_bytes([3; 32]),
            broker: &known,
            name: "orders",
            document: &|nonce| Ok(nonce.to_vec()),
        };
        assert!(ask(&mut near, &asking).is_err());
        assert!(serving.join().is_ok_and(|done| done.is_err()));
        Ok(())
    }
}
