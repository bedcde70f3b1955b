//! Fields of dates and times, and time zones.

use crate::formats::check_inputs;
use crate::harness::*;
use crate::inputs::*;
use contract::{Op, TypeCode, Unit};
use values::*;

#[test]
fn datetime_fields() {
    use TypeCode::*;
    for zone in ZONES {
        let mut b = Batch::new(Settings::new(&[("timezone", zone)]));
        let env = b.env.clone();
        let mut r = Rng::new(89);
        for t in [Date, Time, Timestamp, Timestamptz, Interval] {
            let random: Vec<String> = (0..count(25)).map(|_| random_input(t, &mut r)).collect();
            for s in edges(t).iter().map(|s| s.to_string()).chain(random) {
                let Some((sql, v)) = literal(t, &s, &env) else {
                    continue;
                };
                for &unit in Unit::ALL {
                    let (name, code) = (unit.name(), unit as i32);
                    b.value(
                        format!("extract({name} from {sql})"),
                        apply(Op::Extract, Numeric, code, &[&v], &env),
                    );
                    b.value(
                        format!("date_part('{name}', {sql})"),
                        apply(Op::DatePart, Float8, code, &[&v], &env),
                    );
                    if !matches!(t, Date | Time) {
                        b.value(
                            format!("date_trunc('{name}', {sql})"),
                            apply(Op::DateTrunc, t, code, &[&v], &env),
                        );
                    }
                }
            }
        }
        b.run(&format!("fields, {zone}"));
    }
    verdict();
}

#[test]
fn zones() {
    for zone in ZONES {
        let mut b = Batch::new(Settings::new(&[("timezone", zone)]));
        let env = b.env.clone();
        let mut r = Rng::new(90);
        for i in 0..count(400) {
            let s = match i % 2 {
                0 => r.pick(TIMESTAMP_EDGES).to_string(),
                _ => random_input(TypeCode::Timestamp, &mut r),
            };
            let other = r.pick(ZONES);
            if !other.contains('/') {
                continue;
            }
            let with_zone = format!("{s} {other}");
            check_inputs(
                &mut b,
                TypeCode::Timestamptz,
                [(with_zone, -1), (s.clone(), -1)],
            );
            let Some((sql, v)) = literal(TypeCode::Timestamptz, &s, &env) else {
                continue;
            };
            b.value(
                format!("({sql})::timestamp"),
                apply(Op::Cast, TypeCode::Timestamp, 0, &[&v], &env),
            );
        }
        b.run(&format!("zones, {zone}"));
    }
    verdict();
}

/// Every zone that PostgreSQL knows, around changes of its offset and far away.
#[test]
fn all_zones() {
    let mut b = Batch::new(default_settings());
    let mut r = Rng::new(93);
    for name in rows("select encode(convert_to(name, 'UTF8'), 'hex') from pg_timezone_names") {
        for _ in 0..count(12) {
            let stamp = match r.below(3) {
                0 => r.pick(TIMESTAMP_EDGES).to_string(),
                1 => format!(
                    "{}-{:02}-{:02} 02:30",
                    r.between(1970, 2040),
                    r.between(3, 4),
                    r.between(1, 30)
                ),
                _ => random_input(TypeCode::Timestamp, &mut r),
            };
            check_inputs(
                &mut b,
                TypeCode::Timestamptz,
                [(format!("{stamp} {name}"), -1)],
            );
        }
    }
    b.run("all zones");
    verdict();
}

/// Every abbreviation that PostgreSQL knows.
#[test]
fn all_abbreviations() {
    let mut b = Batch::new(default_settings());
    let mut r = Rng::new(94);
    for name in rows("select encode(convert_to(abbrev, 'UTF8'), 'hex') from pg_timezone_abbrevs") {
        for _ in 0..count(8) {
            let stamp = random_input(TypeCode::Timestamp, &mut r);
            check_inputs(
                &mut b,
                TypeCode::Timestamptz,
                [(format!("{stamp} {name}"), -1)],
            );
        }
        check_inputs(&mut b, TypeCode::Time, [(format!("12:34 {name}"), -1)]);
    }
    b.run("all abbreviations");
    verdict();
}
