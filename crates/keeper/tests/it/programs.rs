//! Registered programs over batches.

use crate::common::{Backend, Builder, Running, state};
use ::values::Value;
use TypeCode::{Bool, Int4, Int8, Numeric, Text};
use contract::message::program::{AND, CALL, CONSTANT, INPUT, IS_NULL, NOT, OR, SELECT};
use contract::{Fid, Kind, Op, TypeCode};

fn ints(backend: &mut Backend, values: &[Option<i32>]) -> Vec<Fid> {
    let put = |v: &Option<i32>| v.map_or(Fid::INVALID, |v| backend.put(&Value::Int4(v)));
    values.iter().map(put).collect()
}

/// Runs of a column, scattered FIDs of it, temporary ones and NULL in one batch
/// that is longer than a part: all rows in their places.
#[test]
fn batches() {
    let running = Running::start();
    let mut backend = running.session();
    let p = backend.open(1, Int4, -1);
    let temporary: Vec<Fid> = (0..3000).map(|v| backend.put(&Value::Int4(v))).collect();
    let items: Vec<_> = temporary.iter().map(|fid| (*fid, p)).collect();
    let column = backend.promote(&items).unwrap();
    let left: Vec<Fid> = (0..3000)
        .map(|row| match row % 500 {
            7 => Fid::INVALID,
            8..40 => temporary[row],
            _ => column[row],
        })
        .collect();
    let right: Vec<Fid> = (0..3000).map(|row| column[(row * 7) % 3000]).collect();
    let lt = backend.number(Op::Lt, &[Int4, Int4], None);
    let add = backend.number(Op::Add, &[Int4, Int4], Some(Int4));
    let both = [left.clone(), right].concat();
    let wanted: Vec<u8> = (0..3000)
        .map(|row| {
            if row % 500 == 7 {
                2
            } else {
                u8::from(row < (row * 7) % 3000)
            }
        })
        .collect();
    assert_eq!(backend.declassify(lt, 3000, &both), Ok(wanted));
    let to = backend.slots(3000);
    backend.eval_at(add, 0, to, 3000, &both);
    for row in [0, 7, 8, 39, 40, 1023, 1024, 2999] {
        let sum = backend.get(Fid::new(to.partition(), to.slot() + row as u64), Int4);
        let wanted = (row % 500 != 7).then(|| (row + (row * 7) % 3000).to_string());
        assert_eq!(sum, Ok(wanted));
    }
    assert_eq!(backend.declassify(lt, 0, &[]), Ok(Vec::new()));
}

/// `(a < 10 and b is not null) or not (a = b)`, with NULL as SQL has it.
#[test]
fn three_valued() {
    let running = Running::start();
    let mut backend = running.session();
    let ten = backend.put(&Value::Int4(10));
    let (lt, eq) = (
        backend.number(Op::Lt, &[Int4, Int4], None) as u16,
        backend.number(Op::Eq, &[Int4, Int4], None) as u16,
    );
    let program = Builder {
        inputs: vec![Int4, Int4],
        constants: vec![ten],
        code: vec![
            (INPUT, 0, 0),
            (CONSTANT, 0, 0),
            (CALL, lt, 0),
            (INPUT, 1, 0),
            (IS_NULL, 0, 0),
            (NOT, 0, 0),
            (AND, 0, 0),
            (INPUT, 0, 0),
            (INPUT, 1, 0),
            (CALL, eq, 0),
            (NOT, 0, 0),
            (OR, 0, 0),
        ],
        ..Builder::default()
    };
    let handle = backend.register(&program).unwrap();
    let a = [Some(5), Some(50), Some(50), None, None, Some(5), Some(50)];
    let b = [Some(5), Some(50), Some(5), Some(1), None, None, None];
    let columns = [ints(&mut backend, &a), ints(&mut backend, &b)].concat();
    let wanted = vec![1, 0, 1, 2, 2, 2, 2];
    assert_eq!(backend.declassify(handle, 7, &columns), Ok(wanted));
    backend.send(Kind::ProgramForget, &u64::from(handle).to_le_bytes());
    assert_eq!(state(backend.declassify(handle, 7, &columns)), "42883");
}

/// Mechanism: `case when b <> 0 then a / b else 0 end` must not fail where b is 0,
/// and `b <> 0 and a / b > 1` neither; `a / b > 1 or b = 0` must. With the bug a
/// guarded division fails, or an unguarded one passes.
#[test]
fn laziness() {
    let running = Running::start();
    let mut backend = running.session();
    let (zero, one) = (backend.put(&Value::Int4(0)), backend.put(&Value::Int4(1)));
    let call = |b: &Backend, op, ret| b.number(op, &[Int4, Int4], ret) as u16;
    let (ne, eq, gt) = (
        call(&backend, Op::Ne, None),
        call(&backend, Op::Eq, None),
        call(&backend, Op::Gt, None),
    );
    let div = call(&backend, Op::Div, Some(Int4));
    let not_zero = [(INPUT, 1, 0), (CONSTANT, 0, 0), (CALL, ne, 0)];
    let quotient = [(INPUT, 0, 0), (INPUT, 1, 0), (CALL, div, 0)];
    let above_one = [(CONSTANT, 1, 0), (CALL, gt, 0)];
    let is_zero = [(INPUT, 1, 0), (CONSTANT, 0, 0), (CALL, eq, 0)];
    let program = |parts: &[&[(u8, u16, i32)]]| Builder {
        inputs: vec![Int4, Int4],
        constants: vec![zero, one],
        code: parts.concat(),
        ..Builder::default()
    };
    let guarded = program(&[&not_zero, &quotient, &[(CONSTANT, 0, 0), (SELECT, 0, 0)]]);
    let and = program(&[&not_zero, &quotient, &above_one, &[(AND, 0, 0)]]);
    let or = program(&[&quotient, &above_one, &is_zero, &[(OR, 0, 0)]]);
    let columns = [
        ints(&mut backend, &[Some(8), Some(8), None]),
        ints(&mut backend, &[Some(2), Some(0), Some(0)]),
    ]
    .concat();
    let handle = backend.register(&guarded).unwrap();
    let to = backend.slots(3);
    backend.eval_at(handle, 0, to, 3, &columns);
    assert_eq!(backend.fence(), Ok(()));
    for (row, wanted) in [(0, "4"), (1, "0"), (2, "0")] {
        let fid = Fid::new(to.partition(), to.slot() + row);
        assert_eq!(backend.get(fid, Int4).unwrap().as_deref(), Some(wanted));
    }
    let handle = backend.register(&and).unwrap();
    assert_eq!(backend.declassify(handle, 3, &columns), Ok(vec![1, 0, 0]));
    let handle = backend.register(&or).unwrap();
    assert_eq!(state(backend.declassify(handle, 3, &columns)), "22012");
    let first_and_last = [columns[0], columns[2], columns[3], columns[5]];
    assert_eq!(
        backend.declassify(handle, 2, &first_and_last),
        Ok(vec![1, 1])
    );
}

/// Rows that fail are poisoned by themselves; the first one is told.
#[test]
fn failures_by_row() {
    let running = Running::start();
    let mut backend = running.session();
    let div = backend.number(Op::Div, &[Int4, Int4], Some(Int4));
    let columns = [
        ints(&mut backend, &[Some(8), Some(i32::MIN), Some(8)]),
        ints(&mut backend, &[Some(2), Some(-1), Some(0)]),
    ]
    .concat();
    let to = backend.slots(3);
    backend.eval_at(div, 0, to, 3, &columns);
    assert_eq!(state(backend.fence()), "22003");
    let fid = |row| Fid::new(to.partition(), to.slot() + row);
    assert_eq!(backend.get(fid(0), Int4).unwrap().as_deref(), Some("4"));
    assert_eq!(state(backend.get(fid(1), Int4)), "22003");
    assert_eq!(state(backend.get(fid(2), Int4)), "22012");
}

/// `extendedprice * (1 - discount)`: products that no longer fit in 64 bits are
/// still exact.
#[test]
fn numerics() {
    let running = Running::start();
    let mut backend = running.session();
    let one = backend.put_text(Numeric, -1, "1");
    let two = [Numeric, Numeric];
    let (sub, mul) = (
        backend.number(Op::Sub, &two, Some(Numeric)) as u16,
        backend.number(Op::Mul, &two, Some(Numeric)) as u16,
    );
    let program = Builder {
        inputs: two.to_vec(),
        constants: vec![one],
        code: vec![
            (INPUT, 0, 0),
            (CONSTANT, 0, 0),
            (INPUT, 1, 0),
            (CALL, sub, 0),
            (CALL, mul, 0),
        ],
        ..Builder::default()
    };
    let handle = backend.register(&program).unwrap();
    let p = backend.open(1, Numeric, ((15 << 16) | 2) + 4);
    for (price, wanted) in [
        ("33203.72", "31875.5712"),
        ("9999999999999999.99", "9599999999999999.9904"),
        ("NaN", "NaN"),
    ] {
        let fids: Vec<Fid> = ["17954.55", price]
            .iter()
            .map(|s| backend.put_text(Numeric, -1, s))
            .collect();
        let discount = backend.put_text(Numeric, -1, "0.04");
        let items = [(fids[0], p), (fids[1], p), (discount, p), (discount, p)];
        let columns = backend.promote(&items).unwrap();
        let to = backend.slots(2);
        backend.eval_at(handle, 0, to, 2, &columns);
        let fid = Fid::new(to.partition(), to.slot() + 1);
        assert_eq!(
            backend.get(to, Numeric).unwrap().as_deref(),
            Some("17236.3680")
        );
        assert_eq!(backend.get(fid, Numeric).unwrap().as_deref(), Some(wanted));
    }
}

/// A program that does not fit together is refused when it is registered.
#[test]
fn type_check() {
    let running = Running::start();
    let mut backend = running.session();
    let one = backend.put(&Value::Int4(1));
    let lt = backend.number(Op::Lt, &[Int4, Int4], None) as u16;
    let number = |b: &Backend, t| b.number(Op::Eq, &[t, t], None) as u16;
    let wide = number(&backend, Int8);
    let input = |n| (INPUT, n, 0);
    let deep = vec![(INPUT, 0, 0); 65];
    let long = [vec![(INPUT, 0, 0)], vec![(IS_NULL, 0, 0); 1100]].concat();
    let cases = [
        (vec![], "42804"),
        (vec![input(0), input(1)], "42804"),
        (vec![input(2)], "42804"),
        (vec![(CONSTANT, 1, 0)], "42804"),
        (vec![input(0), (CALL, lt, 0)], "42804"),
        (vec![input(0), input(1), (CALL, wide, 0)], "42804"),
        (vec![input(0), (CALL, 0, 0)], "42883"),
        (vec![input(0), (NOT, 0, 0)], "42804"),
        (vec![input(0), input(0), (AND, 0, 0)], "42804"),
        (vec![input(0), input(0), input(0), (SELECT, 0, 0)], "42804"),
        (vec![input(0), (99, 0, 0)], "42804"),
        (deep, "54000"),
        (long, "54000"),
    ];
    for (code, wanted) in cases {
        let program = Builder {
            inputs: vec![Int4, Int4],
            constants: vec![one],
            code: code.clone(),
            ..Builder::default()
        };
        assert_eq!(state(backend.register(&program)), wanted, "{code:?}");
    }
    let fits = Builder {
        inputs: vec![Int4, Bool],
        constants: vec![Fid::INVALID, one],
        code: vec![input(1), (CONSTANT, 0, 0), (CONSTANT, 1, 0), (SELECT, 0, 0)],
        ..Builder::default()
    };
    let handle = backend.register(&fits).unwrap();
    let (a, t, f) = (
        backend.put(&Value::Int4(7)),
        backend.put(&Value::Bool(true)),
        backend.put(&Value::Bool(false)),
    );
    let to = backend.slots(2);
    backend.eval_at(handle, 0, to, 2, &[a, a, t, f]);
    assert_eq!(backend.get(to, Int4), Ok(None));
    let second = Fid::new(to.partition(), to.slot() + 1);
    assert_eq!(backend.get(second, Int4).unwrap().as_deref(), Some("1"));
    // A program with a value as its result is not declassified.
    assert_eq!(state(backend.declassify(handle, 2, &[a, a, t, f])), "42804");
    // A constant that failed, or is gone, is told when the program is registered.
    backend.end_statement();
    assert_eq!(state(backend.register(&fits)), "55000");
    assert_eq!(
        state(backend.call(Kind::ProgramRegister, &[1, 0, 0])),
        "08P01"
    );
}

/// One program that computes with the result of another kind: a boolean chooses a
/// string.
#[test]
fn strings_are_chosen() {
    let running = Running::start();
    let mut backend = running.session();
    let text = |s: &str| Value::Text(s.as_bytes().into());
    let (high, low) = (backend.put(&text("high")), backend.put(&text("low")));
    let limit = backend.put(&Value::Int4(100));
    let gt = backend.number(Op::Gt, &[Int4, Int4], None) as u16;
    let program = Builder {
        inputs: vec![Int4],
        constants: vec![limit, high, low],
        code: vec![
            (INPUT, 0, 0),
            (CONSTANT, 0, 0),
            (CALL, gt, 0),
            (CONSTANT, 1, 0),
            (CONSTANT, 2, 0),
            (SELECT, 0, 0),
        ],
        ..Builder::default()
    };
    let handle = backend.register(&program).unwrap();
    let column = ints(&mut backend, &[Some(1), Some(1000), None]);
    let to = backend.slots(3);
    backend.eval_at(handle, 0, to, 3, &column);
    for (row, wanted) in [(0, "low"), (1, "high"), (2, "low")] {
        let fid = Fid::new(to.partition(), to.slot() + row);
        assert_eq!(backend.get(fid, Text).unwrap().as_deref(), Some(wanted));
    }
}
