//! `Tokens`: what is one token and what are two, beyond single values (equality.rs); errors of
//! rows, and who gets none. Bug: a join finds rows that are not equal or loses some, or the
//! database compares values of two statements.

use crate::common::{Backend, Refused, Running, state};
use ::values::Value;
use TypeCode::{Int4, Text};
use contract::codec::Part;
use contract::message::column::LIST;
use contract::message::token::BYTES;
use contract::{Fid, Kind, Op, TypeCode, answer};

const NONE: [u8; BYTES] = [0; BYTES];

fn ask(
    backend: &mut Backend,
    number: u64,
    nulls_equal: bool,
    columns: &[(TypeCode, Vec<Fid>)],
) -> Result<Vec<u8>, Refused> {
    let rows = columns.first().map_or(0, |(_, fids)| fids.len() as u32);
    let mut body = number.to_le_bytes().to_vec();
    body.extend_from_slice(&rows.to_le_bytes());
    body.extend_from_slice(&[columns.len() as u8, 0, u8::from(nulls_equal), 0]);
    body.extend(columns.iter().map(|(t, _)| *t as u8));
    for (_, fids) in columns {
        body.extend([LIST, fids.len() as u32].map(u32::to_le_bytes).concat());
        body.extend(fids.iter().flat_map(|fid| fid.0.to_le_bytes()));
    }
    backend.call(Kind::Tokens, &body)
}

fn tokens(
    backend: &mut Backend,
    number: u64,
    nulls_equal: bool,
    columns: &[(TypeCode, Vec<Fid>)],
) -> Vec<[u8; BYTES]> {
    let answer = ask(backend, number, nulls_equal, columns).unwrap();
    let revealed = answer::Tokens::decode(&answer).unwrap().revealed;
    assert_eq!((revealed.width as usize, revealed.error), (BYTES, None));
    revealed.results.as_chunks().0.to_vec()
}

fn text(backend: &mut Backend, s: &str) -> Fid {
    backend.put(&Value::Text(s.as_bytes().into()))
}

/// Where one value ends counts, and so does which one is NULL.
#[test]
fn several_columns() {
    let running = Running::start();
    let mut backend = running.session();
    let long = "a text of more than a word";
    let pairs = [
        ["ab", "c"],
        ["a", "bc"],
        ["", "abc"],
        ["abc", ""],
        [long, "x"],
        ["x", long],
    ];
    let mut columns = [vec![Fid::INVALID; 3], vec![Fid::INVALID; 3]];
    columns[0][1] = text(&mut backend, "");
    columns[1][2] = text(&mut backend, "");
    for pair in pairs.iter().chain(&pairs) {
        for (column, s) in columns.iter_mut().zip(pair) {
            column.push(text(&mut backend, s));
        }
    }
    let columns = columns.map(|fids| (Text, fids));
    let found = tokens(&mut backend, 1, true, &columns);
    let (first, second) = found[3..].split_at(pairs.len());
    assert_eq!(first, second);
    let all: std::collections::HashSet<_> = found.iter().collect();
    assert_eq!(all.len(), 3 + pairs.len());
    assert!(!all.contains(&NONE));
    let joined = tokens(&mut backend, 1, false, &columns);
    assert_eq!(joined[..3], [NONE; 3]);
    assert_eq!(joined[3..], found[3..]);
}

/// Tokens of two joins, of two channels and of two sessions say nothing about each other.
#[test]
fn nothing_else_compares() {
    let running = Running::start();
    let mut backend = running.session();
    let partition = backend.open(1, Int4, -1);
    let value = backend.put(&Value::Int4(5));
    let fid = backend.promote(&[(value, partition)]).unwrap()[0];
    let column = [(Int4, vec![fid])];
    let first = tokens(&mut backend, 1, false, &column);
    assert_eq!(tokens(&mut backend, 1, false, &column), first);
    assert_ne!(tokens(&mut backend, 2, false, &column), first);
    let mut other = running.session();
    assert_ne!(tokens(&mut other, 1, false, &column), first);
    assert_ne!(first[0], NONE);
}

/// Rows before the first that failed have their tokens; its error comes with them, and is no
/// error of what comes later. What was told is counted.
#[test]
fn errors_of_rows() {
    let running = Running::start();
    let mut backend = running.session();
    let values = [3, 0, 1].map(|v| backend.put(&Value::Int4(v)));
    let divide = backend.number(Op::Div, &[Int4, Int4], Some(Int4));
    let quotients = values.map(|v| backend.eval(divide, &[values[0], v]));
    // The error of the operator itself is told, as always, and is not what is tested.
    let _ = backend.fence();
    let answer = ask(&mut backend, 1, false, &[(Int4, quotients.to_vec())]).unwrap();
    let revealed = answer::Tokens::decode(&answer).unwrap().revealed;
    assert_eq!((revealed.good, revealed.results.len()), (1, BYTES));
    assert_eq!(revealed.error.map(|e| e.sqlstate), Some(*b"22012"));
    assert!(backend.fence().is_ok());
}

#[test]
fn who_gets_none() {
    let running = Running::start();
    let mut backend = running.session();
    let partition = backend.open(1, Int4, -1);
    let value = backend.put(&Value::Int4(5));
    let fid = backend.promote(&[(value, partition)]).unwrap()[0];
    let mut stranger = running.backend();
    let refused = ask(&mut stranger, 1, false, &[(Int4, vec![fid])]);
    assert_eq!(state(refused), "42501");
    assert_eq!(state(ask(&mut backend, 1, false, &[])), "08P01");
    let refused = ask(&mut backend, 1, false, &[(Text, vec![fid])]);
    assert_eq!(state(refused), "42804");
    let beyond = Fid::new(partition, 77);
    let answer = ask(&mut backend, 1, false, &[(Int4, vec![fid, beyond])]).unwrap();
    assert_eq!(answer[..4], 1u32.to_le_bytes());
    let stats = backend.stats();
    let hashes = stats
        .iter()
        .find(|(name, _)| name.ends_with(&format!(".{partition}.declassified_hashes")));
    assert_eq!(hashes.map(|(_, n)| *n), Some(1));
}
