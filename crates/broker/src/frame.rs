//! Messages on the stream: kind `u8`, length `u32` LE, content.

use std::io::{self, ErrorKind, Read, Write};

/// No content is longer: a message of the handshake with a document.
const LENGTH_MAX: usize = 65_535;

/// Of the handshake.
pub(crate) const HANDSHAKE: u8 = 1;
/// Sealed under the session's keys.
pub(crate) const SEALED: u8 = 2;
/// Why there is nothing, as text.
pub(crate) const REFUSED: u8 = 3;

/// Sends one.
pub(crate) fn send(stream: &mut impl Write, kind: u8, content: &[u8]) -> io::Result<()> {
    let length = u32::try_from(content.len()).map_err(|_| ErrorKind::InvalidInput)?;
    let mut out = vec![kind];
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(content);
    stream.write_all(&out)?;
    stream.flush()
}

/// The next one, and its kind.
pub(crate) fn receive(stream: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    stream.read_exact(&mut head)?;
    let [kind, length @ ..] = head;
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > LENGTH_MAX {
        return Err(io::Error::new(ErrorKind::InvalidData, "a message too long"));
    }
    let mut content = vec![0; length];
    stream.read_exact(&mut content)?;
    Ok((kind, content))
}
