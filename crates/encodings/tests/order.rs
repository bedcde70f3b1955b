//! Order: all types compare as their values do, and cells tell no more than they may.

use encodings::ore::{self, Ore, digits};
use encodings::{ColumnKeys, Error};
use proptest::prelude::*;
use std::cmp::Ordering;

type Done = Result<(), Box<dyn std::error::Error>>;

fn ore() -> Result<Ore, Error> {
    Ore::new(&ColumnKeys::new(&[7; 32], ["public", "emp", "pay"], 0))
}

fn compare(a: &[u8], b: &[u8], nonce: [u8; 16]) -> Result<Ordering, Error> {
    let ore = ore()?;
    let (left, right) = (ore.left(a)?, ore.right(b, nonce)?);
    let order = ore::compare(&left, &right)?;
    // With both halves of both the same order, by one entry.
    assert_eq!(ore::compare_cells(&left, &ore.left(b)?, &right)?, order);
    Ok(order)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Integers of each width; with a wrong sign bit negative ones would come last.
    #[test]
    fn integers(a: i32, b: i32, c: i64, near in -2..3_i64, nonce: [u8; 16]) {
        let digits = [a, b].map(|v| digits::signed(v.to_be_bytes()));
        prop_assert_eq!(compare(&digits[0], &digits[1], nonce)?, a.cmp(&b));
        let other = c.saturating_add(near);
        let digits = [c, other].map(|v| digits::signed(v.to_be_bytes()));
        prop_assert_eq!(compare(&digits[0], &digits[1], nonce)?, c.cmp(&other));
    }

    /// Texts by their first bytes; what agrees so far is equal.
    #[test]
    fn texts(a in "[a-c]{0,9}", b in "[a-c]{0,9}", nonce: [u8; 16]) {
        let cut = |text: &str| text.as_bytes().iter().copied().take(4).collect::<Vec<_>>();
        let [x, y] = [&a, &b].map(|text| digits::text(text.as_bytes(), 4));
        prop_assert_eq!(compare(&x, &y, nonce)?, cut(&a).cmp(&cut(&b)));
    }

    /// Any bytes are an error or an order, never a panic.
    #[test]
    fn any_bytes(
        left in proptest::collection::vec(any::<u8>(), 0..80),
        right in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let _ = ore::compare(&left, &right);
        let _ = ore::compare_cells(&left, &left, &right);
    }
}

/// Cells of different types are an error, as is what is no cell.
#[test]
fn other_types() -> Done {
    let [short, long] = [&[1, 2][..], &[1, 2, 3]];
    assert_eq!(compare(short, long, [0; 16]), Err(Error::OtherType));
    assert_eq!(ore()?.left(&[16]), Err(Error::Range));
    assert_eq!(ore()?.right(&[16], [0; 16]), Err(Error::Range));
    assert_eq!(ore::compare(&[0; 16], &[0; 20]), Err(Error::Malformed));
    assert_eq!(ore::compare(&[0; 17], &[0; 21]), Err(Error::Malformed));
    assert_eq!(ore::compare(&[255; 17], &[0; 20]), Err(Error::Malformed));
    Ok(())
}

/// Right halves hide their value: over many nonces, each entry of each digit is 0, 1 and 2
/// as often, whatever the value. Were the orders not hidden, a digit of 0 would show
/// sixteen times the same.
#[test]
fn right_halves_are_even() -> Done {
    let ore = ore()?;
    let rounds = 600_u32;
    for value in [0_u32, 1, 0xffff_ffff] {
        let digits = digits::signed(value.to_be_bytes());
        let mut counts = vec![[0_u32; 3]; digits.len() * 16];
        for round in 0..rounds {
            let mut nonce = [0; 16];
            nonce[..4].copy_from_slice(&round.to_le_bytes());
            let right = ore.right(&digits, nonce)?;
            for (at, bytes) in right[16..].chunks(4).enumerate() {
                let entries = u32::from_le_bytes(bytes.try_into()?);
                for place in 0..16 {
                    counts[at * 16 + place][(entries >> (2 * place)) as usize & 3] += 1;
                }
            }
        }
        // 200 expected, a standard deviation of 11.5: six of them.
        for count in counts.iter().flatten() {
            assert!((131..=269).contains(count), "{count} of {rounds}");
        }
    }
    Ok(())
}

/// A left half opens one entry of each digit only up to the first difference: with its key
/// in a later digit it gives orders that are right by chance only.
#[test]
fn nothing_behind_the_first_difference() -> Done {
    let ore = ore()?;
    let (a, mut agree) = (ore.left(&[3, 5])?, 0);
    let rounds = 300_u32;
    for round in 0..rounds {
        let mut nonce = [0; 16];
        nonce[..4].copy_from_slice(&round.to_le_bytes());
        let right = ore.right(&[4, 5], nonce)?;
        assert_eq!(ore::compare(&a, &right)?, Ordering::Less);
        // The second digit alone: both have a 5 there.
        let second = [&right[..16], &right[20..]].concat();
        agree += u32::from(ore::compare(&a[17..], &second)?.is_eq());
    }
    assert!((60..=140).contains(&agree), "{agree} of {rounds}");
    Ok(())
}

/// Keys of other columns and epochs compare nothing.
#[test]
fn other_keys() -> Done {
    let digits = digits::signed(5200_i32.to_be_bytes());
    let left = ore()?.left(&digits)?;
    for (name, epoch) in [("bonus", 0), ("pay", 1)] {
        let keys = ColumnKeys::new(&[7; 32], ["public", "emp", name], epoch);
        let other = Ore::new(&keys)?;
        assert_ne!(other.left(&digits)?, left);
        let rights = (0..40).map(|n| other.right(&digits, [n; 16]));
        let orders = rights.map(|right| ore::compare(&left, &right?));
        let orders = orders.collect::<Result<Vec<_>, _>>()?;
        assert!(orders.iter().any(|order| order.is_ne()));
    }
    Ok(())
}

/// The bytes of a cell, which columns on disk have; a change needs another version.
#[test]
fn golden() -> Done {
    let sum = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0_u64, |h, b| h.wrapping_mul(31) + u64::from(*b))
    };
    let digits = digits::signed((-5_i32).to_be_bytes());
    let (left, right) = (ore()?.left(&digits)?, ore()?.right(&digits, [1; 16])?);
    assert_eq!((left.len(), right.len()), (136, 48));
    assert_eq!((sum(&left), sum(&right)), (GOLDEN_LEFT, GOLDEN_RIGHT));
    Ok(())
}

const GOLDEN_LEFT: u64 = 13_207_726_511_773_299_370;
const GOLDEN_RIGHT: u64 = 5_899_599_830_970_498_292;
