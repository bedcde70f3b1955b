//! From inference to result: the edits of the leaves that became protected, the use of each
//! parameter, and the check that no constant was overlooked.

use crate::array;
use crate::edit::{Edit, Form, Piece, Secret};
use crate::infer::{Infer, Res};
use crate::refusal::Refusal;
use crate::statement::ParamUse;
use crate::value::{Leaf, LeafKind};
use contract::TypeCode;
use pg_query::protobuf::Token;
use std::collections::BTreeMap;
use std::ops::Range;

/// The result for a statement.
pub(crate) struct Outcome {
    pub edits: Vec<Edit>,
    pub params: BTreeMap<u32, ParamUse>,
    /// See [`Infer::free`].
    pub free: Vec<Range<usize>>,
    /// See [`Infer::open_constants`].
    pub open: Vec<Range<usize>>,
}

impl Outcome {
    /// The same where values may go elsewhere than into their columns.
    pub fn without_fits(mut self) -> Outcome {
        for piece in self.edits.iter_mut().flat_map(|edit| &mut edit.pieces) {
            if let Piece::Envelope(secret) = piece {
                secret.fits = None;
            }
        }
        self.params
            .values_mut()
            .for_each(|used| *used = used.elsewhere());
        self
    }
}

impl Infer<'_> {
    /// What each parameter is combined with, according to the current state of the inference.
    /// Conflicts are detected at the end.
    pub fn parameter_uses(&self) -> BTreeMap<u32, ParamUse> {
        let mut params = BTreeMap::new();
        for id in 0..self.leaves.len() {
            let leaf = self.leaves.get(id);
            if let LeafKind::Param(number, said) = leaf.kind {
                let _ = note_param(&mut params, number, said, leaf, self.leaves.protected(id));
            }
        }
        params
    }

    /// Completes the inference of the statement in this range.
    pub fn finish(&mut self, range: &Range<usize>) -> Res<Outcome> {
        self.type_echoes();
        self.check_encoded()?;
        let mut edits = std::mem::take(&mut self.edits);
        let mut params: BTreeMap<u32, ParamUse> = BTreeMap::new();
        for id in 0..self.leaves.len() {
            self.leaves.compress(id);
            let protected = self.leaves.protected(id);
            let leaf = self.leaves.get(id);
            if let LeafKind::Param(number, said) = leaf.kind {
                note_param(&mut params, number, said, leaf, protected)?;
            }
            if let Some(soft) = leaf.soft {
                edits.extend(self.soft_edit(leaf, soft));
            } else if protected {
                edits.extend(self.leaf_edit(leaf)?);
            }
        }
        if self.overtaken().is_some() {
            return Err(Refusal::unsupported(
                "cannot tell which literals meet protected values",
            ));
        }
        self.check_torn()?;
        if !self.echoing().is_empty() {
            return Err(Refusal::unsupported(
                "cannot tell which literals say what is sealed elsewhere",
            ));
        }
        self.check_coverage(range)?;
        let names = self.kept_names(&edits);
        edits.extend(names);
        Ok(Outcome {
            edits: ordered(edits),
            params,
            free: self.free(),
            open: self.open_constants(),
        })
    }

    /// Literals of which only the value matters: each is a single constant of an expression, in no
    /// other leaf, and its text is its value. The inference depends only on the kind of such a
    /// leaf.
    fn free(&self) -> Vec<Range<usize>> {
        // A constant is sealed because another one has the same value.
        if self
            .tokens
            .values(&self.range)
            .any(|(token, r)| token != Token::Param && self.echoes.contains(&r.start))
        {
            return Vec::new();
        }
        let mut leaves: Vec<&Leaf> = (0..self.leaves.len())
            .map(|id| self.leaves.get(id))
            .filter(|leaf| !leaf.range.is_empty())
            .collect();
        leaves.sort_by_key(|leaf| leaf.range.start);
        let mut free = Vec::new();
        let mut reached = 0;
        for (at, leaf) in leaves.iter().enumerate() {
            let behind = leaves
                .get(at + 1)
                .is_none_or(|l| l.range.start >= leaf.range.end);
            if leaf.range.start >= reached && behind && self.says_its_value(leaf) {
                free.push(leaf.range.clone());
            }
            reached = reached.max(leaf.range.end);
        }
        free
    }

    fn says_its_value(&self, leaf: &Leaf) -> bool {
        let text = self.sql.get(leaf.range.clone()).unwrap_or_default();
        let inner = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\''));
        match &leaf.kind {
            _ if leaf.looked_at => false,
            LeafKind::Str(value, _) => inner.unwrap_or(text).as_bytes() == value,
            LeafKind::Typed(TypeCode::Int4, -1, value) => text.as_bytes() == value,
            _ => false,
        }
    }

    fn leaf_edit(&self, leaf: &Leaf) -> Res<Option<Edit>> {
        let position = leaf.range.start;
        let envelope = |form| {
            Piece::Envelope(Secret {
                form,
                position,
                meets: leaf.meets,
                fits: leaf.fit(),
            })
        };
        let cast = |code: TypeCode| Piece::Text(format!("::pg_catalog.{}", code.enc_name()));
        let refuse = |message: &str| unprotectable(position, message);
        let pieces = match &leaf.kind {
            LeafKind::Str(text, said) => match leaf.array {
                Some(element) => {
                    array::pieces(text, element.or(*said), position).ok_or_else(|| {
                        refuse("It is an array in one literal, with bounds, or malformed.")
                            .hint("Write ARRAY[…] or IN (…), or pass an array parameter.")
                    })?
                }
                None => {
                    let secret = envelope(Form::Text(text.clone(), said.or(leaf.typed)));
                    match leaf.typed.filter(|_| said.is_none()) {
                        Some(code) => vec![secret, cast(code)],
                        None => vec![secret],
                    }
                }
            },
            LeafKind::Typed(code, typmod, text) => {
                let wider = leaf.fit().map(|fit| fit.code).filter(|to| to != code);
                let form = match wider {
                    Some(to) => Form::Wider(*code, to, text.clone()),
                    None => Form::Typed(*code, *typmod, text.clone()),
                };
                vec![envelope(form), cast(wider.unwrap_or(*code))]
            }
            LeafKind::Param(_, said) => return Ok(parameter_edit(leaf, *said)),
            LeafKind::Cast(Some(twin)) => vec![Piece::Text(twin.clone())],
            LeafKind::Cast(None) => {
                return Err(refuse(
                    "It is cast to a type that has no protected twin in this form.",
                ));
            }
            LeafKind::Written(before, code, text, after) => vec![
                Piece::Text(before.clone()),
                envelope(Form::Typed(*code, -1, text.as_bytes().to_vec())),
                Piece::Text(format!("::pg_catalog.{}{after}", code.enc_name())),
            ],
            LeafKind::Null => return Ok(None),
            LeafKind::Argument(name) => return Err(crate::body::refuse_argument(name)),
            LeafKind::Never(why) => return Err(refuse(&format!("Reason: {why}."))),
        };
        Ok(Some(Edit {
            range: leaf.range.clone(),
            pieces,
        }))
    }

    /// Checks that every constant of a statement that touches something protected was examined.
    fn check_coverage(&self, range: &Range<usize>) -> Res<()> {
        if !self.touches_protected {
            return Ok(());
        }
        match self
            .tokens
            .values(range)
            .find(|(_, r)| !self.visited.contains(&r.start))
        {
            None => Ok(()),
            Some((token, r)) => {
                let what = if token == Token::Param {
                    "parameter"
                } else {
                    "literal"
                };
                Err(Refusal::unsupported(format!(
                    "a {what} stands where the proxy cannot tell what it meets"
                ))
                .at(i32::try_from(r.start).unwrap_or(-1)))
            }
        }
    }
}

/// A parameter of the family `soft_` that is used twice.
fn both_soft(one: ParamUse, other: ParamUse) -> Option<ParamUse> {
    let (
        ParamUse::Soft {
            column,
            purpose,
            said,
        },
        ParamUse::Soft {
            column: c,
            purpose: p,
            said: s,
        },
    ) = (one, other)
    else {
        return None;
    };
    Some(ParamUse::Soft {
        column: Some(column).filter(|column| *column == c)?,
        purpose: purpose.and(p)?,
        said: said.or(s),
    })
}

fn note_param(
    params: &mut BTreeMap<u32, ParamUse>,
    number: u32,
    said: Option<TypeCode>,
    leaf: &Leaf,
    protected: bool,
) -> Res<()> {
    let declared = said.or(leaf.typed);
    let this = match (protected, leaf.array) {
        _ if let Some(soft) = leaf.soft => ParamUse::Soft {
            column: soft.column,
            purpose: soft.purpose,
            said: leaf.array.flatten().or(said),
        },
        (true, Some(element)) => ParamUse::ProtectedArray {
            declared: element.or(said),
        },
        (true, None) => ParamUse::Protected {
            declared,
            fits: leaf.fit(),
        },
        (false, _) if leaf.met_plain => ParamUse::Plain,
        (false, _) => ParamUse::Undecided,
    };
    let Some(before) = params.get(&number).copied() else {
        params.insert(number, this);
        return Ok(());
    };
    let together = match (before, this) {
        (ParamUse::Undecided, other) | (other, ParamUse::Undecided) => other.elsewhere(),
        (a, b) if a == b => a,
        (a, b) if let Some(both) = both_soft(a, b) => both,
        (ParamUse::Protected { declared: a, .. }, ParamUse::Protected { declared: b, .. }) => {
            ParamUse::Protected {
                declared: a.or(b),
                fits: None,
            }
        }
        (ParamUse::ProtectedArray { declared: a }, ParamUse::ProtectedArray { declared: b }) => {
            ParamUse::ProtectedArray { declared: a.or(b) }
        }
        _ => {
            return Err(Refusal::new(
                "42P08",
                format!("parameter ${number} meets both protected and plain values"),
            )
            .at(i32::try_from(leaf.range.start).unwrap_or(-1))
            .hint("Use two parameters."));
        }
    };
    params.insert(number, together);
    Ok(())
}

/// A literal or parameter that cannot get the type it needs.
fn unprotectable(position: usize, why: &str) -> Refusal {
    Refusal::unsupported("a literal that meets a protected expression cannot be protected")
        .at(i32::try_from(position).unwrap_or(-1))
        .detail(why)
}

fn parameter_edit(leaf: &Leaf, said: Option<TypeCode>) -> Option<Edit> {
    let code = leaf
        .typed
        .filter(|_| said.is_none() && leaf.array.is_none())?;
    let end = leaf.range.end;
    Some(Edit {
        range: end..end,
        pieces: vec![Piece::Text(format!("::pg_catalog.{}", code.enc_name()))],
    })
}

/// Sorts edits and removes duplicates; of overlapping edits, the larger one is kept.
fn ordered(mut edits: Vec<Edit>) -> Vec<Edit> {
    edits.sort_by_key(|e| {
        (
            e.range.start,
            if e.range.is_empty() { 0 } else { 1 },
            usize::MAX - e.range.end,
        )
    });
    let mut kept: Vec<Edit> = Vec::new();
    for edit in edits {
        let overlaps = kept.iter().rev().take(3).any(|k| {
            *k == edit
                || (k.range.end > edit.range.start && !k.range.is_empty())
                || (k.range == edit.range && !k.range.is_empty())
        });
        if !overlaps {
            kept.push(edit);
        }
    }
    kept
}
