//! The packets without a tag that a client sends before there is a session.
use super::{Malformed, Reader};

/// Maximum length of a startup packet, the same as PostgreSQL's.
pub const MAX: usize = 10_000;

/// The first packet of a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Packet {
    /// Asks for TLS.
    Ssl,
    /// Asks for GSS encryption.
    Gss,
    /// Requests cancelling the current query of a backend.
    Cancel,
    /// Starts a session; parameters in their order.
    Startup(Vec<(String, String)>),
}

/// Reads a packet (without its length).
pub fn parse(body: &[u8]) -> Result<Packet, Malformed> {
    let mut reader = Reader::new(body, "startup packet");
    match reader.u32()? {
        80_877_103 => return Ok(Packet::Ssl),
        80_877_104 => return Ok(Packet::Gss),
        80_877_102 => return Ok(Packet::Cancel),
        version if version >> 16 == 3 => {}
        _ => return Err(Malformed("unsupported protocol version")),
    }
    let mut parameters = Vec::new();
    loop {
        let name = reader.str()?;
        if name.is_empty() {
            return Ok(Packet::Startup(parameters));
        }
        parameters.push((name.to_owned(), reader.str()?.to_owned()));
    }
}
