//! SCRAM-SHA-256 (RFC 5802, 7677) as PostgreSQL speaks it: verifiers, the server's half with
//! channel binding to the server's certificate (RFC 5929, `tls-server-end-point`), the
//! client's half without. Messages in, messages out.
//!
//! Invariant: a message that is not exactly what the exchange wants ends it; proofs are
//! compared in constant time.
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use aws_lc_rs::{constant_time, digest, hmac, pbkdf2, rand};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The mechanism.
pub const PLAIN: &str = "SCRAM-SHA-256";
/// The same with channel binding.
pub const PLUS: &str = "SCRAM-SHA-256-PLUS";

const KEY: usize = 32;
/// Rounds of new verifiers, as PostgreSQL's.
const ROUNDS: u32 = 4096;
/// More rounds than this no server may ask of us.
const ROUNDS_MAX: u32 = 1_000_000;
const TYPE: &str = "tls-server-end-point";

/// Why an exchange has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The other side does not follow the protocol.
    Malformed,
    /// The password is wrong; or the server does not know it either.
    Wrong,
    /// The client's channel ends at another certificate, or somebody has hidden from it that
    /// channel binding is offered.
    Channel,
    /// No random numbers.
    Random,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Malformed => "malformed SCRAM message",
            Error::Wrong => "password authentication failed",
            Error::Channel => "SCRAM channel binding failed",
            Error::Random => "no random numbers available",
        })
    }
}

impl std::error::Error for Error {}

/// What a server keeps of a password. As text it is what PostgreSQL has in `pg_authid`.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    rounds: NonZeroU32,
    salt: Vec<u8>,
    stored: [u8; KEY],
    server: [u8; KEY],
}

impl Verifier {
    /// Of a password, with a new salt.
    pub fn new(password: &str) -> Result<Verifier, Error> {
        let mut salt = [0; 16];
        rand::fill(&mut salt).map_err(|_| Error::Random)?;
        let rounds = NonZeroU32::new(ROUNDS).ok_or(Error::Malformed)?;
        let salted = salted(password, &salt, rounds);
        Ok(Verifier {
            rounds,
            salt: salt.to_vec(),
            stored: hash(&mac(&salted, b"Client Key")),
            server: mac(&salted, b"Server Key"),
        })
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [salt, stored, server] =
            [&self.salt[..], &self.stored, &self.server].map(|b| STANDARD.encode(b));
        write!(f, "{PLAIN}${}:{salt}${stored}:{server}", self.rounds)
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier")
    }
}

impl FromStr for Verifier {
    type Err = Error;

    fn from_str(text: &str) -> Result<Verifier, Error> {
        let read = || {
            let rest = text.strip_prefix(PLAIN)?.strip_prefix('$')?;
            let (first, keys) = rest.split_once('$')?;
            let (rounds, salt) = first.split_once(':')?;
            let (stored, server) = keys.split_once(':')?;
            Some(Verifier {
                rounds: rounds.parse().ok()?,
                salt: STANDARD.decode(salt).ok()?,
                stored: key(stored)?,
                server: key(server)?,
            })
        };
        read().ok_or(Error::Malformed)
    }
}

/// What is known of the client's channel.
#[derive(Clone, Default)]
pub struct Channel {
    /// Hash of the certificate that the channel ends at, where binding to it is offered.
    pub end_point: Option<Vec<u8>>,
}

/// The server's half.
pub struct Server {
    verifier: Verifier,
    /// What the client's last message must begin with, after `c=`.
    binding: String,
    nonce: String,
    /// What proofs are about, as far as it has been said.
    said: String,
}

impl Server {
    /// Reads the client's first message under this mechanism; gives the answer.
    pub fn begin(
        verifier: Verifier,
        channel: &Channel,
        mechanism: &str,
        first: &[u8],
    ) -> Result<(Server, String), Error> {
        let random = nonce()?;
        Server::begin_with(verifier, channel, mechanism, first, &random)
    }

    fn begin_with(
        verifier: Verifier,
        channel: &Channel,
        mechanism: &str,
        first: &[u8],
        random: &str,
    ) -> Result<(Server, String), Error> {
        let first = std::str::from_utf8(first).map_err(|_| Error::Malformed)?;
        // The flag of channel binding, an identity (none), and the message proper.
        let mut parts = first.splitn(3, ',');
        let (flag, identity) = (parts.next(), parts.next());
        let (Some(flag), Some(""), Some(bare)) = (flag, identity, parts.next()) else {
            return Err(Error::Malformed);
        };
        let bound = match (flag, &channel.end_point) {
            ("n", _) if mechanism == PLAIN => &[][..],
            // The client could bind and believes that we cannot: who has told it so?
            ("y", None) if mechanism == PLAIN => &[][..],
            ("y", Some(_)) if mechanism == PLAIN => return Err(Error::Channel),
            (_, Some(hash)) if mechanism == PLUS && flag.strip_prefix("p=") == Some(TYPE) => hash,
            _ => return Err(Error::Malformed),
        };
        let mut fields = bare.split(',');
        let name = fields.next().and_then(|f| f.strip_prefix("n="));
        let client = fields.next().and_then(|f| f.strip_prefix("r="));
        // Extensions that we do not know begin with m=, and mean to be refused.
        let (Some(_), Some(client), None) = (name, client, fields.next()) else {
            return Err(Error::Malformed);
        };
        if client.is_empty() || !client.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(Error::Malformed);
        }
        let nonce = format!("{client}{random}");
        let salt = STANDARD.encode(&verifier.salt);
        let answer = format!("r={nonce},s={salt},i={}", verifier.rounds);
        let header = [format!("{flag},,").as_bytes(), bound].concat();
        let server = Server {
            verifier,
            binding: STANDARD.encode(header),
            nonce,
            said: format!("{bare},{answer}"),
        };
        Ok((server, answer))
    }

    /// Reads the client's proof; gives ours.
    pub fn finish(self, last: &[u8]) -> Result<String, Error> {
        let last = std::str::from_utf8(last).map_err(|_| Error::Malformed)?;
        let (unproved, proof) = last.rsplit_once(",p=").ok_or(Error::Malformed)?;
        let (binding, nonce) = unproved
            .strip_prefix("c=")
            .and_then(|rest| rest.split_once(",r="))
            .ok_or(Error::Malformed)?;
        if nonce != self.nonce {
            return Err(Error::Malformed);
        }
        if binding != self.binding {
            return Err(Error::Channel);
        }
        let proof = key(proof).ok_or(Error::Malformed)?;
        let said = format!("{},{unproved}", self.said);
        let signature = mac(&self.verifier.stored, said.as_bytes());
        let client = xor(&proof, &signature);
        constant_time::verify_slices_are_equal(&hash(&client), &self.verifier.stored)
            .map_err(|_| Error::Wrong)?;
        let ours = mac(&self.verifier.server, said.as_bytes());
        Ok(format!("v={}", STANDARD.encode(ours)))
    }
}

/// The client's half.
pub struct Client {
    bare: String,
    nonce: String,
}

/// The client's half, when it has said its proof.
pub struct Proved {
    /// What the server must prove.
    wanted: [u8; KEY],
}

impl Client {
    /// Begins; gives the first message.
    pub fn begin() -> Result<(Client, String), Error> {
        let nonce = nonce()?;
        // PostgreSQL knows the user from the startup packet.
        let bare = format!("n=,r={nonce}");
        let first = format!("n,,{bare}");
        Ok((Client { bare, nonce }, first))
    }

    /// Reads the server's first message; gives the proof.
    pub fn prove(self, password: &str, first: &[u8]) -> Result<(Proved, String), Error> {
        let first = std::str::from_utf8(first).map_err(|_| Error::Malformed)?;
        let mut fields = first.split(',');
        let mut field = |name: &str| fields.next().and_then(|f| f.strip_prefix(name));
        let (nonce, salt, rounds) = (field("r="), field("s="), field("i="));
        let (Some(nonce), Some(salt), Some(rounds)) = (nonce, salt, rounds) else {
            return Err(Error::Malformed);
        };
        let fresh = nonce.strip_prefix(&self.nonce);
        if fresh.is_none_or(str::is_empty) {
            return Err(Error::Malformed);
        }
        let salt = STANDARD.decode(salt).map_err(|_| Error::Malformed)?;
        let rounds: NonZeroU32 = rounds.parse().map_err(|_| Error::Malformed)?;
        if rounds.get() > ROUNDS_MAX {
            return Err(Error::Malformed);
        }
        let salted = salted(password, &salt, rounds);
        let unproved = format!("c=biws,r={nonce}"); // "n,,"
        let said = format!("{},{first},{unproved}", self.bare);
        let client = mac(&salted, b"Client Key");
        let proof = xor(&client, &mac(&hash(&client), said.as_bytes()));
        let wanted = mac(&mac(&salted, b"Server Key"), said.as_bytes());
        let last = format!("{unproved},p={}", STANDARD.encode(proof));
        Ok((Proved { wanted }, last))
    }
}

impl Proved {
    /// Whether the server knows the password, too.
    pub fn finish(self, last: &[u8]) -> Result<(), Error> {
        let text = std::str::from_utf8(last).map_err(|_| Error::Malformed)?;
        let theirs = text.strip_prefix("v=").and_then(key);
        let theirs = theirs.ok_or(Error::Malformed)?;
        constant_time::verify_slices_are_equal(&theirs, &self.wanted).map_err(|_| Error::Wrong)
    }
}

fn nonce() -> Result<String, Error> {
    let mut bytes = [0; 18];
    rand::fill(&mut bytes).map_err(|_| Error::Random)?;
    Ok(STANDARD.encode(bytes))
}

fn key(text: &str) -> Option<[u8; KEY]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

fn salted(password: &str, salt: &[u8], rounds: NonZeroU32) -> [u8; KEY] {
    // As PostgreSQL: what cannot be prepared is taken as it is.
    let prepared = stringprep::saslprep(password);
    let prepared = prepared.as_deref().unwrap_or(password);
    let mut out = [0; KEY];
    let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
    pbkdf2::derive(algorithm, rounds, salt, prepared.as_bytes(), &mut out);
    out
}

fn mac(key: &[u8], data: &[u8]) -> [u8; KEY] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), data);
    let mut out = [0; KEY];
    out.copy_from_slice(tag.as_ref());
    out
}

fn hash(data: &[u8]) -> [u8; KEY] {
    let mut out = [0; KEY];
    out.copy_from_slice(digest::digest(&digest::SHA256, data).as_ref());
    out
}

fn xor(a: &[u8; KEY], b: &[u8; KEY]) -> [u8; KEY] {
    let mut out = *a;
    out.iter_mut().zip(b).for_each(|(a, b)| *a ^= b);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(verifier: &Verifier, password: &str) -> Result<(), Error> {
        let (client, first) = Client::begin()?;
        let channel = Channel::default();
        let (server, answer) = Server::begin(verifier.clone(), &channel, PLAIN, first.as_bytes())?;
        let (proved, last) = client.prove(password, answer.as_bytes())?;
        proved.finish(server.finish(last.as_bytes())?.as_bytes())
    }

    #[test]
    fn password_right_and_wrong() {
        let verifier = Verifier::new("pencil").unwrap();
        let read: Verifier = verifier.to_string().parse().unwrap();
        assert!(read == verifier);
        assert_eq!(exchange(&read, "pencil"), Ok(()));
        assert_eq!(exchange(&read, "Pencil"), Err(Error::Wrong));
        // Prepared: a soft hyphen is nothing, a no-break space is a space.
        let verifier = Verifier::new("I\u{ad}X\u{a0}y").unwrap();
        assert_eq!(exchange(&verifier, "IX y"), Ok(()));
    }

    /// The example of RFC 7677, section 3.
    #[test]
    fn published_example() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let rounds = NonZeroU32::new(4096).unwrap();
        let salted = salted("pencil", &salt, rounds);
        let verifier = Verifier {
            rounds,
            salt,
            stored: hash(&mac(&salted, b"Client Key")),
            server: mac(&salted, b"Server Key"),
        };
        let first = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
        let random = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let none = Channel::default();
        let (server, answer) = Server::begin_with(verifier, &none, PLAIN, first, random).unwrap();
        assert_eq!(
            answer,
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        let last = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
            p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let ours = server.finish(last).unwrap();
        assert_eq!(ours, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    /// A channel that ends elsewhere, or of which somebody has said that it cannot be bound.
    #[test]
    fn channels() {
        let verifier = Verifier::new("x").unwrap();
        let bound = Channel {
            end_point: Some(vec![7; 32]),
        };
        let begin = |mechanism, first: &[u8], channel| {
            Server::begin(verifier.clone(), channel, mechanism, first).map(|(s, _)| s)
        };
        let plus = b"p=tls-server-end-point,,n=,r=abc";
        let server = begin(PLUS, plus, &bound).ok().unwrap();
        let header = [&b"p=tls-server-end-point,,"[..], &[7; 32]].concat();
        assert_eq!(server.binding, STANDARD.encode(header));
        let other = [&b"p=tls-server-end-point,,"[..], &[8; 32]].concat();
        let last = format!(
            "c={},r={},p={}",
            STANDARD.encode(other),
            server.nonce,
            STANDARD.encode([0; KEY])
        );
        assert_eq!(server.finish(last.as_bytes()), Err(Error::Channel));
        let none = Channel::default();
        let failed = |mechanism, first: &[u8], channel| begin(mechanism, first, channel).err();
        assert_eq!(failed(PLAIN, b"y,,n=,r=abc", &bound), Some(Error::Channel));
        assert_eq!(failed(PLAIN, b"y,,n=,r=abc", &none), None);
        assert_eq!(failed(PLAIN, b"n,,n=,r=abc", &bound), None);
        for (mechanism, first) in [
            (PLUS, &plus[..]),
            (PLAIN, plus),
            (PLUS, b"n,,n=,r=abc"),
            (PLAIN, b"n,a=x,n=,r=abc"),
            (PLAIN, b"n,,m=x,n=,r=abc"),
            (PLAIN, b"n,,n=,r="),
            (PLAIN, b"n,,n=,r=abc,e=f"),
            (PLAIN, b""),
            (PLAIN, b"\xff"),
        ] {
            assert_eq!(failed(mechanism, first, &none), Some(Error::Malformed));
        }
    }

    /// What a hostile server says.
    #[test]
    fn servers() {
        let begin = || Client::begin().unwrap();
        let (client, _) = begin();
        let same = format!("r={},s=AAAA,i=4096", client.nonce);
        let bad = client.prove("x", same.as_bytes()).err();
        assert_eq!(bad, Some(Error::Malformed), "nothing new in the nonce");
        for rest in ["s=AAAA,i=0", "s=AAAA,i=4000000000", "s=!,i=1", "i=1,s=AAAA"] {
            let (client, _) = begin();
            let first = format!("r={}new,{rest}", client.nonce);
            let failed = client.prove("x", first.as_bytes()).err();
            assert_eq!(failed, Some(Error::Malformed), "{rest}");
        }
        let (client, _) = begin();
        let first = format!("r={}new,s=AAAA,i=1", client.nonce);
        let (proved, _) = client.prove("x", first.as_bytes()).unwrap();
        let unknowing = format!("v={}", STANDARD.encode([0; KEY]));
        assert_eq!(proved.finish(unknowing.as_bytes()), Err(Error::Wrong));
    }

    #[test]
    fn verifiers_that_are_none() {
        let good = Verifier::new("x").unwrap().to_string();
        assert!(good.parse::<Verifier>().is_ok());
        for bad in [
            "",
            "md5abc",
            &good.replace("4096", "0"),
            &good.replace(':', ";"),
            good.get(..good.len() - 4).unwrap(),
        ] {
            assert_eq!(bad.parse::<Verifier>(), Err(Error::Malformed), "{bad}");
        }
    }
}
