//! How the values of a column are laid out, and what a partition belongs to.

use contract::TypeCode;

/// The form in which a partition keeps its values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Layout {
    /// As an array of the type's own width.
    Fixed(TypeCode),
    /// `numeric(p,s)` as whole numbers of 10^-s, with a side table for the
    /// values that do not fit.
    Scaled(u16),
    /// Bytes in slabs: strings and `bytea`.
    Bytes(TypeCode),
    /// `numeric` without a modifier, as bytes.
    Numeric,
}

/// The largest scale for which whole numbers pay.
const SCALE_MAX: i32 = 18;

impl Layout {
    /// The layout for a type with a modifier.
    ///
    /// It says nothing about limits (length, precision): so a column whose
    /// modifier changes without a rewrite keeps its partition.
    pub fn of(t: TypeCode, typmod: i32) -> Layout {
        match t.stored() {
            TypeCode::Numeric => match scale(typmod) {
                Some(scale) => Layout::Scaled(scale),
                None => Layout::Numeric,
            },
            t @ (TypeCode::Text | TypeCode::Bpchar | TypeCode::Bytea) => Layout::Bytes(t),
            t => Layout::Fixed(t),
        }
    }

    /// The type of the values, as it is stored.
    pub fn stored_type(self) -> TypeCode {
        match self {
            Layout::Fixed(t) | Layout::Bytes(t) => t,
            Layout::Scaled(_) | Layout::Numeric => TypeCode::Numeric,
        }
    }
}

impl Layout {
    /// A number that stands for this layout wherever one is stored.
    pub fn code(self) -> u32 {
        let (kind, scale) = match self {
            Layout::Fixed(_) => (0, 0),
            Layout::Scaled(scale) => (1, scale),
            Layout::Bytes(_) => (2, 0),
            Layout::Numeric => (3, 0),
        };
        self.stored_type() as u32 | kind << 8 | u32::from(scale) << 16
    }

    /// The layout that a number stands for.
    pub fn from_code(code: u32) -> Option<Layout> {
        let [t, kind, low, high] = code.to_le_bytes();
        let t = TypeCode::from_u8(t)?;
        let layout = match kind {
            0 => Layout::Fixed(t),
            1 => Layout::Scaled(u16::from_le_bytes([low, high])),
            2 => Layout::Bytes(t),
            3 => Layout::Numeric,
            _ => return None,
        };
        let usual = match layout {
            Layout::Scaled(scale) => i32::from(scale) <= SCALE_MAX,
            layout => layout == Layout::of(t, -1),
        };
        (usual && layout.code() == code).then_some(layout)
    }
}

/// The scale in a modifier of `numeric`, if whole numbers pay.
fn scale(typmod: i32) -> Option<u16> {
    let bare = typmod.checked_sub(4).filter(|bare| *bare >= 0)?;
    let scale = ((bare & 0x7ff) ^ 1024) - 1024;
    u16::try_from(scale)
        .ok()
        .filter(|s| i32::from(*s) <= SCALE_MAX)
}

/// Which column a partition's values are of, by its name: a hash of the names that clients
/// know it by. Zeros: nobody has said.
pub type ColumnId = [u8; 16];

/// What a partition belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PartitionKey {
    /// OID of the database.
    pub database: u32,
    /// OID of the relation; 0 for constants in catalogs.
    pub relation: u32,
    /// Number of the attribute.
    pub attribute: i32,
    /// Layout of the values, which says their type.
    pub layout: Layout,
}

impl PartitionKey {
    /// Whether it is not a column's, but the log of a ledger table: what is in it stays.
    pub fn is_log(&self) -> bool {
        self.attribute == contract::message::ledger::ATTRIBUTE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(p: i32, s: i32) -> Layout {
        Layout::of(TypeCode::Numeric, ((p << 16) | (s & 0x7ff)) + 4)
    }

    /// PostgreSQL does not rewrite a table when a limit is widened, so the FIDs
    /// stay where they are; with the bug such a column would be in two partitions
    /// and its index could not be maintained without a client.
    #[test]
    fn limits_do_not_matter() {
        assert_eq!(
            Layout::of(TypeCode::Varchar, 24),
            Layout::of(TypeCode::Text, -1)
        );
        assert_eq!(numeric(12, 2), numeric(30, 2));
        assert_ne!(numeric(12, 2), numeric(12, 3));
    }

    /// Codes are on disks; a change must be a new version.
    #[test]
    fn codes() {
        for t in TypeCode::ALL {
            for typmod in [-1, (12 << 16 | 2) + 4, 4] {
                let layout = Layout::of(*t, typmod);
                assert_eq!(Layout::from_code(layout.code()), Some(layout));
            }
        }
        assert_eq!(Layout::of(TypeCode::Int4, -1).code(), 3);
        assert_eq!(numeric(12, 2).code(), 0x2_0107);
        assert_eq!(Layout::of(TypeCode::Varchar, 24).code(), 0x208);
        assert_eq!(Layout::Numeric.code(), 0x307);
        for code in [0, 9, 0x203, 0x107 | 19 << 16, 0x1_0003, u32::MAX] {
            assert_eq!(Layout::from_code(code), None, "{code:#x}");
        }
    }

    #[test]
    fn odd_scales() {
        assert_eq!(numeric(5, -2), Layout::Numeric);
        assert_eq!(numeric(40, 30), Layout::Numeric);
        assert_eq!(Layout::of(TypeCode::Numeric, -1), Layout::Numeric);
        assert_eq!(Layout::of(TypeCode::Numeric, i32::MIN), Layout::Numeric);
        assert_eq!(numeric(10, 0), Layout::Scaled(0));
    }
}
