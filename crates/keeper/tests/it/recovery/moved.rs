//! Values that move to a history: they are there at once, and after a restart if their record was
//! logged; a backend that lies cannot commit.

use super::leases::{int, lease, open_named};
use super::{Place, ints, promote};
use crate::common::{Backend, state};
use crate::ledger::{entries_of, now, row, seal, who};
use contract::message::ledger::{END, WRITE};
use contract::{Fid, Kind, TypeCode};

const INT: TypeCode = TypeCode::Int4;

/// A column and its history's, with a value, and an identifier that is leased for it.
struct Bond {
    backend: Backend,
    entries: u32,
    who: String,
    value: Fid,
    past: Vec<Fid>,
    log: Vec<Vec<u8>>,
}

impl Bond {
    fn new(mut backend: Backend) -> Bond {
        let mut log = Vec::new();
        let pay = open_named(&mut backend, 1, "bond", "pay", &mut log);
        let past = open_named(&mut backend, 2, "bond_history", "pay", &mut log);
        let entries = entries_of(&mut backend, &mut log);
        let who = who(&mut backend);
        let value = promote(&mut backend, pay, &ints(42, 1), &mut log)[0];
        let past = lease(&mut backend, 4, &[past], &mut log);
        Bond {
            backend,
            entries,
            who,
            value,
            past,
            log,
        }
    }

    fn row(&mut self, what: u32, number: u64, sn: u64) {
        let row_ = (what, number, sn, 0, now());
        row(&mut self.backend, self.entries, &self.who, row_);
    }

    fn moves(&mut self, source: Fid, into: Fid) {
        let words = [1, source.0, into.0];
        let body: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.backend.send(Kind::LedgerMove, &body);
    }

    fn seal(&mut self, count: u64) -> Result<(), (String, String)> {
        let answer = seal(&mut self.backend, count)?;
        assert_eq!(answer[..4], [0; 4]);
        self.log.push(answer[8..].to_vec());
        Ok(())
    }
}

/// What committed is there after a restart, what was rolled back to a savepoint is not in the record.
/// Bug: a row of the history that has no value, or an earlier one in place of somebody else's.
#[test]
fn values_survive() {
    let place = Place::new();
    let (running, worker) = place.leasing_first();
    let mut bond = Bond::new(running.session());
    bond.row(WRITE, 0, 1);
    bond.seal(1).unwrap();
    bond.row(END, 0, 1);
    let (value, past) = (bond.value, bond.past.clone());
    bond.moves(value, past[0]);
    bond.row(WRITE, 1, 2);
    bond.moves(value, past[1]);
    // Back to a savepoint before the second row, by the next one, and by the number that is sealed.
    bond.row(WRITE, 1, 3);
    bond.row(WRITE, 2, 4);
    bond.moves(value, past[2]);
    bond.seal(2).unwrap();
    for fid in &past[..3] {
        assert_eq!(int(&mut bond.backend, *fid).as_deref(), Some("42"));
    }
    let log = bond.log;
    drop((bond.backend, worker, running));
    let (running, _worker) = place.leasing_again(&log);
    let mut backend = running.session();
    assert_eq!(int(&mut backend, past[0]).as_deref(), Some("42"));
    assert_eq!(int(&mut backend, past[1]), None);
    assert_eq!(int(&mut backend, past[2]), None);
}

/// Values of no row, and into identifiers that are not leased, or to others, of another type, or twice: then the row
/// is missing, also if the database has forgotten its errors. Bug: a transaction commits without them.
#[test]
fn refused() {
    let place = Place::new();
    let (running, _worker) = place.leasing_first();
    let mut bond = Bond::new(running.session());
    let (value, past) = (bond.value, bond.past.clone());
    bond.moves(value, past[0]);
    assert_eq!(state(bond.backend.fence()), "08P01");
    bond.row(WRITE, 0, 1);
    bond.moves(value, past[0]);
    bond.seal(1).unwrap();
    let not_leased = Fid::new(past[0].partition(), past[0].slot() + 4);
    let other = bond.backend.put_text(TypeCode::Text, -1, "of another type");
    let free = Fid::new(value.partition(), value.slot() + 1);
    let mut others = running.session();
    let theirs = lease(&mut others, 1, &[past[0].partition()], &mut bond.log)[0];
    for (source, into) in [
        (value, not_leased),
        (value, theirs),
        (value, past[0]),
        (value, free),
        (free, past[1]),
        (other, past[1]),
        (Fid::INVALID, past[1]),
    ] {
        bond.row(WRITE, 0, 2);
        bond.moves(source, into);
        bond.backend.send(Kind::Forget, &[]);
        assert_eq!(state(bond.seal(1)), "08P01", "{source:?} {into:?}");
    }
    bond.row(WRITE, 0, 2);
    bond.moves(value, past[1]);
    bond.seal(1).unwrap();
    let found = bond.backend.get(past[1], INT);
    assert_eq!(found, Ok(Some("42".to_owned())));
}
