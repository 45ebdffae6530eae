//! Drawing cells, exactly and without a side channel that would reveal the truth.
//!
//! A coin is a uniform 64-bit integer u, and the cell drawn is the number of cumulative thresholds that u reaches. The
//! thresholds are the channel's integers, so the law drawn is the law accounted for. Both laws are walked whatever the
//! truth, and the truth enters only as a mask at the end.
//!
//! For many owners the leading bits of 512 coins are compared at a time: a word holds one bit of 64 coins, and each
//! step compares 64 of them. About ten bits decide all but a few coins against every threshold of *both* laws; each of
//! those few then gets the rest of its 64 bits and is compared by itself. So the bits read depend on the coins alone.

mod sliced;

use crate::channel::Channel;
use crate::coins::{CoinWords, Coins, SeededCoins, Unpredictable};
use crate::error::Result;
use crate::law::{Law, Thresholds};
use crate::packed::{LANES, PackedCells, Truths};
use crate::truth::{PerTruth, Truth, spread};
use sliced::{MOST_LEADING_BITS, SlicedLaws, lanes, replace};

/// Draws cells of one channel.
///
/// ```
/// use uptack::{Mechanism, OsCoins, Sampler, Truth};
/// let channel = "normal-form(f=0.5, r=1e-4)".parse::<Mechanism>()?.channel();
/// let sampler = Sampler::new(&channel);
/// let cell = sampler.draw(Truth::Yes, &mut OsCoins)?;
/// assert!(cell < channel.cells().len());
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sampler {
    thresholds: PerTruth<Thresholds>,
    sliced: SlicedLaws,
}

impl Sampler {
    /// A sampler of exactly this channel's integers.
    pub fn new(channel: &Channel) -> Self {
        let thresholds = channel.laws().each_ref().map(Law::thresholds);
        Self { sliced: SlicedLaws::new(&thresholds), thresholds }
    }

    /// The cell of one owner, as an index into the channel's cells. It reads eight bytes.
    pub fn draw(&self, truth: Truth, coins: &mut impl Unpredictable) -> Result<usize> {
        self.draw_from(truth, coins)
    }

    /// As [`Sampler::draw`], reproducibly; for tests and simulation only.
    pub fn draw_seeded(&self, truth: Truth, coins: &mut SeededCoins) -> usize {
        self.draw_from(truth, coins).expect("seeded coins do not fail")
    }

    /// The cells of many owners; if the coins fail, of none.
    pub fn draw_many(&self, truths: &Truths, coins: &mut impl Unpredictable) -> Result<PackedCells> {
        self.draw_many_from(truths, coins)
    }

    /// As [`Sampler::draw_many`], reproducibly; for tests and simulation only.
    pub fn draw_many_seeded(&self, truths: &Truths, coins: &mut SeededCoins) -> PackedCells {
        self.draw_many_from(truths, coins).expect("seeded coins do not fail")
    }

    pub(crate) fn draw_from(&self, truth: Truth, coins: &mut impl Coins) -> Result<usize> {
        let mut bytes = [0; 8];
        coins.fill(&mut bytes)?;
        Ok(self.cell(u64::from_le_bytes(bytes), truth.mask()) as usize)
    }

    pub(crate) fn draw_many_from(&self, truths: &Truths, coins: &mut impl Coins) -> Result<PackedCells> {
        self.draw_words(truths, &mut CoinWords::new(coins))
    }

    fn draw_words<C: Coins>(&self, truths: &Truths, words: &mut CoinWords<'_, C>) -> Result<PackedCells> {
        let mut cells = PackedCells::with_capacity(self.thresholds.yes.outcomes(), truths.len());
        let (groups, rest) = truths.words().as_chunks::<TOGETHER>();
        self.draw_groups(groups, words, &mut cells)?;
        self.draw_groups(rest.as_chunks::<1>().0, words, &mut cells)?;
        cells.set_len(truths.len());
        Ok(cells)
    }

    /// The cells of many owners, `WORDS` times 64 at a time.
    fn draw_groups<const WORDS: usize, C: Coins>(
        &self,
        groups: &[[u64; WORDS]],
        words: &mut CoinWords<'_, C>,
        cells: &mut PackedCells,
    ) -> Result<()> {
        let mut reached = vec![[0; WORDS]; self.sliced.prefixes.len()];
        let mut rows = [[0; WORDS]; MOST_LEADING_BITS];
        let rows = &mut rows[..self.sliced.bits];
        for truths in groups {
            rows.iter_mut().try_for_each(|row| words.read(row))?;
            let undecided = self.sliced.compare(rows, &mut reached);
            let mut planes = self.sliced.select(&reached, truths);
            for word in 0..WORDS {
                for lane in lanes(undecided[word]) {
                    let coin = self.sliced.whole_coin(rows, word, lane, words)?;
                    let cell = self.cell(coin, spread((truths[word] >> lane) & 1));
                    replace(&mut planes, word, lane, cell);
                }
            }
            (0..WORDS).for_each(|word| cells.push(planes.iter().map(|plane| plane[word])));
        }
        Ok(())
    }

    /// The cell that a coin gives; `mask` is all ones for *yes*.
    #[inline]
    fn cell(&self, coin: u64, mask: u64) -> u64 {
        let PerTruth { yes, no } = self.thresholds.each_ref().map(|thresholds| thresholds.outcome(coin));
        (yes & mask) | (no & !mask)
    }
}

/// Words of 64 owners whose coins are compared together: as many as there are registers for.
const TOGETHER: usize = 8;

const _: () = assert!(LANES == 64, "a word holds one bit of 64 owners");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mechanism;
    use crate::error::Error;
    use crate::settings_of_tests::FAMILY;

    /// Plays back given words and counts what is read.
    struct Script {
        bytes: Vec<u8>,
        read: usize,
    }

    impl Script {
        fn new(words: impl IntoIterator<Item = u64>) -> Self {
            Self { bytes: words.into_iter().flat_map(u64::to_le_bytes).collect(), read: 0 }
        }
    }

    impl Coins for Script {
        fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
            for byte in bytes {
                *byte = self.bytes.get(self.read).copied().unwrap_or(0);
                self.read += 1;
            }
            Ok(())
        }
    }

    fn family() -> Vec<Channel> {
        let others = [
            "randomized-response(t=1)",
            "normal-form(f=1,r=1/3)",
            "spread(pairs=2,f=0.7,r=0.001)",
            "spread(pairs=3,f=1,r=0.001)",
            "custom(1=1:1)",
        ];
        FAMILY.iter().chain(&others).map(|text| text.parse::<Mechanism>().unwrap().channel()).collect()
    }

    /// The coins at and around every threshold: exactly where a law off by one would show.
    fn edges(channel: &Channel) -> Vec<u64> {
        let mut edges = vec![0, u64::MAX];
        for law in [|cell: &crate::Cell| cell.yes(), |cell: &crate::Cell| cell.no()] {
            let mut sum = 0u128;
            for cell in channel.cells() {
                sum += law(cell).numerator();
                edges.extend([sum.wrapping_sub(1), sum, sum + 1].iter().filter_map(|&e| u64::try_from(e).ok()));
            }
        }
        edges
    }

    /// The cell that a coin means, from the definition alone: the first whose running sum exceeds it.
    fn meant(channel: &Channel, coin: u64, yes: bool) -> usize {
        let mut sum = 0u128;
        let law = |cell: &crate::Cell| if yes { cell.yes() } else { cell.no() };
        channel
            .cells()
            .iter()
            .position(|cell| {
                sum += law(cell).numerator();
                u128::from(coin) < sum
            })
            .unwrap()
    }

    fn both() -> [(Truth, bool); 2] {
        [(Truth::Yes, true), (Truth::No, false)]
    }

    #[test]
    fn every_threshold_is_exact_one_owner_at_a_time() {
        for channel in family() {
            let sampler = Sampler::new(&channel);
            for coin in edges(&channel) {
                for (truth, yes) in both() {
                    let drawn = sampler.draw_from(truth, &mut Script::new([coin])).unwrap();
                    assert_eq!(drawn, meant(&channel, coin, yes), "coin {coin}");
                }
            }
        }
    }

    /// Since the cell is monotone in the coin, exact edges give exact counts of coins: the law itself.
    #[test]
    fn the_law_drawn_is_the_law_stated() {
        for channel in family() {
            let sampler = Sampler::new(&channel);
            for truth in [Truth::Yes, Truth::No] {
                let thresholds = sampler.thresholds[truth].coins();
                let ends = thresholds.iter().copied().chain([1 << 64]);
                let starts = [0].into_iter().chain(thresholds.iter().copied());
                let coins: Vec<u128> = ends.zip(starts).map(|(end, start)| end - start).collect();
                let stated = channel.cells().iter().map(|cell| cell.probability()[truth].numerator());
                assert!(stated.eq(coins));
            }
        }
    }

    /// What the batch form reads to draw these coins: the leading bits of all of them, the top one first, and then for
    /// each that is not decided by them the other bits.
    fn script(sampler: &Sampler, coins: &[u64]) -> Script {
        let bits = sampler.sliced.bits;
        let word = |j: usize, lanes: &[u64]| (0..64).map(|lane| ((lanes[lane] >> (63 - j)) & 1) << lane).sum();
        let rows = (0..bits).flat_map(|j| coins.chunks(64).map(move |lanes| word(j, lanes)));
        let prefix = |coin: u128| coin >> (64 - bits);
        let undecided = |coin: &&u64| {
            let PerTruth { yes, no } = sampler.thresholds.each_ref().map(Thresholds::coins);
            let mut thresholds = yes.iter().chain(no);
            thresholds.any(|&threshold| threshold != 0 && prefix(threshold) == prefix(u128::from(**coin)))
        };
        Script::new(rows.chain(coins.iter().filter(undecided).map(|coin| coin << bits)))
    }

    #[test]
    fn every_threshold_is_exact_in_a_batch() {
        for channel in family() {
            let sampler = Sampler::new(&channel);
            let edges = edges(&channel);
            for (owners, start) in (0..edges.len()).flat_map(|start| [(64, start), (64 * TOGETHER, start)]) {
                // The edges wander through all lanes.
                let coins: Vec<u64> = (0..owners).map(|lane| edges[(start + lane) % edges.len()]).collect();
                let truths: [fn(usize) -> bool; 3] = [|_| true, |_| false, |owner| owner % 3 == 0];
                for truth in truths {
                    let packed = (0..owners).map(|owner| Truth::from_bool(truth(owner))).collect();
                    let cells = sampler.draw_many_from(&packed, &mut script(&sampler, &coins)).unwrap();
                    let meant = |owner: usize| meant(&channel, coins[owner], truth(owner));
                    assert!(cells.iter().eq((0..owners).map(meant)), "{owners} owners from edge {start}");
                }
            }
        }
    }

    /// A law on the grid of 2⁻¹⁶ is drawn for all 65 536 coins, and each cell comes up as often as it says.
    #[test]
    fn a_coarse_law_is_enumerated_whole() {
        let text = "custom(1=12345/65536:1/65536, 0=40000/65536:65535/65536, ⊥=13191/65536:0)";
        let channel = text.parse::<Mechanism>().unwrap().channel();
        let sampler = Sampler::new(&channel);
        for (truth, expected) in [(Truth::Yes, [12345, 40000, 13191]), (Truth::No, [1, 65535, 0])] {
            let mut counts = [0; 3];
            let truths = Truths::from_iter([truth; 64]);
            for block in 0..1024u64 {
                let coins: Vec<u64> = (0..64).map(|lane| (block * 64 + lane) << 48).collect();
                let cells = sampler.draw_many_from(&truths, &mut script(&sampler, &coins)).unwrap();
                cells.iter().for_each(|cell| counts[cell] += 1);
            }
            assert_eq!(counts, expected);
        }
    }

    /// Counts bytes on their way from a seeded source.
    struct Counting(SeededCoins, usize);

    impl Coins for Counting {
        fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
            self.1 += bytes.len();
            self.0.fill(bytes)
        }
    }

    #[test]
    fn bytes_read_do_not_depend_on_the_truth() {
        for channel in family() {
            let sampler = Sampler::new(&channel);
            for seed in 0..20 {
                // To the word, and not only to the buffer that is filled at a time.
                let bytes_of = |truths: &Truths| {
                    let mut coins = Counting(SeededCoins::new(seed), 0);
                    let mut words = CoinWords::new(&mut coins);
                    sampler.draw_words(truths, &mut words).unwrap();
                    let unused = words.unused();
                    coins.1 - unused
                };
                let mixed = Truths::from_iter((0..640).map(|owner| Truth::from_bool(owner % 7 == 0)));
                let yes = Truths::from_iter([Truth::Yes; 640]);
                let no = Truths::from_iter([Truth::No; 640]);
                assert!(channel.cells().len() == 1 || bytes_of(&yes) >= 10 * 8);
                assert_eq!(bytes_of(&yes), bytes_of(&no));
                assert_eq!(bytes_of(&yes), bytes_of(&mixed));
                let single = |truth: Truth| {
                    let mut coins = Counting(SeededCoins::new(seed), 0);
                    sampler.draw_from(truth, &mut coins).unwrap();
                    coins.1
                };
                assert_eq!((single(Truth::Yes), single(Truth::No)), (8, 8));
            }
        }
    }

    #[test]
    fn seeded_draws_are_pinned() {
        let channel = "deniable-sampling(sy=0.5,sn=0.2,p1=0.5,p2=0.3)".parse::<Mechanism>().unwrap().channel();
        let sampler = Sampler::new(&channel);
        let mut coins = SeededCoins::new(7);
        let singles: Vec<usize> = (0..16).map(|_| sampler.draw_seeded(Truth::Yes, &mut coins)).collect();
        let truths = Truths::from_iter((0..16).map(|owner| Truth::from_bool(owner % 2 == 0)));
        let batch: Vec<usize> = sampler.draw_many_seeded(&truths, &mut SeededCoins::new(7)).iter().collect();
        assert_eq!(singles, PINNED_SINGLES);
        assert_eq!(batch, PINNED_BATCH);
    }

    const PINNED_SINGLES: [usize; 16] = [0, 0, 0, 2, 0, 2, 0, 0, 0, 2, 2, 0, 0, 1, 2, 2];
    const PINNED_BATCH: [usize; 16] = [0, 2, 2, 2, 2, 2, 0, 2, 2, 2, 1, 2, 2, 2, 2, 2];

    /// Failing coins fail the draw; nothing is made up.
    #[test]
    fn failing_coins_are_an_error() {
        struct Broken;
        impl Coins for Broken {
            fn fill(&mut self, _: &mut [u8]) -> Result<()> {
                Err(Error::coins("broken"))
            }
        }
        let sampler = Sampler::new(&family()[0]);
        assert!(sampler.draw_from(Truth::Yes, &mut Broken).unwrap_err().is_coins());
        assert!(sampler.draw_many_from(&Truths::from_iter([Truth::No]), &mut Broken).is_err());
        assert_eq!(format!("{:?}", Truth::Yes), format!("{:?}", Truth::No));
    }
}
