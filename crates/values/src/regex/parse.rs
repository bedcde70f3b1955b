//! From the text of an expression to its parts.

use super::class::Class;
use super::{Assertion, Flags, Kind, Node, Preference, invalid, refused};
use crate::Result;

/// The most repetitions.
const DUP_MAX: u16 = 255;
/// How deep parentheses may nest.
const DEPTH: usize = 100;

struct Parser<'p> {
    text: &'p [char],
    at: usize,
    flags: Flags,
    groups: usize,
    depth: usize,
}

/// The parts of an expression, and the number of its subexpressions.
pub(super) fn parse(text: &[char], flags: Flags) -> Result<(Node, usize)> {
    let mut parser = Parser {
        text,
        at: 0,
        flags,
        groups: 0,
        depth: 0,
    };
    if flags.literal {
        let letters = text.iter().map(|c| parser.one(*c)).collect();
        return Ok((all(letters), 0));
    }
    if text.starts_with(&['*', '*', '*']) {
        return Err(refused("directors of regular expressions are"));
    }
    parser.options()?;
    let root = parser.alternatives()?;
    match parser.peek() {
        None => Ok((root, parser.groups)),
        Some(_) => Err(invalid("parentheses () not balanced")),
    }
}

fn plain(kind: Kind) -> Node {
    Node {
        kind,
        preference: Preference::None,
        captures: false,
        mixed: false,
    }
}

/// Parts one after another: those without subexpressions and of one preference are one part.
fn all(parts: Vec<Node>) -> Node {
    let mut runs: Vec<Node> = Vec::new();
    let mut run: Vec<Node> = Vec::new();
    let mut preference = Preference::None;
    for part in parts {
        let differs = preference != Preference::None
            && part.preference != Preference::None
            && part.preference != preference;
        if part.captures || part.mixed || differs {
            runs.extend(sequence(std::mem::take(&mut run)));
            preference = Preference::None;
            runs.push(part);
            continue;
        }
        if preference == Preference::None {
            preference = part.preference;
        }
        run.push(part);
    }
    runs.extend(sequence(run));
    sequence(runs).unwrap_or(plain(Kind::Empty))
}

fn sequence(mut parts: Vec<Node>) -> Option<Node> {
    if parts.len() < 2 {
        return parts.pop();
    }
    let preferences: Vec<Preference> = parts.iter().map(|p| p.preference).collect();
    let first = preferences.iter().copied().find(|p| *p != Preference::None);
    let has = |p| preferences.contains(&p);
    Some(Node {
        preference: first.unwrap_or(Preference::None),
        captures: parts.iter().any(|p| p.captures),
        mixed: parts.iter().any(|p| p.mixed)
            || has(Preference::Longest) && has(Preference::Shortest),
        kind: Kind::All(parts),
    })
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn looks_at(&self, what: &str) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let mut chars = rest.iter();
        what.chars().all(|c| chars.next() == Some(&c))
    }

    fn take(&mut self, what: &str) -> bool {
        let found = self.looks_at(what);
        if found {
            self.at += what.chars().count();
        }
        found
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    /// `(?letters)` at the start.
    fn options(&mut self) -> Result<()> {
        let letter = self.text.get(2).is_some_and(char::is_ascii_alphabetic);
        if !(self.looks_at("(?") && letter) {
            return Ok(());
        }
        self.at = 2;
        loop {
            match self.next() {
                Some(')') => return Ok(()),
                Some('i') => self.flags.fold = true,
                Some('c') => self.flags.fold = false,
                Some('n' | 'm') => (self.flags.stop, self.flags.lines) = (true, true),
                Some('p') => (self.flags.stop, self.flags.lines) = (true, false),
                Some('w') => (self.flags.stop, self.flags.lines) = (false, true),
                Some('s') => (self.flags.stop, self.flags.lines) = (false, false),
                Some('x') => self.flags.expanded = true,
                Some('t') => self.flags.expanded = false,
                Some('q' | 'b' | 'e') => {
                    return Err(refused("this syntax of regular expressions is"));
                }
                _ => return Err(invalid("invalid embedded option")),
            }
        }
    }

    /// Leaves out comments, and blanks in expanded syntax.
    fn skip(&mut self) -> Result<()> {
        loop {
            if self.take("(?#") {
                while self.next().is_some_and(|c| c != ')') {}
                continue;
            }
            match self.peek() {
                Some(c) if self.flags.expanded && c.is_ascii_whitespace() => self.at += 1,
                Some('#') if self.flags.expanded => while self.next().is_some_and(|c| c != '\n') {},
                _ => return Ok(()),
            }
        }
    }

    fn alternatives(&mut self) -> Result<Node> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(invalid("regular expression is too complex"));
        }
        let mut ways = vec![self.branch()?];
        while self.peek() == Some('|') {
            self.at += 1;
            ways.push(self.branch()?);
        }
        self.depth -= 1;
        if ways.len() == 1 {
            return Ok(ways.pop().unwrap_or(plain(Kind::Empty)));
        }
        Ok(Node {
            preference: Preference::Longest,
            captures: ways.iter().any(|w| w.captures),
            mixed: ways
                .iter()
                .any(|w| w.mixed || w.preference == Preference::Shortest),
            kind: Kind::Any(ways),
        })
    }

    fn branch(&mut self) -> Result<Node> {
        let mut parts = Vec::new();
        loop {
            self.skip()?;
            match self.peek() {
                None | Some('|' | ')') => return Ok(all(parts)),
                _ => {}
            }
            let atom = self.atom()?;
            self.skip()?;
            let constraint = matches!(atom.kind, Kind::Assert(_));
            let part = self.quantified(atom, constraint)?;
            parts.push(part);
        }
    }

    fn one(&self, c: char) -> Node {
        let mut class = Class::one(c);
        if self.flags.fold {
            class.fold();
        }
        plain(Kind::One(class))
    }

    fn atom(&mut self) -> Result<Node> {
        let Some(c) = self.next() else {
            return Ok(plain(Kind::Empty));
        };
        match c {
            '(' => self.group(),
            '[' => self.bracket(),
            '.' => {
                let mut class = Class::any();
                if self.flags.stop {
                    class = Class::one('\n');
                    class.negate(false);
                }
                Ok(plain(Kind::One(class)))
            }
            '^' if self.flags.lines => Ok(plain(Kind::Assert(Assertion::LineStart))),
            '^' => Ok(plain(Kind::Assert(Assertion::Start))),
            '$' if self.flags.lines => Ok(plain(Kind::Assert(Assertion::LineEnd))),
            '$' => Ok(plain(Kind::Assert(Assertion::End))),
            '*' | '+' | '?' => Err(invalid("quantifier operand invalid")),
            '{' if self.peek().is_some_and(|c| c.is_ascii_digit()) => {
                Err(invalid("quantifier operand invalid"))
            }
            '\\' => self.escape(),
            _ => Ok(self.one(c)),
        }
    }

    fn closed(&mut self) -> Result<Node> {
        let inner = self.alternatives()?;
        match self.next() {
            Some(')') => Ok(inner),
            _ => Err(invalid("parentheses () not balanced")),
        }
    }

    fn group(&mut self) -> Result<Node> {
        if self.take("?:") {
            return self.closed();
        }
        for (opening, ahead, wanted) in [
            ("?=", true, true),
            ("?!", true, false),
            ("?<=", false, true),
            ("?<!", false, false),
        ] {
            if self.take(opening) {
                // Parentheses within are no subexpressions.
                let before = self.groups;
                let mut inner = self.closed()?;
                self.groups = before;
                forget_captures(&mut inner);
                let around = Assertion::Around(Box::new(inner), ahead, wanted);
                return Ok(plain(Kind::Assert(around)));
            }
        }
        if self.peek() == Some('?') {
            return Err(invalid("quantifier operand invalid"));
        }
        let number = self.groups;
        self.groups += 1;
        let inner = self.closed()?;
        Ok(Node {
            preference: inner.preference,
            captures: true,
            mixed: inner.mixed,
            kind: Kind::Capture(number, Box::new(inner)),
        })
    }

    fn quantified(&mut self, atom: Node, constraint: bool) -> Result<Node> {
        let (least, most, exact) = match self.peek() {
            Some('*') => (0, None, false),
            Some('+') => (1, None, false),
            Some('?') => (0, Some(1), false),
            Some('{') if self.text.get(self.at + 1).is_some_and(char::is_ascii_digit) => {
                self.bounds()?
            }
            _ => return Ok(atom),
        };
        if constraint {
            return Err(invalid("quantifier operand invalid"));
        }
        self.at += 1;
        let reluctant = self.take("?");
        self.skip()?;
        match self.peek() {
            Some('*' | '+' | '?') => return Err(invalid("quantifier operand invalid")),
            Some('{') if self.text.get(self.at + 1).is_some_and(char::is_ascii_digit) => {
                return Err(invalid("quantifier operand invalid"));
            }
            _ => {}
        }
        let preference = match (exact, reluctant) {
            (true, _) => atom.preference,
            (false, true) => Preference::Shortest,
            (false, false) => Preference::Longest,
        };
        if (least, most) == (1, Some(1)) && preference == atom.preference {
            return Ok(atom);
        }
        let differs = atom.preference != Preference::None && atom.preference != preference;
        Ok(Node {
            preference,
            captures: atom.captures,
            mixed: atom.mixed || differs,
            kind: Kind::Repeat(Box::new(atom), least, most),
        })
    }

    fn number(&mut self) -> Result<u16> {
        let mut n = 0u16;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            n = n.saturating_mul(10).saturating_add(digit as u16);
            self.at += 1;
        }
        if n > DUP_MAX {
            return Err(invalid("invalid repetition count(s)"));
        }
        Ok(n)
    }

    /// `{m}`, `{m,}`, `{m,n}`; stays at the closing brace.
    fn bounds(&mut self) -> Result<(u16, Option<u16>, bool)> {
        self.at += 1;
        let least = self.number()?;
        if !self.take(",") {
            return self.brace((least, Some(least), true));
        }
        if !self.peek().is_some_and(|c| c.is_ascii_digit()) {
            return self.brace((least, None, false));
        }
        let most = self.number()?;
        if most < least {
            return Err(invalid("invalid repetition count(s)"));
        }
        self.brace((least, Some(most), false))
    }

    fn brace<T>(&self, found: T) -> Result<T> {
        match self.peek() {
            Some('}') => Ok(found),
            _ => Err(invalid("braces {} not balanced")),
        }
    }

    fn named(&self, name: &str, negated: bool) -> Node {
        let mut class = Class::default();
        let _ = class.add_named(name, self.flags.fold);
        if negated {
            class.negate(false);
        }
        plain(Kind::One(class))
    }

    fn escape(&mut self) -> Result<Node> {
        let Some(c) = self.next() else {
            return Err(invalid("invalid escape \\ sequence"));
        };
        let assertion = |a| Ok(plain(Kind::Assert(a)));
        match c {
            'd' => Ok(self.named("digit", false)),
            's' => Ok(self.named("space", false)),
            'w' => Ok(self.named("word", false)),
            'D' => Ok(self.named("digit", true)),
            'S' => Ok(self.named("space", true)),
            'W' => Ok(self.named("word", true)),
            'A' => assertion(Assertion::Start),
            'Z' => assertion(Assertion::End),
            'm' => assertion(Assertion::WordStart),
            'M' => assertion(Assertion::WordEnd),
            'y' => assertion(Assertion::WordBoundary),
            'Y' => assertion(Assertion::NotWordBoundary),
            '1'..='9' => Err(refused("back references in regular expressions are")),
            _ => {
                let c = self.character(c)?;
                Ok(self.one(c))
            }
        }
    }

    /// The character represented by a backslash and what follows.
    fn character(&mut self, c: char) -> Result<char> {
        let wrong = || invalid("invalid escape \\ sequence");
        Ok(match c {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'B' => '\\',
            'e' => '\u{1b}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'c' => {
                let c = self.next().ok_or_else(wrong)?;
                char::from_u32(c as u32 & 0x1f).ok_or_else(wrong)?
            }
            'u' => self.code(16, 4, 4)?,
            'U' => self.code(16, 8, 8)?,
            'x' => self.code(16, 1, 255)?,
            '0' => {
                self.at -= 1;
                self.code(8, 1, 3)?
            }
            c if c.is_ascii_alphanumeric() => return Err(wrong()),
            c => c,
        })
    }

    /// A character by its code, with a number of digits in this range.
    fn code(&mut self, radix: u32, least: usize, most: usize) -> Result<char> {
        let (mut code, mut digits) = (0u32, 0);
        while digits < most
            && let Some(digit) = self.peek().and_then(|c| c.to_digit(radix))
        {
            code = code.saturating_mul(radix).saturating_add(digit);
            digits += 1;
            self.at += 1;
        }
        let found = char::from_u32(code).filter(|_| digits >= least);
        found.ok_or_else(|| invalid("invalid escape \\ sequence"))
    }

    /// `[…]`
    fn bracket(&mut self) -> Result<Node> {
        for (word, assertion) in [
            ("[:<:]]", Assertion::WordStart),
            ("[:>:]]", Assertion::WordEnd),
        ] {
            if self.take(word) {
                return Ok(plain(Kind::Assert(assertion)));
            }
        }
        let negated = self.take("^");
        let mut class = Class::default();
        let mut first = true;
        loop {
            let unbalanced = || invalid("brackets [] not balanced");
            let c = self.next().ok_or_else(unbalanced)?;
            match c {
                ']' if !first => break,
                '[' if self.take(":") => {
                    let name = self.until(":]")?;
                    let fold = self.flags.fold;
                    let known = class.add_named(&name, fold);
                    known.ok_or_else(|| invalid("invalid character class"))?;
                }
                '[' if self.take("=") => {
                    let name = self.until("=]")?;
                    let c = element(&name)?;
                    class.add(c, c);
                }
                '\\' if self.peek().is_some_and(|c| "dswDSW".contains(c)) => {
                    let letter = self.next().unwrap_or('d');
                    self.class_escape(&mut class, letter);
                }
                _ => self.range(&mut class, c)?,
            }
            first = false;
        }
        if self.flags.fold {
            class.fold();
        }
        if negated {
            class.negate(self.flags.stop);
        }
        Ok(plain(Kind::One(class)))
    }

    fn class_escape(&self, class: &mut Class, letter: char) {
        let name = match letter.to_ascii_lowercase() {
            'd' => "digit",
            's' => "space",
            _ => "word",
        };
        if letter.is_ascii_lowercase() {
            let _ = class.add_named(name, false);
            return;
        }
        let mut named = Class::default();
        let _ = named.add_named(name, false);
        class.add_all_but(&named);
    }

    fn until(&mut self, end: &str) -> Result<String> {
        let mut name = String::new();
        while !self.take(end) {
            let c = self.next();
            name.push(c.ok_or_else(|| invalid("brackets [] not balanced"))?);
        }
        Ok(name)
    }

    /// One end of a range.
    fn end(&mut self, c: char) -> Result<char> {
        match c {
            '[' if self.take(".") => {
                let name = self.until(".]")?;
                element(&name)
            }
            '\\' => {
                let c = self
                    .next()
                    .ok_or_else(|| invalid("invalid escape \\ sequence"))?;
                self.character(c)
            }
            c => Ok(c),
        }
    }

    fn range(&mut self, class: &mut Class, c: char) -> Result<()> {
        let from = self.end(c)?;
        let ends = self.text.get(self.at + 1) == Some(&']');
        if self.peek() != Some('-') || ends {
            class.add(from, from);
            return Ok(());
        }
        self.at += 1;
        let c = self.next();
        let to = self.end(c.ok_or_else(|| invalid("brackets [] not balanced"))?)?;
        if from > to {
            return Err(invalid("invalid character range"));
        }
        class.add(from, to);
        Ok(())
    }
}

/// A collating element: a character, or one of the names that are asked for.
fn element(name: &str) -> Result<char> {
    let mut chars = name.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(c),
        _ => match name {
            "hyphen" | "hyphen-minus" => Ok('-'),
            "period" | "full-stop" => Ok('.'),
            "space" => Ok(' '),
            "tab" => Ok('\t'),
            "newline" => Ok('\n'),
            _ => Err(invalid("invalid collating element")),
        },
    }
}

/// Subexpressions within a constraint become plain parentheses.
fn forget_captures(node: &mut Node) {
    node.captures = false;
    match &mut node.kind {
        Kind::Capture(_, inner) => {
            forget_captures(inner);
            node.kind = Kind::All(vec![(**inner).clone()]);
        }
        Kind::All(parts) | Kind::Any(parts) => parts.iter_mut().for_each(forget_captures),
        Kind::Repeat(inner, ..) => forget_captures(inner),
        _ => {}
    }
}
