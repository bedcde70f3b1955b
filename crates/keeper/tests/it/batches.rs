//! `EvalBatch`, `DeclassifyBatch`, `DeclassifyGroups`: columns as lists, runs and plain booleans, several
//! programs over them, errors in the row they belong to.

use crate::common::{Backend, Builder, Refused, Running, state};
use ::values::Value;
use TypeCode::{Bpchar, Int4, Text};
use contract::codec::Part;
use contract::message::column::{BOOLS, LIST, RUNS};
use contract::message::program::{AND, CALL, HOLDS, INPUT, LOAD, STORE};
use contract::message::table::Nulls;
use contract::{Fid, Kind, Op, TypeCode, answer};

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

pub fn list(fids: &[Fid]) -> Vec<u8> {
    let mut out = words(&[LIST, fids.len() as u32]);
    out.extend(fids.iter().flat_map(|fid| fid.0.to_le_bytes()));
    out
}

pub fn runs(runs: &[(Fid, u32, u32)]) -> Vec<u8> {
    let mut out = words(&[RUNS, runs.len() as u32]);
    for (first, length, stride) in runs {
        out.extend_from_slice(&first.0.to_le_bytes());
        out.extend(words(&[*length, *stride]));
    }
    out
}

fn bools(bytes: &[u8]) -> Vec<u8> {
    [words(&[BOOLS, bytes.len() as u32]), bytes.to_vec()].concat()
}

pub fn declassify(
    backend: &mut Backend,
    program: u32,
    rows: u32,
    columns: &[Vec<u8>],
) -> Result<Vec<u8>, Refused> {
    declassify_wanted(backend, program, rows, columns, 0)
}

fn declassify_wanted(
    backend: &mut Backend,
    program: u32,
    rows: u32,
    columns: &[Vec<u8>],
    wanted: u32,
) -> Result<Vec<u8>, Refused> {
    let head = words(&[program, rows, columns.len() as u32, wanted]);
    backend.call(Kind::DeclassifyBatch, &[head, columns.concat()].concat())
}

fn eval(
    backend: &mut Backend,
    programs: &[(u32, Fid)],
    rows: u32,
    columns: &[Vec<u8>],
) -> Result<Vec<u8>, Refused> {
    let mut body = words(&[rows, columns.len() as u32, programs.len() as u32, 0]);
    for (program, to) in programs {
        body.extend(words(&[*program, 0]));
        body.extend_from_slice(&to.0.to_le_bytes());
    }
    body.extend(columns.concat());
    backend.call(Kind::EvalBatch, &body)
}

/// A column of 0..rows, as its first FID.
fn column(backend: &mut Backend, rows: i32) -> Fid {
    let p = backend.open(7, Int4, -1);
    let items: Vec<_> = (0..rows)
        .map(|v| (backend.put(&Value::Int4(v)), p))
        .collect();
    backend.promote(&items).unwrap()[0]
}

fn ints(op: Op, backend: &Backend, ret: Option<TypeCode>) -> u16 {
    backend.number(op, &[Int4, Int4], ret) as u16
}

/// Two parts long; a constant, NULLs within, and a temporary value among the column's.
#[test]
fn runs_and_lists() {
    let running = Running::start();
    let mut backend = running.session();
    let rows = 1500u32;
    let first = column(&mut backend, rows as i32);
    let limit = backend.put(&Value::Int4(1100));
    let lt = ints(Op::Lt, &backend, None);
    let program = Builder {
        inputs: vec![Int4, Int4],
        code: vec![(INPUT, 0, 0), (INPUT, 1, 0), (CALL, lt, 0)],
        ..Builder::default()
    };
    let handle = backend.register(&program).unwrap();
    let constant = runs(&[(limit, rows, 0)]);
    let after = |n: u64| Fid(first.0 + n);
    let pieces = runs(&[
        (first, 1000, 1),
        (Fid::INVALID, 50, 0),
        (limit, 1, 0),
        (after(1051), rows - 1051, 1),
    ]);
    let wanted: Vec<u8> = (0..rows)
        .map(|row| match row {
            1000..1050 => 2,
            1050 => 0,
            _ => u8::from(row < 1100),
        })
        .collect();
    let answer = declassify(&mut backend, handle, rows, &[pieces, constant.clone()]).unwrap();
    assert_eq!(answer[..8], words(&[rows, 1])[..]);
    assert_eq!(answer[8..], wanted[..]);
    let fids: Vec<Fid> = (0..u64::from(rows)).rev().map(after).collect();
    let answer = declassify(&mut backend, handle, rows, &[list(&fids), constant]).unwrap();
    let wanted: Vec<u8> = (0..rows).rev().map(|v| u8::from(v < 1100)).collect();
    assert_eq!(answer[8..], wanted[..]);
}

/// Nothing is told of rows after the last that is wanted, also not that one fails.
#[test]
fn rows_that_are_wanted() {
    let running = Running::start();
    let mut backend = running.session();
    let rows = 1500u32;
    let first = column(&mut backend, rows as i32);
    let (limit, hundred) = (
        backend.put(&Value::Int4(-1)),
        backend.put(&Value::Int4(100)),
    );
    let div = ints(Op::Div, &backend, Some(Int4));
    let lt = ints(Op::Lt, &backend, None);
    // limit < 100 / x - which x = 0, the last row, does not survive - is true up to row 1498.
    let program = Builder {
        inputs: vec![Int4, Int4, Int4],
        code: vec![
            (INPUT, 2, 0),
            (INPUT, 1, 0),
            (INPUT, 0, 0),
            (CALL, div, 0),
            (CALL, lt, 0),
        ],
        ..Builder::default()
    };
    let handle = backend.register(&program).unwrap();
    let backwards: Vec<Fid> = (0..u64::from(rows))
        .rev()
        .map(|n| Fid(first.0 + n))
        .collect();
    let columns = [
        list(&backwards),
        runs(&[(hundred, rows, 0)]),
        runs(&[(limit, rows, 0)]),
    ];
    let mut told =
        |wanted| declassify_wanted(&mut backend, handle, rows, &columns, wanted).unwrap();
    for wanted in [1, 2, 1100, 1499] {
        let answer = told(wanted);
        assert_eq!(answer[..8], words(&[wanted, 1])[..]);
        assert_eq!(answer[8..], vec![1; wanted as usize]);
    }
    let all = told(1500);
    assert_eq!(all[..8], words(&[1499, 1])[..]);
    assert!(all.len() > 8 + 1499, "the error of the last row");
}

/// Bug: a group is decided by a row after its first that is true, or fails by one; what is told
/// goes on after the group with the last that is wanted, or that fails.
#[test]
fn groups() {
    let running = Running::start();
    let mut backend = running.session();
    // 1 < 10 / x: false for NULL and from 10 on, fails for 0.
    let first = column(&mut backend, 1500);
    let (one, ten) = (backend.put(&Value::Int4(1)), backend.put(&Value::Int4(10)));
    let div = ints(Op::Div, &backend, Some(Int4));
    let lt = ints(Op::Lt, &backend, None);
    let program = Builder {
        inputs: vec![Int4, Int4, Int4],
        code: vec![
            (INPUT, 2, 0),
            (INPUT, 1, 0),
            (INPUT, 0, 0),
            (CALL, div, 0),
            (CALL, lt, 0),
        ],
        ..Builder::default()
    };
    let handle = backend.register(&program).unwrap();
    let fid = |n: u64| Fid(first.0 + n);
    let mut told = |values: &[Fid], lengths: &[u32], wanted: u32, none: u32| {
        let rows = values.len() as u32;
        let same = |fid: Fid| list(&vec![fid; values.len()]);
        let columns = [list(values), same(ten), same(one)];
        let head = [handle, rows, 3, wanted, lengths.len() as u32, none];
        let body = [words(&head), words(lengths), columns.concat()].concat();
        backend.call(Kind::DeclassifyGroups, &body)
    };
    let answer = |bits: &[u8]| [words(&[bits.len() as u32, 1]), bits.to_vec()].concat();
    let (yes, no, bad, null) = (fid(2), fid(20), fid(0), Fid::INVALID);
    let rows = [yes, bad, no, null, no, no, yes, bad, bad];
    let lengths = [0, 2, 2, 0, 5, 0];
    let all = [0, 1, 0, 0, 1, 0];
    assert_eq!(told(&rows, &lengths, 0, 0), Ok(answer(&all)));
    assert_eq!(told(&rows, &lengths, 1, 0), Ok(answer(&all[..2])));
    assert_eq!(told(&rows, &lengths, 2, 0), Ok(answer(&all[..5])));
    assert_eq!(told(&rows, &lengths, 3, 0), Ok(answer(&all)));
    let others = all.map(|b| 1 - b);
    assert_eq!(told(&rows, &lengths, 0, 1), Ok(answer(&others)));
    for (wanted, groups) in [(1, 1), (2, 3), (3, 4), (4, 6)] {
        let expected = answer(&others[..groups]);
        assert_eq!(told(&rows, &lengths, wanted, 1), Ok(expected));
    }
    // The second group fails: the first is told of, and why.
    let failing = [no, no, bad, yes];
    let found = told(&failing, &[1, 2, 1], 0, 0).unwrap();
    assert_eq!(found[..9], answer(&[0])[..]);
    assert_eq!(found[9..14], *b"22012");
    assert_eq!(told(&failing, &[1, 2, 1], 1, 1), Ok(answer(&[1])));
    // A group over the edge of a part; one that is true in its first row fails in none.
    let mut long = vec![no; 1400];
    long[1300] = yes;
    long[1301] = bad;
    assert_eq!(told(&long, &[1000, 400], 0, 0), Ok(answer(&[0, 1])));
    long[1100] = bad;
    assert_eq!(told(&long, &[1000, 400], 0, 0).unwrap()[9..14], *b"22012");
    assert_eq!(told(&[], &[], 0, 0), Ok(answer(&[])));
    assert_eq!(told(&[], &[0, 0], 0, 1), Ok(answer(&[1, 1])));
    for lengths in [&[][..], &[1], &[3], &[1, 2], &[u32::MAX, 3]] {
        assert_eq!(state(told(&[yes, no], lengths, 0, 0)), "08P01");
    }
}

/// Mechanism: `b and 5 / x > 1` row by row. The answer ends before the first row that
/// fails, and says why; rows that the plain boolean excludes do not fail. With the bug
/// the whole batch fails, or the division of an excluded row does.
#[test]
fn rows_before_an_error() {
    let running = Running::start();
    let mut backend = running.session();
    let first = column(&mut backend, 10);
    let (five, one) = (backend.put(&Value::Int4(5)), backend.put(&Value::Int4(1)));
    let div = ints(Op::Div, &backend, Some(Int4));
    let gt = ints(Op::Gt, &backend, None);
    let mut program = Builder {
        inputs: vec![Int4, Int4, Int4, Int4],
        code: vec![
            (INPUT, 3, 0),
            (HOLDS, 0, 0),
            (INPUT, 0, 0),
            (INPUT, 1, 0),
            (CALL, div, 0),
            (INPUT, 2, 0),
            (CALL, gt, 0),
            (HOLDS, 0, 0),
            (AND, 0, 0),
        ],
        ..Builder::default()
    };
    // An input of plain booleans must be declared as such.
    assert_eq!(state(backend.register(&program)), "42804");
    program.plain = vec![3];
    let handle = backend.register(&program).unwrap();
    let columns = |guard: &[u8]| {
        vec![
            runs(&[(five, 4, 0)]),
            list(&[Fid(first.0 + 2), first, first, Fid(first.0 + 1)]),
            runs(&[(one, 4, 0)]),
            bools(guard),
        ]
    };
    let answer = declassify(&mut backend, handle, 4, &columns(&[1, 0, 2, 1])).unwrap();
    assert_eq!(answer, [words(&[4, 1]), vec![1, 0, 0, 1]].concat());
    let answer = declassify(&mut backend, handle, 4, &columns(&[1, 0, 1, 1])).unwrap();
    assert_eq!(answer[..10], [words(&[2, 1]), vec![1, 0]].concat()[..]);
    assert_eq!(answer[10..15], *b"22012");
    // It was told in the answer, and is not told again.
    assert_eq!(backend.fence(), Ok(()));
}

/// Two programs over the same columns; a local; an error in the second.
#[test]
fn several_programs() {
    let running = Running::start();
    let mut backend = running.session();
    let first = column(&mut backend, 5);
    let add = ints(Op::Add, &backend, Some(Int4));
    let div = ints(Op::Div, &backend, Some(Int4));
    let doubled = Builder {
        inputs: vec![Int4, Int4],
        code: vec![
            (INPUT, 0, 0),
            (INPUT, 1, 0),
            (CALL, add, 0),
            (STORE, 3, 0),
            (LOAD, 3, 0),
            (CALL, add, 0),
        ],
        ..Builder::default()
    };
    let quotient = Builder {
        inputs: vec![Int4, Int4],
        code: vec![(INPUT, 0, 0), (INPUT, 1, 0), (CALL, div, 0)],
        ..Builder::default()
    };
    let never_stored = Builder {
        code: vec![(LOAD, 0, 0)],
        ..Builder::default()
    };
    assert_eq!(state(backend.register(&never_stored)), "42804");
    let (a, b) = (
        backend.register(&doubled).unwrap(),
        backend.register(&quotient).unwrap(),
    );
    let columns = [
        runs(&[(first, 5, 1)]),
        list(&[
            Fid(first.0 + 1),
            Fid::INVALID,
            Fid(first.0 + 3),
            first,
            Fid(first.0 + 4),
        ]),
    ];
    let to = [backend.slots(5), backend.slots(5)];
    let answer = eval(&mut backend, &[(a, to[0]), (b, to[1])], 5, &columns).unwrap();
    let answer = answer::EvalBatch::decode(&answer).unwrap();
    assert_eq!((answer.good, answer.programs), (3, 2));
    let nulls = |n: Nulls<'_>| (n.count, n.rows.to_vec());
    let nulls: Vec<_> = answer.nulls.iter().map(nulls).collect();
    assert_eq!(nulls, vec![(1, vec![0, 1, 0, 0, 0]); 2]);
    assert_eq!(answer.error.map(|e| e.sqlstate), Some(*b"22012"));
    let at = |to: Fid, row: u64| Fid::new(to.partition(), to.slot() + row);
    let last = backend.get(at(to[0], 4), Int4).unwrap();
    assert_eq!(last.as_deref(), Some("16"));
    assert_eq!(state(backend.get(at(to[1], 3), Int4)), "22012");
    assert_eq!(
        backend.get(at(to[1], 2), Int4).unwrap().as_deref(),
        Some("0")
    );
}

/// Columns that are not what they say.
#[test]
fn hostile() {
    let running = Running::start();
    let mut backend = running.session();
    let first = column(&mut backend, 5);
    let truth = Builder {
        inputs: vec![Int4],
        code: vec![(INPUT, 0, 0), (contract::message::program::IS_NULL, 0, 0)],
        ..Builder::default()
    };
    let handle = backend.register(&truth).unwrap();
    let last = Fid::new(first.partition(), contract::fid::SLOT_MAX);
    for bad in [
        runs(&[(first, 4, 1)]),
        runs(&[(first, 6, 1)]),
        runs(&[(first, 5, 2)]),
        runs(&[(first, 0, 1), (first, 5, 1)]),
        runs(&[(last, 5, 1)]),
        runs(&[(Fid::INVALID, 5, 1)]),
        runs(&[(first, u32::MAX, 0), (first, 6, 0)]),
        list(&[first; 4]),
        words(&[LIST, 5, 1, 2]),
        words(&[RUNS, u32::MAX]),
        words(&[9, 5]),
        [runs(&[(first, 5, 1)]), vec![0]].concat(),
    ] {
        assert_eq!(state(declassify(&mut backend, handle, 5, &[bad])), "08P01");
    }
    let wrong = declassify(&mut backend, handle, 5, &[bools(&[0; 5])]);
    assert_eq!(state(wrong), "42804");
    assert_eq!(state(declassify(&mut backend, handle, 5, &[])), "42804");
    let good = declassify(&mut backend, handle, 5, &[runs(&[(first, 5, 1)])]);
    assert_eq!(good, Ok([words(&[5, 1]), vec![0; 5]].concat()));
}

/// Mechanism: `LIKE` with a pattern that is the same for all rows looks at it once, and
/// strings are compared where they were copied to. With a bug a batch finds other rows
/// than the same operation one row at a time, or a bad pattern is no error.
#[test]
fn strings_as_one_by_one() {
    let running = Running::start();
    let mut backend = running.session();
    let texts = [
        "",
        "a",
        "ab",
        "abc",
        "b  ",
        "é",
        "aéa",
        "a%b",
        "ab\\",
        "abcabcabc1",
    ];
    let patterns = [
        "%", "a%", "%b", "%é%", "a_%", "a\\%b", "%b%a%", "ab", "", "ab\\",
    ];
    for (t, op) in [
        (Text, Op::Like),
        (Text, Op::NotLike),
        (Bpchar, Op::Like),
        (Text, Op::Ilike),
        (Text, Op::Lt),
        (Text, Op::Eq),
    ] {
        let p = backend.open(8, t, -1);
        let put = |backend: &mut Backend, t, text: &str| match t {
            Bpchar => backend.put(&Value::Bpchar(text.as_bytes().into())),
            _ => backend.put(&Value::Text(text.as_bytes().into())),
        };
        let items: Vec<_> = texts.iter().map(|s| (put(&mut backend, t, s), p)).collect();
        let mut fids = backend.promote(&items).unwrap();
        fids.insert(3, Fid::INVALID);
        let number = backend.number(op, &[t, Text], None);
        let program = Builder {
            inputs: vec![t, Text],
            code: vec![(INPUT, 0, 0), (INPUT, 1, 0), (CALL, number as u16, 0)],
            ..Builder::default()
        };
        let handle = backend.register(&program).unwrap();
        for pattern in patterns {
            let pattern = put(&mut backend, Text, pattern);
            let rows = fids.len() as u32;
            let columns = [list(&fids), runs(&[(pattern, rows, 0)])];
            let batch = declassify(&mut backend, handle, rows, &columns).unwrap();
            let one = |fid| backend.declassify(number, 1, &[fid, pattern]);
            let singles: Vec<_> = fids
                .iter()
                .copied()
                .map(one)
                .map_while(Result::ok)
                .collect();
            let good = singles.len();
            assert_eq!(batch[..8], words(&[good as u32, 1])[..]);
            assert_eq!(batch[8..8 + good], singles.concat()[..]);
            assert_eq!(batch.len() > 8 + good, good < fids.len());
        }
    }
}
