//! `Tokens`: tokens by which PostgreSQL joins and groups, for a batch of rows in one round trip.
//!
//! Invariant: there are none without a client session.

use super::Connection;
use super::batches::{columns, shape};
use crate::fail::{self, Failure};
use crate::program::tokens::Tokens;
use crate::random::random;
use crate::told::Told;
use contract::message::token;
use contract::{TypeCode, body};
use values::Error;
use zeroize::Zeroizing;

impl Connection {
    pub(super) fn tokens(&mut self, body: body::Tokens<'_>) -> Result<(), Failure> {
        self.need_client()?;
        let rows = body.rows as usize;
        shape(rows, body.types.len())?;
        if body.types.is_empty() {
            return Err(fail::malformed("Rows without columns have no tokens.").into());
        }
        let types: Vec<TypeCode> = body.types.iter().map(TypeCode::stored).collect();
        let columns = columns(body.batch, rows)?;
        let operands = self.batch_operands(&columns)?;
        self.authorise_tokens(body.number, &operands)?;
        let key = self.token_key()?;
        let tokens = Tokens {
            types: &types,
            columns: &columns,
            rows,
            number: body.number,
            nulls_equal: body.nulls_equal != 0,
            key: &key,
        };
        let good = self.reply_revealed(token::BYTES, |this, reply| {
            tokens.declassify(this.tools(), reply)
        })?;
        for column in &operands {
            self.told(column.label, Told::Tokens, good)?;
        }
        Ok(())
    }

    /// The channel's token key. Tokens of different channels cannot be compared.
    fn token_key(&mut self) -> Result<Zeroizing<[u8; 16]>, Error> {
        if let Some(key) = &self.token_key {
            return Ok(key.clone());
        }
        let key = random().map_err(|_| fail::internal("no random bytes"))?;
        Ok(self.token_key.insert(Zeroizing::new(key)).clone())
    }
}
