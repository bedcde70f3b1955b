//! `json` and `jsonb`: documents as trees, their text, and the order of `jsonb`.
//!
//! Values of both types are kept as text: `json` as it was given, `jsonb` as its output function prints
//! it. What computes on one reads its tree first.
//!
//! Invariants: a tree is no deeper than [`parse::DEPTH_MAX`], so no function here runs out of stack; the
//! pairs of an object are in `jsonb`'s order (shorter keys first) and have different keys, but in trees
//! of `json`, whose pairs are as they were written.

mod ops;
mod parse;
mod path;

pub(crate) use ops::{apply, cast, contains, exists, number};
pub(crate) use parse::{check, parse};

use crate::{Numeric, Result};
use std::cmp::Ordering;

/// A part of a document.
#[derive(Clone)]
pub(crate) enum Node {
    Null,
    String(Vec<u8>),
    Number(Numeric),
    Bool(bool),
    Array(Vec<Node>),
    Object(Vec<Pair>),
}

/// A key and what it stands for.
type Pair = (Vec<u8>, Node);

/// The text of `jsonb` for a text that its input function takes.
pub(crate) fn canonical(text: &[u8]) -> Result<Box<[u8]>> {
    Ok(parse(text)?.text())
}

impl Node {
    /// What `jsonb`'s output function prints.
    pub fn text(&self) -> Box<[u8]> {
        let mut out = Vec::new();
        self.print(&mut out);
        out.into()
    }

    fn print(&self, out: &mut Vec<u8>) {
        match self {
            Node::Null => out.extend_from_slice(b"null"),
            Node::Bool(b) => out.extend_from_slice(if *b { b"true" } else { b"false" }),
            Node::Number(n) => out.extend_from_slice(n.to_text().as_bytes()),
            Node::String(s) => quote(s, out),
            Node::Array(items) => {
                out.push(b'[');
                for (at, item) in items.iter().enumerate() {
                    comma(at, out);
                    item.print(out);
                }
                out.push(b']');
            }
            Node::Object(pairs) => {
                out.push(b'{');
                for (at, (key, value)) in pairs.iter().enumerate() {
                    comma(at, out);
                    quote(key, out);
                    out.extend_from_slice(b": ");
                    value.print(out);
                }
                out.push(b'}');
            }
        }
    }

    /// What `jsonb_pretty` prints.
    pub fn pretty(&self, depth: usize, out: &mut Vec<u8>) {
        let line = |depth: usize, out: &mut Vec<u8>| {
            out.push(b'\n');
            out.resize(out.len() + 4 * depth, b' ');
        };
        match self {
            Node::Array(items) => {
                out.push(b'[');
                for (at, item) in items.iter().enumerate() {
                    out.extend_from_slice(if at == 0 { b"" } else { b"," });
                    line(depth + 1, out);
                    item.pretty(depth + 1, out);
                }
                line(depth, out);
                out.push(b']');
            }
            Node::Object(pairs) => {
                out.push(b'{');
                for (at, (key, value)) in pairs.iter().enumerate() {
                    out.extend_from_slice(if at == 0 { b"" } else { b"," });
                    line(depth + 1, out);
                    quote(key, out);
                    out.extend_from_slice(b": ");
                    value.pretty(depth + 1, out);
                }
                line(depth, out);
                out.push(b'}');
            }
            scalar => scalar.print(out),
        }
    }

    /// A form that equal documents share, and no others.
    pub fn form(&self, out: &mut dyn FnMut(&[u8])) {
        let sized = |bytes: &[u8], out: &mut dyn FnMut(&[u8])| {
            out(&(bytes.len() as u64).to_le_bytes());
            out(bytes);
        };
        match self {
            Node::Null => out(b"n"),
            Node::Bool(b) => out(if *b { b"t" } else { b"f" }),
            Node::String(s) => {
                out(b"s");
                sized(s, out);
            }
            Node::Number(n) => {
                let mut number = Vec::new();
                n.canonical(&mut |bytes| number.extend_from_slice(bytes));
                out(b"#");
                sized(&number, out);
            }
            Node::Array(items) => {
                out(b"[");
                out(&(items.len() as u64).to_le_bytes());
                items.iter().for_each(|item| item.form(out));
            }
            Node::Object(pairs) => {
                out(b"{");
                out(&(pairs.len() as u64).to_le_bytes());
                for (key, value) in pairs {
                    sized(key, out);
                    value.form(out);
                }
            }
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Node::Null => 0,
            Node::String(_) => 1,
            Node::Number(_) => 2,
            Node::Bool(_) => 3,
            Node::Array(_) => 4,
            Node::Object(_) => 5,
        }
    }

    /// Whether it is neither an array nor an object.
    pub fn scalar(&self) -> bool {
        self.rank() < 4
    }

    /// The order of two parts; containers with fewer elements come first.
    fn order(&self, other: &Node) -> Ordering {
        match (self, other) {
            (Node::String(a), Node::String(b)) => a.cmp(b),
            (Node::Number(a), Node::Number(b)) => a.compare(b),
            (Node::Bool(a), Node::Bool(b)) => a.cmp(b),
            (Node::Array(a), Node::Array(b)) => {
                let pairs = || a.iter().zip(b).map(|(a, b)| a.order(b));
                let first = || pairs().find(|o| o.is_ne());
                let sizes = a.len().cmp(&b.len());
                sizes.then_with(|| first().unwrap_or(Ordering::Equal))
            }
            (Node::Object(a), Node::Object(b)) => {
                let pair = |(a, b): (&Pair, &Pair)| a.0.cmp(&b.0).then_with(|| a.1.order(&b.1));
                let first = || a.iter().zip(b).map(pair).find(|o| o.is_ne());
                let sizes = a.len().cmp(&b.len());
                sizes.then_with(|| first().unwrap_or(Ordering::Equal))
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// The order of two documents. Alone, a scalar counts as an array of one element, but below one.
    pub fn compare(&self, other: &Node) -> Ordering {
        match (self, other) {
            (Node::Array(items), scalar) if scalar.scalar() => match items.is_empty() {
                true => Ordering::Less,
                false => Ordering::Greater,
            },
            (scalar, Node::Array(_)) if scalar.scalar() => other.compare(self).reverse(),
            _ => self.order(other),
        }
    }
}

fn comma(at: usize, out: &mut Vec<u8>) {
    if at > 0 {
        out.extend_from_slice(b", ");
    }
}

/// A string as JSON writes it.
pub(crate) fn quote(s: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &b in s {
        match b {
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0..=31 => out.extend_from_slice(format!("\\u{b:04x}").as_bytes()),
            _ => out.push(b),
        }
    }
    out.push(b'"');
}

/// The order of keys within an object.
fn key_order(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// Puts the pairs in order; of those with one key the last one stays.
pub(crate) fn object(mut pairs: Vec<Pair>) -> Node {
    pairs.reverse();
    pairs.sort_by(|(a, _), (b, _)| key_order(a, b));
    pairs.dedup_by(|later, kept| later.0 == kept.0);
    Node::Object(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(s: &str) -> Node {
        parse(s.as_bytes()).unwrap()
    }

    fn shown(s: &str) -> String {
        match canonical(s.as_bytes()) {
            Ok(text) => String::from_utf8(text.into()).unwrap(),
            Err(e) => e.sqlstate_str().into(),
        }
    }

    #[test]
    fn printed() {
        for (given, expected) in [
            (
                " {\"bb\":1.50, \"a\" : [1e2,-0,null , true],\"bb\":2}\n",
                "{\"a\": [100, 0, null, true], \"bb\": 2}",
            ),
            ("\"\\u00e9\\ud83d\\ude00\\/\\n\"", "\"é😀/\\n\""),
            ("\"\\u0001\"", "\"\\u0001\""),
            ("{}", "{}"),
            ("[]", "[]"),
            ("1.230", "1.230"),
            ("", "22P02"),
            ("[1,]", "22P02"),
            ("{\"a\"}", "22P02"),
            ("01", "22P02"),
            ("1.", "22P02"),
            ("-", "22P02"),
            ("1a", "22P02"),
            ("nul", "22P02"),
            ("\"\\u0000\"", "22P05"),
            ("\"\\ud83d\"", "22P02"),
            ("\"\\x\"", "22P02"),
            ("\"a", "22P02"),
            ("1 2", "22P02"),
            ("1e999999", "22003"),
        ] {
            assert_eq!(shown(given), expected, "{given}");
        }
        assert_eq!(shown(&"[".repeat(1_000_000)), "54001");
        let deep = format!("{}{}", "[".repeat(900), "]".repeat(900));
        assert_eq!(shown(&deep), deep);
    }

    /// As PostgreSQL orders them, an empty array before everything.
    #[test]
    fn ordered() {
        let all = [
            "[]",
            "null",
            "\"a\"",
            "\"b\"",
            "-1",
            "1",
            "false",
            "true",
            "[1]",
            "[2]",
            "[true]",
            "[[]]",
            "[1, 1]",
            "{}",
            "{\"b\": 1}",
            "{\"b\": 2}",
            "{\"aa\": 1, \"b\": 1}",
        ];
        for (at, a) in all.iter().enumerate() {
            for (other, b) in all.iter().enumerate() {
                let order = node(a).compare(&node(b));
                assert_eq!(order, at.cmp(&other), "{a} {b}");
            }
        }
        assert!(node("1.0").compare(&node("1")).is_eq());
    }

    /// Forms are the same for equal documents and for no others.
    #[test]
    fn forms() {
        let form = |s: &str| {
            let mut out = Vec::new();
            node(s).form(&mut |b| out.extend_from_slice(b));
            out
        };
        assert_eq!(form("{\"a\": 1.0}"), form("{\"a\":1}"));
        assert_ne!(form("[\"a\", \"b\"]"), form("[\"as\\u0001\"]"));
        assert_ne!(form("[1]"), form("1"));
    }
}
