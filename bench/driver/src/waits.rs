//! Counts what the statements of a session wait for: answers of the keeper, by kind of message.
use std::collections::{BTreeMap, HashMap};

use crate::session::texts;
use crate::wire::{Connection, Result};

/// What a statement has waited for: how often it ran, and answers by the kind of message.
#[derive(Default)]
pub struct Waits {
    pub calls: u64,
    pub answers: BTreeMap<String, u64>,
}

/// Counts what the statements of a session wait for.
#[derive(Default)]
pub struct Counting {
    seen: BTreeMap<String, u64>,
    pub by_statement: BTreeMap<&'static str, Waits>,
}

impl Counting {
    pub fn begin(connection: &mut Connection) -> Result<Counting> {
        Ok(Counting {
            seen: answered(connection)?,
            ..Counting::default()
        })
    }

    /// A statement has run.
    pub fn count(&mut self, connection: &mut Connection, sql: &'static str) -> Result<()> {
        let now = answered(connection)?;
        let waits = self.by_statement.entry(sql).or_default();
        waits.calls += 1;
        for (kind, count) in &now {
            let more = count - self.seen.get(kind).unwrap_or(&0);
            if more > 0 {
                *waits.answers.entry(kind.clone()).or_default() += more;
            }
        }
        self.seen = now;
        Ok(())
    }
}

/// The session's answered messages so far, by kind, but for those that ask for this.
fn answered(connection: &mut Connection) -> Result<BTreeMap<String, u64>> {
    let sql = "SELECT name, value FROM confide.confide_stat_keeper";
    let found: HashMap<String, u64> = texts(connection.simple(sql)?)
        .into_iter()
        .filter_map(|row| match row.as_slice() {
            [Some(name), Some(value)] => Some((name.clone(), value.parse().ok()?)),
            _ => None,
        })
        .collect();
    let kinds = contract::Kind::ALL.iter();
    let waited = kinds.filter(|kind| kind.is_answered() && **kind != contract::Kind::Stats);
    let count = |kind: &contract::Kind| {
        let all = *found.get(&format!("session.messages.{kind:?}"))?;
        Some((format!("{kind:?}"), all))
    };
    Ok(waited.filter_map(count).collect())
}
