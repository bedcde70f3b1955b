//! Preserves the names of output columns. PostgreSQL derives them from the expression
//! ([`crate::naming`]), so a cast that is added or changed by an edit could show up in the name.
//! Such columns get their original name by `AS`.

use super::{Infer, location};
use crate::edit::{Edit, Piece};
use crate::naming::{Figure, figure};
use pg_query::protobuf::{ResTarget, Token};
use pg_query::{Node, NodeEnum};

/// A column whose name may change.
pub(crate) struct NamedTarget {
    /// Position of what determines the name; without one, the name has changed.
    decided: Option<usize>,
    start: usize,
    name: String,
}

impl Infer<'_> {
    /// Analyses a query whose column names matter, whatever its context.
    pub fn with_names<T>(&mut self, inner: impl FnOnce(&mut Self) -> T) -> T {
        let outside = std::mem::take(&mut self.nameless);
        let result = inner(self);
        self.nameless = outside;
        result
    }

    /// Records a target whose name an edit could change.
    pub fn keep_name(&mut self, target: &ResTarget, value: &Node) {
        if !target.name.is_empty() || self.nameless > 0 {
            return;
        }
        let Figure { name, decided, .. } = figure(value);
        let start = [target.location, location(value)]
            .into_iter()
            .find_map(|at| usize::try_from(at).ok());
        if let (Some(_), Some(start)) = (decided, start) {
            self.named_targets.push(NamedTarget {
                decided,
                start,
                name,
            });
        }
    }

    /// Keeps the name of a target that is cast as a whole.
    pub fn keep_name_of_cast(&mut self, target: &ResTarget, value: &Node) {
        let of_type = !matches!(value.node, Some(NodeEnum::ColumnRef(_)));
        if let (true, true, Ok(start)) = (
            of_type,
            target.name.is_empty() && self.nameless == 0,
            usize::try_from(target.location),
        ) {
            self.named_targets.push(NamedTarget {
                decided: None,
                start,
                name: figure(value).name,
            });
        }
    }

    /// The names to be added because of the statement's edits.
    pub fn kept_names(&self, edits: &[Edit]) -> Vec<Edit> {
        let mut more: Vec<Edit> = Vec::new();
        for target in &self.named_targets {
            let changed = target.decided.is_none_or(|at| {
                let mut edits = edits.iter();
                edits.any(|e| e.range.contains(&at) && gives_name(e))
            });
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

    /// The end of the target list expression that starts here.
    fn target_end(&self, start: usize) -> Option<usize> {
        let mut index = self.tokens.at(start)?;
        let mut end = None;
        while index < self.tokens.len() && self.tokens.range(index).start < self.range.end {
            match self.tokens.kind(index) {
                Token::Ascii40 | Token::Ascii91 => index = self.tokens.closing(index)?,
                Token::From if index > 0 && self.tokens.kind(index - 1) == Token::Distinct => {}
                Token::GroupP if index > 0 && self.tokens.kind(index - 1) == Token::Within => {}
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

/// Whether PostgreSQL could name the column by the replacement: it contains a type or a call.
fn gives_name(edit: &Edit) -> bool {
    let names = |text: &str| text.contains("pg_catalog.enc_") || text.contains('(');
    let mut pieces = edit.pieces.iter();
    pieces.any(|p| matches!(p, Piece::Text(text) if names(text)))
}
