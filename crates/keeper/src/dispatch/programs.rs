//! `ProgramRegister`, `ProgramForget`.

use super::Connection;
use crate::fail::Failure;
use crate::program::Program;
use contract::codec::Part;
use contract::{Fid, answer, body};
use values::Error;

impl Connection {
    pub(super) fn program_register(
        &mut self,
        body: body::ProgramRegister<'_>,
    ) -> Result<(), Failure> {
        self.need_client()?;
        let type_of = |fid: Fid| -> Result<_, Error> {
            let value = self.space.value(fid, None).map_err(Failure::into_error)?;
            Ok(value.map(|v| v.type_code()))
        };
        let program = Program::new(&body.program, &self.keeper.table, type_of)?;
        let mut message = Vec::new();
        body.put(&mut message);
        let program = self.session.register(program, message)?;
        self.answer(&answer::ProgramRegister { program });
        Ok(())
    }

    pub(super) fn program_forget(&mut self, body: body::ProgramForget) -> Result<(), Failure> {
        // Forgetting an unknown program is not an error: the caller could not react to it.
        self.session.forget(body.program);
        Ok(())
    }
}
