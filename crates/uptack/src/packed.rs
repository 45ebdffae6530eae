//! Truths and cells of many owners, 64 to a word.

use crate::channel::MOST_CELLS;
use crate::truth::Truth;

/// How many owners are in a block.
pub(crate) const LANES: usize = 64;

/// The truths of many owners, one bit each.
#[derive(Clone, Default)]
pub struct Truths {
    words: Vec<u64>,
    len: usize,
}

impl Truths {
    /// No owners yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an owner.
    #[inline]
    pub fn push(&mut self, truth: Truth) {
        if self.len.is_multiple_of(LANES) {
            self.words.push(0);
        }
        let last = self.words.len() - 1;
        self.words[last] |= (truth.mask() & 1) << (self.len % LANES);
        self.len += 1;
    }

    /// How many owners there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets all owners and keeps the memory allocated.
    pub fn clear(&mut self) {
        self.words.clear();
        self.len = 0;
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }
}

impl FromIterator<Truth> for Truths {
    fn from_iter<I: IntoIterator<Item = Truth>>(truths: I) -> Self {
        let mut packed = Self::new();
        truths.into_iter().for_each(|truth| packed.push(truth));
        packed
    }
}

/// The cells of many owners, as bit planes: for every 64 owners, one word with the lowest bit of their cells' numbers,
/// one with the next bit, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedCells {
    words: Vec<u64>,
    planes: usize,
    cells: usize,
    len: usize,
}

/// The most bits that the number of a cell takes.
pub(crate) const MOST_PLANES: usize = (MOST_CELLS - 1).ilog2() as usize + 1;

/// The bits that the numbers of `cells` cells take.
pub(crate) fn planes_for(cells: usize) -> usize {
    (usize::BITS - cells.saturating_sub(1).leading_zeros()) as usize
}

impl PackedCells {
    pub(crate) fn with_capacity(cells: usize, owners: usize) -> Self {
        let planes = planes_for(cells);
        Self { words: Vec::with_capacity(owners.div_ceil(LANES) * planes), planes, cells, len: 0 }
    }

    /// Adds 64 owners, given the bits of their cells' numbers from the lowest up.
    #[inline]
    pub(crate) fn push(&mut self, planes: impl Iterator<Item = u64>) {
        self.words.extend(planes.take(self.planes));
    }

    pub(crate) fn set_len(&mut self, owners: usize) {
        self.len = owners;
    }

    /// How many owners there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes that the cells take in memory.
    pub fn bytes(&self) -> usize {
        size_of_val(self.words.as_slice())
    }

    /// The cell of owner number `owner`.
    ///
    /// # Panics
    /// If there is no such owner.
    pub fn get(&self, owner: usize) -> usize {
        assert!(owner < self.len, "owner {owner} of {}", self.len);
        let (block, lane) = (owner / LANES * self.planes, owner % LANES);
        (0..self.planes).map(|plane| (((self.words[block + plane] >> lane) & 1) as usize) << plane).sum()
    }

    /// All owners' cells in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len).map(|owner| self.get(owner))
    }

    /// How many owners are in each cell.
    pub fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0u64; self.cells];
        if self.planes == 0 {
            counts[0] = self.len as u64;
            return counts;
        }
        for (block, words) in self.words.chunks_exact(self.planes).enumerate() {
            let owners = (self.len - block * LANES).min(LANES);
            let present = u64::MAX >> (LANES - owners);
            for (cell, count) in counts.iter_mut().enumerate() {
                *count += u64::from(lanes_in(cell, words, present).count_ones());
            }
        }
        counts
    }
}

/// The lanes of a block, among those `present`, whose owners are in the cell.
#[inline]
fn lanes_in(cell: usize, planes: &[u64], present: u64) -> u64 {
    let of_plane = |(plane, &word): (usize, &u64)| if (cell >> plane) & 1 == 1 { word } else { !word };
    planes.iter().enumerate().map(of_plane).fold(present, |lanes, matching| lanes & matching)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mechanism, Sampler, SeededCoins};

    #[test]
    fn counts_are_those_of_the_owners_one_by_one() {
        for (text, owners) in [("randomized-response(0.7)", 1), ("sampling(0.5,0.5)", 129), ("spread(2,0.5,0.1)", 1000)]
        {
            let channel = text.parse::<Mechanism>().unwrap().channel();
            let truths = Truths::from_iter((0..owners).map(|owner| Truth::from_bool(owner % 3 == 0)));
            let cells = Sampler::new(&channel).draw_many_seeded(&truths, &mut SeededCoins::new(3));
            let mut expected = vec![0; channel.cells().len()];
            cells.iter().for_each(|cell| expected[cell] += 1);
            assert_eq!(cells.counts(), expected);
            assert_eq!(cells.len(), owners);
        }
    }

    #[test]
    fn one_cell_takes_no_bits() {
        let channel = "custom(1=1:1)".parse::<Mechanism>().unwrap().channel();
        let truths = Truths::from_iter([Truth::Yes; 70]);
        let cells = Sampler::new(&channel).draw_many_seeded(&truths, &mut SeededCoins::new(3));
        assert_eq!((cells.counts(), cells.bytes()), (vec![70], 0));
    }

    #[test]
    fn planes_are_just_enough() {
        assert_eq!([1, 2, 3, 4, 5, 6, 12, 64].map(planes_for), [0, 1, 2, 2, 3, 3, 4, 6]);
    }
}
