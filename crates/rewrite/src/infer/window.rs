//! Windows: what they are partitioned and ordered by, and the offsets of their frames.

use super::{Infer, Res};
use crate::refusal::Refusal;
use crate::value::Val;
use contract::TypeCode;
use grant::family;
use pg_query::protobuf::WindowDef;

/// Frame option: `RANGE`.
const FRAME_RANGE: i32 = 0x0002;

impl Infer<'_> {
    pub fn window(&mut self, w: &WindowDef) -> Res<()> {
        self.exprs(&w.partition_clause)?;
        let ordered = self.sort_clause(&w.order_clause)?;
        let by_value = w.frame_options & FRAME_RANGE != 0;
        for offset in [w.start_offset.as_deref(), w.end_offset.as_deref()] {
            match (self.maybe(offset)?, ordered.as_slice()) {
                (Some(val), [value]) if by_value => self.offset(value, &val, w.location)?,
                (Some(val), _) => self.note_plain(&val),
                (None, _) => {}
            }
        }
        Ok(())
    }

    /// An offset from the value by which a window is ordered: as secret as the value.
    fn offset(&mut self, value: &Val, offset: &Val, at: i32) -> Res<()> {
        if !self.holds_enc(value) {
            // PostgreSQL looks for a way to add a protected offset to a plain value, and finds none.
            self.note_plain(offset);
            return Ok(());
        }
        let Some(of) = self.enc(value) else {
            return Err(Refusal::unsupported(
                "RANGE with an offset does not work over these values",
            )
            .at(at)
            .hint("Use ROWS or GROUPS, or order by a column of the family enc_."));
        };
        self.protect(offset)?;
        if let Some(code) = of.map(offset_type) {
            self.expect(offset, code);
        }
        self.authority.does(family::COMPARE | family::COMPUTE);
        Ok(())
    }
}

/// The type of which an untyped offset from a value of this type is.
fn offset_type(of: TypeCode) -> TypeCode {
    use TypeCode::{Date, Float4, Float8, Interval, Time, Timestamp, Timestamptz};
    match of {
        Date | Time | Timestamp | Timestamptz => Interval,
        Float4 => Float8,
        other => other,
    }
}
