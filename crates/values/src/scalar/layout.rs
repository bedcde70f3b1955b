//! Lays the digits of a number out by a template of `to_char`: see format_number.rs.
//!
//! Invariant: what comes out has the places of the template, whatever the number is.

use super::format_number::{Part, Place, Shape};

/// A number on its way into a template.
pub(super) struct Layout {
    shape: Shape,
    number: Vec<u8>,
    negative: bool,
    /// Places of the template before the number's first digit.
    spaces: usize,
    sign_written: bool,
    /// The last digit that counts, with FM.
    last: Option<usize>,
    /// Places of the template, and of the number, that are done.
    place: usize,
    at: usize,
    count: usize,
    within: bool,
    pub out: Vec<u8>,
}

impl Layout {
    pub fn new(mut shape: Shape, number: String, negative: bool) -> Layout {
        let before = number.find('.').unwrap_or(number.len());
        let spaces = shape.before.saturating_sub(before);
        if shape.roman {
            shape = Shape {
                fill: shape.fill,
                roman: true,
                ..Shape::default()
            };
        }
        shape.zero_start = shape.zero_start.saturating_sub(1);
        let spaces = if shape.roman { 0 } else { spaces };
        let mut layout = Layout {
            number: number.into_bytes(),
            negative,
            spaces,
            sign_written: false,
            last: None,
            place: 0,
            at: 0,
            count: 0,
            within: false,
            out: Vec::new(),
            shape,
        };
        layout.prepare();
        layout
    }

    fn prepare(&mut self) {
        let shape = &mut self.shape;
        if shape.plus || shape.minus {
            self.sign_written = !shape.plus || shape.minus;
        } else {
            if !self.negative && shape.bracket && shape.fill {
                shape.bracket = false;
            }
            self.sign_written = !self.negative && shape.fill && !shape.locale_sign;
            if shape.sign == Place::Before && shape.before == shape.sign_at {
                shape.sign = Place::After;
            }
        }
        self.count = (shape.after + shape.before).saturating_sub(1);
        if shape.fill && shape.decimal {
            self.last = last_relevant(&self.number);
            if let Some(last) = &mut self.last
                && shape.zero_end > self.spaces
            {
                let end = self.number.len().saturating_sub(1);
                *last = (*last).max(end.min(shape.zero_end - self.spaces));
            }
        }
        if !self.sign_written && self.spaces == 0 {
            self.count += 1;
        }
    }

    pub fn run(&mut self, parts: &[Part<'_>]) {
        for part in parts {
            match part {
                Part::Text(text) => self.out.extend_from_slice(text),
                Part::Field(pattern, upper) => self.field(pattern, *upper),
            }
        }
    }

    fn field(&mut self, pattern: &str, upper: bool) {
        let fill = self.shape.fill;
        match pattern {
            "9" | "0" | "." | "D" => self.digit(pattern == "0"),
            "," | "G" if self.within => self.out.push(b','),
            "," | "G" if fill => {}
            "," | "G" | "L" => self.out.push(b' '),
            "RN" => {
                let text = String::from_utf8_lossy(&self.number).into_owned();
                let text = if upper {
                    text
                } else {
                    text.to_ascii_lowercase()
                };
                let width = if fill { 0 } else { 15 };
                self.out.extend(format!("{text:>width$}").into_bytes());
            }
            "TH" => {
                let no = self.shape.roman || self.negative || self.shape.decimal;
                if !no && self.number.first() != Some(&b'#') {
                    let ending =
                        super::format::ending(&String::from_utf8_lossy(&self.number), upper);
                    self.out.extend_from_slice(ending.as_bytes());
                }
            }
            "MI" => self.signed(self.negative, b'-'),
            "PL" => self.signed(!self.negative, b'+'),
            "SG" => self.out.push(if self.negative { b'-' } else { b'+' }),
            _ => {}
        }
    }

    fn signed(&mut self, shown: bool, sign: u8) {
        if shown {
            self.out.push(sign);
        } else if !self.shape.fill {
            self.out.push(b' ');
        }
    }

    /// A zero before the point that a template without `0` leaves out.
    fn omitted_zero(&self) -> bool {
        !self.shape.zero
            && self.at == 0
            && self.number.first() == Some(&b'0')
            && self.shape.after != 0
    }

    fn ends_at_point(&self) -> bool {
        self.last.and_then(|last| self.number.get(last)) == Some(&b'.')
    }

    fn write_sign(&mut self) {
        let zero_here = self.shape.zero && self.shape.zero_start == self.place;
        let due = self.place >= self.spaces || zero_here;
        if self.sign_written || !due || (self.omitted_zero() && !self.ends_at_point()) {
            return;
        }
        if self.shape.locale_sign {
            if self.shape.sign == Place::Before {
                self.out.push(if self.negative { b'-' } else { b'+' });
                self.sign_written = true;
            }
            return;
        }
        match (self.shape.bracket, self.negative) {
            (true, negative) => self.out.push(if negative { b'<' } else { b' ' }),
            (false, true) => self.out.push(b'-'),
            (false, false) if !self.shape.fill => self.out.push(b' '),
            _ => {}
        }
        self.sign_written = true;
    }

    fn digit(&mut self, zero: bool) {
        if self.shape.roman {
            return;
        }
        self.within = false;
        self.write_sign();
        let early = self.place < self.spaces;
        if early && (self.shape.zero_start > self.place || !self.shape.zero) {
            if !self.shape.fill {
                self.out.push(b' ');
            }
        } else if self.shape.zero && early {
            self.out.push(b'0');
            self.within = true;
        } else {
            self.write_digit(zero);
            self.at += usize::from(self.at < self.number.len());
        }
        self.write_end();
        self.place += 1;
    }

    fn write_digit(&mut self, zero: bool) {
        match self.number.get(self.at) {
            Some(b'.') => {
                if !self.ends_at_point() || self.shape.fill {
                    self.out.push(b'.');
                }
            }
            _ if self.last.is_some_and(|last| self.at > last) && !zero => {}
            _ if self.omitted_zero() => {
                if !self.shape.fill {
                    self.out.push(b' ');
                } else if self.ends_at_point() {
                    self.out.push(b'0');
                }
            }
            Some(digit) => {
                self.out.push(*digit);
                self.within = true;
            }
            // PostgreSQL's text ends here, and so does ours.
            None => self.within = true,
        }
    }

    /// Writes what follows the last digit.
    fn write_end(&mut self) {
        let mut end = self.count + usize::from(self.spaces > 0) + usize::from(self.shape.decimal);
        if self.last == Some(self.at) {
            end = self.place;
        }
        if self.place + 1 != end {
            return;
        }
        if self.sign_written && self.shape.bracket {
            self.out.push(if self.negative { b'>' } else { b' ' });
        } else if self.shape.locale_sign && self.shape.sign == Place::After {
            self.out.push(if self.negative { b'-' } else { b'+' });
        }
    }
}

/// The last digit after the point that is no zero, or the point.
fn last_relevant(number: &[u8]) -> Option<usize> {
    let point = number.iter().position(|b| *b == b'.')?;
    let last = number.iter().rposition(|b| *b != b'0')?;
    Some(last.max(point))
}
