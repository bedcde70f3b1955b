//! Sums over pairs of floats, for correlation, covariance and regression: PostgreSQL's steps in
//! PostgreSQL's order, so that the last digit is the same.

use crate::{Result, float};
use contract::Aggregate;

/// What was seen of pairs (y, x). A pair comes in two halves, y first.
#[derive(Clone, Default)]
pub(crate) struct Pairs {
    half: Option<f64>,
    n: f64,
    sx: f64,
    sxx: f64,
    sy: f64,
    syy: f64,
    sxy: f64,
}

impl Pairs {
    /// Takes half a pair.
    pub fn take(&mut self, v: f64) -> Result<()> {
        match self.half.take() {
            None => {
                self.half = Some(v);
                Ok(())
            }
            Some(y) => self.step(y, v),
        }
    }

    fn step(&mut self, y: f64, x: f64) -> Result<()> {
        let before = self.n;
        let (sx, sy) = (self.sx, self.sy);
        self.n += 1.0;
        self.sx += x;
        self.sy += y;
        if before == 0.0 {
            if !x.is_finite() {
                (self.sxx, self.sxy) = (f64::NAN, f64::NAN);
            }
            if !y.is_finite() {
                (self.syy, self.sxy) = (f64::NAN, f64::NAN);
            }
            return Ok(());
        }
        let dx = x * self.n - self.sx;
        let dy = y * self.n - self.sy;
        let scale = 1.0 / (self.n * before);
        self.sxx += dx * dx * scale;
        self.syy += dy * dy * scale;
        self.sxy += dx * dy * scale;
        let odd_x = !sx.is_infinite() && !x.is_infinite();
        let odd_y = !sy.is_infinite() && !y.is_infinite();
        if (self.sx.is_infinite() || self.sxx.is_infinite()) && odd_x
            || (self.sy.is_infinite() || self.syy.is_infinite()) && odd_y
            || self.sxy.is_infinite() && odd_x && odd_y
        {
            return Err(float::overflow());
        }
        for sum in [&mut self.sxx, &mut self.syy, &mut self.sxy] {
            if sum.is_infinite() {
                *sum = f64::NAN;
            }
        }
        Ok(())
    }

    /// The result; `None` is NULL.
    pub fn result(&self, agg: Aggregate) -> Option<f64> {
        let Pairs {
            n,
            sx,
            sxx,
            sy,
            syy,
            sxy,
            ..
        } = *self;
        if n < 1.0 {
            return None;
        }
        match agg {
            Aggregate::RegrSxx => Some(sxx),
            Aggregate::RegrSyy => Some(syy),
            Aggregate::RegrSxy => Some(sxy),
            Aggregate::RegrAvgx => Some(sx / n),
            Aggregate::RegrAvgy => Some(sy / n),
            Aggregate::CovarPop => Some(sxy / n),
            Aggregate::CovarSamp if n >= 2.0 => Some(sxy / (n - 1.0)),
            Aggregate::Corr if sxx != 0.0 && syy != 0.0 => Some(sxy / (sxx * syy).sqrt()),
            Aggregate::RegrR2 if sxx != 0.0 && syy == 0.0 => Some(1.0),
            Aggregate::RegrR2 if sxx != 0.0 => Some((sxy * sxy) / (sxx * syy)),
            Aggregate::RegrSlope if sxx != 0.0 => Some(sxy / sxx),
            Aggregate::RegrIntercept if sxx != 0.0 => Some((sy - sx * sxy / sxx) / n),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(f64, f64)]) -> Result<Pairs> {
        let mut made = Pairs::default();
        for (y, x) in pairs {
            made.take(*y)?;
            made.take(*x)?;
        }
        Ok(made)
    }

    #[test]
    fn results() {
        let line = of(&[(1.0, 1.0), (3.0, 2.0), (5.0, 3.0)]).unwrap();
        assert_eq!(line.result(Aggregate::RegrSlope), Some(2.0));
        assert_eq!(line.result(Aggregate::RegrIntercept), Some(-1.0));
        assert_eq!(line.result(Aggregate::Corr), Some(1.0));
        assert_eq!(line.result(Aggregate::CovarPop), Some(4.0 / 3.0));
        let one = of(&[(1.0, 1.0)]).unwrap();
        assert_eq!(one.result(Aggregate::CovarSamp), None);
        assert_eq!(one.result(Aggregate::RegrSlope), None);
        assert_eq!(Pairs::default().result(Aggregate::RegrAvgx), None);
        assert!(of(&[(1e300, 1.0), (-1e300, 2.0)]).is_err());
        let nan = of(&[(f64::NAN, 1.0), (1.0, 2.0)]).unwrap();
        assert!(nan.result(Aggregate::RegrSyy).is_some_and(f64::is_nan));
    }
}
