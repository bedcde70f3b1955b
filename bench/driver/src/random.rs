//! Random numbers that a seed decides: what TPC-C and sysbench ask for.

/// A generator (xorshift64*); fast, and good enough for a load.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() >> 11) as i64 % (high - low + 1)
    }

    /// From 0 to 1.
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True in this share of calls.
    pub fn chance(&mut self, percent: i64) -> bool {
        self.between(1, 100) <= percent
    }

    /// TPC-C's non-uniform numbers (clause 2.1.6), with a constant of ours.
    pub fn skewed(&mut self, a: i64, low: i64, high: i64) -> i64 {
        let constant = 123 % (a + 1);
        let mixed = self.between(0, a) | self.between(low, high);
        (mixed + constant) % (high - low + 1) + low
    }

    /// Letters and digits.
    pub fn text(&mut self, low: i64, high: i64) -> String {
        const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        let length = self.between(low, high);
        (0..length)
            .map(|_| char::from(LETTERS[self.next() as usize % LETTERS.len()]))
            .collect()
    }

    /// Digits.
    pub fn digits(&mut self, length: i64) -> String {
        (0..length)
            .map(|_| char::from(b'0' + (self.next() % 10) as u8))
            .collect()
    }

    /// Numbers in a random order.
    pub fn shuffled(&mut self, count: i64) -> Vec<i64> {
        let mut all: Vec<i64> = (1..=count).collect();
        for i in (1..all.len()).rev() {
            all.swap(i, self.next() as usize % (i + 1));
        }
        all
    }
}

/// Ranks by Zipf's law over `1..=count`, scattered over the numbers so that hot ones are
/// not neighbours (as sysbench does).
pub struct Zipf {
    count: i64,
    exponent: f64,
    whole: f64,
}

impl Zipf {
    pub fn new(count: i64, exponent: f64) -> Zipf {
        let whole = integral(count as f64 + 0.5, exponent);
        Zipf {
            count,
            exponent,
            whole,
        }
    }

    pub fn next(&self, random: &mut Random) -> i64 {
        // The inverse of the integral is close enough to the sum's.
        let least = integral(0.5, self.exponent);
        let at = least + random.fraction() * (self.whole - least);
        let power = 1.0 - self.exponent;
        let rank = (at * power).powf(1.0 / power).round() as i64;
        let rank = rank.clamp(1, self.count) as u64;
        (rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16) as i64 % self.count + 1
    }
}

fn integral(x: f64, exponent: f64) -> f64 {
    x.powf(1.0 - exponent) / (1.0 - exponent)
}
