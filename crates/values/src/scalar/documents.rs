//! Makes documents of values: `to_json`, `json_build_array`, `json_build_object`, `json_agg` and theirs
//! of `jsonb`.
//!
//! Values come as a list of items (`super::items`) that have their JSON in them.

use crate::error::{no_such_operation, too_large};
use crate::json::{canonical, number, quote};
use crate::list::items;
use crate::{Env, Error, Result, Value, format_text};
use contract::{Op, TypeCode};

/// The operations of this file.
pub(crate) fn apply(op: Op, ret: TypeCode, args: &[&Value], env: &Env) -> Result<Value> {
    match (op, args) {
        (Op::JsonItem, [v]) => {
            let mut shown = Vec::new();
            item(v, env, &mut shown);
            let mut out = format!("{}:", shown.len()).into_bytes();
            out.extend(shown);
            Ok(Value::Text(sized(out)?.into()))
        }
        (Op::JsonArray | Op::JsonbArray, [Value::Text(list)]) => {
            document(array(&items(list)?), ret)
        }
        (Op::JsonObject | Op::JsonbObject, [Value::Text(list)]) => {
            let list = items(list)?;
            complete(&list, ret)?;
            document(pairs(&list, &BUILT)?, ret)
        }
        (Op::JsonPairs | Op::JsonbPairs, [Value::Text(list)]) => {
            let list = items(list)?;
            if list.iter().step_by(2).any(Option::is_none) {
                return Err(Error::new(b"22023", "field name must not be null"));
            }
            document(pairs(&list, &GATHERED)?, ret)
        }
        (Op::JsonRow, [Value::Text(list)]) => document(pairs(&items(list)?, &ROW)?, ret),
        (Op::JsonRows, [Value::Text(list)]) => document(rows(&items(list)?), ret),
        (Op::ToJson | Op::ToJsonb, [Value::Text(list)]) => match items(list)?[..] {
            [Some(item)] => document(item.to_vec(), ret),
            _ => Err(no_such_operation()),
        },
        _ => Err(no_such_operation()),
    }
}

fn sized(s: Vec<u8>) -> Result<Vec<u8>> {
    match s.len() > crate::text::MAX_BYTES {
        true => Err(too_large()),
        false => Ok(s),
    }
}

fn document(text: Vec<u8>, ret: TypeCode) -> Result<Value> {
    Ok(match ret {
        TypeCode::Jsonb => Value::Jsonb(canonical(&sized(text)?)?),
        _ => Value::Json(sized(text)?.into()),
    })
}

/// The JSON of a value.
fn item(v: &Value, env: &Env, out: &mut Vec<u8>) {
    let text = |v: &Value| match v {
        // Times of JSON are ISO's, whatever the session's style.
        Value::Date(_) => format_text(v, &env.iso()),
        Value::Timestamp(_) | Value::Timestamptz(_) => moment(&format_text(v, &env.iso())),
        v => format_text(v, env),
    };
    match v {
        Value::Bool(b) => out.extend_from_slice(if *b { b"true" } else { b"false" }),
        Value::Int2(_) | Value::Int4(_) | Value::Int8(_) => out.extend(text(v)),
        Value::Float4(_) | Value::Float8(_) | Value::Numeric(_) => number(&text(v), out),
        Value::Json(s) | Value::Jsonb(s) => out.extend_from_slice(s),
        v => quote(&text(v), out),
    }
}

/// A timestamp with `T` before the time, and minutes in its zone.
fn moment(shown: &[u8]) -> Vec<u8> {
    let Some(blank) = shown.iter().position(|b| *b == b' ') else {
        return shown.to_vec();
    };
    let (date, time) = shown.split_at(blank);
    let time = time.get(1..).unwrap_or_default();
    let end = time.iter().position(|b| *b == b' ').unwrap_or(time.len());
    let (time, era) = time.split_at(end);
    let zone = time.iter().position(|b| matches!(b, b'+' | b'-'));
    let hours_only = zone.is_some_and(|at| !time[at..].contains(&b':'));
    let minutes: &[u8] = if hours_only { b":00" } else { b"" };
    [date, b"T", time, minutes, era].concat()
}

fn array(items: &[Option<&[u8]>]) -> Vec<u8> {
    let items: Vec<&[u8]> = items.iter().map(|i| i.unwrap_or(b"null")).collect();
    [b"[", items.join(&b", "[..]).as_slice(), b"]"].concat()
}

/// Like an array, but with each row on a line of its own.
fn rows(items: &[Option<&[u8]>]) -> Vec<u8> {
    let mut out = b"[".to_vec();
    for (at, item) in items.iter().enumerate() {
        out.extend_from_slice(match (at, item) {
            (0, _) => b"",
            (_, None) => b", ",
            (_, Some(_)) => b", \n ",
        });
        out.extend_from_slice(item.unwrap_or(b"null"));
    }
    out.push(b']');
    out
}

/// What PostgreSQL writes before the first key, between pairs, behind a key, and at the end.
type Marks = [&'static [u8]; 4];

const BUILT: Marks = [b"{", b", ", b" : ", b"}"];
const GATHERED: Marks = [b"{ ", b", ", b" : ", b" }"];
const ROW: Marks = [b"{", b",", b":", b"}"];

/// Refuses arguments of which one is missing, or a key is NULL.
fn complete(items: &[Option<&[u8]>], ret: TypeCode) -> Result<()> {
    if !items.len().is_multiple_of(2) {
        return Err(Error::new(
            b"22023",
            "argument list must have even number of elements",
        ));
    }
    let Some(at) = items.iter().step_by(2).position(Option::is_none) else {
        return Ok(());
    };
    let number = 2 * at + 1;
    Err(match ret {
        TypeCode::Jsonb => Error::new(b"22023", format!("argument {number}: key must not be null")),
        _ => Error::new(b"22023", format!("argument {number} cannot be null"))
            .hint("Object keys should be text."),
    })
}

/// Keys and values in turn.
fn pairs(items: &[Option<&[u8]>], marks: &Marks) -> Result<Vec<u8>> {
    let [open, between, colon, close] = marks;
    let mut out = open.to_vec();
    for (at, pair) in items.chunks(2).enumerate() {
        let [Some(key), value] = pair else {
            return Err(no_such_operation());
        };
        out.extend_from_slice(if at == 0 { b"" } else { between });
        match key.first() {
            // Names of columns are not JSON yet.
            _ if *marks == ROW => quote(key, &mut out),
            Some(b'"') => out.extend_from_slice(key),
            Some(b'{' | b'[') => {
                return Err(Error::new(
                    b"22023",
                    "key value must be scalar, not array, composite, or json",
                ));
            }
            _ => quote(key, &mut out),
        }
        out.extend_from_slice(colon);
        out.extend_from_slice(value.unwrap_or(b"null"));
    }
    out.extend_from_slice(close);
    Ok(out)
}
