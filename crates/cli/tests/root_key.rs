//! `confide root-key` with Debian's software token (package softhsm2): the root key
//! wrapped by a key that never leaves the token. Right answer: the same root key in and
//! out; another token, key or PIN is an error that names it, with exit code 3.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

const MODULE: &str = "/usr/lib/softhsm/libsofthsm2.so";

struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        std::fs::create_dir(place.path("tokens")).unwrap();
        let conf = format!("directories.tokendir = {}\n", place.path("tokens"));
        std::fs::write(place.path("softhsm2.conf"), conf).unwrap();
        place.private("pin", "246810\n");
        place.private("wrong-pin", "13579\n");
        place
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn private(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
        let mode = PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(self.path(name), mode).unwrap();
    }

    fn token(&self, label: &str) {
        let args = [
            "--init-token",
            "--free",
            "--so-pin",
            "1234567",
            "--pin",
            "246810",
            "--label",
            label,
        ];
        let mut command = Command::new("softhsm2-util");
        command.env("SOFTHSM2_CONF", self.path("softhsm2.conf"));
        let made = command.args(args).output();
        assert!(made.expect("package softhsm2 is needed").status.success());
    }

    fn source(&self, token: &str, object: &str, pin: &str) -> String {
        let pin = self.path(pin);
        format!("pkcs11:token={token};object={object}?module-path={MODULE}&pin-source=file:{pin}")
    }

    fn run(&self, file: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_confide"));
        command.env("SOFTHSM2_CONF", self.path("softhsm2.conf"));
        command.env("CREDENTIALS_DIRECTORY", self.0.path());
        command.arg("root-key").args(arguments);
        command.args(["--file", &self.path(file)]).output().unwrap()
    }

    /// The first word of what it says: the root key's name.
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.run("root.key", arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
        let line = String::from_utf8(output.stdout).unwrap();
        line.split_ascii_whitespace().next().unwrap().to_owned()
    }

    fn refused(&self, source: &str, reason: &str) {
        let output = self.run("root.key", &["check", "--source", source]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{source}: {said}");
        assert!(said.contains(reason) && said.contains("Hint: "), "{said}");
        assert!(
            !said.contains("13579") && !said.contains("246810"),
            "{said}"
        );
    }
}

#[test]
fn a_token() {
    assert!(Path::new(MODULE).exists(), "package softhsm2 is needed");
    let place = Place::new();
    place.token("one");
    let source = place.source("one", "root", "pin");
    let name = place.done(&["create", "--source", &source]);
    assert_eq!(place.done(&["check", "--source", &source]), name);
    assert_eq!(place.done(&["show"]), name);
    place.refused(&place.source("one", "root", "wrong-pin"), "is wrong");
    place.refused(&place.source("one", "other", "pin"), "no key of this name");
    place.refused(&place.source("two", "root", "pin"), "no token of this name");
    place.refused("pkcs11:token=one", "pin-source is missing");
    // Another token with a key of the same name.
    place.token("two");
    let second = place.source("two", "root", "pin");
    let made = place.run("other.key", &["create", "--source", &second]);
    assert!(made.status.success());
    place.refused(&second, "does not open");
    // From one token to the other, to a passphrase, and back.
    let rotate = |from: &str, to: &str| place.done(&["rotate", "--from", from, "--to", to]);
    assert_eq!(rotate(&source, &second), name);
    place.refused(&source, "does not open");
    place.private("passphrase", "correct horse\n");
    let passphrase = format!("passphrase:file={}", place.path("passphrase"));
    assert_eq!(rotate(&second, &passphrase), name);
    place.refused(&second, "wrapped by \"passphrase\"");
    assert_eq!(rotate(&passphrase, &source), name);
    // The token is lost.
    std::fs::remove_dir_all(place.path("tokens")).unwrap();
    std::fs::create_dir(place.path("tokens")).unwrap();
    place.refused(&source, "no token of this name");
}

/// A passphrase through a file descriptor or a credential: in no argument.
#[test]
fn a_descriptor() {
    let place = Place::new();
    place.private("passphrase", "correct horse\n");
    let source = format!("passphrase:file={}", place.path("passphrase"));
    let name = place.done(&["create", "--source", &source]);
    let credential = "passphrase:credential=passphrase";
    assert_eq!(place.done(&["check", "--source", credential]), name);
    for (script, source) in [
        (r#"printf 'correct horse' | "$0" "$@""#, "passphrase:fd=0"),
        (r#"exec 7<"$PASS"; exec "$0" "$@""#, "passphrase:fd=7"),
    ] {
        let output = Command::new("bash")
            .args(["-c", script, env!("CARGO_BIN_EXE_confide")])
            .args(["root-key", "check", "--source", source])
            .args(["--file", &place.path("root.key")])
            .env("PASS", place.path("passphrase"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(said, format!("{name} opens\n"), "{source}");
    }
}
