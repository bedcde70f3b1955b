//! The keys of a session, and the sealers and openers made from them.
use contract::envelope::Origin;

use crate::keys::{Key, StoringKey};
use crate::{Error, Opener, Sealer};

/// The two keys from a handshake, one per direction.
pub struct SessionKeys {
    client_to_keeper: Key,
    keeper_to_client: Key,
}

impl SessionKeys {
    pub(crate) fn new(client_to_keeper: [u8; 32], keeper_to_client: [u8; 32]) -> SessionKeys {
        SessionKeys {
            client_to_keeper: Key::new(client_to_keeper),
            keeper_to_client: Key::new(keeper_to_client),
        }
    }

    /// The key for values that fit a column.
    pub fn storing(&self) -> Result<StoringKey, Error> {
        StoringKey::derive(&self.client_to_keeper)
    }

    /// The two keys' bytes: what the client seals with, and what the keeper does.
    pub fn expose(&self) -> [&[u8; 32]; 2] {
        [self.client_to_keeper.bytes(), self.keeper_to_client.bytes()]
    }

    /// The client's sealer and opener.
    pub fn into_client(self) -> Result<(Sealer, Opener), Error> {
        Ok((
            Sealer::new(&self.client_to_keeper, Origin::Client)?,
            Opener::new(&self.keeper_to_client, Origin::Keeper)?,
        ))
    }

    /// Lets the keeper open what it sealed for this session itself.
    pub fn echo(&self) -> Result<Opener, Error> {
        Opener::new(&self.keeper_to_client, Origin::Keeper)
    }

    /// The keeper's sealer and opener.
    pub fn into_keeper(self) -> Result<(Sealer, Opener), Error> {
        Ok((
            Sealer::new(&self.keeper_to_client, Origin::Keeper)?,
            Opener::new(&self.client_to_keeper, Origin::Client)?,
        ))
    }
}

impl std::fmt::Debug for SessionKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionKeys(..)")
    }
}
