//! Regular expressions as PostgreSQL has them ("advanced" ones), in locale C.
//!
//! A match is the leftmost, and of those the longest or shortest one, as the expression's greediness
//! says; subexpressions take theirs in the same way, earlier ones first. Matching follows all ways at
//! once: its time is bounded by the product of the lengths of text and expression. Not here, and
//! refused: back references, basic and extended syntax, directors (`***`).
//!
//! Invariant: no pattern and no text makes this panic, or take more than its bounds.

mod class;
mod exec;
mod parse;

use crate::{Error, Result};
use class::Class;
use std::cell::RefCell;
use std::rc::Rc;

/// How an expression is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Flags {
    /// Letters of both cases are the same.
    pub fold: bool,
    /// `.` and `[^…]` do not match a newline.
    pub stop: bool,
    /// `^` and `$` match at newlines.
    pub lines: bool,
    /// Blanks and comments in the expression do not count.
    pub expanded: bool,
    /// It is a text, not an expression.
    pub literal: bool,
}

/// What prefers to match how much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Preference {
    None,
    Longest,
    Shortest,
}

/// What holds at a place, without taking a character.
#[derive(Clone, Debug)]
enum Assertion {
    Start,
    End,
    LineStart,
    LineEnd,
    WordStart,
    WordEnd,
    WordBoundary,
    NotWordBoundary,
    /// Lookahead or lookbehind, positive or negative.
    Around(Box<Node>, bool, bool),
}

/// A part of an expression.
#[derive(Clone, Debug)]
enum Kind {
    Empty,
    One(Class),
    Assert(Assertion),
    /// Parts one after another.
    All(Vec<Node>),
    /// Alternatives; the first that matches is used.
    Any(Vec<Node>),
    /// A part as often as this; without a second number, without an end.
    Repeat(Box<Node>, u16, Option<u16>),
    /// A subexpression, by number.
    Capture(usize, Box<Node>),
}

#[derive(Clone, Debug)]
struct Node {
    kind: Kind,
    preference: Preference,
    /// There are subexpressions in it.
    captures: bool,
    /// Parts of it prefer different lengths.
    mixed: bool,
}

/// An expression, ready to match.
#[derive(Debug)]
pub(crate) struct Regex {
    root: Node,
    program: exec::Program,
    /// Number of subexpressions.
    pub groups: usize,
}

/// A place in a text, in characters: from, to.
pub(crate) type Span = (usize, usize);

/// 2201B, which every wrong expression gets.
fn invalid(what: &'static str) -> Error {
    Error::new(b"2201B", format!("invalid regular expression: {what}"))
}

fn refused(what: &'static str) -> Error {
    Error::new(
        b"0A000",
        format!("{what} not available for protected values"),
    )
    .hint("Select the value itself and match it in the application.")
}

/// The characters of a text.
pub(crate) fn characters(text: &[u8]) -> Vec<char> {
    String::from_utf8_lossy(text).chars().collect()
}

/// Compiled expressions that a thread keeps.
const KEPT: usize = 16;

type Compiled = (Box<[u8]>, Flags, Rc<Regex>);

thread_local! {
    static RECENT: RefCell<Vec<Compiled>> = const { RefCell::new(Vec::new()) };
}

impl Regex {
    /// The compiled expression, from a cache of recent ones if possible.
    pub fn of(pattern: &[u8], flags: Flags) -> Result<Rc<Regex>> {
        let known = RECENT.with_borrow(|list| {
            let same = |(p, f, _): &&Compiled| **p == *pattern && *f == flags;
            list.iter().find(same).map(|(_, _, regex)| regex.clone())
        });
        if let Some(regex) = known {
            return Ok(regex);
        }
        let regex = Rc::new(Regex::new(pattern, flags)?);
        RECENT.with_borrow_mut(|list| {
            if list.len() >= KEPT {
                list.remove(0);
            }
            list.push((pattern.into(), flags, regex.clone()));
        });
        Ok(regex)
    }

    fn new(pattern: &[u8], flags: Flags) -> Result<Regex> {
        let pattern = characters(pattern);
        let (root, groups) = parse::parse(&pattern, flags)?;
        let program = exec::Program::new(&root)?;
        Ok(Regex {
            root,
            program,
            groups,
        })
    }

    /// Whether it matches anywhere.
    pub fn is_match(&self, text: &[char]) -> Result<bool> {
        Ok(self.program.leftmost(text, 0, true)?.is_some())
    }

    /// The first match that starts at this character or later.
    pub fn find(&self, text: &[char], from: usize) -> Result<Option<Span>> {
        let Some(start) = self.program.leftmost(text, from, false)? else {
            return Ok(None);
        };
        let shortest = self.root.preference == Preference::Shortest;
        let end = self.program.end(text, start, text.len(), shortest)?;
        Ok(end.map(|end| (start, end)))
    }

    /// As [`Self::find`], with the places of subexpressions, from number 1.
    pub fn captures(
        &self,
        text: &[char],
        from: usize,
    ) -> Result<Option<(Span, Vec<Option<Span>>)>> {
        let Some(span) = self.find(text, from)? else {
            return Ok(None);
        };
        let mut found = vec![None; self.groups];
        if self.groups > 0 {
            exec::dissect(&self.root, text, span, &mut found)?;
        }
        Ok(Some((span, found)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pattern: &str, text: &str) -> String {
        let regex = match Regex::new(pattern.as_bytes(), Flags::default()) {
            Ok(regex) => regex,
            Err(e) => return e.sqlstate_str().into(),
        };
        let text = characters(text.as_bytes());
        let shown = |(from, to): Span| text[from..to].iter().collect::<String>();
        match regex.captures(&text, 0).unwrap() {
            None => "none".into(),
            Some((span, groups)) => {
                let groups = groups.iter().map(|g| g.map_or("-".into(), shown));
                let all: Vec<String> = [shown(span)].into_iter().chain(groups).collect();
                all.join("|")
            }
        }
    }

    /// Lengths by greediness, as PostgreSQL's manual has them (9.7.3.5).
    #[test]
    fn greediness() {
        for (pattern, text, expected) in [
            ("Y*([0-9]{1,3})", "XY1234Z", "Y123|123"),
            ("Y*?([0-9]{1,3})", "XY1234Z", "Y1|1"),
            ("(.*)(\\d+)(.*)", "abc01234xyz", "abc01234xyz|abc0123|4|xyz"),
            ("(.*?)(\\d+)(.*)", "abc01234xyz", "abc0|abc|0|"),
            (
                "(?:(.*?)(\\d+)(.*)){1,1}",
                "abc01234xyz",
                "abc01234xyz|abc|01234|xyz",
            ),
            ("a|ab", "abc", "ab"),
            ("(a|ab)(c|bcd)(d*)", "abcd", "abcd|ab|c|d"),
            ("(?:x*(?:xy)?)(y|z)", "xxyyz", "xxyy|y"),
            ("(a*)*", "aab", "aa|aa"),
            ("(a|b)*", "abab", "abab|b"),
            ("(a){2,3}", "aaaa", "aaa|a"),
            ("(x)?y", "y", "y|-"),
            ("()", "a", "|"),
            ("", "a", ""),
        ] {
            assert_eq!(find(pattern, text), expected, "{pattern}");
        }
    }

    #[test]
    fn classes_and_places() {
        for (pattern, text, expected) in [
            ("^foo$", "foo", "foo"),
            ("^b", "a\nb", "none"),
            ("(?n)^b.", "a\nbc\n", "bc"),
            ("[[:digit:]]+", "ab12", "12"),
            ("[^[:alpha:]]", "ä", "ä"),
            ("[]a]+", "x]a", "]a"),
            ("[a\\-z]+", "m-z", "-z"),
            ("[\\w-]+", "é a-b", "a-b"),
            ("\\mb\\w*", "ab bc", "bc"),
            ("c\\M", "cc", "c"),
            ("\\yan\\y", "man an", "an"),
            ("\\Yb", "b ab", "b"),
            ("(?i)GRÜSSE", "GRÜsse", "GRÜsse"),
            ("(?=b)...", "abcd", "bcd"),
            ("(?<!a)b.", "abxbc", "bc"),
            ("(?x) a b # c", "ab", "ab"),
            ("a{,2}", "a{,2}", "a{,2}"),
            ("\\x41\\u00e4", "Aä", "Aä"),
            ("a(?#comment)b", "ab", "ab"),
            ("[[.hyphen.]]", "-", "-"),
            (".", "\n", "\n"),
        ] {
            assert_eq!(find(pattern, text), expected, "{pattern}");
        }
    }

    #[test]
    fn wrong_ones() {
        for pattern in [
            "(",
            ")",
            "[a",
            "a**",
            "*a",
            "a{2,1}",
            "a{256}",
            "\\",
            "[z-a]",
            "(?i",
            "a{1",
            "(?<a)",
            "^*",
            "[[:nothing:]]",
            "x(?i)y",
        ] {
            assert_eq!(find(pattern, "a"), "2201B", "{pattern}");
        }
        for pattern in ["(a)\\1", "***=a"] {
            assert_eq!(find(pattern, "a"), "0A000", "{pattern}");
        }
        // A pattern whose automaton would be too large.
        assert_ne!(find("((a{255}){255}){255}", "a"), "none");
    }

    /// Time is bounded also where backtracking would not end.
    #[test]
    fn hostile_patterns() {
        let text = "a".repeat(3000);
        assert_eq!(find("(a*)*b", &text), "none");
        assert_eq!(find("(a|aa)+$", &text).split('|').count(), 2);
    }
}
