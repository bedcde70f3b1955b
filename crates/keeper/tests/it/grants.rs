//! What a client's session may do is what its client has granted, whatever the database asks.

use crate::batches::{declassify, list, runs};
use crate::common::{Backend, Builder, Refused, Running, target};
use contract::envelope::{FLAG_GRANT, FLAG_TEXT};
use contract::message::program::{CALL, INPUT};
use contract::{Aggregate, Fid, Kind, Op, TypeCode};
use grant::{Column, Entry, Grant, family, origin};
use keeper::Bytes;
use values::Value;

const INT: TypeCode = TypeCode::Int4;

pub fn bound() -> Running {
    Running::with(|config| {
        config.require_grants = true;
        config.session_memory_limit = Bytes(64 << 20);
    })
}

fn column(name: &str) -> Column {
    Column::new("public", "emp", name)
}

pub fn entry(origins: u8, families: u8, reads: &[&str], writes: &[&str]) -> Entry {
    Entry {
        standing: false,
        origins,
        families,
        reads: reads.iter().map(|c| column(c)).collect(),
        writes: writes.iter().map(|c| column(c)).collect(),
    }
}

pub fn give(backend: &mut Backend, entries: &[Entry]) {
    let grant = Grant {
        entries: entries.to_vec(),
        ..Grant::default()
    };
    let sealed = backend.seal(None, FLAG_TEXT | FLAG_GRANT, &grant.encode());
    backend.send(Kind::Grant, &sealed);
}

/// The partition of a column, by its name.
fn open(backend: &mut Backend, relation: u32, name: &str) -> u32 {
    let mut body = crate::common::DATABASE.to_le_bytes().to_vec();
    body.extend_from_slice(&relation.to_le_bytes());
    body.extend_from_slice(&1i32.to_le_bytes());
    body.extend_from_slice(&(-1i32).to_le_bytes());
    body.extend_from_slice(&[INT as u8, 0, 0, 0, 0, 0, 0, 0]);
    body.extend_from_slice(format!("public\0emp\0{name}\0").as_bytes());
    let answer = backend.call(Kind::PartitionOpen, &body).unwrap();
    u32::from_le_bytes(answer[..4].try_into().unwrap())
}

/// A value that the client has stored in a column.
pub fn stored(backend: &mut Backend, relation: u32, name: &str, value: i32) -> Fid {
    give(backend, &[entry(origin::CLIENT, 0, &[], &[name])]);
    let partition = open(backend, relation, name);
    let constant = backend.put(&Value::Int4(value));
    backend.promote(&[(constant, partition)]).unwrap()[0]
}

fn plain(backend: &mut Backend, value: i32) -> Fid {
    let fid = backend.slot();
    let body = [&target(fid, INT, -1)[..], &value.to_be_bytes()].concat();
    backend.send(Kind::PutPlain, &body);
    fid
}

fn equal(backend: &mut Backend, a: Fid, b: Fid) -> Result<Vec<u8>, Refused> {
    let program = backend.number(Op::Eq, &[INT, INT], None);
    backend.declassify(program, 1, &[a, b])
}

fn is_refused<T>(result: Result<T, Refused>) -> bool {
    matches!(result, Err((state, text)) if state == "42501" && text.contains("authorise"))
}

/// A client's statement compares pay with its constant. The database may do that too, but
/// not compare it with a number of its own, nor with another column, nor compute with it,
/// nor store it. With the bug a trigger that joins pay with generate_series reads it.
#[test]
fn only_what_is_granted() {
    let running = bound();
    let mut backend = running.session();
    let pay = stored(&mut backend, 16_400, "pay", 5200);
    let bonus = stored(&mut backend, 16_401, "bonus", 5200);
    let constant = backend.put(&Value::Int4(5200));
    assert!(is_refused(equal(&mut backend, pay, constant)));
    give(
        &mut backend,
        &[entry(origin::CLIENT, family::COMPARE, &["pay"], &[])],
    );
    assert_eq!(equal(&mut backend, pay, constant), Ok(vec![1]));
    let guess = plain(&mut backend, 5200);
    assert!(is_refused(equal(&mut backend, pay, guess)));
    assert!(is_refused(equal(&mut backend, guess, constant)));
    assert!(is_refused(equal(&mut backend, pay, bonus)));
    let add = backend.number(Op::Add, &[INT, INT], Some(INT));
    let more = backend.eval(add, &[pay, constant]);
    assert!(is_refused(backend.fence()));
    assert!(equal(&mut backend, more, constant).is_err());
    let other = open(&mut backend, 16_401, "bonus");
    assert!(is_refused(backend.promote(&[(pay, other)])));
    assert!(is_refused(backend.get(pay, INT)));
}

/// What is computed keeps the label of what it was made of: a plain value does not become
/// the client's by adding the client's zero.
#[test]
fn labels_follow() {
    let running = bound();
    let mut backend = running.session();
    let pay = stored(&mut backend, 16_400, "pay", 5200);
    let both = origin::CLIENT | origin::PLAIN;
    let compute = family::COMPUTE | family::AGGREGATE;
    give(
        &mut backend,
        &[
            entry(both, compute, &[], &[]),
            entry(origin::CLIENT, family::COMPARE, &["pay"], &[]),
        ],
    );
    let (zero, guess) = (backend.put(&Value::Int4(0)), plain(&mut backend, 5200));
    let add = backend.number(Op::Add, &[INT, INT], Some(INT));
    let sum = backend.eval(add, &[zero, guess]);
    assert_eq!(backend.fence(), Ok(()));
    assert!(is_refused(equal(&mut backend, pay, sum)));
    let max = backend.aggregate_number(Aggregate::Max, INT);
    let (state, result) = (backend.slot(), backend.slot());
    backend.step(state, zero, max, true);
    backend.step(state, guess, max, false);
    backend.two(Kind::AggregateFinal, result, state);
    assert_eq!(backend.fence(), Ok(()));
    assert!(is_refused(equal(&mut backend, pay, result)));
}

/// Values of another column may stand anywhere in a batch's column: what the batch uses is all of
/// them. With the bug the first one's column passes for that of the others.
#[test]
fn mixed_columns() {
    const ROWS: usize = 40;
    let running = bound();
    let mut backend = running.session();
    let pay = stored(&mut backend, 16_400, "pay", 5200);
    let bonus = stored(&mut backend, 16_401, "bonus", 1);
    let constant = backend.put(&Value::Int4(5200));
    let of = |names: &[&str]| [entry(origin::CLIENT, family::COMPARE, names, &[])];
    give(&mut backend, &of(&["pay"]));
    let number = backend.number(Op::Eq, &[INT, INT], None);
    let program = Builder {
        inputs: vec![INT, INT],
        code: vec![(INPUT, 0, 0), (INPUT, 1, 0), (CALL, number as u16, 0)],
        ..Builder::default()
    };
    let program = backend.register(&program).unwrap();
    let asked = |backend: &mut Backend, at: Option<usize>| {
        let mut fids = [pay; ROWS];
        if let Some(at) = at {
            fids[at] = bonus;
        }
        let each: Vec<_> = fids.iter().map(|fid| (*fid, 1, 0)).collect();
        let all = runs(&[(constant, ROWS as u32, 0)]);
        let flat = [fids, [constant; ROWS]].concat();
        let mut found = vec![backend.declassify(number, ROWS as u32, &flat)];
        for column in [list(&fids), runs(&each)] {
            let answer = declassify(backend, program, ROWS as u32, &[column, all.clone()]);
            found.push(answer.map(|answer| answer[8..].to_vec()));
        }
        found
    };
    assert_eq!(asked(&mut backend, None), vec![Ok(vec![1; ROWS]); 3]);
    let places = [0, 1, 3, 4, 31, 32, ROWS - 1];
    for at in places {
        let found = asked(&mut backend, Some(at));
        assert!(found.into_iter().all(is_refused), "{at}");
    }
    give(&mut backend, &of(&["pay", "bonus"]));
    for at in places {
        let right: Vec<u8> = (0..ROWS).map(|row| u8::from(row != at)).collect();
        assert_eq!(asked(&mut backend, Some(at)), vec![Ok(right); 3], "{at}");
    }
}

/// A slot is not given to a value of something else: what was looked at stays.
#[test]
fn slots_keep_their_origin() {
    let running = bound();
    let mut backend = running.session();
    let constant = backend.put(&Value::Int4(1));
    assert_eq!(backend.fence(), Ok(()));
    let body = [&target(constant, INT, -1)[..], &5200i32.to_be_bytes()].concat();
    backend.send(Kind::PutPlain, &body);
    assert!(matches!(backend.fence(), Err((state, _)) if state == "55000"));
}

/// A column's name is given once. With the bug the database says that pay is another column,
/// of which the client allows more.
#[test]
fn names_stay() {
    let running = bound();
    let mut backend = running.session();
    let pay = stored(&mut backend, 16_400, "pay", 5200);
    give(
        &mut backend,
        &[entry(origin::PLAIN, family::COMPARE, &["note"], &["note"])],
    );
    assert_eq!(open(&mut backend, 16_400, "note"), pay.partition());
    let guess = plain(&mut backend, 5200);
    assert!(is_refused(equal(&mut backend, pay, guess)));
    // Nor by storing it there.
    let note = open(&mut backend, 16_402, "note");
    assert!(is_refused(backend.promote(&[(pay, note)])));
}

/// Grants are the session's: forged ones, those of another session and values in their place
/// are refused, and a new client begins without any.
#[test]
fn whose_grants() {
    let running = bound();
    let mut backend = running.session();
    let other = running.session();
    let all = Grant {
        entries: vec![entry(origin::ALL, family::ALL, &["pay"], &["pay"])],
        ..Grant::default()
    };
    let bytes = all.encode();
    let foreign = other.seal(None, FLAG_TEXT | FLAG_GRANT, &bytes);
    let value = backend.seal(None, FLAG_TEXT, &bytes);
    let export = backend.seal(None, FLAG_TEXT | FLAG_GRANT, &bytes[..bytes.len() - 1]);
    for bad in [foreign, value, export, bytes.clone()] {
        backend.send(Kind::Grant, &bad);
        assert!(backend.fence().is_err());
    }
    // A grant is no value, either.
    let grant = backend.seal(None, FLAG_TEXT | FLAG_GRANT, &bytes);
    let slot = backend.slot();
    backend.put_bytes(slot, TypeCode::Text, -1, &grant);
    assert!(backend.fence().is_err());
    let pay = stored(&mut backend, 16_400, "pay", 1);
    backend.send(Kind::Grant, &grant);
    let guess = plain(&mut backend, 1);
    assert_eq!(equal(&mut backend, pay, guess), Ok(vec![1]));
    backend.handshake(&running.client).unwrap();
    assert!(is_refused(equal(&mut backend, pay, guess)));
}

/// What was authorised is remembered for the same operation on values of the same origin, not for
/// others. Mechanism: many operations are authorised, so that each place of the memory is taken,
/// and asked again; then each with one operand of another origin. With the bug these find what
/// was said about the ones before.
#[test]
fn remembered_rows() {
    let running = bound();
    let mut backend = running.session();
    let pay = stored(&mut backend, 16_400, "pay", 5200);
    let bonus = stored(&mut backend, 16_401, "bonus", 5200);
    let (constant, guess) = (backend.put(&Value::Int4(5200)), plain(&mut backend, 5200));
    let of = |name: &str| entry(origin::CLIENT, family::COMPARE, &[name], &[]);
    give(&mut backend, &[of("pay"), of("bonus")]);
    let ops = [Op::Lt, Op::Le, Op::Eq, Op::Ge, Op::Gt, Op::Ne, Op::Cmp];
    let programs = ops.map(|op| backend.number(op, &[INT, INT], None));
    let allowed = [
        [pay, constant],
        [constant, pay],
        [bonus, constant],
        [constant, bonus],
        [constant, Fid::INVALID],
    ];
    for _ in 0..2 {
        for program in programs {
            for fids in allowed {
                assert!(backend.declassify(program, 1, &fids).is_ok());
            }
        }
    }
    let others = [[pay, guess], [guess, constant], [pay, bonus], [bonus, pay]];
    for program in programs {
        for fids in others {
            assert!(is_refused(backend.declassify(program, 1, &fids)));
        }
    }
    let add = backend.number(Op::Add, &[INT, INT], Some(INT));
    backend.eval(add, &[pay, constant]);
    assert!(is_refused(backend.fence()));
}

/// Without a grant a session keeps its indexes: stored values of one column compare.
#[test]
fn one_column() {
    let running = bound();
    let mut backend = running.session();
    let a = stored(&mut backend, 16_400, "pay", 1);
    let b = stored(&mut backend, 16_400, "pay", 2);
    assert_eq!(equal(&mut backend, a, b), Ok(vec![0]));
}

/// A definition's entries hold in later sessions, those of statements do not.
#[test]
fn standing() {
    let running = bound();
    let mut first = running.session();
    let pay = stored(&mut first, 16_400, "pay", 7);
    let stands = Entry {
        standing: true,
        ..entry(origin::CLIENT, family::COMPARE, &["pay"], &[])
    };
    give(
        &mut first,
        &[stands, entry(origin::PLAIN, family::COMPARE, &["pay"], &[])],
    );
    assert_eq!(first.fence(), Ok(()));
    let mut second = running.session();
    let (constant, guess) = (second.put(&Value::Int4(7)), plain(&mut second, 7));
    assert_eq!(equal(&mut second, pay, constant), Ok(vec![1]));
    assert!(is_refused(equal(&mut second, pay, guess)));
}

/// Every operation of the catalog needs a grant, and what answers in the clear without being a
/// comparison needs one for patterns. Mechanism: constants of the client, each signature without a
/// grant, then with all families but one. With the bug a new operation goes by unseen.
#[test]
fn every_operation() {
    let running = bound();
    let mut backend = running.session();
    let signatures = catalog::signatures();
    for (number, signature) in signatures.iter() {
        let args: Vec<Fid> = signature
            .args
            .iter()
            .map(|t| backend.put(&example(t.stored())))
            .collect();
        assert!(is_refused(attempt(&mut backend, number, signature, &args)));
    }
    for (op, missing) in [
        (Op::Regex, family::PATTERN),
        (Op::NotRegexFold, family::PATTERN),
        (Op::Like, family::PATTERN),
        (Op::RegexpLike, family::PATTERN),
        (Op::RegexpReplace, family::COMPUTE),
        (Op::Sha256, family::COMPUTE),
        (Op::ToChar, family::COMPUTE),
        (Op::TimeZone, family::COMPUTE),
        (Op::InRange, family::COMPUTE | family::COMPARE),
    ] {
        let (number, signature) = signatures.iter().find(|(_, s)| s.op == op).unwrap();
        let run = |families| {
            let mut backend = running.session();
            give(&mut backend, &[entry(origin::CLIENT, families, &[], &[])]);
            let put = |t: &TypeCode| backend.put(&example(t.stored()));
            let args: Vec<Fid> = signature.args.iter().map(put).collect();
            attempt(&mut backend, number, signature, &args)
        };
        assert!(is_refused(run(family::ALL & !missing)), "{op:?}");
        assert!(!is_refused(run(missing)), "{op:?}");
        for one in [family::COMPUTE, family::COMPARE] {
            assert_eq!(is_refused(run(one)), missing & !one != 0, "{op:?}");
        }
    }
}

fn attempt(
    backend: &mut Backend,
    number: u16,
    signature: &catalog::Signature,
    args: &[Fid],
) -> Result<(), Refused> {
    if signature.op.result() == contract::OpResult::Fid {
        backend.eval(u32::from(number), args);
        return backend.fence();
    }
    backend.declassify(u32::from(number), 1, args).map(drop)
}

/// A value of a type.
fn example(t: TypeCode) -> Value {
    let text = match t {
        TypeCode::Bool => "t",
        TypeCode::Text | TypeCode::Varchar | TypeCode::Bpchar => "UTC",
        TypeCode::Bytea => "\\x61",
        TypeCode::Date | TypeCode::Timestamp | TypeCode::Timestamptz => "2000-01-01",
        TypeCode::Time => "10:00",
        TypeCode::Interval => "1 day",
        TypeCode::Uuid => "00000000-0000-0000-0000-000000000001",
        TypeCode::Json | TypeCode::Jsonb => "[1]",
        _ => "1",
    };
    values::parse_text(t, -1, text.as_bytes(), &values::Env::default()).unwrap()
}
