//! Golden vectors: bytes that both sides must make of the same content.

use contract::hello::{Hello, Status, Welcome};
use contract::{Fid, Header, Kind};
use std::fmt::Write;

fn bytes(out: &mut String, name: &str, bytes: &[u8]) {
    let _ = write!(out, "static const unsigned char {name}[] = {{");
    for (i, b) in bytes.iter().enumerate() {
        let _ = write!(out, "{}0x{b:02x},", if i % 12 == 0 { "\n\t" } else { " " });
    }
    out.push_str("\n};\n");
}

/// The content that the vectors stand for; the C test builds the same.
pub fn hello() -> Hello {
    Hello {
        version: 1,
        pid: 4711,
        database: 16384,
        session: 0x0102_0304_0506_0708,
        pass: *b"0123456789abcdef",
        role: 16385,
    }
}

fn welcome() -> Welcome {
    Welcome {
        version: 1,
        status: Status::TooManyChannels,
        arena: contract::fid::ARENA_BASE + 6,
        session: 9,
        range: 0x0A0B_0C0D,
        incarnation: 0xA1B2_C3D4_E5F6_0718,
    }
}

fn header() -> Header {
    Header {
        length: 40,
        kind: Kind::Eval as u16,
        sequence: 77,
    }
}

pub(super) fn text() -> String {
    let mut out = format!("/* {} */\n", super::NOTICE);
    out.push_str("/* Hello: version 1, pid 4711, database 16384, session 0x0102030405060708, pass \"0123456789abcdef\", role 16385 */\n");
    bytes(&mut out, "golden_hello", &hello().encode());
    out.push_str("/* Welcome: version 1, TooManyChannels, arena ARENA_BASE + 6, session 9, range 0x0A0B0C0D, incarnation 0xA1B2C3D4E5F60718 */\n");
    bytes(&mut out, "golden_welcome", &welcome().encode());
    out.push_str("/* Header: 40 bytes, Eval, sequence 77 */\n");
    bytes(&mut out, "golden_header", &header().encode());
    out.push_str("/* FID: partition 0x12345, slot 0x6789abcdef0 */\n");
    let fid = Fid::new(0x12345, 0x678_9abc_def0);
    let _ = writeln!(out, "#define GOLDEN_FID UINT64_C({})", fid.0);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_decode_to_what_they_were_made_of() {
        assert_eq!(Hello::decode(&hello().encode()), Some(hello()));
        assert_eq!(Welcome::decode(&welcome().encode()), Some(welcome()));
        assert_eq!(Header::decode(&header().encode()), header());
    }
}
