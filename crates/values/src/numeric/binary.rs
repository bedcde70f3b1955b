//! Binary format of [`Numeric`]: groups of four decimal digits.

use super::*;
use crate::scan::Reader;

const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const POS_INF: u16 = 0xD000;
const NEG_INF: u16 = 0xF000;
/// What PostgreSQL happens to send as the scale of an infinity.
const INF_SCALE: u16 = 0x20;

fn invalid(what: &str) -> Error {
    Error::new(
        b"22P03",
        format!("invalid {what} in external \"numeric\" value"),
    )
}

impl Numeric {
    /// What PostgreSQL's receive function makes of `b`.
    pub(crate) fn from_binary(r: &mut Reader<'_>, typmod: i32) -> Result<Numeric> {
        let count = r.u16()?;
        let weight = r.u16()? as i16;
        let sign = r.u16()?;
        if !matches!(sign, 0 | NEGATIVE | NAN | POS_INF | NEG_INF) {
            return Err(invalid("sign"));
        }
        let scale = r.u16()?;
        if u32::from(scale) > MAX_SCALE {
            return Err(invalid("scale"));
        }
        let mut text = String::with_capacity(usize::from(count) * 4);
        for _ in 0..count {
            let group = r.u16()?;
            if group > 9999 {
                return Err(invalid("digit"));
            }
            text.push_str(&format!("{group:04}"));
        }
        match sign {
            NAN => return Numeric::NAN.with_typmod(typmod),
            POS_INF => return Numeric::INFINITY.with_typmod(typmod),
            NEG_INF => return Numeric::NEG_INFINITY.with_typmod(typmod),
            _ => {}
        }
        // The groups represent coefficient × 10^exponent; excess digits are truncated.
        let exponent = (i64::from(weight) + 1 - i64::from(count)) * 4;
        let shift = exponent + i64::from(scale);
        let magnitude = if shift >= 0 {
            let digits = text.trim_start_matches('0');
            match digits {
                "" => UBig::ZERO,
                _ if digits.len() as i64 + exponent > i64::from(MAX_INT_DIGITS) => {
                    return Err(overflow());
                }
                _ => {
                    let v = UBig::from_str_radix(digits, 10).map_err(|_| invalid("digit"))?;
                    v * big_pow10(shift as u32)
                }
            }
        } else {
            let keep = text.len() as i64 + shift;
            match usize::try_from(keep).ok().and_then(|keep| text.get(..keep)) {
                None | Some("") => UBig::ZERO,
                Some(kept) => UBig::from_str_radix(kept, 10).map_err(|_| invalid("digit"))?,
            }
        };
        let c = IBig::from(magnitude);
        let c = if sign == NEGATIVE { -c } else { c };
        Numeric::from_big(c, u32::from(scale))?.with_typmod(typmod)
    }

    /// Appends what PostgreSQL's send function returns.
    pub(crate) fn to_binary(&self, out: &mut Vec<u8>) {
        if let Repr::Small(s) = &self.0
            && small_to_binary(s, out)
        {
            return;
        }
        let (negative, magnitude, scale) = match &self.0 {
            Repr::NaN => return put_header(out, 0, 0, NAN, 0),
            Repr::PosInf => return put_header(out, 0, 0, POS_INF, INF_SCALE),
            Repr::NegInf => return put_header(out, 0, 0, NEG_INF, INF_SCALE),
            Repr::Small(s) => (s.coef() < 0, s.coef().unsigned_abs().to_string(), s.scale),
            Repr::Big(b) => (
                b.coef.sign() == Sign::Negative,
                magnitude(&b.coef).to_string(),
                b.scale,
            ),
        };
        if magnitude == "0" {
            return put_header(out, 0, 0, 0, scale);
        }
        // Pad so that the decimal point falls between groups.
        let after = usize::from(scale).div_ceil(4);
        let mut digits = magnitude;
        digits.extend(std::iter::repeat_n('0', after * 4 - usize::from(scale)));
        let lead = (4 - digits.len() % 4) % 4;
        let padded = "0000".get(..lead).unwrap_or_default().to_string() + &digits;
        let mut groups: Vec<u16> = padded
            .as_bytes()
            .chunks(4)
            .map(|c| c.iter().fold(0u16, |v, b| v * 10 + u16::from(b - b'0')))
            .collect();
        let weight = groups.len() as i64 - after as i64 - 1;
        let first = groups.iter().position(|&g| g != 0).unwrap_or(0);
        let weight = weight - first as i64;
        while groups.last() == Some(&0) {
            groups.pop();
        }
        let groups = groups.get(first..).unwrap_or_default();
        let sign = if negative { NEGATIVE } else { 0 };
        put_header(out, groups.len() as u16, weight as i16, sign, scale);
        for g in groups {
            out.extend_from_slice(&g.to_be_bytes());
        }
    }
}

/// A number whose groups fit 64 bits; false if they do not.
fn small_to_binary(s: &Small, out: &mut Vec<u8>) -> bool {
    let pad = (4 - s.scale % 4) % 4;
    let padded = pow10(u32::from(pad)).and_then(|p| s.coef().checked_mul(p));
    let Some(mut rest) = padded.and_then(|c| u64::try_from(c.unsigned_abs()).ok()) else {
        return false;
    };
    let after = i32::from(s.scale.div_ceil(4));
    // Groups from the right, without zeros at the end.
    let (mut groups, mut count, mut dropped) = ([0u16; 5], 0, 0);
    while rest != 0 {
        let group = (rest % 10_000) as u16;
        rest /= 10_000;
        if group == 0 && count == 0 {
            dropped += 1;
        } else {
            if let Some(place) = groups.get_mut(count) {
                *place = group;
            }
            count += 1;
        }
    }
    let weight = if count == 0 {
        0
    } else {
        count as i32 + dropped - after - 1
    };
    let sign = if s.coef() < 0 { NEGATIVE } else { 0 };
    out.reserve(8 + count * 2);
    put_header(out, count as u16, weight as i16, sign, s.scale);
    for group in groups.iter().take(count).rev() {
        out.extend_from_slice(&group.to_be_bytes());
    }
    true
}

fn put_header(out: &mut Vec<u8>, count: u16, weight: i16, sign: u16, scale: u16) {
    for word in [count, weight as u16, sign, scale] {
        out.extend_from_slice(&word.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(s: &str) -> Vec<u16> {
        let mut out = Vec::new();
        Numeric::parse(s.as_bytes(), -1)
            .unwrap()
            .to_binary(&mut out);
        out.chunks(2)
            .map(|w| u16::from_be_bytes([w[0], w[1]]))
            .collect()
    }

    /// The output of `numeric_send` in PostgreSQL 15: count, weight, sign, scale, groups.
    #[test]
    fn as_postgresql_sends() {
        assert_eq!(groups("0.00"), [0, 0, 0, 2]);
        assert_eq!(groups("12345.678"), [3, 1, 0, 3, 1, 2345, 6780]);
        assert_eq!(groups("-0.00012"), [2, 0xffff, 0x4000, 5, 1, 2000]);
        assert_eq!(groups("100000000"), [1, 2, 0, 0, 1]);
        assert_eq!(groups("1e40"), [1, 10, 0, 0, 1]);
        assert_eq!(groups("NaN"), [0, 0, 0xC000, 0]);
        assert_eq!(groups("-Infinity"), [0, 0, 0xF000, 0x20]);
    }

    /// Digits beyond the scale are cut, not rounded; bad parts have names.
    #[test]
    fn as_postgresql_receives() {
        let read = |words: &[u16]| {
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_be_bytes()).collect();
            Numeric::from_binary(&mut Reader(&bytes), -1).map(|v| v.to_text())
        };
        assert_eq!(read(&[2, 0, 0, 2, 1, 2999]).unwrap(), "1.29");
        assert_eq!(read(&[1, 0xffff, 0x4000, 6, 5]).unwrap(), "-0.000500");
        assert_eq!(read(&[2, 1, 0, 0, 0, 7]).unwrap(), "7");
        assert_eq!(read(&[1, 0, 1, 0, 1]).unwrap_err().sqlstate, *b"22P03");
        assert_eq!(read(&[1, 0, 0, 0x4000, 1]).unwrap_err().sqlstate, *b"22P03");
        assert_eq!(read(&[1, 0, 0, 0, 10_000]).unwrap_err().sqlstate, *b"22P03");
        assert_eq!(read(&[2, 0, 0, 0, 1]).unwrap_err().sqlstate, *b"08P01");
        assert_eq!(read(&[1, 32_767, 0, 0, 9999]).unwrap().len(), 131_072);
    }
}
