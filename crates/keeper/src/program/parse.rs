//! From a program in a message to its parts ([`contract::message::program`]).
//! Nothing is known yet about whether the parts fit together.

use crate::fail;
use contract::message::program::INSTRUCTIONS_MAX;
use contract::message::{COLUMNS_MAX, table};
use contract::{Fid, TypeCode};
use values::Error;

pub use contract::message::table::Instruction;

/// The parts of a program.
#[derive(Debug)]
pub struct Parts {
    /// Types of the input columns, as stored; none for plain booleans.
    pub inputs: Vec<Option<TypeCode>>,
    /// Constants.
    pub constants: Vec<Fid>,
    /// Instructions.
    pub code: Vec<Instruction>,
}

/// Constants that one program may have.
const CONSTANTS_MAX: usize = 1024;

/// Takes a program apart.
pub fn parse(program: &table::Program<'_>) -> Result<Parts, Error> {
    let (inputs, constants) = (program.types.len(), program.values.len());
    if inputs > COLUMNS_MAX || constants > CONSTANTS_MAX || program.code.len() > INSTRUCTIONS_MAX {
        return Err(fail::program_limit(
            "It has too many inputs, constants or instructions.",
        ));
    }
    let stored = |t: Option<TypeCode>| t.map(TypeCode::stored);
    Ok(Parts {
        inputs: program.types.iter().map(stored).collect(),
        constants: program.values.iter().collect(),
        code: program.code.iter().collect(),
    })
}
