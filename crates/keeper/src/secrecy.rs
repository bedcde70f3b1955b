//! Reserves the memory that the kernel hides from root, for keys or for everything, as configured.
//!
//! Invariant: with `secret_memory = "require"` or `secret_values` the keeper does not start without it.

use crate::config::{Config, SecretMemory};
use channel::hidden::{self, What};

/// So much more than `memory_limit` is reserved, of which only what is used is ever taken: allocations
/// are rounded up to powers of two, and not all of them count as values.
const RESERVED: usize = 3;
const BESIDE: usize = 256 << 20;

/// Reserves it. To be called once, before keys are there and before system calls are restricted.
///
/// # Errors
/// It cannot be had, and the configuration says that it must.
pub fn reserve(config: &Config) -> Result<(), String> {
    let wish = config.secret_memory;
    if wish == SecretMemory::Off {
        return match config.secret_values {
            true => Err("secret_values needs secret_memory".into()),
            false => Ok(()),
        };
    }
    let limit = config.memory_limit.0;
    let (what, bytes) = match config.secret_values {
        true => (What::Everything, limit.saturating_mul(RESERVED) + BESIDE),
        false => (What::Keys, config.secret_memory_size.0),
    };
    match hidden::reserve(bytes, what) {
        Ok(()) => tracing::info!(?what, bytes, "hidden memory is reserved"),
        Err(e) if wish == SecretMemory::Require || config.secret_values => {
            return Err(format!(
                "no hidden memory (memfd_secret) of {bytes} bytes: {e}"
            ));
        }
        Err(error) => {
            tracing::info!(%error, "keys are in memory that root can read (secret_memory)");
        }
    }
    Ok(())
}
