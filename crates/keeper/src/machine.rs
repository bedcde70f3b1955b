//! The available memory: that of the machine, or less if a control group (version 1 or 2) limits
//! it; and how much of it this process uses.
//!
//! Invariant: a limit that cannot be read is ignored; the result is never 0.

use std::path::{Path, PathBuf};

/// Assumed if nothing can be read.
const UNKNOWN: usize = 4 << 30;

/// Memory that this process may use, in bytes.
pub fn memory() -> usize {
    memory_at(Path::new("/"))
}

/// Resident memory of this process in bytes; 0 if it cannot be read.
pub fn resident() -> usize {
    const PAGE: usize = 4096;
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(number).unwrap_or(0);
    pages.saturating_mul(PAGE)
}

/// Like [`memory`], for a system whose files are below a directory.
fn memory_at(root: &Path) -> usize {
    let group = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let bounds = group.lines().flat_map(|line| files(root, line));
    let bounds = bounds.filter_map(|file| number(&std::fs::read_to_string(file).ok()?));
    let all = machine(root).into_iter().chain(bounds);
    all.filter(|bytes| *bytes > 0).min().unwrap_or(UNKNOWN)
}

fn machine(root: &Path) -> Option<usize> {
    let text = std::fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    number(line.trim().strip_suffix("kB")?)?.checked_mul(1024)
}

/// "max" is not a number.
fn number(text: &str) -> Option<usize> {
    text.trim().parse().ok()
}

/// The files with the limits of a group and its ancestors. A line consists of number, controllers
/// and path.
fn files(root: &Path, line: &str) -> Vec<PathBuf> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, Some(path)) = (fields.next(), fields.next(), fields.next()) else {
        return Vec::new();
    };
    let (base, file) = match controllers {
        Some("") => ("sys/fs/cgroup", "memory.max"),
        Some(some) if some.split(',').any(|c| c == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let path = Path::new(path.trim_start_matches('/'));
    let groups = path.ancestors().map(|group| root.join(base).join(group));
    groups.map(|group| group.join(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(files: &[(&str, &str)]) -> usize {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        memory_at(root.path())
    }

    const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal:   8388608 kB\nMemFree: 1 kB\n");

    #[test]
    fn of_the_machine() {
        assert_eq!(system(&[MACHINE]), 8 << 30);
        assert_eq!(system(&[]), UNKNOWN);
        assert_eq!(system(&[("proc/meminfo", "nothing")]), UNKNOWN);
    }

    /// The least bound on the way up counts; "max" is none.
    #[test]
    fn version_2() {
        let group = ("proc/self/cgroup", "0::/a/b\n");
        let inner = ("sys/fs/cgroup/a/b/memory.max", "max\n");
        let outer = ("sys/fs/cgroup/a/memory.max", "1073741824\n");
        assert_eq!(system(&[MACHINE, group, inner]), 8 << 30);
        assert_eq!(system(&[MACHINE, group, inner, outer]), 1 << 30);
        let own = ("sys/fs/cgroup/memory.max", "536870912");
        assert_eq!(
            system(&[MACHINE, ("proc/self/cgroup", "0::/"), own]),
            512 << 20
        );
    }

    #[test]
    fn version_1() {
        let group = (
            "proc/self/cgroup",
            "5:cpu:/x\n4:memory,hugetlb:/docker/c1\n",
        );
        let bound = "sys/fs/cgroup/memory/docker/c1/memory.limit_in_bytes";
        assert_eq!(system(&[MACHINE, group, (bound, "2147483648\n")]), 2 << 30);
        // No bound is a number larger than any memory.
        assert_eq!(
            system(&[MACHINE, group, (bound, "9223372036854771712\n")]),
            8 << 30
        );
        // Seen from within a container, the group's files are at the root.
        let seen = "sys/fs/cgroup/memory/memory.limit_in_bytes";
        assert_eq!(system(&[MACHINE, group, (seen, "1073741824")]), 1 << 30);
    }
}
