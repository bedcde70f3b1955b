//! The root key's wrapping key from a broker, which gives it to keepers whose evidence is good
//! enough (crate `broker`, docs/attestation.md).
//!
//! Used only before the sandbox is set up, which forbids the network.
//!
//! Invariant: evidence for the broker is bound to the broker's own message; a key is accepted only
//! from the broker named in the setting.

use crate::zone::Zone;
use envelope::{PublicKey, SecretKey};
use evidence::Purpose;
use rootkey::{Error, Fetched};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Prefix of such settings.
pub(crate) const KIND: &str = "broker:";
/// Time limit for each message of the broker.
const PATIENCE: Duration = Duration::from_secs(20);

/// A parsed setting: `broker://HOST:PORT?key=KEY&name=NAME`.
struct Setting {
    address: String,
    key: PublicKey,
    name: String,
}

/// The key source of a setting.
///
/// # Errors
/// [`Error::Source`].
pub(crate) fn source(text: &str, secret: &SecretKey, zone: Zone) -> Result<Fetched, Error> {
    let wrong = |what: &str| Error::Source {
        text: text.to_owned(),
        what: what.to_owned(),
    };
    let setting = parse(text).map_err(wrong)?;
    let secret = SecretKey::from_bytes(*secret.expose());
    let name = format!("broker {}, key \"{}\"", setting.address, setting.name);
    let fetch = move || fetch(&setting, &secret, &zone);
    Ok(Fetched::broker(name, Box::new(fetch)))
}

/// A key for an encrypted disk, from the broker that a setting names.
///
/// # Errors
/// [`Error::Source`].
pub(crate) fn disk_key(
    text: &str,
    name: &str,
    secret: &SecretKey,
    zone: &Zone,
) -> Result<broker::WrappingKey, Error> {
    let wrong = |what: &str| Error::Source {
        text: text.to_owned(),
        what: what.to_owned(),
    };
    if !is_disk(name) || !broker::is_name(name) {
        return Err(wrong("names of disks' keys begin with \"disk-\""));
    }
    let setting = parse(text).map_err(wrong)?;
    let setting = Setting {
        name: name.to_owned(),
        ..setting
    };
    fetch(&setting, secret, zone).map_err(|what| wrong(&what))
}

/// Whether a key is for a disk: then it wraps no root key, and the other way round.
fn is_disk(name: &str) -> bool {
    name.starts_with("disk-")
}

fn parse(text: &str) -> Result<Setting, &'static str> {
    const FORM: &str = "expected broker://HOST:PORT?key=KEY&name=NAME";
    let rest = text.strip_prefix(KIND).ok_or(FORM)?;
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let (address, query) = rest.split_once('?').ok_or(FORM)?;
    let (mut key, mut name) = (None, None);
    for part in query.split('&') {
        match part.split_once('=').ok_or(FORM)? {
            ("key", text) if key.is_none() => key = text.parse().ok(),
            ("name", text) if name.is_none() => {
                name = Some(text).filter(|n| broker::is_name(n) && !is_disk(n));
            }
            _ => return Err(FORM),
        }
    }
    if !address.contains(':') {
        return Err(FORM);
    }
    Ok(Setting {
        address: address.to_owned(),
        key: key.ok_or("it has no public key of the broker")?,
        name: name.ok_or("it has no name of a key")?.to_owned(),
    })
}

fn fetch(
    setting: &Setting,
    secret: &SecretKey,
    zone: &Zone,
) -> Result<broker::WrappingKey, String> {
    let mut stream = connect(&setting.address)?;
    let document = |nonce: &[u8]| zone.document(Purpose::Broker, nonce);
    let asking = broker::Asking {
        secret,
        broker: &setting.key,
        name: &setting.name,
        document: &document,
    };
    let key = broker::ask(&mut stream, &asking)?;
    tracing::info!(
        broker = setting.address,
        name = setting.name,
        "got the wrapping key"
    );
    Ok(key)
}

fn connect(address: &str) -> Result<TcpStream, String> {
    let addresses = address.to_socket_addrs().map_err(|e| e.to_string())?;
    let mut failed = "its name has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                let limit = Some(PATIENCE);
                let set = stream.set_read_timeout(limit);
                set.and_then(|()| stream.set_write_timeout(limit))
                    .map_err(|e| e.to_string())?;
                return Ok(stream);
            }
            Err(e) => failed = e.to_string(),
        }
    }
    Err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings() -> Result<(), Box<dyn std::error::Error>> {
        let key = SecretKey::generate()?.public()?;
        for good in [
            format!("broker://[::1]:7432?key={key}&name=orders"),
            format!("broker:keys.example:7432?name=orders&key={key}"),
        ] {
            let setting = parse(&good)?;
            assert!(setting.key == key && setting.name == "orders", "{good}");
        }
        for bad in [
            "broker://host:1".into(),
            "broker://host:1?name=a".into(),
            format!("broker://host?key={key}&name=a"),
            format!("broker://host:1?key={key}&name=a/b"),
            format!("broker://host:1?key={key}&name=a&name=b"),
            format!("broker://host:1?key={key}&name=a&policy=none"),
            "broker://host:1?key=AAAA&name=a".into(),
        ] {
            assert!(parse(&bad).is_err(), "{bad}");
        }
        Ok(())
    }
}
