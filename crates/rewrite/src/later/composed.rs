//! The texts that result when a statement composes strings: `||`, `concat`, `format`, `replace` and the like.
//!
//! A part that is not constant, or that a function gives, becomes a word, and in a second reading a
//! constant (`'… WHERE name = ' || quote_literal('x')`). SQL that breaks off where a value must follow is
//! completed by a constant, whatever composes it (`string_agg`, `lpad`, functions of users).
//!
//! Does not: judge the texts; follow what `overlay` and `translate` do beyond placeholders and characters.

use super::{begins, content};
use crate::tokens::Tokens;
use std::ops::Range;

/// Replaces an unknown part of a string.
const PART: &str = "x";
/// A possible replacement of a part of a string.
const CONSTANT: &str = "'x'";
/// Functions that join their arguments.
const LISTS: [&str; 3] = ["array_to_string", "concat", "concat_ws"];
/// Functions that replace one string by another.
const REPLACING: [&str; 2] = ["regexp_replace", "replace"];
/// Functions that put something into the place of characters.
const CHANGING: [&str; 2] = ["overlay", "translate"];
/// Functions that fill in placeholders.
const FORMATTING: [&str; 1] = ["format"];
/// Words that a value follows.
const WANTING: [&str; 6] = ["and", "ilike", "in", "like", "or", "values"];

/// The string constants of a statement in this range, and what composes them.
struct Composed<'a> {
    sql: &'a str,
    tokens: &'a Tokens,
    range: &'a Range<usize>,
    strings: &'a [Range<usize>],
    /// The functions of these lists that it calls, or words like them.
    called: Vec<&'static str>,
}

/// All functions whose calls matter.
fn composing() -> impl Iterator<Item = &'static str> {
    let lists = [&LISTS[..], &REPLACING, &CHANGING, &FORMATTING];
    lists.into_iter().flatten().copied()
}

/// Returns the strings that result from composing several, and the position of the first part of
/// each.
pub(super) fn put_together(
    sql: &str,
    tokens: &Tokens,
    range: &Range<usize>,
    strings: &[Range<usize>],
) -> Vec<(String, Range<usize>)> {
    if strings.is_empty() {
        return Vec::new();
    }
    let words = (tokens.next_from(range.start)..tokens.next_from(range.end))
        .filter(|at| tokens.is_name(*at))
        .filter_map(|at| sql.get(tokens.range(at)));
    let called = |word: &str| composing().find(|name| word.eq_ignore_ascii_case(name));
    let statement = Composed {
        sql,
        tokens,
        range,
        strings,
        called: words.filter_map(called).collect(),
    };
    let mut all = statement.chains(PART);
    let sql_only = |(text, _): &(String, Range<usize>)| begins(text);
    all.extend(statement.chains(CONSTANT).into_iter().filter(sql_only));
    let texts: Vec<String> = strings.iter().map(|r| content(&sql[r.clone()])).collect();
    for (at, r) in strings.iter().enumerate() {
        let others = statement.made_of(&texts, at);
        all.extend(others.into_iter().map(|text| (text, r.clone())));
    }
    all
}

impl Composed<'_> {
    fn word(&self, at: usize) -> &str {
        self.sql.get(self.tokens.range(at)).unwrap_or_default()
    }

    fn calls(&self, names: &[&str]) -> bool {
        self.called.iter().any(|name| names.contains(name))
    }

    /// What other functions may make of one string and the others.
    fn made_of(&self, texts: &[String], at: usize) -> Vec<String> {
        let mut made = Vec::new();
        let Some(text) = texts.get(at) else {
            return made;
        };
        if text.contains('%') && self.calls(&FORMATTING) {
            made.push(filled(text, PART));
            made.extend(Some(filled(text, CONSTANT)).filter(|text| begins(text)));
        }
        if self.calls(&REPLACING) {
            let others = texts.iter().enumerate().filter(|(other, _)| *other != at);
            let found = others.filter(|(_, place)| !place.is_empty() && text.contains(*place));
            made.extend(found.map(|(_, place)| text.replace(place, CONSTANT)));
        }
        if !begins(text) {
            return made;
        }
        if self.calls(&CHANGING) {
            made.push(without_placeholders(text));
            made.extend(texts.windows(2).filter_map(|pair| match pair {
                [from, to] => Some(translated(text, from, to)),
                _ => None,
            }));
        }
        // Without other values there is nothing else to be sent.
        if self.tokens.values(self.range).count() > 1 {
            made.extend(completed(text));
        }
        made
    }

    /// Strings joined by `||` and by functions that join; `part` is what stands for the unknown parts.
    fn chains(&self, part: &str) -> Vec<(String, Range<usize>)> {
        let lists = self.calls(&LISTS);
        let glue = |at: usize| self.word(at) == "||" || (lists && self.word(at) == ",");
        let ends = |at: usize| lists && matches!(self.word(at), ")" | "]");
        let mut all: Vec<(String, Range<usize>)> = Vec::new();
        for (index, r) in self.strings.iter().enumerate() {
            let text = content(&self.sql[r.clone()]);
            // What is between it and the string before, as far as it is composed with that.
            let first = self.tokens.next_from(r.start);
            let before = index.checked_sub(1).and_then(|at| self.strings.get(at));
            let from = before.map_or(self.range.start, |b| b.end);
            let between = self.tokens.next_from(from)..first;
            let one = between.clone().any(glue) && !between.clone().any(ends);
            match all.last_mut().filter(|_| one) {
                // A function gives something else.
                Some((so_far, _)) if part != PART && !glue(first.wrapping_sub(1)) => {
                    so_far.push_str(part)
                }
                Some((so_far, _)) => {
                    so_far.push_str(if between.len() > 1 { part } else { "" });
                    so_far.push_str(&text);
                }
                None => all.push((text, r.clone())),
            }
            if glue(first + 1)
                && self.strings.get(index + 1).is_none()
                && let Some((so_far, _)) = all.last_mut()
            {
                // An unknown part at the end.
                so_far.push_str(part);
            }
        }
        all
    }
}

/// What `format` makes of a text: `%L` is a constant, `%I` a word, `%s` may be either.
fn filled(text: &str, string: &str) -> String {
    let mut made = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        made.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let options = |c: char| !(c.is_ascii_digit() || matches!(c, '$' | '-' | '*'));
        let end = rest.find(options).unwrap_or(rest.len());
        let mut behind = rest[end..].chars();
        match behind.next() {
            Some('L') => made.push_str(CONSTANT),
            Some('I') => made.push_str(PART),
            Some('s') => made.push_str(string),
            Some(other) => made.push(other),
            None => {}
        }
        rest = behind.as_str();
    }
    made + rest
}

/// The text with constants for `?`, `:name` and `@name`.
fn without_placeholders(text: &str) -> String {
    let mut made = String::new();
    let mut rest = text.chars().peekable();
    let part = |c: &char| c.is_alphanumeric() || *c == '_';
    while let Some(c) = rest.next() {
        match c {
            '?' => made.push_str(CONSTANT),
            ':' | '@' if !made.ends_with(':') && rest.peek().is_some_and(part) => {
                while rest.next_if(part).is_some() {}
                made.push_str(CONSTANT);
            }
            c => made.push(c),
        }
    }
    made
}

fn translated(text: &str, from: &str, to: &str) -> String {
    let one = |c: char| match from.chars().position(|other| other == c) {
        Some(at) => to.chars().nth(at),
        None => Some(c),
    };
    text.chars().filter_map(one).collect()
}

/// The text with a constant at its end, if it breaks off where one must follow.
fn completed(text: &str) -> Option<String> {
    let open = text.matches('\'').count() % 2 == 1;
    let end = text.trim_end();
    let sign = end.ends_with(['=', '<', '>', '(', ',', '~', '|']);
    let last = end.rsplit(|c: char| !c.is_ascii_alphabetic()).next();
    let wanting = |word: &str| WANTING.iter().any(|w| w.eq_ignore_ascii_case(word));
    if !open && !sign && !last.is_some_and(wanting) {
        return None;
    }
    let constant = if open { "x'" } else { " 'x'" };
    let missing = text
        .matches('(')
        .count()
        .saturating_sub(text.matches(')').count());
    Some(format!("{text}{constant}{}", ")".repeat(missing)))
}
