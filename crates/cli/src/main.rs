//! `confide`: makes keys and restore tickets, wraps the root key, backs up, pins protected
//! columns, keeps the proxy's list of users, checks evidence, applies maintenance templates, verifies
//! what keepers signed, shows public keys and
//! versions.
//!
//! Exit codes: 0 done, 1 failure, 2 wrong arguments, 3 the root key cannot be had, 4 no keeper
//! answers (`attest`).
#![forbid(unsafe_code)]

mod anonymise;
mod attest;
mod audit;
mod authorise;
mod backup;
mod broker;
mod clone;
mod fix;
mod mode;
mod pin;
mod protect;
mod psql;
mod query;
mod record;
mod replay;
mod root_key;
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
    /// Makes a key file and prints its public key.
    Keygen {
        /// Whose key it is.
        role: RoleName,
        /// The file to make; it must not exist.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Prints the public key of a key file.
    Pubkey {
        /// The key file.
        file: PathBuf,
        /// Of a keeper: the key that verifies its signatures instead.
        #[arg(long)]
        signing: bool,
    },
    /// Asks for a signed result through the proxy, and verifies it (docs/ledger.md).
    Query(query::Arguments),
    /// Verifies what a keeper signed, without a keeper or a database.
    #[command(subcommand)]
    Verify(verify::Command),
    /// The keeper's root key at rest. A SOURCE is what root_key_source says in the
    /// keeper's configuration.
    #[command(subcommand)]
    RootKey(root_key::Command),
    /// Backs up a cluster and its keeper's store as a pair (docs/operations.md).
    Backup(backup::Arguments),
    /// Writes down which columns of a database are protected, for the proxy's pin_file.
    Pin(pin::Arguments),
    /// Authorises the definitions of a schema that no client has made, after showing them
    /// (docs/operations.md).
    Authorise(authorise::Arguments),
    /// Gives columns protected types while their table is in use (docs/migrating.md).
    Protect(protect::Arguments),
    /// Gives protected columns plain types again, likewise.
    Unprotect(protect::Arguments),
    /// Prints a text that lets a session take in values of a dump (confide.restore_ticket).
    RestoreTicket(ticket::Arguments),
    /// Asks a keeper for evidence of the zone that it runs in, and checks it
    /// (docs/attestation.md). Exit code 1: refused; 4: no answer.
    Attest(attest::Arguments),
    /// Gives keepers the keys that wrap their root keys, against evidence (docs/attestation.md).
    /// Runs until it is stopped.
    Broker(broker::Arguments),
    /// Prints the measurement of a keeper's program, as simulated evidence has it.
    Measure {
        /// The program.
        program: PathBuf,
    },
    /// Maintenance templates: what an administrator may change (docs/maintenance.md).
    #[command(subcommand)]
    Fix(fix::Command),
    /// Recordings of what the keeper was asked and answered (docs/maintenance.md).
    #[command(subcommand)]
    Record(record::Command),
    /// The users that a proxy authenticates itself (users_file; docs/operations.md).
    #[command(subcommand)]
    User(user::Command),
    /// The keeper's audit log: what was allowed and refused (docs/security.md).
    #[command(subcommand)]
    Audit(audit::Command),
    /// Copies a cluster, and starts the copy beside a replayer (docs/maintenance.md).
    Clone(clone::Arguments),
    /// Runs a recorded statement in a clone.
    Replay(replay::Arguments),
    /// Masks a log of operators' calls, for whoever may not see values, by confide-anonymise,
    /// which stands beside this program (docs/maintenance.md).
    Anonymise(anonymise::Arguments),
    /// Shows or switches the server's mode: in execution mode no superuser logs in
    /// (docs/maintenance.md).
    Mode(mode::Arguments),
    /// Prints the version.
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
