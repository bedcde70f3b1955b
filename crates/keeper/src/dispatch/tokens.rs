//! `Tokens`: what PostgreSQL joins and groups rows by, a batch of them in one exchange.
//!
//! Invariant: without a client session there are none.

use super::Connection;
use super::batches::{columns, shape};
use crate::body::Body;
use crate::fail::{self, Failure};
use crate::keeper;
use crate::program::tokens::Tokens;
use contract::TypeCode;
use values::Error;
use zeroize::Zeroizing;

impl Connection {
    pub(super) fn tokens(&mut self, body: &[u8]) -> Result<(), Failure> {
        self.need_client()?;
        let mut body = Body::new(body);
        let (number, rows) = (body.u64()?, body.u32()? as usize);
        let (count, nulls_equal) = (usize::from(body.u16()?), body.u16()? != 0);
        shape(rows, count)?;
        if count == 0 {
            return Err(fail::malformed("Rows without columns have no tokens.").into());
        }
        let types: Result<Vec<TypeCode>, Error> = (0..count)
            .map(|_| body.type_code().map(TypeCode::stored))
            .collect();
        let types = types?;
        let columns = columns(&mut body, rows, count)?;
        let key = self.token_key()?;
        let tokens = Tokens {
            types: &types,
            columns: &columns,
            rows,
            number,
            nulls_equal,
            key: &key,
        };
        self.reply_revealed(|this, reply| tokens.declassify(this.tools(), reply))
    }

    /// The channel's own: tokens of two channels do not compare, either.
    fn token_key(&mut self) -> Result<Zeroizing<[u8; 16]>, Error> {
        if let Some(key) = &self.token_key {
            return Ok(key.clone());
        }
        let key = keeper::random().map_err(|_| fail::internal("no random bytes"))?;
        Ok(self.token_key.insert(Zeroizing::new(key)).clone())
    }
}
