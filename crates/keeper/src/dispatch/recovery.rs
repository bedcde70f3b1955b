//! What the recovery worker says (docs/durability.md): `RecoveryState`, `Redo`,
//! `RecoveryDone`, `Follow`, `Checkpoint`; and what a backup asks for: `StoreCopy`,
//! `StoreRead`.
//!
//! Invariants: the worker's channel does nothing else, and no other channel does
//! these; what follows [`Kind::RecoveryState`] is refused on a channel on which
//! it was not asked first, so that what was begun with one run of the keeper is
//! not continued with another.

use super::Connection;
use crate::body::Body;
use crate::durable::{At, Durable, Standing};
use crate::fail::{self, Failure};
use contract::Kind;
use contract::hello::Hello;
use values::Error;

/// Whether a channel is the recovery worker's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Worker {
    /// It is a backend's.
    No,
    /// It is, and has not asked for the state.
    New,
    /// It is, and has.
    Asked,
}

fn refused(what: &'static str) -> Error {
    Error::new(b"42501", "confide: request is not for this channel").detail(what)
}

impl Worker {
    /// The recovery worker is connected to no database.
    pub(super) fn of(hello: &Hello) -> Worker {
        match hello.database {
            0 => Worker::New,
            _ => Worker::No,
        }
    }

    /// Whether a request of this kind is for this channel.
    #[inline]
    pub(super) fn may_ask(self, kind: Kind) -> Result<(), Error> {
        use Kind::{Checkpoint, Fence, Follow, Forget, Ping, RecoveryDone, RecoveryState, Redo};
        let of_worker = matches!(
            kind,
            RecoveryState | Redo | RecoveryDone | Follow | Checkpoint
        );
        match self {
            Worker::No if !of_worker => Ok(()),
            Worker::No => Err(refused("Only the recovery worker may ask for it.")),
            Worker::Asked if of_worker => Ok(()),
            _ if kind == RecoveryState => Ok(()),
            _ if of_worker => Err(refused("The recovery worker must ask for the state first.")),
            _ => match kind {
                Ping
                | Fence
                | Forget
                | Kind::Settings
                | Kind::Clock
                | Kind::Stats
                | Kind::Release => Ok(()),
                _ => Err(refused("The recovery worker may not ask for it.")),
            },
        }
    }
}

impl Connection {
    fn durable(&self) -> Result<&Durable, Failure> {
        let durable = self.space.keeper.durable.as_ref();
        durable.ok_or_else(|| {
            let error = Error::new(b"55000", "confide: the keeper keeps values in memory only");
            error
                .hint("Set \"data_dir\" in the keeper's configuration.")
                .into()
        })
    }

    pub(super) fn recovery_state(&mut self, body: &[u8]) -> Result<(), Failure> {
        let system = Body::new(body).u64()?;
        let standing = match &self.space.keeper.durable {
            Some(durable) => durable.standing(system)?,
            None => Standing::VOLATILE,
        };
        self.worker = Worker::Asked;
        for half in [standing.mode as u32, standing.timeline] {
            self.reply.extend_from_slice(&half.to_le_bytes());
        }
        for word in [standing.position, standing.applied, standing.store] {
            self.reply.extend_from_slice(&word.to_le_bytes());
        }
        Ok(())
    }

    pub(super) fn redo(&mut self, body: &[u8]) -> Result<(), Failure> {
        let mut body = Body::new(body);
        body.u64()?;
        let store = &self.space.keeper.store;
        Ok(self.durable()?.redo(store, body.rest())?)
    }

    pub(super) fn recovery_done(&mut self, body: &[u8]) -> Result<(), Failure> {
        let position = Body::new(body).u64()?;
        Ok(self.durable()?.done(position)?)
    }

    pub(super) fn follow(&mut self, body: &[u8]) -> Result<(), Failure> {
        let mut body = Body::new(body);
        let (position, timeline) = (body.u64()?, body.u32()?);
        Ok(self.durable()?.follow(position, timeline)?)
    }

    /// Any backend may copy the store: the files are sealed, and lie on a disk anyway.
    pub(super) fn store_copy(&mut self) -> Result<(), Failure> {
        let (copy, position, timeline) = self.durable()?.copy()?;
        self.reply.extend_from_slice(&position.to_le_bytes());
        self.reply.extend_from_slice(&timeline.to_le_bytes());
        let count = u32::try_from(copy.files().len()).unwrap_or(u32::MAX);
        self.reply.extend_from_slice(&count.to_le_bytes());
        for (name, length) in copy.files() {
            self.reply.extend_from_slice(&length.to_le_bytes());
            self.reply
                .extend_from_slice(&(name.len() as u64).to_le_bytes());
            self.reply.extend_from_slice(name.as_bytes());
        }
        self.copy = Some(copy);
        Ok(())
    }

    pub(super) fn store_read(&mut self, body: &[u8]) -> Result<(), Failure> {
        let mut body = Body::new(body);
        let number = body.u32()? as usize;
        body.skip::<4>()?;
        let offset = body.u64()?;
        let copy = self.copy.as_ref();
        let copy = copy.ok_or_else(|| fail::malformed("No copy has been begun."))?;
        let bytes = self.durable()?.read_copy(copy, number, offset)?;
        self.reply.extend_from_slice(&bytes);
        Ok(())
    }

    pub(super) fn checkpoint(&mut self, body: &[u8]) -> Result<(), Failure> {
        let mut body = Body::new(body);
        let (position, system, timeline) = (body.u64()?, body.u64()?, body.u32()?);
        if position == 0 || system == 0 || timeline == 0 {
            let what = "LSN, system identifier and timeline are not 0.";
            return Err(fail::malformed(what).into());
        }
        let at = At {
            system,
            timeline,
            position,
        };
        let store = &self.space.keeper.store;
        Ok(self.durable()?.checkpoint(store, at)?)
    }
}
