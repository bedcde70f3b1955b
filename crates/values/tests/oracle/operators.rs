//! Operators, functions, comparisons, casts, aggregates.

use crate::harness::*;
use crate::inputs::*;
use contract::{Aggregate, Op, TypeCode};
use values::*;

/// Types of both operands and of the result.
type Signature = (TypeCode, TypeCode, TypeCode);

/// What an operator is called, and which signatures it has.
#[rustfmt::skip]
fn operators() -> Vec<(Op, &'static str, Vec<Signature>)> {
    use TypeCode::*;
    let same = [(Int2, Int2, Int2), (Int4, Int4, Int4), (Int8, Int8, Int8)];
    let mixed = [
        (Int2, Int4, Int4), (Int4, Int2, Int4), (Int2, Int8, Int8), (Int8, Int2, Int8),
        (Int4, Int8, Int8), (Int8, Int4, Int8),
    ];
    let floats = [
        (Float4, Float4, Float4), (Float8, Float8, Float8), (Float4, Float8, Float8),
        (Float8, Float4, Float8),
    ];
    let numeric = [(Numeric, Numeric, Numeric)];
    let shifts = vec![(Int2, Int4, Int2), (Int4, Int4, Int4), (Int8, Int4, Int8)];
    let with = |more: &[Signature]| [&same[..], &mixed, &floats, &numeric, more].concat();
    vec![
        (Op::Add, "+", with(&[
            (Date, Int4, Date), (Int4, Date, Date),
            (Date, Interval, Timestamp), (Interval, Date, Timestamp),
            (Date, Time, Timestamp), (Time, Date, Timestamp),
            (Time, Interval, Time), (Interval, Time, Time),
            (Timestamp, Interval, Timestamp), (Interval, Timestamp, Timestamp),
            (Timestamptz, Interval, Timestamptz), (Interval, Timestamptz, Timestamptz),
            (Interval, Interval, Interval),
        ])),
        (Op::Sub, "-", with(&[
            (Date, Int4, Date), (Date, Date, Int4), (Date, Interval, Timestamp),
            (Time, Time, Interval), (Time, Interval, Time),
            (Timestamp, Timestamp, Interval), (Timestamptz, Timestamptz, Interval),
            (Timestamp, Interval, Timestamp), (Timestamptz, Interval, Timestamptz),
            (Interval, Interval, Interval),
        ])),
        (Op::Mul, "*", with(&[(Interval, Float8, Interval), (Float8, Interval, Interval)])),
        (Op::Div, "/", with(&[(Interval, Float8, Interval)])),
        (Op::Mod, "%", [&same[..], &numeric].concat()),
        (Op::BitAnd, "&", same.to_vec()),
        (Op::BitOr, "|", same.to_vec()),
        (Op::BitXor, "#", same.to_vec()),
        (Op::ShiftLeft, "<<", shifts.clone()),
        (Op::ShiftRight, ">>", shifts),
        (Op::Concat, "||", vec![(Text, Text, Text), (Bytea, Bytea, Bytea)]),
    ]
}

#[test]
fn binary_operators() {
    for zone in [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
    ] {
        let mut b = Batch::new(Settings::new(&[("timezone", zone)]));
        let env = b.env.clone();
        let mut r = Rng::new(81);
        for (op, name, signatures) in operators() {
            for (ta, tb, ret) in signatures {
                let mut pairs = Vec::new();
                let (ea, eb) = (edges(ta), edges(tb));
                for _ in 0..count(250) {
                    pairs.push((r.pick(ea).to_string(), r.pick(eb).to_string()));
                    pairs.push((random_input(ta, &mut r), random_input(tb, &mut r)));
                }
                if zone == "UTC" && ea.len() * eb.len() < 800 {
                    pairs.extend(
                        ea.iter()
                            .flat_map(|x| eb.iter().map(|y| (x.to_string(), y.to_string()))),
                    );
                }
                for (x, y) in pairs {
                    let (Some((sx, vx)), Some((sy, vy))) =
                        (literal(ta, &x, &env), literal(tb, &y, &env))
                    else {
                        continue;
                    };
                    b.value(
                        format!("({sx}) {name} ({sy})"),
                        apply(op, ret, 0, &[&vx, &vy], &env),
                    );
                }
            }
        }
        b.run(&format!("binary operators, {zone}"));
    }
    verdict();
}

#[test]
fn numeric_arithmetic() {
    let mut b = Batch::new(default_settings());
    let env = b.env.clone();
    let mut r = Rng::new(82);
    let t = TypeCode::Numeric;
    for _ in 0..count(6000) {
        let (x, y) = (random_input(t, &mut r), random_input(t, &mut r));
        let (Some((sx, vx)), Some((sy, vy))) = (literal(t, &x, &env), literal(t, &y, &env)) else {
            continue;
        };
        for (op, name) in [
            (Op::Add, "+"),
            (Op::Sub, "-"),
            (Op::Mul, "*"),
            (Op::Div, "/"),
            (Op::Mod, "%"),
        ] {
            b.value(
                format!("({sx}) {name} ({sy})"),
                apply(op, t, 0, &[&vx, &vy], &env),
            );
        }
        let order = compare(&vx, &vy, &env).map(|o| Value::Int4(o as i32));
        b.value(format!("numeric_cmp({sx}, {sy})"), order);
        for digits in [
            0,
            1,
            -1,
            r.between(-40, 40) as i32,
            r.between(-3000, 3000) as i32,
            i32::MIN,
            i32::MAX,
        ] {
            for (op, name) in [(Op::Round, "round"), (Op::Trunc, "trunc")] {
                let d = Value::Int4(digits);
                b.value(
                    format!("{name}({sx}, ({digits})::int4)"),
                    apply(op, t, 0, &[&vx, &d], &env),
                );
            }
        }
    }
    b.run("numeric arithmetic");
    verdict();
}

#[test]
fn unary_operators() {
    use TypeCode::*;
    let functions: &[(Op, &str, &[TypeCode])] = &[
        (
            Op::Neg,
            "-",
            &[Int2, Int4, Int8, Float4, Float8, Numeric, Interval],
        ),
        (Op::Plus, "+", &[Int2, Int4, Int8, Float4, Float8, Numeric]),
        (Op::Abs, "@", &[Int2, Int4, Int8, Float4, Float8, Numeric]),
        (Op::Abs, "abs", &[Int2, Int4, Int8, Float4, Float8, Numeric]),
        (Op::BitNot, "~", &[Int2, Int4, Int8]),
        (Op::Round, "round", &[Float8, Numeric]),
        (Op::Trunc, "trunc", &[Float8, Numeric]),
        (Op::Ceil, "ceil", &[Float8, Numeric]),
        (Op::Floor, "floor", &[Float8, Numeric]),
        (Op::Sign, "sign", &[Float8, Numeric]),
        (Op::Upper, "upper", &[Text]),
        (Op::Lower, "lower", &[Text]),
        (Op::Length, "length", &[Text, Bpchar, Bytea]),
        (Op::OctetLength, "octet_length", &[Text, Bpchar, Bytea]),
        (Op::Reverse, "reverse", &[Text]),
        (Op::TrimBoth, "btrim", &[Text]),
        (Op::TrimLeft, "ltrim", &[Text]),
        (Op::TrimRight, "rtrim", &[Text]),
    ];
    let mut b = Batch::new(default_settings());
    let env = b.env.clone();
    let mut r = Rng::new(83);
    for (op, name, types) in functions {
        for &t in *types {
            let ret = if matches!(op, Op::Length | Op::OctetLength) {
                Int4
            } else {
                t
            };
            let random: Vec<String> = (0..count(300)).map(|_| random_input(t, &mut r)).collect();
            for s in edges(t).iter().map(|s| s.to_string()).chain(random) {
                let Some((sql, v)) = literal(t, &s, &env) else {
                    continue;
                };
                b.value(format!("{name} ({sql})"), apply(*op, ret, 0, &[&v], &env));
            }
        }
    }
    b.run("unary operators");
    verdict();
}

#[test]
fn comparisons() {
    use TypeCode::*;
    let families: &[&[TypeCode]] = &[
        &[Int2, Int4, Int8],
        &[Float4, Float8],
        &[Numeric],
        &[Text],
        &[Bpchar],
        &[Bytea],
        &[Bool],
        &[Uuid],
        &[Jsonb],
        &[Time],
        &[Interval],
        &[Date, Timestamp, Timestamptz],
    ];
    let ops = [
        (Op::Lt, "<"),
        (Op::Le, "<="),
        (Op::Eq, "="),
        (Op::Ge, ">="),
        (Op::Gt, ">"),
        (Op::Ne, "<>"),
    ];
    for zone in ["UTC", "America/New_York", "Asia/Kolkata"] {
        let mut b = Batch::new(Settings::new(&[("timezone", zone)]));
        let env = b.env.clone();
        let mut r = Rng::new(84);
        for family in families {
            for &ta in *family {
                for &tb in *family {
                    for i in 0..count(250) {
                        let x = if i % 2 == 0 {
                            r.pick(edges(ta)).to_string()
                        } else {
                            random_input(ta, &mut r)
                        };
                        let y = match i % 3 {
                            0 => x.clone(),
                            1 => r.pick(edges(tb)).to_string(),
                            _ => random_input(tb, &mut r),
                        };
                        let (Some((sx, vx)), Some((sy, vy))) =
                            (literal(ta, &x, &env), literal(tb, &y, &env))
                        else {
                            continue;
                        };
                        let (op, name) = ops[r.below(ops.len())];
                        b.bool(format!("({sx}) {name} ({sy})"), test(op, &vx, &vy, &env));
                        // Only families that are hashed across types must agree.
                        let joinable = ta == tb || !matches!(ta, Date | Timestamp | Timestamptz);
                        if joinable && compare(&vx, &vy, &env).is_ok_and(|o| o.is_eq()) {
                            assert_eq!(
                                hash(&vx, &[1; 16]),
                                hash(&vy, &[1; 16]),
                                "hash of {sx} and {sy}"
                            );
                        }
                        let order = compare(&vx, &vy, &env).unwrap();
                        assert_eq!(
                            compare(&vy, &vx, &env).unwrap(),
                            order.reverse(),
                            "{sx} and {sy}"
                        );
                    }
                }
            }
        }
        b.run(&format!("comparisons, {zone}"));
    }
    verdict();
}

#[test]
fn patterns() {
    let mut b = Batch::new(default_settings());
    let env = b.env.clone();
    let mut r = Rng::new(85);
    let mut add = |s: &str, p: &str, t: TypeCode| {
        let (Some((ss, vs)), Some((sp, vp))) =
            (literal(t, s, &env), literal(TypeCode::Text, p, &env))
        else {
            return;
        };
        for (op, name) in [
            (Op::Like, "~~"),
            (Op::NotLike, "!~~"),
            (Op::Ilike, "~~*"),
            (Op::NotIlike, "!~~*"),
        ] {
            b.bool(format!("({ss}) {name} ({sp})"), test(op, &vs, &vp, &env));
        }
        if t == TypeCode::Text {
            b.bool(
                format!("({ss}) ^@ ({sp})"),
                test(Op::StartsWith, &vs, &vp, &env),
            );
        }
    };
    for s in TEXT_EDGES {
        for p in PATTERNS {
            add(s, p, TypeCode::Text);
            add(s, p, TypeCode::Bpchar);
        }
    }
    for _ in 0..count(4000) {
        let s: String = (0..r.below(10))
            .map(|_| r.pick(&["a", "b", "A", "ä", "日", "%", "\\"]))
            .collect();
        let p: String = (0..r.below(8))
            .map(|_| r.pick(&["a", "b", "A", "ä", "日", "%", "%", "_", "\\"]))
            .collect();
        add(&s, &p, TypeCode::Text);
    }
    b.run("patterns");
    verdict();
}

#[test]
fn string_functions() {
    let mut b = Batch::new(default_settings());
    let env = b.env.clone();
    let mut r = Rng::new(86);
    let t = TypeCode::Text;
    let ints = [
        0,
        1,
        2,
        3,
        -1,
        -2,
        5,
        100,
        -100,
        i32::MAX,
        i32::MIN,
        i32::MAX - 1,
        i32::MIN + 1,
    ];
    for i in 0..count(2500) {
        let s = if i % 2 == 0 {
            r.pick(TEXT_EDGES).to_string()
        } else {
            random_input(t, &mut r)
        };
        let Some((sql, v)) = literal(t, &s, &env) else {
            continue;
        };
        let (n, m) = (ints[r.below(ints.len())], ints[r.below(ints.len())]);
        let (vn, vm) = (Value::Int4(n), Value::Int4(m));
        b.value(
            format!("substring({sql}, ({n})::int4)"),
            apply(Op::Substring, t, 0, &[&v, &vn], &env),
        );
        b.value(
            format!("substring({sql}, ({n})::int4, ({m})::int4)"),
            apply(Op::Substring, t, 0, &[&v, &vn, &vm], &env),
        );
        b.value(
            format!("left({sql}, ({n})::int4)"),
            apply(Op::Left, t, 0, &[&v, &vn], &env),
        );
        b.value(
            format!("right({sql}, ({n})::int4)"),
            apply(Op::Right, t, 0, &[&v, &vn], &env),
        );
        let other: String = (0..r.below(4))
            .map(|_| r.pick(&["a", "b", "ä", "日", " ", "bc", "😀"]))
            .collect();
        let (Some((so, vo)), Some((sw, vw))) = (
            literal(t, &other, &env),
            literal(t, r.pick(TEXT_EDGES), &env),
        ) else {
            continue;
        };
        b.value(
            format!("strpos({sql}, {so})"),
            apply(Op::Position, TypeCode::Int4, 0, &[&v, &vo], &env),
        );
        b.value(
            format!("replace({sql}, {so}, {sw})"),
            apply(Op::Replace, t, 0, &[&v, &vo, &vw], &env),
        );
        for (op, name) in [
            (Op::TrimBoth, "btrim"),
            (Op::TrimLeft, "ltrim"),
            (Op::TrimRight, "rtrim"),
        ] {
            b.value(
                format!("{name}({sql}, {so})"),
                apply(op, t, 0, &[&v, &vo], &env),
            );
        }
        let y = TypeCode::Bytea;
        let (input, small) = (random_input(y, &mut r), random_input(y, &mut r));
        let (Some((sql, v)), Some((so, vo))) = (literal(y, &input, &env), literal(y, &small, &env))
        else {
            continue;
        };
        b.value(
            format!("substring({sql}, ({n})::int4)"),
            apply(Op::Substring, y, 0, &[&v, &vn], &env),
        );
        b.value(
            format!("substring({sql}, ({n})::int4, ({m})::int4)"),
            apply(Op::Substring, y, 0, &[&v, &vn, &vm], &env),
        );
        b.value(
            format!("position({so} in {sql})"),
            apply(Op::Position, TypeCode::Int4, 0, &[&v, &vo], &env),
        );
        b.bool(format!("({sql}) ~~ ({so})"), test(Op::Like, &v, &vo, &env));
        for (op, name) in [
            (Op::TrimBoth, "btrim"),
            (Op::TrimLeft, "ltrim"),
            (Op::TrimRight, "rtrim"),
        ] {
            b.value(
                format!("{name}({sql}, {so})"),
                apply(op, y, 0, &[&v, &vo], &env),
            );
        }
    }
    b.run("string functions");
    verdict();
}

#[test]
fn casts() {
    for settings in [
        Settings::new(&[("timezone", "UTC")]),
        Settings::new(&[
            ("timezone", "America/New_York"),
            ("datestyle", "German"),
            ("intervalstyle", "iso_8601"),
        ]),
        Settings::new(&[("timezone", "Asia/Kolkata"), ("extra_float_digits", "0")]),
    ] {
        let mut b = Batch::new(settings);
        let env = b.env.clone();
        let mut r = Rng::new(87);
        for &from in TYPES {
            for &to in TYPES {
                if from == TypeCode::Varchar || from == to {
                    continue;
                }
                let random: Vec<String> =
                    (0..count(40)).map(|_| random_input(from, &mut r)).collect();
                for s in edges(from).iter().map(|s| s.to_string()).chain(random) {
                    let Some((sql, v)) = literal(from, &s, &env) else {
                        continue;
                    };
                    let ours = apply(Op::Cast, to, 0, &[&v], &env);
                    // A cast that PostgreSQL does not know fails for its own reasons.
                    if ours.as_ref().is_err_and(|e| e.sqlstate == *b"42846") {
                        continue;
                    }
                    b.value(format!("({sql})::{}", to.plain_name()), ours);
                }
            }
        }
        b.run("casts");
    }
    verdict();
}

#[test]
fn modifiers() {
    let mut b = Batch::new(default_settings());
    let env = b.env.clone();
    let mut r = Rng::new(88);
    for &t in TYPES.iter().filter(|t| has_typmod(**t)) {
        for _ in 0..count(600) {
            let (s, m) = (random_input(t, &mut r), typmod(t, &mut r));
            let Some((sql, v)) = literal(t, &s, &env) else {
                continue;
            };
            let function = match t {
                TypeCode::Interval => "interval",
                TypeCode::Time => "time",
                _ => t.plain_name(),
            };
            for explicit in [false, true] {
                let args = match t {
                    TypeCode::Varchar | TypeCode::Bpchar => format!(", {m}, {explicit}"),
                    _ => format!(", {m}"),
                };
                let op = if explicit {
                    Op::TypmodExplicit
                } else {
                    Op::Typmod
                };
                b.value(
                    format!("pg_catalog.\"{function}\"({sql}{args})"),
                    apply(op, t, m, &[&v], &env),
                );
            }
        }
    }
    b.run("modifiers");
    verdict();
}

#[test]
fn aggregates() {
    use TypeCode::*;
    let mut b = Batch::new(default_settings());
    let env = b.env.clone();
    let mut r = Rng::new(91);
    for agg in Aggregate::ALL {
        for &t in TYPES {
            if AggregateState::new(*agg, t).is_err() || t == Varchar {
                continue;
            }
            for _ in 0..count(120) {
                let n = r.below(6);
                let special = r.below(3) == 0;
                let inputs: Vec<String> = (0..n).map(|_| random_input(t, &mut r)).collect();
                let inputs = inputs.into_iter().filter(|s| {
                    let finite = !["NaN", "Inf", "inf"].iter().any(|w| s.contains(w));
                    special || finite
                });
                let literals: Vec<_> = inputs.filter_map(|s| literal(t, &s, &env)).collect();
                let list: Vec<String> = literals
                    .iter()
                    .enumerate()
                    .map(|(i, (sql, _))| format!("({i}, {sql})"))
                    .collect();
                let rows = match list.len() {
                    0 => format!("select 1 as i, null::{} as x where false", t.plain_name()),
                    _ => format!("select * from (values {}) v(i, x)", list.join(", ")),
                };
                let run = |split: usize| -> Result<Value> {
                    let mut a = AggregateState::new(*agg, t)?;
                    let mut second = AggregateState::new(*agg, t)?;
                    for (i, (_, v)) in literals.iter().enumerate() {
                        if i < split {
                            a.step(v, &env)?
                        } else {
                            second.step(v, &env)?
                        }
                    }
                    a.combine(&second)?;
                    a.finish()
                };
                let ours = run(literals.len());
                // Sums of floats depend on the order; the others must not.
                if !matches!(t, Float4 | Float8) && ours.is_ok() && n > 0 {
                    let halves = run(r.below(n));
                    if let (Ok(x), Ok(y)) = (&ours, &halves) {
                        assert_eq!(
                            format_text(x, &env),
                            format_text(y, &env),
                            "{agg:?} in two parts: {rows}"
                        );
                    }
                }
                b.value(
                    format!("(select {}(x order by i) from ({rows}) w)", agg.name()),
                    ours,
                );
            }
        }
    }
    b.run("aggregates");
    verdict();
}
