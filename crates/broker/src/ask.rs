//! The keeper's side.

use crate::{WrappingKey, frame};
use envelope::handshake::{Responder, Use};
use envelope::{Evidence, PublicKey, SecretKey};
use std::io::{Read, Write};
use zeroize::Zeroizing;

/// Makes evidence for a nonce, or says why there is none.
pub type Document<'a> = dyn Fn(&[u8]) -> Result<Vec<u8>, String> + 'a;

/// Who asks whom for what.
pub struct Asking<'a> {
    /// The keeper's static key.
    pub secret: &'a SecretKey,
    /// The broker's static key: no other is believed.
    pub broker: &'a PublicKey,
    /// Name of the key.
    pub name: &'a str,
    /// Makes the evidence.
    pub document: &'a Document<'a>,
}

/// Asks on a stream to a broker.
///
/// # Errors
/// What failed, or why the broker refuses.
pub fn ask<S: Read + Write>(stream: &mut S, asking: &Asking<'_>) -> Result<WrappingKey, String> {
    let one = next(stream, frame::HANDSHAKE)?;
    let responder = Responder::begin(asking.secret, Use::Broker);
    let mut responder = responder.map_err(|e| e.to_string())?;
    if !responder.receive(&one).map_err(|e| e.to_string())? {
        return Err("it asks for no evidence".into());
    }
    let evidence = Evidence::new(0, (asking.document)(&one)?);
    let two = responder.respond(&evidence).map_err(|e| e.to_string())?;
    send(stream, frame::HANDSHAKE, &two)?;
    let three = next(stream, frame::HANDSHAKE)?;
    let (broker, keys) = responder.finish(&three).map_err(|e| e.to_string())?;
    if broker != *asking.broker {
        return Err(format!("another broker answers, with key {broker}"));
    }
    let (sealer, opener) = keys.into_keeper().map_err(|e| e.to_string())?;
    let mut request = Vec::new();
    sealer
        .seal(contract_bytea(), 0, asking.name.as_bytes(), &mut request)
        .map_err(|e| e.to_string())?;
    send(stream, frame::SEALED, &request)?;
    let answer = next(stream, frame::SEALED)?;
    let mut key = Zeroizing::new(Vec::new());
    opener.open(&answer, &mut key).map_err(|e| e.to_string())?;
    let key = key.as_slice().try_into().map(Zeroizing::new);
    key.map_err(|_| "its answer is no key".into())
}

/// Envelopes have a type: that of bytes.
pub(crate) const fn contract_bytea() -> u8 {
    contract::TypeCode::Bytea as u8
}

fn next(stream: &mut impl Read, wanted: u8) -> Result<Vec<u8>, String> {
    let (kind, content) = frame::receive(stream).map_err(|e| format!("no answer: {e}"))?;
    match kind {
        frame::REFUSED => {
            // From whoever is at the other end: printable, and not long.
            let text = String::from_utf8_lossy(&content);
            let text = text.chars().filter(|c| !c.is_control()).take(300);
            Err(format!("it refuses: {}", text.collect::<String>()))
        }
        kind if kind == wanted => Ok(content),
        _ => Err("it does not speak as a broker does".into()),
    }
}

fn send(stream: &mut impl Write, kind: u8, content: &[u8]) -> Result<(), String> {
    frame::send(stream, kind, content).map_err(|e| format!("cannot send: {e}"))
}
