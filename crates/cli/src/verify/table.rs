//! `confide verify table`, `report` and `checkpoint`: what a keeper says of a ledger table, and
//! whether its log goes on from a checkpoint that was kept elsewhere.
//!
//! The walk is the database's and the keeper's, asked for with psql through the proxy; the
//! answer is verified here, against a nonce that was drawn here.
//!
//! Invariant: exit code 0 only if the keeper's signature, the nonce, the proof and the
//! findings say that all is well.

use super::{By, nonce, receipt, text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ledger::checkpoint::Checkpoint;
use ledger::entry::Entry;
use ledger::proof::{Consistency, Inclusion};
use ledger::report::Report;
use ledger::{Hash, VerifyingKey};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the command is told.
#[derive(clap::Args)]
pub struct Arguments {
    /// The table.
    table: String,
    #[command(flatten)]
    by: By,
    /// Connection string of the proxy's port.
    #[arg(long, value_name = "CONNSTR", default_value = "")]
    dbname: String,
    /// A checkpoint kept where neither keeper nor database can change it: the log must go on from
    /// it. If all is well, the new checkpoint takes its place. A file that does not exist is
    /// made.
    #[arg(long, value_name = "FILE")]
    digest: Option<PathBuf>,
    /// Compares the values of row versions only that were written since the checkpoint; of those before it
    /// is looked whether each is where it belongs. For tables that were verified when the
    /// checkpoint was made.
    #[arg(long, requires = "digest")]
    new: bool,
    /// A receipt for what was written (confide.ledger_receipt): the log must go on from it, and no version
    /// of it be missing.
    #[arg(long, value_name = "FILE", conflicts_with = "digest")]
    receipt: Option<PathBuf>,
    /// Where psql is (default: found as commands are).
    #[arg(long, value_name = "DIR")]
    bindir: Option<PathBuf>,
}

/// What was kept from earlier, which a report must agree with.
pub struct Kept<'a> {
    /// A file with a checkpoint.
    pub digest: Option<&'a Path>,
    /// A file with a receipt.
    pub receipt: Option<&'a Path>,
    /// Whether the report may leave out values of versions before the checkpoint.
    pub new: bool,
}

/// Asks and verifies; what holds, for people.
pub fn run(arguments: &Arguments) -> Result<String, String> {
    let key = arguments.by.key()?;
    let kept = arguments.digest.as_deref().filter(|path| path.exists());
    let quoted = arguments.table.replace('\'', "''");
    let newest = format!("SELECT confide.ledger_checkpoint('{quoted}')");
    let old = match (kept, &arguments.receipt) {
        (Some(path), _) => checkpoint_in(&text(path)?, &key)?.size,
        (None, Some(path)) => {
            let log = checkpoint_in(&psql(arguments, &newest)?, &key)?.origin;
            receipt::of_log(path, &log, &key)?.log.size
        }
        (None, None) => 0,
    };
    let nonce = nonce()?;
    let query = format!(
        "SELECT confide.ledger_report('{quoted}', '{nonce}', {old}, {})",
        arguments.new && old > 0
    );
    let note_was = psql(arguments, &query)?;
    let said = verify(
        &note_was,
        nonce.as_bytes(),
        &key,
        &Kept {
            digest: kept,
            receipt: arguments.receipt.as_deref(),
            new: arguments.new,
        },
    )?;
    if let Some(path) = &arguments.digest {
        let note = psql(arguments, &newest)?;
        let next = checkpoint_in(&note, &key)?;
        let report = Report::verify(&note_of(&note_was), nonce.as_bytes(), &key);
        let report = report.map_err(|e| e.to_string())?;
        if next.origin != report.log || next.size < report.size {
            return Err("the checkpoint is not of the log that was verified".into());
        }
        std::fs::write(path, note).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(said)
}

fn psql(arguments: &Arguments, query: &str) -> Result<String, String> {
    let program = match &arguments.bindir {
        Some(directory) => directory.join("psql"),
        None => PathBuf::from("psql"),
    };
    let mut command = Command::new(&program);
    command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
    command.args(["-d", &arguments.dbname, "-c", query]);
    // Notices say how far the walk is.
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = output.output();
    let output = output.map_err(|e| format!("{}: {e}", program.display()))?;
    match output.status.success() {
        true => String::from_utf8(output.stdout).map_err(|_| "psql gave no text".into()),
        false => Err("psql failed".into()),
    }
}

/// psql ends its output with one line end more than the note has.
fn note_of(output: &str) -> String {
    format!("{}\n", output.trim_end_matches('\n'))
}

/// Verifies a report; what it says, for people.
///
/// # Errors
/// Everything that is wrong with the report, or that it finds.
pub fn verify(
    note: &str,
    nonce: &[u8],
    key: &VerifyingKey,
    kept: &Kept<'_>,
) -> Result<String, String> {
    let report = Report::verify(&note_of(note), nonce, key).map_err(|e| e.to_string())?;
    let mut lines = counted(&report);
    let digest = kept.digest.map(|path| checkpoint_in(&text(path)?, key));
    let digest = digest.transpose()?;
    if let Some(digest) = &digest {
        goes_on(&report, digest)?;
        lines.push("the log goes on from the checkpoint".into());
    }
    lines.extend(left_out(&report, digest.as_ref().filter(|_| kept.new))?);
    if let Some(path) = kept.receipt {
        let written = receipt::of_log(path, &report.log, key)?;
        goes_on(&report, &written.log)?;
        receipt::none_missing(&written, &report)?;
        lines.push("the log goes on from the receipt".into());
    }
    if report.findings.is_empty() && report.more == 0 {
        lines.insert(0, "verified".into());
        return Ok(lines.join("\n"));
    }
    for finding in &report.findings {
        lines.push(match finding.sn {
            0 => format!("the table: {}", finding.what.word()),
            sn => format!("version {sn}: {}", finding.what.word()),
        });
    }
    if report.more > 0 {
        lines.push(format!("and {} more", report.more));
    }
    lines.insert(0, "the table is not as it was written".into());
    Err(lines.join("\n"))
}

/// What a report counts, and what is no finding, for people.
fn counted(report: &Report) -> Vec<String> {
    let mut lines = vec![
        format!("log: {}", report.log),
        format!(
            "{} entries, root {}",
            report.size,
            STANDARD.encode(report.root.0)
        ),
        format!(
            "{} row versions are as they were written, {} were erased",
            report.versions, report.erased
        ),
    ];
    if report.before > 0 {
        lines.push(format!(
            "note: there were {} logs of tables of this name before",
            report.before
        ));
    }
    if report.restored > 0 {
        lines.push(format!(
            "note: {} of them were restored from a dump, which says who wrote them and when",
            report.restored
        ));
    }
    for sn in &report.unconfirmed {
        lines.push(format!(
            "note: version {sn} is not there; nobody saw whether its transaction committed"
        ));
    }
    lines
}

/// What a report left out, if it may: from the checkpoint on nothing.
fn left_out(report: &Report, kept: Option<&Checkpoint>) -> Result<Option<String>, String> {
    if report.since == 0 {
        return Ok(None);
    }
    if kept.is_none_or(|kept| report.since > kept.size) {
        return Err("the report leaves out versions that it should compare".into());
    }
    Ok(Some(format!(
        "values of versions before entry {} were not compared again",
        report.since
    )))
}

fn goes_on(report: &Report, old: &Checkpoint) -> Result<(), String> {
    if old.origin != report.log {
        return Err(format!("the checkpoint is of another log: {}", old.origin));
    }
    if old.size > report.size {
        return Err(format!(
            "the log is shorter than the checkpoint: {} entries, {} were signed",
            report.size, old.size
        ));
    }
    let proof = report.consistency.as_ref().filter(|p| p.old == old.size);
    let proof = match proof {
        Some(proof) => proof.clone(),
        None if old.size == 0 => return Ok(()),
        None => return Err("the report has no proof that it goes on from the checkpoint".into()),
    };
    let proven = proof.verify(&old.root, &report.root);
    proven.map_err(|_| "the log does not go on from the checkpoint: its past was changed".into())
}

/// A checkpoint of any log that this key has signed.
fn checkpoint_in(note: &str, key: &VerifyingKey) -> Result<Checkpoint, String> {
    let (note, _) = parts(note);
    let origin = Checkpoint::origin_of(&note).map_err(|e| format!("the checkpoint: {e}"))?;
    Checkpoint::verify(&note, &origin, key).map_err(|e| format!("the checkpoint: {e}"))
}

/// A checkpoint, and what comes behind it: a proof.
fn parts(note: &str) -> (String, Vec<String>) {
    let mut blocks = note.trim_end_matches('\n').splitn(3, "\n\n");
    let (text, signatures) = (blocks.next(), blocks.next());
    let rest = blocks.next().unwrap_or_default().lines();
    let note = format!(
        "{}\n\n{}\n",
        text.unwrap_or_default(),
        signatures.unwrap_or_default()
    );
    (note, rest.map(str::to_owned).collect())
}

/// Verifies a checkpoint and the proof behind it; what holds, for people.
///
/// # Errors
/// Everything that does not hold.
pub fn checkpoint(
    file: &str,
    origin: &str,
    key: &VerifyingKey,
    digest: Option<&Path>,
) -> Result<String, String> {
    let (note, proof) = parts(file);
    let point = Checkpoint::verify(&note, origin, key).map_err(|e| e.to_string())?;
    let root = STANDARD.encode(point.root.0);
    let mut said = format!("verified: {} leaves, root {root}", point.size);
    let hashes = proof.iter().skip(1).map(|line| {
        let bytes = STANDARD.decode(line).ok().and_then(|b| b.try_into().ok());
        bytes.map(Hash).ok_or("the proof is malformed".to_owned())
    });
    let path = hashes.collect::<Result<Vec<Hash>, String>>()?;
    let words: Vec<&str> = proof.first().map_or(Vec::new(), |l| l.split(' ').collect());
    match (words.as_slice(), digest) {
        (["inclusion", index, entry], None) => said += &included(&point, index, entry, path)?,
        ([], None) => {}
        (["consistency", _], Some(digest)) => {
            let old = checkpoint_in(&text(digest)?, key)?;
            let proof = Consistency {
                old: old.size,
                new: point.size,
                path,
            };
            if old.origin != point.origin {
                return Err("the checkpoints are of different logs".into());
            }
            proof
                .verify(&old.root, &point.root)
                .map_err(|e| e.to_string())?;
            said += "\nit goes on from the older checkpoint";
        }
        _ => return Err("the proof is not the one that was asked for".into()),
    }
    Ok(said)
}

fn included(
    point: &Checkpoint,
    index: &str,
    entry: &str,
    path: Vec<Hash>,
) -> Result<String, String> {
    let bytes = STANDARD.decode(entry).map_err(|e| e.to_string())?;
    let entry = Entry::decode(&bytes).map_err(|e| e.to_string())?;
    let proof = Inclusion {
        index: index.parse().map_err(|_| "the proof is malformed")?,
        size: point.size,
        path,
    };
    let proven = proof.verify(&Entry::leaf(&bytes), &point.root);
    proven.map_err(|e| e.to_string())?;
    Ok(format!(
        "\nversion {} was written by {}; hash {}",
        entry.sn,
        entry.principal,
        STANDARD.encode(entry.row.0)
    ))
}
