//! Aggregations over batches, against a model that feeds crate `values` row by row.

use crate::common::{Backend, Builder, Running, state};
use ::values::{AggregateState, Env, Value, format_text, parse_text};
use TypeCode::{Bpchar, Float8, Int4, Int8, Numeric, Text};
use contract::codec::Part;
use contract::message::aggregation::{CONSTANT as GIVEN, DISTINCT, MORE, NONE, RETURNED, UNMERGED};
use contract::message::column::{Column, LIST, RAW, RUNS};
use contract::message::program::{CALL, CONSTANT, INPUT};
use contract::{Aggregate, Fid, Kind, Op, TypeCode, answer};
use merged::{hand_over, merge};
use std::collections::BTreeMap;

mod having;
mod hostile;
mod merged;
mod untold;

/// Writes a registration.
#[derive(Default)]
struct Registration {
    columns: Vec<u8>,
    /// Program and columns.
    expressions: Vec<(u32, Vec<u16>)>,
    keys: Vec<u16>,
    filter: Option<u16>,
    /// Signature, argument, filter, flags.
    aggregates: Vec<(u16, u16, u16, u16)>,
    having: (u32, Vec<u16>),
    limit: u64,
    share: u16,
}

fn list(out: &mut Vec<u8>, program: u32, numbers: &[u16]) {
    out.extend_from_slice(&program.to_le_bytes());
    out.extend_from_slice(&(numbers.len() as u16).to_le_bytes());
    out.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
}

impl Registration {
    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for n in [
            self.columns.len(),
            self.expressions.len(),
            self.keys.len(),
            self.aggregates.len(),
        ] {
            out.extend_from_slice(&(n as u16).to_le_bytes());
        }
        out.extend_from_slice(&self.filter.unwrap_or(NONE).to_le_bytes());
        out.extend_from_slice(&self.share.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        let limit = if self.limit == 0 {
            u64::MAX
        } else {
            self.limit
        };
        out.extend_from_slice(&limit.to_le_bytes());
        out.extend_from_slice(&self.columns);
        for (program, columns) in &self.expressions {
            list(&mut out, *program, columns);
        }
        out.extend(self.keys.iter().flat_map(|k| k.to_le_bytes()));
        for (signature, argument, filter, flags) in &self.aggregates {
            for n in [signature, argument, filter, flags] {
                out.extend_from_slice(&n.to_le_bytes());
            }
        }
        list(&mut out, self.having.0, &self.having.1);
        out
    }

    /// Expression that is a column as it is.
    fn plain(&mut self, column: u16) -> u16 {
        self.expressions.push((0, vec![column]));
        self.expressions.len() as u16 - 1
    }
}

/// A column of a batch.
#[derive(Clone)]
enum Sent {
    Fids(Vec<Fid>),
    Same(Fid),
    Raw(Vec<Option<u64>>),
}

fn head(out: &mut Vec<u8>, form: u32, count: usize) {
    out.extend_from_slice(&form.to_le_bytes());
    out.extend_from_slice(&(count as u32).to_le_bytes());
}

impl Sent {
    fn append(&self, range: std::ops::Range<usize>, out: &mut Vec<u8>) {
        match self {
            Sent::Fids(v) => {
                head(out, LIST, range.len());
                out.extend(v[range].iter().flat_map(|f| f.0.to_le_bytes()));
            }
            Sent::Same(fid) => {
                head(out, RUNS, 1);
                out.extend_from_slice(&fid.0.to_le_bytes());
                out.extend_from_slice(&(range.len() as u32).to_le_bytes());
                out.extend_from_slice(&[0; 4]);
            }
            Sent::Raw(v) => {
                let some = &v[range];
                head(out, RAW, some.len());
                out.extend(some.iter().flat_map(|x| x.unwrap_or(7).to_le_bytes()));
                out.extend(some.iter().map(|x| u8::from(x.is_none())));
            }
        }
    }
}

fn register(backend: &mut Backend, r: &Registration) -> Result<u32, (String, String)> {
    let answer = backend.call(Kind::AggregateRegister, &r.bytes())?;
    Ok(u32::from_le_bytes(answer.try_into().unwrap()))
}

fn send(backend: &mut Backend, handle: u32, columns: &[Sent], range: std::ops::Range<usize>) {
    let mut body = handle.to_le_bytes().to_vec();
    body.extend_from_slice(&(range.len() as u32).to_le_bytes());
    for column in columns {
        column.append(range.clone(), &mut body);
    }
    backend.send(Kind::AggregateRows, &body);
}

/// Groups, column by column; `raw` says which columns are not protected.
struct Fetched {
    more: bool,
    returned: bool,
    unmerged: bool,
    columns: Vec<Vec<Option<u64>>>,
}

/// What a column of an answer holds; none where it is NULL.
fn held(column: Column<'_>) -> Vec<Option<u64>> {
    match column {
        Column::List(fids) => fids.iter().map(|fid| Some(fid.0)).collect(),
        Column::Raw(values, nulls) => {
            let both = values.iter().zip(nulls);
            both.map(|(v, null)| (*null != 1).then_some(v)).collect()
        }
        _ => panic!("a column of an answer is a list, or raw"),
    }
}

fn fetch(
    backend: &mut Backend,
    handle: u32,
    max: u32,
    raw: &[bool],
) -> Result<Fetched, (String, String)> {
    fetch_with(backend, handle, max, raw, &[])
}

fn fetch_with(
    backend: &mut Backend,
    handle: u32,
    max: u32,
    raw: &[bool],
    constants: &[Fid],
) -> Result<Fetched, (String, String)> {
    let first = backend.slots(u64::from(max) * 16);
    let mut body = handle.to_le_bytes().to_vec();
    body.extend_from_slice(&max.to_le_bytes());
    body.extend_from_slice(&first.0.to_le_bytes());
    body.extend(constants.iter().flat_map(|fid| fid.0.to_le_bytes()));
    let answer = backend.call(Kind::AggregateFetch, &body)?;
    let answer = answer::AggregateFetch::decode(&answer).unwrap();
    let is_raw: Vec<bool> = answer
        .columns
        .iter()
        .map(|c| matches!(c, Column::Raw(..)))
        .collect();
    assert_eq!(is_raw, raw);
    Ok(Fetched {
        more: answer.flags & MORE != 0,
        returned: answer.flags & RETURNED != 0,
        unmerged: answer.flags & UNMERGED != 0,
        columns: answer.columns.iter().map(held).collect(),
    })
}

fn text(backend: &mut Backend, fid: u64, t: TypeCode) -> Option<String> {
    match fid {
        0 => None,
        fid => backend.get(Fid(fid), t).unwrap(),
    }
}

fn parsed(t: TypeCode, text: &str) -> Value {
    parse_text(t, -1, text.as_bytes(), &Env::default()).unwrap()
}

/// A column with these values, permanent where `relation` is not 0.
fn column(
    backend: &mut Backend,
    relation: u32,
    t: TypeCode,
    typmod: i32,
    values: &[Option<&str>],
) -> Vec<Fid> {
    let temporary: Vec<Fid> = values
        .iter()
        .map(|v| v.map_or(Fid::INVALID, |v| backend.put_text(t, typmod, v)))
        .collect();
    if relation == 0 {
        return temporary;
    }
    let partition = backend.open(relation, t, typmod);
    let items: Vec<_> = temporary
        .iter()
        .filter(|fid| **fid != Fid::INVALID)
        .map(|fid| (*fid, partition))
        .collect();
    let mut stored = backend.promote(&items).unwrap().into_iter();
    let place = |fid: &Fid| match *fid {
        Fid::INVALID => Fid::INVALID,
        _ => stored.next().unwrap(),
    };
    temporary.iter().map(place).collect()
}

const ROWS: usize = 2500;

/// Some of these values, in an order of their own for each `step`.
fn pick<'a>(from: &[Option<&'a str>], step: usize) -> Vec<Option<&'a str>> {
    (0..ROWS)
        .map(|row| from[(row * step + row / 7) % from.len()])
        .collect()
}

fn model(agg: Aggregate, t: TypeCode, values: impl Iterator<Item = Value>) -> Option<String> {
    let env = Env::default();
    let mut state = AggregateState::new(agg, t).unwrap();
    values.for_each(|v| state.step(&v, &env).unwrap());
    (!state.is_empty()).then(|| {
        let value = state.finish().unwrap();
        String::from_utf8(format_text(&value, &env)).unwrap()
    })
}

/// All aggregates over all kinds of columns, grouped by padded text and by a raw
/// key, in batches that are no multiple of a part: as fed row by row. Numerics of
/// several scales, NaN and those beyond 64 bits take the ways aside; a bug there
/// changes sums or their display scale.
#[test]
fn like_the_model() {
    against_the_model(false);
}

/// The same, where workers have aggregated parts. With a bug a group of one of them is lost, sums
/// of other scales are added as if they were of the same, or NULL comes of a worker without rows.
#[test]
fn merged_like_the_model() {
    against_the_model(true);
}

fn against_the_model(by_workers: bool) {
    let running = Running::start();
    let mut backend = running.session();
    // What binary fractions add up to does not depend on the order.
    let floats = match by_workers {
        true => [Some("0.5"), Some("1e6"), None, Some("-0.25")],
        false => [Some("0.1"), Some("1e15"), None, Some("-0.3")],
    };
    let numeric = (15 << 16 | 2) + 4;
    let keys = pick(&[Some("A"), Some("A  "), Some("N"), None, Some("R")], 3);
    let raw: Vec<Option<u64>> = (0..ROWS)
        .map(|row| (row % 11 != 0).then_some(row as u64 % 2))
        .collect();
    let inputs = [
        (
            Numeric,
            numeric,
            1,
            pick(
                &[
                    Some("33203.72"),
                    None,
                    Some("-0.04"),
                    Some("9999999999999.99"),
                ],
                5,
            ),
        ),
        (
            Numeric,
            -1,
            0,
            pick(
                &[
                    Some("1.5"),
                    Some("2.25"),
                    None,
                    Some("170141183460469231731687303715884105728.5"),
                    Some("0.000"),
                ],
                2,
            ),
        ),
        (
            Numeric,
            numeric,
            2,
            pick(&[Some("NaN"), Some("1.00"), Some("1.00"), Some("7.25")], 1),
        ),
        (
            Int4,
            -1,
            3,
            pick(&[Some("2147483647"), Some("-5"), None], 4),
        ),
        (
            Int8,
            -1,
            0,
            pick(&[Some("9223372036854775807"), Some("3")], 1),
        ),
        (Float8, -1, 4, pick(&floats, 3)),
        (
            Text,
            -1,
            5,
            pick(&[Some("b"), Some("abc"), Some(""), None], 6),
        ),
    ];
    let mut r = Registration {
        columns: vec![Bpchar as u8, 0],
        ..Registration::default()
    };
    let mut columns = vec![
        Sent::Fids(column(&mut backend, 9, Bpchar, -1, &keys)),
        Sent::Raw(raw.clone()),
    ];
    r.keys = vec![r.plain(0), r.plain(1)];
    let mut wanted = Vec::new();
    for (n, (t, typmod, relation, values)) in inputs.iter().enumerate() {
        r.columns.push(*t as u8);
        let argument = r.plain(n as u16 + 2);
        columns.push(Sent::Fids(column(
            &mut backend,
            *relation,
            *t,
            *typmod,
            values,
        )));
        for agg in [
            Aggregate::Sum,
            Aggregate::Avg,
            Aggregate::Min,
            Aggregate::Max,
        ] {
            if AggregateState::new(agg, *t).is_ok() {
                let number = backend.aggregate_number(agg, *t);
                r.aggregates.push((number, argument, NONE, 0));
                wanted.push((agg, *t, values));
            }
        }
        // Distinct values are not merged.
        let once = if by_workers { 0 } else { DISTINCT };
        r.aggregates.push((0, argument, NONE, once));
        r.aggregates.push((0, argument, NONE, 0));
    }
    r.aggregates.push((0, NONE, NONE, 0));
    let handle = register(&mut backend, &r).unwrap();
    if by_workers {
        backend.fence().unwrap();
        for part in [0..700, 700..701, 701..701, 701..ROWS] {
            let mut worker = backend.worker(&running);
            let number = hand_over(&mut worker, &r, &columns, part);
            merge(&mut backend, handle, number);
        }
    } else {
        for from in (0..ROWS).step_by(1700) {
            send(&mut backend, handle, &columns, from..ROWS.min(from + 1700));
        }
    }
    let flags: Vec<bool> = (0..2 + r.aggregates.len()).map(|n| n == 1).collect();
    let fetched = fetch(&mut backend, handle, 100, &flags).unwrap();
    assert!(!fetched.more && !fetched.returned);

    let mut groups: BTreeMap<(Option<&str>, Option<u64>), Vec<usize>> = BTreeMap::new();
    for row in 0..ROWS {
        let key = (keys[row].map(str::trim_end), raw[row]);
        groups.entry(key).or_default().push(row);
    }
    assert_eq!(fetched.columns[0].len(), groups.len());
    for group in 0..groups.len() {
        let key = text(&mut backend, fetched.columns[0][group].unwrap(), Bpchar);
        let key = (key.as_deref().map(str::trim_end), fetched.columns[1][group]);
        let rows = &groups[&key];
        let mut at = 2;
        let mut wanted = wanted.iter();
        for (t, _, _, values) in &inputs {
            let there = || rows.iter().filter_map(|row| values[*row]);
            for _ in [
                Aggregate::Sum,
                Aggregate::Avg,
                Aggregate::Min,
                Aggregate::Max,
            ]
            .iter()
            .filter(|agg| AggregateState::new(**agg, *t).is_ok())
            {
                let (agg, t, _) = wanted.next().unwrap();
                let result = AggregateState::result_type(*agg, *t).unwrap();
                let found = text(&mut backend, fetched.columns[at][group].unwrap(), result);
                let all = there().map(|v| parsed(*t, v));
                assert_eq!(found, model(*agg, *t, all), "{agg:?} {t:?} {key:?}");
                at += 1;
            }
            let distinct: std::collections::BTreeSet<&str> = there().collect();
            let once = match by_workers {
                true => there().count(),
                false => distinct.len(),
            };
            assert_eq!(fetched.columns[at][group], Some(once as u64));
            assert_eq!(fetched.columns[at + 1][group], Some(there().count() as u64));
            at += 2;
        }
        assert_eq!(fetched.columns[at][group], Some(rows.len() as u64));
    }
}

/// `sum(8 / b) filter (where b <> 0) ... where b > -1`: rows that the filters leave
/// out must not fail, one that they let through must; and a plain aggregation has
/// one row, also of nothing.
#[test]
fn laziness() {
    let running = Running::start();
    let mut backend = running.session();
    let number = |b: &Backend, op, ret| b.number(op, &[Int4, Int4], ret) as u16;
    let (eight, zero) = (backend.put(&Value::Int4(8)), backend.put(&Value::Int4(0)));
    let div = number(&backend, Op::Div, Some(Int4));
    let ne = number(&backend, Op::Ne, None);
    let ge = number(&backend, Op::Ge, None);
    let program = |code: Vec<(u8, u16, i32)>| Builder {
        inputs: vec![Int4, Int4],
        constants: vec![eight, zero],
        code,
        ..Builder::default()
    };
    let quotient = program(vec![(INPUT, 1, 0), (INPUT, 0, 0), (CALL, div, 0)]);
    let not_zero = program(vec![(INPUT, 0, 0), (CONSTANT, 1, 0), (CALL, ne, 0)]);
    let no_less = program(vec![(INPUT, 0, 0), (CONSTANT, 1, 0), (CALL, ge, 0)]);
    let quotient = backend.register(&quotient).unwrap();
    let not_zero = backend.register(&not_zero).unwrap();
    let no_less = backend.register(&no_less).unwrap();
    let sum = backend.aggregate_number(Aggregate::Sum, Int4);
    let registration = |filter, filters| Registration {
        columns: vec![Int4 as u8, Int4 as u8],
        expressions: vec![
            (quotient, vec![0, 1]),
            (not_zero, vec![0, 1]),
            (no_less, vec![0, 1]),
        ],
        filter,
        aggregates: vec![(sum, 0, filters, 0), (0, NONE, NONE, 0)],
        ..Registration::default()
    };
    let fids = |backend: &mut Backend, values: &[&str]| {
        let values: Vec<_> = values.iter().map(|v| Some(*v)).collect();
        let eight = backend.put(&Value::Int4(8));
        [
            Sent::Fids(column(backend, 0, Int4, -1, &values)),
            Sent::Same(eight),
        ]
    };
    let columns = fids(&mut backend, &["2", "0", "-3", "4"]);
    let handle = register(&mut backend, &registration(Some(2), 1)).unwrap();
    let empty = fetch(&mut backend, handle, 8, &[false; 2]).unwrap();
    assert_eq!(empty.columns, [vec![Some(0)], vec![Some(0)]]);
    backend.send(Kind::AggregateReset, &u64::from(handle).to_le_bytes());
    send(&mut backend, handle, &columns, 0..4);
    let found = fetch(&mut backend, handle, 8, &[false; 2]).unwrap();
    assert_eq!(found.columns[1], [Some(3)]);
    let fid = found.columns[0][0].unwrap();
    assert_eq!(text(&mut backend, fid, Int8).as_deref(), Some("6"));

    let handle = register(&mut backend, &registration(Some(2), NONE)).unwrap();
    send(&mut backend, handle, &columns, 0..4);
    assert_eq!(
        state(fetch(&mut backend, handle, 8, &[false; 2]).map(|_| ())),
        "22012"
    );
    // Told once as what is pending, and again when it is asked for.
    assert_eq!(
        state(fetch(&mut backend, handle, 8, &[false; 2]).map(|_| ())),
        "22012"
    );
    backend.send(Kind::AggregateReset, &u64::from(handle).to_le_bytes());
    send(&mut backend, handle, &columns, 2..4);
    assert!(fetch(&mut backend, handle, 8, &[false; 2]).is_ok());
}

/// More groups than there is room for: the rows of the others come back, and in
/// passes every group is found once, with all its rows, in their order. With the bug a
/// group is split between passes, or lost.
#[test]
fn passes() {
    let running = Running::start();
    let mut backend = running.session();
    let values: Vec<String> = (0..6000).map(|n| (n * 7 % 1500).to_string()).collect();
    let values: Vec<_> = values.iter().map(|v| Some(v.as_str())).collect();
    let mut columns = vec![
        Sent::Fids(column(&mut backend, 1, Int4, -1, &values)),
        Sent::Raw((0..6000).map(|n| (n % 9 != 0).then_some(n)).collect()),
    ];
    let mut r = Registration {
        columns: vec![Int4 as u8, 0],
        limit: 60_000,
        ..Registration::default()
    };
    r.keys = vec![r.plain(0)];
    let raw = r.plain(1);
    let sum = backend.aggregate_number(Aggregate::Sum, Int4);
    r.aggregates = vec![(sum, 0, NONE, 0), (0, raw, NONE, 0)];
    backend.end_statement();
    let handle = register(&mut backend, &r).unwrap();
    let used = backend.stats().get("session.memory_bytes").copied();
    let mut found: BTreeMap<u64, (String, u64)> = BTreeMap::new();
    let mut rows = 6000;
    let mut passes = 0;
    while rows > 0 {
        passes += 1;
        backend.send(Kind::AggregateReset, &u64::from(handle).to_le_bytes());
        for from in (0..rows).step_by(1000) {
            send(&mut backend, handle, &columns, from..rows.min(from + 1000));
        }
        let mut returned = false;
        loop {
            let some = fetch(&mut backend, handle, 300, &[false; 3]).unwrap();
            for group in 0..some.columns[0].len() {
                let key = text(&mut backend, some.columns[0][group].unwrap(), Int4).unwrap();
                let sum = text(&mut backend, some.columns[1][group].unwrap(), Int8).unwrap();
                let count = some.columns[2][group].unwrap();
                assert!(found.insert(key.parse().unwrap(), (sum, count)).is_none());
            }
            returned |= some.returned;
            if !some.more {
                break;
            }
        }
        (columns, rows) = match returned {
            true => take_back(&mut backend, handle),
            false => (Vec::new(), 0),
        };
    }
    assert!(passes > 2 && passes < 40, "{passes}");
    assert_eq!(found.len(), 1500);
    for (key, (sum, count)) in found {
        assert_eq!(sum, (key * 4).to_string());
        let rows = (0..6000u64).filter(|n| n * 7 % 1500 == key);
        assert_eq!(count, rows.filter(|n| n % 9 != 0).count() as u64, "{key}");
    }
    backend.send(Kind::AggregateForget, &u64::from(handle).to_le_bytes());
    backend.end_statement();
    assert!(backend.stats().get("session.memory_bytes").copied() <= used);
}

fn take_back(backend: &mut Backend, handle: u32) -> (Vec<Sent>, usize) {
    let mut fids = Vec::new();
    let mut raw = Vec::new();
    loop {
        let body = u64::from(handle).to_le_bytes();
        let answer = backend.call(Kind::AggregateReturn, &body).unwrap();
        let answer = answer::AggregateReturn::decode(&answer).unwrap();
        assert!(answer.allowance > 0);
        let columns: Vec<_> = answer.columns.iter().map(held).collect();
        fids.extend(columns[0].iter().flatten().map(|fid| Fid(*fid)));
        raw.extend(&columns[1]);
        if answer.more == 0 {
            let rows = fids.len();
            return (vec![Sent::Fids(fids), Sent::Raw(raw)], rows);
        }
    }
}
