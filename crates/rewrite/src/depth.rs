//! An upper bound for the depth of a statement's parse tree, computed before parsing.
//!
//! Parser, decoder and inference are recursive. Deep statements are analysed on a thread with a
//! large stack; those beyond the limit are refused.

use crate::refusal::Refusal;
use pg_query::protobuf::{KeywordKind, ScanToken, Token};

/// Deeper statements are analysed on a separate stack.
pub(crate) const INLINE: usize = 40;
/// Deeper statements are refused.
const MAX: usize = 4_000;
/// Stack size for deep statements (address space; only the used part is touched).
pub(crate) const STACK: usize = 1 << 30;

/// An upper bound for the depth of the tree that these tokens form.
pub(crate) fn bound(tokens: &[ScanToken]) -> Result<usize, Refusal> {
    let (mut open, mut here, mut below, mut most) = (Vec::new(), 0usize, 0usize, 0usize);
    for token in tokens {
        match token.token() {
            Token::Ascii40 | Token::Ascii91 => {
                open.push(here);
                below += here + 1;
                here = 0;
            }
            Token::Ascii41 | Token::Ascii93 => {
                if let Some(outer) = open.pop() {
                    below = below.saturating_sub(outer + 1);
                    here = outer + 1;
                }
            }
            Token::Ascii44 | Token::Ascii59 => here = 0,
            Token::And | Token::Or | Token::SqlComment | Token::CComment => {}
            other if nests(other, token.keyword_kind) => here += 1,
            _ => {}
        }
        most = most.max(below + here);
        if most > MAX {
            return Err(Refusal::new("54001", "the statement is too complex").at(token.start));
        }
    }
    Ok(most)
}

/// Whether the token can add a level to the tree.
fn nests(token: Token, keyword: i32) -> bool {
    match token {
        Token::Ident
        | Token::Uident
        | Token::Sconst
        | Token::Usconst
        | Token::Iconst
        | Token::Fconst => false,
        // Comparisons do not chain: they are combined by AND and OR, which the parser keeps flat.
        Token::Ascii60 | Token::Ascii61 | Token::Ascii62 => false,
        Token::LessEquals
        | Token::GreaterEquals
        | Token::NotEquals
        | Token::Param
        | Token::Ascii46 => false,
        Token::Union
        | Token::Intersect
        | Token::Except
        | Token::Join
        | Token::Case
        | Token::Not => true,
        Token::Is
        | Token::Isnull
        | Token::Notnull
        | Token::Collate
        | Token::At
        | Token::Like
        | Token::Ilike => true,
        _ => keyword == KeywordKind::NoKeyword as i32,
    }
}
