//! Functions of regular expressions: replacing, finding, counting.

use super::{int4, text};
use crate::error::{no_such_operation, too_large};
use crate::regex::{Flags, Regex, Span, characters};
use crate::text as chars;
use crate::{Error, Result, Value};
use contract::Op;

/// Whether a string matches; letters of both cases are the same if `fold`.
pub(crate) fn matches(s: &[u8], pattern: &[u8], fold: bool) -> Result<bool> {
    let flags = Flags {
        fold,
        ..Flags::default()
    };
    Regex::of(pattern, flags)?.is_match(&characters(s))
}

pub(super) fn apply(op: Op, args: &[&Value]) -> Result<Value> {
    use Value::Text;
    let [Text(s), rest @ ..] = args else {
        return Err(no_such_operation());
    };
    match (op, rest) {
        (Op::SimilarToEscape, []) => text(similar(s, Some(b"\\"))?),
        (Op::SimilarToEscape, [Text(escape)]) => text(similar(s, Some(escape))?),
        (Op::RegexSubstring, [Text(pattern)]) => substring(s, pattern),
        (Op::RegexSubstring, [Text(pattern), Text(escape)]) => {
            substring(s, &similar(pattern, Some(escape))?)
        }
        (Op::RegexpReplace, [Text(pattern), Text(new), rest @ ..]) => {
            replace(s, pattern, new, rest)
        }
        (Op::RegexpLike, [Text(pattern), rest @ ..]) => {
            let flags = match rest {
                [] => Flags::default(),
                [Text(flags)] => no_global(flags)?,
                _ => return Err(no_such_operation()),
            };
            let found = Regex::of(pattern, flags)?.is_match(&characters(s))?;
            Ok(Value::Bool(found))
        }
        (Op::RegexpCount, [Text(pattern), rest @ ..]) => count(s, pattern, rest),
        (Op::RegexpPart, [Text(pattern), Value::Int4(n)]) => split(s, pattern, b"", *n),
        (Op::RegexpPart, [Text(pattern), Text(flags), Value::Int4(n)]) => {
            split(s, pattern, flags, *n)
        }
        (Op::RegexpSubstr | Op::RegexpInstr, [Text(pattern), rest @ ..]) => {
            located(op, s, pattern, rest)
        }
        _ => Err(no_such_operation()),
    }
}

fn parameter(name: &'static str) -> Error {
    Error::new(b"22023", format!("invalid value for parameter \"{name}\""))
}

/// Flags as letters, and whether `g` is among them.
fn flags_of(letters: &[u8]) -> Result<(Flags, bool)> {
    let (mut flags, mut global) = (Flags::default(), false);
    for letter in letters {
        match letter {
            b'g' => global = true,
            b'i' => flags.fold = true,
            b'c' => flags.fold = false,
            b'm' | b'n' => (flags.stop, flags.lines) = (true, true),
            b'p' => (flags.stop, flags.lines) = (true, false),
            b'w' => (flags.stop, flags.lines) = (false, true),
            b's' => (flags.stop, flags.lines) = (false, false),
            b'x' => flags.expanded = true,
            b't' => flags.expanded = false,
            b'q' => flags.literal = true,
            b'b' | b'e' => {
                return Err(Error::new(
                    b"0A000",
                    "this syntax of regular expressions is not available for protected values",
                ));
            }
            _ => return Err(Error::new(b"22023", "invalid regular expression option")),
        }
    }
    Ok((flags, global))
}

fn no_global(letters: &[u8]) -> Result<Flags> {
    match flags_of(letters)? {
        (flags, false) => Ok(flags),
        _ => Err(Error::new(
            b"22023",
            "the function does not support the \"global\" option",
        )),
    }
}

/// The numbers and letters after a pattern.
struct Options<'v> {
    numbers: Vec<i32>,
    letters: Option<&'v [u8]>,
}

fn options<'v>(args: &[&'v Value]) -> Result<Options<'v>> {
    let mut found = Options {
        numbers: Vec::new(),
        letters: None,
    };
    for arg in args {
        match arg {
            Value::Int4(n) => found.numbers.push(*n),
            Value::Text(s) => found.letters = Some(s),
            _ => return Err(no_such_operation()),
        }
    }
    Ok(found)
}

/// A number that counts from one.
fn from_one(n: Option<&i32>, name: &'static str) -> Result<usize> {
    match n {
        None => Ok(0),
        Some(n) => usize::try_from(*n)
            .ok()
            .and_then(|n| n.checked_sub(1))
            .ok_or_else(|| parameter(name)),
    }
}

/// Where to continue the search: after the match, or one character further after an empty one.
fn after((start, end): Span) -> usize {
    if start == end { end + 1 } else { end }
}

fn replace(s: &[u8], pattern: &[u8], new: &[u8], rest: &[&Value]) -> Result<Value> {
    let said = options(rest)?;
    let (flags, global) = flags_of(said.letters.unwrap_or_default())?;
    let start = from_one(said.numbers.first(), "start")?;
    let wanted = match said.numbers.get(1) {
        None if global => 0,
        None => 1,
        Some(n) => usize::try_from(*n).map_err(|_| parameter("n"))?,
    };
    let regex = Regex::of(pattern, flags)?;
    let s = characters(s);
    let new: Vec<char> = characters(new);
    let (mut out, mut copied, mut from, mut number) = (String::new(), 0, start, 0);
    while from <= s.len() {
        let Some((span, groups)) = regex.captures(&s, from)? else {
            break;
        };
        number += 1;
        from = after(span);
        if wanted > 0 && number != wanted {
            continue;
        }
        out.extend(s.get(copied..span.0).unwrap_or_default());
        put_new(&mut out, &new, &s, span, &groups);
        if out.len() > chars::MAX_BYTES {
            return Err(too_large());
        }
        copied = span.1;
        if wanted > 0 {
            break;
        }
    }
    out.extend(s.get(copied..).unwrap_or_default());
    text(out.into_bytes())
}

/// The new text, with `\1`, `\&` and `\\` in it.
fn put_new(out: &mut String, new: &[char], s: &[char], span: Span, groups: &[Option<Span>]) {
    let mut rest = new;
    while let [c, tail @ ..] = rest {
        rest = tail.get(1..).unwrap_or_default();
        match (c, tail.first()) {
            ('\\', Some(digit @ '1'..='9')) => {
                let number = *digit as usize - '1' as usize;
                let (from, to) = groups.get(number).copied().flatten().unwrap_or((0, 0));
                out.extend(s.get(from..to).unwrap_or_default());
            }
            ('\\', Some('&')) => out.extend(s.get(span.0..span.1).unwrap_or_default()),
            ('\\', Some('\\')) => out.push('\\'),
            _ => {
                out.push(*c);
                rest = tail;
            }
        }
    }
}

fn substring(s: &[u8], pattern: &[u8]) -> Result<Value> {
    let s = characters(s);
    let found = Regex::of(pattern, Flags::default())?.captures(&s, 0)?;
    let span = match found {
        None => None,
        Some((span, groups)) if groups.is_empty() => Some(span),
        Some((_, groups)) => groups.first().copied().flatten(),
    };
    part(&s, span)
}

fn part(s: &[char], span: Option<Span>) -> Result<Value> {
    let (from, to) = span.ok_or_else(Error::null)?;
    let part: String = s.get(from..to).unwrap_or_default().iter().collect();
    text(part.into_bytes())
}

fn count(s: &[u8], pattern: &[u8], rest: &[&Value]) -> Result<Value> {
    let said = options(rest)?;
    let mut from = from_one(said.numbers.first(), "start")?;
    let flags = no_global(said.letters.unwrap_or_default())?;
    let regex = Regex::of(pattern, flags)?;
    let s = characters(s);
    let mut number = 0;
    while from <= s.len() {
        let Some(span) = regex.find(&s, from)? else {
            break;
        };
        number += 1;
        from = after(span);
    }
    int4(number)
}

/// What is between two matches, by its number; NULL behind the last. Empty matches at either end, or
/// where another match ends, do not count.
fn split(s: &[u8], pattern: &[u8], flags: &[u8], n: i32) -> Result<Value> {
    let wanted = usize::try_from(n).map_err(|_| Error::null())?;
    let regex = Regex::of(pattern, no_global(flags)?)?;
    let s = characters(s);
    let (mut from, mut end, mut start, mut number) = (0, 0, 0, 0);
    while from <= s.len() {
        let Some(span) = regex.find(&s, from)? else {
            break;
        };
        if span.0 < s.len() && span.1 > end {
            if number == wanted {
                return part(&s, Some((start, span.0)));
            }
            number += 1;
            start = span.1;
        }
        end = span.1;
        from = after(span);
    }
    part(&s, (number == wanted).then_some((start, s.len())))
}

/// `regexp_substr` and `regexp_instr`.
fn located(op: Op, s: &[u8], pattern: &[u8], rest: &[&Value]) -> Result<Value> {
    let said = options(rest)?;
    let mut numbers = said.numbers.iter();
    let mut from = from_one(numbers.next(), "start")?;
    let wanted = from_one(numbers.next(), "n")?;
    let end = match op {
        Op::RegexpInstr => match numbers.next() {
            None | Some(0) => false,
            Some(1) => true,
            Some(_) => return Err(parameter("endoption")),
        },
        _ => false,
    };
    let group = numbers.next().map_or(Ok(0), |n| usize::try_from(*n));
    let group = group.map_err(|_| parameter("subexpr"))?;
    let flags = no_global(said.letters.unwrap_or_default())?;
    let regex = Regex::of(pattern, flags)?;
    let s = characters(s);
    let (mut number, mut found) = (0, None);
    while from <= s.len() {
        let Some((span, groups)) = regex.captures(&s, from)? else {
            break;
        };
        if number == wanted {
            found = match group.checked_sub(1) {
                None => Some(span),
                // The whole, where the pattern has no parts.
                Some(0) if groups.is_empty() => Some(span),
                Some(group) => groups.get(group).copied().flatten(),
            };
            break;
        }
        number += 1;
        from = after(span);
    }
    match (op, found) {
        (Op::RegexpSubstr, found) => part(&s, found),
        (_, None) => int4(0),
        (_, Some((from, to))) => int4(if end { to } else { from } + 1),
    }
}

/// Translates a pattern of `SIMILAR TO` to a regular expression; an empty escape means none.
fn similar(pattern: &[u8], escape: Option<&[u8]>) -> Result<Vec<u8>> {
    let escape = characters(escape.unwrap_or_default());
    if escape.len() > 1 {
        return Err(Error::new(b"22025", "invalid escape string")
            .hint("Escape string must be empty or one character."));
    }
    let mut out = String::from("^(?:");
    let (mut escaped, mut class, mut quotes) = (false, false, 0);
    for c in characters(pattern) {
        if escaped {
            escaped = false;
            if c == '"' && !class {
                out.push_str(match quotes {
                    0 => "){1,1}?(",
                    1 => "){1,1}(?:",
                    _ => {
                        return Err(Error::new(
                            b"2200C",
                            "SQL regular expression may not contain more than two escape-double-quote separators",
                        ));
                    }
                });
                quotes += 1;
                continue;
            }
            out.push('\\');
            out.push(c);
            continue;
        }
        match c {
            _ if escape.first() == Some(&c) => escaped = true,
            _ if class => {
                if c == '\\' {
                    out.push('\\');
                }
                out.push(c);
                class = c != ']';
            }
            '[' => {
                out.push(c);
                class = true;
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '\\' | '.' | '^' | '$' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out.push_str(")$");
    Ok(out.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(op: Op, args: &[&str], numbers: &[i32]) -> String {
        let mut all: Vec<Value> = args
            .iter()
            .map(|s| Value::Text(s.as_bytes().into()))
            .collect();
        all.extend(numbers.iter().map(|n| Value::Int4(*n)));
        match apply(op, &all.iter().collect::<Vec<_>>()) {
            Ok(Value::Text(s)) => String::from_utf8(s.into()).unwrap(),
            Ok(Value::Int4(n)) => n.to_string(),
            Ok(_) => "other".into(),
            Err(e) => e.sqlstate_str().into(),
        }
    }

    #[test]
    fn replacements() {
        let r = Op::RegexpReplace;
        assert_eq!(run(r, &["foobarbaz", "b..", "X"], &[]), "fooXbaz");
        assert_eq!(run(r, &["foobarbaz", "b..", "X", "g"], &[]), "fooXX");
        assert_eq!(
            run(r, &["foobarbaz", "b(..)", "X\\1Y\\&\\\\", "g"], &[]),
            "fooXarYbar\\XazYbaz\\"
        );
        assert_eq!(run(r, &["abc", "b*", "-", "g"], &[]), "-a--c-");
        assert_eq!(run(r, &["aaa", "a", "x"], &[2, 2]), "aax");
        assert_eq!(run(r, &["aaa", "a", "x"], &[2, 0]), "axx");
        assert_eq!(run(r, &["aaa", "a", "x"], &[0]), "22023");
        assert_eq!(run(r, &["äöü", "ö", "\\x"], &[]), "ä\\xü");
        assert_eq!(run(r, &["a", "a", "b", "z"], &[]), "22023");
    }

    #[test]
    fn places() {
        assert_eq!(run(Op::RegexSubstring, &["foobar", "o(.)b"], &[]), "o");
        assert_eq!(run(Op::RegexSubstring, &["foobar", "x"], &[]), "00000");
        assert_eq!(
            run(Op::RegexSubstring, &["foobar", "%#\"o_b#\"%", "#"], &[]),
            "oob"
        );
        assert_eq!(run(Op::RegexpCount, &["123123", "\\d\\d\\d"], &[2]), "1");
        assert_eq!(run(Op::RegexpCount, &["abc", "x*"], &[]), "4");
        assert_eq!(run(Op::RegexpInstr, &["abcabc", "b."], &[1, 2]), "5");
        assert_eq!(run(Op::RegexpInstr, &["abcabc", "b."], &[1, 2, 1]), "7");
        assert_eq!(run(Op::RegexpInstr, &["abc", "b"], &[1, 1, 2]), "22023");
        assert_eq!(run(Op::RegexpSubstr, &["abcabc", "b."], &[3]), "bc");
    }

    /// What PostgreSQL's `regexp_split_to_table` gives. Bug: empty matches at an end or beside another
    /// match count, or the part behind the last match is missing.
    #[test]
    fn parts() {
        let all = |args: &[&str]| -> Vec<String> {
            let part = |n| run(Op::RegexpPart, args, &[n]);
            (0..).map(part).take_while(|p| p != "00000").collect()
        };
        assert_eq!(all(&["a b  c", " "]), ["a", "b", "", "c"]);
        assert_eq!(all(&["the fox", "\\s*"]), ["t", "h", "e", "f", "o", "x"]);
        assert_eq!(all(&["1a2b3", "[A-Z]", "i"]), ["1", "2", "3"]);
        assert_eq!(all(&[",a,", ","]), ["", "a", ""]);
        assert_eq!(all(&["", ","]), [""]);
        assert_eq!(all(&["äöü", ""]), ["ä", "ö", "ü"]);
        assert_eq!(run(Op::RegexpPart, &["a", "a", "g"], &[0]), "22023");
        assert_eq!(run(Op::RegexpPart, &["a", "b"], &[-1]), "00000");
    }

    #[test]
    fn similar_patterns() {
        let of = |p: &str| String::from_utf8(similar(p.as_bytes(), Some(b"\\")).unwrap()).unwrap();
        assert_eq!(of("a%_(b|c).[x%]"), "^(?:a.*.(?:b|c)\\.[x%])$");
        assert_eq!(of("\\%"), "^(?:\\%)$");
        assert!(similar(b"a", Some(b"ab")).is_err());
        assert!(matches(b"ab", b"^A", true).unwrap() && !matches(b"ab", b"^A", false).unwrap());
    }
}
