//! Functions, procedures and `DO`: bodies in strings are looked at token by token
//! only. One that names something protected must not have constants in it.

use crate::analyze::mentions_protected;
use crate::infer::{Infer, Res};
use crate::refusal::Refusal;
use crate::tokens::Tokens;
use crate::utility::{Extra, constant_text};
use pg_query::protobuf::{CreateFunctionStmt, Token};
use pg_query::{Node, NodeEnum};

impl Infer<'_> {
    pub fn routine(&mut self, node: &NodeEnum) -> Res<Extra> {
        match node {
            NodeEnum::DoStmt(d) => {
                self.bodies(&d.args)?;
                self.without_values()
            }
            NodeEnum::CreateFunctionStmt(f) => {
                self.parameters_of(f)?;
                self.bodies(&f.options)?;
                if f.sql_body.is_some() {
                    self.parsed_body()?;
                }
                self.without_values()
            }
            _ => self.without_values(),
        }
    }

    /// Defaults of arguments.
    fn parameters_of(&mut self, f: &CreateFunctionStmt) -> Res<()> {
        for node in &f.parameters {
            let Some(NodeEnum::FunctionParameter(p)) = &node.node else {
                continue;
            };
            let Some(name) = &p.arg_type else { continue };
            let target = if name.pct_type {
                self.visit_type(name);
                crate::value::Val::unknown()
            } else {
                let ty = self.column_type(name)?;
                self.value_of(&ty)
            };
            if let Some(default) = p.defexpr.as_deref() {
                let val = self.expr(default)?;
                self.assign(&target, &val, p.location)?;
            }
        }
        Ok(())
    }

    /// `BEGIN ATOMIC …` and `RETURN …`: by their tokens, too. The whole statement
    /// is looked at: the arguments' types and defaults are names and values.
    fn parsed_body(&mut self) -> Res<()> {
        if !mentions_protected(self.sql, self.tokens, &self.range, self.schema) {
            return Ok(());
        }
        self.touches_protected = true;
        let values: Vec<_> = self
            .tokens
            .values(&self.range)
            .filter(|(token, _)| *token != Token::Param)
            .collect();
        match values
            .into_iter()
            .find(|(_, r)| !self.visited.contains(&r.start))
        {
            None => Ok(()),
            Some((_, r)) => Err(constants(i32::try_from(r.start).unwrap_or(-1))),
        }
    }

    fn bodies(&mut self, options: &[Node]) -> Res<()> {
        let option = |wanted: &str| {
            options.iter().find_map(|o| match &o.node {
                Some(NodeEnum::DefElem(d)) if d.defname == wanted => Some(d),
                _ => None,
            })
        };
        let language = option("language")
            .and_then(|d| d.arg.as_deref())
            .and_then(constant_text);
        if language.is_some_and(|l| l == "c" || l == "internal") {
            return Ok(());
        }
        let Some(body) = option("as") else {
            return Ok(());
        };
        let texts: Vec<String> = match body.arg.as_deref().and_then(|n| n.node.as_ref()) {
            Some(NodeEnum::List(list)) => list.items.iter().filter_map(constant_text).collect(),
            Some(_) => body
                .arg
                .as_deref()
                .and_then(constant_text)
                .into_iter()
                .collect(),
            None => Vec::new(),
        };
        for text in texts {
            self.body(&text, body.location)?;
        }
        Ok(())
    }

    fn body(&mut self, text: &str, location: i32) -> Res<()> {
        let Ok(tokens) = Tokens::scan(text) else {
            return Err(
                Refusal::unsupported("the body of the function cannot be read").at(location),
            );
        };
        let all = 0..text.len();
        let mut protected = mentions_protected(text, &tokens, &all, self.schema);
        // Statements in strings: EXECUTE 'SELECT … FROM emp'.
        let strings =
            (0..tokens.len()).filter(|i| matches!(tokens.kind(*i), Token::Sconst | Token::Usconst));
        for index in strings {
            if let Ok(inner) =
                Tokens::scan(text[tokens.range(index)].trim_matches(|c| c == '\'' || c == '$'))
            {
                let source = text[tokens.range(index)].trim_matches(|c| c == '\'' || c == '$');
                protected |= mentions_protected(source, &inner, &(0..source.len()), self.schema);
            }
        }
        if !protected {
            return Ok(());
        }
        self.touches_protected = true;
        match tokens
            .values(&all)
            .find(|(token, _)| *token != Token::Param)
        {
            None => Ok(()),
            Some(_) => Err(constants(location)),
        }
    }
}

fn constants(location: i32) -> Refusal {
    Refusal::unsupported("the body of this routine names something protected and has constants in it")
        .at(location)
        .detail("The proxy cannot tell which of the constants meet protected values; they would be stored in the clear.")
        .hint("Pass the values as arguments of protected types.")
        .for_good()
}
