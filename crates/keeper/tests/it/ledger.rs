//! Logs of ledger tables, and a backend that lies: what it sends of a transaction becomes entries
//! whole, in the client's name, at about the keeper's time, or not at all.

use crate::common::{Backend, Running, state};
use contract::message::ledger::{ATTRIBUTE, COLUMNS_MAX, CURRENT, END, PLACES, RESTORE, WRITE};
use contract::{Fid, Kind, TypeCode};
use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

const TABLE: u32 = 77;
const MINUTE: i64 = 60_000_000;

pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_micros() as i64 - 946_684_800_000_000
}

fn log(backend: &mut Backend) -> u32 {
    entries_of(backend, &mut Vec::new())
}

/// Opens the log of the table.
pub fn entries_of(backend: &mut Backend, records: &mut Vec<Vec<u8>>) -> u32 {
    let mut body = Vec::new();
    let database = crate::common::DATABASE;
    for number in [database, TABLE, ATTRIBUTE as u32, u32::MAX] {
        body.extend_from_slice(&number.to_le_bytes());
    }
    body.extend_from_slice(&[TypeCode::Bytea as u8, 0, 0, 0, 0, 0, 0, 0]);
    let answer = backend.call(Kind::PartitionOpen, &body).unwrap();
    if answer.len() > 8 {
        records.push(answer[8..].to_vec());
    }
    u32::from_le_bytes(answer[..4].try_into().unwrap())
}

pub fn who(backend: &mut Backend) -> String {
    let name = backend.call(Kind::LedgerWho, &[]).unwrap();
    String::from_utf8(name)
        .unwrap()
        .trim_end_matches('\0')
        .to_owned()
}

/// Says that the rows of a place are those of `s.t`, with these columns.
fn table(backend: &mut Backend, place: u32, columns: &[(&str, &str)]) {
    let mut body = place.to_le_bytes().to_vec();
    body.extend_from_slice(b"s\0t\0");
    for (name, type_name) in columns {
        body.extend_from_slice(format!("\0{name}\0{type_name}\0").as_bytes());
    }
    backend.send(Kind::LedgerTable, &body);
}

/// What happened, its number in the transaction, the version, the version before, when.
pub type Row = (u32, u64, u64, u64, i64);

/// A row without columns.
pub fn row(backend: &mut Backend, log: u32, who: &str, row: Row) {
    table(backend, 0, &[]);
    placed(backend, log, who, row, 0, &[]);
}

/// A row of what a place means, with a value in the columns in these positions.
fn placed(
    backend: &mut Backend,
    log: u32,
    who: &str,
    (what, number, sn, other, time): Row,
    place: u32,
    columns: &[u16],
) {
    let mut body = Vec::new();
    body.extend_from_slice(&log.to_le_bytes());
    body.extend_from_slice(&what.to_le_bytes());
    for word in [number, sn, other, time as u64, 0] {
        body.extend_from_slice(&word.to_le_bytes());
    }
    body.extend_from_slice(&place.to_le_bytes());
    body.extend_from_slice(format!("{who}\0\0").as_bytes());
    for column in columns {
        body.extend_from_slice(&[0; 8]);
        body.extend_from_slice(&column.to_le_bytes());
        body.extend_from_slice(&[0, 0, 1, 0, 0, 0, 7]);
    }
    backend.send(Kind::LedgerRow, &body);
}

pub fn seal(backend: &mut Backend, count: u64) -> Result<Vec<u8>, (String, String)> {
    backend.call(
        Kind::LedgerSeal,
        &[count.to_le_bytes(), [0; 8], [0; 8]].concat(),
    )
}

/// A database whose clock was set back, or on, writes nothing. With the bug it could date a version
/// as it likes.
#[test]
fn clocks() {
    let running = Running::start();
    let mut backend = running.session();
    let (log, who) = (log(&mut backend), who(&mut backend));
    for time in [now() - 2 * MINUTE, now() + 2 * MINUTE, i64::MIN, i64::MAX] {
        row(&mut backend, log, &who, (WRITE, 0, 1, 0, time));
        assert_eq!(state(backend.fence()), "22008");
        assert_eq!(state(seal(&mut backend, 1)), "08P01");
    }
    row(&mut backend, log, &who, (WRITE, 0, 1, 0, now()));
    seal(&mut backend, 1).unwrap();
}

/// So many rows are sealed at once.
const PART: u64 = 16_384;

/// Writes these versions, and then does something else; seals the first part.
fn first_part(
    backend: &mut Backend,
    log: u32,
    who: &str,
    versions: Range<u64>,
    (what, sn): (u32, u64),
) {
    let before = versions.end - versions.start;
    table(backend, 0, &[]);
    for (number, sn) in (0..).zip(versions) {
        placed(backend, log, who, (WRITE, number, sn, 0, now()), 0, &[]);
    }
    placed(backend, log, who, (what, before, sn, 0, now()), 0, &[]);
    assert_eq!(seal(backend, before + 1).unwrap().first(), Some(&1));
}

fn is_not_there(backend: &mut Backend, log: u32, who: &str, sn: u64) {
    row(backend, log, who, (END, 0, sn, 0, now()));
    assert_eq!(state(seal(backend, 1)), "XX001");
}

/// While one transaction is sealed in three parts, another one ends a version that the last part
/// ends, too: the first has no entries then. With the bug the log had two ends of the version.
#[test]
fn between_parts() {
    let running = Running::start();
    let (mut backend, mut other) = (running.session(), running.session());
    let (log, who) = (log(&mut backend), who(&mut backend));
    row(&mut backend, log, &who, (WRITE, 0, 1, 0, now()));
    seal(&mut backend, 1).unwrap();
    first_part(&mut backend, log, &who, 2..2 * PART + 2, (END, 1));
    row(&mut other, log, &who, (END, 0, 1, 0, now()));
    seal(&mut other, 1).unwrap();
    seal(&mut backend, 0).unwrap();
    assert_eq!(state(seal(&mut backend, 0)), "XX001");
    backend.send(Kind::LedgerEnd, &1_u64.to_le_bytes());
    is_not_there(&mut backend, log, &who, 2);
}

/// A database says that a transaction committed of which not all rows are entries. With the bug the
/// first part was valid without the rest.
#[test]
fn first_part_only() {
    let running = Running::start();
    let mut backend = running.session();
    let (log, who) = (log(&mut backend), who(&mut backend));
    first_part(&mut backend, log, &who, 1..PART + 1, (WRITE, PART + 1));
    backend.send(Kind::LedgerEnd, &1_u64.to_le_bytes());
    seal(&mut backend, 0).unwrap();
    is_not_there(&mut backend, log, &who, 1);
    is_not_there(&mut backend, log, &who, PART + 1);
    first_part(&mut backend, log, &who, 1..PART + 1, (WRITE, PART + 1));
    seal(&mut backend, 0).unwrap();
    backend.send(Kind::LedgerEnd, &1_u64.to_le_bytes());
    for ended in [1, PART + 1] {
        row(&mut backend, log, &who, (END, 0, ended, 0, now()));
        seal(&mut backend, 1).unwrap();
    }
}

/// Nobody writes in another's name, leaves a row out, writes a version twice or ends one that is
/// not there.
#[test]
fn lies() {
    let running = Running::start();
    let mut backend = running.session();
    let (log, who) = (log(&mut backend), who(&mut backend));
    row(&mut backend, log, "somebody", (WRITE, 0, 1, 0, now()));
    assert_eq!(state(backend.fence()), "08P01");
    row(&mut backend, log, &who, (WRITE, 1, 1, 0, now()));
    assert_eq!(state(backend.fence()), "08P01");
    row(&mut backend, log, &who, (WRITE, 0, 1, 0, now()));
    row(&mut backend, log, &who, (WRITE, 1, 1, 0, now()));
    assert_eq!(state(seal(&mut backend, 2)), "XX001");
    for (count, error) in [(1, "XX001"), (0, "08P01")] {
        row(&mut backend, log, &who, (END, 0, 5, 0, now()));
        assert_eq!(state(seal(&mut backend, count)), error);
    }
    row(&mut backend, log, &who, (WRITE, 0, 1, 0, now()));
    seal(&mut backend, 1).unwrap();
    row(&mut backend, log, &who, (WRITE, 0, 2, 1, now()));
    seal(&mut backend, 1).unwrap();
    row(&mut backend, log, &who, (END, 0, 2, 0, now()));
    seal(&mut backend, 1).unwrap();
    // What a dump's history had comes in with a ticket only.
    row(&mut backend, log, &who, (RESTORE, 0, 8, 0, -MINUTE));
    assert_eq!(state(backend.fence()), "42501");
    let mut other = running.backend();
    row(&mut other, log, &who, (WRITE, 0, 9, 0, now()));
    assert_eq!(state(other.fence()), "42501");
}

/// Nothing but entries goes into a log, and nothing takes it away: not a promotion, not the end of
/// its table.
#[test]
fn logs_stay() {
    let running = Running::start();
    let mut backend = running.session();
    let (log, who) = (log(&mut backend), who(&mut backend));
    row(&mut backend, log, &who, (WRITE, 0, 1, 0, now()));
    seal(&mut backend, 1).unwrap();
    backend.send(Kind::LedgerEnd, &1_u64.to_le_bytes());
    let forged = backend.put_text(TypeCode::Bytea, -1, "\\x00");
    assert_eq!(state(backend.promote(&[(forged, log)])), "08P01");
    let mut body = crate::common::DATABASE.to_le_bytes().to_vec();
    body.extend_from_slice(&TABLE.to_le_bytes());
    backend.send(Kind::PartitionDrop, &body);
    backend.fence().unwrap();
    row(&mut backend, log, &who, (WRITE, 0, 1, 0, now()));
    assert_eq!(state(seal(&mut backend, 1)), "XX001");
}

fn receipt(backend: &mut Backend) -> Result<(Fid, Vec<u8>), (String, String)> {
    let nonce = backend.put_text(TypeCode::Bytea, -1, "\\x61");
    let to = backend.slot();
    let body = [to.0.to_le_bytes(), nonce.0.to_le_bytes()].concat();
    Ok((to, backend.call(Kind::LedgerReceipt, &body)?))
}

/// A receipt is for what the database has called committed, once, and for who wrote it. With the bug a
/// database could roll back, and the client would have a receipt all the same.
#[test]
fn receipts() {
    let running = Running::start();
    let mut backend = running.session();
    let (log, who) = (log(&mut backend), who(&mut backend));
    assert_eq!(state(receipt(&mut backend)), "55000");
    row(&mut backend, log, &who, (WRITE, 0, 1, 0, now()));
    seal(&mut backend, 1).unwrap();
    assert_eq!(state(receipt(&mut backend)), "55000");
    backend.send(Kind::LedgerEnd, &0_u64.to_le_bytes());
    assert_eq!(state(receipt(&mut backend)), "55000");
    row(&mut backend, log, &who, (WRITE, 0, 2, 0, now()));
    row(&mut backend, log, &who, (WRITE, 1, 3, 0, now()));
    seal(&mut backend, 2).unwrap();
    backend.send(Kind::LedgerEnd, &1_u64.to_le_bytes());
    let (to, answer) = receipt(&mut backend).unwrap();
    assert_eq!(answer[..8], 2_u64.to_le_bytes());
    let text = backend.get(to, TypeCode::Text).unwrap().unwrap();
    assert_eq!(text.matches("\nentry ").count(), 2);
    assert_eq!(state(receipt(&mut backend)), "55000");
    // What comes later and is rolled back leaves nothing, nor the receipt of what came before.
    row(&mut backend, log, &who, (WRITE, 0, 4, 0, now()));
    seal(&mut backend, 1).unwrap();
    backend.send(Kind::LedgerEnd, &1_u64.to_le_bytes());
    row(&mut backend, log, &who, (WRITE, 0, 5, 0, now()));
    seal(&mut backend, 1).unwrap();
    backend.send(Kind::LedgerEnd, &0_u64.to_le_bytes());
    assert_eq!(state(receipt(&mut backend)), "55000");
}

/// Rows are of tables that the channel has described, with the columns it has described, and a
/// description is bounded. What is refused leaves no older description behind. With a bug a backend
/// could fill the keeper's memory, or have rows hashed under the names of another table.
#[test]
fn descriptions() {
    let running = Running::start();
    let mut backend = running.session();
    let (log, who) = (log(&mut backend), who(&mut backend));
    let refused = |backend: &mut Backend, what: u32, place: u32, columns: &[u16]| {
        let row = (what, 0, 1, 0, now());
        placed(backend, log, &who, row, place, columns);
        assert_eq!(state(backend.fence()), "08P01");
    };
    let columns = [("a", "integer"), ("b", "integer")];
    let last = PLACES - 1;
    for place in [0, last, PLACES, u32::MAX] {
        refused(&mut backend, WRITE, place, &[]);
    }
    table(&mut backend, last, &columns);
    backend.fence().unwrap();
    for what in [WRITE, END, CURRENT] {
        refused(&mut backend, what, last, &[0, 2]);
        refused(&mut backend, what, last, &[u16::MAX]);
        refused(&mut backend, what, last - 1, &[]);
    }
    for place in [PLACES, u32::MAX] {
        table(&mut backend, place, &columns);
        assert_eq!(state(backend.fence()), "08P01");
    }
    placed(
        &mut backend,
        log,
        &who,
        (WRITE, 0, 1, 0, now()),
        last,
        &[0, 1],
    );
    seal(&mut backend, 1).unwrap();
    let most = vec![("c", "integer"); COLUMNS_MAX as usize];
    let mut more = most.clone();
    more.push(("c", "integer"));
    let long = "x".repeat(1 << 18);
    for wrong in [more.as_slice(), &[("a", &long), ("b", &long)]] {
        table(&mut backend, last, &most);
        backend.fence().unwrap();
        table(&mut backend, last, wrong);
        assert_eq!(state(backend.fence()), "08P01");
        refused(&mut backend, WRITE, last, &[]);
    }
}

/// A description counts for the rows that follow it. With the bug a column could be renamed behind the
/// log's back.
#[test]
fn described_anew() {
    let running = Running::start();
    let mut backend = running.session();
    let (log, who) = (log(&mut backend), who(&mut backend));
    let time = now();
    table(&mut backend, 5, &[("a", "integer")]);
    placed(&mut backend, log, &who, (WRITE, 0, 1, 0, time), 5, &[0]);
    seal(&mut backend, 1).unwrap();
    backend.send(Kind::LedgerEnd, &1_u64.to_le_bytes());
    let mut findings = |name: &str, type_name: &str| {
        let mut body = log.to_le_bytes().to_vec();
        body.extend_from_slice(&[0; 12]);
        body.extend_from_slice(b"s\0t\0");
        backend.call(Kind::LedgerCheck, &body).unwrap();
        table(&mut backend, 5, &[(name, type_name)]);
        placed(&mut backend, log, &who, (CURRENT, 0, 1, 0, time), 5, &[0]);
        let nonce = backend.put_text(TypeCode::Bytea, -1, "\\x61");
        let to = backend.slot();
        let words = [to.0, nonce.0, 0].map(u64::to_le_bytes).concat();
        let answer = backend.call(Kind::LedgerReport, &words).unwrap();
        u64::from_le_bytes(answer[..8].try_into().unwrap())
    };
    assert_eq!(findings("a", "integer"), 0);
    assert_eq!(findings("b", "integer"), 1);
    assert_eq!(findings("a", "bigint"), 1);
    assert_eq!(findings("a", "integer"), 0);
}
