//! A TPM 2.0's NV counter as freshness counter. It cannot be set, only incremented; if an index is
//! removed and defined again, it starts above every value that any counter of this TPM ever had.
//!
//! Speaks the TPM's own command format (TCG TPM 2.0 Library, part 3) over a device (`/dev/tpmrm0`)
//! or a Unix socket (swtpm): the four commands needed are shorter than the bindings of a library.
//! There are no sessions to protect the bus against an interposer: whoever can talk to the TPM can
//! increment the counter. Then the keeper refuses its store; it never accepts an older one.

use crate::freshness::Freshness;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

const NV_DEFINE_SPACE: u32 = 0x12a;
const NV_INCREMENT: u32 = 0x134;
const NV_READ: u32 = 0x14e;
const NV_READ_PUBLIC: u32 = 0x169;
const OWNER: u32 = 0x4000_0001;
const PASSWORD_SESSION: u32 = 0x4000_0009;
const SHA256: u16 = 0x000b;
/// A counter, written and read with the index's own (empty) password, exempt from the
/// dictionary-attack lockout.
const ATTRIBUTES: u32 = 1 << 2 | 0b0001 << 4 | 1 << 18 | 1 << 25;
const ATTRIBUTE_WRITTEN: u32 = 1 << 29;
const NV_TYPE: u32 = 0b1111 << 4;
const NV_COUNTER: u32 = 0b0001 << 4;
const COUNTER_BYTES: u16 = 8;

const SUCCESS: u32 = 0;
/// The first handle does not exist.
const NO_SUCH_HANDLE: u32 = 0x18b;
/// Try again: NV rate, retry, testing, yielded.
const AGAIN: [u32; 4] = [0x920, 0x922, 0x90a, 0x908];
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);
/// Maximum size of these commands' responses.
const RESPONSE_MAX: u32 = 4096;
const TIMEOUT: Duration = Duration::from_secs(10);

/// A counter in a TPM.
pub struct TpmCounter {
    device: PathBuf,
    index: u32,
}

/// Both directions of a connection.
trait Wire: Read + Write {}
impl<T: Read + Write> Wire for T {}

fn connect(device: &Path) -> io::Result<Box<dyn Wire>> {
    if std::fs::metadata(device)?.file_type().is_socket() {
        let stream = UnixStream::connect(device)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        return Ok(Box::new(stream));
    }
    let file = OpenOptions::new().read(true).write(true).open(device)?;
    Ok(Box::new(file))
}

fn other(what: impl Into<String>) -> io::Error {
    io::Error::other(what.into())
}

fn malformed() -> io::Error {
    other("the TPM's answer is malformed")
}

/// Builds a command: handles, an empty password for the first if requested, parameters.
fn command(code: u32, handles: &[u32], password: bool, parameters: &[u8]) -> Vec<u8> {
    let mut body: Vec<u8> = handles.iter().flat_map(|h| h.to_be_bytes()).collect();
    if password {
        body.extend(9u32.to_be_bytes());
        body.extend(PASSWORD_SESSION.to_be_bytes());
        body.extend([0; 5]); // no nonce, no attributes, an empty password
    }
    body.extend(parameters);
    let tag: u16 = if password { 0x8002 } else { 0x8001 };
    let mut out = tag.to_be_bytes().to_vec();
    out.extend((body.len() as u32 + 10).to_be_bytes());
    out.extend(code.to_be_bytes());
    out.extend(body);
    out
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*word))
}

/// Reads a whole response. A read that a signal has interrupted, as one that stops the process does,
/// is repeated.
fn response(wire: &mut dyn Wire) -> io::Result<Vec<u8>> {
    // A device returns the whole response in one read.
    let mut response = vec![0; RESPONSE_MAX as usize];
    let mut length = 0;
    loop {
        let rest = response.get_mut(length..).ok_or_else(malformed)?;
        match wire.read(rest) {
            Ok(0) => return Err(malformed()),
            Ok(n) => length += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        match u32_at(response.get(..length).unwrap_or_default(), 2) {
            Some(whole) if !(10..=RESPONSE_MAX).contains(&whole) => return Err(malformed()),
            Some(whole) if length >= whole as usize => break,
            _ => {}
        }
    }
    response.truncate(length);
    Ok(response)
}

impl TpmCounter {
    /// Uses the counter with this NV index at this device or socket.
    pub fn new(device: impl Into<PathBuf>, index: u32) -> TpmCounter {
        TpmCounter {
            device: device.into(),
            index,
        }
    }

    /// Sends a command; returns the response code and what follows it.
    fn exchange(&self, command: &[u8]) -> io::Result<(u32, Vec<u8>)> {
        for _ in 0..TRIES {
            let mut wire = connect(&self.device)?;
            wire.write_all(command)?;
            let mut response = response(&mut *wire)?;
            let code = u32_at(&response, 6).ok_or_else(malformed)?;
            if !AGAIN.contains(&code) {
                return Ok((code, response.split_off(10)));
            }
            std::thread::sleep(PAUSE);
        }
        Err(other("the TPM is busy"))
    }

    fn done(&self, what: &str, command: &[u8]) -> io::Result<Vec<u8>> {
        match self.exchange(command)? {
            (SUCCESS, body) => Ok(body),
            (code, _) => Err(other(format!(
                "TPM index {:#x}: {what}: response code {code:#x}",
                self.index
            ))),
        }
    }

    /// Returns the index's attributes; `None` if it is not defined.
    fn attributes(&self) -> io::Result<Option<u32>> {
        match self.exchange(&command(NV_READ_PUBLIC, &[self.index], false, &[]))? {
            (NO_SUCH_HANDLE, _) => Ok(None),
            (SUCCESS, body) => {
                // Size, index, algorithm, attributes.
                let attributes = u32_at(&body, 8).ok_or_else(malformed)?;
                if attributes & NV_TYPE == NV_COUNTER {
                    Ok(Some(attributes))
                } else {
                    Err(other(format!(
                        "TPM index {:#x} is no counter: choose another freshness_tpm_index",
                        self.index
                    )))
                }
            }
            (code, _) => Err(other(format!("TPM: response code {code:#x}"))),
        }
    }

    fn define(&self) -> io::Result<()> {
        let mut public = self.index.to_be_bytes().to_vec();
        public.extend(SHA256.to_be_bytes());
        public.extend(ATTRIBUTES.to_be_bytes());
        public.extend(0u16.to_be_bytes()); // no policy
        public.extend(COUNTER_BYTES.to_be_bytes());
        let mut parameters = 0u16.to_be_bytes().to_vec(); // an empty password
        parameters.extend((public.len() as u16).to_be_bytes());
        parameters.extend(public);
        let define = command(NV_DEFINE_SPACE, &[OWNER], true, &parameters);
        self.done("define", &define).map(|_| ())
    }

    fn increment(&self) -> io::Result<()> {
        let increment = command(NV_INCREMENT, &[self.index, self.index], true, &[]);
        self.done("increment", &increment).map(|_| ())
    }
}

impl Freshness for TpmCounter {
    fn read(&self) -> io::Result<u64> {
        let written = |a: u32| a & ATTRIBUTE_WRITTEN != 0;
        if !self.attributes()?.is_some_and(written) {
            return Ok(0);
        }
        let mut parameters = COUNTER_BYTES.to_be_bytes().to_vec();
        parameters.extend(0u16.to_be_bytes());
        let read = command(NV_READ, &[self.index, self.index], true, &parameters);
        let body = self.done("read", &read)?;
        // Size of the parameters, size of the data, data.
        let bytes = body.get(6..).and_then(<[u8]>::first_chunk);
        bytes.map(|b| u64::from_be_bytes(*b)).ok_or_else(malformed)
    }

    fn create(&mut self) -> io::Result<u64> {
        if self.attributes()?.is_none() {
            self.define()?;
        }
        self.increment()?;
        self.read()
    }

    fn advance(&mut self, value: u64) -> io::Result<()> {
        self.increment()?;
        match self.read()? {
            now if now == value => Ok(()),
            now => Err(other(format!(
                "TPM index {:#x} is at {now}, not {value}: somebody else increments it",
                self.index
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Interrupting(Vec<io::Result<Vec<u8>>>);

    impl Read for Interrupting {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let piece = self.0.remove(0)?;
            to[..piece.len()].copy_from_slice(&piece);
            Ok(piece.len())
        }
    }

    impl Write for Interrupting {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The keeper stands still while it reads the counter. Bug: it refuses its store.
    #[test]
    fn interrupted() {
        let interrupted = || Err(ErrorKind::Interrupted.into());
        let pieces = vec![
            interrupted(),
            Ok(vec![0x80, 1, 0, 0, 0, 10]),
            interrupted(),
            Ok(vec![0; 4]),
        ];
        let whole = response(&mut Interrupting(pieces)).unwrap();
        assert_eq!(whole, [0x80, 1, 0, 0, 0, 10, 0, 0, 0, 0]);
    }
}
