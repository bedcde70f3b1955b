//! Integers modulo the prime 2^127 - 1, always below it.

/// The prime.
pub(crate) const P: u128 = (1 << 127) - 1;

/// `value` modulo the prime.
pub(crate) fn reduce(value: u128) -> u128 {
    let folded = (value & P) + (value >> 127);
    if folded >= P { folded - P } else { folded }
}

/// The product.
pub(crate) fn mul(a: u128, b: u128) -> u128 {
    const LOW: u128 = u64::MAX as u128;
    let (a1, a0) = (a >> 64, a & LOW);
    let (b1, b0) = (b >> 64, b & LOW);
    // Schoolbook: high * 2^128 + low. The factors are below 2^127, so nothing overflows.
    let middle = a1 * b0 + ((a0 * b0) >> 64);
    let (carry, middle) = (middle >> 64, (middle & LOW) + a0 * b1);
    let high = a1 * b1 + carry + (middle >> 64);
    let low = (middle << 64) | ((a0 * b0) & LOW);
    // 2^128 is 2 modulo the prime.
    let doubled = reduce(reduce(high) << 1);
    reduce(doubled + reduce(low))
}

/// The power.
pub(crate) fn pow(base: u128, mut exponent: u128) -> u128 {
    let (mut square, mut product) = (base, 1);
    while exponent > 0 {
        if exponent & 1 == 1 {
            product = mul(product, square);
        }
        square = mul(square, square);
        exponent >>= 1;
    }
    product
}

/// The inverse; 0 for 0.
pub(crate) fn inverse(value: u128) -> u128 {
    pow(value, P - 2)
}

/// The number of the field that stands for a signed one of less than 126 bits.
pub(crate) fn from_signed(value: i128) -> u128 {
    let size = value.unsigned_abs();
    if value < 0 && size > 0 {
        P - size
    } else {
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Products as repeated doubling gives them, over numbers with carries everywhere.
    #[test]
    fn products() {
        let numbers = [
            0,
            1,
            2,
            P - 1,
            P - 2,
            P / 2,
            u64::MAX.into(),
            1 << 126,
            P >> 3,
            0xdead_beef << 90,
        ];
        for a in numbers {
            for b in numbers {
                let (mut sum, mut double, mut rest) = (0, a, b);
                while rest > 0 {
                    if rest & 1 == 1 {
                        sum = reduce(sum + double);
                    }
                    double = reduce(double << 1);
                    rest >>= 1;
                }
                assert_eq!(mul(a, b), sum, "{a} {b}");
            }
            if a != 0 {
                assert_eq!(mul(a, inverse(a)), 1);
            }
        }
    }
}
