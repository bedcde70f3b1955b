//! `confide`: the administrator's command; see the list of subcommands.
//!
//! Exit codes: 0 success, 1 failure, 2 wrong arguments, 3 the root key cannot be read, 4 no keeper
//! answers (`attest`).
#![forbid(unsafe_code)]

mod anonymise;
mod attest;
mod audit;
mod authorise;
mod backup;
mod base;
mod broker;
mod clone;
mod fix;
mod mode;
mod pin;
mod protect;
mod psql;
mod query;
mod record;
mod rekey;
mod replay;
mod root_key;
mod rotate;
mod snapshots;
mod ticket;
mod user;
mod verify;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use envelope::{Error, Role, SecretKey};

/// Confide: PostgreSQL that keeps secrets from its admins.
#[derive(Parser)]
#[command(name = "confide", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a key file and print its public key.
    Keygen {
        /// Owner of the key.
        role: RoleName,
        /// The file to create; it must not exist.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Print the public key of a key file.
    Pubkey {
        /// The key file.
        file: PathBuf,
        /// For a keeper: print the key that verifies its signatures instead.
        #[arg(long)]
        signing: bool,
    },
    /// Request a signed result through the proxy, and verify it (docs/ledger.md).
    Query(query::Arguments),
    /// Verify what a keeper signed, without a keeper or a database.
    #[command(subcommand)]
    Verify(verify::Command),
    /// Manage the keeper's root key at rest. A SOURCE is what root_key_source says in the keeper's
    /// configuration.
    #[command(subcommand)]
    RootKey(root_key::Command),
    /// Back up a cluster together with its keeper's store (docs/operations.md).
    Backup(backup::Arguments),
    /// Write the list of a database's protected columns for the proxy's pin_file.
    Pin(pin::Arguments),
    /// Display and authorise definitions of a schema that were not made through the proxy
    /// (docs/operations.md).
    Authorise(authorise::Arguments),
    /// Change columns to protected types while their table is in use (docs/migrating.md).
    Protect(protect::Arguments),
    /// Change protected columns back to plain types while their table is in use.
    Unprotect(protect::Arguments),
    /// Give a column of the family rnd_ a new key while its table is in use, or one of the family soft_
    /// under a lock (docs/families.md).
    RotateColumn(rotate::Arguments),
    /// Give the key of a column of the family soft_ to the keeper, or take it back (docs/families.md).
    TransferKey(rotate::TransferArguments),
    /// Print a ticket that lets a session restore values of a dump (confide.restore_ticket).
    RestoreTicket(ticket::Arguments),
    /// Request evidence of the zone that a keeper runs in, and verify it (docs/attestation.md).
    /// Exit code 1: refused; 4: no answer.
    Attest(attest::Arguments),
    /// Release the keys that wrap root keys to keepers, against evidence (docs/attestation.md).
    /// Runs until it is stopped.
    Broker(broker::Arguments),
    /// Print the measurement of a keeper's program, as in simulated evidence.
    Measure {
        /// The program.
        program: PathBuf,
    },
    /// Apply maintenance templates: what an administrator may change (docs/maintenance.md).
    #[command(subcommand)]
    Fix(fix::Command),
    /// Record requests to the keeper and its answers (docs/maintenance.md).
    #[command(subcommand)]
    Record(record::Command),
    /// Manage the users that a proxy authenticates itself (users_file; docs/operations.md).
    #[command(subcommand)]
    User(user::Command),
    /// Display the keeper's audit log: what was allowed and refused (docs/security.md).
    #[command(subcommand)]
    Audit(audit::Command),
    /// Copy a cluster, and start the copy beside a replayer (docs/maintenance.md).
    Clone(clone::Arguments),
    /// Run a recorded statement in a clone.
    Replay(replay::Arguments),
    /// Mask a log of operator calls for people who may not see values, with confide-anonymise,
    /// which must be in the same directory (docs/maintenance.md).
    Anonymise(anonymise::Arguments),
    /// Show or switch the server's mode: in execution mode no superuser can log in
    /// (docs/maintenance.md).
    Mode(mode::Arguments),
    /// Print the version.
    Version,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleName {
    /// An application or a data owner.
    Client,
    /// A keeper.
    Keeper,
    /// A broker of root keys.
    Broker,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(Failure(code, message)) => {
            eprintln!("confide: {message}");
            ExitCode::from(code)
        }
    }
}

/// Exit code and message.
struct Failure(u8, String);

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure(1, message)
    }
}

fn run(command: Command) -> Result<String, Failure> {
    let at = |path: &Path| {
        let path = path.display().to_string();
        move |e: Error| format!("{path}: {e}")
    };
    match command {
        Command::Keygen { role, out } => {
            let role = match role {
                RoleName::Client => Role::Client,
                RoleName::Keeper => Role::Keeper,
                RoleName::Broker => Role::Broker,
            };
            let key = SecretKey::generate().map_err(|e| e.to_string())?;
            key.write_file(role, &out).map_err(at(&out))?;
            let public = key.public().map_err(|e| e.to_string())?;
            Ok(public.to_line(role))
        }
        Command::Pubkey { file, signing } => {
            let (role, key) = SecretKey::read_any(&file).map_err(at(&file))?;
            if signing {
                return Ok(verify::signing_key(role, &key)?);
            }
            let public = key.public().map_err(|e| e.to_string())?;
            Ok(public.to_line(role))
        }
        Command::RootKey(command) => {
            root_key::run(command).map_err(|e| Failure(3, format!("{e}\nHint: {}", e.hint())))
        }
        Command::Backup(arguments) => Ok(backup::run(&arguments)?),
        Command::Attest(arguments) => attest::run(&arguments),
        Command::Broker(arguments) => broker::run(&arguments),
        Command::Measure { program } => Ok(attest::measure(&program)?),
        Command::Authorise(arguments) => Ok(authorise::run(&arguments)?),
        Command::Protect(arguments) => Ok(protect::protect(&arguments)?),
        Command::Unprotect(arguments) => Ok(protect::unprotect(&arguments)?),
        Command::RotateColumn(arguments) => Ok(rotate::run(&arguments)?),
        Command::TransferKey(arguments) => Ok(rotate::transfer(&arguments)?),
        Command::Pin(arguments) => Ok(pin::run(&arguments)?),
        Command::RestoreTicket(arguments) => Ok(ticket::run(&arguments)?),
        Command::Mode(arguments) => Ok(mode::run(&arguments)?),
        Command::Fix(command) => Ok(fix::run(&command)?),
        Command::Record(command) => Ok(record::run(&command)?),
        Command::Query(arguments) => Ok(query::run(&arguments)?),
        Command::Clone(arguments) => Ok(clone::run(&arguments)?),
        Command::Replay(arguments) => Ok(replay::run(&arguments)?),
        Command::Anonymise(arguments) => Ok(anonymise::run(&arguments)?),
        Command::Verify(command) => Ok(verify::run(&command)?),
        Command::Audit(command) => Ok(audit::run(&command)?),
        Command::User(command) => Ok(user::run(&command)?),
        Command::Version => Ok(format!(
            "confide {} (contract {})",
            env!("CARGO_PKG_VERSION"),
            contract::VERSION
        )),
    }
}
