//! Expressions: dispatch on the kind of node, and simple expressions.

use super::{Infer, Res, location, names};
use crate::refusal::Refusal;
use crate::scope::Cols;
use crate::value::{Class, LeafKind, Use, Val};
use pg_query::protobuf::{CaseExpr, CollateClause, RowExpr, SubLink, SubLinkType, Token};
use pg_query::{Node, NodeEnum};
use std::ops::Range;

/// Maximum nesting depth of expressions, well below what the stack permits.
const DEPTH_MAX: usize = 5_000;

impl Infer<'_> {
    /// An optional expression.
    pub fn maybe(&mut self, node: Option<&Node>) -> Res<Option<Val>> {
        node.filter(|n| n.node.is_some())
            .map(|n| self.expr(n))
            .transpose()
    }

    pub fn exprs(&mut self, nodes: &[Node]) -> Res<Vec<Val>> {
        nodes.iter().map(|n| self.expr(n)).collect()
    }

    pub fn expr(&mut self, node: &Node) -> Res<Val> {
        self.deeper()?;
        let val = self.expr_inner(node);
        self.depth -= 1;
        val
    }

    /// One level down.
    pub fn deeper(&mut self) -> Res<()> {
        self.depth += 1;
        match self.depth > DEPTH_MAX {
            true => Err(Refusal::new("54001", "the statement is too complex")),
            false => Ok(()),
        }
    }

    fn expr_inner(&mut self, node: &Node) -> Res<Val> {
        let Some(kind) = node.node.as_ref() else {
            return Ok(Val::plain(None));
        };
        match kind {
            NodeEnum::AConst(c) => self.constant(c),
            NodeEnum::ParamRef(p) => self.parameter(p),
            NodeEnum::ColumnRef(c) => self.column(c),
            NodeEnum::AExpr(e) => self.operator(e),
            NodeEnum::TypeCast(c) => self.cast(c),
            NodeEnum::FuncCall(f) => self.function(f),
            NodeEnum::BoolExpr(b) => {
                for arg in &b.args {
                    self.condition(arg)?;
                }
                Ok(Val::boolean())
            }
            NodeEnum::SubLink(s) => self.sublink(s),
            NodeEnum::CaseExpr(c) => self.case(c),
            NodeEnum::CoalesceExpr(c) => self.one_of(&c.args, c.location),
            NodeEnum::MinMaxExpr(c) => self.one_of(&c.args, c.location),
            NodeEnum::NullTest(t) => {
                let val = self.maybe(t.arg.as_deref())?;
                self.null_test(val)
            }
            NodeEnum::BooleanTest(t) => {
                if let Some(arg) = t.arg.as_deref() {
                    self.condition(arg)?;
                }
                Ok(Val::boolean())
            }
            NodeEnum::RowExpr(r) => self.row(r),
            NodeEnum::AArrayExpr(a) => {
                let vals = self.exprs(&a.elements)?;
                Ok(self.array(&vals, a.location)?)
            }
            NodeEnum::CollateClause(c) => self.collated(c),
            NodeEnum::NamedArgExpr(a) => {
                let val = self.maybe(a.arg.as_deref())?;
                Ok(val.unwrap_or_else(|| Val::plain(None)))
            }
            NodeEnum::AIndirection(_) => self.indirection(node),
            NodeEnum::SqlvalueFunction(_) => Ok(Val::plain(sql_value_type(kind))),
            // Which action of a MERGE it was.
            NodeEnum::MergeSupportFunc(_) => Ok(Val::plain(Some(contract::TypeCode::Text))),
            NodeEnum::SetToDefault(_) => Ok(Val::of(Class::Lit(None))),
            NodeEnum::CurrentOfExpr(_) => Ok(Val::boolean()),
            NodeEnum::GroupingFunc(g) => {
                self.exprs(&g.args)?;
                Ok(Val::plain(None))
            }
            NodeEnum::XmlExpr(_) | NodeEnum::XmlSerialize(_) | NodeEnum::JsonIsPredicate(_) => {
                self.document(node, kind)
            }
            _ => Err(self.unknown_node(node)),
        }
    }

    /// Expressions of which one supplies the value.
    fn one_of(&mut self, args: &[Node], location: i32) -> Res<Val> {
        let vals = self.exprs(args)?;
        self.alternatives(&args.iter().collect::<Vec<_>>(), &vals, location)
    }

    fn collated(&mut self, c: &CollateClause) -> Res<Val> {
        let Some(arg) = c.arg.as_deref() else {
            return Ok(Val::plain(None));
        };
        let val = self.expr(arg)?;
        let bytewise = matches!(names(&c.collname).last(), Some(&("C" | "POSIX")));
        let clause = self.collation(c).filter(|_| bytewise);
        if self.enc(&val).is_some() {
            if let (Some(range), true) = (clause, self.is_string(&val)) {
                self.replace(range, "");
                return Ok(val);
            }
            return Err(
                Refusal::unsupported("COLLATE does not apply to protected text")
                    .at(c.location)
                    .hint("Protected text always collates bytewise (\"C\")."),
            );
        }
        let mut val = self.settle(&val);
        if let (Some(range), Class::Lit(Some(Some(_)))) = (clause, &val.class)
            && !val.leaves.is_empty()
        {
            let id = self.leaves.add(range, LeafKind::Cast(Some(String::new())));
            val.leaves.push(Use { id, block: None });
            self.leaves.unite_all(&val.leaves);
        }
        Ok(val)
    }

    fn is_string(&self, val: &Val) -> bool {
        use contract::TypeCode::{Bpchar, Text, Varchar};
        matches!(self.enc_now(val).flatten(), Some(Text | Varchar | Bpchar))
    }

    /// Where the collation is, which is left out if protected text has it anyway.
    fn collation(&self, c: &CollateClause) -> Option<Range<usize>> {
        let keyword = self.tokens.at(usize::try_from(c.location).ok()?)?;
        let end = keyword + (2 * c.collname.len()).checked_sub(1)?;
        let found = self.tokens.kind(keyword) == Token::Collate && end < self.tokens.len();
        found.then(|| self.tokens.range(keyword).start..self.tokens.range(end).end)
    }

    /// XML and JSON expressions, which cannot contain anything protected.
    fn document(&mut self, node: &Node, kind: &NodeEnum) -> Res<Val> {
        let (vals, at, what) = match kind {
            NodeEnum::XmlExpr(x) => {
                let mut vals = self.exprs(&x.args)?;
                for named in &x.named_args {
                    vals.push(self.target_value(named)?);
                }
                (vals, location(node), "XML functions")
            }
            NodeEnum::XmlSerialize(x) => {
                let vals = self.maybe(x.expr.as_deref())?.into_iter().collect();
                if let Some(name) = &x.type_name {
                    self.visit_type(name);
                }
                (vals, x.location, "XML functions")
            }
            NodeEnum::JsonIsPredicate(j) => {
                let vals = self.maybe(j.expr.as_deref())?.into_iter().collect();
                (vals, j.location, "JSON functions")
            }
            _ => return Err(self.unknown_node(node)),
        };
        self.plain_only(&vals, at, what)
    }

    fn null_test(&mut self, val: Option<Val>) -> Res<Val> {
        for u in val.iter().filter(|v| v.bare()).flat_map(|v| &v.leaves) {
            self.leaves.get_mut(u.id).any_type = true;
        }
        Ok(Val::boolean())
    }

    fn unknown_node(&self, node: &Node) -> Refusal {
        Refusal::unsupported("this kind of expression is not supported through Confide's proxy")
            .at(location(node))
    }

    /// The value of a `ResTarget`, or of an expression.
    pub fn target_value(&mut self, node: &Node) -> Res<Val> {
        match &node.node {
            Some(NodeEnum::ResTarget(t)) => {
                Ok(self.maybe(t.val.as_deref())?.unwrap_or(Val::plain(None)))
            }
            _ => self.expr(node),
        }
    }

    /// The arguments of something that supports plain values only.
    pub fn plain_only(&mut self, vals: &[Val], at: i32, what: &str) -> Res<Val> {
        if vals.iter().any(|v| self.holds_enc(v)) {
            return Err(Refusal::unsupported(format!("{what} do not work on protected values"))
                .at(at)
                .hint("Select the protected columns themselves and convert them in the application."));
        }
        for val in vals {
            self.pass(val);
        }
        Ok(Val::plain(None))
    }

    fn row(&mut self, r: &RowExpr) -> Res<Val> {
        let mut fields = Vec::new();
        let mut open = false;
        for arg in &r.args {
            match self.star_of(arg)? {
                Some(cols) if cols.open.is_some() => {
                    fields.push((String::new(), cols.any()));
                    open = true;
                }
                Some(cols) => fields.extend(cols.list.into_iter().map(|c| (c.name, c.val))),
                None => fields.push((String::new(), self.expr(arg)?)),
            }
        }
        if open {
            return Ok(Val::unknown_of(fields.iter().map(|(_, val)| val)));
        }
        for (at, (name, _)) in fields.iter_mut().enumerate() {
            *name = format!("f{}", at + 1);
        }
        Ok(Val::row(fields))
    }

    /// `ARRAY[...]`: untyped strings in it are `text`, independent of the context.
    pub fn array(&mut self, vals: &[Val], location: i32) -> Res<Val> {
        for val in vals.iter().filter(|v| v.bare()) {
            self.type_bare(&val.leaves.clone(), contract::TypeCode::Text);
        }
        if vals.iter().any(|v| matches!(v.class, Class::Array(_))) {
            let inner: Vec<Val> = vals
                .iter()
                .map(|v| match &v.class {
                    Class::Array(element) => (**element).clone(),
                    _ => v.clone(),
                })
                .collect();
            return Ok(Val::array(self.common(&inner, location)?));
        }
        let element = self.common(vals, location)?;
        Ok(Val::array(element))
    }

    fn case(&mut self, c: &CaseExpr) -> Res<Val> {
        let subject = self.maybe(c.arg.as_deref())?;
        let (mut results, mut nodes) = (Vec::new(), Vec::new());
        for when in &c.args {
            let Some(NodeEnum::CaseWhen(when)) = &when.node else {
                continue;
            };
            if let Some(expr) = when.expr.as_deref() {
                match &subject {
                    Some(subject) => {
                        let val = self.expr(expr)?;
                        self.meet(&subject.clone(), &val, when.location)?;
                    }
                    None => self.condition(expr)?,
                }
            }
            if let Some(result) = self.maybe(when.result.as_deref())? {
                results.push(result);
                nodes.extend(when.result.as_deref());
            }
        }
        // PostgreSQL looks at the type of ELSE first.
        if let (Some(result), Some(node)) = (self.maybe(c.defresult.as_deref())?, &c.defresult) {
            results.insert(0, result);
            nodes.insert(0, node);
        }
        self.alternatives(&nodes, &results, c.location)
    }

    fn sublink(&mut self, s: &SubLink) -> Res<Val> {
        let Some(select) = s.subselect.as_deref() else {
            return Ok(Val::plain(None));
        };
        self.nameless += 1;
        let cols = self.without_products(|infer| infer.query_node(select));
        self.nameless -= 1;
        let cols = cols?;
        match s.sub_link_type() {
            SubLinkType::ExistsSublink => Ok(Val::boolean()),
            SubLinkType::AnySublink | SubLinkType::AllSublink => {
                if let Some(test) = s.testexpr.as_deref() {
                    let val = self.expr(test)?;
                    self.meet_columns(&val, &cols, s.location)?;
                    if !s.oper_name.is_empty()
                        && !crate::known::is_comparison(names(&s.oper_name).last().unwrap_or(&"="))
                    {
                        return Err(Refusal::unsupported(
                            "this operator is not supported before ANY or ALL",
                        )
                        .at(s.location));
                    }
                }
                Ok(Val::boolean())
            }
            SubLinkType::ExprSublink => Ok(self.scalar(&cols)),
            SubLinkType::ArraySublink => Ok(Val::array(self.scalar(&cols))),
            _ => Err(Refusal::unsupported("this kind of subquery is not supported").at(s.location)),
        }
    }

    fn scalar(&mut self, cols: &Cols) -> Val {
        match cols.list.as_slice() {
            [only] => self.settle(&only.val),
            [] => Val::plain(None),
            _ if cols.open.is_some() => cols.any(),
            many => {
                let fields = many.iter().map(|c| (c.name.clone(), self.settle(&c.val)));
                Val::row(fields.collect())
            }
        }
    }

    /// `x IN (SELECT …)`, `(a, b) = ANY (SELECT …)`.
    fn meet_columns(&mut self, val: &Val, cols: &Cols, location: i32) -> Res<()> {
        let settled: Vec<Val> = cols.list.iter().map(|c| self.settle(&c.val)).collect();
        match (val.row_fields(), settled.as_slice()) {
            (None, [only]) => self.meet(val, only, location),
            (Some(fields), many) if fields.len() == many.len() => {
                for ((_, field), col) in fields.iter().zip(many) {
                    self.meet(field, col, location)?;
                }
                Ok(())
            }
            _ if cols.open.is_some() && cols.list.is_empty() => {
                let open = cols.open.clone().unwrap_or(Val::plain(None));
                self.meet(val, &open, location)
            }
            _ => self.meet(val, &cols.any(), location),
        }
    }
}

fn sql_value_type(node: &NodeEnum) -> Option<contract::TypeCode> {
    use contract::TypeCode::{Date, Text, Timestamp, Timestamptz};
    use pg_query::protobuf::SqlValueFunctionOp as Op;
    let NodeEnum::SqlvalueFunction(f) = node else {
        return None;
    };
    match f.op() {
        Op::SvfopCurrentDate => Some(Date),
        Op::SvfopCurrentTimestamp | Op::SvfopCurrentTimestampN => Some(Timestamptz),
        Op::SvfopLocaltimestamp | Op::SvfopLocaltimestampN => Some(Timestamp),
        Op::SvfopCurrentTime | Op::SvfopCurrentTimeN | Op::SvfopLocaltime | Op::SvfopLocaltimeN => {
            None
        }
        _ => Some(Text),
    }
}
