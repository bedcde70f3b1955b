//! Splits a program in a message ([`contract::message::program`]) into its parts. Whether the parts
//! fit together is not checked here.

use crate::fail;
use contract::message::program::INSTRUCTIONS_MAX;
use contract::message::{COLUMNS_MAX, table};
use contract::{Fid, TypeCode};
use values::Error;

pub use contract::message::table::Instruction;

/// The parts of a program.
#[derive(Debug)]
pub struct Parts {
    /// Types of the input columns, as stored; `None` for plain booleans.
    pub inputs: Vec<Option<TypeCode>>,
    /// Constants.
    pub constants: Vec<Fid>,
    /// Instructions.
    pub code: Vec<Instruction>,
}

/// Maximum number of constants in a program.
const CONSTANTS_MAX: usize = 1024;

/// Decodes a program.
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
