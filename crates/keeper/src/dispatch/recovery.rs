//! What the recovery worker says (docs/durability.md). This keeper's store is not
//! durable yet: it has no checkpoint, applies no redo records, and always serves.

use super::Connection;
use crate::body::Body;
use crate::fail::{self, Failure};
use contract::Kind;

impl Connection {
    pub(super) fn recovery(&mut self, kind: Kind, body: &[u8]) -> Result<(), Failure> {
        let mut body = Body::new(body);
        body.u64()?;
        if kind == Kind::RecoveryState {
            // It serves; there has never been a checkpoint.
            self.reply.extend_from_slice(&1u64.to_le_bytes());
            self.reply.extend_from_slice(&0u64.to_le_bytes());
        }
        Ok(())
    }

    pub(super) fn redo(&mut self, kind: Kind, body: &[u8]) -> Result<(), Failure> {
        if kind == Kind::PartitionLogged {
            let partition = Body::new(body).u32()?;
            if self.space.keeper.store.get(partition).is_none() {
                return Err(fail::malformed("There is no such partition.").into());
            }
        }
        Ok(())
    }
}
