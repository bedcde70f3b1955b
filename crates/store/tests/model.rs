//! Partitions of every layout against a map: what is put is there until freed,
//! the lowest free slot comes next, and all memory comes back.

use contract::{Fid, TypeCode};
use proptest::prelude::*;
use std::collections::BTreeMap;
use store::{Budget, Layout, NoJournal, PartitionKey, Scalar, Store};
use values::{Env, Value, encode_binary, parse_text};

#[derive(Clone, Debug)]
enum Step {
    Put(Value),
    Free(u64),
}

fn numeric() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        (any::<i64>(), 0usize..25).prop_map(|(v, s)| {
            let digits = format!("{:0>30}", v.unsigned_abs());
            let (whole, part) = digits.split_at(digits.len() - s);
            let sign = if v < 0 { "-" } else { "" };
            format!("{sign}{whole}.{part}0")
        }),
        (-200i64..200).prop_map(|v| format!("{}.{:02}", v / 100, (v % 100).abs())),
        Just("NaN".to_string()),
        Just("-Infinity".to_string()),
        Just(format!("{}e-300", i128::MAX)),
        Just(i64::MIN.to_string()),
    ];
    text.prop_filter_map("numeric", |text| {
        let env = Env::default();
        parse_text(TypeCode::Numeric, -1, text.as_bytes(), &env).ok()
    })
}

fn value(t: TypeCode) -> BoxedStrategy<Value> {
    use TypeCode::*;
    let bytes = prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), 0..70),
        1 => proptest::collection::vec(any::<u8>(), 100..5000),
    ];
    match t {
        Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Int2 => any::<i16>().prop_map(Value::Int2).boxed(),
        Int4 => any::<i32>().prop_map(Value::Int4).boxed(),
        Int8 => any::<i64>().prop_map(Value::Int8).boxed(),
        Float4 => any::<f32>().prop_map(Value::Float4).boxed(),
        Float8 => any::<f64>().prop_map(Value::Float8).boxed(),
        Date => any::<i32>().prop_map(Value::Date).boxed(),
        Time => any::<i64>().prop_map(Value::Time).boxed(),
        Timestamp => any::<i64>().prop_map(Value::Timestamp).boxed(),
        Timestamptz => any::<i64>().prop_map(Value::Timestamptz).boxed(),
        Numeric => numeric().boxed(),
        Text | Varchar => bytes.prop_map(|b| Value::Text(b.into())).boxed(),
        Bpchar => bytes.prop_map(|b| Value::Bpchar(b.into())).boxed(),
        Bytea => bytes.prop_map(|b| Value::Bytea(b.into())).boxed(),
        Interval => any::<(i32, i32, i64)>()
            .prop_map(|(months, days, micros)| {
                Value::Interval(values::Interval {
                    months,
                    days,
                    micros,
                })
            })
            .boxed(),
        Json => bytes.prop_map(|b| Value::Json(b.into())).boxed(),
        Jsonb => bytes.prop_map(|b| Value::Jsonb(b.into())).boxed(),
        Uuid => any::<[u8; 16]>().prop_map(Value::Uuid).boxed(),
    }
}

/// A layout and what to do with a partition of it.
fn plan() -> impl Strategy<Value = (Layout, Vec<Step>)> {
    let scaled = ((15 << 16) | 2) + 4;
    let layouts: Vec<(TypeCode, i32)> = TypeCode::ALL
        .iter()
        .map(|t| (*t, -1))
        .chain([(TypeCode::Numeric, scaled), (TypeCode::Numeric, scaled)])
        .collect();
    proptest::sample::select(layouts).prop_flat_map(|(t, typmod)| {
        let step = prop_oneof![
            3 => value(t).prop_map(Step::Put),
            1 => (0u64..200).prop_map(Step::Free),
        ];
        let steps = proptest::collection::vec(step, 0..400);
        (Just(Layout::of(t, typmod)), steps)
    })
}

proptest! {
    #[test]
    fn like_a_map((layout, steps) in plan()) {
        let budget = Budget::new(1 << 30, "x");
        let store = Store::new(budget.clone(), Box::new(NoJournal));
        let key = PartitionKey { database: 1, relation: 2, attribute: 3, layout };
        let number = store.open(key).unwrap();
        let mut model: BTreeMap<u64, Value> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Put(value) => {
                    let fid = store.promote(number, value.type_code(), &Scalar::of(&value)).unwrap();
                    let lowest = (0..).find(|slot| !model.contains_key(slot)).unwrap_or(0);
                    prop_assert_eq!(fid, Fid::new(number, lowest));
                    model.insert(lowest, value);
                }
                Step::Free(slot) => {
                    let freed = store.free(Fid::new(number, slot));
                    prop_assert_eq!(freed, model.remove(&slot).is_some());
                }
            }
        }
        let partition = store.get(number).unwrap();
        for slot in 0..300 {
            let found = partition.read().value(slot).ok();
            prop_assert_eq!(
                found.map(|v| encode_binary(&v)),
                model.get(&slot).map(encode_binary)
            );
        }
        in_bulk(partition, &model)?;
        let statistics = partition.statistics().unwrap();
        prop_assert_eq!(statistics.live, model.len() as u64);
        prop_assert_eq!(statistics.bytes, budget.used());
        store.drop_relation(1, 2);
        prop_assert_eq!(budget.used(), 0);
    }
}

/// What is read in bulk is what is read one by one, with runs, gaps and repeats.
fn in_bulk(
    partition: &store::Partition,
    model: &BTreeMap<u64, Value>,
) -> Result<(), TestCaseError> {
    let number = partition.number();
    let slots: Vec<u64> = (0..150).chain([3, 3, 149, 0, 1, 2, 10_000]).collect();
    let fids: Vec<Fid> = slots.iter().map(|s| Fid::new(number, *s)).collect();
    let (mut ints, mut floats, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    let reader = partition.read();
    if reader.ints(&fids, &mut ints, &mut missing) {
        prop_assert_eq!(ints.len(), slots.len());
    } else if reader.floats(&fids, &mut floats, &mut missing) {
        prop_assert_eq!(floats.len(), slots.len());
    } else {
        return Ok(());
    }
    let holes = slots
        .iter()
        .enumerate()
        .filter(|(_, s)| !model.contains_key(s));
    let holes: Vec<u32> = holes.map(|(at, _)| at as u32).collect();
    prop_assert_eq!(missing, holes);
    for (at, slot) in slots.iter().enumerate() {
        match model.get(slot).map(Scalar::of) {
            Some(Scalar::Int(v) | Scalar::Scaled(v, _)) => prop_assert_eq!(ints[at], v),
            Some(Scalar::Float(v)) => prop_assert_eq!(floats[at].to_bits(), v.to_bits()),
            _ => {}
        }
    }
    Ok(())
}

/// Partitions are read by many while others write.
#[test]
fn threads() {
    let budget = Budget::new(1 << 30, "x");
    let store = Store::new(budget, Box::new(NoJournal));
    let layout = Layout::of(TypeCode::Text, -1);
    std::thread::scope(|scope| {
        for relation in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for n in 0..2000u32 {
                    let key = PartitionKey {
                        database: 1,
                        relation: n % 7,
                        attribute: 1,
                        layout,
                    };
                    let number = store.open(key).unwrap();
                    let text =
                        Value::Text(format!("{relation} {n} and some more").into_bytes().into());
                    let fid = store
                        .promote(number, text.type_code(), &Scalar::of(&text))
                        .unwrap();
                    let back = store.get(number).unwrap().read().value(fid.slot()).unwrap();
                    assert_eq!(encode_binary(&back), encode_binary(&text));
                    if n % 3 == 0 {
                        assert!(store.free(fid));
                    }
                }
            });
        }
    });
    let live: u64 = store.statistics().iter().map(|(_, s)| s.live).sum();
    assert_eq!(live, 4 * (2000 - 667));
}
