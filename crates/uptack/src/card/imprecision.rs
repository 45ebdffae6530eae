//! Cards whose estimates would say next to nothing, and what would make them say something.

use std::fmt;

use super::Card;
use super::whole_plan::least_whole_sd;
use crate::display::{self, Rounding, grouped};
use crate::plan::{Asked, Prior, Request, Trust, smallest};
use crate::privacy::{Epsilon, MOST_OWNERS};

/// Why a card is not worth answering: its expected error is more than half of the range of counts that it has to tell apart.
///
/// Somebody who names any count of that range is hardly further off. The range is the one that was expected when the card
/// was planned, [`Predicted::yes_low`](super::Predicted::yes_low) to [`yes_high`](super::Predicted::yes_high). One number *Y*
/// instead of a range says how large counts are, so it stands for 0 to *Y*; and if only 0 is expected, any count up to all
/// owners would be news.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Imprecision {
    /// The expected standard deviation of each count, if all windows and options of the card are asked.
    pub sd: f64,
    /// The range of counts that the estimate has to tell apart.
    pub range: CountRange,
}

/// The range of counts that an estimate has to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountRange {
    /// From one expected number of yes to a larger one.
    Expected(u64, u64),
    /// From none to the one number of yes that is expected.
    UpTo(u64),
    /// From none to this many owners: no yes is expected.
    AllOwners(u64),
}

impl CountRange {
    /// The range that is meant by an expected number of yes, at least and at most, of this many owners.
    pub fn of((low, high): (u64, u64), owners: u64) -> Self {
        match (low, high) {
            (low, high) if low < high => Self::Expected(low, high),
            (_, 0) => Self::AllOwners(owners),
            (_, one) => Self::UpTo(one),
        }
    }

    /// The largest standard deviation with which an estimate still says something: half of the range.
    pub fn largest_useful_sd(self) -> f64 {
        let width = match self {
            Self::Expected(low, high) => high - low,
            Self::UpTo(most) | Self::AllOwners(most) => most,
        };
        width as f64 / 2.0
    }
}

impl fmt::Display for CountRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Expected(low, high) => {
                write!(f, "the expected range of yes, {} to {}", grouped(low), grouped(high))
            }
            Self::UpTo(most) => write!(f, "the {} expected yes", grouped(most)),
            Self::AllOwners(owners) => write!(f, "the {} owners", grouped(owners)),
        }
    }
}

impl fmt::Display for Imprecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the result would say next to nothing: its expected error (standard deviation) is {}, more than half of {}",
            display::nearest(self.sd),
            self.range
        )
    }
}

impl Card {
    /// Whether the card's estimates would say next to nothing, and how far off they would be; `None` if they are useful.
    ///
    /// ```
    /// use uptack::card::{Card, Remedy, plan_whole};
    /// use uptack::plan::{Over, Prior, Request};
    /// use uptack::privacy::Epsilon;
    /// use uptack::Progress;
    ///
    /// // Once, with an error of a few owners, or every five minutes of a day.
    /// let request = Request::one_aggregator(5000, Prior { low: 0, high: 400, over: Over::Worst }, Epsilon::new(1.0)?)?;
    /// let planned = |windows| plan_whole(&request, windows, |card: Card| card, &Progress::default());
    /// assert!(planned(1)?.imprecision().is_none());
    /// let imprecision = planned(288)?.imprecision().expect("a day of windows is too much");
    /// assert!(imprecision.sd > 2000.0, "{imprecision}");
    /// let remedies = imprecision.remedies(&request, 288, 288);
    /// assert!(matches!(remedies[0], Remedy::Windows { windows, .. } if windows < 50), "{remedies:?}");
    /// # Ok::<(), uptack::Error>(())
    /// ```
    pub fn imprecision(&self) -> Option<Imprecision> {
        let range = CountRange::of((self.predicted.yes_low, self.predicted.yes_high), self.owners);
        let sd = self.predicted.sd.value();
        (sd > range.largest_useful_sd()).then_some(Imprecision { sd, range })
    }
}

/// One change to a request with which its estimates would say something, and the error that would then be expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Remedy {
    /// Ask in fewer windows.
    Windows {
        /// The most of them.
        windows: u64,
        /// The error is at most this.
        sd: f64,
    },
    /// Ask more owners, of whom the same share says yes.
    Owners {
        /// About the fewest of them.
        owners: u64,
        /// The error is at most this.
        sd: f64,
    },
    /// Allow a larger ε of everything that is published.
    Epsilon {
        /// About the least.
        epsilon: f64,
        /// The error is at most this.
        sd: f64,
    },
    /// Allow a larger ε of all answers of an owner.
    LinkedEpsilon {
        /// About the least.
        epsilon: f64,
        /// The error is at most this.
        sd: f64,
    },
}

/// Larger epsilons are not proposed: they would protect hardly anybody.
const LARGEST_EPSILON: f64 = 10.0;
const LARGEST_LINKED_EPSILON: f64 = 16.0;
/// Nor are crowds that are larger by more than this factor: nobody has so many more owners.
const LARGEST_GROWTH: f64 = 100.0;
/// How close to the smallest sufficient value a proposal is; less close if each attempt is a search with certificates.
const ACCURACY: f64 = 0.02;
const SLOW_ACCURACY: f64 = 0.35;
/// Proposals are rounded up to this many digits.
const DIGITS: u32 = 2;

impl Imprecision {
    /// The single changes that would be enough, cheapest for owners first: none if only several together are.
    ///
    /// `request` is what the card was planned for, as a whole; `queries` of it can differ for one owner, in `windows` windows.
    /// Every proposal was planned. If owners' coins are counted on and there are several queries, the error of a
    /// proposal is a bound that its card may stay below, because the composition of the queries is not searched here.
    pub fn remedies(&self, request: &Request, queries: u64, windows: u64) -> Vec<Remedy> {
        let search = RemedySearch { request, queries, windows, limit: self.range.largest_useful_sd() };
        [search.windows(), search.owners(), search.epsilon(), search.linked_epsilon()].into_iter().flatten().collect()
    }
}

struct RemedySearch<'a> {
    request: &'a Request,
    queries: u64,
    windows: u64,
    limit: f64,
}

impl RemedySearch<'_> {
    fn windows(&self) -> Option<Remedy> {
        let in_one = self.queries / self.windows.max(1);
        let sd = |windows: u64| sd(&self.in_windows(windows), in_one * windows);
        // More windows never have a smaller error: bisect between enough and too many.
        let (mut windows, mut too_many) = (1, self.windows);
        if too_many < 2 || sd(windows) > self.limit {
            return None;
        }
        while too_many - windows > 1 {
            let middle = windows + (too_many - windows) / 2;
            *(if sd(middle) <= self.limit { &mut windows } else { &mut too_many }) = middle;
        }
        Some(Remedy::Windows { windows, sd: sd(windows) })
    }

    /// The request for fewer windows.
    fn in_windows(&self, windows: u64) -> Request {
        let asked = match self.request.asked {
            Asked::Counts { counts, most } => {
                let counts = (u64::from(counts) / self.windows.max(1) * windows) as u32;
                Asked::Counts { counts, most: most.min(counts) }
            }
            other => other,
        };
        Request { asked, ..self.request.clone() }
    }

    /// The counts to tell apart grow with the owners, their error more slowly.
    fn owners(&self) -> Option<Remedy> {
        let least = self.request.owners as f64;
        // The limit grows with the owners, so the error is compared as a share of them.
        let share = |owners: f64| sd(&self.larger_crowd(owners), self.queries) * least / owners;
        let most = (LARGEST_GROWTH * least).min(MOST_OWNERS as f64);
        if share(most) > self.limit {
            return None;
        }
        let owners = rounded_up(smallest((least, most), 2.0 * least, self.accuracy(), self.limit, share)?);
        let sd = sd(&self.larger_crowd(owners), self.queries);
        (sd <= self.limit * owners / least).then_some(Remedy::Owners { owners: owners as u64, sd })
    }

    fn accuracy(&self) -> f64 {
        if self.request.trust == Trust::OneAggregator { ACCURACY } else { SLOW_ACCURACY }
    }

    /// The request for another number of owners, of whom the same share says yes.
    fn larger_crowd(&self, owners: f64) -> Request {
        let scaled = |yes: u64| (yes as f64 * owners / self.request.owners as f64).floor() as u64;
        let Prior { low, high, over } = self.request.yes;
        Request { yes: Prior { low: scaled(low), high: scaled(high), over }, ..self.request.with_owners(owners) }
    }

    fn epsilon(&self) -> Option<Remedy> {
        let (epsilon, delta) = self.request.release?;
        let with = |epsilon: f64| Request {
            release: Epsilon::new(epsilon).ok().map(|epsilon| (epsilon, delta)),
            ..self.request.clone()
        };
        let (epsilon, sd) = self.least_epsilon(epsilon.value(), LARGEST_EPSILON, with)?;
        Some(Remedy::Epsilon { epsilon, sd })
    }

    fn linked_epsilon(&self) -> Option<Remedy> {
        let with = |linked: f64| Request { linked_epsilon: Some(linked), ..self.request.clone() };
        let (epsilon, sd) = self.least_epsilon(self.request.linked_epsilon?, LARGEST_LINKED_EPSILON, with)?;
        Some(Remedy::LinkedEpsilon { epsilon, sd })
    }

    /// The least of an ε that is enough, up to `most`, and the error that it leaves.
    fn least_epsilon(&self, own: f64, most: f64, with: impl Fn(f64) -> Request) -> Option<(f64, f64)> {
        let sd = |epsilon: f64| sd(&with(epsilon), self.queries);
        if own >= most || sd(most) > self.limit {
            return None;
        }
        let epsilon = rounded_up(smallest((own, most), 2.0 * own, self.accuracy(), self.limit, sd)?);
        Some((epsilon, sd(epsilon))).filter(|(_, sd)| *sd <= self.limit)
    }
}

/// The error of a card for this request; infinite if there is none.
fn sd(request: &Request, queries: u64) -> f64 {
    least_whole_sd(request, queries).unwrap_or(f64::INFINITY)
}

fn rounded_up(value: f64) -> f64 {
    display::first_digits(value, DIGITS, Rounding::Up)
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = |sd: f64| format!("the error would be {}", display::nearest(sd));
        match *self {
            Self::Windows { windows: 1, sd } => write!(f, "asked in one window, {}", error(sd)),
            Self::Windows { windows, sd } => write!(f, "in {} windows, {}", grouped(windows), error(sd)),
            Self::Owners { owners, sd } => {
                write!(f, "with {} owners, and as large a share of yes, {}", grouped(owners), error(sd))
            }
            Self::Epsilon { epsilon, sd } => write!(f, "with ε = {epsilon}, {}", error(sd)),
            Self::LinkedEpsilon { epsilon, sd } => write!(f, "with a linked ε of {epsilon}, {}", error(sd)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Progress;
    use crate::card::{CardSeries, Timestamp, plan_whole};
    use crate::plan::{Noise, Over};
    use crate::privacy::Delta;

    fn request(owners: u64, yes: (u64, u64)) -> Request {
        let prior = Prior { low: yes.0, high: yes.1, over: Over::Worst };
        Request::one_aggregator(owners, prior, Epsilon::new(1.0).unwrap()).unwrap()
    }

    /// The card of a question that is asked in so many windows.
    fn planned(request: &Request, windows: u64) -> Card {
        let series = CardSeries { times: windows, number: None, starts: Timestamp::EPOCH, every: 300 };
        let draft = |card: Card| Card { series: (windows > 1).then(|| series.clone()), ..card };
        plan_whole(request, windows, draft, &Progress::default()).unwrap()
    }

    #[test]
    fn half_of_the_expected_range_is_the_largest_useful_error() {
        for (yes, range, largest) in [
            ((0, 400), "the expected range of yes, 0 to 400", 200.0),
            ((1000, 1400), "the expected range of yes, 1 000 to 1 400", 200.0),
            ((400, 400), "the 400 expected yes", 200.0),
            ((0, 0), "the 5 000 owners", 2500.0),
        ] {
            let found = CountRange::of(yes, 5000);
            assert_eq!((found.to_string().as_str(), found.largest_useful_sd()), (range, largest));
        }
    }

    /// A day of five-minute windows, as somebody asked it: counts of 0 to 400 with an error of thousands.
    #[test]
    fn a_day_of_windows_that_says_nothing_is_found_and_fewer_windows_are_proposed() {
        let request = request(50_000, (0, 400));
        let card = planned(&request, 288);
        let imprecision = card.imprecision().unwrap();
        assert!(imprecision.sd > 8000.0 && imprecision.sd == card.predicted.sd.value(), "{imprecision}");
        assert!(imprecision.to_string().ends_with("more than half of the expected range of yes, 0 to 400"));
        let remedies = imprecision.remedies(&request, 288, 288);
        let [Remedy::Windows { windows, sd }] = remedies[..] else { panic!("{remedies:?}") };
        // The largest number that is enough, and the error that its card has.
        assert_eq!(planned(&request, windows).predicted.sd.value(), sd);
        assert!(planned(&request, windows).imprecision().is_none());
        assert!(planned(&request, windows + 1).imprecision().is_some());
    }

    #[test]
    fn a_larger_epsilon_is_proposed_only_if_it_is_enough() {
        let request = request(1000, (0, 10));
        let whole = Request { release: Some((Epsilon::new(0.2).unwrap(), Delta::new(1e-8).unwrap())), ..request };
        let remedies = planned(&whole, 1).imprecision().unwrap().remedies(&whole, 1, 1);
        let found = remedies.iter().find_map(|remedy| match remedy {
            Remedy::Epsilon { epsilon, sd } => Some((*epsilon, *sd)),
            _ => None,
        });
        let (epsilon, sd) = found.unwrap();
        let with = |epsilon: f64| Request {
            release: Some((Epsilon::new(epsilon).unwrap(), Delta::new(1e-8).unwrap())),
            ..whole.clone()
        };
        assert!(sd <= 5.0 && planned(&with(epsilon), 1).predicted.sd.value() == sd, "{epsilon} {sd}");
        assert!(planned(&with(0.9 * epsilon), 1).imprecision().is_some(), "{epsilon}");
        let words = format!("with ε = {epsilon}, the error would be {}", display::nearest(sd));
        assert!(remedies.iter().any(|remedy| remedy.to_string() == words), "{remedies:?}");
        // Two of a thousand cannot be seen at any ε that protects anybody, nor with any number of owners.
        let rare = Request { yes: Prior::at(2), linked_epsilon: Some(2.0), ..whole };
        assert_eq!(planned(&rare, 1).imprecision().unwrap().remedies(&rare, 1, 1), []);
    }

    #[test]
    fn where_coins_are_counted_on_a_proposal_is_enough_too() {
        let request = Request {
            release: Some((Epsilon::new(0.3).unwrap(), Delta::new(1e-4).unwrap())),
            linked_epsilon: None,
            noise: Noise::None,
            trust: Trust::Owners,
            ..request(100, (0, 10))
        };
        let remedies = planned(&request, 2).imprecision().unwrap().remedies(&request, 2, 2);
        let more_owners = |remedy: &Remedy| matches!(remedy, Remedy::Owners { .. });
        let Some(Remedy::Owners { owners, sd }) = remedies.iter().copied().find(more_owners) else {
            panic!("{remedies:?}");
        };
        let yes = Prior { low: 0, high: owners / 10, over: Over::Worst };
        let card = planned(&Request { owners, minimum_batch: owners, yes, ..request }, 2);
        assert!(card.imprecision().is_none() && card.predicted.sd.value() <= sd, "{sd}");
    }
}
