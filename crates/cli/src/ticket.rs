//! `confide restore-ticket`: lets somebody without a client's key restore values of a dump
//! (docs/operations.md).
//!
//! No secret is an argument: keys are in files. Whoever has the printed ticket can use it.

use clap::Args;
use envelope::{Issuer, PublicKey, Role, SealedTicket, SecretKey};
use grant::{NUMBER_BYTES, Place, Ticket};
use rootkey::RootKeyFile;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Issuer and content of the ticket.
#[derive(Args)]
pub struct Arguments {
    /// Key file of the client who issues it.
    #[arg(
        long,
        value_name = "FILE",
        requires = "keeper_key",
        conflicts_with = "root_key"
    )]
    key: Option<PathBuf>,
    /// Public key of the keeper at which to restore, or a file with it.
    #[arg(long, value_name = "KEY")]
    keeper_key: Option<String>,
    /// The root key's file, if an operator issues it.
    #[arg(
        long,
        value_name = "FILE",
        requires = "source",
        required_unless_present = "key"
    )]
    root_key: Option<PathBuf>,
    /// The source that wraps the root key.
    #[arg(long)]
    source: Option<String>,
    /// Name of the database to restore.
    #[arg(long, value_name = "NAME")]
    database: String,
    /// schema.table or schema.table.column; can be repeated. Without it: the whole database.
    #[arg(long, value_name = "PLACE")]
    place: Vec<String>,
    /// Allow values in columns with other names than in the dump; also needed for dumps of earlier
    /// versions of Confide.
    #[arg(long)]
    other_columns: bool,
    /// Number of sessions that may use it: more for pg_restore --jobs; 0: any number, for a
    /// subscription.
    #[arg(long, default_value_t = 1)]
    uses: u32,
    /// Period of validity: a number and s, m, h or d.
    #[arg(long, value_name = "TIME", default_value = "1h")]
    expires: String,
}

pub fn run(arguments: &Arguments) -> Result<String, String> {
    let mut number = [0; NUMBER_BYTES];
    aws_lc_rs::rand::fill(&mut number).map_err(|_| "no random numbers available")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_err(|_| "the clock is before 1970")?.as_secs();
    let place = |text: &String| {
        Place::read(text).ok_or_else(|| format!("{text}: not schema.table or schema.table.column"))
    };
    let ticket = Ticket {
        number,
        expires: now.saturating_add(seconds(&arguments.expires)?),
        uses: arguments.uses,
        other_columns: arguments.other_columns,
        database: arguments.database.clone(),
        places: arguments
            .place
            .iter()
            .map(place)
            .collect::<Result<_, _>>()?,
    };
    seal(arguments, &ticket.encode())
}

fn seal(arguments: &Arguments, content: &[u8]) -> Result<String, String> {
    let sealed = |e: envelope::Error| e.to_string();
    if let (Some(file), Some(keeper)) = (&arguments.key, &arguments.keeper_key) {
        let at = |e: envelope::Error| format!("{}: {e}", file.display());
        let key = SecretKey::read_file(Role::Client, file).map_err(at)?;
        let keeper = public_key(keeper)?;
        return SealedTicket::seal(&Issuer::Client(&key, &keeper), content).map_err(sealed);
    }
    let (Some(file), Some(source)) = (&arguments.root_key, &arguments.source) else {
        return Err("say --key and --keeper-key, or --root-key and --source".into());
    };
    let file = RootKeyFile::new(file);
    let source = file.source(source).map_err(|e| e.to_string())?;
    let root = file.open(&*source).map_err(|e| e.to_string())?;
    SealedTicket::seal(&Issuer::Operator(root.expose()), content).map_err(sealed)
}

/// A key, or the name of a file that contains it.
fn public_key(text: &str) -> Result<PublicKey, String> {
    text.parse().or_else(|_| {
        let content = std::fs::read_to_string(text).map_err(|e| format!("{text}: {e}"))?;
        content.trim().parse().map_err(|e| format!("{text}: {e}"))
    })
}

fn seconds(text: &str) -> Result<u64, String> {
    let bad = || format!("{text}: not a number and s, m, h or d");
    let (number, unit) = text
        .split_at_checked(text.len().saturating_sub(1))
        .ok_or_else(bad)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(bad()),
    };
    let number: u64 = number.parse().map_err(|_| bad())?;
    number.checked_mul(unit).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn times() {
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(seconds("2d"), Ok(172_800));
        for text in ["", "h", "5", "-1h", "1w", "1\u{e9}"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
