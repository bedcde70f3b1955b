//! The refusal of a statement: what cannot be classified is not sent.
//!
//! Invariant: no text of a refusal contains a value out of the statement.

/// Why a statement is refused. The caller answers it as an `ErrorResponse`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Five characters of SQLSTATE.
    pub sqlstate: &'static str,
    /// What happened.
    pub message: String,
    /// Detail, if there is one.
    pub detail: Option<String>,
    /// What to do instead, if we know.
    pub hint: Option<String>,
    /// Byte offset into the SQL text. The protocol wants 1-based characters:
    /// [`crate::character_position`].
    pub position: Option<usize>,
    /// The statement names what the snapshot does not have: the caller loads
    /// the schema again and tries once more before it answers.
    pub needs_schema_refresh: bool,
    /// Refused even if nothing protected is named.
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

    /// Adds the byte offset that the refusal is about; negative ones, which
    /// the parser gives for "unknown", are ignored.
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

    /// Refuses it even if the statement names nothing protected.
    pub(crate) fn for_good(mut self) -> Refusal {
        self.certain = true;
        self
    }

    /// Says that a newer snapshot of the schema may settle it.
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
