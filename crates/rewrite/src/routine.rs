//! Functions, procedures and `DO`: bodies in strings are looked at token by token
//! only. One that names something protected must not have constants in it.

use crate::infer::{Infer, Res, names};
use crate::reach::Reach;
use crate::refusal::Refusal;
use crate::statement::Prepared;
use crate::tokens::Tokens;
use crate::utility::{Extra, constant_text};
use pg_query::protobuf::{CreateFunctionStmt, Token};
use pg_query::{Node, NodeEnum};

impl Infer<'_> {
    pub fn routine(&mut self, node: &NodeEnum) -> Res<Extra> {
        match node {
            NodeEnum::DoStmt(d) => {
                self.bodies(&d.args, false)?;
                self.without_values()
            }
            NodeEnum::CreateFunctionStmt(f) => {
                self.parameters_of(f)?;
                let returns = f
                    .return_type
                    .as_ref()
                    .map(|t| names(&t.names))
                    .unwrap_or_default();
                self.bodies(&f.options, returns.last() == Some(&"trigger"))?;
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
        let none = Prepared::default();
        if !Reach::of(&[self.schema], &none).tokens(self.sql, self.tokens, &self.range) {
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

    fn bodies(&mut self, options: &[Node], trigger: bool) -> Res<()> {
        let option = |wanted: &str| {
            options.iter().find_map(|o| match &o.node {
                Some(NodeEnum::DefElem(d)) if d.defname == wanted => Some(d),
                _ => None,
            })
        };
        let language = option("language")
            .and_then(|d| d.arg.as_deref())
            .and_then(constant_text);
        let language = language.unwrap_or_else(|| "plpgsql".into());
        if matches!(language.as_str(), "c" | "internal") {
            return Ok(());
        }
        let ours = matches!(language.as_str(), "sql" | "plpgsql");
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
            self.body(&text, ours, trigger, body.location)?;
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
                .any(|word| names.contains(word) || word.starts_with("enc_"))
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
        let constant = !ours
            || Tokens::scan(text).map_or(true, |tokens| {
                tokens
                    .values(&(0..text.len()))
                    .any(|(token, _)| token != Token::Param)
            });
        if constant {
            Err(constants(location))
        } else {
            Ok(())
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
