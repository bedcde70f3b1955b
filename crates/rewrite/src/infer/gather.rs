//! Aggregates that make a document of many rows (`json_agg`, `json_object_agg`), and documents made of
//! whole rows (`row_to_json`).
//!
//! Each row's values become items of a list, which `string_agg` puts together. One function makes the
//! document of the list (values::scalar::documents).

use super::call::own_cast;
use super::{Infer, Res};
use crate::edit::{Edit, Form, Piece, Secret};
use crate::refusal::Refusal;
use crate::scope::{Col, Cols};
use crate::value::{Class, Val};
use contract::TypeCode;
use grant::family;
use pg_query::protobuf::{ColumnRef, FuncCall, SelectStmt, SubLink, Token};
use pg_query::{Node, NodeEnum};
use std::ops::Range;

const BEFORE_ITEM: &str = "coalesce(pg_catalog.enc_jsonitem((";
const BEFORE_DOCUMENT: &str = "coalesce(pg_catalog.enc_jsonitem(";

impl Infer<'_> {
    /// A call of such a function, if something protected goes into it.
    pub fn gathered(&mut self, name: &str, f: &FuncCall, vals: &[Val]) -> Res<Option<Val>> {
        if !vals.iter().any(|val| self.holds_enc(val)) || f.func_variadic {
            return Ok(None);
        }
        let ret = match name.contains("jsonb") {
            true => TypeCode::Jsonb,
            false => TypeCode::Json,
        };
        let written = match (name, vals) {
            ("row_to_json" | "to_json" | "to_jsonb", [row]) => self.row_document(f, row, ret),
            ("json_agg" | "jsonb_agg", [_]) | ("json_object_agg" | "jsonb_object_agg", [_, _]) => {
                if f.agg_distinct {
                    return Err(Refusal::unsupported(format!(
                        "{name} with DISTINCT does not work on protected values"
                    ))
                    .at(f.location)
                    .hint("Write SELECT DISTINCT in a subquery and aggregate its rows."));
                }
                self.document_of_rows(name, f, vals)
            }
            _ => None,
        };
        if written.is_none() {
            return Ok(None);
        }
        self.authority
            .does(family::COMPUTE | family::CAST | family::AGGREGATE);
        self.authority.takes_constants();
        for val in vals {
            self.protect(val)?;
        }
        Ok(Some(Val::enc(Some(ret))))
    }

    fn document_of_rows(&mut self, name: &str, f: &FuncCall, vals: &[Val]) -> Option<()> {
        let (open, close) = self.parentheses(f)?;
        let order = self.outer(open, close, Token::Order).next();
        let last = order.unwrap_or(close);
        let row = match f.args.as_slice() {
            [one] => self.row_pieces(one.node.as_ref()?, &vals[0]),
            _ => None,
        };
        let (function, before) = match (name, &row) {
            ("json_agg", Some(_)) => ("enc_jsonrows", BEFORE_DOCUMENT),
            ("jsonb_agg", Some(_)) => ("enc_jsonbarray", BEFORE_DOCUMENT),
            ("json_agg", None) => ("enc_jsonarray", BEFORE_ITEM),
            ("jsonb_agg", None) => ("enc_jsonbarray", BEFORE_ITEM),
            ("json_object_agg", _) => ("enc_jsonpairs", BEFORE_ITEM),
            _ => ("enc_jsonbpairs", BEFORE_ITEM),
        };
        let mut edits = vec![Edit {
            range: usize::try_from(f.location).ok()?..self.tokens.range(open).end,
            pieces: vec![Piece::Text(format!(
                "pg_catalog.{function}(pg_catalog.string_agg({before}"
            ))],
        }];
        let commas = self.outer(open, close, Token::Ascii44);
        let ends: Vec<usize> = commas.filter(|at| *at < last).chain([last]).collect();
        if ends.len() != vals.len() {
            return None;
        }
        for (val, at) in vals.iter().zip(ends) {
            let range = self.tokens.range(at);
            let cast = match row {
                Some(_) => String::new(),
                None => own_cast(val)?,
            };
            let mut pieces = vec![Piece::Text(format!("{cast}), "))];
            pieces.extend(self.constant_text(b"-", range.start));
            pieces.push(Piece::Text(match (at == last, order) {
                (false, _) => format!(") || {BEFORE_ITEM}"),
                (true, None) => "), NULL::pg_catalog.enc_text)".into(),
                (true, Some(_)) => "), NULL::pg_catalog.enc_text ORDER".into(),
            }));
            edits.push(Edit { range, pieces });
        }
        edits.extend(row.map(|(range, pieces)| Edit { range, pieces }));
        let end = self.end_of_aggregate(f, close)?;
        if end == close && order.is_none() {
            let last = edits.iter_mut().find(|e| e.range == self.tokens.range(end));
            last?.pieces.push(Piece::Text(")".into()));
        } else {
            edits.push(self.followed(end, ")"));
        }
        self.add_edits(edits);
        Some(())
    }

    /// A token and something behind it.
    fn followed(&self, at: usize, behind: &str) -> Edit {
        let range = self.tokens.range(at);
        let text = self.sql.get(range.clone()).unwrap_or_default();
        Edit {
            pieces: vec![Piece::Text(format!("{text}{behind}"))],
            range,
        }
    }

    /// The last token of an aggregate with its `FILTER (…)` and `OVER …`.
    fn end_of_aggregate(&self, f: &FuncCall, close: usize) -> Option<usize> {
        let mut end = close;
        for _ in 0..usize::from(f.agg_filter.is_some()) + usize::from(f.over.is_some()) {
            end = match self.tokens.kind(end + 2) {
                Token::Ascii40 => self.tokens.closing(end + 2)?,
                _ => end + 2,
            };
        }
        Some(end)
    }

    /// `row_to_json(t)`.
    fn row_document(&mut self, f: &FuncCall, row: &Val, ret: TypeCode) -> Option<()> {
        let [arg] = f.args.as_slice() else {
            return None;
        };
        let (range, pieces) = self.row_pieces(arg.node.as_ref()?, row)?;
        let (open, close) = self.parentheses(f)?;
        let head = usize::try_from(f.location).ok()?..self.tokens.range(open).end;
        let function = match ret {
            TypeCode::Jsonb => "pg_catalog.enc_tojsonb(pg_catalog.enc_jsonitem(",
            _ => "pg_catalog.enc_tojson(pg_catalog.enc_jsonitem(",
        };
        self.replace(head, function);
        self.add_edits(vec![Edit { range, pieces }]);
        self.replace(self.tokens.range(close), "))");
        Some(())
    }

    /// The document of a row that is named by its table, and where its name is.
    fn row_pieces(&self, node: &NodeEnum, row: &Val) -> Option<(Range<usize>, Vec<Piece>)> {
        let mut pieces = Vec::new();
        let Class::Row(fields) = &row.class else {
            return None;
        };
        let range = match node {
            NodeEnum::ColumnRef(c) => {
                let path: Vec<&str> = c.fields.iter().filter_map(name_of).collect();
                let (table, schema) = path.split_last()?;
                let schema = schema.last().copied();
                let mut frames = self.scopes.iter().rev();
                let entry = frames.find_map(|f| f.entry(schema, table))?;
                let (range, name) = self.named_row(c)?;
                self.push_row(name, &entry.cols, range.start, &mut pieces)?;
                range
            }
            NodeEnum::SubLink(s) => {
                let (range, name) = self.named_row(selected_row(s)?)?;
                let list = fields.iter().map(|(name, val)| Col {
                    name: name.clone(),
                    val: val.clone(),
                    own: false,
                });
                let cols = Cols {
                    list: list.collect(),
                    open: None,
                };
                self.push_row(name, &cols, range.start, &mut pieces)?;
                range
            }
            _ => return None,
        };
        Some((range, pieces))
    }

    /// `t` or `t.*`: where it is, and the name without the star.
    fn named_row(&self, c: &ColumnRef) -> Option<(Range<usize>, &str)> {
        let mut at = self.tokens.at(usize::try_from(c.location).ok()?)?;
        let start = self.tokens.range(at).start;
        let mut name = self.tokens.range(at).end;
        while at + 2 < self.tokens.len() && self.tokens.kind(at + 1) == Token::Ascii46 {
            at += 2;
            if self.tokens.kind(at) != Token::Ascii42 {
                name = self.tokens.range(at).end;
            }
        }
        Some((start..self.tokens.range(at).end, self.sql.get(start..name)?))
    }

    fn push_row(&self, name: &str, row: &Cols, at: usize, out: &mut Vec<Piece>) -> Option<()> {
        if row.list.is_empty() || row.open.is_some() {
            return None;
        }
        // A row that an outer join has not found is NULL as a whole.
        out.push(Piece::Text(format!(
            "(CASE WHEN ({name}) IS DISTINCT FROM NULL THEN pg_catalog.enc_jsonrow("
        )));
        for (
            index,
            Col {
                name: field, val, ..
            },
        ) in row.list.iter().filter(|c| !c.own).enumerate()
        {
            if index > 0 {
                out.push(Piece::Text(" || ".into()));
            }
            out.extend(self.constant_text(&key(field), at));
            let field = field.replace('"', "\"\"");
            let plain = !self.holds_enc(val);
            let item = json_of_field(&format!("({name}).\"{field}\""), val, plain)?;
            out.push(Piece::Text(format!(" || coalesce({item}, ")));
            out.extend(self.constant_text(b"-", at));
            out.push(Piece::Text(")".into()));
        }
        out.push(Piece::Text(") END)".into()));
        Some(())
    }

    /// A text that is no secret, as PostgreSQL takes it beside protected ones.
    fn constant_text(&self, text: &[u8], position: usize) -> Vec<Piece> {
        let secret = Secret {
            form: Form::Typed(TypeCode::Text, -1, text.to_vec()),
            position,
            meets: None,
            fits: None,
        };
        vec![
            Piece::Envelope(secret),
            Piece::Text("::pg_catalog.enc_text".into()),
        ]
    }

    fn add_edits(&mut self, edits: Vec<Edit>) {
        for edit in edits {
            if !self.edits.contains(&edit) {
                self.edits.push(edit);
            }
        }
    }
}

/// `(SELECT e FROM (SELECT … AS …) AS e)`, where all columns of the row are written.
fn selected_row(s: &SubLink) -> Option<&ColumnRef> {
    let select = select_of(s.subselect.as_deref()?)?;
    let ([target], [from]) = (select.target_list.as_slice(), select.from_clause.as_slice()) else {
        return None;
    };
    let (NodeEnum::ResTarget(target), NodeEnum::RangeSubselect(from)) =
        (target.node.as_ref()?, from.node.as_ref()?)
    else {
        return None;
    };
    let NodeEnum::ColumnRef(row) = target.val.as_deref()?.node.as_ref()? else {
        return None;
    };
    let [name] = row.fields.as_slice() else {
        return None;
    };
    let alias = from.alias.as_ref()?;
    let inner = select_of(from.subquery.as_deref()?)?;
    let written = |node: &Node| match &node.node {
        Some(NodeEnum::ResTarget(t)) => match t.val.as_deref().and_then(|v| v.node.as_ref()) {
            Some(NodeEnum::ColumnRef(c)) => c.fields.iter().all(|f| name_of(f).is_some()),
            Some(NodeEnum::AIndirection(_)) | None => false,
            Some(_) => true,
        },
        _ => false,
    };
    let all = !inner.target_list.is_empty() && inner.target_list.iter().all(written);
    (all && name_of(name) == Some(&alias.aliasname) && alias.colnames.is_empty()).then_some(row)
}

fn select_of(node: &Node) -> Option<&SelectStmt> {
    match &node.node {
        Some(NodeEnum::SelectStmt(select)) => Some(select),
        _ => None,
    }
}

fn name_of(node: &Node) -> Option<&str> {
    match &node.node {
        Some(NodeEnum::String(s)) => Some(s.sval.as_str()),
        _ => None,
    }
}

/// A name as an item of a list.
fn key(name: &str) -> Vec<u8> {
    format!("{}:{name}", name.len()).into_bytes()
}

/// The JSON of a field, as an item. Plain types without a twin have PostgreSQL's own.
fn json_of_field(text: &str, val: &Val, plain: bool) -> Option<String> {
    let value = match val.class {
        Class::Plain(None) | Class::Array(_) if plain => {
            format!("pg_catalog.to_json({text})::pg_catalog.enc_json")
        }
        _ => format!("({text}{}", own_cast(val)?),
    };
    Some(format!("pg_catalog.enc_jsonitem({value})"))
}
