//! Sums and products of cells open to what the values give, and cells hide them.

use encodings::additive::{Additive, Sum};
use encodings::multiplicative::{Multiplicative, Product, Ratio};
use encodings::{ColumnKeys, Error};
use proptest::prelude::*;

type Done = Result<(), Box<dyn std::error::Error>>;

fn keys() -> ColumnKeys {
    ColumnKeys::new(&[7; 32], ["public", "emp", "pay"], 0)
}

fn whole(numerator: i128) -> Ratio {
    Ratio {
        numerator,
        denominator: 1,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any sum, difference and multiple of values under any identifiers, stored between.
    #[test]
    fn sums(terms in proptest::collection::vec((any::<i64>(), 1..50_u64, -3..4_i64), 1..40)) {
        let key = Additive::new(&keys())?;
        let (mut sum, mut expected) = (Sum::default(), 0_i128);
        for (number, (value, step, times)) in terms.iter().enumerate() {
            let identifier = 50 * number as u64 + step;
            let cell = key.seal(identifier, *value)?;
            sum = sum.plus(&cell.times(*times)?)?.minus(&cell)?;
            expected += i128::from(*value) * i128::from(times - 1);
            sum = Sum::from_bytes(&sum.to_bytes())?;
        }
        prop_assert_eq!(key.open(&sum), expected);
    }

    /// Products and quotients of three values, with signs, in lowest terms.
    #[test]
    fn products(a in -4000..4000_i64, b in -4000..4000_i64, c in 1..4000_i64, minus: bool) {
        let key = Multiplicative::new(&keys())?;
        let c = if minus { -c } else { c };
        let cell = |identifier, value| key.seal(identifier, value, 12);
        let product = cell(9, a)?.times(&cell(4, b)?)?;
        prop_assert_eq!(key.open(&product)?, whole(i128::from(a * b)));
        let quotient = Product::from_bytes(&product.over(&cell(5, c)?)?.to_bytes())?;
        let Ratio { numerator, denominator } = key.open(&quotient)?;
        let denominator = i128::try_from(denominator)?;
        prop_assert_eq!(numerator * i128::from(c), i128::from(a * b) * denominator);
        prop_assert!(denominator <= i128::from(c.unsigned_abs()));
    }

    /// Any bytes are an error or a cell, never a panic.
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(sum) = Sum::from_bytes(&bytes) {
            prop_assert_eq!(sum.to_bytes(), bytes.clone());
            let _ = Additive::new(&keys())?.open(&sum);
            let _ = sum.plus(&sum).and_then(|twice| twice.times(i64::MIN));
        }
        if let Ok(product) = Product::from_bytes(&bytes) {
            prop_assert_eq!(product.to_bytes(), bytes);
            let _ = Multiplicative::new(&keys())?.open(&product);
            let _ = product.times(&product).and_then(|square| square.over(&product));
        }
    }
}

/// A sum over consecutive rows takes two masks however many they are, in whatever order
/// they come, also where several processes add parts.
#[test]
fn consecutive_rows_collapse() -> Done {
    let key = Additive::new(&keys())?;
    let mut parts = [Sum::default(), Sum::default()];
    for identifier in (1..=5000).rev() {
        let part = &mut parts[identifier as usize % 2];
        *part = part.plus(&key.seal(identifier, 3)?)?;
    }
    let sum = parts[0].plus(&parts[1])?;
    assert_eq!((sum.masks(), key.open(&sum)), (2, 15_000));
    let product = Multiplicative::new(&keys())?;
    let mut all = product.seal(1, 2, 2)?;
    for identifier in 2..=60 {
        all = all.times(&product.seal(identifier, 2, 2)?)?;
    }
    assert_eq!(product.open(&all)?, whole(1 << 60));
    // Value, bits, two masks.
    assert_eq!(all.to_bytes().len(), 20 + 2 * 16);
    Ok(())
}

/// What would not be exact is refused, not rounded.
#[test]
fn limits() -> Done {
    let key = Multiplicative::new(&keys())?;
    assert_eq!(key.seal(1, 8, 3).err(), Some(Error::Range));
    assert_eq!(key.seal(1, i64::MIN, 63).err(), Some(Error::Range));
    assert_eq!(key.seal(0, 1, 8).err(), Some(Error::Range));
    let large = key.seal(1, i64::MIN, 64)?;
    assert_eq!(key.open(&large)?, whole(i128::from(i64::MIN)));
    assert_eq!(large.times(&large).err(), Some(Error::Range));
    let zero = key.seal(2, 0, 8)?;
    assert_eq!(key.open(&zero)?, whole(0));
    assert_eq!(large.over(&zero).err(), Some(Error::DivisionByZero));
    let add = Additive::new(&keys())?;
    assert_eq!(add.seal(0, 1).err(), Some(Error::Range));
    let many = add.seal(1, 1)?.times(i64::MAX)?;
    assert_eq!(many.plus(&many).err(), Some(Error::Range));
    Ok(())
}

/// Cells of one value under many identifiers have all bits as often as not; with a mask
/// that is short or used twice some bit would stand still.
#[test]
fn cells_look_random() -> Done {
    let (add, multiply) = (Additive::new(&keys())?, Multiplicative::new(&keys())?);
    let mut ones = [[0_u32; 128]; 2];
    for identifier in 1..=1000 {
        let cells = [
            add.seal(identifier, 5)?.to_bytes(),
            multiply.seal(identifier, 5, 3)?.to_bytes(),
        ];
        for (ones, cell) in ones.iter_mut().zip(cells) {
            for (bit, count) in ones.iter_mut().enumerate() {
                *count += u32::from(cell[bit / 8] >> (bit % 8) & 1);
            }
        }
    }
    // 500 expected, a standard deviation of 15.8: six of them. The field has 127 bits.
    for count in ones[0].iter().chain(&ones[1][..127]) {
        assert!((405..=595).contains(count), "{count} of 1000");
    }
    Ok(())
}

/// A key of another column opens nothing that makes sense.
#[test]
fn other_keys() -> Done {
    let other = ColumnKeys::new(&[7; 32], ["public", "emp", "bonus"], 0);
    let cell = Additive::new(&keys())?.seal(3, 5200)?;
    assert_ne!(Additive::new(&other)?.open(&cell), 5200);
    let cell = Multiplicative::new(&keys())?.seal(3, 5200, 13)?;
    assert_eq!(
        Multiplicative::new(&other)?.open(&cell).err(),
        Some(Error::Range)
    );
    Ok(())
}
