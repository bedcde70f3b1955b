//! `confide.as_of(t, time)` in `FROM`: the rows of a ledger table at some time (docs/ledger.md).
//! The call is replaced by a query over the view of all versions, which the server maintains with
//! the table. `confide.as_of(NULL::t, time)`, which the server also supports, is equivalent.
//!
//! Invariant: the query has the names that the call had, and evaluates the time once.

use super::{Infer, Res, names};
use crate::refusal::Refusal;
use crate::relation::{LEDGER_COLUMNS, Relation};
use crate::scope::{Cols, Entry, Frame};
use pg_query::protobuf::{FuncCall, RangeFunction, RangeVar, Token};
use pg_query::{Node, NodeEnum};
use std::ops::Range;
use std::rc::Rc;

/// Suffix of the view of all versions of a table.
const VIEW_SUFFIX: &str = "_ledger";

/// Positions of the parts of a call.
struct Places {
    /// From its start to the comma.
    head: Range<usize>,
    /// The closing parenthesis.
    tail: Range<usize>,
}

impl Infer<'_> {
    /// The table that a call of `confide.as_of` stands for.
    pub fn as_of(&mut self, f: &RangeFunction) -> Res<Option<Frame>> {
        let Some(call) = only_call(f) else {
            return Ok(None);
        };
        if names(&call.funcname) != ["confide", "as_of"] {
            return Ok(None);
        }
        // The server would look for a column with the table's name.
        self.as_of_call(f, call)
            .map(Some)
            .map_err(Refusal::for_good)
    }

    fn as_of_call(&mut self, f: &RangeFunction, call: &FuncCall) -> Res<Frame> {
        let [table, time] = call.args.as_slice() else {
            return Err(misused(call));
        };
        let table = table_of(table).ok_or_else(|| misused(call))?;
        let relation = self.relation(&RangeVar {
            location: call.location,
            ..table.clone()
        })?;
        self.versions(&relation, call)?;
        let val = self.expr(time)?;
        if self.holds_enc(&val) {
            return Err(Refusal::unsupported("confide.as_of takes a plain time").at(call.location));
        }
        self.note_plain(&val);
        let places = self.places(call).ok_or_else(|| misused(call))?;
        self.replace(places.head, &before(&relation, f.lateral));
        self.replace(places.tail, after(f.alias.is_none()));
        if f.alias.as_ref().is_some_and(|a| !a.colnames.is_empty()) {
            self.authority.mention_all();
        }
        let cols: Cols = self.columns(&relation);
        let alias = f.alias.as_ref();
        Ok(Frame::of(Entry {
            alias: alias.map_or_else(|| "as_of".into(), |a| a.aliasname.clone()),
            schema: None,
            cols: Rc::new(super::from::renamed(cols, alias)),
        }))
    }

    /// Names the view, so that the statement may read it.
    fn versions(&mut self, relation: &Relation, call: &FuncCall) -> Res<()> {
        if !relation.is_ledger() {
            let text = format!("\"{}\" is not a ledger table", relation.name);
            return Err(Refusal::new("42809", text).at(call.location).refresh());
        }
        if relation.kind == 'p' {
            return Err(
                Refusal::unsupported("confide.as_of does not work on partitioned tables")
                    .at(call.location)
                    .hint("Each partition is a ledger of its own: ask for each."),
            );
        }
        self.relation(&RangeVar {
            schemaname: relation.schema.clone(),
            relname: format!("{}{VIEW_SUFFIX}", relation.name),
            location: call.location,
            ..RangeVar::default()
        })?;
        Ok(())
    }

    fn places(&self, call: &FuncCall) -> Option<Places> {
        let start = usize::try_from(call.location).ok()?;
        let mut open = self.tokens.at(start)?;
        while self.tokens.kind(open) != Token::Ascii40 {
            open += 1;
        }
        let close = self.tokens.closing(open)?;
        let mut depth = 0usize;
        let comma = (open + 1..close).find(|at| match self.tokens.kind(*at) {
            Token::Ascii40 | Token::Ascii91 => {
                depth += 1;
                false
            }
            Token::Ascii41 | Token::Ascii93 => {
                depth = depth.saturating_sub(1);
                false
            }
            Token::Ascii44 => depth == 0,
            _ => false,
        })?;
        Some(Places {
            head: start..self.tokens.range(comma).end,
            tail: self.tokens.range(close),
        })
    }
}

/// The call, if it is all there is in the FROM item.
fn only_call(f: &RangeFunction) -> Option<&FuncCall> {
    if f.is_rowsfrom || f.ordinality || !f.coldeflist.is_empty() {
        return None;
    }
    let [item] = f.functions.as_slice() else {
        return None;
    };
    match &super::oper::list(Some(item)).first()?.node {
        Some(NodeEnum::FuncCall(call)) => Some(call),
        _ => None,
    }
}

/// `t`, `s.t` or `NULL::t`.
fn table_of(node: &Node) -> Option<RangeVar> {
    let path = match node.node.as_ref()? {
        NodeEnum::ColumnRef(c) => names(&c.fields),
        NodeEnum::TypeCast(c) => match &c.arg.as_deref()?.node {
            Some(NodeEnum::AConst(value)) if value.isnull => names(&c.type_name.as_ref()?.names),
            _ => return None,
        },
        _ => return None,
    };
    let (schema, name) = match path.as_slice() {
        [name] => ("", *name),
        [schema, name] => (*schema, *name),
        _ => return None,
    };
    Some(RangeVar {
        schemaname: schema.to_owned(),
        relname: name.to_owned(),
        ..RangeVar::default()
    })
}

fn before(relation: &Relation, lateral: bool) -> String {
    let mut text = String::from(if lateral {
        "(SELECT "
    } else {
        "LATERAL (SELECT "
    });
    for (at, column) in relation.columns.iter().flatten().enumerate() {
        let name = quoted(&column.name);
        text += if at > 0 { ", l." } else { "l." };
        text += &name;
        // From this type the server recognises that the column is not part of a star
        // (hooks/stars.c).
        if column.name == LEDGER_COLUMNS[0] {
            text += "::pg_catalog.ledger_sn AS sn";
        }
    }
    let view = format!("{}{VIEW_SUFFIX}", relation.name);
    text + &format!(
        " FROM {}.{} AS l, (SELECT (",
        quoted(&relation.schema),
        quoted(&view)
    )
}

fn after(name: bool) -> &'static str {
    match name {
        true => {
            ")::pg_catalog.timestamptz) AS a (t) WHERE l.valid_from <= a.t AND a.t < l.valid_to) AS as_of"
        }
        false => {
            ")::pg_catalog.timestamptz) AS a (t) WHERE l.valid_from <= a.t AND a.t < l.valid_to)"
        }
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn misused(call: &FuncCall) -> Refusal {
    Refusal::new("42601", "confide.as_of takes a ledger table and a time")
        .at(call.location)
        .hint("Write FROM confide.as_of(table, time).")
}
