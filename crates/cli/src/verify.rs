//! `confide verify`: signed results, single cells of them, and checkpoints of ledgers,
//! offline. What does not verify is told with exit code 1 and the reason.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use envelope::{Role, SecretKey};
use ledger::checkpoint::Checkpoint;
use ledger::result::{Header, SignedCell, SignedResult};
use ledger::{SigningKey, VerifyingKey};

/// Longer files are not read.
const FILE_MAX: u64 = 1 << 30;

/// What is verified.
#[derive(clap::Subcommand)]
pub enum Command {
    /// A signed result, or a cell of one; in JSON or the compact form.
    Result {
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        by: By,
        /// The nonce that was sent, in base64: an older answer is refused.
        #[arg(long, value_name = "BASE64")]
        nonce: Option<String>,
        /// Prints this cell with its proof, to be shown without the others.
        #[arg(long, value_name = "ROW,COLUMN", value_parser = place)]
        cell: Option<(u64, usize)>,
    },
    /// A checkpoint of a ledger table.
    Checkpoint {
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        by: By,
        /// Whose checkpoint it must be: the first line of its text.
        #[arg(long)]
        origin: String,
    },
}

/// Whose signature it must be.
#[derive(clap::Args)]
pub struct By {
    /// The keeper's signing key, as `confide pubkey --signing` prints it.
    #[arg(long, value_name = "KEY")]
    key: String,
}

/// The line of the key that verifies what a keeper with this key signs.
pub fn signing_key(role: Role, key: &SecretKey) -> Result<String, String> {
    if role != Role::Keeper {
        return Err("only keepers sign, and this is a client's key".into());
    }
    let seed = key.signing_seed().map_err(|e| e.to_string())?;
    let key = SigningKey::from_seed(&seed).and_then(|key| key.verifying_key());
    Ok(key.map_err(|e| e.to_string())?.to_line())
}

/// Verifies; what holds, for people.
pub fn run(command: &Command) -> Result<String, String> {
    match command {
        Command::Result {
            file,
            by,
            nonce,
            cell,
        } => {
            let nonce = nonce.as_ref().map(|text| STANDARD.decode(text));
            let nonce = nonce.transpose().map_err(|_| "the nonce is not base64")?;
            let verified = verify(&read(file)?, &by.key()?, nonce.as_deref());
            let signed = verified.map_err(|e| format!("{}: {e}", file.display()))?;
            match (cell, signed) {
                (None, signed) => Ok(signed.report()),
                (Some((row, column)), Signed::Whole(result)) => {
                    let cell = result.cell(*row, *column);
                    cell.and_then(|cell| cell.to_json())
                        .map_err(|e| format!("cell {row},{column}: {e}"))
                }
                (Some(_), Signed::Cell(_)) => Err("the file is of a single cell".into()),
            }
        }
        Command::Checkpoint { file, by, origin } => {
            let note = String::from_utf8(read(file)?).map_err(|_| "a checkpoint is text")?;
            let verified = Checkpoint::verify(&note, origin, &by.key()?);
            let point = verified.map_err(|e| format!("{}: {e}", file.display()))?;
            let root = STANDARD.encode(point.root.0);
            Ok(format!("verified: {} leaves, root {root}", point.size))
        }
    }
}

/// What a file has, verified.
enum Signed {
    Whole(SignedResult),
    Cell(SignedCell),
}

/// Tells the four forms of files apart by which of them decodes; the reason of the first
/// is told if none does.
fn verify(bytes: &[u8], key: &VerifyingKey, nonce: Option<&[u8]>) -> Result<Signed, ledger::Error> {
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
        Ok(result) => {
            result.verify(key, nonce)?;
            Ok(Signed::Whole(result))
        }
        Err(error) => {
            let cell = cell().map_err(|_| error)?;
            cell.verify(key, nonce)?;
            Ok(Signed::Cell(cell))
        }
    }
}

impl Signed {
    fn report(&self) -> String {
        match self {
            Signed::Whole(result) => report(result.header(), "the whole result", None),
            Signed::Cell(cell) => {
                let (row, column) = cell.place();
                let value = cell.value().as_deref().unwrap_or("NULL");
                let what = format!("row {row}, column {column}: {value}");
                report(cell.header(), &what, Some(column))
            }
        }
    }
}

fn report(header: &Header, what: &str, only: Option<usize>) -> String {
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
        let by = match column.vouched {
            true => "vouched for by the keeper",
            false => "asserted by the database",
        };
        lines.push(format!(
            "column {} {}{origin}: {by}",
            column.name, column.type_name
        ));
    }
    if header.evidence.is_empty() {
        lines.push("evidence: none; that the key is a keeper's is for you to know".into());
    }
    lines.join("\n")
}

impl By {
    fn key(&self) -> Result<VerifyingKey, String> {
        self.key.parse().map_err(|e| format!("--key: {e}"))
    }
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
