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
        // The groups say coefficient × 10^exponent; excess digits are cut off.
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

    /// What PostgreSQL's send function gives.
    pub(crate) fn to_binary(&self, out: &mut Vec<u8>) {
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

fn put_header(out: &mut Vec<u8>, count: u16, weight: i16, sign: u16, scale: u16) {
    for word in [count, weight as u16, sign, scale] {
        out.extend_from_slice(&word.to_be_bytes());
    }
}
