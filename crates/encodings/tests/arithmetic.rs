//! Sums and products of cells open to what the values give, and cells hide them.

use encodings::additive::{Additive, Sum};
use encodings::multiplicative::{self, Mask, Multiplicative};
use encodings::{ColumnKeys, Error};
use proptest::prelude::*;

type Done = Result<(), Box<dyn std::error::Error>>;

fn keys() -> ColumnKeys {
    ColumnKeys::new(&[7; 32], ["public", "emp", "pay"], 0)
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

    /// Products of factors of two columns, with signs and zeros, in any order.
    #[test]
    fn products(
        factors in proptest::collection::vec((-4000..4000_i64, any::<u64>(), any::<bool>()), 1..10)
    ) {
        let other = ColumnKeys::numbered(&[7; 32], 17, 3, 0);
        let keys = [Multiplicative::new(&keys())?, Multiplicative::new(&other)?];
        let (mut product, mut masks, mut expected) = (1, Vec::new(), 1);
        for (value, identifier, which) in &factors {
            let key = &keys[usize::from(*which)];
            product = multiplicative::times(key.seal(*identifier, *value), product)?;
            masks.push(key.mask(*identifier));
            expected *= i128::from(*value);
        }
        let bits = 12 * masks.len() as u16;
        prop_assert_eq!(multiplicative::open(product, &masks, bits)?, expected);
        masks.pop();
        let fewer = multiplicative::open(product, &masks, bits);
        prop_assert!(expected == 0 || fewer != Ok(expected));
    }

    /// Any bytes are an error or a cell, never a panic.
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(sum) = Sum::from_bytes(&bytes) {
            prop_assert_eq!(sum.to_bytes(), bytes.clone());
            let _ = Additive::new(&keys())?.open(&sum);
            let _ = sum.plus(&sum).and_then(|twice| twice.times(i64::MIN));
        }
        if let Some((bytes, rest)) = bytes.split_first_chunk::<16>() {
            let product = u128::from_le_bytes(*bytes);
            let bits = rest.first().copied().unwrap_or(0).into();
            let masks: Vec<Mask> = rest
                .iter()
                .map(|byte| Ok(Multiplicative::new(&keys())?.mask((*byte).into())))
                .collect::<Result<_, Error>>()?;
            let opened = multiplicative::open(product, &masks, bits);
            prop_assert!(opened.is_err() || product <= i128::MAX.cast_unsigned() && bits <= 126);
            prop_assert_eq!(multiplicative::times(product, product).is_ok(), product < (1 << 127) - 1);
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
    Ok(())
}

/// What would not be exact is refused, not rounded.
#[test]
fn limits() -> Done {
    let key = Multiplicative::new(&keys())?;
    let least = key.seal(1, i64::MIN);
    let open = |product, identifiers: &[u64], bits| {
        let masks: Vec<Mask> = identifiers.iter().map(|i| key.mask(*i)).collect();
        multiplicative::open(product, &masks, bits)
    };
    assert_eq!(open(least, &[1], 63), Ok(i64::MIN.into()));
    assert_eq!(open(least, &[1], 62), Err(Error::Range));
    assert_eq!(open(key.seal(0, 8), &[0], 3), Ok(8));
    assert_eq!(open(key.seal(2, 9), &[2], 3), Err(Error::Range));
    let largest = key.seal(3, i64::MAX);
    let square = multiplicative::times(largest, largest)?;
    assert_eq!(open(square, &[3, 3], 126), Ok(i128::from(i64::MAX).pow(2)));
    assert_eq!(open(square, &[3, 3], 127), Err(Error::Range));
    let both = multiplicative::times(largest, least)?;
    let expected = i128::from(i64::MAX) * i128::from(i64::MIN);
    assert_eq!(open(both, &[3, 1], 126), Ok(expected));
    // The only product that is none of the field's signed numbers: it is none of an int8 either way.
    let square = multiplicative::times(least, least)?;
    assert_eq!(open(square, &[1, 1], 126), Ok(1 - (1 << 126)));
    assert_eq!(key.seal(2, 0), 0);
    assert_eq!(open(0, &[2], 8), Ok(0));
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
            multiply.seal(identifier, 5).to_le_bytes().to_vec(),
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
    let cell = Multiplicative::new(&keys())?.seal(3, 5200);
    let mask = Multiplicative::new(&other)?.mask(3);
    assert_eq!(multiplicative::open(cell, &[mask], 13), Err(Error::Range));
    Ok(())
}

/// Half of the cells are squares in the field, whether the value is one or not. With masks of a part
/// of the field only, as powers of a number are, each cell would tell it of its value.
#[test]
fn cells_hide_squares() -> Done {
    const P: u128 = (1 << 127) - 1;
    let square = |cell: u128| -> Result<bool, Error> {
        let (mut power, mut rest, mut base) = (1, P / 2, cell);
        while rest > 0 {
            if rest & 1 == 1 {
                power = multiplicative::times(power, base)?;
            }
            base = multiplicative::times(base, base)?;
            rest >>= 1;
        }
        Ok(power == 1)
    };
    // 2 is a square modulo 2^127 - 1, 3 and -1 are not.
    assert_eq!(
        (square(2)?, square(3)?, square(P - 1)?),
        (true, false, false)
    );
    let key = Multiplicative::new(&keys())?;
    for value in [1, 2, 3, -1, 5200] {
        let mut squares = 0;
        for identifier in 0..1000 {
            squares += u32::from(square(key.seal(identifier, value))?);
        }
        assert!(
            (405..=595).contains(&squares),
            "{squares} of 1000 of {value}"
        );
    }
    Ok(())
}

/// Cells of one value spread evenly over the field, and so do those of another: 64 parts of it, and
/// the chi-squared statistic with 63 degrees of freedom (mean 63, standard deviation 11).
#[test]
fn cells_spread_evenly() -> Done {
    let key = Multiplicative::new(&keys())?;
    for value in [1, -1, 2, i64::MIN] {
        let mut parts = [0_i32; 64];
        for identifier in 0..6400 {
            parts[(key.seal(identifier, value) >> 121) as usize] += 1;
        }
        let statistic = parts.iter().map(|n| (n - 100).pow(2)).sum::<i32>() / 100;
        assert!((25..=130).contains(&statistic), "{statistic} for {value}");
    }
    Ok(())
}

/// Computed by another program (HKDF-SHA-256 and AES-128 of Python's and OpenSSL's).
#[test]
fn test_vectors() -> Done {
    let key = Multiplicative::new(&ColumnKeys::numbered(&[7; 32], 17, 3, 0))?;
    for (identifier, value, cell) in [
        (0, 1, 0x5d8aea4d48d7020f7d860ec01f68512b),
        (1, 1, 0x3ab86c05215f24d40232c9a68231ec1f),
        (2, -1, 0x7bfcbacb3a4f114a74bd7c5eee80a10b),
        (12345678901, 5200, 0x30c28b08ca07cab39c656bf4b7a08e29),
        (
            9223372036854775813,
            i64::MIN,
            0x666f0fc23e6e0c532a84eb536aa61943,
        ),
        (
            18446744073709551615,
            9223372036854775807,
            0x687f3027149bc90ca819ed0f07f82cb4,
        ),
        (9, 0, 0x00000000000000000000000000000000),
    ] {
        assert_eq!(key.seal(identifier, value), cell);
    }
    Ok(())
}
