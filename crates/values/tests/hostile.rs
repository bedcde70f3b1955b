//! No function panics, whatever it is given.
//!
//! Mechanism: random bytes as text and as binary of every type, random values
//! (in and out of the range that input functions let in) as arguments of every
//! operation, with overflow checks on. The right answer is any result or error;
//! a bug is a panic. Errors must not contain the input either.

use contract::{Aggregate, Op, TypeCode, Unit};
use proptest::prelude::*;
use values::*;

fn type_code() -> impl Strategy<Value = TypeCode> {
    proptest::sample::select(TypeCode::ALL)
}

fn int() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -100i64..100,
        proptest::sample::select(vec![
            i64::MIN,
            i64::MIN + 1,
            i64::MAX,
            i64::MAX - 1,
            i64::from(i32::MIN),
            i64::from(i32::MAX),
            i64::from(i16::MIN),
            -211_813_488_000_000_000,
            9_223_371_331_200_000_000,
            9_223_371_331_199_999_999,
            86_400_000_000,
        ]),
    ]
}

fn numeric() -> impl Strategy<Value = Numeric> {
    let literal = prop_oneof![
        "-?[0-9]{1,50}(\\.[0-9]{1,50})?",
        "-?[1-9][0-9]{0,3}e-?[0-9]{1,3}",
        proptest::sample::select(vec![
            "NaN".to_string(),
            "Infinity".into(),
            "-Infinity".into(),
            "9e131071".into(),
            "-9e131071".into(),
            "1e-16383".into(),
            i128::MAX.to_string(),
            i128::MIN.to_string(),
        ]),
    ];
    prop_oneof![
        literal.prop_map(|s| Numeric::parse(s.as_bytes(), -1).unwrap()),
        (int(), 0u16..=16_383).prop_map(|(v, scale)| Numeric::from_scaled(v, scale)),
        int().prop_map(Numeric::from_i64),
    ]
}

fn bytes() -> impl Strategy<Value = Box<[u8]>> {
    let text = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        "[ab%_\\\\ äß日😀]{0,12}".prop_map(String::into_bytes),
    ];
    text.prop_map(Vec::into_boxed_slice)
}

/// Documents, and what is none.
fn json() -> impl Strategy<Value = Box<[u8]>> {
    let text = prop_oneof![
        "[\\[\\]{},: \"a\\\\u0d8c9e.-]{0,30}".prop_map(String::into_bytes),
        proptest::sample::select(vec![
            "{\"a\": [1, -2.50, null, true, \"b\"], \"b\": {}}",
            "[[], {\"a\": {\"a\": 1e300}}, \"\\ud83d\\ude00\"]",
            "\"a\"",
            "null",
        ])
        .prop_map(|s| s.as_bytes().to_vec()),
        (0usize..3000).prop_map(|n| vec![b'['; n]),
    ];
    text.prop_map(Vec::into_boxed_slice)
}

fn value() -> impl Strategy<Value = values::Value> {
    use values::Value as V;
    let i32s = || int().prop_map(|n| n as i32);
    prop_oneof![
        any::<bool>().prop_map(V::Bool),
        int().prop_map(|n| V::Int2(n as i16)),
        i32s().prop_map(V::Int4),
        int().prop_map(V::Int8),
        any::<f32>().prop_map(V::Float4),
        prop_oneof![any::<f64>(), int().prop_map(|n| n as f64), Just(f64::NAN)].prop_map(V::Float8),
        numeric().prop_map(V::Numeric),
        bytes().prop_map(V::Text),
        bytes().prop_map(V::Bpchar),
        bytes().prop_map(V::Bytea),
        json().prop_map(V::Json),
        json().prop_map(V::Jsonb),
        i32s().prop_map(V::Date),
        int().prop_map(V::Time),
        int().prop_map(V::Timestamp),
        int().prop_map(V::Timestamptz),
        (i32s(), i32s(), int()).prop_map(|(months, days, micros)| V::Interval(Interval {
            months,
            days,
            micros
        })),
        any::<[u8; 16]>().prop_map(V::Uuid),
    ]
}

fn env() -> impl Strategy<Value = Env> {
    let zones = [
        "UTC",
        "America/New_York",
        "Australia/Lord_Howe",
        "-5.5",
        "EST5EDT",
        "x3",
    ];
    let styles = [
        "ISO, MDY",
        "ISO, DMY",
        "ISO, YMD",
        "SQL",
        "German",
        "Postgres, DMY",
    ];
    let intervals = ["postgres", "postgres_verbose", "sql_standard", "iso_8601"];
    let select = proptest::sample::select::<&'static str>;
    (
        select(zones.to_vec()),
        select(styles.to_vec()),
        select(intervals.to_vec()),
        -15..=3i32,
        int(),
    )
        .prop_map(|(zone, style, interval, digits, now)| {
            let mut env = Env::default();
            env.set("TimeZone", zone).unwrap();
            env.set("DateStyle", style).unwrap();
            env.set("IntervalStyle", interval).unwrap();
            env.set("extra_float_digits", &digits.to_string()).unwrap();
            env.set_now(now);
            env
        })
}

fn typmod() -> impl Strategy<Value = i32> {
    prop_oneof![
        Just(-1),
        any::<i32>(),
        0..100i32,
        (1..1000i32, 0..0x800i32).prop_map(|(p, s)| (p << 16 | s) + 4)
    ]
}

fn date_text() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        "[-+]?[0-9]{1,12}([-/.:][0-9]{0,6}){0,3}",
        "[a-zA-Z]{1,12}",
        proptest::sample::select(vec![
            "jan",
            "bc",
            "am",
            "pm",
            "T",
            "J",
            "infinity",
            "epoch",
            "now",
            "today",
            "tomorrow",
            "y",
            "h",
            "m",
            "s",
            "P",
            "PT",
            "ago",
            "year",
            "mons",
            "days",
            "hours",
            "us",
            "msk",
            "est",
            "dst",
            "z",
            "Europe/Berlin",
            "d",
            "week",
        ])
        .prop_map(str::to_string),
        "\\PC{0,3}",
    ];
    proptest::collection::vec((word, "[ ]?"), 0..6).prop_map(|words| {
        words
            .into_iter()
            .map(|(w, s)| w + &s)
            .collect::<String>()
            .into_bytes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_input(t in type_code(), m in typmod(), s in prop_oneof![date_text(), bytes().prop_map(|b| b.into_vec())], env in env()) {
        match parse_text(t, m, &s, &env) {
            Ok(v) => {
                let text = format_text(&v, &env);
                let binary = encode_binary(&v);
                let _ = decode_binary(t, m, &binary);
                let _ = parse_text(t, -1, &text, &env);
                let _ = hash(&v, &[0; 16]);
            }
            Err(e) => {
                // Long inputs only: a short one may be part of any message.
                let shown = String::from_utf8_lossy(&s);
                if shown.trim().len() > 6 {
                    let error = format!("{e:?}");
                    prop_assert!(!error.contains(shown.trim()));
                }
            }
        }
    }

    #[test]
    fn binary_input(t in type_code(), m in typmod(), b in proptest::collection::vec(any::<u8>(), 0..40), env in env()) {
        if let Ok(v) = decode_binary(t, m, &b) {
            let text = format_text(&v, &env);
            prop_assert!(matches!(t, TypeCode::Text | TypeCode::Varchar | TypeCode::Bpchar) || !text.is_empty());
            let _ = encode_binary(&v);
        }
    }

    #[test]
    fn numeric_binary(count in 0u16..12, weight in any::<i16>(), sign in 0usize..6, scale in any::<u16>(), digits in proptest::collection::vec(0u16..10_001, 12)) {
        let sign = [0, 0x4000, 0xC000, 0xD000, 0xF000, 0x1234][sign];
        let words = [count, weight as u16, sign, scale];
        let bytes: Vec<u8> = words.iter().chain(digits.iter().take(count.into())).flat_map(|w| w.to_be_bytes()).collect();
        if let Ok(v) = decode_binary(TypeCode::Numeric, -1, &bytes) {
            let back = decode_binary(TypeCode::Numeric, -1, &encode_binary(&v)).unwrap();
            prop_assert!(compare(&v, &back, &Env::default()).unwrap().is_eq());
        }
    }

    #[test]
    fn operations(a in value(), b in value(), c in value(), ret in type_code(), m in typmod(), env in env()) {
        for &op in Op::ALL {
            for args in [&[&a][..], &[&a, &b], &[&a, &b, &c]] {
                for immediate in [m, 1] {
                    if let Ok(v) = apply(op, ret, immediate, args, &env) {
                        let _ = format_text(&v, &env);
                    }
                }
            }
            let _ = test(op, &a, &b, &env);
        }
        for &unit in Unit::ALL {
            for op in [Op::Extract, Op::DatePart, Op::DateTrunc] {
                let _ = apply(op, ret, unit as i32, &[&a], &env);
            }
        }
        for &to in TypeCode::ALL {
            let _ = apply(Op::Cast, to, 0, &[&a], &env);
            let _ = apply_typmod(a.clone(), to, m, true);
            let _ = apply_typmod(a.clone(), to, m, false);
        }
        let _ = (encode_binary(&a), hash(&a, &[0; 16]), a.heap_bytes());
    }

    #[test]
    fn order(a in value(), b in value(), env in env()) {
        let ab = compare(&a, &b, &env);
        let ba = compare(&b, &a, &env);
        match (ab, ba) {
            (Ok(x), Ok(y)) => prop_assert_eq!(x, y.reverse()),
            (Err(_), Err(_)) => {}
            _ => prop_assert!(false, "one order only"),
        }
        // Only json has no order.
        let same = compare(&a, &a, &env);
        prop_assert!(same.is_ok_and(|o| o.is_eq()) || matches!(a, Value::Json(_)));
    }

    #[test]
    fn aggregates(vs in proptest::collection::vec(value(), 0..6), t in type_code(), split in 0usize..6, env in env()) {
        for &agg in Aggregate::ALL {
            let (Ok(mut a), Ok(mut b)) = (AggregateState::new(agg, t), AggregateState::new(agg, t)) else { continue };
            for (i, v) in vs.iter().enumerate() {
                let _ = if i < split { a.step(v, &env) } else { b.step(v, &env) };
            }
            let _ = a.combine(&b);
            let _ = (a.finish(), a.heap_bytes(), a.is_empty());
        }
    }

    #[test]
    fn settings(name in "TimeZone|DateStyle|IntervalStyle|extra_float_digits|\\PC{0,9}", value in "\\PC{0,20}|[-+]?[0-9.:]{0,8}|[A-Z]{0,4}[-+]?[0-9:]{0,9}[A-Z]{0,4}[-+]?[0-9:]{0,9}(,M[0-9.]{0,6},M[0-9.]{0,6})?") {
        let mut env = Env::default();
        if env.set(&name, &value).is_ok() {
            let _ = format_text(&values::Value::Timestamptz(0), &env);
        }
    }
}
