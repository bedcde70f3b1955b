//! Reports of an ordinary process: they have the form of evidence and prove nothing. Anybody can
//! make one. For tests and development: clients refuse them unless they were told to take them.
//!
//! Bytes: [`NOTICE`], debug `u8`, version `u32` LE, measurement, report data, SHA-256 of all that.

use crate::provider::{Error, Provider, Quote};
use crate::{DATA_BYTES, Kind, MEASUREMENT_BYTES};
use aws_lc_rs::digest::{Context, SHA256, SHA384, digest};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

/// Begins every simulated report.
pub const NOTICE: &[u8; 48] = b"SIMULATED EVIDENCE OF CONFIDE: IT PROVES NOTHING";
const VERSION_AT: usize = NOTICE.len() + 1;
const MEASUREMENT_AT: usize = VERSION_AT + 4;
const DATA_AT: usize = MEASUREMENT_AT + MEASUREMENT_BYTES;
const SUM_AT: usize = DATA_AT + DATA_BYTES;

/// Number of this keeper's simulated reports; a policy can ask for a least one.
const VERSION: u32 = 1;

/// The measurement of a keeper's program: SHA-384 of its file.
///
/// # Errors
/// [`Error::Io`].
pub fn measure(program: &Path) -> Result<[u8; MEASUREMENT_BYTES], Error> {
    let at = |e| Error::Io(program.display().to_string(), e);
    let mut file = File::open(program).map_err(at)?;
    let mut hash = Context::new(&SHA384);
    let mut piece = vec![0; 1 << 16];
    loop {
        match file.read(&mut piece).map_err(at)? {
            0 => break,
            length => hash.update(piece.get(..length).unwrap_or_default()),
        }
    }
    let mut measurement = [0; MEASUREMENT_BYTES];
    measurement.copy_from_slice(hash.finish().as_ref());
    Ok(measurement)
}

/// Simulated reports of this process.
pub struct Simulated {
    measurement: [u8; MEASUREMENT_BYTES],
}

impl Simulated {
    /// Measures the program that runs, once.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn new() -> Result<Simulated, Error> {
        static MEASURED: OnceLock<[u8; MEASUREMENT_BYTES]> = OnceLock::new();
        let measurement = match MEASURED.get() {
            Some(measurement) => *measurement,
            None => measure(Path::new("/proc/self/exe"))?,
        };
        Ok(Simulated::with(*MEASURED.get_or_init(|| measurement)))
    }

    /// Claims this measurement.
    pub fn with(measurement: [u8; MEASUREMENT_BYTES]) -> Simulated {
        Simulated { measurement }
    }
}

impl Provider for Simulated {
    fn quote(&self, data: &[u8; DATA_BYTES]) -> Result<Quote, Error> {
        let claims = Claims {
            debug: cfg!(debug_assertions),
            version: VERSION,
            measurement: self.measurement,
            data: *data,
        };
        Ok(Quote {
            kind: Kind::Simulated,
            report: claims.encode(),
            certificates: Vec::new(),
        })
    }

    fn is_simulated(&self) -> bool {
        true
    }
}

/// What a simulated report says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claims {
    /// The keeper was built for debugging.
    pub debug: bool,
    /// Number of the keeper's simulated reports.
    pub version: u32,
    /// [`measure`] of the keeper's program.
    pub measurement: [u8; MEASUREMENT_BYTES],
    /// The report data.
    pub data: [u8; DATA_BYTES],
}

impl Claims {
    /// The report that says this.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = NOTICE.to_vec();
        out.push(u8::from(self.debug));
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.measurement);
        out.extend_from_slice(&self.data);
        let sum = digest(&SHA256, &out);
        out.extend_from_slice(sum.as_ref());
        out
    }

    /// What a report says; `None` if it is none, or was altered.
    pub fn decode(report: &[u8]) -> Option<Claims> {
        let (body, sum) = report.split_at_checked(SUM_AT)?;
        if sum != digest(&SHA256, body).as_ref() || !body.starts_with(NOTICE) {
            return None;
        }
        Some(Claims {
            debug: *body.get(NOTICE.len())? != 0,
            version: u32::from_le_bytes(body.get(VERSION_AT..MEASUREMENT_AT)?.try_into().ok()?),
            measurement: body.get(MEASUREMENT_AT..DATA_AT)?.try_into().ok()?,
            data: body.get(DATA_AT..)?.try_into().ok()?,
        })
    }
}
