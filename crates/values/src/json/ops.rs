//! Operators and functions on `json` and `jsonb`.
//!
//! Keys of a path or a list come as one list of items (`scalar::items`), NULL among them.
//!
//! Invariant: what is no operand of an operation is 42883.

use super::parse::{Parts, raw};
use super::{Node, object, parse, path, quote};
use crate::error::no_such_operation;
use crate::list::items;
use crate::{Error, Numeric, Result, Value};
use contract::{Op, TypeCode};

/// The operations that give a value.
pub(crate) fn apply(op: Op, args: &[&Value]) -> Result<Value> {
    let shown = matches!(
        op,
        Op::JsonGetText | Op::JsonElementText | Op::JsonPathText | Op::JsonPairText
    );
    match (op, args) {
        (Op::JsonGet | Op::JsonGetText, [v, Value::Text(key)]) => {
            walk(v, std::iter::once(Step::Key(key)), shown)
        }
        (Op::JsonElement | Op::JsonElementText, [v, Value::Int4(n)]) => {
            walk(v, std::iter::once(Step::Index(*n)), shown)
        }
        (Op::JsonPath | Op::JsonPathText, [v, Value::Text(list)]) => {
            let keys = items(list)?;
            if keys.iter().any(Option::is_none) {
                return Err(Error::null());
            }
            let steps = keys.into_iter().flatten().map(Step::Any);
            walk(v, steps, shown)
        }
        (Op::JsonConcat, [Value::Jsonb(a), Value::Jsonb(b)]) => jsonb(concat(parse(a)?, parse(b)?)),
        (Op::JsonDelete, [Value::Jsonb(a), key]) => jsonb(match key {
            Value::Text(key) => without_keys(parse(a)?, &[key])?,
            Value::Int4(n) => without_element(parse(a)?, *n)?,
            _ => return Err(no_such_operation()),
        }),
        (Op::JsonDeleteKeys, [Value::Jsonb(a), Value::Text(list)]) => {
            let keys: Vec<&[u8]> = items(list)?.into_iter().flatten().collect();
            jsonb(without_keys(parse(a)?, &keys)?)
        }
        (
            Op::JsonSet | Op::JsonReplace | Op::JsonInsert | Op::JsonInsertAfter,
            [Value::Jsonb(a), Value::Text(list), Value::Jsonb(new)],
        ) => jsonb(path::change(op, parse(a)?, list, Some(parse(new)?))?),
        (Op::JsonDeletePath, [Value::Jsonb(a), Value::Text(list)]) => {
            jsonb(path::change(op, parse(a)?, list, None)?)
        }
        (Op::JsonKey, [v, Value::Int4(n)]) => key(v, *n),
        (Op::JsonPair | Op::JsonPairText, [v, Value::Int4(n)]) => {
            walk(v, std::iter::once(Step::Pair(*n)), shown)
        }
        (Op::JsonTypeof, [v]) => text(kind(v)?),
        (Op::JsonArrayLength, [v]) => array_length(v),
        (Op::JsonStripNulls, [Value::Jsonb(v)]) => jsonb(stripped(parse(v)?)),
        (Op::JsonPretty, [Value::Jsonb(v)]) => {
            let mut out = Vec::new();
            parse(v)?.pretty(0, &mut out);
            text(&out)
        }
        _ => Err(no_such_operation()),
    }
}

fn text(s: &[u8]) -> Result<Value> {
    Ok(Value::Text(s.into()))
}

fn jsonb(node: Node) -> Result<Value> {
    Ok(Value::Jsonb(node.text()))
}

pub(super) fn wrong(message: &'static str) -> Error {
    Error::new(b"22023", message)
}

enum Step<'a> {
    /// Of objects.
    Key(&'a [u8]),
    /// Of arrays; from the end if negative.
    Index(i32),
    /// Of objects, or of arrays if it is a number.
    Any(&'a [u8]),
    /// Of objects, by the number of the pair.
    Pair(i32),
}

impl<'a> Step<'a> {
    fn key(&self) -> Option<&'a [u8]> {
        match self {
            Step::Key(key) | Step::Any(key) => Some(key),
            Step::Index(_) | Step::Pair(_) => None,
        }
    }

    /// The place in an array of this length.
    fn place(&self, length: usize) -> Option<usize> {
        let index = match self {
            Step::Key(_) | Step::Pair(_) => return None,
            Step::Index(n) => *n,
            Step::Any(key) => {
                let text = std::str::from_utf8(key).ok()?;
                // strtol skips white space before a number, not behind it.
                let space = |c: char| c.is_ascii_whitespace() || c == '\x0b';
                text.trim_start_matches(space).parse::<i32>().ok()?
            }
        };
        place(index, length)
    }
}

fn place(index: i32, length: usize) -> Option<usize> {
    let at = match usize::try_from(index) {
        Ok(at) => at,
        Err(_) => length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?,
    };
    (at < length).then_some(at)
}

/// What a path leads to; NULL if nothing.
fn walk<'s>(v: &Value, steps: impl Iterator<Item = Step<'s>>, shown: bool) -> Result<Value> {
    match v {
        Value::Jsonb(document) => {
            let mut node = parse(document)?;
            for (at, step) in steps.enumerate() {
                // As a document, a scalar is an array of one element to whoever asks for an element.
                if at == 0 && node.scalar() && matches!(step, Step::Index(_)) {
                    step.place(1).ok_or_else(Error::null)?;
                    continue;
                }
                node = child(node, &step).ok_or_else(Error::null)?;
            }
            match (node, shown) {
                (node, false) => jsonb(node),
                (Node::Null, true) => Err(Error::null()),
                (Node::String(s), true) => text(&s),
                (node, true) => text(&node.text()),
            }
        }
        Value::Json(document) => {
            let mut part = raw(document)?;
            let mut whole = true;
            for step in steps {
                part = raw(raw_child(part.parts, &step).ok_or_else(Error::null)?)?;
                whole = false;
            }
            match (&part.parts, shown) {
                // All of it, with white space before and behind.
                (_, false) if whole => Ok(Value::Json(document.clone())),
                (_, false) => Ok(Value::Json(part.text.into())),
                (Parts::Scalar(Node::Null), true) => Err(Error::null()),
                (Parts::Scalar(Node::String(s)), true) => text(s),
                (Parts::Scalar(_), true) => text(part.text),
                (_, true) if whole => text(document),
                (_, true) => text(part.text),
            }
        }
        _ => Err(no_such_operation()),
    }
}

fn child(node: Node, step: &Step<'_>) -> Option<Node> {
    match node {
        Node::Array(mut items) => {
            let at = step.place(items.len())?;
            Some(items.swap_remove(at))
        }
        Node::Object(mut pairs) => {
            let at = match step {
                Step::Pair(n) => usize::try_from(*n).ok().filter(|n| *n < pairs.len())?,
                _ => {
                    let key = step.key()?;
                    pairs.iter().position(|(k, _)| k == key)?
                }
            };
            Some(pairs.swap_remove(at).1)
        }
        _ => None,
    }
}

fn raw_child<'a>(parts: Parts<'a>, step: &Step<'_>) -> Option<&'a [u8]> {
    match parts {
        Parts::Array(items) => items.get(step.place(items.len())?).copied(),
        Parts::Object(pairs) => match step {
            Step::Pair(n) => pairs
                .get(usize::try_from(*n).ok()?)
                .map(|(_, value)| *value),
            _ => {
                let key = step.key()?;
                let found = pairs.into_iter().rev().find(|(k, _)| k == key);
                found.map(|(_, value)| value)
            }
        },
        Parts::Scalar(_) => None,
    }
}

/// The key of a pair; NULL behind the last.
fn key(v: &Value, n: i32) -> Result<Value> {
    let none = |scalar| {
        wrong(match scalar {
            true => "cannot take keys from a scalar",
            false => "cannot take keys from an array",
        })
    };
    let at = usize::try_from(n).map_err(|_| Error::null())?;
    let found = match v {
        Value::Jsonb(s) => match parse(s)? {
            Node::Object(pairs) => pairs.into_iter().nth(at).map(|(key, _)| key),
            other => return Err(none(other.scalar())),
        },
        Value::Json(s) => match raw(s)?.parts {
            Parts::Object(pairs) => pairs.into_iter().nth(at).map(|(key, _)| key),
            parts => return Err(none(matches!(parts, Parts::Scalar(_)))),
        },
        _ => return Err(no_such_operation()),
    };
    text(&found.ok_or_else(Error::null)?)
}

fn kind(v: &Value) -> Result<&'static [u8]> {
    let of = |node: &Node| -> &'static [u8] {
        match node {
            Node::Null => b"null",
            Node::String(_) => b"string",
            Node::Number(_) => b"number",
            Node::Bool(_) => b"boolean",
            Node::Array(_) => b"array",
            Node::Object(_) => b"object",
        }
    };
    Ok(match v {
        Value::Jsonb(s) => of(&parse(s)?),
        // Only the first character is looked at, as PostgreSQL does.
        Value::Json(s) => match s.iter().find(|b| !b.is_ascii_whitespace()) {
            Some(b'{') => b"object",
            Some(b'[') => b"array",
            Some(b'"') => b"string",
            Some(b't' | b'f') => b"boolean",
            Some(b'n') => b"null",
            _ => b"number",
        },
        _ => return Err(no_such_operation()),
    })
}

fn array_length(v: &Value) -> Result<Value> {
    let count = |length: Option<usize>, scalar: bool| match length {
        Some(n) => i32::try_from(n)
            .map(Value::Int4)
            .map_err(|_| crate::error::out_of_range("integer")),
        None if scalar => Err(wrong("cannot get array length of a scalar")),
        None => Err(wrong("cannot get array length of a non-array")),
    };
    match v {
        Value::Jsonb(s) => match parse(s)? {
            Node::Array(items) => count(Some(items.len()), false),
            other => count(None, other.scalar()),
        },
        Value::Json(s) => match raw(s)?.parts {
            Parts::Array(items) => count(Some(items.len()), false),
            Parts::Object(_) => count(None, false),
            Parts::Scalar(_) => count(None, true),
        },
        _ => Err(no_such_operation()),
    }
}

fn stripped(node: Node) -> Node {
    match node {
        Node::Array(items) => Node::Array(items.into_iter().map(stripped).collect()),
        Node::Object(pairs) => {
            let pairs = pairs.into_iter().filter(|(_, v)| !matches!(v, Node::Null));
            Node::Object(pairs.map(|(k, v)| (k, stripped(v))).collect())
        }
        scalar => scalar,
    }
}

fn concat(a: Node, b: Node) -> Node {
    match (a, b) {
        (Node::Object(mut a), Node::Object(b)) => {
            a.extend(b);
            object(a)
        }
        (a, b) => {
            let elements = |node: Node| match node {
                Node::Array(items) => items,
                other => vec![other],
            };
            let mut all = elements(a);
            all.extend(elements(b));
            Node::Array(all)
        }
    }
}

fn without_keys(node: Node, keys: &[&[u8]]) -> Result<Node> {
    match node {
        Node::Array(mut items) => {
            items.retain(|item| !matches!(item, Node::String(s) if keys.contains(&&s[..])));
            Ok(Node::Array(items))
        }
        Node::Object(mut pairs) => {
            pairs.retain(|(key, _)| !keys.contains(&&key[..]));
            Ok(Node::Object(pairs))
        }
        _ => Err(wrong("cannot delete from scalar")),
    }
}

fn without_element(node: Node, index: i32) -> Result<Node> {
    match node {
        Node::Array(mut items) => {
            if let Some(at) = place(index, items.len()) {
                items.remove(at);
            }
            Ok(Node::Array(items))
        }
        Node::Object(_) => Err(wrong("cannot delete from object using integer index")),
        _ => Err(wrong("cannot delete from scalar")),
    }
}

/// `a @> b`.
pub(crate) fn contains(a: &[u8], b: &[u8]) -> Result<bool> {
    let (a, b) = (parse(a)?, parse(b)?);
    Ok(match (&a, &b) {
        (Node::Array(items), scalar) if scalar.scalar() => items.iter().any(|i| same(i, scalar)),
        _ => within(&a, &b),
    })
}

/// Scalars of one value.
fn same(a: &Node, b: &Node) -> bool {
    a.scalar() && b.scalar() && a.order(b).is_eq()
}

fn within(a: &Node, b: &Node) -> bool {
    match (a, b) {
        (Node::Array(items), Node::Array(wanted)) => wanted
            .iter()
            .all(|w| items.iter().any(|item| within(item, w))),
        (Node::Object(pairs), Node::Object(wanted)) => wanted.iter().all(|(key, w)| {
            let found = pairs.iter().find(|(k, _)| k == key);
            found.is_some_and(|(_, v)| within(v, w))
        }),
        _ => same(a, b),
    }
}

/// `?`, `?|` and `?&`.
pub(crate) fn exists(op: Op, v: &[u8], keys: &[u8]) -> Result<bool> {
    let node = parse(v)?;
    let has = |key: &[u8]| match &node {
        Node::Object(pairs) => pairs.iter().any(|(k, _)| k == key),
        Node::Array(items) => items
            .iter()
            .any(|i| matches!(i, Node::String(s) if s == key)),
        Node::String(s) => s == key,
        _ => false,
    };
    let list = |keys| Ok::<_, Error>(items(keys)?.into_iter().flatten());
    Ok(match op {
        Op::JsonExists => has(keys),
        Op::JsonExistsAny => list(keys)?.any(has),
        Op::JsonExistsAll => list(keys)?.all(has),
        _ => return Err(no_such_operation()),
    })
}

/// Casts of `json` and `jsonb` to each other, and of `jsonb` to `bool` and numbers: as `numeric`, which
/// the caller casts on.
pub(crate) fn cast(v: &Value, ret: TypeCode) -> Result<Value> {
    match (v, ret) {
        (Value::Json(s), TypeCode::Jsonb) => return jsonb(parse(s)?),
        (Value::Jsonb(s), TypeCode::Json) => return Ok(Value::Json(s.clone())),
        _ => {}
    }
    let Value::Jsonb(s) = v else {
        return Err(no_such_operation());
    };
    let node = parse(s)?;
    let number = !matches!(ret, TypeCode::Bool);
    match node {
        Node::Number(n) if number => Ok(Value::Numeric(n)),
        Node::Bool(b) if !number => Ok(Value::Bool(b)),
        other => {
            let from = match other {
                Node::Null => "null",
                Node::String(_) => "string",
                Node::Number(_) => "numeric",
                Node::Bool(_) => "boolean",
                Node::Array(_) => "array",
                Node::Object(_) => "object",
            };
            let to = match ret {
                TypeCode::Bool => "boolean",
                TypeCode::Int2 => "smallint",
                TypeCode::Int4 => "integer",
                TypeCode::Int8 => "bigint",
                TypeCode::Float4 => "real",
                TypeCode::Float8 => "double precision",
                _ => "numeric",
            };
            let message = format!("cannot cast jsonb {from} to type {to}");
            Err(Error::new(b"22023", message))
        }
    }
}

/// A number as JSON writes it: what is none of JSON's is a string.
pub(crate) fn number(text: &[u8], out: &mut Vec<u8>) {
    match Numeric::parse(text, -1) {
        Ok(n) if !n.is_nan() && !n.is_infinite() => out.extend_from_slice(text),
        _ => quote(text, out),
    }
}
