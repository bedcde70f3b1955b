//! Signed checkpoints: what verifies, and what does not.

use ledger::checkpoint::Checkpoint;
use ledger::{Error, Hash, SigningKey, VerifyingKey};

type Done = Result<(), Box<dyn std::error::Error>>;

const ORIGIN: &str = "confide/3f2a/public.account";

fn key(seed: u8) -> Result<SigningKey, Error> {
    SigningKey::from_seed(&[seed; 32])
}

fn checkpoint() -> Checkpoint {
    Checkpoint {
        origin: ORIGIN.into(),
        size: 1204,
        root: Hash::leaf(b"root"),
    }
}

fn verify(note: &str, key: &VerifyingKey) -> Result<Checkpoint, Error> {
    Checkpoint::verify(note, ORIGIN, key)
}

/// A note verifies with its key, and beside signatures of others.
#[test]
fn notes_verify() -> Done {
    let (key, witness) = (key(1)?, key(2)?);
    let public = key.verifying_key()?;
    let note = checkpoint().sign(&key)?;
    assert_eq!(verify(&note, &public)?, checkpoint());
    let second = checkpoint().sign(&witness)?;
    let line = second.split("\n\n").nth(1).ok_or("no signature")?;
    assert_eq!(verify(&format!("{note}{line}"), &public)?, checkpoint());
    Ok(())
}

/// No character of a note can be another one; with the bug somebody's copy of a digest
/// could be edited without notice.
#[test]
fn every_changed_character_is_noticed() -> Done {
    let key = key(1)?;
    let public = key.verifying_key()?;
    let note = checkpoint().sign(&key)?;
    for (place, _) in note.char_indices() {
        let mut changed = note.clone().into_bytes();
        changed[place] ^= 1;
        if let Ok(changed) = String::from_utf8(changed) {
            assert!(verify(&changed, &public).is_err(), "character {place}");
        }
    }
    Ok(())
}

/// Another key, another log, and texts that are none.
#[test]
fn others_are_refused() -> Done {
    let (mine, theirs) = (key(1)?, key(2)?.verifying_key()?);
    let public = mine.verifying_key()?;
    let note = checkpoint().sign(&mine)?;
    assert_eq!(verify(&note, &theirs), Err(Error::OtherKey));
    let other = Checkpoint::verify(&note, "confide/3f2a/public.other", &public);
    assert_eq!(other, Err(Error::OtherLog));
    let zeros = note.replace("1204", "01204");
    assert!(matches!(verify(&zeros, &public), Err(Error::Malformed(_))));
    for text in ["", "\n\n", "a\n1\n", "a\n\n\u{2014} a b\n"] {
        assert!(matches!(verify(text, &public), Err(Error::Malformed(_))));
    }
    let spaced = Checkpoint {
        origin: "a b".into(),
        ..checkpoint()
    };
    assert!(matches!(spaced.sign(&mine), Err(Error::Malformed(_))));
    Ok(())
}
