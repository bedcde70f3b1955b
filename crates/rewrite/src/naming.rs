//! Names of output columns. PostgreSQL derives them from the expression: a cast
//! that the edits put in, or whose type they change, would show in the name. Such
//! columns get their old name by `AS`.

use crate::edit::{Edit, Piece};
use crate::infer::{Infer, location, names};
use pg_query::protobuf::{AExprKind, MinMaxOp, ResTarget, SubLink, SubLinkType, Token};
use pg_query::{Node, NodeEnum};

/// The name of an expression, as `FigureColname` of PostgreSQL has it.
pub(crate) struct Figure {
    pub name: String,
    /// 0: no name, 1: a weak one, 2: a strong one.
    strength: u8,
    /// Where the constant or type name is that decides it.
    decided: Option<usize>,
}

/// A column whose name may change.
pub(crate) struct NamedTarget {
    decided: usize,
    start: usize,
    name: String,
}

fn named(name: &str, strength: u8) -> Figure {
    Figure {
        name: name.to_owned(),
        strength,
        decided: None,
    }
}

fn unnamed() -> Figure {
    named("?column?", 0)
}

/// The name that PostgreSQL gives an output column.
pub(crate) fn figure_name(node: &Node) -> String {
    figure(node).name
}

pub(crate) fn figure(node: &Node) -> Figure {
    let inner = |node: Option<&Node>| node.map_or_else(unnamed, figure);
    let last = |nodes: &[Node]| names(nodes).last().map(|name| named(name, 2));
    match node.node.as_ref() {
        Some(NodeEnum::AConst(c)) => Figure {
            decided: usize::try_from(c.location).ok(),
            ..unnamed()
        },
        Some(NodeEnum::ColumnRef(c)) => last(&c.fields).unwrap_or_else(unnamed),
        Some(NodeEnum::FuncCall(f)) => last(&f.funcname).unwrap_or_else(unnamed),
        Some(NodeEnum::AIndirection(i)) => {
            last(&i.indirection).unwrap_or_else(|| inner(i.arg.as_deref()))
        }
        Some(NodeEnum::TypeCast(c)) => {
            let arg = inner(c.arg.as_deref());
            match &c.type_name {
                Some(ty) if arg.strength <= 1 => Figure {
                    name: names(&ty.names)
                        .last()
                        .map_or_else(String::new, |n| (*n).to_owned()),
                    strength: 1,
                    decided: usize::try_from(ty.location).ok(),
                },
                _ => arg,
            }
        }
        Some(NodeEnum::CollateClause(c)) => inner(c.arg.as_deref()),
        Some(NodeEnum::CaseExpr(c)) => {
            let default = inner(c.defresult.as_deref());
            if default.strength <= 1 {
                named("case", 1)
            } else {
                default
            }
        }
        Some(NodeEnum::CoalesceExpr(_)) => named("coalesce", 2),
        Some(NodeEnum::MinMaxExpr(m)) if m.op() == MinMaxOp::IsLeast => named("least", 2),
        Some(NodeEnum::MinMaxExpr(_)) => named("greatest", 2),
        Some(NodeEnum::AExpr(e)) if e.kind() == AExprKind::AexprNullif => named("nullif", 2),
        Some(NodeEnum::AArrayExpr(_)) => named("array", 2),
        Some(NodeEnum::RowExpr(_)) => named("row", 2),
        Some(NodeEnum::GroupingFunc(_)) => named("grouping", 2),
        Some(NodeEnum::SubLink(s)) => sublink(s),
        Some(NodeEnum::SqlvalueFunction(f)) => {
            let name = f
                .op()
                .as_str_name()
                .trim_start_matches("SVFOP_")
                .trim_end_matches("_N");
            named(&name.to_lowercase(), 2)
        }
        _ => unnamed(),
    }
}

fn sublink(s: &SubLink) -> Figure {
    match s.sub_link_type() {
        SubLinkType::ExistsSublink => named("exists", 2),
        SubLinkType::ArraySublink => named("array", 2),
        SubLinkType::ExprSublink => {
            let Some(NodeEnum::SelectStmt(q)) =
                s.subselect.as_deref().and_then(|n| n.node.as_ref())
            else {
                return unnamed();
            };
            match q.target_list.first().and_then(|n| n.node.as_ref()) {
                Some(NodeEnum::ResTarget(t)) if !t.name.is_empty() => named(&t.name, 2),
                Some(NodeEnum::ResTarget(t)) => t.val.as_deref().map_or_else(unnamed, figure),
                _ => unnamed(),
            }
        }
        _ => unnamed(),
    }
}

impl Infer<'_> {
    /// Looks at a query whose columns can be named, whatever it stands in.
    pub fn with_names<T>(&mut self, inner: impl FnOnce(&mut Self) -> T) -> T {
        let outside = std::mem::take(&mut self.nameless);
        let result = inner(self);
        self.nameless = outside;
        result
    }

    /// Remembers a target whose name an edit could change.
    pub fn keep_name(&mut self, target: &ResTarget, value: &Node) {
        if !target.name.is_empty() || self.nameless > 0 {
            return;
        }
        let Figure { name, decided, .. } = figure(value);
        let start = [target.location, location(value)]
            .into_iter()
            .find_map(|at| usize::try_from(at).ok());
        if let (Some(decided), Some(start)) = (decided, start) {
            self.named_targets.push(NamedTarget {
                decided,
                start,
                name,
            });
        }
    }

    /// The names to add for the edits of the statement.
    pub fn kept_names(&self, edits: &[Edit]) -> Vec<Edit> {
        let mut more: Vec<Edit> = Vec::new();
        for target in &self.named_targets {
            let changed = edits
                .iter()
                .any(|e| e.range.contains(&target.decided) && gives_type(e));
            if let (true, Some(end)) = (changed, self.target_end(target.start)) {
                let text = format!(" AS \"{}\"", target.name.replace('"', "\"\""));
                let edit = Edit {
                    range: end..end,
                    pieces: vec![Piece::Text(text)],
                };
                if !more.contains(&edit) {
                    more.push(edit);
                }
            }
        }
        more
    }

    /// Where the expression of a target list that begins here ends.
    fn target_end(&self, start: usize) -> Option<usize> {
        let mut index = self.tokens.at(start)?;
        let mut end = None;
        while index < self.tokens.len() && self.tokens.range(index).start < self.range.end {
            match self.tokens.kind(index) {
                Token::Ascii40 | Token::Ascii91 => index = self.tokens.closing(index)?,
                Token::From if index > 0 && self.tokens.kind(index - 1) == Token::Distinct => {}
                Token::Ascii44
                | Token::Ascii41
                | Token::Ascii59
                | Token::From
                | Token::Into
                | Token::Where
                | Token::GroupP
                | Token::Having
                | Token::Window
                | Token::Union
                | Token::Intersect
                | Token::Except
                | Token::Order
                | Token::Limit
                | Token::Offset
                | Token::Fetch
                | Token::For => break,
                // WITH [NO] DATA of CREATE TABLE AS, WITH CHECK OPTION of a view.
                Token::With if self.tokens.kind(index + 1) != Token::Time => break,
                _ => {}
            }
            end = Some(self.tokens.range(index).end);
            index += 1;
        }
        end
    }
}

/// The replacement has a type name in it.
fn gives_type(edit: &Edit) -> bool {
    edit.pieces
        .iter()
        .any(|p| matches!(p, Piece::Text(text) if text.contains("pg_catalog.enc_")))
}
