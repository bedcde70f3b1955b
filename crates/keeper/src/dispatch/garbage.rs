//! Garbage collection (docs/durability.md): `Resolve`.
//!
//! Invariant: what a backend says here changes no value that a FID names.

use super::Connection;
use crate::body::Body;
use crate::fail::{self, Failure};
use contract::fid::ARENA_BASE;

impl Connection {
    pub(super) fn resolve(&mut self, body: &[u8]) -> Result<(), Failure> {
        let mut body = Body::new(body);
        let count = body.u32()? as usize;
        body.skip::<4>()?;
        if count.checked_mul(8) != Some(body.rest().len()) {
            return Err(fail::malformed("The message has not as many FIDs as it says.").into());
        }
        let mut unresolved = 0u64;
        for _ in 0..count {
            let fid = body.fid()?;
            let partition = self.space.keeper.store.get(fid.partition());
            let found = fid.partition() < ARENA_BASE
                && partition.is_some_and(|p| p.read().get(fid.slot()).is_some());
            unresolved += u64::from(!found);
        }
        self.reply.extend_from_slice(&unresolved.to_le_bytes());
        Ok(())
    }
}
