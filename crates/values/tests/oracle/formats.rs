//! Input and output functions, text and binary.

use crate::harness::*;
use crate::inputs::*;
use contract::TypeCode;
use std::fmt::Write as _;
use values::*;

pub fn check_inputs(b: &mut Batch, t: TypeCode, inputs: impl IntoIterator<Item = (String, i32)>) {
    for (s, typmod) in inputs {
        let ours = parse_text(t, typmod, s.as_bytes(), &b.env);
        if let Ok(v) = &ours {
            let sql = format!(
                "encode({}({}), 'hex')",
                send_function(t),
                input_sql(t, typmod, &s)
            );
            let bytes = encode_binary(v);
            let hex = bytes.iter().fold(String::new(), |mut s, b| {
                let _ = write!(s, "{b:02x}");
                s
            });
            // The payload of a NaN is lost.
            if !s.contains("nan(") {
                b.text(sql, Ok(hex.into_bytes()));
            }
            // Rounding may leave the range that the receive function checks.
            let rounded_up = s.starts_with("294276-12-31 23:59:59.9");
            let back = decode_binary(t, typmod, &bytes).map(|v| format_text(&v, &b.env));
            assert!(
                rounded_up || back.ok() == Some(format_text(v, &b.env)),
                "binary round trip: {t:?} {s}"
            );
        }
        b.value(input_sql(t, typmod, &s), ours);
    }
}

#[test]
fn inputs_and_outputs() {
    for &t in TYPES {
        let mut r = Rng::new(t as u64);
        let mut b = Batch::new(default_settings());
        check_inputs(&mut b, t, edges(t).iter().map(|s| (s.to_string(), -1)));
        for _ in 0..count(600) {
            let (s, m) = (random_input(t, &mut r), typmod(t, &mut r));
            check_inputs(&mut b, t, [(s, m)]);
            let (s, m) = (odd_input(t, &mut r), typmod(t, &mut r));
            check_inputs(&mut b, t, [(s, m)]);
        }
        b.run(&format!("input of {}", t.plain_name()));
    }
    verdict();
}

#[test]
fn number_inputs() {
    #[rustfmt::skip]
    let odd = [
        "", " ", "+", "-", ".", "+.", "-.", "1.", ".1", "+1", "--1", "1-", "1e", "1e+", "1e5",
        "1E5", "1e-5", "1e 5", "1 e5", " 12 ", "\t12\n", "1_000", "0x10", "0X1p3", "0x", "0x.8",
        "0x1.8p-1", "0x1p99999", "0x1p-99999", "nan", "NAN", "+nan", "-nan", "nan(1)", "nanx",
        "inf", "+inf", "-inf", "INFINITY", "+Infinity", "-infinity", "infin", "infinityx", "1e400",
        "-1e400", "1e-400", "1e39", "1e-46", "0e400", "0e-400", "1e1000000",
        "1e99999999999999999999", "1e2147483647", "1e1073741823", "1e1073741822", "0e1073741822",
        "0e1073741823", "1e-1073741822", "1e-16384", "0.1e-16383", "1e131072", "1e131071",
        "9e131071", "0e-20000", "0e20000", "1e-20000", "1.5e3", "1.5e-3", "123.456e2", "123.456e1",
        "123.456e10", "00012", "000.100", "1.2.3", "12abc", "abc", "32767", "32768", "-32768",
        "-32769", "2147483648", "-2147483649", "9223372036854775808", "-9223372036854775809",
        "99999999999999999999999999999999999999999999", "1,000", "١", "1 2", "99999.995",
        "0.00499999", "-0.005", "999.9999e-4", "t", "true", "T", "tr", "truex", "yes", "y", "ye",
        "no", "n", "on", "o", "of", "off", "1", "0", "2", " true ", "f", "fa", "false",
    ];
    let mut b = Batch::new(default_settings());
    for t in [
        TypeCode::Bool,
        TypeCode::Int2,
        TypeCode::Int4,
        TypeCode::Int8,
        TypeCode::Float4,
        TypeCode::Float8,
        TypeCode::Numeric,
    ] {
        check_inputs(&mut b, t, odd.iter().map(|s| (s.to_string(), -1)));
    }
    let m = |p: i32, s: i32| (p << 16 | s & 0x7ff) + 4;
    for typmod in [
        m(5, 2),
        m(3, -2),
        m(3, 5),
        m(1, 0),
        m(1000, 1000),
        m(1000, -1000),
        m(10, 10),
        m(2, 4),
    ] {
        let inputs = odd
            .iter()
            .chain(NUMERIC_EDGES)
            .map(|s| (s.to_string(), typmod));
        check_inputs(&mut b, TypeCode::Numeric, inputs);
    }
    b.run("numbers");
    verdict();
}

#[rustfmt::skip]
const DATETIME_INPUTS: &[&str] = &[
    "January 8, 1999", "1999-01-08", "1/8/1999", "1/18/1999", "01/02/03", "1999-Jan-08",
    "Jan-08-1999", "08-Jan-1999", "99-Jan-08", "08-Jan-99", "Jan-08-99", "19990108", "990108",
    "1999.008", "J2451187", "January 8, 99 BC", "1999-01-08 04:05:06", "1999-01-08 04:05:06 PST",
    "1999-01-08 04:05:06 -8:00", "1999-01-08T04:05:06Z", "1999-01-08T04:05:06+02",
    "1999-01-08T04:05:06.789-0730", "19990108T040506", "19990108T040506.789-07", "19990108 040506",
    "19990108T0405", "Jan 8 04:05:06 1999 PST", "January 8 04:05:06 1999 PST",
    "Fri Jan 08 04:05:06 1999", "1999-01-08 04:05 AM", "1999-01-08 12:05 AM", "1999-01-08 12:05 PM",
    "1999-01-08 04:05 PM", "1999-01-08 13:05 PM", "1999-01-08 24:00:00", "1999-01-08 24:00:01",
    "1999-01-08 23:59:60", "1999-01-08 23:60:00", "1999-01-08 25:00:00", "1999-01-08 4:5:6",
    "1999-1-8", "1999-13-01", "1999-12-32", "1999-02-29", "2000-02-30", "0000-01-01", "0001-01-01",
    "1-1-0", "1-1-00", "1-1-69", "1-1-70", "1-1-99", "1-1-100", "0-1-1", "00-01-01", "69-01-01",
    "1999-01-08 BC", "1999-01-08 AD", "4714-11-24 BC", "4713-11-24 BC", "4714-11-23 BC",
    "4715-01-01 BC", "5874897-12-31", "5874898-01-01", "5874898-06-03", "294277-01-01",
    "294276-12-31 23:59:59.999999", "294276-12-31 23:59:59.9999999", "infinity", "-infinity",
    "+infinity", "Infinity", "INFINITY", "infinity x", "epoch", "epoch 1", "allballs",
    "1999-01-08 allballs", "", " ", "x", "1999", "1999-01", "01", "199901", "1999010", "199901081",
    "Jan", "Jan 8", "Jan 1999", "8 Jan", "1999 Jan 8", "8 1999 Jan", "Jan 8 1999 Jan",
    "Monday 1999-01-08", "Fri, 08 Jan 1999 04:05:06 GMT", "1999-01-08 04:05:06 America/New_York",
    "1999-07-08 04:05:06 America/New_York", "1999-07-08 04:05:06 america/new_york",
    "1999-07-08 04:05:06 Europe/Nowhere", "1999-07-08 04:05:06 EST", "1999-07-08 04:05:06 EDT",
    "1999-07-08 04:05:06 MSK", "2012-07-08 04:05:06 MSK", "2016-07-08 04:05:06 MSK",
    "1999-07-08 04:05:06 MET DST", "1999-07-08 04:05:06 CET DST", "1999-07-08 04:05:06 DST",
    "1999-07-08 04:05:06 z", "1999-07-08 04:05:06 UTC", "1999-07-08 04:05:06 GMT+3",
    "1999-07-08 04:05:06 UTC-5", "1999-07-08 04:05:06 XYZ+3", "1999-07-08 04:05:06 utc+03:30",
    "1999-07-08 04:05:06 +03:30", "1999-07-08 04:05:06 +15:59", "1999-07-08 04:05:06 +16",
    "1999-07-08 04:05:06 -15:59:59", "1999-07-08 04:05:06 +1", "1999-07-08 04:05:06 +123",
    "1999-07-08 04:05:06 +1234", "1999-07-08 04:05:06 +12345", "1999-07-08 04:05:06 +12:60",
    "1999-07-08 04:05:06+", "1999-07-08 04:05:06 +x", "1999-07-08 04:05:06+02:00 x",
    "1999-07-08 04:05:06 IRKT", "1999-07-08 04:05:06 LHDT", "1999-07-08 EST5EDT",
    "04:05:06 1999-07-08", "04:05:06.123456789 1999-07-08", "1999-07-08 04:05:06.1234565",
    "1999-07-08 04:05:06.12345649999", "1999-07-08 04:05:06.", "1999-07-08 04:05.5",
    "1999-07-08 04:05:06.9999999", "1999-07-08 23:59:59.9999999", "1999-12-31 23:59:59.9999996",
    "1999-07-08 04::06", "1999-07-08 04:", "1999-07-08 :05", "1999-07-08 -04:05", "1999/07/08",
    "1999/7/8", "7/8/99", "07.08.1999", "7.8.99", "1999.07.08", "08.07.1999 04:05", "1999-07/08",
    "1999-07-08-09", "1999--07-08", "1999-07-", "-1999-07-08", "J0", "J-1", "J2451187.5",
    "julian 2451187", "J2451187 04:05", "jd 2451187.25", "J2147483647", "J2147483648",
    "J2451187-08", "y1999m07d08", "1999-07-08 d", "d 8 1999-07", "1999-07-08 t 040506",
    "t 040506 1999-07-08", "1999-07-08t", "1999-07-08 tt", "1999-07-08T", "1999-07-08 T 04:05",
    "1999 189", "1999189", "1999.189", "1999.366", "2000.366", "1999.000", "1999.367", "99189",
    "12:34", "12:34:56", "12:34:56.789", "123456", "1234", "12345", "123", "12", "123456.789",
    "1234.5", "12:34 PM", "00:34 PM", "12:34 am", "13:00 am", "24:00", "24:00:00.000001",
    "23:59:60", "23:59:60.5", "23:59:61", "12:34:56 UTC", "12:34:56+02",
    "12:34:56 America/New_York", "2000-01-01 12:34:56 America/New_York", "12:34:56 EST",
    "12:34:56 MSK", "2000-01-01 12:34:56", "T12:34", "t 1234", "T123456", "h12", "1999-01-08 h4",
    "1999-01-08 h4m5s6.5", "1999-01-08 y 5", "1999-01-08 mm 5", "at 1999-01-08",
    "on 1999-01-08 at 5:06", "1999-01-08,04:05:06", "(1999-01-08)", "1999-01-08;", "#1999-01-08",
    "1999-01-08 04:05:06 america", "1999-01-08 zulu", "99999999-01-01", "2147483648-01-01",
    "1999-2147483648-01", "1999-01-99999999999", "1999-01-08 99999999999:00",
    "99999999999999999999", "199912311259591", "Sept 8 1999", "September 8 1999", "Septem 8 1999",
    "decembe 8 1999", "thurs 1999-01-07", "weds 1999-01-06", "1999-01-08 bc ad", "1999-01-08 am pm",
    "1999-01-08 04:05 am pm", "1999-01-08 04:05:06 04:05:06", "1999-01-08 1999-01-08",
    "1999-01-08 Jan", "01 Jan 02 03", "Jan 1 2 3", "1 2 3", "10 11 12", "99 1 2", "1999 1 2",
    "1999 1 2 3", "31 12 1999", "12 31 1999", "20000229", "19000229", "1e5", "1999-01-08 1e5",
    "2000-01-01 00:00:00 LMT", "2000-01-01 00:00:00 Etc/GMT-14", "2000-01-01 00:00:00 GMT0",
    "0099-07-08", "099-07-08", "07-08-0099", "07-08-099", "1000000-01-01", "100000-01-01 12:00",
    "1999-01-08 \u{00e4}", "2000-01-01 10:00 Europe/Berlin Europe/Berlin",
    "2000-01-01 10:00 +01 +02", "2000-01-01 10:00 CET +02", "2021-03-28 02:30 Europe/Berlin",
    "2021-10-31 02:30 Europe/Berlin", "2021-03-14 02:30 America/New_York",
    "2021-11-07 01:30 America/New_York", "2021-11-07 01:30 EDT",
    "12021-07-01 12:00 America/New_York", "0021-07-01 12:00 America/New_York",
    "1883-11-18 12:03:57 America/New_York", "2000-01-01 microsecond", "tomorrow x",
    "2000-01-01 yesterday", "2000-01-01 now",
];

fn style_settings() -> Vec<Settings> {
    let mut all = Vec::new();
    for style in [
        "ISO, MDY",
        "ISO, DMY",
        "ISO, YMD",
        "SQL, MDY",
        "SQL, DMY",
        "German",
        "Postgres, MDY",
        "Postgres, DMY",
    ] {
        for zone in ["UTC", "America/New_York", "Asia/Kolkata", "5.5"] {
            all.push(Settings::new(&[("datestyle", style), ("timezone", zone)]));
        }
    }
    all
}

#[test]
fn datetime_inputs() {
    for settings in style_settings() {
        let name = format!("date and time input, {:?}", settings.0);
        let mut b = Batch::new(settings);
        let mut r = Rng::new(77);
        for t in [
            TypeCode::Date,
            TypeCode::Time,
            TypeCode::Timestamp,
            TypeCode::Timestamptz,
        ] {
            check_inputs(
                &mut b,
                t,
                DATETIME_INPUTS.iter().map(|s| (s.to_string(), -1)),
            );
            check_inputs(&mut b, t, edges(t).iter().map(|s| (s.to_string(), -1)));
            for _ in 0..count(150) {
                let input = random_input(t, &mut r);
                check_inputs(&mut b, t, [(input, -1)]);
            }
        }
        b.run(&name);
    }
    verdict();
}

/// Fields strung together at random.
#[test]
fn datetime_soup() {
    #[rustfmt::skip]
    let parts = [
        "1999-01-08", "1999", "99", "8", "01", "13", "Jan", "jan", "Feb-29", "29-Feb-2000", "04:05",
        "04:05:06", "04:05:06.5", "+02", "-0730", "PST", "EDT", "z", "UTC", "MSK", "Europe/Berlin",
        "BC", "AD", "AM", "PM", "Mon", "T", "t", "J2451187", "J", "2451187", "d", "y", "m", "h",
        "mm", "s", "dst", "at", "on", ",", "-", "infinity", "epoch", "allballs", "040506",
        "19990108", "1.5", "1999.008", "366", "008", "x", "1/2/3", "+", "40506", "0405", "julian",
        "2000-02-30", "24:00", "12:60", "1e5", ":", "99999", "123456789", "999999999999",
        "040506-07", "12",
    ];
    for settings in [
        Settings::new(&[("datestyle", "ISO, MDY"), ("timezone", "America/New_York")]),
        Settings::new(&[("datestyle", "ISO, DMY"), ("timezone", "UTC")]),
        Settings::new(&[("datestyle", "ISO, YMD"), ("timezone", "Europe/Berlin")]),
    ] {
        let mut b = Batch::new(settings);
        let mut r = Rng::new(78);
        for t in [
            TypeCode::Date,
            TypeCode::Time,
            TypeCode::Timestamp,
            TypeCode::Timestamptz,
        ] {
            for _ in 0..count(2500) {
                let n = 1 + r.below(4);
                let s: String = (0..n)
                    .map(|_| format!("{}{}", r.pick(&parts), r.pick(&[" ", " ", ""])))
                    .collect();
                check_inputs(&mut b, t, [(s, -1)]);
            }
        }
        b.run("date and time soup");
    }
    verdict();
}

#[rustfmt::skip]
const INTERVAL_INPUTS: &[&str] = &[
    "1", "1.5", "-1.5", "1:30", "1:30:15", "1:30.5", "-1:30", "+1:30", "1 1:30", "-1 1:30",
    "-1 +1:30", "1-2", "-1-2", "+1-2", "1-12", "1-2 3", "1-2 3 4:05:06", "-1-2 3 4:05:06",
    "-1-2 -3 -4:05:06", "1 year 2 months", "1y 2mon", "1y2mon", "1 day ago", "1 day -1 hour ago",
    "ago", "day", "1 day day", "1 day 2 day", "1 day 2 hours 3 hours", "1 hour 2:03", "2:03 1 hour",
    "1.5 hours 30 min", "1.5 years", "1.55 years", "1.999 years", "-1.5 months", "1.5 weeks",
    "0.1 months", "0.7 days", "1.23456789 seconds", "1.2345675 sec", "100 ms", "100 us", "1.5 us",
    "1 quarter", "1 qtr", "1 c", "1 mil", "1 dec", "1 century", "@ 1 minute", "@1 minute",
    "1 minute @", "P1Y2M3DT4H5M6S", "P1Y", "PT1H", "P1W", "P1.5Y", "P1.5M", "P1.5W", "P1.5D",
    "PT1.5H", "PT1.5M", "PT1.5S", "P-1Y", "P-1Y-2M", "P1Y-2M3DT-4H", "P0001-02-03T04:05:06",
    "P1-2-3T4:5:6", "P00010203T040506", "P00010203", "P0001", "P", "PT", "P1", "PT1", "P1T1",
    "P1Y1", "P1S", "PT1Y", "PT040506.5", "P1e3D", "P1e400D", "P1e16D", "P.5D", "P1.D", "P-.5D",
    "PT04:05", "PT04:05:06.7", "P0001-02", "P0001-02-03T", "p1y", "P1Y 2M", "P1YT", "1e5",
    "1 day 1e5 sec", "infinity", "-infinity", "", " ", "x", "1 x", "1 dayx", "1 microsecondsss",
    "1 millisecondes", "1 millenniumm", "2147483647 months", "2147483648 months", "178956970 years",
    "178956971 years", "-178956970 years -8 months", "-178956970 years -9 months",
    "2147483647 days", "2147483648 days", "-2147483648 days", "306783378 weeks", "306783379 weeks",
    "9223372036854775807 us", "9223372036854775808 us", "-9223372036854775808 us",
    "-9223372036854775808 us ago", "2562047788:00:54.775807", "2562047788:00:54.775808",
    "2562047789:00", "-2562047788:00:54.775808", "9223372036855 sec", "1 day 25:00", "25:00",
    "1:60", "1:59:60", "1:59:61", "1:00:00.9999999", "10:20:30:40", "1:2:3.4.5", "1.2.3", "1..2",
    "1-2-3", "1/2", "1/2/3", "1-2.5", "1 - 2", "- 1 day", "-  1 day", "1 -day", "+1 day", "--1 day",
    "1 day, 2 hours", "(1 day)", "1 day;", "0.000001 sec", "0.0000005 sec", "0.00000051 sec",
    "-0.5 sec", "-.5 sec", ".5 sec", ". sec", "1. sec", "1 timezone", "1 now", "1 jan",
    "1 at 2 hours", "1 d 2 h 3 m 4 s", "1 mm", "1 j", "1 dow", "6 months 1.5 days -00:00:01",
    "1 day 04:05:06 ago", "1 decade 1 century 1 millennium", "1 year 1-2", "1 2 3", "1 2:03 4",
    "1 day 2", "2 1 day", "1 week 1 day", "1 day 1 week", "0", "00:00", "-0", "-0:00",
    "1 second 1 millisecond 1 microsecond", "1.5 second 1 millisecond", "1 millisecond 1.5 second",
    "1 sec 1:00", "1000000000 hours", "3000000000 hours", "1e3 days", "1\u{00e4}",
    "12345678901234567890 sec", "1 12345678901:00", "1 hour ago 1 day", "ago 1 day",
    "1 day ago ago", "1-2 ago", "@ 1 year 2 mons -3 days 4 hours 5 mins 6 secs ago",
    "-1 day -04:05:06", "-1 04:05:06", "1-2 -3 4:05:06", "-1-2 3 -4:05:06", "1 year -2 months",
];

#[test]
fn interval_inputs() {
    for style in ["postgres", "postgres_verbose", "sql_standard", "iso_8601"] {
        let mut b = Batch::new(Settings::new(&[("intervalstyle", style)]));
        let mut r = Rng::new(79);
        let t = TypeCode::Interval;
        let typmods: Vec<i32> = (0..25).map(|_| typmod(t, &mut r)).chain([-1]).collect();
        for m in typmods {
            check_inputs(
                &mut b,
                t,
                INTERVAL_INPUTS.iter().map(|s| (s.to_string(), m)),
            );
        }
        check_inputs(&mut b, t, edges(t).iter().map(|s| (s.to_string(), -1)));
        #[rustfmt::skip]
        let parts = [
            "1", "-1", "+2", "1.5", "-.5", "1:30", "-1:30:15", "1:30:15.5", "1-2", "-1-2", "year",
            "mons", "days", "day", "hour", "min", "sec", "ms", "us", "week", "ago", "@", "decade",
            "century", "y", "m", "d", "h", "s", "w", "2147483647", "999999999999", "P1Y", "T", "x",
            "-", "+", "qtr", "at", "1.5e3", "12", "0",
        ];
        for _ in 0..count(4000) {
            let n = 1 + r.below(6);
            let s: String = (0..n)
                .map(|_| format!("{}{}", r.pick(&parts), r.pick(&[" ", " ", " ", ""])))
                .collect();
            let m = typmod(t, &mut r);
            check_inputs(&mut b, t, [(s, m)]);
            #[rustfmt::skip]
            let iso = [
                "1", "-1", "1.5", "12", "Y", "M", "D", "W", "T", "H", "S", "-", ":", "00010203",
                "040506", ".5", "e2",
            ];
            let n = 1 + r.below(9);
            let s: String = std::iter::once("P")
                .chain((0..n).map(|_| r.pick(&iso)))
                .collect();
            check_inputs(&mut b, t, [(s, -1)]);
            let input = random_input(t, &mut r);
            check_inputs(&mut b, t, [(input, m)]);
        }
        b.run(&format!("intervals, {style}"));
    }
    verdict();
}

#[test]
fn float_outputs() {
    for digits in ["-15", "-5", "0", "1", "3"] {
        let mut b = Batch::new(Settings::new(&[("extra_float_digits", digits)]));
        let mut r = Rng::new(80);
        for t in [TypeCode::Float4, TypeCode::Float8] {
            check_inputs(&mut b, t, FLOAT_EDGES.iter().map(|s| (s.to_string(), -1)));
            for _ in 0..count(3000) {
                let input = random_input(t, &mut r);
                check_inputs(&mut b, t, [(input, -1)]);
            }
            // Powers of two and of ten and their neighbours.
            for i in -330..330 {
                check_inputs(
                    &mut b,
                    t,
                    [(format!("1e{i}"), -1), (format!("{:e}", 2f64.powi(i)), -1)],
                );
                let up = f64::from_bits(2f64.powi(i).to_bits() + 1);
                let ten: f64 = format!("1e{i}").parse().unwrap();
                let down = f64::from_bits(ten.to_bits().saturating_sub(1));
                check_inputs(
                    &mut b,
                    t,
                    [(format!("{up:e}"), -1), (format!("{down:e}"), -1)],
                );
            }
        }
        b.run(&format!("float output, extra_float_digits {digits}"));
    }
    verdict();
}

/// A file of COPY with one row of one field, as octal escapes of printf.
fn copy_file(field: &[u8]) -> String {
    let mut file = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x01".to_vec();
    file.extend_from_slice(&(field.len() as u32).to_be_bytes());
    file.extend_from_slice(field);
    file.extend_from_slice(&[0xff, 0xff]);
    file.iter().fold(String::new(), |mut s, b| {
        let _ = write!(s, "\\{b:03o}");
        s
    })
}

/// Valid binary values, and ones with bytes changed, added or missing.
#[test]
fn binary_inputs() {
    let types = [
        (TypeCode::Bool, "bool", -1),
        (TypeCode::Int4, "int4", -1),
        (TypeCode::Float4, "float4", -1),
        (TypeCode::Numeric, "numeric", -1),
        (TypeCode::Numeric, "numeric(6,2)", (6 << 16 | 2) + 4),
        (TypeCode::Numeric, "numeric(6,-2)", (6 << 16 | 0x7fe) + 4),
        (TypeCode::Text, "text", -1),
        (TypeCode::Varchar, "varchar(3)", 7),
        (TypeCode::Bpchar, "bpchar(3)", 7),
        (TypeCode::Bytea, "bytea", -1),
        (TypeCode::Date, "date", -1),
        (TypeCode::Time, "time(2)", 2),
        (TypeCode::Timestamp, "timestamp", -1),
        (TypeCode::Timestamptz, "timestamptz(3)", 3),
        (TypeCode::Interval, "interval", -1),
        (
            TypeCode::Interval,
            "interval hour to minute",
            (1024 | 2048) << 16 | 0xffff,
        ),
        (TypeCode::Interval, "interval(1)", 0x7fff << 16 | 1),
        (TypeCode::Uuid, "uuid", -1),
    ];
    let mut b = Batch::new(default_settings());
    let mut r = Rng::new(92);
    for (t, name, typmod) in types {
        for i in 0..count(60) {
            let input = random_input(t, &mut r);
            let Ok(v) = parse_text(t, -1, input.as_bytes(), &b.env) else {
                continue;
            };
            let mut bytes = encode_binary(&v);
            bytes.truncate(400);
            for _ in 0..i % 3 {
                let at = r.below(bytes.len() + 1);
                let byte = [0, 1, 0x7f, 0x80, 0xff, 0x40, r.next() as u8][r.below(7)];
                match r.below(4) {
                    0 => bytes.insert(at, byte),
                    1 => bytes.truncate(at),
                    _ if at < bytes.len() => bytes[at] = byte,
                    _ => bytes.push(byte),
                }
            }
            let sql = format!(
                "pg_temp.recv({}, {})",
                quote(name),
                quote(&copy_file(&bytes))
            );
            b.value(sql, decode_binary(t, typmod, &bytes));
        }
    }
    b.run("binary input");
    verdict();
}
