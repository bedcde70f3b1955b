//! `confide attest`: requests a keeper's evidence through the database, like a client, and verifies
//! it against a policy. `confide measure`: prints the measurement of a program, for the policy.
//!
//! No client key is needed: the keeper sends its evidence before it learns who the client is.
//!
//! Exit codes: 0 accepted, 1 refused, 2 wrong arguments or policy, 4 the keeper did not answer.

use crate::Failure;
use attest::{Accepted, Expected, Policy, Reason, Refused};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use envelope::handshake::{Initiator, Keeper, Use};
use envelope::{PublicKey, SecretKey};
use evidence::Purpose;
use ledger::VerifyingKey;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// The keeper does not answer.
const NO_KEEPER: u8 = 4;
/// Unusable arguments or files.
pub const WRONG: u8 = 2;

/// Which evidence is accepted.
#[derive(Args)]
pub struct Rules {
    /// The policy: which evidence is accepted.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Also accept simulated evidence, which proves nothing; without a policy, of any program.
    #[arg(long)]
    simulated: bool,
}

impl Rules {
    /// For commands that define these options themselves.
    pub fn new(policy: Option<PathBuf>, simulated: bool) -> Rules {
        Rules { policy, simulated }
    }

    /// Whether to request evidence at all.
    pub fn ask(&self) -> bool {
        self.policy.is_some() || self.simulated
    }

    /// Whether to accept simulated evidence.
    pub fn takes_simulated(&self) -> bool {
        self.simulated
    }

    /// Reads the policy.
    ///
    /// # Errors
    /// What is wrong with it, or that there is none.
    pub fn policy(&self) -> Result<Policy, String> {
        match &self.policy {
            Some(path) => Policy::read(path),
            None if self.simulated => Ok(Policy::any_simulated()),
            None => Err("--policy is missing: it says which evidence is good enough".into()),
        }
    }
}

/// Where to send the request.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    rules: Rules,
    /// Connection string of the database (not of the proxy, which has SHOW ATTESTATION).
    #[arg(long, value_name = "CONNSTR", default_value = "")]
    dbname: String,
    /// The keeper's public key, or a line with it: any other keeper is refused.
    #[arg(long, value_name = "KEY")]
    keeper_key: Option<String>,
    /// Directory of psql (default: search PATH).
    #[arg(long, value_name = "DIR")]
    bindir: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<String, Failure> {
    let wrong = |what: String| Failure(WRONG, what);
    let policy = arguments.rules.policy().map_err(wrong)?;
    let pinned = arguments.keeper_key.as_ref().map(|key| key.parse());
    let pinned: Option<PublicKey> = pinned
        .transpose()
        .map_err(|e: envelope::Error| wrong(format!("--keeper-key: {e}")))?;
    let keeper = ask(arguments).map_err(|what| Failure(NO_KEEPER, what))?;
    if pinned.is_some_and(|pinned| pinned != keeper.key) {
        return Err(Failure(
            1,
            format!("another keeper answers: {}", keeper.key),
        ));
    }
    if keeper.evidence.document.is_empty() {
        let refused = Refused::new(Reason::Malformed, "the keeper shows none");
        return Err(Failure(1, refused.to_string()));
    }
    let expected = Expected {
        purpose: Purpose::Session,
        channel: Some(keeper.key.as_bytes()),
        signing: None,
        nonce: &keeper.nonce,
    };
    let document = &keeper.evidence.document;
    let checked = attest::verify(
        document,
        &expected,
        &policy,
        arguments.rules.simulated,
        now(),
    );
    let accepted = checked.map_err(|refused| Failure(1, refused.to_string()))?;
    Ok(report(&accepted))
}

/// Returns the keeper's message 2.
fn ask(arguments: &Arguments) -> Result<Keeper, String> {
    let secret = SecretKey::generate().map_err(|e| e.to_string())?;
    let begun = Initiator::begin(&secret, Use::Session, true);
    let (mut initiator, message) = begun.map_err(|e| e.to_string())?;
    let hex: String = message.iter().map(|b| format!("{b:02x}")).collect();
    let query = format!(
        "SELECT pg_catalog.encode(confide.handshake(1, pg_catalog.decode('{hex}', 'hex')), 'base64')"
    );
    let program = match &arguments.bindir {
        Some(directory) => directory.join("psql"),
        None => PathBuf::from("psql"),
    };
    let mut command = Command::new(&program);
    command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
    command.args(["-d", &arguments.dbname, "-c", &query]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = output
        .output()
        .map_err(|e| format!("{}: {e}", program.display()))?;
    if !output.status.success() {
        return Err("psql failed".into());
    }
    let text: Vec<u8> = output.stdout;
    let text: Vec<u8> = text
        .into_iter()
        .filter(|b| !b.is_ascii_whitespace())
        .collect();
    let answer = STANDARD
        .decode(text)
        .map_err(|_| "not an answer of a keeper")?;
    initiator.receive(&answer).map_err(|e| e.to_string())
}

fn report(accepted: &Accepted) -> String {
    let channel = PublicKey::from_slice(&accepted.channel).map(|key| key.to_string());
    let mut lines = vec![
        format!("accepted: {}", accepted.kind.name()),
        format!("measurement: {}", accepted.measurement),
        format!("versions: {}", accepted.versions),
        format!("keeper's key: {}", channel.unwrap_or_default()),
        format!("signing key: {}", VerifyingKey(accepted.signing).to_line()),
    ];
    if accepted.kind == evidence::Kind::Simulated {
        lines.push("SIMULATED: this proves nothing about where the keeper runs".into());
    }
    lines.join("\n")
}

/// Verifies the evidence in a signed result against the policy; returns its signing key, and a
/// message for people.
///
/// # Errors
/// Why it is refused.
pub fn of_result(document: &[u8], rules: &Rules) -> Result<(VerifyingKey, String), String> {
    let expected = Expected {
        purpose: Purpose::Signing,
        channel: None,
        signing: None,
        nonce: &[],
    };
    if document.is_empty() {
        return Err("evidence: the file has none".into());
    }
    let policy = rules.policy()?;
    let checked = attest::verify(document, &expected, &policy, rules.simulated, now());
    let accepted = checked.map_err(|refused| refused.to_string())?;
    let mut said = format!(
        "evidence: {}, measurement {}",
        accepted.kind.name(),
        accepted.measurement
    );
    if accepted.kind == evidence::Kind::Simulated {
        said += " (SIMULATED: it proves nothing)";
    }
    Ok((VerifyingKey(accepted.signing), said))
}

pub fn measure(program: &Path) -> Result<String, String> {
    let measurement = evidence::measure(program).map_err(|e| e.to_string())?;
    Ok(measurement.iter().map(|b| format!("{b:02x}")).collect())
}

pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
