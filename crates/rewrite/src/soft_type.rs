//! Types of the family `soft_` with their modifiers, as written in SQL.
//!
//! Invariant: the written form is parsed as the same modifier.

use contract::TypeCode;
use contract::soft::{
    Column, ENCODINGS_SHIFT, KEY_BITS, NAMES, ORD, ORDER_BYTES, ORDER_BYTES_MAX, ORDER_NAME,
    SHAPE_SHIFT, TYPES, shape, usual,
};

/// Prefixes of types of results that are computed of encodings.
pub(crate) const SOFT_RESULTS: [&str; 2] = ["soft_sum_", "soft_product_"];

/// Parses a type with its modifier: `soft_numeric(10,2,eq,key_17)`. `None` if it is not a type of
/// the family.
pub(crate) fn parse(written: &str) -> Option<(TypeCode, i32)> {
    let (name, words) = match written.split_once('(') {
        Some((name, words)) => (name, words.strip_suffix(')')?),
        None => (written, ""),
    };
    let code = TYPES
        .iter()
        .copied()
        .find(|code| code.soft_name() == name)?;
    if words.is_empty() {
        return Some((code, -1));
    }
    let (mut numbers, mut encodings, mut key, mut length) = (Vec::new(), 0, 0, 0);
    for word in words.split(',') {
        if let Ok(number) = word.parse::<u8>() {
            numbers.push(number);
        } else if let Some(bytes) = word.strip_prefix(ORDER_NAME) {
            encodings |= ORD;
            length = bytes
                .parse()
                .ok()
                .filter(|n| (1..=ORDER_BYTES_MAX).contains(n))?;
        } else if let Some(number) = word.strip_prefix("key_") {
            key = number.parse().ok().filter(|n| *n < 1 << KEY_BITS)?;
        } else {
            encodings |= NAMES.iter().find(|(name, _)| *name == word)?.1;
        }
    }
    let shape = match numbers.as_slice() {
        [] => length,
        [precision] => shape(*precision, 0)?,
        [precision, scale] => shape(*precision, *scale)?,
        _ => return None,
    };
    let bits = u32::from(encodings) << ENCODINGS_SHIFT | u32::from(shape) << SHAPE_SHIFT | key;
    Some((code, bits.cast_signed()))
}

/// A type as it is named in a statement, with what a column of it has if the name says no encodings.
pub(crate) fn named(code: TypeCode, words: &[String]) -> Option<(TypeCode, i32)> {
    let (code, modifier) = parse(&format!("{}({})", code.soft_name(), words.join(",")))?;
    let mut bits = modifier.cast_unsigned();
    if modifier >= 0 && bits >> ENCODINGS_SHIFT == 0 {
        bits |= u32::from(usual(code)) << ENCODINGS_SHIFT;
    }
    let ordered = bits >> ENCODINGS_SHIFT & u32::from(ORD) != 0;
    if code == TypeCode::Text && ordered && bits >> SHAPE_SHIFT & 0xff == 0 {
        bits |= u32::from(ORDER_BYTES) << SHAPE_SHIFT;
    }
    Some((code, bits.cast_signed()))
}

/// The SQL form of a type with its modifier.
pub(crate) fn written(code: TypeCode, modifier: i32) -> String {
    let name = code.soft_name();
    let Some(column) = Column::of(code, modifier) else {
        return name.to_owned();
    };
    let numbers = column
        .precision_and_scale()
        .map(|(p, s)| format!("{p},{s}"));
    let has = |(_, encoding): &&(&str, u8)| column.encodings & encoding != 0;
    let bytes = column.shape;
    let names = NAMES.iter().filter(has).map(|(name, encoding)| match code {
        TypeCode::Text if *encoding == ORD => format!("{ORDER_NAME}{bytes}"),
        _ => (*name).to_owned(),
    });
    let key = format!("key_{}", column.key);
    let words: Vec<String> = numbers.into_iter().chain(names).chain([key]).collect();
    format!("{name}({})", words.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for code in TYPES {
            for encodings in 1..16_u32 {
                let shape = match code {
                    TypeCode::Numeric => shape(10, 2).unwrap_or(0),
                    TypeCode::Text if encodings & u32::from(ORD) != 0 => 12,
                    _ => 0,
                };
                let bits = encodings << ENCODINGS_SHIFT | u32::from(shape) << SHAPE_SHIFT | 17;
                let modifier = bits.cast_signed();
                assert_eq!(parse(&written(code, modifier)), Some((code, modifier)));
            }
            assert_eq!(parse(code.soft_name()), Some((code, -1)));
        }
        for (precision, scale) in (1..=18).flat_map(|p| (0..=p).map(move |s| (p, s))) {
            let name = format!("soft_numeric({precision},{scale},eq,key_17)");
            let (code, modifier) = parse(&name).expect(&name);
            assert_eq!(written(code, modifier), name);
        }
        assert_eq!(
            written(TypeCode::Int4, (5 << ENCODINGS_SHIFT) | 17),
            "soft_int4(eq,add,key_17)"
        );
        for wrong in [
            "enc_int4",
            "soft_int4(",
            "soft_int4(eq,div)",
            "soft_int4(key_524288)",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
