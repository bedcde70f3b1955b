//! `GRANT VIEWER` and similar statements, which PostgreSQL does not have. They are converted to a
//! call that carries the client's sealed command to the keeper.
//!
//! Invariant: a text that is not exactly such a statement is processed normally.

use client::Failure;
use contract::soft;
use grant::{Column, Command, GROUP, Verb};
use recording::Order;
use zeroize::Zeroizing;

use super::analysis::{Outcome, Text};
use super::internal::Purpose;
use super::{Core, Step};

/// The tokens distinguished in a statement.
#[derive(Debug, PartialEq, Eq, Clone)]
enum Token {
    /// A name or a keyword, case-folded unless it was quoted.
    Word(String, bool),
    /// A string.
    Text(String),
    /// Anything else.
    Sign(char),
}

/// The tokens of a short text; `None` if it contains comments or other things that do not occur in
/// these statements.
fn tokens(sql: &str) -> Option<Vec<Token>> {
    let mut found = Vec::new();
    let mut rest = sql.chars().peekable();
    while let Some(c) = rest.next() {
        let token = match c {
            c if c.is_whitespace() => continue,
            '"' | '\'' => {
                let mut text = String::new();
                loop {
                    match rest.next()? {
                        q if q == c && rest.peek() == Some(&c) => {
                            text.push(c);
                            rest.next();
                        }
                        q if q == c => break,
                        other => text.push(other),
                    }
                }
                match c {
                    '"' => Token::Word(text, true),
                    _ => Token::Text(text),
                }
            }
            c if c.is_alphanumeric() || c == '_' => {
                let mut text = String::from(c);
                while let Some(next) =
                    rest.next_if(|n| n.is_alphanumeric() || matches!(n, '_' | '$'))
                {
                    text.push(next);
                }
                Token::Word(text.to_lowercase(), false)
            }
            '.' | '(' | ')' | ',' | ';' => Token::Sign(c),
            _ => return None,
        };
        found.push(token);
        if found.len() > 32 {
            return None;
        }
    }
    if found.last() == Some(&Token::Sign(';')) {
        found.pop();
    }
    Some(found)
}

fn keyword(token: Option<&Token>) -> &str {
    match token {
        Some(Token::Word(word, false)) => word,
        _ => "",
    }
}

/// The three names of a column, and the tokens after them.
fn column(tokens: &[Token]) -> Option<(Column, &[Token])> {
    match tokens {
        [
            Token::Word(schema, _),
            Token::Sign('.'),
            Token::Word(relation, _),
            Token::Sign('.'),
            Token::Word(name, _),
            rest @ ..,
        ] => Some((Column::new(schema, relation, name), rest)),
        _ => None,
    }
}

/// Returns the command if a statement is one.
pub(super) fn read(sql: &str) -> Option<Command> {
    if sql.len() > 1024 {
        return None;
    }
    let (start, rest) = sql.trim_start().split_at_checked(6)?;
    let begins = |text: &str, word: &str| {
        text.get(..word.len())
            .is_some_and(|t| t.eq_ignore_ascii_case(word))
    };
    let select = begins(start, "select") && begins(rest.trim_start(), "confide");
    if !select
        && !["grant ", "deny v", "revoke"]
            .iter()
            .any(|w| begins(start, w))
    {
        return None;
    }
    let tokens = tokens(sql)?;
    let (first, second) = (keyword(tokens.first()), keyword(tokens.get(1)));
    let rest = tokens.get(2..)?;
    let verb = match (first, second) {
        ("grant", "viewer") => Verb::GrantViewer,
        ("deny", "viewer") => Verb::DenyViewer,
        ("revoke", "viewer") => Verb::RevokeViewer,
        ("grant", "owner") => Verb::GrantOwner,
        ("revoke", "owner") => Verb::RevokeOwner,
        ("select", "confide") => return function(rest),
        _ => return None,
    };
    let on = keyword(rest.first()) == "on" && rest.get(1) != Some(&Token::Sign('.'));
    let (column, rest) = column(rest.get(usize::from(on)..)?)?;
    let to = if verb == Verb::RevokeViewer {
        "from"
    } else {
        "to"
    };
    let word = match rest {
        [] if verb == Verb::RevokeOwner => String::new(),
        [preposition, Token::Word(word, _)]
            if keyword(Some(preposition)) == to && verb != Verb::RevokeOwner =>
        {
            word.clone()
        }
        [preposition, group, Token::Word(word, _)]
            if keyword(Some(preposition)) == to
                && keyword(Some(group)) == "group"
                && !matches!(verb, Verb::GrantOwner | Verb::RevokeOwner) =>
        {
            format!("{GROUP}{word}")
        }
        _ => return None,
    };
    Some(Command { verb, column, word })
}

/// Whether a command names nothing but a column.
fn alone(verb: Verb) -> bool {
    use Verb::{RevokeOwner, TransferKey, WithdrawKey};
    matches!(verb, RevokeOwner | TransferKey | WithdrawKey)
}

/// Parses `confide.grant_viewer('schema.table.column', 'principal')`, starting after `confide`.
fn function(tokens: &[Token]) -> Option<Command> {
    let (name, arguments) = match tokens {
        [
            Token::Sign('.'),
            Token::Word(name, _),
            Token::Sign('('),
            Token::Text(column),
            rest @ ..,
            Token::Sign(')'),
        ] => (name.as_str(), (column, rest)),
        _ => return None,
    };
    let verb = match name {
        "grant_viewer" => Verb::GrantViewer,
        "deny_viewer" => Verb::DenyViewer,
        "revoke_viewer" => Verb::RevokeViewer,
        "grant_owner" => Verb::GrantOwner,
        "revoke_owner" => Verb::RevokeOwner,
        "mask" => Verb::Mask,
        "budget" => Verb::Budget,
        "group_add" => Verb::GroupAdd,
        "group_remove" => Verb::GroupRemove,
        "recover_owner" => Verb::Recover,
        "transfer_key" => Verb::TransferKey,
        "withdraw_key" => Verb::WithdrawKey,
        "rotate_key" => match arguments {
            (text, [Token::Sign(','), Token::Text(word)]) => return rotation(text, word),
            _ => return None,
        },
        _ => return None,
    };
    let (text, rest) = arguments;
    let word = match rest {
        [] if alone(verb) => String::new(),
        [Token::Sign(','), Token::Text(word)] if !alone(verb) => word.clone(),
        _ => return None,
    };
    if matches!(verb, Verb::GroupAdd | Verb::GroupRemove) {
        let column = Column::new("", "", text);
        return Some(Command { verb, column, word });
    }
    let names = self::tokens(text)?;
    let (column, []) = column(&names)? else {
        return None;
    };
    Some(Command { verb, column, word })
}

/// Parses the arguments of `confide.rotate_key('schema.table.column', 'begin 2')`, where 2 is the
/// highest generation that anybody has seen.
fn rotation(text: &str, word: &str) -> Option<Command> {
    let (what, seen) = word.split_once(' ').unwrap_or((word, ""));
    let verb = match (what, seen) {
        ("begin", seen) if seen.bytes().all(|b| b.is_ascii_digit()) => Verb::RotateBegin,
        ("end", "") => Verb::RotateEnd,
        ("back", "") => Verb::RotateBack,
        _ => return None,
    };
    let names = tokens(text)?;
    let (column, []) = column(&names)? else {
        return None;
    };
    let word = seen.to_owned();
    Some(Command { verb, column, word })
}

/// Parses the order about a recording in `confide.record('…')`. It may contain a key, so an order
/// that cannot be parsed is not forwarded to the database.
pub(super) fn order(sql: &str) -> Option<Result<Order, Failure>> {
    // Most statements do not contain such a word.
    let start = sql.trim_start().get(..6)?;
    if !start.eq_ignore_ascii_case("select") || !sql.contains("confide.record(") {
        return None;
    }
    let bad = |what: String| {
        Failure::new("22023", "confide: a recording is not ordered like that")
            .detail(what)
            .hint("Use \"confide record\".")
    };
    let tokens = tokens(sql).unwrap_or_default();
    let said = match tokens.get(2..) {
        Some(
            [
                Token::Sign('.'),
                Token::Word(name, _),
                Token::Sign('('),
                Token::Text(words),
                Token::Sign(')'),
            ],
        ) if name == "record" => Order::read(words).map_err(|e| bad(e.to_string())),
        _ => Err(bad("It is a statement of its own.".into())),
    };
    Some(said)
}

/// A query of a column, by which its type becomes known.
pub(super) fn probe(column: &Column) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let [schema, relation, column] =
        [&column.schema, &column.relation, &column.column].map(|name| quoted(name));
    format!("SELECT {column} FROM {schema}.{relation}")
}

impl Core {
    /// The key of a column of the family `soft_`, for the keeper.
    pub(super) fn transferred(&self, column: &Column) -> Result<Zeroizing<String>, Failure> {
        let relation = self.schema.relation(Some(&column.schema), &column.relation);
        let columns = relation.and_then(|r| r.columns.as_ref());
        let found = columns.and_then(|all| all.iter().find(|c| c.name == column.column));
        let encoded = found.and_then(|c| match c.ty {
            rewrite::ColumnType::Soft(code, modifier) => soft::Column::of(code, modifier),
            _ => None,
        });
        let encoded = encoded.ok_or_else(|| {
            Failure::new("42809", "confide: this is no column of the family soft_")
                .hint("Only columns of this family have keys that the proxy can give to a keeper.")
        })?;
        let keyring = self.session.soft.as_ref().ok_or_else(|| {
            Failure::new("55000", "confide: the proxy has no master key")
                .hint("Set soft_key_file in the proxy's configuration.")
        })?;
        keyring.transferred(encoded)
    }

    /// Returns the statement that carries a command.
    pub(super) fn tell_policy(&mut self, command: &[u8]) -> Step<Outcome> {
        if !self.session.is_open() {
            if !self.tried.handshake {
                self.tried.handshake = true;
                self.start(Purpose::Handshake)?;
                return Ok(Outcome::Wait);
            }
            return Ok(Outcome::Refuse(Failure::no_session()));
        }
        let call = |argument: &str| format!("CALL confide.policy('{argument}')");
        let analysed = self.memo.analyze(&call(""), &self.schema, &self.registry);
        let statements = match analysed {
            Ok(statements) => statements,
            Err(refusal) => return Ok(Outcome::Refuse(Failure::from_refusal(&refusal, ""))),
        };
        Ok(match self.session.seal_command(command) {
            Err(failure) => Outcome::Refuse(failure),
            Ok(envelope) => Outcome::Send(Box::new(Text {
                sql: call(&envelope),
                changed: true,
                statements,
                positions: None,
                sealed: false,
                touches: false,
            })),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::read;
    use grant::Verb;

    fn told(sql: &str) -> Option<(Verb, String, String)> {
        let command = read(sql)?;
        let c = command.column;
        let name = format!("{}/{}/{}", c.schema, c.relation, c.column);
        Some((command.verb, name, command.word))
    }

    /// Orders are either parsed or refused here.
    #[test]
    fn orders() {
        use super::{Order, order};
        assert!(matches!(
            order("SELECT confide.record('stop')"),
            Some(Ok(Order::Stop))
        ));
        let key = "ab".repeat(32);
        let start = format!("select confide.record('start key={key} ring=60');");
        assert!(matches!(order(&start), Some(Ok(Order::Start(_)))));
        // A text that may contain a key is not forwarded.
        for text in [
            format!("SELECT confide.record('start key={key} color=red')"),
            format!("SELECT confide.record('start key={key}'), 1"),
            format!("SELECT 1, confide.record('start key={key}')"),
        ] {
            assert!(matches!(order(&text), Some(Err(_))), "{text}");
        }
        assert!(order("SELECT confide.recorded()").is_none());
        assert!(order("SELECT 1").is_none());
    }

    /// The paper's statements and the functions; PostgreSQL's own statements are processed
    /// normally.
    #[test]
    fn statements() {
        let want = |verb, word: &str| Some((verb, "s/t/pay".to_owned(), word.to_owned()));
        for (sql, found) in [
            (
                "GRANT VIEWER ON s.t.pay TO user1;",
                want(Verb::GrantViewer, "user1"),
            ),
            (
                "deny viewer on S.t.PAY to user1",
                want(Verb::DenyViewer, "user1"),
            ),
            (
                "REVOKE VIEWER ON s.t.pay FROM user1",
                want(Verb::RevokeViewer, "user1"),
            ),
            (
                "GRANT OWNER s.t.pay TO \"User 1\"",
                want(Verb::GrantOwner, "User 1"),
            ),
            ("GRANT OWNER ON s.t.pay TO u", want(Verb::GrantOwner, "u")),
            ("REVOKE OWNER s.t.pay;", want(Verb::RevokeOwner, "")),
            (
                "SELECT confide.grant_viewer('s.t.pay', 'a b')",
                want(Verb::GrantViewer, "a b"),
            ),
            (
                "select confide.mask('s.t.pay', 'partial(2,''X'',4)');",
                want(Verb::Mask, "partial(2,'X',4)"),
            ),
            (
                "SELECT confide.revoke_owner('s.t.pay')",
                want(Verb::RevokeOwner, ""),
            ),
            (
                "DENY VIEWER ON s.t.pay TO GROUP staff",
                want(Verb::DenyViewer, "GROUP staff"),
            ),
            (
                "SELECT confide.budget('s.t.pay', 'orders=10')",
                want(Verb::Budget, "orders=10"),
            ),
            (
                "SELECT confide.rotate_key('s.t.pay', 'begin')",
                want(Verb::RotateBegin, ""),
            ),
            (
                "select confide.rotate_key('s.t.pay', 'end');",
                want(Verb::RotateEnd, ""),
            ),
            (
                "SELECT confide.rotate_key('s.t.pay', 'begin 7')",
                want(Verb::RotateBegin, "7"),
            ),
            ("SELECT confide.rotate_key('s.t.pay', 'begin x')", None),
            ("SELECT confide.rotate_key('s.t.pay', 'end 7')", None),
            ("SELECT confide.rotate_key('s.t.pay', 'other')", None),
            ("SELECT confide.rotate_key('s.t.pay')", None),
            (
                "SELECT confide.transfer_key('s.t.pay')",
                want(Verb::TransferKey, ""),
            ),
            ("SELECT confide.transfer_key('s.t.pay', 'x')", None),
            (
                "SELECT confide.recover_owner('s.t.pay', 'ann')",
                want(Verb::Recover, "ann"),
            ),
            ("GRANT OWNER s.t.pay TO GROUP staff", None),
            ("GRANT SELECT ON t TO user1", None),
            ("GRANT viewer TO user1", None),
            ("REVOKE owner FROM user1", None),
            ("GRANT VIEWER ON t.pay TO user1", None),
            ("GRANT VIEWER ON s.t.pay TO user1, user2", None),
            ("GRANT VIEWER ON s.t.pay TO user1; SELECT 1", None),
            ("SELECT confide.gc()", None),
        ] {
            assert_eq!(told(sql), found, "{sql}");
        }
        let added = told("SELECT confide.group_add('staff', 'bob')");
        let group = (Verb::GroupAdd, "//staff".to_owned(), "bob".to_owned());
        assert_eq!(added, Some(group));
    }
}
