//! Making and opening signed cards.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use std::{fmt, path::Path};
use uptack::card::Card;

use super::{PublicKey, SignedCard};
use crate::{
    card_task,
    crypto::SecretKey,
    error::{Error, Result},
    private,
    protocol::TaskId,
};

/// A card whose name and signature were checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedCard {
    /// The query's and the task's name.
    pub id: TaskId,
    /// The card.
    pub card: Card,
    /// Its canonical text.
    pub canonical: String,
    /// Who signed it.
    pub signer: PublicKey,
}

impl SignedCard {
    /// Checks form, name and signature. Whether to trust the signer is for the caller to decide.
    pub fn open(&self) -> Result<OpenedCard> {
        let card = card_task::read(&self.card)?;
        let id = card_task::names(&card)?.query;
        if id.to_string() != self.query {
            return Err(Error::refused("the card is not the one that this query is named after"));
        }
        let Some(signer) = &card.signer else {
            return Err(Error::refused("the card names no signer"));
        };
        let signer: PublicKey = signer.parse()?;
        signer.verify(self.card.as_bytes(), &self.signature)?;
        Ok(OpenedCard { id, card, canonical: self.card.clone(), signer })
    }
}

/// A desk's key for signing cards. Its `Debug` form shows only the public half.
pub struct Signer(SecretKey);

impl Signer {
    /// A key from the operating system's randomness.
    pub fn generate() -> Self {
        Self(SecretKey::generate())
    }

    /// The key in a file, which is created if it does not exist.
    pub fn load_or_create(path: &Path) -> Result<Self> {
        match std::fs::read_to_string(path) {
            Ok(text) => {
                Self::from_text(&text).ok_or_else(|| Error::input(format!("{}: not a signing key", path.display())))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let signer = Self::generate();
                private::write_secret(path, &format!("{}\n", URL_SAFE_NO_PAD.encode(signer.0.seed())))?;
                Ok(signer)
            }
            Err(error) => Err(Error::file(path, error)),
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        let seed = URL_SAFE_NO_PAD.decode(text.trim()).ok()?.try_into().ok()?;
        Some(Self(SecretKey::from_seed(&seed)))
    }

    /// The half that owners pin.
    pub fn public(&self) -> PublicKey {
        PublicKey::from(&self.0)
    }

    /// Signs a card as it is; it must name this key as its signer.
    pub fn sign(&self, card: &Card) -> Result<SignedCard> {
        if card.signer.as_deref() != Some(self.public().to_string().as_str()) {
            return Err(Error::input("the card names another signer"));
        }
        let canonical = card.canonical();
        let signature = URL_SAFE_NO_PAD.encode(self.0.sign(canonical.as_bytes()));
        Ok(SignedCard { query: card_task::names(card)?.query.to_string(), card: canonical, signature })
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Signer({})", self.public())
    }
}

impl From<&SecretKey> for PublicKey {
    fn from(key: &SecretKey) -> Self {
        Self(key.public())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signed::query_name;
    use uptack::{
        plan::{Prior, Request, plan},
        privacy::{Delta, Epsilon},
    };

    fn card(signer: &Signer) -> Card {
        let mut request = Request::new(200, Prior::at(20));
        request.release = Some((Epsilon::new(2.0).unwrap(), Delta::new(1e-4).unwrap()));
        let mut card = Card::new(&request, &plan(&request).unwrap());
        card.signer = Some(signer.public().to_string());
        card
    }

    #[test]
    fn a_card_opens_under_its_signature_and_no_other() {
        let signer = Signer::generate();
        let signed = signer.sign(&card(&signer)).unwrap();
        let opened = signed.open().unwrap();
        assert_eq!((opened.signer, opened.id.to_string()), (signer.public(), signed.query.clone()));

        let mut changed = card(&signer);
        changed.owners = 201;
        let mut text = signed.clone();
        text.card = changed.canonical();
        assert!(text.open().unwrap_err().to_string().contains("named after"));
        text.query = card_task::task_id(&text.card).to_string();
        assert_eq!(text.query, query_name(&text.card));
        assert!(text.open().unwrap_err().to_string().contains("signature"));

        let other = Signer::generate();
        assert!(other.sign(&card(&signer)).is_err());
        let mut forged = other.sign(&card(&other)).unwrap();
        forged.signature = signed.signature.clone();
        assert!(forged.open().is_err());
        let mut spaced = signed;
        spaced.card.push(' ');
        assert!(spaced.open().unwrap_err().to_string().contains("canonical"));
    }

    #[test]
    fn a_key_file_is_made_once_and_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("signing.key");
        let made = Signer::load_or_create(&path).unwrap();
        assert_eq!(Signer::load_or_create(&path).unwrap().public(), made.public());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let secret = URL_SAFE_NO_PAD.encode(made.0.seed());
        assert_eq!(std::fs::read_to_string(&path).unwrap().trim(), secret);
        std::fs::write(&path, "short").unwrap();
        assert!(Signer::load_or_create(&path).unwrap_err().is_input());
        assert!(!format!("{made:?}").contains(&secret));
    }
}
