//! The tokens of the text, and what can be derived from them: where a literal, a type name or a
//! parenthesis ends.

use crate::refusal::Refusal;
use pg_query::protobuf::{ScanToken, Token};
use std::borrow::Cow;
use std::ops::Range;

/// The tokens without comments.
pub(crate) struct Tokens {
    list: Vec<ScanToken>,
    comments: Vec<Range<usize>>,
}

impl Tokens {
    pub fn scan(sql: &str) -> Result<Tokens, Refusal> {
        // The scanner fails for a text without any tokens.
        if sql
            .bytes()
            .all(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c))
        {
            return Ok(Tokens {
                list: Vec::new(),
                comments: Vec::new(),
            });
        }
        let mut list = pg_query::scan_tokens(sql)
            .map_err(|_| Refusal::new("42601", "syntax error: the statement cannot be read"))?;
        let is_comment = |t: &ScanToken| matches!(t.token(), Token::SqlComment | Token::CComment);
        let range = |t: &ScanToken| t.start as usize..t.end as usize;
        let comments = list.iter().filter(|t| is_comment(t)).map(range).collect();
        list.retain(|t| !is_comment(t));
        Ok(Tokens { list, comments })
    }

    pub fn comments(&self) -> &[Range<usize>] {
        &self.comments
    }

    pub fn all(&self) -> &[ScanToken] {
        &self.list
    }

    /// Whether the token is a constant or parameter.
    pub fn holds_value(&self, index: usize) -> bool {
        is_value(self.kind(index))
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The index of the token that starts at this offset.
    pub fn at(&self, offset: usize) -> Option<usize> {
        self.list
            .binary_search_by_key(&offset, |t| t.start as usize)
            .ok()
    }

    pub fn kind(&self, index: usize) -> Token {
        self.list.get(index).map_or(Token::Nul, |t| t.token())
    }

    pub fn range(&self, index: usize) -> Range<usize> {
        self.list
            .get(index)
            .map_or(0..0, |t| t.start as usize..t.end as usize)
    }

    pub fn is_name(&self, index: usize) -> bool {
        match self.list.get(index) {
            None => false,
            Some(t) => {
                matches!(t.token(), Token::Ident | Token::Uident)
                    || t.keyword_kind != pg_query::protobuf::KeywordKind::NoKeyword as i32
            }
        }
    }

    /// Constants and parameters, with their ranges.
    pub fn values(&self, range: &Range<usize>) -> impl Iterator<Item = (Token, Range<usize>)> {
        let begin = self
            .list
            .partition_point(|t| (t.start as usize) < range.start);
        let end = range.end;
        self.list
            .get(begin..)
            .unwrap_or_default()
            .iter()
            .take_while(move |t| (t.start as usize) < end)
            .filter(|t| is_value(t.token()))
            .map(|t| (t.token(), t.start as usize..t.end as usize))
    }

    /// The first token that starts at or after this offset.
    pub fn next_from(&self, offset: usize) -> usize {
        self.list.partition_point(|t| (t.start as usize) < offset)
    }

    /// The index of the parenthesis or bracket that closes the one at `open`.
    pub fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0usize;
        for (index, token) in self.list.iter().enumerate().skip(open) {
            match token.token() {
                Token::Ascii40 | Token::Ascii91 => depth += 1,
                Token::Ascii41 | Token::Ascii93 => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(index);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// One past the last token of the type name that starts at `index`.
    pub fn type_end(&self, mut index: usize) -> usize {
        if self.kind(index) == Token::Setof {
            index += 1;
        }
        index = match self.kind(index) {
            Token::DoubleP => index + 2,
            Token::National => self.varying(index + 2),
            Token::Character | Token::CharP | Token::Nchar | Token::Bit => self.varying(index + 1),
            Token::Timestamp | Token::Time => self.time_zone(self.parenthesis(index + 1)),
            Token::Interval => self.interval_fields(index + 1),
            _ => self.generic_type(index),
        };
        index = self.parenthesis(index);
        if self.kind(index) == Token::Array {
            index += 1;
        }
        while self.kind(index) == Token::Ascii91 {
            index = self.closing(index).map_or(index + 1, |close| close + 1);
        }
        index
    }

    fn varying(&self, index: usize) -> usize {
        if self.kind(index) == Token::Varying {
            index + 1
        } else {
            index
        }
    }

    fn parenthesis(&self, index: usize) -> usize {
        match self.kind(index) {
            Token::Ascii40 => self.closing(index).map_or(index, |close| close + 1),
            _ => index,
        }
    }

    fn time_zone(&self, index: usize) -> usize {
        let with = matches!(
            self.kind(index),
            Token::With | Token::WithLa | Token::Without | Token::WithoutLa
        );
        if with && self.kind(index + 1) == Token::Time && self.kind(index + 2) == Token::Zone {
            index + 3
        } else {
            index
        }
    }

    /// The fields of an interval type, which follow `interval`.
    pub fn interval_fields(&self, mut index: usize) -> usize {
        index = self.parenthesis(index);
        let field = |index| {
            matches!(
                self.kind(index),
                Token::YearP
                    | Token::MonthP
                    | Token::DayP
                    | Token::HourP
                    | Token::MinuteP
                    | Token::SecondP
            )
        };
        if field(index) {
            index += 1;
            if self.kind(index) == Token::To && field(index + 1) {
                index += 2;
            }
        }
        self.parenthesis(index)
    }

    fn generic_type(&self, mut index: usize) -> usize {
        index += 1;
        while self.kind(index) == Token::Ascii46 {
            index += 2;
        }
        index
    }
}

fn is_value(token: Token) -> bool {
    matches!(
        token,
        Token::Sconst
            | Token::Usconst
            | Token::Iconst
            | Token::Fconst
            | Token::Bconst
            | Token::Xconst
            | Token::Param
    )
}

/// An identifier as PostgreSQL reads it: folded to lower case, or without its quotes.
pub(crate) fn identifier(token: &str) -> Cow<'_, str> {
    match token.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
        Some(quoted) if quoted.contains('"') => Cow::Owned(quoted.replace("\"\"", "\"")),
        Some(quoted) => Cow::Borrowed(quoted),
        None if token.bytes().any(|b| b.is_ascii_uppercase()) => {
            Cow::Owned(token.to_ascii_lowercase())
        }
        None => Cow::Borrowed(token),
    }
}
