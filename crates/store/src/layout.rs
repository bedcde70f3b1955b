//! How a column's values are stored, and which column a partition belongs to.

use contract::TypeCode;

/// The form in which a partition stores its values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Layout {
    /// An array of the type's own width.
    Fixed(TypeCode),
    /// `numeric(p,s)` as integers in units of 10^-s, with a side table for values that do not fit.
    Scaled(u16),
    /// Strings and `bytea` in slabs.
    Bytes(TypeCode),
    /// `numeric` without a modifier, as bytes.
    Numeric,
}

/// The largest scale for which integers pay off.
const SCALE_MAX: i32 = 18;

impl Layout {
    /// The layout for a type with a modifier.
    ///
    /// Limits (length, precision) do not matter, so a column whose modifier changes without a
    /// rewrite keeps its partition.
    pub fn of(t: TypeCode, typmod: i32) -> Layout {
        match t.stored() {
            TypeCode::Numeric => match scale(typmod) {
                Some(scale) => Layout::Scaled(scale),
                None => Layout::Numeric,
            },
            t @ (TypeCode::Text
            | TypeCode::Bpchar
            | TypeCode::Bytea
            | TypeCode::Json
            | TypeCode::Jsonb) => Layout::Bytes(t),
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
    /// The code of this layout in stored data.
    pub fn code(self) -> u32 {
        let (kind, scale) = match self {
            Layout::Fixed(_) => (0, 0),
            Layout::Scaled(scale) => (1, scale),
            Layout::Bytes(_) => (2, 0),
            Layout::Numeric => (3, 0),
        };
        self.stored_type() as u32 | kind << 8 | u32::from(scale) << 16
    }

    /// The layout with a code.
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

/// The scale of a `numeric` modifier, if integers pay off for it.
fn scale(typmod: i32) -> Option<u16> {
    let bare = typmod.checked_sub(4).filter(|bare| *bare >= 0)?;
    let scale = ((bare & 0x7ff) ^ 1024) - 1024;
    u16::try_from(scale)
        .ok()
        .filter(|s| i32::from(*s) <= SCALE_MAX)
}

/// Identifies the column of a partition by name: a hash of the names that clients use for it.
/// Zeros: unknown.
pub type ColumnId = [u8; 16];

/// What a partition belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PartitionKey {
    /// OID of the database.
    pub database: u32,
    /// OID of the relation; 0 for constants in catalogs.
    pub relation: u32,
    /// Attribute number.
    pub attribute: i32,
    /// Layout of the values, which implies their type.
    pub layout: Layout,
}

impl PartitionKey {
    /// Whether the partition is not a column's but the log of a ledger table, whose contents are
    /// never removed.
    pub fn is_log(&self) -> bool {
        self.attribute == contract::message::ledger::ATTRIBUTE
    }

    /// Whether the partition holds what an index's expression has made of columns.
    pub fn is_derived(&self) -> bool {
        self.attribute >= contract::message::derived::ATTRIBUTE
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
