//! Removes privileges that the keeper does not need from its process: first access to files and the
//! network (Landlock), then system calls (seccomp). An attacker who takes over the keeper can then
//! run no program, open no connection, read no files but the keeper's own, and debug no process.
//!
//! The configuration is not read here; the caller passes the directories in use.
//!
//! Invariant: privileges are removed from all threads, irrevocably. Landlock restricts the calling
//! thread and those it starts later, so it is applied before the first thread is started. seccomp
//! is applied when everything is running, to all threads.

use crate::config::Config;
use channel::urgency::NICE;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
};
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The newest Landlock version supported: files, devices, TCP.
const LANDLOCK: ABI = ABI::V5;

/// How much of the sandbox is in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// All of it.
    Full,
    /// The kernel is too old for a part of it.
    Partial,
    /// None of it: the kernel has no Landlock.
    None,
}

/// From now on this thread and those it starts can open files only in the keeper's directories, and
/// no TCP connections. Must be called when the keeper's directories exist.
///
/// # Errors
/// If a directory cannot be opened, or the kernel refuses. A kernel without Landlock is not an
/// error.
pub fn restrict_files(config: &Config) -> Result<Standing, String> {
    confine(config).map_err(|e| format!("cannot restrict the keeper to its files: {e}"))
}

fn confine(config: &Config) -> Result<Standing, Box<dyn std::error::Error>> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .create()?;
    for (path, access) in places(config) {
        if path.exists() {
            rules = rules.add_rule(PathBeneath::new(PathFd::new(path)?, access))?;
        }
    }
    Ok(match rules.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => Standing::Full,
        RulesetStatus::PartiallyEnforced => Standing::Partial,
        RulesetStatus::NotEnforced => Standing::None,
    })
}

/// Where the keeper reads and writes while it runs.
fn places(config: &Config) -> Vec<(PathBuf, BitFlags<AccessFs>)> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write = read
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir;
    let socket = AccessFs::MakeSock | AccessFs::RemoveFile;
    let mut places = vec![
        (folder(&config.socket), socket),
        // Replaced as a whole when a client is added.
        (folder(&config.clients_file), read),
        // For the process's memory usage.
        (PathBuf::from("/proc/self"), AccessFs::ReadFile.into()),
    ];
    if !config.pid_file.as_os_str().is_empty() {
        places.push((folder(&config.pid_file), write));
    }
    if !config.data_dir.as_os_str().is_empty() {
        places.push((config.data_dir.clone(), write));
        places.push((folder(&config.freshness()), write));
    }
    if !config.record_dir.as_os_str().is_empty() {
        places.push((config.record_dir.clone(), write));
    }
    if !config.ledger_publish_dir.as_os_str().is_empty() {
        places.push((config.ledger_publish_dir.clone(), write));
    }
    if let Some(directory) = evidence::directory(&config.evidence) {
        places.push((directory, write));
    }
    if !config.freshness_tpm.as_os_str().is_empty() {
        let device = AccessFs::ReadFile | AccessFs::WriteFile;
        places.push((config.freshness_tpm.clone(), device));
    }
    places
}

/// The directory of a file.
fn folder(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// From now on all threads can make only the system calls that a running keeper needs; all others
/// fail with EPERM. Must be called when everything is running.
///
/// # Errors
/// If the kernel refuses, or does not support seccomp.
pub fn restrict_calls() -> Result<(), String> {
    let refuse = |e: &dyn std::fmt::Display| format!("cannot restrict system calls: {e}");
    // The last one forbids installing another.
    let programs = [no_clone3(), allowed()];
    for program in programs {
        let program = program.map_err(|e| refuse(&e))?;
        apply_filter_all_threads(&program).map_err(|e| refuse(&e))?;
    }
    Ok(())
}

/// Permitted system calls, regardless of their arguments.
#[rustfmt::skip]
const CALLS: &[libc::c_long] = &[
    // Memory.
    libc::SYS_munmap, libc::SYS_mremap, libc::SYS_madvise, libc::SYS_brk, libc::SYS_mlock,
    libc::SYS_munlock, libc::SYS_memfd_create,
    // Threads, waiting, time.
    libc::SYS_futex, libc::SYS_set_robust_list, libc::SYS_rseq, libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity, libc::SYS_nanosleep, libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime, libc::SYS_gettimeofday, libc::SYS_restart_syscall, libc::SYS_exit,
    libc::SYS_exit_group, libc::SYS_gettid, libc::SYS_getpid, libc::SYS_getuid,
    libc::SYS_geteuid, libc::SYS_getrandom, libc::SYS_set_tid_address,
    // Signals.
    libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    // Files; Landlock decides which ones.
    libc::SYS_read, libc::SYS_write, libc::SYS_readv, libc::SYS_writev, libc::SYS_pread64,
    libc::SYS_pwrite64, libc::SYS_close, libc::SYS_fstat, libc::SYS_newfstatat, libc::SYS_statx,
    libc::SYS_lseek, libc::SYS_openat, libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_ftruncate,
    libc::SYS_renameat, libc::SYS_renameat2, libc::SYS_unlinkat, libc::SYS_mkdirat,
    libc::SYS_getdents64, libc::SYS_fcntl, libc::SYS_flock,
    // The channels.
    libc::SYS_accept4, libc::SYS_connect, libc::SYS_sendmsg, libc::SYS_recvmsg, libc::SYS_sendto,
    libc::SYS_recvfrom, libc::SYS_shutdown, libc::SYS_getsockopt, libc::SYS_setsockopt,
    libc::SYS_getsockname, libc::SYS_getpeername, libc::SYS_ppoll,
    // Handled by the other filter.
    libc::SYS_clone3,
];

/// Older variants on x86-64.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLDER: &[libc::c_long] = &[
    libc::SYS_open, libc::SYS_stat, libc::SYS_lstat, libc::SYS_poll, libc::SYS_rename,
    libc::SYS_unlink, libc::SYS_mkdir, libc::SYS_rmdir,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[libc::c_long] = &[];

type Program = Result<BpfProgram, seccompiler::BackendError>;

/// The permitted calls; all others fail with EPERM.
fn allowed() -> Program {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for &call in CALLS.iter().chain(OLDER) {
        rules.insert(call, Vec::new());
    }
    let executable = libc::PROT_EXEC as u64;
    let thread = (libc::CLONE_THREAD | libc::CLONE_VM) as u64;
    // Argument number, mask, value.
    let conditions = [
        (libc::SYS_mmap, 2, executable, 0),
        (libc::SYS_mprotect, 2, executable, 0),
        // Threads, but no processes.
        (libc::SYS_clone, 0, thread, thread),
        // For a TPM simulator; never the network.
        (libc::SYS_socket, 0, u64::MAX, libc::AF_UNIX as u64),
        // For the names of threads.
        (libc::SYS_prctl, 0, u64::MAX, libc::PR_SET_NAME as u64),
        // A thread that steps back for others.
        (libc::SYS_setpriority, 2, u64::MAX, NICE as u64),
        // To terminate itself by a signal, as abort does.
        (libc::SYS_tgkill, 0, u64::MAX, u64::from(std::process::id())),
    ];
    for (call, argument, mask, value) in conditions {
        rules.insert(call, vec![rule(argument, mask, value)?]);
    }
    // How urgent a thread is, but no real-time class.
    let policies = [libc::SCHED_OTHER, libc::SCHED_IDLE];
    let policies = policies.map(|policy| rule(1, u64::MAX, policy as u64));
    rules.insert(
        libc::SYS_sched_setscheduler,
        policies.into_iter().collect::<Result<_, _>>()?,
    );
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    compile(rules, refused, SeccompAction::Allow)
}

/// The C library starts threads with `clone3`, whose flags a filter cannot examine. If told that it
/// does not exist, it uses `clone`.
fn no_clone3() -> Program {
    let missing = SeccompAction::Errno(libc::ENOSYS as u32);
    let rules = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    compile(rules, SeccompAction::Allow, missing)
}

fn rule(argument: u8, mask: u64, value: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    let equal = SeccompCmpOp::MaskedEq(mask);
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, equal, value)?;
    SeccompRule::new(vec![condition])
}

fn compile(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    listed: SeccompAction,
) -> Program {
    let machine = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, otherwise, listed, machine)?.try_into()
}
