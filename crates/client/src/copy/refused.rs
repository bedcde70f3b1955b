//! The CONTEXT of an error in COPY. The data that the server quotes consists of envelopes, so the
//! client instead sees the value at which the server stopped, or only the line number.
use contract::TypeCode;
use contract::envelope::{REFERENCE, TEXT_PREFIX};
use values::Env;

use crate::blame::Told;

/// Maximum number of bytes of a line or value that PostgreSQL shows.
const SHOWN_MAX: usize = 100;

/// The first value of a COPY that its column's type does not accept.
pub struct Refused {
    /// Name of the column.
    pub(crate) column: String,
    /// Its type; `None` if the value is not text.
    pub(crate) code: Option<TypeCode>,
    pub(crate) typmod: i32,
    pub(crate) value: Vec<u8>,
}

impl Refused {
    /// Returns message and CONTEXT as PostgreSQL would write them, if the server stopped at this
    /// value.
    pub fn explain(&self, told: Told<'_>, context: &str, env: &Env) -> Option<(String, String)> {
        let mark = format!(", column {}: \"", self.column);
        let (place, shown) = context.split_once(&mark)?;
        if !place.starts_with("COPY ") || !shown.starts_with(TEXT_PREFIX) {
            return None;
        }
        let error = values::parse_text(self.code?, self.typmod, &self.value, env).err()?;
        if !told.is(&error) {
            return None;
        }
        let message = crate::blame::with_value(&error, &self.value);
        let shown = limited(std::str::from_utf8(&self.value).ok()?);
        Some((message, format!("{place}{mark}{shown}\"")))
    }
}

/// Returns the CONTEXT without the sealed data that it quotes; `None` if it quotes none.
pub fn without_data(context: &str) -> Option<String> {
    let copy = match context.starts_with("COPY ") {
        true => 0,
        false => context.find("\nCOPY ")?,
    };
    let line = copy + context.get(copy..)?.find(", line ")?;
    let quote = line + context.get(line..)?.find(": \"")?;
    let (place, shown) = (context.get(line..quote)?, context.get(quote + 3..)?);
    // A value of a plain column is the client's own data.
    let sealed = shown.starts_with(TEXT_PREFIX) || shown.as_bytes().first() == Some(&REFERENCE);
    let plain = place.contains(", column ") && !sealed;
    let kept = context.get(..quote).map(str::to_owned);
    kept.filter(|_| !plain)
}

/// Like PostgreSQL's `limit_printout_length`.
pub(super) fn limited(text: &str) -> String {
    match text.get(..text.floor_char_boundary(SHOWN_MAX)) {
        Some(begin) if begin.len() < text.len() => format!("{begin}..."),
        _ => text.to_owned(),
    }
}
