//! Errors and refusals of the client side, with the fields of an ErrorResponse.

/// An error to show to the application; like PostgreSQL's errors, its texts may contain a value of
/// the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Five characters.
    pub sqlstate: String,
    /// Primary message.
    pub message: String,
    /// Detail, if any.
    pub detail: Option<String>,
    /// Hint, if any.
    pub hint: Option<String>,
    /// 1-based position in the statement, in characters.
    pub position: Option<usize>,
}

impl Failure {
    /// An error with a SQLSTATE and a message.
    pub fn new(sqlstate: &str, message: impl Into<String>) -> Failure {
        Failure {
            sqlstate: sqlstate.to_owned(),
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
        }
    }

    /// Adds a detail.
    pub fn detail(mut self, detail: impl Into<String>) -> Failure {
        self.detail = Some(detail.into());
        self
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// Converts a refusal of the analysis of this text.
    pub fn from_refusal(refusal: &rewrite::Refusal, sql: &str) -> Failure {
        Failure {
            sqlstate: refusal.sqlstate.to_owned(),
            message: refusal.message.clone(),
            detail: refusal.detail.clone(),
            hint: refusal.hint.clone(),
            position: refusal
                .position
                .map(|at| rewrite::character_position(sql, at)),
        }
    }

    /// There is no session with the keeper.
    pub fn no_session() -> Failure {
        Failure::new("08003", "confide: no session with the keeper")
            .hint("The keeper may be starting. Try again.")
    }

    /// A protocol message that is malformed.
    pub fn protocol(what: &str) -> Failure {
        Failure::new("08P01", format!("confide: malformed message: {what}"))
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.sqlstate, self.message)
    }
}

impl std::error::Error for Failure {}

impl From<envelope::Error> for Failure {
    fn from(error: envelope::Error) -> Failure {
        let sqlstate = match error {
            envelope::Error::TooLong => "54000",
            envelope::Error::Exhausted => "53400",
            envelope::Error::Handshake(_) | envelope::Error::Evidence(_) => "08004",
            envelope::Error::Random
            | envelope::Error::KeyFile(_)
            | envelope::Error::KeyFileMode
            | envelope::Error::KeyFormat(_) => "58000",
            _ => "XX001",
        };
        Failure::new(sqlstate, format!("confide: {error}"))
    }
}

impl From<values::Error> for Failure {
    fn from(error: values::Error) -> Failure {
        Failure {
            sqlstate: error.sqlstate_str().to_owned(),
            message: error.message.into_owned(),
            detail: error.detail.map(|d| d.into_owned()),
            hint: error.hint.map(|h| h.into_owned()),
            position: None,
        }
    }
}
