//! Values of the family `soft_`: encodes them for a column, opens cells and sums. (Products:
//! product.rs.)
//!
//! The keys are derived from the owner's master key and the number in the column's type modifier
//! ([`contract::soft`]). Identifiers of cells that are added or multiplied are assigned sequentially from randomly
//! chosen blocks, so that no two cells of a column share an identifier, whoever creates them.
//!
//! Which literal is combined with which column is determined in `rewrite`.
//!
//! Invariants: a value that a column cannot represent exactly is refused in comparisons, and
//! rounded like in PostgreSQL when stored; errors contain only values of the application itself.
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use contract::soft::{
    ADD, ADD_BYTES, AVERAGE, Column, EQ, HEADER_BYTES, LENGTH_BYTES, MUL, ORD, PRODUCT, Purpose,
    QUOTIENT, SUM, TEXT_PREFIX, VALUE, precision_and_scale,
};
use contract::{Op, TypeCode};
use encodings::ColumnKeys;
use encodings::additive::{self, Additive};
use encodings::det::Det;
use encodings::multiplicative::Multiplicative;
use encodings::ore::{Ore, digits};
use values::{Env, Value};
use zeroize::Zeroizing;

use crate::encodable::{assigned, converts, damaged, decimal, modifier, numeric, other_type};
use crate::{Failure, product};

/// A block has 2 to this power identifiers of cells that are added or multiplied.
const BLOCK_BITS: u32 = 20;
/// Number of blocks to choose from.
const BLOCKS: u64 = 1 << (63 - BLOCK_BITS);

/// The master key, and the keys derived from it.
pub struct Keyring {
    master: Zeroizing<[u8; 32]>,
    columns: Mutex<HashMap<(TypeCode, u8, u32), Arc<Coders>>>,
}

/// The schemes of one column.
struct Coders {
    det: Det,
    ore: Ore,
    additive: Additive,
    multiplicative: Multiplicative,
    /// The next identifier, and the end of its block.
    identifiers: Mutex<(u64, u64)>,
}

/// A value in the forms that the cells of its column contain.
struct Plain {
    bytes: Vec<u8>,
    digits: Vec<u8>,
    number: i64,
}

impl Keyring {
    /// Creates a keyring from a master key.
    pub fn new(master: [u8; 32]) -> Keyring {
        Keyring {
            master: Zeroizing::new(master),
            columns: Mutex::default(),
        }
    }

    /// Returns the cell of a value for this purpose.
    pub fn seal(&self, column: Column, purpose: Purpose, value: Value) -> Result<Vec<u8>, Failure> {
        let (column, value) = match purpose {
            Purpose::Store => (column, assigned(column, value)?),
            Purpose::Multiply => product::factor(column, value)?,
            _ => (column, compared(column, value)?),
        };
        if purpose == Purpose::Order {
            check_ordered(column, &value)?;
        }
        let plain = plain(column, &value).ok_or_else(|| match purpose {
            Purpose::Store => unfit(column),
            // NaN, say.
            _ => inexact(column),
        })?;
        let coders = self.coders(column.code, column.shape, column.key)?;
        let code = column.code as u8;
        let encodings = match purpose {
            Purpose::Store => column.encodings,
            Purpose::Multiply => MUL,
            _ => column.encodings & !(ADD | MUL),
        };
        let mut cell = vec![VALUE, code, encodings, column.shape];
        cell.extend_from_slice(&column.key.to_le_bytes());
        let sealed = match encodings & EQ {
            0 => coders.det.seal_fresh(code, random()?, &plain.bytes),
            _ => coders.det.seal(code, &plain.bytes),
        };
        let sealed = sealed.map_err(broken)?;
        let length = u32::try_from(sealed.len()).map_err(|_| unfit(column))?;
        cell.extend_from_slice(&length.to_le_bytes());
        cell.extend_from_slice(&sealed);
        if encodings & ORD != 0 {
            cell.extend_from_slice(&coders.ore.left(&plain.digits).map_err(broken)?);
            let right = coders.ore.right(&plain.digits, random()?);
            cell.extend_from_slice(&right.map_err(broken)?);
        }
        if encodings & ADD != 0 {
            let identifier = coders.identifier()?;
            let sum = coders.additive.seal(identifier, plain.number);
            let bytes = sum.map_err(broken)?.to_bytes();
            cell.extend_from_slice(&identifier.to_le_bytes());
            let masked = bytes.get(..ADD_BYTES - 8).ok_or_else(damaged)?;
            cell.extend_from_slice(masked);
        }
        if encodings & MUL != 0 {
            let identifier = coders.identifier()?;
            let masked = coders.multiplicative.seal(identifier, plain.number);
            cell.extend_from_slice(&identifier.to_le_bytes());
            cell.extend_from_slice(&masked.to_le_bytes());
        }
        Ok(cell)
    }

    /// Returns the value of a cell, a sum, a product or a quotient.
    pub fn open(&self, cell: &[u8], env: &Env) -> Result<Value, Failure> {
        if let [PRODUCT | QUOTIENT, ..] = cell {
            let mask = |code, shape, key, identifier| {
                let coders = self.coders(code, shape, key)?;
                Ok(coders.multiplicative.mask(identifier))
            };
            return product::open(&mask, cell, env);
        }
        let (head, rest) = cell
            .split_first_chunk::<HEADER_BYTES>()
            .ok_or_else(damaged)?;
        let [kind, code, encodings, shape, key @ ..] = *head;
        let code = TypeCode::from_u8(code).ok_or_else(damaged)?;
        let coders = self.coders(code, shape, u32::from_le_bytes(key))?;
        let scale = precision_and_scale(shape).map_or(0, |(_, scale)| scale);
        if kind == VALUE {
            let (length, rest) = rest
                .split_first_chunk::<LENGTH_BYTES>()
                .ok_or_else(damaged)?;
            let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| damaged())?;
            let sealed = rest.get(..length).ok_or_else(damaged)?;
            let opened = match encodings & EQ {
                0 => coders.det.open_fresh(code as u8, sealed),
                _ => coders.det.open(code as u8, sealed),
            };
            let opened = opened.map_err(|_| damaged())?;
            return values::decode_encoded(code, scale, &opened).ok_or_else(damaged);
        }
        let (count, masked) = rest.split_first_chunk::<8>().ok_or_else(damaged)?;
        let sum = additive::Sum::from_bytes(masked).map_err(|_| damaged())?;
        let sum = coders.additive.open(&sum);
        match (kind, code) {
            (SUM, TypeCode::Int2 | TypeCode::Int4) => {
                let sum = i64::try_from(sum);
                let sum = sum.map_err(|_| Failure::new("22003", "bigint out of range"))?;
                Ok(Value::Int8(sum))
            }
            (SUM, _) => decimal(sum, scale.into()),
            (AVERAGE, _) => {
                let count = decimal(u64::from_le_bytes(*count).into(), 0)?;
                let sum = decimal(sum, scale.into())?;
                Ok(values::apply(
                    Op::Div,
                    TypeCode::Numeric,
                    0,
                    &[&sum, &count],
                    env,
                )?)
            }
            _ => Err(damaged()),
        }
    }

    /// What a keeper needs to open the cells of a column: type, shape and number of the key, and the
    /// key of the sealed values in hexadecimal. It cannot encode with it by order, or add.
    pub fn transferred(&self, column: Column) -> Result<Zeroizing<String>, Failure> {
        let coders = self.coders(column.code, column.shape, column.key)?;
        let head = format!("{} {} {} ", column.code as u8, column.shape, column.key);
        let mut text = Zeroizing::new(head);
        for byte in coders.det.key() {
            text.push_str(&format!("{byte:02x}"));
        }
        Ok(text)
    }

    fn coders(&self, code: TypeCode, shape: u8, key: u32) -> Result<Arc<Coders>, Failure> {
        let mut columns = self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(coders) = columns.get(&(code, shape, key)) {
            return Ok(coders.clone());
        }
        let keys = ColumnKeys::numbered(&self.master, key, code as u8, shape);
        let coders = Arc::new(Coders {
            det: Det::new(&keys).map_err(broken)?,
            ore: Ore::new(&keys).map_err(broken)?,
            additive: Additive::new(&keys).map_err(broken)?,
            multiplicative: Multiplicative::new(&keys).map_err(broken)?,
            identifiers: Mutex::new((0, 0)),
        });
        columns.insert((code, shape, key), coders.clone());
        Ok(coders)
    }
}

impl Coders {
    fn identifier(&self) -> Result<u64, Failure> {
        let held = self.identifiers.lock();
        let mut held = held.unwrap_or_else(PoisonError::into_inner);
        if held.0 == held.1 {
            let block = u64::from_le_bytes(random()?) % BLOCKS;
            // The first mask of a block belongs to the number before its first identifier.
            let first = (block << BLOCK_BITS) + 1;
            *held = (first, first + (1 << BLOCK_BITS) - 1);
        }
        let identifier = held.0;
        held.0 += 1;
        Ok(identifier)
    }
}

/// The bytes of a cell given as text.
pub fn from_text(text: &[u8]) -> Result<Vec<u8>, Failure> {
    let letters = text
        .strip_prefix(TEXT_PREFIX.as_bytes())
        .ok_or_else(damaged)?;
    URL_SAFE_NO_PAD.decode(letters).map_err(|_| damaged())
}

/// A cell as text.
pub fn to_text(cell: &[u8]) -> String {
    let mut text = TEXT_PREFIX.to_owned();
    URL_SAFE_NO_PAD.encode_string(cell, &mut text);
    text
}

/// Returns the modifier of the plain type for this modifier of a column of the family.
pub(crate) fn plain_modifier(code: TypeCode, of_column: i32) -> i32 {
    Column::of(code, of_column).map_or(-1, modifier)
}

/// Returns the same value in the column's type, if the type can represent it.
fn compared(column: Column, value: Value) -> Result<Value, Failure> {
    let from = value.type_code();
    if from == column.code && column.code != TypeCode::Numeric {
        return Ok(value);
    }
    if from != column.code && !converts(from, column.code) {
        return Err(other_type(column, from));
    }
    let there = assigned(column, value.clone()).map_err(|_| inexact(column))?;
    let env = Env::default();
    match values::compare(&numeric(&there)?, &numeric(&value)?, &env) {
        Ok(order) if order.is_eq() => Ok(there),
        _ => Err(inexact(column)),
    }
}

fn inexact(column: Column) -> Failure {
    Failure::new(
        "0A000",
        format!(
            "confide: a value compared with a column of type {} is none of that type",
            column.code.soft_name()
        ),
    )
    .detail("Encodings compare values of one type, exactly.")
    .hint("Compare with a value that the column could hold.")
}

/// Refuses a text whose order beside others is not known by their first bytes. A shorter one has the
/// digits of no other text.
fn check_ordered(column: Column, value: &Value) -> Result<(), Failure> {
    let bytes = usize::from(column.shape);
    match value {
        Value::Text(text) if column.code == TypeCode::Text && bytes > 0 && text.len() >= bytes => {
            Err(Failure::new(
                "0A000",
                format!(
                    "confide: a text of {} bytes is compared by order with a column that has the order of {bytes} bytes",
                    text.len()
                ),
            )
            .hint(format!("Compare with a text of less than {bytes} bytes.")))
        }
        _ => Ok(()),
    }
}

fn plain(column: Column, value: &Value) -> Option<Plain> {
    let (bytes, digits, number) = match value {
        Value::Bool(b) => (vec![u8::from(*b)], digits::signed([u8::from(*b)]), 0),
        Value::Int2(n) => {
            let bytes = n.to_be_bytes();
            (bytes.to_vec(), digits::signed(bytes), i64::from(*n))
        }
        Value::Int4(n) | Value::Date(n) => {
            let bytes = n.to_be_bytes();
            (bytes.to_vec(), digits::signed(bytes), i64::from(*n))
        }
        Value::Int8(n) | Value::Timestamp(n) => {
            let bytes = n.to_be_bytes();
            (bytes.to_vec(), digits::signed(bytes), *n)
        }
        Value::Numeric(n) => {
            let (_, scale) = column.precision_and_scale()?;
            let n = n.to_scaled(u16::from(scale))?;
            let bytes = n.to_be_bytes();
            (bytes.to_vec(), digits::signed(bytes), n)
        }
        Value::Text(text) => {
            let digits = digits::text(text, usize::from(column.shape));
            (text.to_vec(), digits, 0)
        }
        _ => return None,
    };
    Some(Plain {
        bytes,
        digits,
        number,
    })
}

fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes)
        .map_err(|_| Failure::new("58000", "confide: the system gives no random numbers"))?;
    Ok(bytes)
}

fn broken(error: encodings::Error) -> Failure {
    Failure::new(
        "XX000",
        format!("confide: a value cannot be encoded: {error}"),
    )
}

fn unfit(column: Column) -> Failure {
    let name = column.code.soft_name();
    Failure::new(
        "22003",
        format!("confide: a value does not fit into type {name}"),
    )
}
