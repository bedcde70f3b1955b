//! What encoding, comparing, adding and opening cost, in nanoseconds, and how long cells are:
//! `cargo run --release -p encodings --example costs`. The least of several rounds.

use encodings::additive::{Additive, Sum};
use encodings::det::Det;
use encodings::multiplicative::{self, Multiplicative};
use encodings::ore::{self, Ore, digits};
use encodings::{ColumnKeys, Error};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 7;
const CALLS: u64 = 2000;

fn main() -> Result<(), Error> {
    let keys = ColumnKeys::new(&[7; 32], ["public", "emp", "pay"], 0);
    let det = Det::new(&keys)?;
    show("equality of 8 bytes: seal", || det.seal(1, b"12345678"))?;
    let ore = Ore::new(&keys)?;
    let value = digits::signed(5200_i32.to_be_bytes());
    let (left, right) = (ore.left(&value)?, ore.right(&value, [1; 16])?);
    println!("order of 32 bits: {} bytes", left.len() + right.len());
    show("order of 32 bits: encode", || {
        Ok((ore.left(&value)?, ore.right(&value, [1; 16])?))
    })?;
    show("order of 32 bits: compare equal ones by all digits", || {
        ore::compare(&left, &right)
    })?;
    let last = ore.left(&digits::signed(5201_i32.to_be_bytes()))?;
    show(
        "order of 32 bits: compare cells that differ in the last digit",
        || ore::compare_cells(&last, &left, &right),
    )?;
    let add = Additive::new(&keys)?;
    let cells: Vec<Sum> = (1..=CALLS)
        .map(|i| add.seal(i, 5))
        .collect::<Result<_, _>>()?;
    println!(
        "addition: {} bytes",
        cells.first().map_or(0, |c| c.to_bytes().len())
    );
    show("addition: seal", || add.seal(9, 5))?;
    let mut sum = Sum::default();
    let mut next = cells.iter().cycle();
    show("addition: add consecutive rows", || {
        sum = match next.next() {
            Some(cell) if sum.masks() < 4 => sum.plus(cell)?,
            _ => Sum::default(),
        };
        Ok(())
    })?;
    let multiply = Multiplicative::new(&keys)?;
    let cell = multiply.seal(9, 5200);
    println!("multiplication: {} bytes", size_of_val(&cell));
    show("multiplication: seal", || Ok(multiply.seal(9, 5200)))?;
    show("multiplication: multiply", || {
        multiplicative::times(cell, cell)
    })?;
    show("multiplication: open", || {
        multiplicative::open(cell, &[multiply.mask(9)], 31)
    })
}

fn show<T>(what: &str, mut call: impl FnMut() -> Result<T, Error>) -> Result<(), Error> {
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..CALLS {
            black_box(call()?);
        }
        least = least.min(start.elapsed().as_nanos() as f64 / CALLS as f64);
    }
    println!("{what}: {least:.0} ns");
    Ok(())
}
