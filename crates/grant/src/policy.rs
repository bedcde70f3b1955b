//! Commands about who sees a column: what an owner or an administrator says, as the client seals
//! it and the keeper carries it out.
//!
//! Bytes: `P`, the verb, then schema, relation, column and the last word, each ended by a zero
//! byte. A grant never begins like that.

use crate::{Column, Malformed};

/// What every command begins with.
const MARK: u8 = b'P';

/// What a group's name has before it where a principal might stand; no principal is called so.
pub const GROUP: &str = "GROUP ";

/// What is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Verb {
    /// `GRANT VIEWER`
    GrantViewer = 1,
    /// `DENY VIEWER`
    DenyViewer = 2,
    /// `REVOKE VIEWER`
    RevokeViewer = 3,
    /// `GRANT OWNER`
    GrantOwner = 4,
    /// `REVOKE OWNER`
    RevokeOwner = 5,
    /// What others are shown.
    Mask = 6,
    /// How much may be told of it.
    Budget = 7,
    /// Somebody comes into a group. Its name is in the column's place.
    GroupAdd = 8,
    /// ... and out.
    GroupRemove = 9,
    /// The owner is gone: one of several administrators says who shall be it.
    Recover = 10,
    /// Its cells are sealed with a new key; the older ones still open them.
    RotateBegin = 11,
    /// The older ones do not any more.
    RotateEnd = 12,
    /// They do again: what a backup has.
    RotateBack = 13,
    /// The key of a column of encodings, for the keeper. The word has it.
    TransferKey = 14,
    /// ... which shall forget it.
    WithdrawKey = 15,
}

impl Verb {
    fn from_u8(code: u8) -> Option<Verb> {
        use Verb::{Budget, GroupAdd, GroupRemove, Recover, RotateBack, RotateBegin, RotateEnd};
        use Verb::{DenyViewer, GrantOwner, GrantViewer, Mask, RevokeOwner, RevokeViewer};
        use Verb::{TransferKey, WithdrawKey};
        let all = [
            TransferKey,
            WithdrawKey,
            RotateBegin,
            RotateEnd,
            RotateBack,
            Budget,
            GroupAdd,
            GroupRemove,
            Recover,
            GrantViewer,
            DenyViewer,
            RevokeViewer,
            GrantOwner,
            RevokeOwner,
            Mask,
        ];
        all.into_iter().find(|verb| *verb as u8 == code)
    }
}

/// A command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// What.
    pub verb: Verb,
    /// About which column.
    pub column: Column,
    /// For whom; of a mask: its rule. Empty where there is none.
    pub word: String,
}

impl std::fmt::Display for Command {
    /// As somebody would say it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Command { verb, column, word } = self;
        match verb {
            Verb::GrantViewer => write!(f, "GRANT VIEWER ON {column} TO {word}"),
            Verb::DenyViewer => write!(f, "DENY VIEWER ON {column} TO {word}"),
            Verb::RevokeViewer => write!(f, "REVOKE VIEWER ON {column} FROM {word}"),
            Verb::GrantOwner => write!(f, "GRANT OWNER {column} TO {word}"),
            Verb::RevokeOwner => write!(f, "REVOKE OWNER {column}"),
            // A constant is the owner's own text.
            Verb::Mask => write!(f, "mask of {column}: {word}"),
            Verb::Budget => write!(f, "budget of {column}: {word}"),
            Verb::GroupAdd => write!(f, "group {}: add {word}", column.column),
            Verb::GroupRemove => write!(f, "group {}: remove {word}", column.column),
            Verb::Recover => write!(f, "owner of {column} is gone: {word}"),
            Verb::RotateBegin => write!(f, "key of {column}: a new one"),
            Verb::RotateEnd => write!(f, "key of {column}: no older ones"),
            // The word is a key.
            Verb::TransferKey => write!(f, "key of {column}: given to the keeper"),
            Verb::WithdrawKey => write!(f, "key of {column}: taken back"),
            Verb::RotateBack => write!(f, "key of {column}: older ones again"),
        }
    }
}

impl Command {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![MARK, self.verb as u8];
        let Column {
            schema,
            relation,
            column,
        } = &self.column;
        for text in [schema, relation, column, &self.word] {
            out.extend(text.bytes().filter(|byte| *byte != 0));
            out.push(0);
        }
        out
    }

    /// The command with these bytes.
    pub fn decode(bytes: &[u8]) -> Result<Command, Malformed> {
        let [MARK, verb, rest @ ..] = bytes else {
            return Err(Malformed);
        };
        let text = std::str::from_utf8(rest).map_err(|_| Malformed)?;
        let words: Vec<&str> = text.split('\0').collect();
        match words.as_slice() {
            [schema, relation, column, word, ""] => Ok(Command {
                verb: Verb::from_u8(*verb).ok_or(Malformed)?,
                column: Column::new(schema, relation, column),
                word: (*word).to_owned(),
            }),
            _ => Err(Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let command = Command {
            verb: Verb::DenyViewer,
            column: Column::new("s", "t", "a"),
            word: "bob".into(),
        };
        let bytes = command.encode();
        assert_eq!(Command::decode(&bytes), Ok(command));
        assert_eq!(crate::Grant::decode(&bytes), Err(Malformed));
        for end in 0..bytes.len() {
            assert_eq!(Command::decode(&bytes[..end]), Err(Malformed));
        }
    }
}
