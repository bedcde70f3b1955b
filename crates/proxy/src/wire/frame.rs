//! Frames: a tag, a length, a body. Finds them in a buffer and writes them.
use bytes::{BufMut, BytesMut};

use super::Malformed;

/// Bytes before the body.
pub const HEADER: usize = 5;

/// Length of the first frame of `buffer`, including its header, if the frame is complete. `max`
/// limits the accepted length.
pub fn first(buffer: &[u8], max: usize) -> Result<Option<usize>, Malformed> {
    let Some(header) = buffer.first_chunk::<HEADER>() else {
        return Ok(None);
    };
    let [_, a, b, c, d] = *header;
    let length = usize::try_from(i32::from_be_bytes([a, b, c, d]))
        .ok()
        .filter(|n| *n >= 4)
        .ok_or(Malformed("length"))?;
    if length > max {
        return Err(Malformed("message is too long"));
    }
    Ok((buffer.len() > length).then_some(length + 1))
}

/// Appends a frame whose body `fill` appends.
pub fn write(out: &mut BytesMut, tag: u8, fill: impl FnOnce(&mut BytesMut)) {
    out.put_u8(tag);
    let at = out.len();
    out.put_i32(0);
    fill(out);
    let length = i32::try_from(out.len() - at).unwrap_or(i32::MAX);
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

/// Appends bytes and a zero byte.
pub fn cstr(out: &mut BytesMut, text: &[u8]) {
    out.put_slice(text);
    out.put_u8(0);
}

/// The body of a frame.
pub fn body(frame: &[u8]) -> &[u8] {
    frame.get(HEADER..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_when_complete() {
        let mut out = BytesMut::new();
        write(&mut out, b'Q', |b| cstr(b, b"SELECT 1"));
        let whole = out.len();
        for n in 0..whole {
            assert_eq!(first(&out[..n], 1000), Ok(None));
        }
        out.put_u8(b'X');
        assert_eq!(first(&out, 1000), Ok(Some(whole)));
        assert_eq!(body(&out[..whole]), b"SELECT 1\0");
        assert!(first(&out, 5).is_err());
        assert!(first(b"Q\0\0\0\x03", 1000).is_err());
        assert!(first(b"Q\xff\0\0\x03", 1000).is_err());
    }
}
