//! Locks that ignore poisoning. A panic ends one session; what it leaves behind a lock is
//! memory-safe, and at worst an orphan.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

#[inline]
pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

#[inline]
pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
