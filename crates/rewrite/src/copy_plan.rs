//! `COPY`: its options and columns.

use crate::copy::{CopyColumn, CopyPlan, Direction, Endpoint, Format, Header, Options, Source};
use crate::infer::{Infer, Res, names};
use crate::refusal::Refusal;
use crate::relation::Relation;
use crate::scope::{Entry, Frame};
use crate::utility::{constant_text, is_on};
use pg_query::protobuf::{CopyStmt, DefElem};
use pg_query::{Node, NodeEnum};
use std::rc::Rc;

impl Infer<'_> {
    pub fn copy_plan(&mut self, c: &CopyStmt) -> Res<CopyPlan> {
        let (source, columns) = match (&c.relation, c.query.as_deref()) {
            (Some(r), _) => {
                let relation = self.relation(r)?;
                match c.is_from {
                    true => {
                        self.authority.write(&relation, None);
                        self.authority.change(&relation);
                    }
                    false => self.authority.mention_all(),
                }
                self.copy_condition(c, &relation)?;
                let columns = copy_columns(c, &relation)?;
                (
                    Source::Relation {
                        schema: relation.schema,
                        name: relation.name,
                    },
                    columns,
                )
            }
            (None, Some(query)) => (Source::Query, self.copied_query(query)?),
            (None, None) => return Err(Refusal::unsupported("COPY without a source")),
        };
        let endpoint = match (c.filename.is_empty(), c.is_program) {
            (_, true) => Endpoint::Program,
            (true, _) => Endpoint::Client,
            _ => Endpoint::File,
        };
        let direction = if c.is_from {
            Direction::From
        } else {
            Direction::To
        };
        let (format, options) = self.copy_options(c, &columns)?;
        let plan = CopyPlan {
            direction,
            endpoint,
            source,
            columns,
            format,
            options,
        };
        self.check_copy(&plan, c)?;
        // The remaining constants are options and file names.
        self.visit_rest();
        Ok(plan)
    }

    fn copy_condition(&mut self, c: &CopyStmt, relation: &Relation) -> Res<()> {
        let Some(condition) = c.where_clause.as_deref() else {
            return Ok(());
        };
        let cols = Rc::new(self.columns(relation));
        let entry = Entry {
            alias: relation.name.clone(),
            schema: Some(relation.schema.clone()),
            cols,
        };
        self.scopes.push(Rc::new(Frame::of(entry)));
        let result = self.condition(condition);
        self.scopes.pop();
        result
    }

    fn copied_query(&mut self, query: &Node) -> Res<Vec<CopyColumn>> {
        let cols = self.query_node(query)?.shown();
        if cols.open.is_some() && cols.list.iter().any(|c| self.holds_enc(&c.val)) {
            return Err(Refusal::unsupported("the columns of * are not known here")
                .hint("Name the columns."));
        }
        Ok(cols
            .list
            .iter()
            .map(|col| CopyColumn {
                name: col.name.clone(),
                protected: self.holds_enc(&col.val),
                ty: Some(self.type_of(&col.val)),
                typmod: -1,
            })
            .collect())
    }

    fn copy_options(&mut self, c: &CopyStmt, columns: &[CopyColumn]) -> Res<(Format, Options)> {
        let elements: Vec<&DefElem> = c
            .options
            .iter()
            .filter_map(|o| match &o.node {
                Some(NodeEnum::DefElem(d)) => Some(&**d),
                _ => None,
            })
            .collect();
        let text = |d: &DefElem| d.arg.as_deref().and_then(constant_text);
        let format = match elements
            .iter()
            .find(|d| d.defname == "format")
            .and_then(|d| text(d))
            .as_deref()
        {
            None | Some("text") => Format::Text,
            Some("csv") => Format::Csv,
            Some("binary") => Format::Binary,
            Some(_) => return Err(Refusal::new("22023", "COPY format not recognized")),
        };
        let mut options = Options::defaults(format);
        let mut escape = None;
        for d in elements {
            let at = d.location;
            match d.defname.as_str() {
                "format" | "freeze" | "on_error" | "log_verbosity" | "reject_limit" => {}
                "delimiter" => options.delimiter = one_byte(text(d), at)?,
                "null" => options.null = text(d).unwrap_or_default(),
                "default" => options.default = text(d),
                "quote" => options.quote = one_byte(text(d), at)?,
                "escape" => escape = Some(one_byte(text(d), at)?),
                "encoding" => options.encoding = text(d),
                "header" => {
                    options.header = match text(d) {
                        Some(t) if t.eq_ignore_ascii_case("match") => Header::Match,
                        Some(t) if !is_on(&t) => Header::No,
                        _ => Header::Yes,
                    }
                }
                "force_quote" => options.force_quote = positions(d, columns)?,
                "force_null" => options.force_null = positions(d, columns)?,
                "force_not_null" => options.force_not_null = positions(d, columns)?,
                other => {
                    return Err(Refusal::unsupported(format!(
                        "COPY option \"{other}\" is not supported"
                    ))
                    .at(at));
                }
            }
        }
        options.escape = escape.unwrap_or(options.quote);
        Ok((format, options))
    }

    fn check_copy(&self, plan: &CopyPlan, c: &CopyStmt) -> Res<()> {
        if !plan.columns.iter().any(|c| c.protected) {
            return Ok(());
        }
        let at = c.relation.as_ref().map_or(-1, |r| r.location);
        if plan.endpoint != Endpoint::Client {
            let (what, instead) = match plan.direction {
                Direction::From => (
                    "from a file or program of the server",
                    "COPY … FROM STDIN (\\copy in psql)",
                ),
                Direction::To => (
                    "to a file or program of the server",
                    "COPY … TO STDOUT (\\copy in psql)",
                ),
            };
            return Err(Refusal::unsupported(format!(
                "protected columns cannot be copied {what} through the proxy"
            ))
            .at(at)
            .detail(
                "The server sees envelopes only; those of this session are of no use in a file.",
            )
            .hint(format!(
                "Use {instead}, or copy export envelopes in a session without the proxy."
            )));
        }
        let utf8 = |e: &String| {
            matches!(
                e.to_ascii_lowercase().replace(['-', '_'], "").as_str(),
                "utf8" | "unicode"
            )
        };
        if plan.options.encoding.as_ref().is_some_and(|e| !utf8(e)) {
            return Err(
                Refusal::unsupported("protected columns can be copied in UTF-8 only").at(at),
            );
        }
        Ok(())
    }
}

fn copy_columns(c: &CopyStmt, relation: &Relation) -> Res<Vec<CopyColumn>> {
    let Some(all) = &relation.columns else {
        return Ok(Vec::new());
    };
    let column = |c: &crate::relation::Column| CopyColumn {
        name: c.name.clone(),
        protected: c.ty.protected(),
        ty: Some(c.ty.clone()),
        typmod: c.typmod,
    };
    if c.attlist.is_empty() {
        return Ok(all.iter().filter(|c| !c.generated).map(column).collect());
    }
    let mut columns = Vec::new();
    for name in names(&c.attlist) {
        let found = all.iter().find(|c| c.name == name).ok_or_else(|| {
            let text = format!(
                "column \"{name}\" of relation \"{}\" does not exist",
                relation.name
            );
            Refusal::new("42703", text)
                .at(c.relation.as_ref().map_or(-1, |r| r.location))
                .refresh()
        })?;
        columns.push(column(found));
    }
    Ok(columns)
}

fn one_byte(text: Option<String>, at: i32) -> Res<u8> {
    match text.as_deref().map(str::as_bytes) {
        Some([byte]) => Ok(*byte),
        _ => Err(Refusal::new(
            "0A000",
            "COPY delimiter, quote and escape must be a single one-byte character",
        )
        .at(at)),
    }
}

fn positions(d: &DefElem, columns: &[CopyColumn]) -> Res<Vec<usize>> {
    match d.arg.as_deref().and_then(|n| n.node.as_ref()) {
        Some(NodeEnum::List(list)) => names(&list.items)
            .into_iter()
            .map(|name| {
                columns.iter().position(|c| c.name == name).ok_or_else(|| {
                    Refusal::new("42703", format!("column \"{name}\" does not exist"))
                        .at(d.location)
                        .refresh()
                })
            })
            .collect(),
        _ => Ok((0..columns.len()).collect()),
    }
}
