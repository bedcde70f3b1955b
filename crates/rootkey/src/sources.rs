//! The key sources, by their description in a setting or an argument.

use crate::Error;
use crate::passphrase::Passphrase;
use crate::pkcs11::Token;
use crate::source::Source;
use crate::wrapfile::WrapFile;
use std::path::Path;

/// The source that a text describes; `root_file` is where the root key is.
///
/// # Errors
/// Says what is wrong with the text.
pub(crate) fn parse(text: &str, root_file: &Path) -> Result<Source, Error> {
    let wrong = |what: String| Error::Source {
        text: text.to_owned(),
        what,
    };
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    Ok(match kind {
        "file" => Box::new(WrapFile::new(rest, root_file)),
        "passphrase" => Box::new(Passphrase::parse(rest).map_err(wrong)?),
        "pkcs11" => Box::new(Token::parse(rest).map_err(wrong)?),
        "broker" => {
            return Err(wrong(
                "a broker answers keepers only; see broker-secret".into(),
            ));
        }
        _ => return Err(wrong("neither file, passphrase nor pkcs11".into())),
    })
}
