//! The program as its users meet it: exit codes, startup, cancel, shutdown. The
//! server is a socket of the test's.
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_confide-proxy");

struct Proxy {
    child: Child,
    address: String,
    /// The Unix socket. It is made last, so a proxy that has it serves the address, too.
    socket: PathBuf,
    _dir: tempfile::TempDir,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

impl Proxy {
    /// Starts the proxy before this server.
    fn start(server: &TcpListener) -> Proxy {
        Proxy::start_with(server, tempfile::tempdir().unwrap(), &[])
    }

    /// With more settings, and files in this directory.
    fn start_with(
        server: &TcpListener,
        dir: tempfile::TempDir,
        settings: &[(&str, &Path)],
    ) -> Proxy {
        let key = dir.path().join("client.key");
        // Any 32 bytes are a key.
        let line = format!("confide-key-v1 client secret {}=\n", "A".repeat(43));
        std::fs::write(&key, line).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        let mut command = Command::new(PROGRAM);
        command
            .env(
                "CONFIDE_PROXY_UPSTREAM",
                server.local_addr().unwrap().to_string(),
            )
            .env("CONFIDE_PROXY_CLIENT_KEY", &key)
            .env("CONFIDE_PROXY_INSECURE", "true")
            .env("CONFIDE_PROXY_USERS", "*")
            .env("CONFIDE_PROXY_UNIX_SOCKET_DIR", dir.path())
            .envs(settings.iter().copied())
            .stderr(Stdio::null());
        // Another test may take the port before the proxy does.
        for _ in 0..100 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = port.local_addr().unwrap();
            drop(port);
            let socket = dir.path().join(format!(".s.PGSQL.{}", address.port()));
            let address = address.to_string();
            let mut child = command
                .env("CONFIDE_PROXY_LISTEN", &address)
                .spawn()
                .unwrap();
            if serves(&mut child, &socket) {
                return Proxy {
                    child,
                    address,
                    socket,
                    _dir: dir,
                };
            }
        }
        panic!("the proxy did not come up");
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(600)))
            .unwrap();
        stream
    }
}

/// Waits until the proxy has made its Unix socket or has stopped.
fn serves(child: &mut Child, socket: &Path) -> bool {
    for _ in 0..60_000 {
        if UnixStream::connect(socket).is_ok() {
            return true;
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the proxy neither listens nor stops");
}

fn packet(code: u32, body: &[u8]) -> Vec<u8> {
    let mut out = (body.len() as u32 + 8).to_be_bytes().to_vec();
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(body);
    out
}

fn read(stream: &mut impl Read, n: usize) -> Vec<u8> {
    let mut out = vec![0; n];
    stream.read_exact(&mut out).unwrap();
    out
}

#[test]
fn wrong_configuration_is_exit_code_2() {
    for (name, value) in [
        ("CONFIDE_PROXY_NOPE", "1"),
        ("CONFIDE_PROXY_CLIENT_KEY", "/nonexistent"),
        ("CONFIDE_PROXY_LISTEN", "127.0.0.1:0"),
    ] {
        let output = Command::new(PROGRAM).env(name, value).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn print_config_is_a_configuration() {
    let output = Command::new(PROGRAM)
        .arg("--print-config")
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("upstream = ")
    );
}

/// Requests for encryption are declined; startup and authentication are relayed
/// byte by byte; cancel requests reach the server; SIGTERM ends with 0.
#[test]
fn startup_cancel_and_shutdown() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut proxy = Proxy::start(&server);
    let mut client = proxy.connect();
    for code in [80_877_103, 80_877_104] {
        client.write_all(&packet(code, b"")).unwrap();
        assert_eq!(read(&mut client, 1), b"N");
    }
    let startup = packet(196_608, b"user\0me\0database\0db\0\0");
    client.write_all(&startup).unwrap();
    let (mut upstream, _) = server.accept().unwrap();
    assert_eq!(read(&mut upstream, startup.len()), startup);
    let challenge = b"R\0\0\0\x08\0\0\0\x03";
    upstream.write_all(challenge).unwrap();
    assert_eq!(read(&mut client, challenge.len()), challenge);
    let password = b"p\0\0\0\x0bsecret\0";
    client.write_all(password).unwrap();
    assert_eq!(read(&mut upstream, password.len()), password);

    let request = packet(80_877_102, &[0, 0, 0, 1, 0, 0, 0, 2]);
    proxy.connect().write_all(&request).unwrap();
    let (mut upstream, _) = server.accept().unwrap();
    assert_eq!(read(&mut upstream, request.len()), request);
    drop(upstream);

    drop(client);
    let pid = proxy.child.id().to_string();
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    assert_eq!(proxy.child.wait().unwrap().code(), Some(0));
}

/// What is no startup packet is not believed.
#[test]
fn strange_packets() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::start(&server);
    for bytes in [
        &packet(131_072, b"\0")[..],
        &[0xff; 64],
        &packet(196_608, b"user")[..],
        &packet(196_608, b"user\0me\0replication\0true\0\0")[..],
    ] {
        let mut client = proxy.connect();
        client.write_all(bytes).unwrap();
        let mut out = Vec::new();
        let _ = client.read_to_end(&mut out);
        assert!(out.is_empty() || out.first() == Some(&b'E'));
    }
}

/// A proxy whose list has the user "me", who comes by the Unix socket as who runs this test.
fn with_user(server: &TcpListener) -> (Proxy, UnixStream) {
    let dir = tempfile::tempdir().unwrap();
    let users = dir.path().join("users.toml");
    let name = Command::new("id").arg("-un").output().unwrap().stdout;
    let name = String::from_utf8(name).unwrap();
    let line = format!("[me]\npeer = \"{}\"\n", name.trim());
    std::fs::write(&users, line).unwrap();
    std::fs::set_permissions(&users, std::fs::Permissions::from_mode(0o600)).unwrap();
    let settings = [("CONFIDE_PROXY_USERS_FILE", users.as_path())];
    let proxy = Proxy::start_with(server, dir, &settings);
    let client = UnixStream::connect(&proxy.socket).unwrap();
    let limit = Some(Duration::from_secs(600));
    client.set_read_timeout(limit).unwrap();
    (proxy, client)
}

/// A user of the proxy's own list has proved itself to the proxy. A server that wants to know its
/// password all the same, at first or later, does not get to ask.
#[test]
fn server_asks_for_a_password() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let authenticated = b"R\0\0\0\x08\0\0\0\0";
    let cleartext = b"R\0\0\0\x08\0\0\0\x03";
    let parameter = b"S\0\0\0\x08a\0b\0";
    for said in [
        &cleartext[..],
        b"R\0\0\0\x0c\0\0\0\x05abcd",
        &[&authenticated[..], parameter, cleartext].concat(),
        // SCRAM, and then the end of it without any proof.
        &[
            &b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0"[..],
            authenticated,
        ]
        .concat(),
    ] {
        let (_proxy, mut client) = with_user(&server);
        let startup = packet(196_608, b"user\0me\0database\0db\0\0");
        client.write_all(&startup).unwrap();
        let (mut upstream, _) = server.accept().unwrap();
        assert_eq!(read(&mut upstream, startup.len()), startup);
        upstream.write_all(said).unwrap();
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).unwrap();
        let heard = heard.strip_prefix(&authenticated[..]).unwrap_or(&heard);
        let heard = heard.strip_prefix(&parameter[..]).unwrap_or(heard);
        assert_eq!(heard.first(), Some(&b'E'), "{said:?}");
    }
}
