//! Sets of characters. Beyond ASCII no character is a letter, digit or blank: locale C.

/// Ranges of characters, and whether these are left out.
#[derive(Clone, Debug, Default)]
pub(super) struct Class {
    ranges: Vec<(char, char)>,
    negated: bool,
}

impl Class {
    pub fn any() -> Class {
        Class {
            ranges: Vec::new(),
            negated: true,
        }
    }

    pub fn one(c: char) -> Class {
        Class {
            ranges: vec![(c, c)],
            negated: false,
        }
    }

    pub fn add(&mut self, from: char, to: char) {
        self.ranges.push((from, to));
    }

    /// Adds a class by name; `None` if there is no such class.
    pub fn add_named(&mut self, name: &str, fold: bool) -> Option<()> {
        let name = if fold && matches!(name, "upper" | "lower") {
            "alpha"
        } else {
            name
        };
        let holds: fn(&u8) -> bool = match name {
            "alpha" => u8::is_ascii_alphabetic,
            "digit" => u8::is_ascii_digit,
            "alnum" => u8::is_ascii_alphanumeric,
            "upper" => u8::is_ascii_uppercase,
            "lower" => u8::is_ascii_lowercase,
            "space" => |b| matches!(b, b' ' | 9..=13),
            "blank" => |b| matches!(b, b' ' | b'\t'),
            "punct" => u8::is_ascii_punctuation,
            "graph" => u8::is_ascii_graphic,
            "print" => |b| matches!(b, b' '..=b'~'),
            "cntrl" => u8::is_ascii_control,
            "xdigit" => u8::is_ascii_hexdigit,
            "ascii" => |_| true,
            "word" => |b| b.is_ascii_alphanumeric() || *b == b'_',
            _ => return None,
        };
        let members = (0..128u8).filter(holds).map(char::from);
        self.ranges.extend(members.map(|c| (c, c)));
        Some(())
    }

    /// Adds what is not in another class.
    pub fn add_all_but(&mut self, other: &Class) {
        let mut edges: Vec<(u32, u32)> = other
            .ranges
            .iter()
            .map(|(a, b)| (*a as u32, *b as u32))
            .collect();
        edges.sort_unstable();
        let mut next = 0u32;
        for (from, to) in edges {
            if from > next {
                self.add_codes(next, from - 1);
            }
            next = next.max(to + 1);
        }
        self.add_codes(next, char::MAX as u32);
    }

    fn add_codes(&mut self, from: u32, to: u32) {
        // What is no character has none to match.
        let from = (from..=from.saturating_add(0x800)).find_map(char::from_u32);
        let to = (to.saturating_sub(0x800)..=to)
            .rev()
            .find_map(char::from_u32);
        if let (Some(from), Some(to)) = (from, to)
            && from <= to
        {
            self.ranges.push((from, to));
        }
    }

    /// Adds the other case of ASCII letters.
    pub fn fold(&mut self) {
        let mut more = Vec::new();
        for (from, to) in &self.ranges {
            for b in (b'A'..=b'Z').chain(b'a'..=b'z').map(char::from) {
                if *from <= b && b <= *to {
                    let other = (b as u8 ^ 0x20) as char;
                    more.push((other, other));
                }
            }
        }
        self.ranges.extend(more);
    }

    /// The complement; optionally without newlines.
    pub fn negate(&mut self, stop: bool) {
        if stop {
            self.ranges.push(('\n', '\n'));
        }
        self.negated = !self.negated;
    }

    pub fn matches(&self, c: char) -> bool {
        self.ranges.iter().any(|(from, to)| *from <= c && c <= *to) != self.negated
    }
}

/// A character of words.
pub(super) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
