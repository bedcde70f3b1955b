//! A PKCS#11 token as key source: an AES-256 key in the token, which never leaves
//! it, wraps the root key with AES-GCM. Described by the URI of RFC 7512.

use crate::seal;
use crate::secret::Secret;
use crate::source::{KeySource, Wrapped};
use crate::{Error, RootKey, random};
use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error as TokenError, RvError};
use cryptoki::mechanism::Mechanism;
use cryptoki::mechanism::aead::GcmParams;
use cryptoki::object::{Attribute, KeyType, ObjectClass, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::types::AuthPin;
use std::path::PathBuf;
use zeroize::Zeroizing;

const NONCE_BYTES: usize = 12;
const TAG_BITS: u64 = 128;

/// A key in a token.
pub(crate) struct Token {
    module: PathBuf,
    token: String,
    object: String,
    pin: Secret,
}

/// Resolves `%41` and the like.
fn unescape(text: &str) -> Option<String> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            out.push(*first);
            continue;
        }
        let (digits, tail) = tail.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        out.push(u8::from_str_radix(digits, 16).ok()?);
        rest = tail;
    }
    String::from_utf8(out).ok()
}

impl Token {
    /// From what follows `pkcs11:`.
    pub(crate) fn parse(text: &str) -> Result<Token, String> {
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut token, mut object, mut module, mut pin) = (None, None, None, None);
        for part in path.split(';').chain(query.split('&')) {
            if part.is_empty() {
                continue;
            }
            let (name, value) = part.split_once('=').ok_or("expected NAME=VALUE")?;
            let value = unescape(value).ok_or("a % sequence is malformed")?;
            let place = match name {
                "token" => &mut token,
                "object" => &mut object,
                "module-path" => &mut module,
                "pin-source" => &mut pin,
                "pin-value" => return Err("a PIN comes from pin-source only".into()),
                name => return Err(format!("\"{name}\" is not known")),
            };
            if place.replace(value).is_some() {
                return Err(format!("\"{name}\" is given twice"));
            }
        }
        let pin = pin.ok_or("pin-source is missing")?;
        Ok(Token {
            module: module.ok_or("module-path is missing")?.into(),
            token: token.ok_or("token is missing")?,
            object: object.ok_or("object is missing")?,
            pin: Secret::parse(&pin).ok_or("pin-source is file:, fd: or credential:")?,
        })
    }

    fn failed(&self, what: impl std::fmt::Display) -> Error {
        Error::Unavailable {
            source_name: self.name(),
            what: what.to_string(),
        }
    }

    /// A session in which the key can be used. The module is loaded and let go each
    /// time: the root key is unwrapped once in a run.
    fn session(&self) -> Result<Session, Error> {
        let module = Pkcs11::new(&self.module)
            .map_err(|e| self.failed(format!("module {}: {e}", self.module.display())))?;
        match module.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)) {
            Ok(()) | Err(TokenError::Pkcs11(RvError::CryptokiAlreadyInitialized, _)) => {}
            Err(e) => return Err(self.failed(e)),
        }
        let slots = module.get_slots_with_token().map_err(|e| self.failed(e))?;
        let named = |slot: &cryptoki::slot::Slot| {
            let info = module.get_token_info(*slot);
            info.is_ok_and(|info| info.label().trim_end() == self.token)
        };
        let slot = slots.into_iter().find(named);
        let slot = slot.ok_or_else(|| self.failed("no token of this name is present"))?;
        let session = module.open_rw_session(slot).map_err(|e| self.failed(e))?;
        let pin = self.pin.read()?;
        let pin = String::from_utf8(pin.to_vec()).map_err(|_| self.failed("the PIN is no text"))?;
        match session.login(UserType::User, Some(&AuthPin::new(pin.into()))) {
            Ok(()) | Err(TokenError::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => Ok(session),
            Err(TokenError::Pkcs11(RvError::PinIncorrect, _)) => {
                Err(self.failed(format!("the PIN from {} is wrong", self.pin.name())))
            }
            Err(e) => Err(self.failed(e)),
        }
    }

    fn find(&self, session: &Session) -> Result<Option<ObjectHandle>, Error> {
        let template = [
            Attribute::Class(ObjectClass::SECRET_KEY),
            Attribute::KeyType(KeyType::AES),
            Attribute::Label(self.object.clone().into_bytes()),
        ];
        let found = session
            .find_objects(&template)
            .map_err(|e| self.failed(e))?;
        match found.as_slice() {
            [] => Ok(None),
            [key] => Ok(Some(*key)),
            _ => Err(self.failed("the token has several keys of this name")),
        }
    }

    fn key(&self, session: &Session) -> Result<ObjectHandle, Error> {
        let key = self.find(session)?;
        key.ok_or_else(|| self.failed("the token has no key of this name"))
    }
}

impl KeySource for Token {
    fn kind(&self) -> &'static str {
        "pkcs11"
    }

    fn name(&self) -> String {
        format!("PKCS#11 token {} key {}", self.token, self.object)
    }

    fn prepare(&self) -> Result<(), Error> {
        let session = self.session()?;
        if self.find(&session)?.is_some() {
            return Ok(());
        }
        let template = [
            Attribute::Token(true),
            Attribute::Private(true),
            Attribute::Sensitive(true),
            Attribute::Extractable(false),
            Attribute::Encrypt(true),
            Attribute::Decrypt(true),
            Attribute::ValueLen(32.into()),
            Attribute::Label(self.object.clone().into_bytes()),
        ];
        session
            .generate_key(&Mechanism::AesKeyGen, &template)
            .map(|_| ())
            .map_err(|e| self.failed(e))
    }

    fn wrap(&self, root: &RootKey, bound: &[u8]) -> Result<Wrapped, Error> {
        let session = self.session()?;
        let key = self.key(&session)?;
        let mut nonce = random::<NONCE_BYTES>()?;
        let before = nonce;
        let params = GcmParams::new(&mut nonce, bound, TAG_BITS.into());
        let params = params.map_err(|e| self.failed(e))?;
        let body = session
            .encrypt(&Mechanism::AesGcm(params), key, root.expose().as_slice())
            .map_err(|e| self.failed(e))?;
        Ok(Wrapped {
            parameters: "aes-256-gcm".into(),
            sealed: [before.as_slice(), &body].concat(),
        })
    }

    fn unwrap(&self, wrapped: &Wrapped, bound: &[u8]) -> Result<Option<RootKey>, Error> {
        let Some((nonce, body)) = wrapped.sealed.split_first_chunk::<NONCE_BYTES>() else {
            return Ok(None);
        };
        let session = self.session()?;
        let key = self.key(&session)?;
        let mut nonce = *nonce;
        let params = GcmParams::new(&mut nonce, bound, TAG_BITS.into());
        let params = params.map_err(|e| self.failed(e))?;
        match session.decrypt(&Mechanism::AesGcm(params), key, body) {
            Ok(plain) => Ok(seal::root_key(&Zeroizing::new(plain))),
            // What tokens say to a tag that does not match differs.
            Err(TokenError::Pkcs11(
                RvError::EncryptedDataInvalid
                | RvError::EncryptedDataLenRange
                | RvError::GeneralError
                | RvError::FunctionFailed,
                _,
            )) => Ok(None),
            Err(e) => Err(self.failed(e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris() {
        let good = "token=my%20token;object=root?module-path=/m.so&pin-source=file:/pin";
        let token = Token::parse(good).map_err(|e| e.to_string());
        assert!(token.is_ok_and(|t| t.token == "my token" && t.pin == Secret::File("/pin".into())));
        for bad in [
            "",
            "token=a",
            "token=a;object=b?module-path=/m",
            "token=a;token=a;object=b?module-path=/m&pin-source=fd:3",
            "token=a;object=b?module-path=/m&pin-value=1234",
            "token=%zz;object=b?module-path=/m&pin-source=fd:3",
            "token=a;object=b;colour=red?module-path=/m&pin-source=fd:3",
        ] {
            assert!(Token::parse(bad).is_err(), "{bad}");
        }
    }
}
