//! Aggregates whose states are in the keeper.

use crate::common::{Running, state};
use ::values::Value;
use TypeCode::{Int4, Int8, Numeric, Text};
use contract::{Aggregate, Fid, Kind, Op, TypeCode};

#[test]
fn sums_and_the_like() {
    let running = Running::start();
    let mut backend = running.session();
    for (aggregate, result, wanted) in [
        (Aggregate::Sum, Int8, "9"),
        (Aggregate::Avg, Numeric, "3.0000000000000000"),
        (Aggregate::Min, Int4, "1"),
        (Aggregate::Max, Int4, "5"),
    ] {
        let number = backend.aggregate_number(aggregate, Int4);
        let total = backend.slot();
        for (n, value) in [3, 1, 5].into_iter().enumerate() {
            let fid = backend.put(&Value::Int4(value));
            backend.step(total, fid, number, n == 0);
        }
        backend.step(total, Fid::INVALID, number, false);
        let to = backend.slot();
        backend.two(Kind::AggregateFinal, to, total);
        assert_eq!(backend.get(to, result).unwrap().as_deref(), Some(wanted));
    }
}

/// States of workers come together in the leader's; an empty one gives NULL.
#[test]
fn combine() {
    let running = Running::start();
    let mut leader = running.session();
    let number = leader.aggregate_number(Aggregate::Sum, Int4);
    let a = leader.put(&Value::Int4(40));
    leader.fence().unwrap();
    let mut worker = leader.worker(&running);
    let theirs = worker.slot();
    worker.step(theirs, a, number, true);
    worker.step(theirs, a, number, false);
    worker.fence().unwrap();
    let mine = leader.slot();
    leader.step(mine, Fid::INVALID, number, true);
    let to = leader.slot();
    leader.two(Kind::AggregateFinal, to, mine);
    assert_eq!(leader.get(to, Int8), Ok(None));
    leader.two(Kind::AggregateCombine, mine, theirs);
    leader.two(Kind::AggregateCombine, mine, mine);
    let to = leader.slot();
    leader.two(Kind::AggregateFinal, to, mine);
    assert_eq!(leader.get(to, Int8).unwrap().as_deref(), Some("160"));
}

/// A failed value fails the state, once; a state is no value and a value no state.
#[test]
fn failures() {
    let running = Running::start();
    let mut backend = running.session();
    let number = backend.aggregate_number(Aggregate::Sum, Int4);
    let (one, zero) = (backend.put(&Value::Int4(1)), backend.put(&Value::Int4(0)));
    let div = backend.number(Op::Div, &[Int4, Int4], Some(Int4));
    let bad = backend.eval(div, &[one, zero]);
    let total = backend.slot();
    backend.step(total, one, number, true);
    backend.step(total, bad, number, false);
    backend.step(total, one, number, false);
    assert_eq!(state(backend.fence()), "22012");
    let to = backend.slot();
    backend.two(Kind::AggregateFinal, to, total);
    assert_eq!(backend.fence(), Ok(()));
    assert_eq!(state(backend.get(to, Int8)), "22012");

    let total = backend.slot();
    backend.step(total, one, number, true);
    assert_eq!(state(backend.get(total, Int8)), "42804");
    let text = backend.put(&Value::Text(Box::from(&b"x"[..])));
    backend.step(total, text, number, false);
    assert_eq!(state(backend.fence()), "42804");
    // What is stepped on is the result, and poisoned.
    let value = backend.put(&Value::Int4(1));
    backend.step(value, one, number, false);
    assert_eq!(state(backend.fence()), "42804");
    assert_eq!(state(backend.get(value, Int4)), "42804");
    let never = backend.slot();
    backend.step(never, one, number, false);
    assert_eq!(state(backend.fence()), "XX000");
    backend.step(never, one, 9999, true);
    assert_eq!(state(backend.fence()), "42883");
    assert_eq!(state(backend.get(never, Text)), "42883");
}
