//! The context of an expression in the tree of PL/pgSQL's parser.
//!
//! `CASE x WHEN …` is taken apart here, because PL/pgSQL compares a variable of its own.
//!
//! Does not: look at the expression itself.

use super::Body;
use crate::relation::ColumnType;
use crate::tokens::Tokens;
use serde_json::Value;

/// The context of an expression in PL/pgSQL, as far as it matters here.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    /// It is the routine's result.
    pub result: bool,
    /// Nobody can tell what becomes of its value.
    pub loose: bool,
    /// Its value may go into variables.
    pub flows: bool,
    /// It is the query of a cursor.
    pub cursor: bool,
}

impl Place {
    fn of_no_cursor(self) -> Place {
        Place {
            cursor: false,
            ..self
        }
    }

    /// The context of the expressions below this field, whose value this is.
    pub fn within(self, key: &str, value: &Value) -> Place {
        let around = self;
        let loose = Place {
            loose: true,
            ..around
        };
        match key {
            "body" | "stmts" | "then_body" | "else_body" | "else_stmts" | "action" => {
                Place::default()
            }
            "PLpgSQL_stmt_return" | "PLpgSQL_stmt_return_next" | "PLpgSQL_stmt_return_query" => {
                Place {
                    result: true,
                    ..around
                }
            }
            "dynquery" | "params" if around.result => loose,
            "PLpgSQL_stmt_foreach_a" => Place {
                flows: true,
                ..around
            },
            "PLpgSQL_stmt_open" => Place {
                cursor: true,
                ..loose
            },
            "argquery" | "dynquery" if around.cursor => loose.of_no_cursor(),
            "PLpgSQL_stmt_dynexecute" => loose,
            "PLpgSQL_stmt_dynfors" | "PLpgSQL_stmt_forc" => loose,
            // WHEN compares with the expression after CASE.
            "PLpgSQL_stmt_case" if value.get("t_expr").is_some_and(|e| !names_event(e)) => loose,
            _ => around,
        }
    }
}

/// `CASE TG_OP` and similar: information about the statement that fired the trigger.
fn names_event(expression: &Value) -> bool {
    let query = expression.pointer("/PLpgSQL_expr/query");
    let name = query.and_then(Value::as_str).unwrap_or_default();
    let name = name.trim().to_ascii_lowercase();
    matches!(
        name.as_str(),
        "tg_op" | "tg_when" | "tg_level" | "tg_table_name" | "tg_nargs"
    )
}

impl Body<'_> {
    /// `CASE x WHEN 'a' THEN …`, if the expression has no constants: they would be found once for each
    /// WHEN. The parser's text of WHEN is `"__Case__Variable_4__" IN ('a')`.
    pub(super) fn chosen(&mut self, statement: &Value) -> bool {
        let query = |node: &Value| {
            let query = node.pointer("/PLpgSQL_expr/query");
            query.and_then(Value::as_str).map(str::to_owned)
        };
        let Some(subject) = statement.get("t_expr").and_then(query) else {
            return false;
        };
        let number = statement.get("t_varno").and_then(Value::as_u64);
        let constants =
            Tokens::scan(&subject).map_or(1, |tokens| tokens.values(&(0..subject.len())).count());
        let Some(number) = number.filter(|_| constants == 0) else {
            return false;
        };
        let variable = format!("\"__Case__Variable_{number}__\"");
        let whens = statement.get("case_when_list").and_then(Value::as_array);
        for when in whens.into_iter().flatten() {
            let when = when.get("PLpgSQL_case_when").unwrap_or(when);
            if let Some(test) = when.get("expr").and_then(query) {
                let test = test.replace(&variable, &format!("({subject})"));
                let node = serde_json::json!({ "query": test });
                self.expression(&node, Place::default());
            }
            if let Some(statements) = when.get("stmts") {
                self.walk(statements, Place::default());
            }
        }
        for part in ["t_expr", "else_stmts"] {
            if let Some(part) = statement.get(part) {
                self.walk(part, Place::default());
            }
        }
        true
    }

    /// `emp.name%TYPE`: the type that the column has now.
    pub(super) fn type_of_column(&self, column: &str) -> Option<ColumnType> {
        let mut path = column
            .split('.')
            .map(|word| word.trim().trim_matches('"'))
            .rev();
        let (column, table) = (path.next()?, path.next()?);
        let relation = self.schema.relation(path.next(), table)?;
        let mut columns = relation.columns.iter().flatten();
        let found = columns.find(|c| c.name == column)?;
        matches!(found.ty, ColumnType::Enc(_)).then(|| found.ty.clone())
    }
}
