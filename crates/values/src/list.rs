//! Lists of items, as functions of any number of values take them in a text (`scalar::items`).
//!
//! Invariant: what is no list is refused; an item is never read beyond the list's end.

use crate::{Error, Result};

/// The items of a list; `None` is NULL.
pub(crate) fn items(mut list: &[u8]) -> Result<Vec<Option<&[u8]>>> {
    let mut found = Vec::new();
    while let Some((first, rest)) = list.split_first() {
        if *first == b'-' {
            found.push(None);
            list = rest;
            continue;
        }
        let colon = list.iter().position(|b| *b == b':');
        let (length, rest) = colon
            .and_then(|at| list.split_at_checked(at))
            .ok_or_else(no_list)?;
        let length = std::str::from_utf8(length)
            .ok()
            .and_then(|s| s.parse().ok());
        let (item, rest) = length
            .and_then(|n| rest.get(1..)?.split_at_checked(n))
            .ok_or_else(no_list)?;
        found.push(Some(item));
        list = rest;
    }
    Ok(found)
}

fn no_list() -> Error {
    Error::new(b"22023", "this is no list of items")
}
