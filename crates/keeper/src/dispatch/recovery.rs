//! Requests of the recovery worker (docs/durability.md): `RecoveryState`, `Redo`, `Committed`,
//! `RecoveryDone`, `Follow`, `CheckpointBegin`, `Checkpoint`; and those of a backup: `StoreCopy`, `StoreRead`.
//!
//! Invariants: the worker's channel sends nothing else, and no other channel may send these;
//! requests that follow [`Kind::RecoveryState`] are refused on a channel that has not sent it
//! first, so that what was begun with one run of the keeper is not continued with another.

use super::Connection;
use crate::durable::{At, Durable, Standing};
use crate::fail::{self, Failure};
use crate::keeper::Keeper;
use crate::said::Heard;
use contract::codec::{Each, Part};
use contract::hello::Hello;
use contract::message::table::File;
use contract::{Kind, answer, body};
use values::Error;

/// Whether a channel is the recovery worker's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Worker {
    /// No, it is a backend's.
    No,
    /// Yes, but it has not asked for the state.
    New,
    /// Yes, and it has asked for the state.
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

    /// Whether a request of this kind is permitted on this channel.
    #[inline]
    pub(super) fn may_ask(self, kind: Kind) -> Result<(), Error> {
        use Kind::{
            Checkpoint, CheckpointBegin, Committed, Follow, RecoveryDone, RecoveryState, Redo,
        };
        let of_worker = matches!(
            kind,
            RecoveryState | Redo | Committed | RecoveryDone | Follow | CheckpointBegin | Checkpoint
        );
        match self == Worker::No && !of_worker {
            true => Ok(()),
            false => self.may_ask_other(kind, of_worker),
        }
    }

    #[cold]
    fn may_ask_other(self, kind: Kind, of_worker: bool) -> Result<(), Error> {
        use Kind::{Fence, Forget, Ping, RecoveryState};
        match self {
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
                | Kind::Snapshot
                | Kind::Stats
                | Kind::PolicyLog
                | Kind::PolicyLogged
                | Kind::Release => Ok(()),
                _ => Err(refused("The recovery worker may not ask for it.")),
            },
        }
    }
}

impl Connection {
    fn durable(&self) -> Result<&Durable, Failure> {
        let durable = self.keeper.durable.as_ref();
        durable.ok_or_else(|| {
            let error = Error::new(b"55000", "confide: the keeper keeps values in memory only");
            error
                .hint("Set \"data_dir\" in the keeper's configuration.")
                .into()
        })
    }

    pub(super) fn recovery_state(&mut self, body: body::RecoveryState) -> Result<(), Failure> {
        let standing = match &self.keeper.durable {
            Some(durable) => durable.standing(body.system)?,
            None => Standing::VOLATILE,
        };
        self.worker = Worker::Asked;
        self.answer(&answer::RecoveryState {
            standing: standing.mode as u32,
            timeline: standing.timeline,
            checkpoint: standing.position,
            applied: standing.applied,
            store: standing.store,
        });
        Ok(())
    }

    pub(super) fn redo(&mut self, body: body::Redo<'_>) -> Result<(), Failure> {
        let Keeper {
            store, delivery, ..
        } = &*self.keeper;
        let forget = || delivery.forget();
        match self.durable()?.redo(store, body.record, &forget)? {
            Heard::Said(said) => self.hear(&said),
            Heard::Used(used) => self.hear_uses(&used),
            Heard::Entries(ends) => {
                self.keeper.logs.record(body.transaction, ends);
                Ok(())
            }
            Heard::Nothing => Ok(()),
        }
    }

    pub(super) fn committed(&mut self, body: body::Committed) {
        self.keeper.logs.committed(body.transaction);
    }

    pub(super) fn recovery_done(&mut self, body: body::RecoveryDone) -> Result<(), Failure> {
        Ok(self.durable()?.done(body.position)?)
    }

    pub(super) fn follow(&mut self, body: body::Follow) -> Result<(), Failure> {
        Ok(self.durable()?.follow(body.position, body.timeline)?)
    }

    /// Any backend may copy the store: the files are sealed and on disk anyway.
    pub(super) fn store_copy(&mut self) -> Result<(), Failure> {
        // The one that it has makes room for the next.
        self.copy = None;
        let place = self.keeper.copies.place(self.session.id)?;
        let (copy, position, timeline) = self.durable()?.copy()?;
        let mut files = Vec::new();
        for (name, length) in copy.files() {
            let file = File {
                length,
                name_length: u32::try_from(name.len()).unwrap_or(u32::MAX),
                name: name.as_bytes(),
            };
            file.put(&mut files);
        }
        self.answer(&answer::StoreCopy {
            position,
            timeline,
            count: u32::try_from(copy.files().len()).unwrap_or(u32::MAX),
            files: Each::new(&files),
        });
        self.copy = Some((copy, place));
        Ok(())
    }

    pub(super) fn store_read(&mut self, body: body::StoreRead) -> Result<(), Failure> {
        let (number, offset) = (body.file as usize, body.offset);
        let copy = self.copy.as_ref();
        let (copy, _) = copy.ok_or_else(|| fail::malformed("No copy has been begun."))?;
        let bytes = self.durable()?.read_copy(copy, number, offset)?;
        self.answer(&answer::StoreRead { bytes: &bytes });
        Ok(())
    }

    /// Binds the current end of the audit log to the freshness counter, so that no older copy is
    /// accepted.
    pub(super) fn anchor(&self) -> Result<(), Failure> {
        match &self.keeper.durable {
            Some(durable) => Ok(durable.anchor(self.keeper.audit.head()?)?),
            None => Ok(()),
        }
    }

    pub(super) fn checkpoint_begin(&mut self) {
        self.keeper.logs.take_ends();
    }

    pub(super) fn checkpoint(&mut self, body: body::Checkpoint) -> Result<(), Failure> {
        let body::Checkpoint {
            position,
            system,
            timeline,
        } = body;
        if position == 0 || system == 0 || timeline == 0 {
            let what = "LSN, system identifier and timeline are not 0.";
            return Err(fail::malformed(what).into());
        }
        let at = At {
            system,
            timeline,
            position,
        };
        let store = &self.keeper.store;
        let audit = self.keeper.audit.head()?;
        let leases = &self.keeper.leases;
        // What is in the WAL before the checkpoint's position has been sent before this message.
        leases.catch_up()?;
        let ends = self.keeper.logs.taken_ends();
        Ok(self
            .durable()?
            .checkpoint(store, at, (audit, leases, ends))?)
    }
}
