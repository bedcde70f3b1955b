//! The program as its users meet it: exit codes, startup, cancel, shutdown. The
//! server is a socket of the test's.
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_confide-proxy");

struct Proxy {
    child: Child,
    address: String,
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
        let dir = tempfile::tempdir().unwrap();
        let key = dir.path().join("client.key");
        // Any 32 bytes are a key.
        let line = format!("confide-key-v1 client secret {}=\n", "A".repeat(43));
        std::fs::write(&key, line).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = port.local_addr().unwrap().to_string();
        drop(port);
        let child = Command::new(PROGRAM)
            .env("CONFIDE_PROXY_LISTEN", &address)
            .env(
                "CONFIDE_PROXY_UPSTREAM",
                server.local_addr().unwrap().to_string(),
            )
            .env("CONFIDE_PROXY_CLIENT_KEY", &key)
            .env("CONFIDE_PROXY_INSECURE", "true")
            .env("CONFIDE_PROXY_USERS", "*")
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let proxy = Proxy {
            child,
            address,
            _dir: dir,
        };
        for _ in 0..200 {
            if TcpStream::connect(&proxy.address).is_ok() {
                return proxy;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the proxy did not come up");
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream
    }
}

fn packet(code: u32, body: &[u8]) -> Vec<u8> {
    let mut out = (body.len() as u32 + 8).to_be_bytes().to_vec();
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(body);
    out
}

fn read(stream: &mut TcpStream, n: usize) -> Vec<u8> {
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
