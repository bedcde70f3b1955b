//! What a keeper's process can do in its sandbox, and what not. A process of its own, which
//! cannot leave the sandbox: one test, and none beside it.

use channel::secret::{Secret, Wish};
use keeper::Config;
use keeper::sandbox::{Standing, restrict_calls, restrict_files};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread;

/// Each of these works before, so that the test cannot pass for another reason.
fn attempts(other: &std::path::Path, port: u16) -> Vec<(&'static str, bool)> {
    vec![
        ("run a program", Command::new("/bin/true").status().is_ok()),
        ("read another file", fs::read("/etc/passwd").is_ok()),
        ("write another file", File::create(other.join("x")).is_ok()),
        ("list another directory", fs::read_dir(other).is_ok()),
        (
            "connect by TCP",
            TcpStream::connect(("127.0.0.1", port)).is_ok(),
        ),
        ("listen on TCP", TcpListener::bind("127.0.0.1:0").is_ok()),
        ("send by UDP", UdpSocket::bind("127.0.0.1:0").is_ok()),
        ("be traceable", nix::sys::prctl::set_dumpable(true).is_ok()),
        (
            "change its user",
            nix::unistd::setuid(nix::unistd::geteuid()).is_ok(),
        ),
    ]
}

#[test]
fn nothing_but_what_a_keeper_needs() {
    let own = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = Config {
        socket: own.path().join("s"),
        clients_file: own.path().join("clients"),
        data_dir: own.path().join("data"),
        ..Config::default()
    };
    fs::create_dir(&config.data_dir).unwrap();
    for (what, done) in attempts(other.path(), port) {
        assert!(done, "without a sandbox: {what}");
    }

    let hides = || Secret::new(&[1], Wish::Require).is_ok();
    if !hides() {
        println!("this kernel has no memfd_secret");
    }
    let standing = restrict_files(&config).unwrap();
    restrict_calls().unwrap();
    let files = standing != Standing::None;
    for (what, done) in attempts(other.path(), port) {
        let of_files = what.contains("file") || what.contains("directory");
        assert!(!done || of_files && !files, "in the sandbox: {what}");
    }

    assert!(!hides(), "in the sandbox: hide memory");

    // What a keeper does all the time.
    let file = config.data_dir.join("segment");
    fs::write(&file, "sealed").unwrap();
    File::open(&file).unwrap().sync_all().unwrap();
    fs::rename(&file, config.data_dir.join("other")).unwrap();
    fs::remove_file(config.data_dir.join("other")).unwrap();
    assert_eq!(thread::spawn(|| 7).join().unwrap(), 7);
    let missing = UnixStream::connect(own.path().join("s")).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}
