//! `confide broker`: listens for keepers, verifies their evidence against a policy, releases
//! wrapping keys, and logs each request (crate `broker`).
//!
//! No secret is an argument: keys are in files. The policy is read at the start.
//!
//! Invariant: a key is released only if its name was given as `--name`.

use crate::Failure;
use crate::attest::{Rules, WRONG, now};
use attest::{Expected, Policy};
use broker::{Audit, Broker, Judge, Secret};
use clap::Args;
use envelope::handshake::Keeper;
use envelope::{Role, SecretKey};
use evidence::Purpose;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Maximum number of keepers served at a time.
const KEEPERS_MAX: usize = 32;
/// Time limit for a keeper's message.
const PATIENCE: Duration = Duration::from_secs(20);

/// Arguments of the command.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    rules: Rules,
    /// HOST:PORT to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7432")]
    listen: String,
    /// The broker's static key (`confide keygen broker`); keepers are configured with its public
    /// key.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The secret from which wrapping keys are derived: another key of this kind. If it is lost, so
    /// are the root keys.
    #[arg(long, value_name = "FILE")]
    secret: PathBuf,
    /// The log of requests; each line has the hash of the one before.
    #[arg(long, value_name = "FILE")]
    audit: PathBuf,
    /// Name of a key that keepers satisfying this policy may have; can be repeated.
    #[arg(long, value_name = "NAME", required = true)]
    name: Vec<String>,
}

pub fn run(arguments: &Arguments) -> Result<String, Failure> {
    let wrong = |what: String| Failure(WRONG, what);
    let policy = arguments.rules.policy().map_err(wrong)?;
    if let Some(name) = arguments.name.iter().find(|name| !broker::is_name(name)) {
        return Err(wrong(format!("--name {name}: not a name of a key")));
    }
    let file = &arguments.key;
    let key = SecretKey::read_file(Role::Broker, file);
    let key = key.map_err(|e| format!("{}: {e}", file.display()))?;
    let public = key.public().map_err(|e| e.to_string())?;
    let broker = Broker {
        key,
        secret: Secret::read(&arguments.secret)?,
        audit: Mutex::new(Audit::open(&arguments.audit)?),
        judge: judge(policy, arguments.rules.takes_simulated(), &arguments.name),
    };
    let listener = TcpListener::bind(&arguments.listen);
    let listener = listener.map_err(|e| format!("cannot listen on {}: {e}", arguments.listen))?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    println!("confide-broker ready on {address} key {public}");
    let _ = std::io::stdout().flush();
    listen(&listener, &Arc::new(broker));
    Ok("stopped".into())
}

/// Returns which evidence is accepted, for which keys.
fn judge(policy: Policy, simulated: bool, names: &[String]) -> Box<Judge> {
    let names = names.to_vec();
    Box::new(move |keeper: &Keeper, name: Option<&str>| {
        if let Some(name) = name.filter(|name| !names.iter().any(|n| n == name)) {
            return Err(format!("key \"{name}\" is not for keepers of this policy"));
        }
        let expected = Expected {
            purpose: Purpose::Broker,
            channel: Some(keeper.key.as_bytes()),
            signing: None,
            nonce: &keeper.nonce,
        };
        let document = &keeper.evidence.document;
        let accepted = attest::verify(document, &expected, &policy, simulated, now());
        let accepted = accepted.map_err(|refused| refused.to_string())?;
        let (kind, measurement) = (accepted.kind.name(), accepted.measurement);
        Ok(format!("{kind} {measurement} {}", accepted.versions))
    })
}

fn listen(listener: &TcpListener, broker: &Arc<Broker>) {
    let served = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming().flatten() {
        // If there are too many, the connection is closed, and the keeper tries again.
        if served.load(Ordering::Relaxed) >= KEEPERS_MAX {
            continue;
        }
        served.fetch_add(1, Ordering::Relaxed);
        let (broker, count) = (Arc::clone(broker), Arc::clone(&served));
        std::thread::spawn(move || {
            serve(&broker, stream);
            count.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

fn serve(broker: &Broker, mut stream: TcpStream) {
    let limit = Some(PATIENCE);
    let set = stream.set_read_timeout(limit);
    if set.and_then(|()| stream.set_write_timeout(limit)).is_err() {
        return;
    }
    match broker.serve(&mut stream) {
        Ok(()) => eprintln!("confide broker: released a key"),
        Err(why) => eprintln!("confide broker: refused: {why}"),
    }
}
