//! Names of output columns, as PostgreSQL derives them from the expression.

use crate::tree::names;
use pg_query::protobuf::{AExprKind, MinMaxOp, SubLink, SubLinkType};
use pg_query::{Node, NodeEnum};

/// The name of an expression, like that of PostgreSQL's `FigureColname`.
pub(crate) struct Figure {
    pub name: String,
    /// 0: no name, 1: a weak one, 2: a strong one.
    strength: u8,
    /// Position of the constant, type name or call that determines it.
    pub decided: Option<usize>,
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
        // Another function may be called instead.
        Some(NodeEnum::FuncCall(f)) => Figure {
            decided: usize::try_from(f.location).ok(),
            ..last(&f.funcname).unwrap_or_else(unnamed)
        },
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
