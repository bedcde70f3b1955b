//! Actions on the database's host, outside of PostgreSQL (HEDB, table 4: operating system and
//! connectivity). What is there is looked at first, so that a dry run shows it and it can be undone.
//!
//! Files are below a root, which is `/` but in tests. No text of a template becomes a path, a program
//! or an argument but after its check.
//!
//! Not here: whether the process may do that. It needs root for huge pages, interfaces and limits; for
//! the others it is PostgreSQL's user on the operating system (`confide fix host`).

use crate::Refused;
use crate::action::Action;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Where cores are looked for, besides the cluster's directory.
const CRASHES: &str = "var/crash";
const HUGE_PAGES: &str = "proc/sys/vm/nr_hugepages";
const INTERFACES: &str = "sys/class/net";

/// The host as an action sees it.
pub struct Host {
    /// Root of all files.
    pub root: PathBuf,
    /// The cluster's directory.
    pub data: PathBuf,
    /// Directory of `pg_ctl`; none: it is searched for.
    pub bindir: Option<PathBuf>,
}

/// What is there, and what undoes the action.
#[derive(Debug)]
pub struct Looked {
    /// What is, and what will be.
    pub shown: String,
    /// What undoes it, if a template can.
    pub undo: Option<Action>,
}

type Done = Result<(), String>;

fn missing(what: impl Into<String>) -> Refused {
    Refused::new("exists", what)
}

impl Action {
    /// Whether it is done on the host.
    #[must_use]
    pub fn is_on_host(&self) -> bool {
        matches!(
            self,
            Action::DirectoryMode { .. } | Action::RemoveCores {} | Action::Restart {}
        ) || self.needs_root()
    }

    /// What needs no host.
    pub(crate) fn check_on_host(&self) -> Result<(), Refused> {
        let range = |what: &str, n: u32, low: u32, high: u32| match n {
            n if (low..=high).contains(&n) => Ok(()),
            _ => Err(Refused::new(
                "host-range",
                format!("{what} {n}: {low} to {high}"),
            )),
        };
        match self {
            Action::DirectoryMode { path, mode } => {
                plain_path(path)?;
                match mode.as_str() {
                    "0700" | "0750" => Ok(()),
                    _ => Err(Refused::new(
                        "host-range",
                        format!("mode {mode}: 0700 or 0750"),
                    )),
                }
            }
            Action::HugePages { pages: 0 } | Action::RemoveCores {} | Action::Restart {} => Ok(()),
            Action::HugePages { pages } => range("pages", *pages, 64, 65_536),
            Action::Mtu { interface, mtu } => {
                let known = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
                if !interface.chars().all(known) || interface.starts_with('.') {
                    return Err(missing(format!("\"{interface}\" is no interface")));
                }
                range("mtu", *mtu, 64, 8192)
            }
            Action::ProcessLimit { limit } => range("limit", *limit, 64, 8000),
            _ => Ok(()),
        }
    }

    /// Whether only root does it.
    #[must_use]
    pub fn needs_root(&self) -> bool {
        matches!(
            self,
            Action::HugePages { .. } | Action::Mtu { .. } | Action::ProcessLimit { .. }
        )
    }

    /// Looks at what is there.
    ///
    /// # Errors
    /// Name the rule that is broken.
    pub fn look(&self, host: &Host) -> Result<Looked, Refused> {
        let done = |shown: String, undo: Option<Action>| Ok(Looked { shown, undo });
        match self {
            Action::DirectoryMode { path, mode } => {
                let found = host.below(path)?;
                let metadata = fs::metadata(&found).map_err(|e| missing(e.to_string()))?;
                let old = format!("{:04o}", metadata.permissions().mode() & 0o7777);
                let undo = ["0700", "0750"].contains(&old.as_str()).then(|| {
                    let (path, mode) = (path.clone(), old.clone());
                    Action::DirectoryMode { path, mode }
                });
                done(
                    format!("mode of {}: {old} -> {mode}", found.display()),
                    undo,
                )
            }
            Action::RemoveCores {} => {
                let cores = host.cores();
                let bytes: u64 = cores.iter().map(|core| core.1).sum();
                done(
                    format!("remove {} core files, {bytes} bytes", cores.len()),
                    None,
                )
            }
            Action::HugePages { pages } => {
                let old = host.number(HUGE_PAGES)?;
                let undo = Action::HugePages { pages: old };
                let undo = undo.check_on_host().is_ok().then_some(undo);
                done(format!("huge pages: {old} -> {pages}"), undo)
            }
            Action::Mtu { interface, mtu } => {
                let old = host.number(&format!("{INTERFACES}/{interface}/mtu"))?;
                let undo = Action::Mtu {
                    interface: interface.clone(),
                    mtu: old,
                };
                let undo = undo.check_on_host().is_ok().then_some(undo);
                done(format!("mtu of {interface}: {old} -> {mtu}"), undo)
            }
            Action::ProcessLimit { limit } => {
                let old = host.limit()?;
                let undo = old.parse().ok().map(|limit| Action::ProcessLimit { limit });
                let undo = undo.filter(|undo| undo.check_on_host().is_ok());
                done(
                    format!("processes of the server's user: {old} -> {limit}"),
                    undo,
                )
            }
            Action::Restart {} => {
                host.postmaster()?;
                done("restart the server: all sessions end".into(), None)
            }
            _ => Err(missing("that is not done on the host")),
        }
    }

    /// Does it.
    ///
    /// # Errors
    /// Say what failed.
    pub fn carry_out(&self, host: &Host) -> Done {
        let refused = |refused: Refused| refused.what;
        let failed = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
        match self {
            Action::DirectoryMode { path, mode } => {
                let found = host.below(path).map_err(refused)?;
                let mode = u32::from_str_radix(mode, 8).map_err(|e| e.to_string())?;
                fs::set_permissions(&found, fs::Permissions::from_mode(mode))
                    .map_err(|e| failed(&found, e))
            }
            Action::RemoveCores {} => host
                .cores()
                .iter()
                .try_for_each(|(core, _)| fs::remove_file(core).map_err(|e| failed(core, e))),
            Action::HugePages { pages } => host.write(HUGE_PAGES, *pages),
            Action::Mtu { interface, mtu } => {
                host.write(&format!("{INTERFACES}/{interface}/mtu"), *mtu)
            }
            Action::ProcessLimit { limit } => {
                let pid = host.postmaster().map_err(refused)?;
                let (pid, limit) = (format!("--pid={pid}"), format!("--nproc={limit}:{limit}"));
                run(Command::new("prlimit").args([pid, limit]))
            }
            Action::Restart {} => {
                let program = host.bindir.as_ref().map(|dir| dir.join("pg_ctl"));
                let mut command = Command::new(program.unwrap_or_else(|| "pg_ctl".into()));
                command.args(["restart", "-w", "-s", "-m", "fast", "-D"]);
                run(command.arg(&host.data))
            }
            _ => Err("that is not done on the host".into()),
        }
    }
}

fn run(command: &mut Command) -> Done {
    command.stdin(std::process::Stdio::null());
    // The server keeps what it inherits: a pipe would never end.
    command.stdout(std::process::Stdio::null());
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name}: {status}")),
        Err(e) => Err(format!("{name}: {e}")),
    }
}

/// A path below a directory, without steps up.
fn plain_path(path: &str) -> Result<(), Refused> {
    let plain = |part| matches!(part, Component::Normal(_));
    match Path::new(path).components().all(plain) && !path.contains('\0') {
        true => Ok(()),
        false => Err(Refused::new(
            "path-below",
            format!("{path}: a path below data_directory"),
        )),
    }
}

impl Host {
    /// A directory of the cluster; no link leads out of it.
    fn below(&self, path: &str) -> Result<PathBuf, Refused> {
        plain_path(path)?;
        let outer = self
            .data
            .canonicalize()
            .map_err(|e| missing(e.to_string()))?;
        let found = outer.join(path).canonicalize();
        let found = found.map_err(|e| missing(format!("{path}: {e}")))?;
        match found.starts_with(&outer) && found.is_dir() {
            true => Ok(found),
            false => Err(Refused::new(
                "path-below",
                format!("{path}: no directory there"),
            )),
        }
    }

    fn number(&self, path: &str) -> Result<u32, Refused> {
        let text = fs::read_to_string(self.root.join(path));
        let text = text.map_err(|e| missing(format!("/{path}: {e}")))?;
        text.trim()
            .parse()
            .map_err(|_| missing(format!("/{path} is no number")))
    }

    fn write(&self, path: &str, number: u32) -> Done {
        let file = self.root.join(path);
        fs::write(&file, format!("{number}\n")).map_err(|e| format!("{}: {e}", file.display()))?;
        // The kernel may give less than was asked for.
        match self.number(path) {
            Ok(now) if now == number => Ok(()),
            Ok(now) => Err(format!("{}: it is {now} now", file.display())),
            Err(refused) => Err(refused.what),
        }
    }

    /// Core files that the owner of the cluster has, and their sizes.
    fn cores(&self) -> Vec<(PathBuf, u64)> {
        let Ok(owner) = fs::metadata(&self.data).map(|m| m.uid()) else {
            return Vec::new();
        };
        let is_core =
            |name: &str| name == "core" || name.starts_with("core.") || name.ends_with(".core");
        let mut found = Vec::new();
        for directory in [self.data.clone(), self.root.join(CRASHES)] {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                // Of a link itself, not of what it leads to.
                let metadata = entry.metadata().ok();
                let metadata = metadata.filter(|m| m.is_file() && m.uid() == owner);
                if let Some(metadata) = metadata
                    && entry.file_name().to_str().is_some_and(is_core)
                {
                    found.push((entry.path(), metadata.len()));
                }
            }
        }
        found.sort();
        found
    }

    /// The server's first process. Its file says so, and it is one of the owner of the cluster.
    fn postmaster(&self) -> Result<u32, Refused> {
        let file = self.data.join("postmaster.pid");
        let text = fs::read_to_string(&file).map_err(|_| missing("the server does not run"))?;
        let pid = text
            .lines()
            .next()
            .and_then(|line| line.trim().parse().ok());
        let pid: u32 = pid.ok_or_else(|| missing("the server does not run"))?;
        let owner = |path: &Path| fs::metadata(path).map(|m| m.uid()).ok();
        let process = self.root.join(format!("proc/{pid}"));
        match owner(&process).is_some_and(|uid| owner(&self.data) == Some(uid)) {
            true => Ok(pid),
            false => Err(missing(format!("process {pid} is not the server"))),
        }
    }

    /// How many processes it may have.
    fn limit(&self) -> Result<String, Refused> {
        let pid = self.postmaster()?;
        let limits = fs::read_to_string(self.root.join(format!("proc/{pid}/limits")));
        let limits = limits.map_err(|e| missing(e.to_string()))?;
        let line = limits.lines().find(|l| l.starts_with("Max processes"));
        let soft = line.and_then(|l| l.split_ascii_whitespace().nth(2));
        Ok(soft.unwrap_or("?").to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> (tempfile::TempDir, Host) {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().to_owned();
        let data = root.join("data");
        for path in [
            "data/base",
            "proc/sys/vm",
            "sys/class/net/eth0",
            "var/crash",
        ] {
            fs::create_dir_all(root.join(path)).expect("a directory");
        }
        fs::write(root.join(HUGE_PAGES), "0\n").expect("a file");
        fs::write(root.join("sys/class/net/eth0/mtu"), "1400\n").expect("a file");
        let bindir = None;
        (directory, Host { root, data, bindir })
    }

    /// Each does what it names, and what undoes it does that; with the bug a fix cannot be taken
    /// back, or something else was changed.
    #[test]
    fn done_and_undone() {
        let (_directory, host) = host();
        for (deed, file, before, after) in [
            (Action::HugePages { pages: 128 }, HUGE_PAGES, "0\n", "128\n"),
            (
                Action::Mtu {
                    interface: "eth0".into(),
                    mtu: 1500,
                },
                "sys/class/net/eth0/mtu",
                "1400\n",
                "1500\n",
            ),
        ] {
            let looked = deed.look(&host).expect("it is there");
            let read = || fs::read_to_string(host.root.join(file)).expect("a file");
            assert_eq!((read().as_str(), deed.needs_root()), (before, true));
            deed.carry_out(&host).expect("done");
            assert_eq!(read(), after);
            let undo = looked.undo.expect("it can be undone");
            undo.carry_out(&host).expect("undone");
            assert_eq!(read(), before);
        }
        let (path, mode) = ("base".to_owned(), "0750".to_owned());
        let open = Action::DirectoryMode { path, mode };
        open.carry_out(&host).expect("done");
        let mode = fs::metadata(host.data.join("base"))
            .expect("it")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o750);
    }

    /// Only cores are removed, only here, and no link is followed.
    #[test]
    fn cores() {
        let (_directory, host) = host();
        for file in [
            "data/core.1",
            "var/crash/a.core",
            "data/score",
            "data/base/core",
        ] {
            fs::write(host.root.join(file), "x").expect("a file");
        }
        let link = host.data.join("core.link");
        std::os::unix::fs::symlink(host.data.join("score"), &link).expect("a link");
        let looked = Action::RemoveCores {}.look(&host).expect("cores");
        assert_eq!(looked.shown, "remove 2 core files, 2 bytes");
        Action::RemoveCores {}.carry_out(&host).expect("done");
        let there = |file: &str| host.root.join(file).exists();
        assert!(!there("data/core.1") && !there("var/crash/a.core"));
        assert!(there("data/score") && there("data/base/core") && there("data/core.link"));
    }

    /// What is out of range or leads out of the cluster is refused by its rule.
    #[test]
    fn refused() {
        let (_directory, host) = host();
        let mode = |path: &str, mode: &str| Action::DirectoryMode {
            path: path.into(),
            mode: mode.into(),
        };
        let mtu = |interface: &str, mtu| Action::Mtu {
            interface: interface.into(),
            mtu,
        };
        let out = host.data.join("out");
        std::os::unix::fs::symlink(&host.root, &out).expect("a link");
        for (deed, rule) in [
            (mode("base", "0777"), "host-range"),
            (mode("../var", "0700"), "path-below"),
            (mode("/etc", "0700"), "path-below"),
            (mode("out", "0700"), "path-below"),
            (mode("nowhere", "0700"), "exists"),
            (Action::HugePages { pages: 63 }, "host-range"),
            (Action::HugePages { pages: 65_537 }, "host-range"),
            (mtu("eth0", 63), "host-range"),
            (mtu("eth1", 1500), "exists"),
            (mtu("../../x", 1500), "exists"),
            (Action::ProcessLimit { limit: 8001 }, "host-range"),
            (Action::ProcessLimit { limit: 100 }, "exists"),
            (Action::Restart {}, "exists"),
        ] {
            let refused = deed.check().and_then(|()| deed.look(&host).map(|_| ()));
            assert_eq!(refused.expect_err("refused").rule, rule, "{deed:?}");
        }
    }
}
