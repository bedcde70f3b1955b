//! From the bytes of a program to its parts ([`contract::message::program`]).
//! Nothing is known yet about whether the parts fit together.

use crate::body::Body;
use crate::fail;
use contract::message::COLUMNS_MAX;
use contract::message::program::INSTRUCTIONS_MAX;
use contract::{Fid, TypeCode};
use values::Error;

/// An instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// What it does.
    pub code: u8,
    /// On what.
    pub operand: u16,
    /// And how.
    pub immediate: i32,
}

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
pub fn parse(bytes: &[u8]) -> Result<Parts, Error> {
    let mut body = Body::new(bytes);
    let inputs = usize::from(body.u16()?);
    let constants = usize::from(body.u16()?);
    let instructions = usize::from(body.u16()?);
    body.skip::<2>()?;
    if inputs > COLUMNS_MAX || constants > CONSTANTS_MAX || instructions > INSTRUCTIONS_MAX {
        return Err(fail::program_limit(
            "It has too many inputs, constants or instructions.",
        ));
    }
    let mut parts = Parts {
        inputs: Vec::with_capacity(inputs),
        constants: Vec::with_capacity(constants),
        code: Vec::with_capacity(instructions),
    };
    for _ in 0..inputs {
        let t = body.type_code_or_plain()?;
        parts.inputs.push(t.map(TypeCode::stored));
    }
    for _ in 0..constants {
        parts.constants.push(body.fid()?);
    }
    for _ in 0..instructions {
        let code = body.u8()?;
        body.skip::<1>()?;
        let (operand, immediate) = (body.u16()?, body.i32()?);
        parts.code.push(Instruction {
            code,
            operand,
            immediate,
        });
    }
    if !body.is_empty() {
        return Err(fail::malformed("There are bytes after the program."));
    }
    Ok(parts)
}
