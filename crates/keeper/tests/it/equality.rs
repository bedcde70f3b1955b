//! Every signature of the catalog over values at the edges of its types, three
//! ways: crate `values` by itself, one row at a time, and as a batch, of temporary
//! values and of columns; equality also by tokens. All must agree, to the digit and the SQLSTATE. With a
//! bug a fast path gives another answer than PostgreSQL, and only in batches.

use crate::common::{Running, promoted};
use ::values::{Env, Error, Value};
use TypeCode::*;
use catalog::Signature;
use contract::{Fid, Kind, Op, OpResult, TypeCode};
use envelope::Opener;
use keeper::Connection;

/// What came of a row.
type Outcome = Result<Vec<u8>, String>;

/// A channel without the channel.
struct Direct {
    connection: Connection,
    opener: Opener,
    arena: u32,
    next: u64,
}

fn sqlstate(error: &Error) -> String {
    error.sqlstate_str().to_string()
}

impl Direct {
    fn new(running: &Running) -> Direct {
        let (connection, _, opener) = running.direct_client();
        Direct {
            arena: connection.welcome().arena,
            connection,
            opener,
            next: 0,
        }
    }

    fn call(&mut self, kind: Kind, body: &[u8]) -> Outcome {
        let done = self.connection.handle(kind, body).unwrap();
        done.map_err(|e| sqlstate(&e))?;
        Ok(self.connection.reply().to_vec())
    }

    fn slots(&mut self, count: usize) -> Fid {
        let fid = Fid::new(self.arena, self.next);
        self.next += count as u64;
        fid
    }

    fn put(&mut self, value: &Value) -> Fid {
        let fid = self.slots(1);
        let mut body = fid.0.to_le_bytes().to_vec();
        body.extend_from_slice(&(-1i32).to_le_bytes());
        body.extend_from_slice(&[value.type_code() as u8, 0, 0, 0]);
        body.extend_from_slice(&::values::encode_binary(value));
        assert!(self.connection.handle(Kind::PutPlain, &body).is_none());
        self.call(Kind::Fence, &[]).unwrap();
        fid
    }

    fn open(&mut self, relation: u32, t: TypeCode, typmod: i32) -> u32 {
        let mut body = [5u32, relation, 1].map(u32::to_le_bytes).concat();
        body.extend_from_slice(&typmod.to_le_bytes());
        body.extend_from_slice(&[t as u8, 0, 0, 0, 0, 0, 0, 0]);
        let answer = self.call(Kind::PartitionOpen, &body).unwrap();
        u32::from_le_bytes(*answer.first_chunk().unwrap())
    }

    fn promote(&mut self, fids: &[Fid], partition: u32) -> Vec<Fid> {
        let mut body = (fids.len() as u64).to_le_bytes().to_vec();
        for fid in fids {
            body.extend_from_slice(&fid.0.to_le_bytes());
            body.extend_from_slice(&u64::from(partition).to_le_bytes());
        }
        let answer = self.call(Kind::Promote, &body).unwrap();
        promoted(&answer).0
    }

    /// The value under a FID in binary; empty for NULL (a field of an infinite date).
    fn get(&mut self, fid: Fid, t: TypeCode) -> Outcome {
        let mut body = fid.0.to_le_bytes().to_vec();
        body.extend_from_slice(&[t as u8, 0, 0, 0, 0, 0, 0, 0]);
        let envelope = self.call(Kind::GetEnvelope, &body)?;
        let mut plain = Vec::new();
        if !envelope.is_empty() {
            self.opener.open(&envelope, &mut plain).unwrap();
        }
        Ok(plain)
    }

    /// Evaluates rows (given column by column) at once.
    fn evaluate(&mut self, number: u16, case: &Case, rows: usize, fids: &[Fid]) -> Vec<Outcome> {
        let signature = &case.signature;
        let tail: Vec<u8> = [rows as u32, signature.args.len() as u32]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .chain(fids.iter().flat_map(|fid| fid.0.to_le_bytes()))
            .collect();
        let mut head = u32::from(number).to_le_bytes().to_vec();
        head.extend_from_slice(&case.immediate.to_le_bytes());
        if signature.op.result() == OpResult::Fid {
            let to = self.slots(rows);
            let body = [&head[..], &to.0.to_le_bytes(), &tail].concat();
            self.connection.handle(Kind::Eval, &body);
            let _ = self.call(Kind::Fence, &[]);
            let t = signature.ret.unwrap().stored();
            (0..rows as u64)
                .map(|row| self.get(Fid::new(to.partition(), to.slot() + row), t))
                .collect()
        } else {
            let answer = self.call(Kind::Declassify, &[head, tail].concat());
            match answer {
                Ok(all) => {
                    let width = all.len() / rows;
                    all.chunks_exact(width).map(|c| Ok(c.to_vec())).collect()
                }
                // One failed row fails them all.
                Err(state) => vec![Err(state); rows],
            }
        }
    }
}

/// Tokens of values; a join of number 1.
fn tokens(direct: &mut Direct, t: TypeCode, fids: &[Fid]) -> Vec<Vec<u8>> {
    let mut body = 1u64.to_le_bytes().to_vec();
    body.extend_from_slice(&(fids.len() as u32).to_le_bytes());
    body.extend_from_slice(&[1, 0, 0, 0, t as u8]);
    body.extend([0u32, fids.len() as u32].map(u32::to_le_bytes).concat());
    body.extend(fids.iter().flat_map(|fid| fid.0.to_le_bytes()));
    let answer = direct.call(Kind::Tokens, &body).unwrap();
    answer[8..].chunks_exact(16).map(<[u8]>::to_vec).collect()
}

/// Whether PostgreSQL has hash joins of these types.
fn hash_together(types: &[TypeCode]) -> bool {
    let within = |all: &[TypeCode]| types.iter().all(|t| all.contains(t));
    within(&types[..1]) || within(&[Int2, Int4, Int8]) || within(&[Float4, Float8])
}

struct Case {
    signature: Signature,
    immediate: i32,
}

/// What crate `values` says.
fn reference(case: &Case, args: &[&Value], env: &Env) -> Option<Outcome> {
    let op = case.signature.op;
    let done = match (op.result(), args) {
        (OpResult::Fid, _) => {
            let ret = case.signature.ret.unwrap();
            ::values::apply(op, ret, case.immediate, args, env).map(|v| ::values::encode_binary(&v))
        }
        (OpResult::Order, [a, b]) => ::values::compare(a, b, env).map(|o| vec![o as i8 as u8]),
        (OpResult::Bool, [a, b]) => ::values::test(op, a, b, env).map(|b| vec![u8::from(b)]),
        (OpResult::Bool, [Value::Bool(b)]) => Ok(vec![u8::from(*b)]),
        (OpResult::Bool, [value, base, offset]) if op == Op::InRange => {
            ::values::in_range(case.immediate, value, base, offset, env).map(|b| vec![u8::from(b)])
        }
        // The key of hashes is the keeper's.
        _ => return None,
    };
    Some(done.or_else(|e| match e.is_null() {
        true => Ok(Vec::new()),
        false => Err(sqlstate(&e)),
    }))
}

/// Values at the edges of a type.
fn edges(t: TypeCode) -> Vec<Value> {
    let decimals = |all: &[&str]| -> Vec<Value> {
        let env = Env::default();
        let parse = |s: &&str| ::values::parse_text(Numeric, -1, s.as_bytes(), &env).unwrap();
        all.iter().map(parse).collect()
    };
    let micros = [
        0,
        1,
        -1,
        86_400_000_000,
        i64::MIN,
        i64::MAX,
        1_234_567_890_123_456,
    ];
    let strings: [&[u8]; 7] = [b"", b"a", b"a ", b"ab%_", b"B", "žluť".as_bytes(), b"12"];
    match t {
        Bool => [true, false].map(Value::Bool).to_vec(),
        Int2 => [0, 1, -1, 7, i16::MAX, i16::MIN].map(Value::Int2).to_vec(),
        Int4 => [0, 1, -1, 7, i32::MAX, i32::MIN].map(Value::Int4).to_vec(),
        Int8 => [0, 1, -1, 7, i64::MAX, i64::MIN].map(Value::Int8).to_vec(),
        Float4 => [
            0.0,
            -0.0,
            1.5,
            f32::MAX,
            f32::MIN_POSITIVE,
            f32::NAN,
            f32::INFINITY,
        ]
        .map(Value::Float4)
        .to_vec(),
        Float8 => [
            0.0,
            -0.0,
            1.5,
            f64::MAX,
            f64::MIN_POSITIVE,
            f64::NAN,
            f64::NEG_INFINITY,
        ]
        .map(Value::Float8)
        .to_vec(),
        Numeric => decimals(&[
            "0",
            "0.00",
            "1.50",
            "-1.5",
            "92233720368547758.07",
            "-92233720368547758.08",
            "NaN",
            "Infinity",
            "1e30",
        ]),
        Text | Varchar => strings.map(|s| Value::Text(s.into())).to_vec(),
        Bpchar => strings.map(|s| Value::Bpchar(s.into())).to_vec(),
        Bytea => strings.map(|s| Value::Bytea(s.into())).to_vec(),
        Date => [0, 1, -1, 8766, i32::MAX, i32::MIN]
            .map(Value::Date)
            .to_vec(),
        Time => [0, 1, 43_200_000_000, 86_400_000_000]
            .map(Value::Time)
            .to_vec(),
        Timestamp => micros.map(Value::Timestamp).to_vec(),
        Timestamptz => micros.map(Value::Timestamptz).to_vec(),
        Interval => [
            (0, 0, 0),
            (1, 0, 0),
            (0, 30, 0),
            (0, -1, 86_400_000_000),
            (14, 3, -7),
        ]
        .map(|(months, days, micros)| {
            Value::Interval(::values::Interval {
                months,
                days,
                micros,
            })
        })
        .to_vec(),
        Json => vec![Value::Json((*b"[1]").into())],
        Jsonb => [
            "1",
            "1.0",
            "[1]",
            "{\"a\": 1.0}",
            "{\"a\": 1}",
            "[]",
            "null",
        ]
        .map(|s| Value::Jsonb(s.as_bytes().into()))
        .to_vec(),
        Uuid => [[0; 16], [7; 16], [255; 16]].map(Value::Uuid).to_vec(),
    }
}

fn immediates(signature: &Signature) -> Vec<i32> {
    match signature.op {
        Op::Extract | Op::DatePart | Op::DateTrunc => vec![1, 3, 6, 8, 10, 19, 99],
        Op::InRange => (0..4).collect(),
        Op::Typmod | Op::TypmodExplicit => match signature.args[0] {
            Numeric => vec![-1, ((5 << 16) | 1) + 4],
            Varchar | Bpchar => vec![-1, 4 + 2],
            _ => vec![-1, 0, 3],
        },
        _ => vec![0],
    }
}

/// All combinations of operands.
/// Rows of a batch that fit into a message.
const ROWS_MAX: usize = 20_000;

fn combinations(pools: &[Vec<Value>]) -> Vec<Vec<&Value>> {
    pools.iter().fold(vec![Vec::new()], |rows, pool| {
        rows.iter()
            .flat_map(|row| pool.iter().map(move |v| [&row[..], &[v]].concat()))
            .collect()
    })
}

#[test]
fn three_ways() {
    let running = Running::start();
    let mut direct = Direct::new(&running);
    let env = Env::default();
    let mut relation = 1;
    let mut rows_seen = 0;
    for (number, signature) in catalog::signatures().iter() {
        for immediate in immediates(signature) {
            let case = Case {
                signature: signature.clone(),
                immediate,
            };
            rows_seen += agree(&mut direct, number, &case, &env, &mut relation);
        }
    }
    assert!(rows_seen > 5000, "{rows_seen}");
}

fn agree(direct: &mut Direct, number: u16, case: &Case, env: &Env, relation: &mut u32) -> usize {
    let types = &case.signature.args;
    let pools: Vec<Vec<Value>> = types.iter().map(|t| edges(*t)).collect();
    let mut rows = combinations(&pools);
    // Of many operands not all combinations: a prime number of steps meets each value.
    let step = [1, 11, 101, 1009, 10_007]
        .into_iter()
        .find(|s| rows.len() / s < ROWS_MAX);
    rows = rows.into_iter().step_by(step.unwrap_or(1)).collect();
    let declassified = case.signature.op.result() != OpResult::Fid;
    if declassified {
        // A batch fails as a whole: leave out what fails, which single rows show.
        rows.retain(|row| !matches!(reference(case, row, env), Some(Err(_))));
    }
    let count = rows.len();
    let name = case.signature.symbol();
    let mut temporary: Vec<Vec<Fid>> = Vec::new();
    let mut permanent = Vec::new();
    for at in 0..types.len() {
        let fids: Vec<Fid> = rows.iter().map(|row| direct.put(row[at])).collect();
        // A scale that some of the numbers have.
        let typmod = if types[at] == Numeric {
            ((20 << 16) | 2) + 4
        } else {
            -1
        };
        *relation += 1;
        let partition = direct.open(*relation, types[at], typmod);
        permanent.extend(direct.promote(&fids, partition));
        temporary.push(fids);
    }
    if case.signature.op == Op::Eq && hash_together(types) {
        let columns: Vec<&[Fid]> = permanent.chunks_exact(count).collect();
        for (one, other) in [(0, 1), (1, 0)] {
            // A column on one side, temporary values on the other.
            let left = tokens(direct, types[one], columns[one]);
            let right = tokens(direct, types[other], &temporary[other]);
            for (at, row) in rows.iter().enumerate() {
                let equal = reference(case, row, env) == Some(Ok(vec![1]));
                assert_eq!(left[at] == right[at], equal, "{name}({row:?}) by tokens");
            }
        }
    }
    let by_temporary = direct.evaluate(number, case, count, &temporary.concat());
    let by_column = direct.evaluate(number, case, count, &permanent);
    for (at, row) in rows.iter().enumerate() {
        let operands: Vec<Fid> = temporary.iter().map(|column| column[at]).collect();
        let [single] = &direct.evaluate(number, case, 1, &operands)[..] else {
            panic!("{name}");
        };
        if let Some(wanted) = reference(case, row, env) {
            assert_eq!(
                single, &wanted,
                "{name}({row:?}) {} by itself",
                case.immediate
            );
        }
        assert_eq!(&by_temporary[at], single, "{name} row {at} of a batch");
        assert_eq!(&by_column[at], single, "{name} row {at} of a column");
    }
    count
}

/// Mechanism: two integers of one column, of two columns, and of a column and an arena
/// are looked at by ways of their own, one row at a time. With a bug a comparison is of
/// other values than it names, of the wrong order, or of a type that was not asked for.
#[test]
fn integers_where_they_lie() {
    let running = Running::start();
    let mut direct = Direct::new(&running);
    let values = [i32::MIN, -7, 0, 7, 70_000, i32::MAX];
    let temporary: Vec<Fid> = values
        .iter()
        .map(|v| direct.put(&Value::Int4(*v)))
        .collect();
    let columns = [1, 2].map(|relation| {
        let partition = direct.open(relation, Int4, -1);
        direct.promote(&temporary, partition)
    });
    let [one, other] = &columns;
    let number = |op, t| {
        let signature = Signature {
            op,
            args: vec![t, t],
            ret: None,
        };
        u32::from(catalog::signatures().number(&signature).unwrap())
    };
    let body = |number: u32, a: Fid, b: Fid| {
        let head = [number, 0, 1, 2].map(u32::to_le_bytes).concat();
        [head, a.0.to_le_bytes().to_vec(), b.0.to_le_bytes().to_vec()].concat()
    };
    let (less, order) = (number(Op::Lt, Int4), number(Op::Cmp, Int4));
    for (m, a) in values.iter().enumerate() {
        for (n, b) in values.iter().enumerate() {
            for (x, y) in [
                (one, one),
                (one, other),
                (one, &temporary),
                (&temporary, one),
            ] {
                let found = direct.call(Kind::Declassify, &body(less, x[m], y[n]));
                assert_eq!(found, Ok(vec![u8::from(a < b)]), "{a} < {b}");
                let found = direct.call(Kind::Declassify, &body(order, x[m], y[n]));
                assert_eq!(found, Ok(vec![a.cmp(b) as i8 as u8]), "{a} <=> {b}");
            }
        }
    }
    let wrong = body(number(Op::Lt, Int8), one[0], one[1]);
    assert_eq!(direct.call(Kind::Declassify, &wrong), Err("42804".into()));
    let beyond = Fid::new(one[0].partition(), 1 << 20);
    let nothing = direct.call(Kind::Declassify, &body(less, one[0], beyond));
    assert!(nothing.is_err());
}
