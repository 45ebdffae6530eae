use std::fmt;

use super::Mechanism;
use crate::channel::Channel;
use crate::error::{Error, Result};
use crate::noise::NoiseLaw;

/// A mechanism of one answer, and noise that each of the two aggregators adds to the number of answers `1`:
/// `randomized-response(t=0.999) + laplace(scale=1)`.
///
/// **Guarantee.** With one honest aggregator, [`one_aggregator`](crate::privacy::one_aggregator): pure, for every crowd. If
/// owners are honest, too, the certified guarantee of the release. If nobody is honest, the linked ε of the mechanism.
///
/// **Algorithm.** Owners draw as without noise and write one bit, whether they answer `1`. Each aggregator draws once for
/// each batch from the [`NoiseLaw`] law and adds that to its share of the sum; only the sum is published.
///
/// **Utility.** sd² = (yes·p(1−p) + no·q(1−q) + 2·2a/(1−a)²)/(p−q)², p and q being the probabilities of an answer `1`.
///
/// ```
/// use uptack::Mechanism;
/// let mechanism: Mechanism = "randomized-response(t=0.999) + laplace(scale=1.0)".parse()?;
/// assert_eq!(mechanism.to_string(), "randomized-response(t=0.999) + laplace(scale=1)");
/// assert_eq!(mechanism.name(), "randomized-response");
/// assert!(mechanism.channel().noise().is_some());
/// assert!("paired(b=0.5,sy=0.2,sn=0.05) + laplace(scale=1)".parse::<Mechanism>().is_err());
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noisy {
    mechanism: Box<Mechanism>,
    noise: NoiseLaw,
}

impl Noisy {
    /// Refused if the mechanism has several answers or no answer `1`, or has noise already.
    pub fn new(mechanism: Mechanism, noise: NoiseLaw) -> Result<Self> {
        if mechanism.noise().is_some() {
            return Err(Error::parameter("noise is added twice"));
        }
        mechanism.channel().with_noise(noise)?;
        Ok(Self { mechanism: Box::new(mechanism), noise })
    }

    /// Reads the texts on either side of the `+`.
    pub(super) fn parse(mechanism: &str, noise: &str) -> Result<Self> {
        Self::new(mechanism.parse()?, noise.parse()?)
    }

    /// How owners answer.
    pub fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    /// What each aggregator adds.
    pub fn noise(&self) -> &NoiseLaw {
        &self.noise
    }

    pub(super) fn channel(&self) -> Channel {
        self.mechanism.channel().with_noise(self.noise).expect("checked when it was made")
    }
}

impl fmt::Display for Noisy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} + {}", self.mechanism, self.noise)
    }
}
