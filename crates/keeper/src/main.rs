//! `confide-keeper`: reads the configuration, hardens the process, serves until
//! SIGTERM or SIGINT.
//!
//! Exit codes: 0 ended as told, 1 failure, 2 wrong arguments or configuration, 3 the root
//! key cannot be had.

#![forbid(unsafe_code)]

use clap::Parser;
use keeper::sandbox::{self, Standing};
use keeper::{Clients, Config, Keeper, Keys, Server, Trouble, harden, logging, secrecy};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;

/// The trusted daemon of Confide: keeps values that PostgreSQL must not see.
#[derive(Parser)]
#[command(name = "confide-keeper", version)]
struct Arguments {
    /// Configuration file (default: /etc/confide/keeper.toml, if it exists).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the settings in effect as a configuration file, and exit.
    #[arg(long)]
    print_config: bool,
    /// Accept the files in the data directory, restored from a backup, as the newest that
    /// there are, and exit.
    #[arg(long)]
    accept_backup: bool,
    /// Ask the broker of root_key_source for the key of an encrypted disk, print it in hexadecimal
    /// digits, and exit. The name begins with "disk-".
    #[arg(long, value_name = "NAME")]
    disk_key: Option<String>,
}

/// From this size on, a piece of memory is a mapping of its own: it goes back to the system when
/// it is freed, also from the middle. Elsewhere what is freed stays, since locked memory cannot
/// be trimmed. No more mappings than the system allows.
const ALLOCATION: [(&str, &str); 2] = [
    ("MALLOC_MMAP_THRESHOLD_", "131072"),
    ("MALLOC_MMAP_MAX_", "32768"),
];

/// The allocator reads its settings from the environment before `main`: starts the program anew
/// with them, unless somebody has chosen others. Where that fails, memory is only given back later.
fn set_allocation() {
    let (name, _) = ALLOCATION[0];
    if std::env::var_os(name).is_some() {
        return;
    }
    if let Ok(program) = std::env::current_exe() {
        let mut command = std::process::Command::new(program);
        let error = command
            .args(std::env::args_os().skip(1))
            .envs(ALLOCATION)
            .exec();
        eprintln!("confide-keeper: cannot start anew with settings of the allocator: {error}");
    }
}

/// The program; a test build has it by another name.
pub fn main() -> ExitCode {
    set_allocation();
    let arguments = Arguments::parse();
    let config = match Config::load(arguments.config.as_deref(), environment()) {
        Ok(config) => config,
        Err(what) => {
            eprintln!("confide-keeper: {what}");
            return ExitCode::from(2);
        }
    };
    if arguments.print_config {
        print!("{}", config.print());
        return ExitCode::SUCCESS;
    }
    logging::quiet_panics();
    let started = logging::start(&config.log).map_err(End::Failed);
    match started.and_then(|()| match (arguments.disk_key, arguments.accept_backup) {
        (Some(name), _) => disk_key(&config, &name),
        (None, true) => accept(&config),
        (None, false) => run(config),
    }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(end) => {
            let (code, what) = match end {
                End::Failed(what) => (1, what),
                End::NoRootKey(what) => (NO_ROOT_KEY, what),
            };
            eprintln!("confide-keeper: {what}");
            ExitCode::from(code)
        }
    }
}

/// Exit code when the root key cannot be had.
const NO_ROOT_KEY: u8 = 3;

/// Why the keeper ends.
enum End {
    Failed(String),
    NoRootKey(String),
}

impl From<String> for End {
    fn from(what: String) -> End {
        End::Failed(what)
    }
}

impl From<Trouble> for End {
    fn from(trouble: Trouble) -> End {
        match &trouble {
            Trouble::Root(_) => End::NoRootKey(trouble.to_string()),
            Trouble::Other(_) => End::Failed(trouble.to_string()),
        }
    }
}

/// The environment, as far as it is text.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
}

/// An operator says that a restored copy is the newest.
fn accept(config: &Config) -> Result<(), End> {
    harden::harden()?;
    secrecy::reserve(config)?;
    let keys = Keys::of(config)?;
    let done = keeper::accept_backup(config, &keys)?;
    tracing::warn!(directory = %config.data_dir.display(), "accepted a backup: {done}");
    println!("confide-keeper: {done}");
    Ok(())
}

/// For `cryptsetup open --key-file -`, whose standard input this is.
fn disk_key(config: &Config, name: &str) -> Result<(), End> {
    harden::harden()?;
    let key = keeper::disk_key(config, name)?;
    let mut out = std::io::stdout().lock();
    let written = key.iter().try_for_each(|byte| write!(out, "{byte:02x}"));
    written
        .and_then(|()| out.flush())
        .map_err(|e| e.to_string())?;
    Ok(())
}

fn run(config: Config) -> Result<(), End> {
    harden::harden()?;
    secrecy::reserve(&config)?;
    let keys = Keys::of(&config)?;
    let clients = Clients::new(&config.clients_file);
    let pid_file = config.pid_file.clone();
    let users = keeper::user_ids(&config)?;
    let device = keeper::device(&config)?;
    let confined = config.sandbox;
    let keeper = Keeper::new(config, keys, clients).map_err(|e| e.to_string())?;
    if confined {
        restrict_files(&keeper.config)?;
    }
    let server = Server::bind(keeper, users, device)?;
    let watch = watch_signals(&server)?;
    write_pid(&pid_file)?;
    if confined {
        sandbox::restrict_calls()?;
    }
    tell_ready(&server);
    let result = server.run();
    watch.end();
    tracing::info!("stopped");
    if !pid_file.as_os_str().is_empty() {
        let _ = std::fs::remove_file(&pid_file);
    }
    Ok(result?)
}

/// Before the first thread: each has the rights of the one that started it.
fn restrict_files(config: &Config) -> Result<(), String> {
    match sandbox::restrict_files(config)? {
        Standing::Full => {}
        Standing::Partial => tracing::warn!("this kernel's Landlock restricts files only in part"),
        Standing::None => tracing::warn!("this kernel has no Landlock: files are not restricted"),
    }
    Ok(())
}

/// The thread that waits for signals.
struct Watch {
    handle: Handle,
    thread: JoinHandle<()>,
}

impl Watch {
    /// Ends the thread, which lets go of the server: its socket's file can go.
    fn end(self) {
        self.handle.close();
        let _ = self.thread.join();
    }
}

fn watch_signals(server: &Arc<Server>) -> Result<Watch, String> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(|e| e.to_string())?;
    let handle = signals.handle();
    let server = Arc::clone(server);
    let watch = move || {
        for signal in signals.forever() {
            if signal == SIGHUP {
                server.keeper().reload_clients();
            } else {
                tracing::info!(signal, "stopping");
                server.shut_down();
            }
        }
    };
    let thread = std::thread::Builder::new()
        .name("signals".into())
        .spawn(watch)
        .map_err(|e| e.to_string())?;
    Ok(Watch { handle, thread })
}

fn write_pid(path: &Path) -> Result<(), String> {
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    std::fs::write(path, format!("{}\n", std::process::id()))
        .map_err(|e| format!("cannot write {}: {e}", path.display()))
}

/// Whoever started us waits for this line.
fn tell_ready(server: &Server) {
    let keeper = server.keeper();
    let socket = keeper.config.socket.display();
    tracing::info!(%socket, key = %keeper.keys.public, "ready");
    println!(
        "confide-keeper ready on {socket} key {}",
        keeper.keys.public
    );
    let _ = std::io::stdout().flush();
}
