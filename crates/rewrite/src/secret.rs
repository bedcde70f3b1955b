//! `CREATE TABLE t (c int SECRET)` (SecuDB, section 3.4.1): the type is replaced by its protected
//! counterpart, and whoever creates the column owns it (docs/security.md).
//!
//! Invariant: the word is recognised only after a column name and a type that has a protected
//! counterpart, where it would be an error in PostgreSQL; everything else is left to PostgreSQL.

use crate::analysis::Analysis;
use crate::edit::{Edit, Piece};
use crate::effect::Effect;
use crate::tokens::Tokens;
use grant::{Column, Grant};
use pg_query::protobuf::Token;
use std::ops::Range;
use std::sync::Arc;

/// Plain types as written, and their protected counterparts.
const TWINS: [(&str, &str); 33] = [
    ("bool", "enc_bool"),
    ("boolean", "enc_bool"),
    ("smallint", "enc_int2"),
    ("int2", "enc_int2"),
    ("int", "enc_int4"),
    ("integer", "enc_int4"),
    ("int4", "enc_int4"),
    ("bigint", "enc_int8"),
    ("int8", "enc_int8"),
    ("real", "enc_float4"),
    ("float4", "enc_float4"),
    ("float8", "enc_float8"),
    ("double precision", "enc_float8"),
    ("numeric", "enc_numeric"),
    ("decimal", "enc_numeric"),
    ("text", "enc_text"),
    ("varchar", "enc_varchar"),
    ("character varying", "enc_varchar"),
    ("bpchar", "enc_bpchar"),
    ("bytea", "enc_bytea"),
    ("date", "enc_date"),
    ("time", "enc_time"),
    ("time without time zone", "enc_time"),
    ("timestamp", "enc_timestamp"),
    ("timestamp without time zone", "enc_timestamp"),
    ("timestamptz", "enc_timestamptz"),
    ("timestamp with time zone", "enc_timestamptz"),
    ("interval", "enc_interval"),
    ("uuid", "enc_uuid"),
    ("json", "enc_json"),
    ("jsonb", "enc_jsonb"),
    ("char", "enc_bpchar"),
    ("character", "enc_bpchar"),
];

/// A column declared SECRET.
struct Found {
    /// Range of its type and the word.
    clause: Range<usize>,
    /// The protected type.
    twin: String,
    name: String,
}

/// The columns of a text that are declared SECRET.
pub(crate) struct Secrets {
    found: Vec<Found>,
    /// The text with the protected types, padded with blanks so that positions do not change.
    pub plain: String,
}

/// The first token of the column definition that contains this token, outside nested parentheses.
fn beginning(tokens: &Tokens, word: usize) -> Option<usize> {
    let mut deep = 0;
    let mut at = word;
    loop {
        let before = at.checked_sub(1)?;
        match tokens.kind(before) {
            Token::Ascii41 => deep += 1,
            Token::Ascii40 if deep > 0 => deep -= 1,
            Token::Ascii40 | Token::Ascii44 if deep == 0 => return Some(at),
            Token::AddP | Token::Column if deep == 0 => return Some(at),
            Token::Exists if deep == 0 => return Some(at),
            Token::Ascii59 => return None,
            _ => {}
        }
        at = before;
    }
}

impl Secrets {
    /// The columns, if the text creates or alters a table and there are any.
    pub fn of(sql: &str, tokens: &Tokens) -> Option<Secrets> {
        let making = matches!(tokens.kind(0), Token::Create | Token::Alter);
        let table = (1..4).any(|at| tokens.kind(at) == Token::Table);
        if !making || !table {
            return None;
        }
        let said = |at: usize| sql.get(tokens.range(at)).unwrap_or_default();
        let words = (0..tokens.len()).filter(|at| said(*at).eq_ignore_ascii_case("secret"));
        let found: Vec<Found> = words
            .filter_map(|word| {
                let first = beginning(tokens, word)?;
                let from = tokens.range(first + 1).start;
                let written = sql.get(from..tokens.range(word).start)?.trim();
                let name = said(first);
                let name = match name.strip_prefix('"').and_then(|n| n.strip_suffix('"')) {
                    Some(quoted) => quoted.replace("\"\"", "\""),
                    None => name.to_lowercase(),
                };
                Some(Found {
                    clause: from..tokens.range(word).end,
                    twin: twin(written)?,
                    name,
                })
            })
            .collect();
        if found.is_empty() {
            return None;
        }
        let mut plain = sql.to_owned();
        for Found { clause, twin, .. } in &found {
            // `char SECRET` is shorter than its replacement; the length is left to the server.
            let fits = twin.len() <= clause.len();
            let twin = twin.split('(').next().filter(|_| !fits).unwrap_or(twin);
            let blanks = clause.len().checked_sub(twin.len())?;
            let filled = format!("{twin}{}", " ".repeat(blanks));
            plain.replace_range(clause.clone(), &filled);
        }
        Some(Secrets { found, plain })
    }

    /// The analysis of the plain text with the types in place, and the columns claimed.
    pub fn replace(&self, mut list: Vec<Analysis>) -> Vec<Analysis> {
        list.iter_mut().for_each(|analysis| self.put(analysis));
        list
    }

    fn put(&self, analysis: &mut Analysis) {
        let range = analysis.statement.range.clone();
        let here = |found: &&Found| range.contains(&found.clause.start);
        let found: Vec<&Found> = self.found.iter().filter(here).collect();
        if found.is_empty() {
            return;
        }
        analysis.unique = true;
        let made = analysis.effects.iter().filter_map(|effect| match effect {
            Effect::Relation(relation) => Some(relation),
            _ => None,
        });
        let claims = made.flat_map(|r| {
            let column = |found: &&Found| Column::new(&r.schema, &r.name, &found.name);
            found.iter().map(column).collect::<Vec<Column>>()
        });
        let claims = claims.collect();
        let statement = &mut analysis.statement;
        statement.edits.extend(found.iter().map(|found| Edit {
            range: found.clause.clone(),
            pieces: vec![Piece::Text(found.twin.clone())],
        }));
        statement.edits.sort_by_key(|edit| edit.range.start);
        let grant = statement.grant.as_ref().map(|bytes| Grant::decode(bytes));
        if let Some(Ok(mut grant)) = grant {
            grant.claims = claims;
            statement.grant = Some(Arc::from(grant.encode()));
        }
    }
}

/// The protected counterpart of a type, with its modifier.
fn twin(written: &str) -> Option<String> {
    let (name, modifier) = match written.split_once('(') {
        Some((name, rest)) => (name.trim(), format!("({}", rest.strip_suffix(')')?)),
        None => (written, String::new()),
    };
    let words: Vec<String> = name.split_whitespace().map(str::to_lowercase).collect();
    let name = words.join(" ");
    if name.starts_with("enc_") {
        return Some(format!("{name}{}", closed(&modifier)));
    }
    let (_, twin) = TWINS.iter().find(|(plain, _)| *plain == name)?;
    // Without a length PostgreSQL means one character.
    let one = matches!(name.as_str(), "char" | "character") && modifier.is_empty();
    let modifier = if one { "(1".to_owned() } else { modifier };
    Some(format!("{twin}{}", closed(&modifier)))
}

fn closed(modifier: &str) -> String {
    match modifier {
        "" => String::new(),
        open => format!("{open})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(sql: &str) -> Option<String> {
        Secrets::of(sql, &Tokens::scan(sql).ok()?).map(|found| {
            assert_eq!(found.plain.len(), sql.len());
            let words: Vec<&str> = found.plain.split_whitespace().collect();
            words.join(" ")
        })
    }

    /// The paper's statement, other types and places; a column, a type or a table of that name
    /// is none of ours.
    #[test]
    fn columns() {
        for (sql, want) in [
            (
                "CREATE TABLE T(c1 INT SECRET, c2 VARCHAR);",
                Some("CREATE TABLE T(c1 enc_int4 , c2 VARCHAR);"),
            ),
            (
                "create temp table t (a int, \"B c\" numeric(5, 1) secret NOT NULL)",
                Some("create temp table t (a int, \"B c\" enc_numeric(5, 1) NOT NULL)"),
            ),
            (
                "CREATE TABLE t (a character varying(20) SECRET, b char SECRET, c timestamp with time zone SECRET)",
                Some("CREATE TABLE t (a enc_varchar(20) , b enc_bpchar , c enc_timestamptz )"),
            ),
            (
                "ALTER TABLE t ADD COLUMN a date SECRET",
                Some("ALTER TABLE t ADD COLUMN a enc_date"),
            ),
            (
                "ALTER TABLE t ADD a enc_date SECRET",
                Some("ALTER TABLE t ADD a enc_date"),
            ),
            ("CREATE TABLE t (secret int)", None),
            ("CREATE TABLE t (a secret)", None),
            ("CREATE TABLE t (a box SECRET)", None),
            ("CREATE TABLE t AS SELECT 1, 2 FROM s secret", None),
            ("SELECT date secret", None),
            ("INSERT INTO t VALUES ('a int secret')", None),
        ] {
            assert_eq!(plain(sql).as_deref(), want, "{sql}");
        }
    }
}
