//! A session's values of the family `soft_`: literals, parameters and arrays of them on the way to
//! the server, cells, sums and products on the way back.
//!
//! Cells themselves are made and opened in [`crate::soft`].
//!
//! Invariant: without a master key nothing is encoded and nothing opened; a value does not go out as
//! it is.
use contract::TypeCode;
use contract::soft::{Column, Purpose};

use crate::session::{LiteralCache, TEXT};
use crate::soft::{self, Keyring};
use crate::{Failure, Session, Shown, array, blame};

impl Session {
    fn keyring(&self) -> Result<&Keyring, Failure> {
        self.soft.as_deref().ok_or_else(|| {
            Failure::new(
                "0A000",
                "confide: there is no master key for the family soft_",
            )
            .hint("Set soft_key_file in the proxy's configuration.")
        })
    }

    /// Returns the text of a cell for a literal; equal literals of a statement share one cell.
    pub(crate) fn encode_literal(
        &self,
        column: Column,
        (purpose, said, text): (Purpose, Option<TypeCode>, &[u8]),
        cache: &mut LiteralCache,
    ) -> Result<String, Failure> {
        let key = (column, purpose, said, text.to_vec());
        // A cell that is added or multiplied is unique.
        let again = !matches!(purpose, Purpose::Store | Purpose::Multiply);
        if let Some(made) = cache.encoded.get(&key).filter(|_| again) {
            return Ok(made.clone());
        }
        let code = said.unwrap_or(column.code);
        let mut made = Vec::new();
        self.encode(column, (purpose, code), (TEXT, text), &mut made)?;
        let made = String::from_utf8(made).map_err(|_| Failure::protocol("encoded literal"))?;
        cache.encoded.insert(key, made.clone());
        Ok(made)
    }

    /// Appends the cell of a value of this type that the client gave in this format, for this
    /// purpose; of an array the cells of its elements, which have this type.
    pub fn encode(
        &self,
        column: Column,
        (purpose, code): (Purpose, TypeCode),
        (format, value): (i16, &[u8]),
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        if purpose != Purpose::Each {
            return self.encode_one(column, (purpose, code), (format, value), out);
        }
        let each = |one: &[u8], out: &mut Vec<u8>| {
            self.encode_one(column, (Purpose::Compare, code), (format, one), out)
                .map(|()| Shown::Value)
        };
        if format == TEXT {
            return array::map_text(value, out, each);
        }
        let oid = self.types.soft(column.code);
        let oid = oid.ok_or_else(|| Failure::protocol("array of no known type"))?;
        array::map_binary(value, oid, out, each)
    }

    fn encode_one(
        &self,
        column: Column,
        (purpose, code): (Purpose, TypeCode),
        (format, value): (i16, &[u8]),
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let keyring = self.keyring()?;
        if format != TEXT {
            let value = values::decode_binary(code, -1, value)?;
            out.extend_from_slice(&keyring.seal(column, purpose, value)?);
            return Ok(());
        }
        let value = values::parse_text(code, -1, value, &self.env).map_err(|e| Failure {
            message: blame::with_value(&e, value),
            ..Failure::from(e)
        })?;
        let cell = keyring.seal(column, purpose, value)?;
        out.extend_from_slice(soft::to_text(&cell).as_bytes());
        Ok(())
    }

    /// Appends the value of a cell in text format, whatever its type.
    pub(crate) fn decode_any(&self, field: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let value = self.keyring()?.open(&soft::from_text(field)?, &self.env)?;
        out.extend_from_slice(&values::format_text(&value, &self.env));
        Ok(())
    }

    /// Appends the value of a cell, in the format in which the cell was received.
    pub(crate) fn decode(
        &self,
        code: TypeCode,
        format: i16,
        field: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let keyring = self.keyring()?;
        let value = match format {
            TEXT => keyring.open(&soft::from_text(field)?, &self.env)?,
            _ => keyring.open(field, &self.env)?,
        };
        if value.type_code() != code {
            return Err(Failure::new(
                "XX001",
                "confide: a cell is of another type than its column",
            ));
        }
        match format {
            TEXT => out.extend_from_slice(&values::format_text(&value, &self.env)),
            _ => out.extend_from_slice(&values::encode_binary(&value)),
        }
        Ok(())
    }
}
