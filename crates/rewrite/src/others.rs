//! What the body of a routine does with its plain arguments, whoever has created it: determines
//! which arguments are combined with something protected, for the routine's callers
//! (`infer/others`).
//!
//! Bodies that the server stores parsed are not covered.
//!
//! Invariant: if a body names something protected and cannot be followed, all plain arguments count
//! as combined with it.

use crate::body::definition::{argument, definition, text_argument};
use crate::body::{Body, Variable};
use crate::called::words_of;
use crate::infer::named_argument;
use crate::reach::Reach;
use crate::relation::ColumnType;
use crate::schema::{Routine, Schema, UserFunction};
use crate::statement::Prepared;
use crate::tokens::Tokens;
use pg_query::protobuf::Token;
use std::collections::BTreeSet;

/// The names of the routine's plain arguments that are combined with something protected.
pub(crate) fn meeting(
    schema: &Schema,
    routine: &UserFunction,
    following: &[Routine],
) -> BTreeSet<String> {
    let key = (routine.schema.clone(), routine.name.clone());
    // The effects of a recursive call are found where the recursion begins.
    if following.contains(&key) || !reaches(schema, routine, &mut Vec::new()) {
        return BTreeSet::new();
    }
    let plain: BTreeSet<String> = (0..routine.args.len())
        .filter(|at| routine.args.get(*at).is_some_and(|ty| !ty.protected()))
        .map(|at| named_argument(routine, at))
        .collect();
    let (Some(source), none) = (&routine.source, Prepared::default()) else {
        return BTreeSet::new();
    };
    let (Some(mut body), Ok(tokens)) = (body(schema, routine), Tokens::scan(&source.text)) else {
        return plain;
    };
    // A string may be executed, with anything as its parameters.
    let reach = Reach::of(&[schema], &none);
    let whole = 0..source.text.len();
    let strings = tokens.values(&whole);
    let mut strings = strings.filter(|(token, _)| matches!(token, Token::Sconst | Token::Usconst));
    if strings.any(|(_, range)| reach.words(source.text.get(range).unwrap_or_default())) {
        return plain;
    }
    body.following = following.iter().cloned().chain([key]).collect();
    &body.meeting() & &plain
}

/// The body of a routine, with its arguments.
fn body<'s>(schema: &'s Schema, routine: &UserFunction) -> Option<Body<'s>> {
    let source = routine.source.as_ref()?;
    let mut body = match source.language.as_str() {
        "sql" => Some(Body::of_sql(schema, &source.text, meeting)),
        "plpgsql" => definitions(routine, &source.text)
            .iter()
            .find_map(|create| Body::of_plpgsql(schema, create, &source.text, meeting)),
        _ => None,
    }?;
    let arguments = routine.args.iter().enumerate();
    let arguments =
        arguments.map(|(at, ty)| Variable::argument(named_argument(routine, at), ty.clone()));
    body.declare_all(arguments.collect());
    Some(body)
}

/// For each cursor that one of these routines opens, or one that they call, which columns of its
/// rows may be protected.
pub(crate) fn opened(schema: &Schema, called: &BTreeSet<String>) -> Vec<Vec<bool>> {
    let mut left: Vec<String> = called.iter().cloned().collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    while let Some(name) = left.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        for routine in schema.all_bodies(&name) {
            let words = words_of(routine);
            if words.contains("open") {
                found.extend(body(schema, routine).iter().flat_map(Body::cursors));
            }
            left.extend(words);
        }
    }
    found.retain(|columns: &Vec<bool>| columns.contains(&true));
    found
}

/// Whether the body, or that of a routine that it calls, names something protected.
fn reaches(schema: &Schema, routine: &UserFunction, seen: &mut Vec<Routine>) -> bool {
    let key = (routine.schema.clone(), routine.name.clone());
    let Some(source) = routine.source.as_ref().filter(|_| !seen.contains(&key)) else {
        return false;
    };
    seen.push(key);
    if Reach::of(&[schema], &Prepared::default()).words(&source.text) {
        return true;
    }
    let names = words_of(routine);
    let mut routines = names.iter().flat_map(|name| schema.all_bodies(name));
    routines.any(|routine| reaches(schema, routine, seen))
}

/// Statements as part of which PL/pgSQL's parser can parse the body: the return type determines
/// which form of RETURN it accepts.
fn definitions(routine: &UserFunction, text: &str) -> Vec<String> {
    let name_of = |at: usize| routine.arg_names.get(at).map_or("", String::as_str);
    let arguments = routine.args.iter().enumerate().map(|(at, ty)| match ty {
        ColumnType::Plain(_, ty) if ty.rsplit('.').next() == Some("refcursor") => {
            argument(name_of(at), "refcursor")
        }
        _ => text_argument(name_of(at)),
    });
    let out = routine.out.iter().map(|(name, _)| name);
    let out = out.filter(|name| !name.is_empty() && !routine.arg_names.contains(name));
    let out = out.map(|name| format!("OUT {}", text_argument(name)));
    let arguments: Vec<String> = arguments.chain(out).collect();
    let results: &[&str] = match routine.out.is_empty() {
        true => &["RETURNS text", "RETURNS SETOF text", "RETURNS void"],
        false => &["", "RETURNS SETOF record"],
    };
    let create = |result: &&str| definition(&arguments, result, text);
    results.iter().filter_map(create).collect()
}
