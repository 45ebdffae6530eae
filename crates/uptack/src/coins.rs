//! Where coins come from.
//!
//! Answers that leave a device are drawn only from sources that nobody can predict, and the type says which those
//! are: [`Unpredictable`]. A [`SeededCoins`] is for tests and simulation and is not one of them. [`DerivedCoins`] repeat, but
//! only for whoever has their secret key: with them an aggregator adds the same noise to the same batch, however often it is asked.

use std::fmt;

use rand_core::{CryptoRng, Rng, SeedableRng};

use crate::error::{Error, Result};

/// A source of uniform bytes.
pub trait Coins {
    /// Fills `bytes`, or fails without having used any of them.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<()>;
}

/// A source whose bytes nobody can predict: what real answers need.
pub trait Unpredictable: Coins {}

/// The operating system's generator.
///
/// It keeps no buffer between calls, so that nothing is drawn twice after a process forks or a machine is restored
/// from a snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsCoins;

impl Coins for OsCoins {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        getrandom::fill(bytes).map_err(|error| {
            Error::coins(format!("the operating system gave no random bytes: {error}"))
                .with_hint("nothing was drawn; try again when its generator is ready")
                .with_source(error)
        })
    }
}

impl Unpredictable for OsCoins {}

/// A cryptographic generator of the embedder's own, for devices on which the operating system has none.
///
/// The caller vouches that it was seeded with entropy that nobody knows.
#[derive(Clone, Debug)]
pub struct DeviceCoins<R>(R);

impl<R: CryptoRng> DeviceCoins<R> {
    /// Takes the generator, which must be seeded from a source that nobody can predict.
    pub fn seeded_with_entropy(generator: R) -> Self {
        Self(generator)
    }
}

impl<R: CryptoRng> Coins for DeviceCoins<R> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.0.fill_bytes(bytes);
        Ok(())
    }
}

impl<R: CryptoRng> Unpredictable for DeviceCoins<R> {}

/// The key of [`DerivedCoins`]: 32 bytes that only their user knows. Its `Debug` shows nothing of them.
pub struct CoinKey([u8; 32]);

impl CoinKey {
    /// Takes bytes that are secret and used for nothing else: drawn by the operating system, or the output of a pseudorandom
    /// function under a key that was. Anything that others can guess is not a key.
    pub fn from_secret_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for CoinKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CoinKey(…)")
    }
}

/// Coins that follow from a secret key: ChaCha20's stream. Equal keys give equal coins; without the key nobody can tell them from
/// random ones.
///
/// They are for what must not be drawn twice, even by a process that has forgotten that it drew before. Whoever learns the
/// key later can repeat the draw, so a key has to be deleted when nothing more is drawn with it. Neither coins nor keys can be cloned: a
/// key is for one draw.
///
/// ```
/// use uptack::{CoinKey, DerivedCoins, NoiseLaw};
/// let noise: NoiseLaw = "laplace(scale=10)".parse()?;
/// let draw = |secret| noise.draw_many(3, &mut DerivedCoins::new(CoinKey::from_secret_bytes(secret)));
/// assert_eq!(draw([7; 32])?, draw([7; 32])?);
/// assert_ne!(draw([7; 32])?, draw([8; 32])?);
/// # Ok::<(), uptack::Error>(())
/// ```
pub struct DerivedCoins(chacha20::ChaCha20Rng);

impl DerivedCoins {
    /// The coins of this key.
    pub fn new(key: CoinKey) -> Self {
        Self(chacha20::ChaCha20Rng::from_seed(key.0))
    }
}

impl fmt::Debug for DerivedCoins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DerivedCoins(…)")
    }
}

impl Coins for DerivedCoins {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.0.fill_bytes(bytes);
        Ok(())
    }
}

impl Unpredictable for DerivedCoins {}

/// Reproducible coins for tests and simulation: ChaCha12 with a seed and a stream number.
#[derive(Debug)]
pub struct SeededCoins(chacha20::ChaCha12Rng);

impl SeededCoins {
    /// The first stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Self::stream(seed, 0)
    }

    /// Stream number `stream` of `seed`; different streams never overlap.
    pub fn stream(seed: u64, stream: u64) -> Self {
        let mut generator = chacha20::ChaCha12Rng::seed_from_u64(seed);
        generator.set_stream(stream);
        Self(generator)
    }

    /// A uniform double in \[0, 1), on the grid of 2⁻⁵³.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

impl Coins for SeededCoins {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.0.fill_bytes(bytes);
        Ok(())
    }
}

/// Bytes that [`CoinWords`] reads at a time.
const BUFFER_BYTES: usize = 4096;

/// Random words, read from coins a few KiB at a time.
pub(crate) struct CoinWords<'a, C> {
    coins: &'a mut C,
    buffer: [u8; BUFFER_BYTES],
    next: usize,
}

impl<'a, C: Coins> CoinWords<'a, C> {
    pub(crate) fn new(coins: &'a mut C) -> Self {
        Self { coins, buffer: [0; BUFFER_BYTES], next: BUFFER_BYTES }
    }

    #[inline]
    pub(crate) fn read<const COUNT: usize>(&mut self, words: &mut [u64; COUNT]) -> Result<()> {
        let Some(bytes) = self.buffer.get(self.next..self.next + 8 * COUNT) else { return self.read_across(words) };
        words.iter_mut().zip(bytes.as_chunks().0).for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
        self.next += 8 * COUNT;
        Ok(())
    }

    /// Reads words of which the buffer holds only the first few, or none.
    #[cold]
    fn read_across(&mut self, words: &mut [u64]) -> Result<()> {
        for word in words {
            if self.next == BUFFER_BYTES {
                self.coins.fill(&mut self.buffer)?;
                self.next = 0;
            }
            let bytes = self.buffer[self.next..].first_chunk().expect("the buffer holds whole words");
            *word = u64::from_le_bytes(*bytes);
            self.next += 8;
        }
        Ok(())
    }

    /// Bytes that were read from the coins and not used yet.
    #[cfg(test)]
    pub(crate) fn unused(&self) -> usize {
        BUFFER_BYTES - self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_gives_different_bytes() {
        let (mut first, mut second) = ([0u8; 32], [0u8; 32]);
        OsCoins.fill(&mut first).unwrap();
        OsCoins.fill(&mut second).unwrap();
        assert_ne!(first, second);
    }

    /// ChaCha20's first bytes under a key of zeros (RFC 8439, appendix A.1, vector 1).
    #[test]
    fn derived_coins_are_the_stream_of_their_key_and_show_nothing_of_it() {
        let mut coins = DerivedCoins::new(CoinKey::from_secret_bytes([0; 32]));
        let mut bytes = [0; 16];
        coins.fill(&mut bytes).unwrap();
        let published =
            [0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90, 0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86, 0xbd, 0x28];
        assert_eq!(bytes, published);
        let key = CoinKey::from_secret_bytes([7; 32]);
        assert_eq!(format!("{key:?} {coins:?}"), "CoinKey(…) DerivedCoins(…)");
    }

    #[test]
    fn seeds_and_streams_are_reproducible_and_apart() {
        let draw = |seed, stream| {
            let mut bytes = [0; 16];
            SeededCoins::stream(seed, stream).fill(&mut bytes).unwrap();
            bytes
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }
}
