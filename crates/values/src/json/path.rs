//! Changes of a `jsonb` at a path: `jsonb_set`, `jsonb_insert` and `#-`.
//!
//! Invariants: what the path does not reach stays as it is; the result is no deeper than a document may be;
//! no error has a part of the path.

use super::{Node, object, parse};
use crate::list::items;
use crate::{Error, Result};
use contract::Op;

/// The document with the part at the path set, inserted or, without a new one, deleted.
pub(super) fn change(op: Op, document: Node, list: &[u8], new: Option<Node>) -> Result<Node> {
    if document.scalar() {
        return Err(super::ops::wrong(match op {
            Op::JsonDeletePath => "cannot delete path in scalar",
            _ => "cannot set path in scalar",
        }));
    }
    let empty = match &document {
        Node::Array(items) => items.is_empty(),
        Node::Object(pairs) => pairs.is_empty(),
        _ => false,
    };
    if empty && matches!(op, Op::JsonReplace | Op::JsonDeletePath) {
        return Ok(document);
    }
    // The extension sends no list if a key is NULL.
    let path: Option<Vec<&[u8]>> = items(list).ok().and_then(|keys| keys.into_iter().collect());
    let path = path.ok_or_else(|| Error::new(b"22004", "an element of the path is null"))?;
    let Some((last, parents)) = path.split_last() else {
        return Ok(document);
    };
    let changed = Change { op, last, new }.below(document, parents, 1)?;
    // Refused if the new part lies deeper now than a document may have it.
    parse(&changed.text())
}

/// What happens at the end of the path.
struct Change<'a> {
    op: Op,
    /// The last key of the path.
    last: &'a [u8],
    new: Option<Node>,
}

impl Change<'_> {
    /// `node`, to which `level - 1` keys have led, with the change below it.
    fn below(&mut self, node: Node, parents: &[&[u8]], level: usize) -> Result<Node> {
        let Some((key, deeper)) = parents.split_first() else {
            return match node {
                Node::Array(items) => self.in_array(items, level),
                Node::Object(pairs) => self.in_object(pairs),
                scalar => Ok(scalar),
            };
        };
        match node {
            Node::Array(mut items) => {
                if let Some(at) = index(key, level)?.place(items.len())
                    && let Some(item) = items.get_mut(at)
                {
                    let old = std::mem::replace(item, Node::Null);
                    *item = self.below(old, deeper, level + 1)?;
                }
                Ok(Node::Array(items))
            }
            Node::Object(mut pairs) => {
                if let Some((_, value)) = pairs.iter_mut().find(|(k, _)| k == key) {
                    let old = std::mem::replace(value, Node::Null);
                    *value = self.below(old, deeper, level + 1)?;
                }
                Ok(Node::Object(pairs))
            }
            scalar => Ok(scalar),
        }
    }

    fn in_array(&mut self, mut items: Vec<Node>, level: usize) -> Result<Node> {
        let index = index(self.last, level)?;
        let place = index.place(items.len());
        let new = self.new.take();
        match (self.op, place, new) {
            (Op::JsonDeletePath, Some(at), _) => {
                items.remove(at);
            }
            (Op::JsonSet | Op::JsonReplace, Some(at), Some(new)) => {
                items.splice(at..=at, [new]);
            }
            (Op::JsonInsert, Some(at), Some(new)) => items.insert(at, new),
            (Op::JsonInsertAfter, Some(at), Some(new)) => items.insert(at + 1, new),
            (Op::JsonReplace | Op::JsonDeletePath, _, _) => {}
            (_, None, Some(new)) => match index.0 < 0 {
                true => items.insert(0, new),
                false => items.push(new),
            },
            _ => {}
        }
        Ok(Node::Array(items))
    }

    fn in_object(&mut self, mut pairs: Vec<(Vec<u8>, Node)>) -> Result<Node> {
        let found = pairs.iter().position(|(key, _)| key == self.last);
        let new = self.new.take();
        match (self.op, found, new) {
            (Op::JsonDeletePath, Some(at), _) => {
                pairs.remove(at);
            }
            (Op::JsonSet | Op::JsonReplace, Some(at), Some(new)) => {
                pairs.splice(at..=at, [(self.last.to_vec(), new)]);
            }
            (Op::JsonInsert | Op::JsonInsertAfter, Some(_), _) => {
                return Err(super::ops::wrong("cannot replace existing key")
                    .hint("Try using the function jsonb_set to replace key value."));
            }
            (Op::JsonReplace | Op::JsonDeletePath, _, _) => {}
            (_, None, Some(new)) => {
                pairs.push((self.last.to_vec(), new));
                return Ok(object(pairs));
            }
            _ => {}
        }
        Ok(Node::Object(pairs))
    }
}

/// A key as an index of an array, from the end if negative.
struct Index(i64);

impl Index {
    fn place(&self, length: usize) -> Option<usize> {
        let at = match usize::try_from(self.0) {
            Ok(at) => at,
            Err(_) => length.checked_sub(usize::try_from(self.0.unsigned_abs()).ok()?)?,
        };
        (at < length).then_some(at)
    }
}

/// The index that a key is, read as C's strtol does: white space before it, not behind it.
fn index(key: &[u8], level: usize) -> Result<Index> {
    let space = |c: char| c.is_ascii_whitespace() || c == '\x0b';
    let number = std::str::from_utf8(key)
        .ok()
        .and_then(|key| key.trim_start_matches(space).parse::<i32>().ok());
    number.map(|n| Index(n.into())).ok_or_else(|| {
        let message = format!("path element at position {level} is not an integer");
        Error::new(b"22P02", message)
    })
}
