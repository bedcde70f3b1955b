//! Functions, procedures and `DO`. Whether a body given as a string names something protected is
//! determined word by word; what it does with its arguments and constants is determined in `body`.
//! A body that is parsed with the statement is analysed like a query.

use crate::body::sealed::requoted;
use crate::body::{Body, Variable};
use crate::effect::Extra;
use crate::infer::{Infer, Res, code_of, location, names};
use crate::reach::{Reach, in_word};
use crate::refusal::Refusal;
use crate::relation::ColumnType;
use crate::scope::{Col, Frame};
use crate::statement::Prepared;
use crate::tokens::Tokens;
use crate::utility::constant_text;
use crate::value::{LeafKind, Val};
use contract::TypeCode;
use pg_query::protobuf::{CreateFunctionStmt, DefElem, FunctionParameterMode, Token, TypeName};
use pg_query::{Node, NodeEnum};
use std::collections::HashSet;
use std::ops::Range;
use std::rc::Rc;

impl Infer<'_> {
    pub fn routine(&mut self, node: &NodeEnum) -> Res<Extra> {
        match node {
            NodeEnum::DoStmt(d) => {
                if self.bodies(&d.args, false, None)? {
                    self.block(&d.args)?;
                }
                self.without_values()
            }
            NodeEnum::CreateFunctionStmt(f) => {
                let arguments = self.parameters_of(f)?;
                let result = match &f.return_type {
                    Some(name) if name.pct_type => self.copied_type(name),
                    Some(name) => Some(self.column_type(name)?),
                    None => None,
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
                let judged = self.bodies(&f.options, trigger, Some((&place, name)))?;
                if f.sql_body.is_some() {
                    let text = self.sql.get(self.range.clone()).unwrap_or_default();
                    self.authority
                        .body(Some((&place, name)), text, false, self.schema);
                }
                match f.sql_body.as_deref() {
                    Some(body) => self.parsed_body(body, arguments, result.as_ref())?,
                    None => {
                        let constants = judged || has_constants(&f.options);
                        if constants && self.gives_more(f, result.as_ref(), judged)? {
                            return Err(crate::body::refuse_constants(source_location(&f.options)));
                        }
                        self.string_body(f, arguments, result, (judged, trigger))?;
                        // The server replaces them, for which the statement needs a grant.
                        self.touches_protected |= has_exported(&f.options);
                    }
                }
                self.without_values()
            }
            _ => self.without_values(),
        }
    }

    /// The arguments supplied by callers; examines their defaults.
    fn parameters_of(&mut self, f: &CreateFunctionStmt) -> Res<Vec<Variable>> {
        let mut variables = Vec::new();
        for node in &f.parameters {
            let Some(NodeEnum::FunctionParameter(p)) = &node.node else {
                continue;
            };
            let Some(name) = &p.arg_type else { continue };
            let ty = if name.pct_type {
                self.visit_type(name);
                self.copied_type(name)
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

    /// Whether the result is protected and consists of more than one value. `unsure` says that
    /// unknown types count as well.
    fn gives_more(
        &mut self,
        f: &CreateFunctionStmt,
        result: Option<&ColumnType>,
        unsure: bool,
    ) -> Res<bool> {
        if self.authorising {
            return Ok(false);
        }
        let mut more = unsure && f.return_type.as_ref().is_some_and(|t| t.pct_type)
            || result.is_some_and(|ty| match ty {
                ColumnType::Enc(_) => false,
                ColumnType::Plain(_, name) => {
                    let mut rows = self.schema.protected_relations();
                    rows.any(|r| r.name == *name)
                }
                ty => ty.protected(),
            });
        for node in &f.parameters {
            let Some(NodeEnum::FunctionParameter(p)) = &node.node else {
                continue;
            };
            use FunctionParameterMode::{FuncParamInout, FuncParamOut, FuncParamTable};
            if let (FuncParamOut | FuncParamInout | FuncParamTable, Some(name)) =
                (p.mode(), &p.arg_type)
            {
                more |= match name.pct_type {
                    true => unsure || self.copied_type(name).is_some(),
                    false => self.column_type(name)?.protected(),
                };
            }
        }
        Ok(more)
    }

    /// A DO block with constants that names something protected.
    fn block(&mut self, options: &[Node]) -> Res<()> {
        let (language, texts) = source(options);
        let create = self.sql.get(self.range.clone()).unwrap_or_default();
        let body = match (language.as_str(), texts.as_slice()) {
            ("plpgsql", [text]) => Body::of_plpgsql(self.schema, create, text, self.meeting),
            _ => None,
        };
        let refused = || crate::body::refuse_constants(source_location(options));
        let (mut body, [text]) = (body.ok_or_else(refused)?, texts.as_slice()) else {
            return Err(refused());
        };
        body.judged = true;
        self.checked(&body, text, source_location(options))
    }

    /// Checks a body with this text, and seals its constants that meet something protected.
    fn checked(&mut self, body: &Body<'_>, text: &str, location: i32) -> Res<()> {
        let at = i32::try_from(self.range.start).unwrap_or(-1);
        let sealed = body.check().map_err(|refusal| {
            Refusal {
                position: None,
                ..refusal
            }
            .at(at)
        })?;
        if sealed.is_empty() {
            return Ok(());
        }
        let refused = || crate::body::refuse_constants(location);
        let dollars = self.start_of_body(text);
        let body = match dollars {
            Some(start) => start..start + text.len(),
            None => self.quoted_body(text).ok_or_else(refused)?,
        };
        // What is sealed in the body is plain nowhere else.
        let outside = [self.range.start..body.start, body.end..self.range.end];
        if outside
            .iter()
            .any(|r| sealed.within(self.sql, self.tokens, r))
        {
            return Err(refused());
        }
        let edits = sealed
            .edits(text, dollars.unwrap_or(0))
            .ok_or_else(refused)?;
        match dollars {
            Some(_) => self.edits.extend(edits),
            None => self.edits.extend(requoted(text, body, edits)),
        }
        Ok(())
    }

    /// Where the literal stands that is the body, if it stands between plain quotes.
    fn quoted_body(&self, text: &str) -> Option<Range<usize>> {
        let is_body = |range: &Range<usize>| {
            let literal = self.sql.get(range.clone()).unwrap_or_default();
            literal.starts_with('\'') && crate::later::content(literal) == text
        };
        (self.tokens.next_from(self.range.start)..self.tokens.next_from(self.range.end))
            .filter(|at| self.tokens.kind(*at) == Token::Sconst)
            .map(|at| self.tokens.range(at))
            .find(is_body)
    }

    /// Where the body stands in the text, if it stands there as it is: between dollar quotes.
    fn start_of_body(&self, text: &str) -> Option<usize> {
        let inner = |range: &Range<usize>| {
            let quote = self.sql.get(range.clone())?.strip_prefix('$')?.find('$')? + 2;
            let inner = range.start + quote..range.end.checked_sub(quote)?;
            (self.sql.get(inner.clone()) == Some(text)).then_some(inner.start)
        };
        (self.tokens.next_from(self.range.start)..self.tokens.next_from(self.range.end))
            .filter(|at| self.tokens.kind(*at) == Token::Sconst)
            .find_map(|at| inner(&self.tokens.range(at)))
    }

    /// `emp.name%TYPE`, if that is protected in any table of that name.
    fn copied_type(&self, name: &TypeName) -> Option<ColumnType> {
        let path = names(&name.names);
        let [.., table, column] = path.as_slice() else {
            return None;
        };
        let mut tables = self.schema.protected_relations();
        tables.find_map(|r| {
            let mut columns = r.columns.iter().flatten();
            let found = columns.find(|c| c.name == *column && c.ty.protected());
            found.filter(|_| r.name == *table).map(|c| c.ty.clone())
        })
    }

    /// A body given as a string. In addition to what `bodies` determines from its words, the
    /// parameters say whether its constants must be judged, and whether it is the body of a
    /// trigger.
    fn string_body(
        &mut self,
        f: &CreateFunctionStmt,
        arguments: Vec<Variable>,
        result: Option<ColumnType>,
        (judged, trigger): (bool, bool),
    ) -> Res<()> {
        let protected = |ty: &ColumnType| ty.protected();
        let signature = arguments
            .iter()
            .filter_map(|a| a.ty.as_ref())
            .chain(&result)
            .any(protected);
        let plain = |a: &Variable| a.ty.as_ref().is_some_and(|ty| !ty.protected());
        let asked = judged || signature || self.touches_protected && arguments.iter().any(plain);
        if self.authorising || !asked {
            return Ok(());
        }
        let (language, texts) = source(&f.options);
        let mut body = match (language.as_str(), texts.as_slice()) {
            ("sql", [text]) => Body::of_sql(self.schema, text, self.meeting),
            ("plpgsql", [text]) => {
                let create = self.sql.get(self.range.clone()).unwrap_or_default();
                let body = match trigger {
                    true => Body::of_trigger(self.schema, text, self.meeting),
                    false => Body::of_plpgsql(self.schema, create, text, self.meeting)
                        .or_else(|| Body::of_unknown(self.schema, &arguments, text, self.meeting)),
                };
                match body {
                    Some(body) => body,
                    // PostgreSQL will report the error.
                    None if !judged => return Ok(()),
                    None => {
                        return Err(crate::body::refuse_constants(source_location(&f.options)));
                    }
                }
            }
            ("c" | "internal", _) => return Ok(()),
            _ if !signature => return Ok(()),
            (_, texts) if texts.iter().all(|t| !t.contains(['\'', '"'])) => return Ok(()),
            _ => {
                return Err(crate::body::refuse_constants(
                    f.options.first().map_or(-1, crate::infer::location),
                ));
            }
        };
        self.touches_protected = true;
        body.declare_all(arguments);
        body.result = result;
        let [text] = texts.as_slice() else {
            return Ok(());
        };
        body.judged = judged;
        self.checked(&body, text, source_location(&f.options))
    }

    /// `BEGIN ATOMIC …` and `RETURN …`: the server stores them parsed, so their constants can be
    /// sealed like those of a view.
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
                    (Some(target), Some(val)) => self.returned(target, &val, location(node)),
                    _ => Ok(()),
                }
            }
            _ => {
                let cols = self.query_node(node)?;
                match (target, cols.list.as_slice()) {
                    (Some(target), [only]) => self.returned(target, &only.val, location(node)),
                    _ => Ok(()),
                }
            }
        }
    }

    /// The result of a parsed body: a string there is first of type `text`.
    fn returned(&mut self, target: &Val, val: &Val, at: i32) -> Res<()> {
        if val.bare() {
            self.type_bare(&val.leaves, TypeCode::Text);
        }
        self.assign(target, val, at)
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

    /// Whether there is a body that names something protected and has constants.
    fn bodies(&mut self, options: &[Node], trigger: bool, name: Option<(&str, &str)>) -> Res<bool> {
        let (language, texts) = source(options);
        if matches!(language.as_str(), "c" | "internal") {
            return Ok(false);
        }
        let ours = matches!(language.as_str(), "sql" | "plpgsql");
        let location = source_location(options);
        let mut judged = false;
        for text in texts {
            judged |= self.body(&text, ours, trigger, location)?;
            self.authority.body(name, &text, trigger, self.schema);
        }
        Ok(judged)
    }

    /// Examines the body word by word, including strings (`EXECUTE 'SELECT …'`), in any language.
    /// What a constant is is known only for SQL and PL/pgSQL.
    fn body(&mut self, text: &str, ours: bool, trigger: bool, location: i32) -> Res<bool> {
        let columns = match trigger {
            true => self.schema.protected_columns(),
            false => HashSet::new(),
        };
        // Envelopes of constants tell nothing; so a dump may have routines before their tables.
        let open = crate::body::sealed::without_exported(text);
        let lower = open.to_ascii_lowercase();
        let words = |text: &str| {
            text.split(|c| !in_word(c)).any(|word| {
                self.schema.is_protected_name(word)
                    || columns.contains(word)
                    || ["enc_", "rnd_", "soft_"]
                        .iter()
                        .any(|f| word.starts_with(f))
            })
        };
        let mut names = self.schema.protected_names().chain(columns.iter().copied());
        let protected = words(&open)
            || words(&lower)
            || names.any(|name| name.contains(|c| !in_word(c)) && open.contains(name));
        if !protected {
            return Ok(false);
        }
        self.touches_protected = true;
        if self.authorising {
            return Ok(false);
        }
        let tokens = match Tokens::scan(text) {
            Ok(tokens) if ours => tokens,
            _ => return Err(crate::body::refuse_constants(location)),
        };
        let whole = 0..text.len();
        let constants = tokens
            .values(&whole)
            .any(|(token, _)| token != Token::Param);
        self.take_comments(text, &tokens, location)?;
        Ok(constants)
    }

    /// Comments are removed from such a body, as from a query.
    fn take_comments(&mut self, text: &str, tokens: &Tokens, location: i32) -> Res<()> {
        if tokens.comments().is_empty() {
            return Ok(());
        }
        let Some(start) = self.start_of_body(text) else {
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

fn has_constants(options: &[Node]) -> bool {
    let (language, texts) = source(options);
    let within = |text: &String| {
        Tokens::scan(text).is_ok_and(|tokens| {
            let whole = 0..text.len();
            tokens
                .values(&whole)
                .any(|(token, _)| token != Token::Param)
        })
    };
    matches!(language.as_str(), "sql" | "plpgsql") && texts.iter().any(within)
}

fn has_exported(options: &[Node]) -> bool {
    let (_, texts) = source(options);
    let within = |text: &String| crate::body::sealed::without_exported(text) != *text;
    texts.iter().any(within)
}

fn source_location(options: &[Node]) -> i32 {
    option(options, "as").map_or(-1, |body| body.location)
}

/// A routine's language, and the strings that contain its body.
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
