//! Random words, read from a source a few KiB at a time.

use crate::coins::Coins;
use crate::error::Result;

const BUFFER_BYTES: usize = 4096;

/// Random words, read from coins a few KiB at a time.
pub(super) struct CoinWords<'a, C> {
    coins: &'a mut C,
    buffer: [u8; BUFFER_BYTES],
    next: usize,
}

impl<'a, C: Coins> CoinWords<'a, C> {
    pub(super) fn new(coins: &'a mut C) -> Self {
        Self { coins, buffer: [0; BUFFER_BYTES], next: BUFFER_BYTES }
    }

    #[inline]
    pub(super) fn read<const COUNT: usize>(&mut self, words: &mut [u64; COUNT]) -> Result<()> {
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
    pub(super) fn unused(&self) -> usize {
        BUFFER_BYTES - self.next
    }
}
