//! `confide verify` on files as a keeper would sign them. Right answer: exit code 0 and what
//! is vouched for; 1 and the reason for anything else.

use ledger::result::{Column, Header, SignedResult};
use ledger::{SigningKey, checkpoint::Checkpoint};
use std::path::Path;
use std::process::{Command, Output};

type Done = Result<(), Box<dyn std::error::Error>>;

fn confide(directory: &Path, arguments: &[&str]) -> Result<Output, std::io::Error> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_confide"));
    command.current_dir(directory).args(arguments).output()
}

fn outcome(output: &Output) -> String {
    let said = [output.stdout.as_slice(), &output.stderr].concat();
    format!(
        "{:?} {}",
        output.status.code(),
        String::from_utf8_lossy(&said)
    )
}

/// A keeper's key file, and what it signs with.
fn keeper(directory: &Path) -> Result<(SigningKey, String), Box<dyn std::error::Error>> {
    confide(directory, &["keygen", "keeper", "--out", "keeper.key"])?;
    let secret = envelope::SecretKey::read_any(&directory.join("keeper.key"))?.1;
    let line = confide(directory, &["pubkey", "--signing", "keeper.key"])?;
    let line = String::from_utf8(line.stdout)?.trim().to_owned();
    assert!(line.starts_with("confide-key-v1 keeper signing "), "{line}");
    Ok((SigningKey::from_seed(&*secret.signing_seed()?)?, line))
}

fn result(key: &SigningKey) -> Result<SignedResult, ledger::Error> {
    let column = |name: &str, vouched| Column {
        name: name.into(),
        type_name: "integer".into(),
        origin: None,
        vouched,
        ledger: None,
    };
    let header = Header {
        statement: "SELECT id, pay FROM emp".into(),
        nonce: b"now".into(),
        time: 0,
        principal: "ann".into(),
        columns: vec![column("id", false), column("pay", true)],
        rows: 1,
        evidence: Vec::new(),
        ledgers: Vec::new(),
    };
    SignedResult::sign(
        header,
        [Some("1"), Some("5200")].into_iter().collect(),
        Vec::new(),
        [1; 32],
        key,
    )
}

/// A result in both forms, one of its cells, an edited one, another key, another nonce.
#[test]
fn results() -> Done {
    let directory = tempfile::tempdir()?;
    let path = directory.path();
    let (key, line) = keeper(path)?;
    let result = result(&key)?;
    std::fs::write(path.join("r.json"), result.to_json()?)?;
    std::fs::write(path.join("r.bin"), result.to_bytes())?;
    let edited = result.to_json()?.replace("5200", "5300");
    std::fs::write(path.join("edited.json"), edited)?;
    let verify = |file: &str, rest: &[&str]| {
        let first = ["verify", "result", file, "--key", &line];
        confide(path, &[&first[..], rest].concat()).map(|output| outcome(&output))
    };
    for file in ["r.json", "r.bin"] {
        let said = verify(file, &["--nonce", "bm93"])?;
        assert!(
            said.starts_with("Some(0) verified: the whole result"),
            "{said}"
        );
        assert!(said.contains("column pay integer: vouched for by the keeper"));
        assert!(said.contains("column id integer: asserted by the database"));
    }
    let cell = verify("r.json", &["--cell", "0,1"])?;
    let cell = cell.strip_prefix("Some(0) ").ok_or("no cell")?;
    std::fs::write(path.join("cell.json"), cell)?;
    let said = verify("cell.json", &[])?;
    assert!(
        said.starts_with("Some(0) verified: row 0, column 1: 5200"),
        "{said}"
    );
    for (file, rest, reason) in [
        (
            "edited.json",
            &[][..],
            "the cells are not those that were signed",
        ),
        (
            "r.json",
            &["--nonce", "b2xk"],
            "an answer to another request",
        ),
        ("r.json", &["--cell", "1,0"], "out of range"),
        ("keeper.key", &[], "malformed"),
        ("missing", &[], "No such file"),
    ] {
        let said = verify(file, rest)?;
        assert!(
            said.starts_with("Some(1)") && said.contains(reason),
            "{said}"
        );
    }
    confide(path, &["keygen", "keeper", "--out", "other.key"])?;
    let other = confide(path, &["pubkey", "--signing", "other.key"])?;
    let other = String::from_utf8(other.stdout)?;
    let said = outcome(&confide(
        path,
        &["verify", "result", "r.json", "--key", &other],
    )?);
    assert!(said.contains("the signature does not match"), "{said}");
    Ok(())
}

/// A checkpoint, and one of another table.
#[test]
fn checkpoints() -> Done {
    let directory = tempfile::tempdir()?;
    let path = directory.path();
    let (key, line) = keeper(path)?;
    let point = Checkpoint {
        origin: "confide/1/public.account".into(),
        size: 12,
        root: ledger::Hash::leaf(b"x"),
    };
    std::fs::write(path.join("note"), point.sign(&key)?)?;
    let verify = |origin: &str| {
        let arguments = [
            "verify",
            "checkpoint",
            "note",
            "--key",
            &line,
            "--origin",
            origin,
        ];
        confide(path, &arguments).map(|output| outcome(&output))
    };
    let good = verify("confide/1/public.account")?;
    assert!(
        good.starts_with("Some(0) verified: 12 leaves, root "),
        "{good}"
    );
    let other = verify("confide/1/public.other")?;
    assert!(other.contains("a checkpoint of another log"), "{other}");
    Ok(())
}
