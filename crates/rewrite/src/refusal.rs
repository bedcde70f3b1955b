//! Refusal of a statement: what cannot be classified is not sent.
//!
//! Invariant: the texts of a refusal contain no value from the statement.

/// Why a statement is refused. The caller sends it as an `ErrorResponse`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// SQLSTATE.
    pub sqlstate: &'static str,
    /// What happened.
    pub message: String,
    /// Detail, if any.
    pub detail: Option<String>,
    /// Hint, if any.
    pub hint: Option<String>,
    /// Byte offset in the SQL text; [`crate::character_position`] converts it to the 1-based
    /// character position of the protocol.
    pub position: Option<usize>,
    /// The statement names something that the snapshot does not have: the caller reloads the schema
    /// and tries again before it responds.
    pub needs_schema_refresh: bool,
    /// Refused even if nothing protected is involved.
    pub(crate) certain: bool,
}

impl Refusal {
    /// A refusal with this SQLSTATE and message.
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Refusal {
        Refusal {
            sqlstate,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            needs_schema_refresh: false,
            certain: false,
        }
    }

    /// `feature_not_supported`.
    pub fn unsupported(message: impl Into<String>) -> Refusal {
        Refusal::new("0A000", message)
    }

    /// Adds the byte offset concerned. Negative ones, with which the parser reports "unknown", are
    /// ignored.
    pub fn at(mut self, location: i32) -> Refusal {
        if self.position.is_none() {
            self.position = usize::try_from(location).ok();
        }
        self
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Refusal {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a detail.
    pub fn detail(mut self, detail: impl Into<String>) -> Refusal {
        self.detail = Some(detail.into());
        self
    }

    /// Refuses the statement even if it names nothing protected.
    pub(crate) fn for_good(mut self) -> Refusal {
        self.certain = true;
        self
    }

    /// States that a newer snapshot of the schema may resolve it.
    pub fn refresh(mut self) -> Refusal {
        self.needs_schema_refresh = true;
        self
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.sqlstate, self.message)
    }
}

impl std::error::Error for Refusal {}
