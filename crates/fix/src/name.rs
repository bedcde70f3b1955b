//! Names of relations and columns: read as SQL reads them, and quoted.

use crate::Refused;
use serde::{Deserialize, Serialize};

/// A relation, always with its schema.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Relation {
    schema: String,
    name: String,
}

/// Schemas whose relations nobody maintains by a template.
const SYSTEM: [&str; 3] = ["pg_catalog", "pg_toast", "information_schema"];

impl Relation {
    /// Quoted, to stand in a statement.
    pub(crate) fn quoted(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.name))
    }

    /// The relation of this name beside this one.
    pub(crate) fn beside(&self, name: &str) -> Relation {
        Relation {
            schema: self.schema.clone(),
            name: name.to_owned(),
        }
    }

    /// Its schema.
    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// Its name without the schema.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl TryFrom<String> for Relation {
    type Error = String;

    fn try_from(text: String) -> Result<Relation, String> {
        let parts = parts(&text).ok_or_else(|| format!("\"{text}\" is no name"))?;
        let [schema, name] = <[String; 2]>::try_from(parts)
            .map_err(|_| format!("\"{text}\": expected schema.name"))?;
        Ok(Relation { schema, name })
    }
}

impl From<Relation> for String {
    fn from(relation: Relation) -> String {
        relation.quoted()
    }
}

/// Refuses relations of the system.
pub(crate) fn users(relation: &Relation) -> Result<(), Refused> {
    let schema = relation.schema.as_str();
    if SYSTEM.contains(&schema) || schema.starts_with("pg_temp") || schema.starts_with("pg_toast") {
        let what = format!("{} is a relation of the system", relation.quoted());
        return Err(Refused::new("user-relation", what));
    }
    Ok(())
}

/// A name in double quotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as an SQL literal that reads the same whatever `standard_conforming_strings` is.
pub fn literal(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('\'', "''");
    format!("E'{escaped}'")
}

/// The parts between dots; what is not in double quotes is folded to lower case.
fn parts(text: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let (part, after) = match rest.strip_prefix('"') {
            Some(inner) => in_quotes(inner)?,
            None => {
                let end = rest.find('.').unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
                let first = word.chars().next()?;
                if !word.chars().all(plain) || first.is_ascii_digit() {
                    return None;
                }
                (word.to_lowercase(), after)
            }
        };
        if part.is_empty() || part.contains('\0') {
            return None;
        }
        parts.push(part);
        match after.strip_prefix('.') {
            Some(more) => rest = more,
            None if after.is_empty() => return Some(parts),
            None => return None,
        }
    }
}

fn in_quotes(mut rest: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    loop {
        let (part, after) = rest.split_once('"')?;
        name.push_str(part);
        match after.strip_prefix('"') {
            None => return Some((name, after)),
            Some(more) => {
                name.push('"');
                rest = more;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a file says as a name is one name in a statement, whatever it holds. With the bug
    /// the rest of the text is a statement of its own.
    #[test]
    fn names() {
        for (text, quoted) in [
            ("app.t", Some("\"app\".\"t\"")),
            ("App.\"T t\"", Some("\"app\".\"T t\"")),
            ("\"a\"\"b\".\"c.d\"", Some("\"a\"\"b\".\"c.d\"")),
            (
                "app.\"t; DROP TABLE x\"",
                Some("\"app\".\"t; DROP TABLE x\""),
            ),
            ("t", None),
            ("a.b.c", None),
            ("app.t; DROP TABLE x", None),
            ("app.t\"", None),
            ("app.\"t", None),
            ("app.\"\"", None),
            ("app.t -- ", None),
            ("", None),
            (".", None),
        ] {
            let read = Relation::try_from(text.to_owned()).ok();
            assert_eq!(read.map(|r| r.quoted()).as_deref(), quoted, "{text}");
        }
        assert_eq!(literal("a'b\\c"), "E'a''b\\\\c'");
    }

    #[test]
    fn of_the_system() {
        for text in [
            "pg_catalog.pg_class",
            "pg_toast.x",
            "pg_temp_3.t",
            "\"pg_catalog\".x",
        ] {
            let relation = Relation::try_from(text.to_owned()).unwrap();
            assert_eq!(users(&relation).unwrap_err().rule, "user-relation");
        }
    }
}
