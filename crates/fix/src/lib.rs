//! Maintenance templates (HEDB, section 4.2): what an administrator without keys may have done
//! to the database is a list of actions with typed parameters. A file of them is read
//! ([`parse`]), each action asks the database what it must know ([`Action::question`]), checks
//! that, and gives the statements and what undoes them ([`Action::step`]).
//!
//! Not here: talking to the database, files but those of actions on the host (`host`), the role that executes statements (`confide fix`).
//!
//! Invariants: no text of a file reaches a statement but as a number, as a word of a list kept
//! here, or quoted as a name or literal; what is not named here is refused; so is a parameter
//! out of its range, with the rule that it breaks.
#![forbid(unsafe_code)]

mod action;
pub mod audit;
mod host;
mod name;
mod question;
mod refused;
mod rights;
mod setting;
mod step;

pub use action::{Action, parse, print};
pub use host::{Host, Looked};
pub use name::literal;
pub use refused::Refused;
pub use rights::{host_rights, rights};
pub use setting::{SETTINGS, Setting};
pub use step::Step;
