//! Functions, procedures and `DO`: a body in a string that names something protected must
//! not have constants in it, told word by word; what it does with its arguments, `body`
//! says. A body that is parsed with the statement is inferred as a query is.

use crate::body::{Body, Variable};
use crate::effect::Extra;
use crate::infer::{Infer, Res, code_of, location, names};
use crate::reach::Reach;
use crate::refusal::Refusal;
use crate::relation::ColumnType;
use crate::scope::{Col, Frame};
use crate::statement::Prepared;
use crate::tokens::Tokens;
use crate::utility::constant_text;
use crate::value::{LeafKind, Val};
use pg_query::protobuf::{CreateFunctionStmt, DefElem, FunctionParameterMode, Token};
use pg_query::{Node, NodeEnum};
use std::ops::Range;
use std::rc::Rc;

impl Infer<'_> {
    pub fn routine(&mut self, node: &NodeEnum) -> Res<Extra> {
        match node {
            NodeEnum::DoStmt(d) => {
                self.bodies(&d.args, false, None)?;
                self.without_values()
            }
            NodeEnum::CreateFunctionStmt(f) => {
                let arguments = self.parameters_of(f)?;
                let result = match &f.return_type {
                    Some(name) if !name.pct_type => Some(self.column_type(name)?),
                    _ => None,
                };
                let returns = f
                    .return_type
                    .as_ref()
                    .map(|t| names(&t.names))
                    .unwrap_or_default();
                let path = names(&f.funcname);
                let (name, place) = path.split_last().map_or(("", ""), |(name, rest)| {
                    (*name, rest.last().copied().unwrap_or(""))
                });
                let place = self.schema.creation_schema(place, false);
                let trigger = returns.last() == Some(&"trigger");
                self.bodies(&f.options, trigger, Some((&place, name)))?;
                if f.sql_body.is_some() {
                    let text = self.sql.get(self.range.clone()).unwrap_or_default();
                    self.authority
                        .body(Some((&place, name)), text, false, self.schema);
                }
                match f.sql_body.as_deref() {
                    Some(body) => self.parsed_body(body, arguments, result.as_ref())?,
                    None => self.string_body(f, arguments, result)?,
                }
                self.without_values()
            }
            _ => self.without_values(),
        }
    }

    /// The arguments that callers give; looks at their defaults.
    fn parameters_of(&mut self, f: &CreateFunctionStmt) -> Res<Vec<Variable>> {
        let mut variables = Vec::new();
        for node in &f.parameters {
            let Some(NodeEnum::FunctionParameter(p)) = &node.node else {
                continue;
            };
            let Some(name) = &p.arg_type else { continue };
            let ty = if name.pct_type {
                self.visit_type(name);
                None
            } else {
                Some(self.column_type(name)?)
            };
            let target = match &ty {
                Some(ty) => self.value_of(ty),
                None => Val::unknown(),
            };
            use FunctionParameterMode::{FuncParamOut, FuncParamTable};
            if !matches!(p.mode(), FuncParamOut | FuncParamTable) {
                let name = p.name.clone();
                let ty = ty.filter(|ty| !matches!(ty, ColumnType::Opaque(..)));
                variables.push(Variable {
                    name,
                    ty,
                    argument: true,
                });
            }
            if let Some(default) = p.defexpr.as_deref() {
                let val = self.expr(default)?;
                self.assign(&target, &val, p.location)?;
            }
        }
        Ok(variables)
    }

    /// A body in a string, beside what `bodies` says of its words.
    fn string_body(
        &mut self,
        f: &CreateFunctionStmt,
        arguments: Vec<Variable>,
        result: Option<ColumnType>,
    ) -> Res<()> {
        let protected = |ty: &ColumnType| ty.protected();
        let signature = arguments
            .iter()
            .filter_map(|a| a.ty.as_ref())
            .chain(&result)
            .any(protected);
        let plain = |a: &Variable| a.ty.as_ref().is_some_and(|ty| !ty.protected());
        if self.authorising || !(signature || self.touches_protected && arguments.iter().any(plain))
        {
            return Ok(());
        }
        let (language, texts) = source(&f.options);
        let mut body = match (language.as_str(), texts.as_slice()) {
            ("sql", [text]) => Body::of_sql(self.schema, text, self.meeting),
            ("plpgsql", [text]) => {
                let create = self.sql.get(self.range.clone()).unwrap_or_default();
                match Body::of_plpgsql(self.schema, create, text, self.meeting) {
                    Some(body) => body,
                    // PostgreSQL will say what is wrong with it.
                    None => return Ok(()),
                }
            }
            ("c" | "internal", _) => return Ok(()),
            _ if !signature => return Ok(()),
            (_, texts) if texts.iter().all(|t| !t.contains(['\'', '"'])) => return Ok(()),
            _ => {
                return Err(crate::body::constants(
                    f.options.first().map_or(-1, crate::infer::location),
                ));
            }
        };
        self.touches_protected = true;
        body.declare_all(arguments);
        body.result = result;
        let at = i32::try_from(self.range.start).unwrap_or(-1);
        body.check().map_err(|refusal| {
            Refusal {
                position: None,
                ..refusal
            }
            .at(at)
        })
    }

    /// `BEGIN ATOMIC …` and `RETURN …`: the server keeps them parsed, so their constants
    /// can be sealed as a view's.
    fn parsed_body(
        &mut self,
        body: &Node,
        arguments: Vec<Variable>,
        result: Option<&ColumnType>,
    ) -> Res<()> {
        let none = Prepared::default();
        if !Reach::of(&[self.schema], &none).tokens(self.sql, self.tokens, &self.range) {
            return Ok(());
        }
        self.touches_protected = true;
        self.declare_arguments(&arguments);
        let target = result.map(|ty| self.value_of(ty));
        self.body_node(body, target.as_ref())?;
        self.scopes.pop();
        self.arguments.clear();
        Ok(())
    }

    fn body_node(&mut self, node: &Node, target: Option<&Val>) -> Res<()> {
        match &node.node {
            Some(NodeEnum::List(list)) => {
                let last = list.items.len().saturating_sub(1);
                for (at, item) in list.items.iter().enumerate() {
                    self.body_node(item, target.filter(|_| at == last))?;
                }
                Ok(())
            }
            Some(NodeEnum::ReturnStmt(r)) => {
                let val = self.maybe(r.returnval.as_deref())?;
                match (target, val) {
                    (Some(target), Some(val)) => self.assign(target, &val, location(node)),
                    _ => Ok(()),
                }
            }
            _ => {
                let cols = self.query_node(node)?;
                match (target, cols.list.as_slice()) {
                    (Some(target), [only]) => self.assign(target, &only.val, location(node)),
                    _ => Ok(()),
                }
            }
        }
    }

    fn declare_arguments(&mut self, arguments: &[Variable]) {
        let mut frame = Frame::default();
        for argument in arguments {
            let val = match &argument.ty {
                Some(ty) if !ty.protected() => {
                    let at = self.range.start;
                    let id = self
                        .leaves
                        .add(at..at, LeafKind::Argument(argument.name.clone()));
                    let code = code_of(&self.value_of(ty));
                    Val::leaf(id, Some(code))
                }
                Some(ty) => self.value_of(ty),
                None => Val::unknown(),
            };
            self.arguments.push(val.clone());
            let name = argument.name.clone();
            frame.list.push(Col {
                name,
                val,
                own: false,
            });
        }
        self.scopes.push(Rc::new(frame));
    }

    fn bodies(&mut self, options: &[Node], trigger: bool, name: Option<(&str, &str)>) -> Res<()> {
        let (language, texts) = source(options);
        if matches!(language.as_str(), "c" | "internal") {
            return Ok(());
        }
        let ours = matches!(language.as_str(), "sql" | "plpgsql");
        let location = option(options, "as").map_or(-1, |body| body.location);
        for text in texts {
            self.body(&text, ours, trigger, location)?;
            self.authority.body(name, &text, trigger, self.schema);
        }
        Ok(())
    }

    /// Word by word, also within strings (`EXECUTE 'SELECT …'`) and whatever
    /// the language is. What a constant is, we know of SQL and PL/pgSQL only.
    fn body(&mut self, text: &str, ours: bool, trigger: bool, location: i32) -> Res<()> {
        let mut names = self.schema.protected_names();
        if trigger {
            names.extend(self.schema.protected_columns());
        }
        let lower = text.to_ascii_lowercase();
        let words = |text: &str| {
            text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$')))
                .any(|word| {
                    names.contains(word)
                        || ["enc_", "rnd_", "soft_"]
                            .iter()
                            .any(|f| word.starts_with(f))
                })
        };
        let odd =
            |name: &&str| name.contains(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
        let protected = words(text)
            || words(&lower)
            || names.iter().filter(|n| odd(n)).any(|n| text.contains(*n));
        if !protected {
            return Ok(());
        }
        self.touches_protected = true;
        if self.authorising {
            return Ok(());
        }
        let refused = || Err(crate::body::constants(location));
        let tokens = match Tokens::scan(text) {
            Ok(tokens) if ours => tokens,
            _ => return refused(),
        };
        let whole = 0..text.len();
        if tokens
            .values(&whole)
            .any(|(token, _)| token != Token::Param)
        {
            return refused();
        }
        self.take_comments(text, &tokens, location)
    }

    /// Comments do not leave with such a body, as they do not with a query.
    fn take_comments(&mut self, text: &str, tokens: &Tokens, location: i32) -> Res<()> {
        if tokens.comments().is_empty() {
            return Ok(());
        }
        let inner = |range: &Range<usize>| {
            let quote = self.sql.get(range.clone())?.strip_prefix('$')?.find('$')? + 2;
            let inner = range.start + quote..range.end.checked_sub(quote)?;
            (self.sql.get(inner.clone()) == Some(text)).then_some(inner.start)
        };
        let start = (self.tokens.next_from(self.range.start)
            ..self.tokens.next_from(self.range.end))
            .filter(|at| self.tokens.kind(*at) == Token::Sconst)
            .find_map(|at| inner(&self.tokens.range(at)));
        let Some(start) = start else {
            return Err(Refusal::unsupported(
                "the body of this routine names something protected and has comments in it",
            )
            .at(location)
            .detail("There could be values in them; they would be stored in the clear.")
            .hint("Write the body between dollar quotes, where the proxy can leave them out."));
        };
        for comment in tokens.comments() {
            self.replace(start + comment.start..start + comment.end, " ");
        }
        Ok(())
    }
}

fn option<'n>(options: &'n [Node], wanted: &str) -> Option<&'n DefElem> {
    options.iter().find_map(|o| match &o.node {
        Some(NodeEnum::DefElem(d)) if d.defname == wanted => Some(&**d),
        _ => None,
    })
}

/// A routine's language, and the strings that its body is in.
fn source(options: &[Node]) -> (String, Vec<String>) {
    let language = option(options, "language")
        .and_then(|d| d.arg.as_deref())
        .and_then(constant_text);
    let body = option(options, "as").and_then(|d| d.arg.as_deref());
    let texts = match body.and_then(|n| n.node.as_ref()) {
        Some(NodeEnum::List(list)) => list.items.iter().filter_map(constant_text).collect(),
        _ => body.and_then(constant_text).into_iter().collect(),
    };
    (language.unwrap_or_else(|| "plpgsql".into()), texts)
}
