//! The context of an expression in the tree of PL/pgSQL's parser.
//!
//! Does not: look at the expression itself.

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
}

impl Place {
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
            "PLpgSQL_stmt_dynexecute" | "PLpgSQL_stmt_open" => loose,
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
