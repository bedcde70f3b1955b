//! `ProgramRegister`, `ProgramForget`.

use super::Connection;
use crate::body::Body;
use crate::fail::Failure;
use crate::program::Program;
use contract::Fid;
use values::Error;

impl Connection {
    pub(super) fn program_register(&mut self, body: &[u8]) -> Result<(), Failure> {
        self.need_client()?;
        let type_of = |fid: Fid| -> Result<_, Error> {
            let value = self.space.value(fid, None).map_err(Failure::into_error)?;
            Ok(value.map(|v| v.type_code()))
        };
        let program = Program::new(body, &self.space.keeper.table, type_of)?;
        let handle = self.space.session.register(program)?;
        self.reply.extend_from_slice(&handle.to_le_bytes());
        Ok(())
    }

    pub(super) fn program_forget(&mut self, body: &[u8]) -> Result<(), Failure> {
        // Forgetting what is not there is no error: nothing can be done about it.
        self.space.session.forget(Body::new(body).u32()?);
        Ok(())
    }
}
