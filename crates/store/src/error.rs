//! Errors of the store.

use contract::Code;
use values::Error;

/// A temporary FID below its arena's window.
pub fn gone() -> Error {
    Error::new(b"55000", "confide: temporary value is gone")
        .detail("The statement that made the value has ended.")
        .hint("Run the statement again.")
}

/// A temporary FID in whose slot nothing was ever stored.
pub fn no_such_value() -> Error {
    Error::new(b"XX000", "confide: no such value")
        .detail("The identifier names a slot in which nothing has been stored.")
}

/// A permanent FID that does not resolve.
pub fn unresolved() -> Error {
    Error::new(b"XX001", "confide: identifier does not resolve")
        .code(Code::Unresolved)
        .detail("The keeper has no value for an identifier that the database holds.")
        .hint("The keeper's state and the database may be of different times.")
}

/// A segment or redo record that does not match its partition.
pub fn bad_segment() -> Error {
    Error::new(b"XX001", "confide: stored values are malformed")
        .detail("They are authentic, but were written by another version, or of another column.")
}

/// A memory limit was reached.
pub fn out_of_memory(setting: &str) -> Error {
    Error::new(b"53200", "confide: out of memory in the keeper")
        .detail(format!("The limit \"{setting}\" is reached."))
        .hint(format!(
            "Raise \"{setting}\" in the keeper's configuration."
        ))
}

/// A slot number that the channel may not use yet.
pub(crate) fn too_far_ahead() -> Error {
    Error::new(b"54000", "confide: slot is too far ahead of its arena")
}

/// A slot is to be filled with a value that comes from something other than its contents.
pub(crate) fn slot_in_use() -> Error {
    Error::new(b"55000", "confide: slot of a temporary value is in use")
}

/// All partition numbers are in use.
pub(crate) fn no_partitions_left() -> Error {
    Error::new(b"54000", "confide: too many protected columns")
        .hint("Drop tables with protected columns that are not needed.")
}
