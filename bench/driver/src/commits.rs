//! Single rows, each its own transaction: what a commit costs.
use clap::ValueEnum;

use crate::params;
use crate::random::Random;
use crate::session::Session;
use crate::wire::Result;

/// What is committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Kind {
    Insert,
    Update,
}

/// Runs one commit on the table `commits (id, n, s)`; ids of `rows` exist.
pub fn one(session: &mut Session, random: &mut Random, kind: Kind, rows: i64) -> Result<()> {
    let n = random.between(0, 1_000_000);
    let text = random.text(20, 40);
    match kind {
        Kind::Insert => session.run(
            "INSERT INTO commits (n, s) VALUES ($1, $2)",
            params![n, text],
        ),
        Kind::Update => session.run(
            "UPDATE commits SET n = $1, s = $2 WHERE id = $3",
            params![n, text, random.between(1, rows)],
        ),
    }
    .map(|_| ())
}
