//! A blocking connection to a PostgreSQL server: the protocol's extended queries,
//! COPY, SCRAM. Knows nothing about protection.
//!
//! It is a benchmark's client: it trusts the server and gives up at the first thing
//! that it does not expect.
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

use aws_lc_rs::{digest, hmac, pbkdf2};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// What went wrong: SQLSTATE (empty when the connection did not work) and message.
#[derive(Debug, Clone)]
pub struct Error {
    pub sqlstate: String,
    pub message: String,
}

impl Error {
    pub fn new(message: impl Into<String>) -> Error {
        Error {
            sqlstate: String::new(),
            message: message.into(),
        }
    }

    /// The transaction may be tried again.
    pub fn transient(&self) -> bool {
        matches!(self.sqlstate.as_str(), "40001" | "40P01")
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::new(format!("connection: {error}"))
    }
}

impl From<client::Failure> for Error {
    fn from(failure: client::Failure) -> Error {
        Error {
            sqlstate: failure.sqlstate,
            message: failure.message,
        }
    }
}

pub type Result<T> = std::result::Result<T, Error>;
/// Fields of a row, as they came.
pub type Fields = Vec<Option<Vec<u8>>>;

/// Where to connect, and as whom.
#[derive(Clone, Debug)]
pub struct Address {
    pub host: String,
    pub user: String,
    pub password: String,
    pub database: String,
    pub schema: String,
}

/// An open connection.
pub struct Connection {
    stream: BufReader<TcpStream>,
    out: Vec<u8>,
    /// What ParameterStatus said.
    pub settings: Vec<(String, String)>,
}

impl Connection {
    pub fn open(address: &Address) -> Result<Connection> {
        let stream = TcpStream::connect(&address.host)?;
        stream.set_nodelay(true)?;
        let mut connection = Connection {
            stream: BufReader::with_capacity(1 << 16, stream),
            out: Vec::new(),
            settings: Vec::new(),
        };
        let mut body = 196_608_u32.to_be_bytes().to_vec();
        let path = format!("-c search_path={}", address.schema);
        for text in [
            "user",
            &address.user,
            "database",
            &address.database,
            "client_encoding",
            "UTF8",
            "options",
            &path,
            "",
        ] {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        let mut packet = (body.len() as u32 + 4).to_be_bytes().to_vec();
        packet.extend_from_slice(&body);
        connection.stream.get_mut().write_all(&packet)?;
        connection.authenticate(&address.password)?;
        connection.until_ready(|_, _| Ok(()))?;
        Ok(connection)
    }

    fn authenticate(&mut self, password: &str) -> Result<()> {
        let nonce = STANDARD.encode(random_bytes()?);
        let bare = format!("n=,r={nonce}");
        loop {
            let (tag, body) = self.receive()?;
            if tag == b'E' {
                return Err(server_error(&body));
            }
            let kind = body.first_chunk().map(|b| u32::from_be_bytes(*b));
            match (tag, kind) {
                (b'R', Some(0)) => return Ok(()),
                (b'R', Some(10)) => {
                    let first = format!("n,,{bare}");
                    let mut answer = b"SCRAM-SHA-256\0".to_vec();
                    answer.extend_from_slice(&(first.len() as u32).to_be_bytes());
                    answer.extend_from_slice(first.as_bytes());
                    self.message(b'p', |out| out.extend_from_slice(&answer));
                    self.flush()?;
                }
                (b'R', Some(11)) => {
                    let told = String::from_utf8_lossy(&body[4..]).into_owned();
                    let answer = scram_answer(password, &bare, &told)?;
                    self.message(b'p', |out| out.extend_from_slice(answer.as_bytes()));
                    self.flush()?;
                }
                (b'R', Some(12)) => {}
                _ => return Err(Error::new("the server asks for another authentication")),
            }
        }
    }

    /// Appends a message to what will be sent.
    fn message(&mut self, tag: u8, fill: impl FnOnce(&mut Vec<u8>)) {
        self.out.push(tag);
        let at = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        fill(&mut self.out);
        let length = (self.out.len() - at) as u32;
        self.out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }

    fn flush(&mut self) -> Result<()> {
        self.stream.get_mut().write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    fn receive(&mut self) -> Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head)?;
        let [tag, a, b, c, d] = head;
        let length = u32::from_be_bytes([a, b, c, d]).saturating_sub(4);
        let mut body = vec![0; length as usize];
        self.stream.read_exact(&mut body)?;
        Ok((tag, body))
    }

    /// Reads up to ReadyForQuery; the first error of the server is the result.
    fn until_ready(&mut self, mut each: impl FnMut(u8, Vec<u8>) -> Result<()>) -> Result<()> {
        let mut outcome = Ok(());
        loop {
            let (tag, body) = self.receive()?;
            match tag {
                b'Z' => return outcome,
                b'E' if outcome.is_ok() => outcome = Err(server_error(&body)),
                b'S' => {
                    let mut words = body.split(|b| *b == 0).map(text);
                    let (name, value) = (words.next(), words.next());
                    self.settings
                        .push((name.unwrap_or_default(), value.unwrap_or_default()));
                }
                _ if outcome.is_ok() => outcome = each(tag, body),
                _ => {}
            }
        }
    }

    /// Runs a text by the simple protocol; rows of all its results.
    pub fn simple(&mut self, sql: &str) -> Result<Vec<Fields>> {
        self.message(b'Q', |out| cstr(out, sql));
        self.flush()?;
        let mut rows = Vec::new();
        self.until_ready(|tag, body| {
            if tag == b'D' {
                rows.push(fields(&body));
            }
            Ok(())
        })?;
        Ok(rows)
    }

    /// Parses a statement; gives the bodies of ParameterDescription and of
    /// RowDescription (empty when it returns no rows).
    pub fn prepare(&mut self, name: &str, sql: &str) -> Result<(Vec<u8>, Vec<u8>)> {
        self.message(b'P', |out| {
            cstr(out, name);
            cstr(out, sql);
            out.extend_from_slice(&[0, 0]);
        });
        self.message(b'D', |out| {
            out.push(b'S');
            cstr(out, name);
        });
        self.message(b'S', |_| {});
        self.flush()?;
        let (mut parameters, mut rows) = (Vec::new(), Vec::new());
        self.until_ready(|tag, body| {
            match tag {
                b't' => parameters = body,
                b'T' => rows = body,
                _ => {}
            }
            Ok(())
        })?;
        Ok((parameters, rows))
    }

    /// Runs a prepared statement with parameters and rows in these formats (none: all is
    /// text); rows, and how many rows it touched.
    pub fn execute(
        &mut self,
        name: &str,
        values: &[Option<Vec<u8>>],
        formats: &[i16],
        row_formats: &[i16],
    ) -> Result<(Vec<Fields>, u64)> {
        self.message(b'B', |out| {
            cstr(out, "");
            cstr(out, name);
            codes(out, formats);
            out.extend_from_slice(&(values.len() as u16).to_be_bytes());
            for value in values {
                match value {
                    None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
                    Some(value) => {
                        out.extend_from_slice(&(value.len() as u32).to_be_bytes());
                        out.extend_from_slice(value);
                    }
                }
            }
            codes(out, row_formats);
        });
        self.message(b'E', |out| out.extend_from_slice(&[0; 5]));
        self.message(b'S', |_| {});
        self.flush()?;
        let (mut rows, mut touched) = (Vec::new(), 0);
        self.until_ready(|tag, body| {
            match tag {
                b'D' => rows.push(fields(&body)),
                b'C' => {
                    let words = text(&body);
                    let last = words.trim_end_matches('\0').rsplit(' ').next();
                    touched = last.and_then(|word| word.parse().ok()).unwrap_or(0);
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok((rows, touched))
    }

    /// Begins a COPY FROM STDIN.
    pub fn begin_copy(&mut self, sql: &str) -> Result<()> {
        self.message(b'Q', |out| cstr(out, sql));
        self.flush()?;
        loop {
            match self.receive()? {
                (b'G', _) => return Ok(()),
                (b'E', body) => return Err(server_error(&body)),
                _ => {}
            }
        }
    }

    /// A piece of the data of a COPY.
    pub fn copy_data(&mut self, data: &[u8]) -> Result<()> {
        self.message(b'd', |out| out.extend_from_slice(data));
        self.flush()
    }

    /// Ends a COPY.
    pub fn end_copy(&mut self) -> Result<()> {
        self.message(b'c', |_| {});
        self.flush()?;
        self.until_ready(|_, _| Ok(()))
    }
}

fn codes(out: &mut Vec<u8>, formats: &[i16]) {
    out.extend_from_slice(&(formats.len() as u16).to_be_bytes());
    for format in formats {
        out.extend_from_slice(&format.to_be_bytes());
    }
}

fn cstr(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn fields(body: &[u8]) -> Fields {
    let count = usize::from(u16::from_be_bytes([body[0], body[1]]));
    let mut at = 2;
    let mut row = Vec::with_capacity(count);
    for _ in 0..count {
        let length = i32::from_be_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
        at += 4;
        row.push((length >= 0).then(|| {
            let field = body[at..at + length as usize].to_vec();
            at += length as usize;
            field
        }));
    }
    row
}

fn server_error(body: &[u8]) -> Error {
    let mut error = Error::new("error");
    for field in body.split(|b| *b == 0).filter(|field| !field.is_empty()) {
        match field[0] {
            b'C' => error.sqlstate = text(&field[1..]),
            b'M' => error.message = text(&field[1..]),
            _ => {}
        }
    }
    error
}

fn random_bytes() -> Result<[u8; 18]> {
    let mut bytes = [0; 18];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| Error::new("no random bytes"))?;
    Ok(bytes)
}

/// The client's last message of SCRAM-SHA-256 (RFC 5802).
fn scram_answer(password: &str, bare: &str, told: &str) -> Result<String> {
    let field = |name: &str| told.split(',').find_map(|part| part.strip_prefix(name));
    let (Some(nonce), Some(salt), Some(rounds)) = (field("r="), field("s="), field("i=")) else {
        return Err(Error::new("the server's SCRAM message is malformed"));
    };
    let salt = STANDARD.decode(salt).map_err(|_| Error::new("salt"))?;
    let rounds = rounds.parse().map_err(|_| Error::new("rounds"))?;
    let mut salted = [0; 32];
    let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
    pbkdf2::derive(algorithm, rounds, &salt, password.as_bytes(), &mut salted);
    let sign = |key: &[u8], data: &[u8]| {
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), data)
            .as_ref()
            .to_vec()
    };
    let key = sign(&salted, b"Client Key");
    let stored = digest::digest(&digest::SHA256, &key);
    let last = format!("c=biws,r={nonce}");
    let signature = sign(stored.as_ref(), format!("{bare},{told},{last}").as_bytes());
    let proof: Vec<u8> = key.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
    Ok(format!("{last},p={}", STANDARD.encode(proof)))
}
