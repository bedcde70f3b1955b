//! Which routines a call may come to: the one that it names, and those that bodies name.
//!
//! Bodies that the server stores parsed, and strings that a body executes, are not covered.

use crate::refusal::Refusal;
use crate::schema::{Schema, UserFunction};
use crate::tokens::{Tokens, identifier};
use std::collections::BTreeSet;

/// Why a call is refused because of the pin: the routine, or one that its body names, is not the pinned one.
pub(crate) fn unpinned(schema: &Schema, place: Option<&str>, name: &str) -> Option<Refusal> {
    if !schema.pins_routines() {
        return None;
    }
    let mut left = vec![(place, name.to_owned())];
    let mut seen = BTreeSet::new();
    while let Some((place, name)) = left.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        if let Some(refusal) = schema.unpinned_routine(place, &name) {
            return Some(refusal);
        }
        let words = schema.all_bodies(&name).flat_map(words_of);
        left.extend(words.map(|word| (None, word)));
    }
    None
}

/// The names in the body of a routine.
pub(crate) fn words_of(routine: &UserFunction) -> BTreeSet<String> {
    let text = routine.source.as_ref().map_or("", |s| s.text.as_str());
    let Ok(tokens) = Tokens::scan(text) else {
        return BTreeSet::new();
    };
    let names = (0..tokens.len()).filter(|at| tokens.is_name(*at));
    names
        .map(|at| identifier(&text[tokens.range(at)]).into_owned())
        .collect()
}
