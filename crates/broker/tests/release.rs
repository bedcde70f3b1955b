//! Both sides of a broker over a socket, with a judge of the test's: who gets a key, and who does not.

use broker::{Asking, Audit, Broker, Secret, ask};
use envelope::handshake::Keeper;
use envelope::{PublicKey, SecretKey};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// Takes evidence that is the nonce, for the key "orders".
fn judge(keeper: &Keeper, name: Option<&str>) -> Result<String, String> {
    match name {
        Some(name) if name != "orders" => Err("not for you".into()),
        _ if keeper.evidence.document == keeper.nonce => Ok("good".into()),
        _ => Err("bad evidence".into()),
    }
}

fn broker(audit: &Path) -> Result<Broker, Box<dyn std::error::Error>> {
    Ok(Broker {
        key: SecretKey::from_bytes([1; 32]),
        secret: Secret::from_key(SecretKey::from_bytes([2; 32])),
        audit: Mutex::new(Audit::open(audit)?),
        judge: Box::new(judge),
    })
}

type Document = fn(&[u8]) -> Result<Vec<u8>, String>;

/// What a keeper gets, and what the broker says of it.
fn run(
    broker: &Broker,
    known: &PublicKey,
    name: &str,
    document: Document,
) -> (Result<[u8; 32], String>, Result<(), String>) {
    let (mut near, mut far) = UnixStream::pair().unwrap();
    let secret = SecretKey::from_bytes([3; 32]);
    std::thread::scope(|scope| {
        let serving = scope.spawn(move || broker.serve(&mut far));
        let asking = Asking {
            secret: &secret,
            broker: known,
            name,
            document: &document,
        };
        let got = ask(&mut near, &asking).map(|key| *key);
        drop(near);
        (got, serving.join().unwrap())
    })
}

#[test]
fn who_gets_a_key() -> Tested {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("audit");
    let broker = broker(&path)?;
    let known = SecretKey::from_bytes([1; 32]).public()?;
    let good: Document = |nonce| Ok(nonce.to_vec());
    let (first, done) = run(&broker, &known, "orders", good);
    assert_eq!((first.is_ok(), done), (true, Ok(())));
    let (again, _) = run(&broker, &known, "orders", good);
    assert_eq!(first, again);
    assert_eq!(first?, *broker.secret.wrapping_key("orders")?);

    // Evidence of another handshake, another name, no evidence, a name that is none.
    let (got, done) = run(&broker, &known, "orders", |_| Ok(b"old".to_vec()));
    assert!(got.is_err_and(|e| e.contains("bad evidence")) && done.is_err());
    let (got, _) = run(&broker, &known, "payroll", good);
    assert!(got.is_err_and(|e| e.contains("not for you")));
    let (got, done) = run(&broker, &known, "orders", |_| Err("none".into()));
    assert!(got.is_err() && done.is_err());
    let (got, _) = run(&broker, &known, "../orders", good);
    assert!(got.is_err_and(|e| e.contains("no name of a key")));

    // Every request is in the log, released or not, and the log is whole.
    let text = std::fs::read_to_string(&path)?;
    let count = |word: &str| text.matches(&format!("\"outcome\":\"{word}\"")).count();
    assert_eq!((count("released"), count("refused")), (2, 4));
    broker::Audit::open(&path)?;
    Ok(())
}

/// A keeper believes the broker that it was told of only: another one could give it a key of his own.
#[test]
fn another_broker() -> Tested {
    let dir = tempfile::tempdir()?;
    let broker = broker(&dir.path().join("audit"))?;
    let known = SecretKey::from_bytes([9; 32]).public()?;
    let (got, _) = run(&broker, &known, "orders", |nonce| Ok(nonce.to_vec()));
    assert!(got.is_err_and(|e| e.contains("another broker")));
    Ok(())
}

/// Names have keys of their own.
#[test]
fn keys_differ() -> Tested {
    let secret = Secret::from_key(SecretKey::from_bytes([2; 32]));
    let other = Secret::from_key(SecretKey::from_bytes([4; 32]));
    assert_ne!(secret.wrapping_key("a")?, secret.wrapping_key("b")?);
    assert_ne!(secret.wrapping_key("a")?, other.wrapping_key("a")?);
    assert!(secret.wrapping_key("").is_err());
    Ok(())
}
