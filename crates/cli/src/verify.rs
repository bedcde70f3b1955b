//! `confide verify`: verifies signed results and single cells offline, and ledger tables and what
//! keepers sign about them (`table`). If something does not verify, the exit code is 1, and the
//! reason is printed.

mod receipt;
mod table;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::attest::{self, Rules};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use envelope::{Role, SecretKey};
use ledger::entry::Entry;
use ledger::result::{Header, SignedCell, SignedResult, Version};
use ledger::{SigningKey, VerifyingKey};
use table::Kept;

/// Maximum size of a file.
const FILE_MAX: u64 = 1 << 30;

/// What to verify.
#[derive(clap::Subcommand)]
pub enum Command {
    /// A signed result, or a cell of one, in JSON or the compact format.
    Result {
        /// The file.
        file: PathBuf,
        /// The keeper's signing key, as `confide pubkey --signing` prints it; with --evidence it is
        /// optional, and taken from the evidence.
        #[arg(long, value_name = "KEY", required_unless_present_any = ["evidence", "simulated"])]
        key: Option<String>,
        /// The policy that the evidence in the file must satisfy (docs/attestation.md).
        #[arg(long, value_name = "POLICY")]
        evidence: Option<PathBuf>,
        /// Also accept simulated evidence, which proves nothing; without a policy, of any program.
        #[arg(long)]
        simulated: bool,
        /// The nonce of the request, in base64; results with any other are refused.
        #[arg(long, value_name = "BASE64")]
        nonce: Option<String>,
        /// Print this cell with its proof, which can be shown without the others.
        #[arg(long, value_name = "ROW,COLUMN", value_parser = place)]
        cell: Option<(u64, usize)>,
    },
    /// A ledger table: has the keeper verify it, through the proxy, and verifies the keeper's
    /// report (docs/ledger.md).
    Table(table::Arguments),
    /// A keeper's report about a ledger table.
    Report {
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        by: By,
        /// The nonce of the request, as text.
        #[arg(long)]
        nonce: String,
        /// An earlier checkpoint, which the log must extend. The report must have been requested
        /// with its size.
        #[arg(long, value_name = "FILE")]
        digest: Option<PathBuf>,
        /// A receipt: the log must extend it, and none of its versions may be missing.
        #[arg(long, value_name = "FILE", conflicts_with = "digest")]
        receipt: Option<PathBuf>,
        /// Accept a report that compares only values written since the checkpoint.
        #[arg(long, requires = "digest")]
        new: bool,
    },
    /// A receipt for what a transaction has written to ledger tables (confide.ledger_receipt).
    Receipt {
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        by: By,
        /// The nonce of the request, as text.
        #[arg(long)]
        nonce: String,
    },
    /// A checkpoint of a ledger table, optionally with a proof that it extends an older one, or
    /// that it contains a row version.
    Checkpoint {
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        by: By,
        /// The expected origin: the first line of the checkpoint.
        #[arg(long)]
        origin: String,
        /// An older checkpoint, which this one must extend.
        #[arg(long, value_name = "FILE")]
        digest: Option<PathBuf>,
    },
}

/// The expected signer.
#[derive(clap::Args, Clone)]
pub struct By {
    /// The keeper's signing key, as `confide pubkey --signing` prints it.
    #[arg(long, value_name = "KEY")]
    key: String,
}

/// Returns the line with the key that verifies signatures of a keeper with this key.
pub fn signing_key(role: Role, key: &SecretKey) -> Result<String, String> {
    if role != Role::Keeper {
        return Err("only keepers sign, and this is a client's key".into());
    }
    let seed = key.signing_seed().map_err(|e| e.to_string())?;
    let key = SigningKey::from_seed(&seed).and_then(|key| key.verifying_key());
    Ok(key.map_err(|e| e.to_string())?.to_line())
}

/// Verifies; returns a summary for people.
pub fn run(command: &Command) -> Result<String, String> {
    match command {
        Command::Result {
            file,
            key,
            evidence,
            simulated,
            nonce,
            cell,
        } => {
            let nonce = nonce.as_ref().map(|text| STANDARD.decode(text));
            let nonce = nonce.transpose().map_err(|_| "the nonce is not base64")?;
            let rules = Rules::new(evidence.clone(), *simulated);
            let at = |e: String| format!("{}: {e}", file.display());
            let verified = result(&read(file)?, key.as_deref(), nonce.as_deref(), &rules);
            let (signed, evidence) = verified.map_err(at)?;
            match (cell, signed) {
                (None, signed) => Ok(signed.report(&evidence)),
                (Some((row, column)), Signed::Whole(result)) => {
                    let cell = result.cell(*row, *column);
                    cell.and_then(|cell| cell.to_json())
                        .map_err(|e| format!("cell {row},{column}: {e}"))
                }
                (Some(_), Signed::Cell(_)) => Err("the file is of a single cell".into()),
            }
        }
        Command::Table(arguments) => table::run(arguments),
        Command::Report {
            file,
            by,
            nonce,
            digest,
            receipt,
            new,
        } => {
            let kept = Kept {
                digest: digest.as_deref(),
                receipt: receipt.as_deref(),
                new: *new,
            };
            table::verify(&text(file)?, nonce.as_bytes(), &by.key()?, &kept)
                .map_err(|e| format!("{}: {e}", file.display()))
        }
        Command::Receipt { file, by, nonce } => {
            let verified = receipt::verify(&text(file)?, Some(nonce.as_bytes()), &by.key()?);
            let receipt = verified.map_err(|e| format!("{}: {e}", file.display()))?;
            receipt::told(&receipt)
        }
        Command::Checkpoint {
            file,
            by,
            origin,
            digest,
        } => {
            let at = |e: String| format!("{}: {e}", file.display());
            table::checkpoint(&text(file)?, origin, &by.key()?, digest.as_deref()).map_err(at)
        }
    }
}

/// The verified content of a file.
enum Signed {
    Whole(SignedResult),
    Cell(SignedCell),
}

/// Verifies all of a result for this nonce; returns a summary for people.
///
/// # Errors
/// What is wrong, or that it is a single cell.
pub fn answer(
    bytes: &[u8],
    key: Option<&str>,
    nonce: &[u8],
    rules: &Rules,
) -> Result<String, String> {
    match result(bytes, key, Some(nonce), rules)? {
        (signed @ Signed::Whole(_), said) => Ok(signed.report(&said)),
        (Signed::Cell(_), _) => Err("the answer is a single cell".into()),
    }
}

/// The compact form of a result, or of a cell.
///
/// # Errors
/// It is neither.
pub fn compact(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let signed = decode(bytes).map_err(|e| e.to_string())?;
    Ok(match signed {
        Signed::Whole(result) => result.to_bytes(),
        Signed::Cell(cell) => cell.to_bytes(),
    })
}

/// Makes a nonce: 32 hexadecimal digits.
///
/// # Errors
/// No random numbers are available.
pub fn nonce() -> Result<String, String> {
    let mut bytes = [0; 16];
    let random = File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut bytes));
    random.map_err(|e| format!("/dev/urandom: {e}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Verifies a result or cell; returns it with a message about its evidence.
fn result(
    bytes: &[u8],
    key: Option<&str>,
    nonce: Option<&[u8]>,
    rules: &Rules,
) -> Result<(Signed, String), String> {
    let signed = decode(bytes).map_err(|e| e.to_string())?;
    let key: Option<VerifyingKey> = key
        .map(|text| text.parse().map_err(|e| format!("--key: {e}")))
        .transpose()?;
    let document = &signed.header().evidence;
    let (key, said) = match (rules.ask(), key) {
        (true, key) => {
            let (found, said) = attest::of_result(document, rules)?;
            if key.is_some_and(|key| key != found) {
                return Err("the evidence is of another signing key".into());
            }
            (found, said)
        }
        (false, Some(key)) => (key, unchecked(document).to_owned()),
        (false, None) => return Err("--key is missing".into()),
    };
    signed.verify(&key, nonce).map_err(|e| e.to_string())?;
    Ok((signed, said))
}

fn unchecked(document: &[u8]) -> &'static str {
    match document.is_empty() {
        true => "evidence: none; that the key is a keeper's is for you to know",
        false => {
            "evidence: not checked (--evidence); that the key is a keeper's is for you to know"
        }
    }
}

/// Detects which of the four formats a file has by trying to decode it; if none fits, returns the
/// error of the first.
fn decode(bytes: &[u8]) -> Result<Signed, ledger::Error> {
    let text = std::str::from_utf8(bytes).ok().map(str::trim_start);
    let json = text.filter(|text| text.starts_with('{'));
    let whole = match json {
        Some(text) => SignedResult::from_json(text),
        None => SignedResult::from_bytes(bytes),
    };
    let cell = || match json {
        Some(text) => SignedCell::from_json(text),
        None => SignedCell::from_bytes(bytes),
    };
    match whole {
        Ok(result) => Ok(Signed::Whole(result)),
        Err(error) => cell().map(Signed::Cell).map_err(|_| error),
    }
}

impl Signed {
    fn header(&self) -> &Header {
        match self {
            Signed::Whole(result) => result.header(),
            Signed::Cell(cell) => cell.header(),
        }
    }

    fn verify(&self, key: &VerifyingKey, nonce: Option<&[u8]>) -> Result<(), ledger::Error> {
        match self {
            Signed::Whole(result) => result.verify(key, nonce),
            Signed::Cell(cell) => cell.verify(key, nonce),
        }
    }

    fn report(&self, evidence: &str) -> String {
        match self {
            Signed::Whole(result) => report(result.header(), "the whole result", None, evidence),
            Signed::Cell(cell) => {
                let (row, column) = cell.place();
                let value = cell.value().as_deref().unwrap_or("NULL");
                let mut what = format!("row {row}, column {column}: {value}");
                if let Some(version) = cell.version() {
                    what += &of_version(version);
                }
                report(cell.header(), &what, Some(column), evidence)
            }
        }
    }
}

/// Describes the row version of a cell; its entry is verified.
fn of_version(version: &Version) -> String {
    let state = match version.ended {
        true => "replaced or deleted since",
        false => "current then",
    };
    match Entry::decode(&version.entry) {
        Ok(entry) => format!(
            "\nof row version {}, written by {}, {state}",
            entry.sn, entry.principal
        ),
        Err(error) => format!("\nof a row version that cannot be read: {error}"),
    }
}

fn report(header: &Header, what: &str, only: Option<usize>, evidence: &str) -> String {
    let mut lines = vec![
        format!("verified: {what}"),
        format!("statement: {}", header.statement),
        format!("asked by: {}", header.principal),
        format!("rows: {}", header.rows),
    ];
    let columns = header.columns.iter().enumerate();
    for (_, column) in columns.filter(|(at, _)| only.is_none_or(|only| only == *at)) {
        let origin = column.origin.as_ref().map(|parts| parts.join("."));
        let origin = origin.map_or_else(String::new, |origin| format!(" from {origin}"));
        let ledger = column.ledger.and_then(|at| header.ledgers.get(at));
        let by = match (column.vouched, ledger) {
            (_, Some(ledger)) => {
                format!(
                    "vouched for by the keeper, from row versions of {}",
                    ledger.origin
                )
            }
            (true, None) => "vouched for by the keeper".into(),
            (false, None) => "asserted by the database".into(),
        };
        lines.push(format!(
            "column {} {}{origin}: {by}",
            column.name, column.type_name
        ));
    }
    for ledger in &header.ledgers {
        lines.push(format!(
            "ledger: {}, {} entries, root {}",
            ledger.origin,
            ledger.size,
            STANDARD.encode(ledger.root.0)
        ));
    }
    lines.push(evidence.to_owned());
    lines.join("\n")
}

impl By {
    /// Parses the key.
    pub fn key(&self) -> Result<VerifyingKey, String> {
        self.key.parse().map_err(|e| format!("--key: {e}"))
    }
}

fn text(path: &Path) -> Result<String, String> {
    let text = String::from_utf8(read(path)?);
    text.map_err(|_| format!("{}: not a text", path.display()))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let at = |e: std::io::Error| format!("{}: {e}", path.display());
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(at)?;
    file.take(FILE_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(at)?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(format!("{}: longer than 1 GiB", path.display()));
    }
    Ok(bytes)
}

fn place(text: &str) -> Result<(u64, usize), String> {
    let parsed = text
        .split_once(',')
        .and_then(|(row, column)| Some((row.trim().parse().ok()?, column.trim().parse().ok()?)));
    parsed.ok_or("a row and a column, from 0: 3,1".into())
}
