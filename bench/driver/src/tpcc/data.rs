//! The initial data of a warehouse (clause 4.3), as rows of COPY in text format.
use std::fmt::Write;

use crate::random::Random;

pub const ITEMS: i64 = 100_000;
pub const DISTRICTS: i64 = 10;
pub const CUSTOMERS: i64 = 3_000;
/// Orders below this are delivered.
const DELIVERED: i64 = 2_101;
const DATE: &str = "2026-01-01 00:00:00";

const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

/// A customer's last name (clause 4.3.2.3).
pub fn last_name(number: i64) -> String {
    [number / 100, number / 10 % 10, number % 10]
        .map(|digit| SYLLABLES[digit as usize % 10])
        .concat()
}

fn zip(random: &mut Random) -> String {
    random.digits(4) + "11111"
}

fn address(random: &mut Random) -> String {
    let streets = format!("{}\t{}", random.text(10, 20), random.text(10, 20));
    let (city, state, zip) = (random.text(10, 20), random.text(2, 2), zip(random));
    format!("{streets}\t{city}\t{state}\t{zip}")
}

fn data(random: &mut Random) -> String {
    let mut text = random.text(26, 50);
    if random.chance(10) {
        let at = random.between(0, text.len() as i64 - 8) as usize;
        text.replace_range(at..at + 8, "ORIGINAL");
    }
    text
}

/// Makes rows of one table, a piece at a time.
pub fn rows(table: &str, warehouses: i64, seed: u64) -> impl FnMut() -> Option<Vec<u8>> {
    let mut random = Random::new(seed);
    let per_warehouse = if table == "item" { 1 } else { warehouses };
    let steps = match table {
        "warehouse" => 1,
        "item" | "stock" => ITEMS / 1000,
        _ => DISTRICTS,
    };
    let table = table.to_owned();
    let mut next = 0;
    move || {
        if next == per_warehouse * steps {
            return None;
        }
        let (w, step) = (next / steps + 1, next % steps + 1);
        next += 1;
        let mut out = String::new();
        match table.as_str() {
            "warehouse" => warehouse(&mut out, w, &mut random),
            "district" => district(&mut out, w, step, &mut random),
            "customer" => customers(&mut out, w, step, &mut random),
            "history" => history(&mut out, w, step, &mut random),
            "new_order" => {
                for o in DELIVERED..=CUSTOMERS {
                    let _ = writeln!(out, "{o}\t{step}\t{w}");
                }
            }
            "orders" => {
                let customers = random.shuffled(CUSTOMERS);
                orders(&mut out, w, step, &customers);
            }
            "order_line" => order_lines(&mut out, w, step, &mut random),
            "item" => items(&mut out, step, &mut random),
            _ => stock(&mut out, w, step, &mut random),
        }
        Some(out.into_bytes())
    }
}

fn warehouse(out: &mut String, w: i64, random: &mut Random) {
    let (name, address) = (random.text(6, 10), address(random));
    let tax = random.between(0, 2000);
    let _ = writeln!(out, "{w}\t{name}\t{address}\t0.{tax:04}\t300000.00");
}

fn district(out: &mut String, w: i64, d: i64, random: &mut Random) {
    let (name, address) = (random.text(6, 10), address(random));
    let tax = random.between(0, 2000);
    let next = CUSTOMERS + 1;
    let _ = writeln!(
        out,
        "{d}\t{w}\t{name}\t{address}\t0.{tax:04}\t30000.00\t{next}"
    );
}

fn customers(out: &mut String, w: i64, d: i64, random: &mut Random) {
    for c in 1..=CUSTOMERS {
        let number = match c {
            ..=1000 => c - 1,
            _ => random.skewed(255, 0, 999),
        };
        let (first, last) = (random.text(8, 16), last_name(number));
        let (address, phone) = (address(random), random.digits(16));
        let credit = if random.chance(10) { "BC" } else { "GC" };
        let discount = random.between(0, 5000);
        let notes = random.text(300, 500);
        let _ = writeln!(
            out,
            "{c}\t{d}\t{w}\t{first}\tOE\t{last}\t{address}\t{phone}\t{DATE}\t{credit}\
             \t50000.00\t0.{discount:04}\t-10.00\t10.00\t1\t0\t{notes}"
        );
    }
}

fn history(out: &mut String, w: i64, d: i64, random: &mut Random) {
    for c in 1..=CUSTOMERS {
        let notes = random.text(12, 24);
        let _ = writeln!(out, "{c}\t{d}\t{w}\t{d}\t{w}\t{DATE}\t10.00\t{notes}");
    }
}

/// How many lines an order has: both tables must agree, so the order decides.
fn lines(w: i64, d: i64, o: i64) -> i64 {
    Random::new((w * 31 + d) as u64 * 10_007 + o as u64).between(5, 15)
}

fn orders(out: &mut String, w: i64, d: i64, customers: &[i64]) {
    for (o, c) in (1..).zip(customers) {
        let carrier = match o < DELIVERED {
            true => (o % 10 + 1).to_string(),
            false => "\\N".into(),
        };
        let count = lines(w, d, o);
        let _ = writeln!(out, "{o}\t{d}\t{w}\t{c}\t{DATE}\t{carrier}\t{count}\t1");
    }
}

fn order_lines(out: &mut String, w: i64, d: i64, random: &mut Random) {
    for o in 1..=CUSTOMERS {
        for number in 1..=lines(w, d, o) {
            let item = random.between(1, ITEMS);
            let cents = random.between(1, 999_999);
            let (delivered, amount) = match o < DELIVERED {
                true => (DATE, "0.00".to_owned()),
                false => ("\\N", format!("{}.{:02}", cents / 100, cents % 100)),
            };
            let info = random.text(24, 24);
            let _ = writeln!(
                out,
                "{o}\t{d}\t{w}\t{number}\t{item}\t{w}\t{delivered}\t5\t{amount}\t{info}"
            );
        }
    }
}

fn items(out: &mut String, step: i64, random: &mut Random) {
    for i in (step - 1) * 1000 + 1..=step * 1000 {
        let image = random.between(1, 10_000);
        let (name, cents) = (random.text(14, 24), random.between(100, 10_000));
        let (price, data) = (format!("{}.{:02}", cents / 100, cents % 100), data(random));
        let _ = writeln!(out, "{i}\t{image}\t{name}\t{price}\t{data}");
    }
}

fn stock(out: &mut String, w: i64, step: i64, random: &mut Random) {
    for i in (step - 1) * 1000 + 1..=step * 1000 {
        let _ = write!(out, "{i}\t{w}\t{}", random.between(10, 100));
        for _ in 0..DISTRICTS {
            let _ = write!(out, "\t{}", random.text(24, 24));
        }
        let _ = writeln!(out, "\t0\t0\t0\t{}", data(random));
    }
}
