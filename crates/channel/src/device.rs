//! Memory of channels on a device that both sides map, where no descriptor can be passed: the keeper
//! runs in another guest than the backends, and both have the same ivshmem device. (Between
//! processes of one kernel a file on tmpfs does for tests.) Channels get ranges of it by number.
//!
//! Whoever can open the device reads and changes the memory of all channels, where a memfd is one
//! channel's. Nothing here prevents that.
//!
//! Invariant: two channels never have the same range at a time, and a range has nothing of an earlier
//! channel when it is given out.
#![allow(unsafe_code)]

use contract::ring::MAPPING_BYTES;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// File system of the kernel's devices: PCI resources are files of a fixed size there.
const SYSFS: libc::c_long = 0x6265_6572;
/// More than a keeper has channels.
const RANGES_MAX: u64 = 65_536;

/// An open device, divided into ranges.
#[derive(Debug)]
pub struct Device {
    file: File,
    /// Which ranges are in use.
    used: Mutex<Vec<bool>>,
}

/// A range that belongs to one channel until it is dropped.
#[derive(Debug)]
pub(crate) struct Range {
    device: Arc<Device>,
    number: u32,
}

impl Device {
    /// Opens a device; the channels that it has room for are those that its size allows.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if there is no room for one.
    pub fn open(path: &Path) -> io::Result<Device> {
        let file = File::options().read(true).write(true).open(path)?;
        let ranges = file.metadata()?.len() / MAPPING_BYTES as u64;
        if ranges == 0 {
            let what = format!("it has fewer than {MAPPING_BYTES} bytes");
            return Err(io::Error::new(ErrorKind::InvalidInput, what));
        }
        let ranges = ranges.min(RANGES_MAX) as usize;
        Ok(Device {
            file,
            used: Mutex::new(vec![false; ranges]),
        })
    }

    /// Number of channels that it has room for.
    pub fn ranges(&self) -> usize {
        self.used.lock().map_or(0, |used| used.len())
    }

    /// Whether nobody can make it shorter, as a file that he may write: an access beyond its end
    /// ends the process.
    pub fn is_fixed(&self) -> bool {
        let fd = self.file.as_raw_fd();
        // SAFETY: an all-zero statfs is a valid value of a plain C struct.
        let mut status: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: an open descriptor, and a pointer that is valid for one statfs.
        let known = unsafe { libc::fstatfs(fd, &mut status) } == 0;
        let plain = self.file.metadata().map_or(true, |data| data.is_file());
        !plain || (known && status.f_type == SYSFS)
    }

    /// Takes a range that no channel has.
    ///
    /// # Errors
    /// [`ErrorKind::QuotaExceeded`] if all are in use.
    pub(crate) fn take(self: &Arc<Device>) -> io::Result<Range> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let free = used.iter().position(|used| !used);
        let number = free.ok_or(ErrorKind::QuotaExceeded)?;
        if let Some(used) = used.get_mut(number) {
            *used = true;
        }
        Ok(Range {
            device: Arc::clone(self),
            number: number as u32,
        })
    }
}

impl Range {
    /// Its number, from 1.
    pub(crate) fn number(&self) -> u32 {
        self.number + 1
    }

    /// Where it begins.
    pub(crate) fn start(&self) -> u64 {
        start(self.number())
    }
}

impl AsFd for Range {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.file.as_fd()
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        let used = &self.device.used;
        let mut used = used.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(used) = used.get_mut(self.number as usize) {
            *used = false;
        }
    }
}

/// Where the range with this number begins, from 1.
pub(crate) fn start(number: u32) -> u64 {
    u64::from(number.saturating_sub(1)) * MAPPING_BYTES as u64
}
