//! `confide user`: the users that a proxy authenticates itself (docs/operations.md).
//!
//! No password is an argument: they are read from files or standard input.
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use login::{Users, Verifier};

/// Subcommands.
#[derive(Subcommand)]
pub enum Command {
    /// Add a user, or change the given properties of one.
    Add(Add),
    /// Remove a user, which can then no longer log in.
    Remove {
        /// The file (users_file of the proxy).
        file: PathBuf,
        /// Its name.
        name: String,
    },
    /// List the users and how they authenticate.
    List {
        /// The file (users_file of the proxy).
        file: PathBuf,
    },
}

/// A user.
#[derive(Args)]
pub struct Add {
    /// The file (users_file of the proxy); created if it does not exist.
    file: PathBuf,
    /// Its name: the role at the database server.
    name: String,
    /// File with the user's password for the proxy, in one line; -: standard input.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Accept a certificate with this common name instead.
    #[arg(long, value_name = "NAME")]
    certificate: Option<String>,
    /// Accept this operating system user instead, on the Unix socket.
    #[arg(long, value_name = "USER")]
    peer: Option<String>,
    /// File with the role's password for the database server, if it requires a different one, in
    /// one line; -: standard input, after the user's.
    #[arg(long, value_name = "FILE")]
    server_password_file: Option<PathBuf>,
}

pub fn run(command: &Command) -> Result<String, String> {
    match command {
        Command::Add(user) => add(user),
        Command::Remove { file, name } => {
            let mut users = Users::read(file)?;
            let Some(_) = users.0.remove(name) else {
                return Err(format!("{}: no user {name}", file.display()));
            };
            users.write(file)?;
            Ok(format!("{name} removed"))
        }
        Command::List { file } => Ok(list(&Users::read(file)?)),
    }
}

fn add(given: &Add) -> Result<String, String> {
    let mut users = match given.file.exists() {
        true => Users::read(&given.file)?,
        false => Users::default(),
    };
    let user = users.0.entry(given.name.clone()).or_default();
    if let Some(file) = &given.password_file {
        let verifier = Verifier::new(&password(file)?).map_err(|e| e.to_string())?;
        user.scram = Some(verifier.to_string());
    }
    if let Some(file) = &given.server_password_file {
        user.server_password = Some(password(file)?);
    }
    for (given, place) in [
        (&given.certificate, &mut user.certificate),
        (&given.peer, &mut user.peer),
    ] {
        if let Some(given) = given {
            *place = Some(given.clone());
        }
    }
    if user.scram.is_none() && user.certificate.is_none() && user.peer.is_none() {
        return Err(
            "say --password-file, --certificate or --peer: else the user cannot log in".into(),
        );
    }
    users.write(&given.file)?;
    Ok(format!("{} written", given.name))
}

/// Reads the first line of a file.
fn password(file: &Path) -> Result<String, String> {
    let at = |e: std::io::Error| format!("{}: {e}", file.display());
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin().read_line(&mut text).map_err(at)?;
    } else {
        text = std::fs::read_to_string(file).map_err(at)?;
    }
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(format!("{}: no password in the first line", file.display())),
    }
}

fn list(users: &Users) -> String {
    let line = |(name, user): (&String, &login::User)| {
        let mut ways = Vec::new();
        if user.scram.is_some() {
            ways.push("password".to_owned());
        }
        if let Some(name) = &user.certificate {
            ways.push(format!("certificate {name}"));
        }
        if let Some(name) = &user.peer {
            ways.push(format!("peer {name}"));
        }
        format!("{name}: {}", ways.join(", "))
    };
    users.0.iter().map(line).collect::<Vec<_>>().join("\n")
}
