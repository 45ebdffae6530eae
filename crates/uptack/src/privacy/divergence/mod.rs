//! The divergence of a whole view: the sum over what the adversary may see of the target.

pub(crate) mod averaged;
mod enumerated;
pub(crate) mod many_classes;
mod one_truth;
mod outside_told;
mod three_classes;
mod two_classes;

use crate::certified::binomial::Binomial;
use crate::certified::enclosure::Bracket;
use crate::privacy::classes::{Class, merge_to_three, one_sided, reduce, split_to_three, total};
use crate::privacy::effort::Work;
use crate::privacy::likelihood::{Direction, Piece, Share, Weight};
use averaged::{Attempt, expected};
use enumerated::Detail;
use many_classes::{Fineness, Member};
use outside_told::Crowd;
use three_classes::three_classes;
use two_classes::{Group, two_classes};

/// A view in the form the accounting needs: pieces that bound it from above and from below, and all detail for enumeration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Observation {
    above: Vec<Piece>,
    /// Each of these is a garbling of the view; the largest counts.
    below: Vec<Vec<Piece>>,
    /// None where the tallies do not fix the cells, so that enumerating cells is not exact.
    detail: Option<Vec<Detail>>,
    /// All classes of each observation, whether or not enumerating them is exact: from above they always hold.
    members: Vec<Detail>,
    floor: Class,
    ratios: Vec<Class>,
}

/// A question about a view: the divergence at e^ε = `growth`, leaving out mass of at most e^`log_cut`. Bounds need not be
/// sharp far below `goal`, and above it need not be more precise than `precision`, relatively.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) growth: f64,
    pub(crate) log_cut: f64,
    pub(crate) goal: f64,
    pub(crate) precision: f64,
    pub(crate) side: Side,
}

/// Which ends of a value are asked for. Where both come from one computation, both are given whatever is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Both,
    Above,
    Below,
}

impl Question {
    /// A question with a precision that is enough for a value by itself.
    pub(crate) fn new(growth: f64, log_cut: f64, goal: f64) -> Self {
        Self { growth, log_cut, goal, precision: 1e-4, side: Side::Both }
    }
}

/// With more owners than this, lattices are coarser.
const VERY_MANY: u64 = 300_000;

/// With so many owners a crowd takes long enough for a thread to each direction.
const MANY_OWNERS: u64 = 5_000_000;

impl Observation {
    /// The view of all tallies, where the cells fall into groups by what is seen of the target. `exact` says whether the
    /// tallies fix the cells; if not, `garblings` are coarser views that they do fix.
    pub(crate) fn new(groups: &[Vec<Class>], exact: bool, garblings: &[Vec<Class>]) -> Self {
        let cells: Vec<Class> = groups.concat();
        let pieces = |simplify: fn(&[Class]) -> Vec<Class>| -> Vec<Piece> {
            let piece = |(index, group): (usize, &Vec<Class>)| {
                let others: Vec<Class> = without(groups, index);
                Piece::new(&simplify(group), total(&others))
            };
            groups
                .iter()
                .enumerate()
                .filter(|(_, group)| !reduce(group.iter().copied()).is_empty())
                .map(piece)
                .collect()
        };
        let whole = |classes: &Vec<Class>| vec![Piece::new(&merge_to_three(classes), Class::default())];
        // What is seen of the target, without any tallies.
        let target_alone = || -> Vec<Piece> {
            let piece = |index: usize| Piece::new(&[total(&groups[index])], total(&without(groups, index)));
            (0..groups.len()).filter(|index| !reduce([total(&groups[*index])]).is_empty()).map(piece).collect()
        };
        Self {
            above: pieces(split_to_three),
            below: if exact {
                vec![pieces(merge_to_three)]
            } else {
                garblings.iter().map(whole).chain([target_alone()]).collect()
            },
            detail: exact.then(|| detail(groups)),
            members: detail(groups),
            floor: one_sided(&cells),
            ratios: reduce(cells),
        }
    }

    /// Mass that one truth alone can show, for *yes* and for *no*.
    pub(crate) fn floor(&self) -> Class {
        self.floor
    }

    /// All classes of cells, by falling ratio.
    pub(crate) fn ratios(&self) -> &[Class] {
        &self.ratios
    }

    /// Whether the values from below are those of the very same view as the values from above.
    pub(crate) fn is_exact(&self) -> bool {
        self.detail.is_some() && self.below.len() == 1 && self.below[0] == self.above && !self.needs_sums()
    }

    /// Whether both ends of a crowd of one truth are close to each other.
    pub(crate) fn is_sharp(&self) -> bool {
        self.is_exact() || self.is_determined()
    }

    /// Whether three classes at most, the others' included, tell all there is to tell in crowds of both truths.
    fn has_few_members(&self) -> bool {
        self.members.iter().all(Detail::is_small)
    }

    /// Whether an observation has more classes than the formulas for crowds of one truth take: sums of scores take any number.
    fn needs_sums(&self) -> bool {
        let many = |member: &Detail| member.inside.len() > if member.outside.is_empty() { 3 } else { 2 };
        self.members.iter().any(many)
    }

    /// The sum over the observations of a function of their classes, in both directions.
    fn sum_of_members(&self, growth: f64, function: impl Fn(&[Member]) -> f64) -> [f64; 2] {
        Direction::BOTH.map(|direction| {
            let value = |detail: &Detail| function(&detail.members(direction, growth));
            self.members.iter().map(value).sum::<f64>() * (1.0 + 1e-14)
        })
    }

    /// Views of all tallies as classes: the view itself if the tallies fix the cells, else what they do fix. Each is a function of
    /// what is seen, so that what it gives away is given away.
    pub(crate) fn shown(&self) -> Vec<&[Share]> {
        if let Some([detail]) = self.detail.as_deref() {
            return vec![&detail.inside];
        }
        let whole = |pieces: &'_ Vec<Piece>| pieces.len() == 1 && !pieces[0].has_outside();
        self.below.iter().filter(|pieces| whole(pieces)).map(|pieces| pieces[0].classes.as_slice()).collect()
    }

    /// A bound for every crowd of so many others at once: the privacy blanket.
    pub(crate) fn blanket(&self, others: u64, question: Question, work: &Work) -> f64 {
        let fineness = if others > VERY_MANY { Fineness::LARGE } else { Fineness::FINE };
        let bound = |members: &[Member]| many_classes::blanket(members, others + 1, question.log_cut, fineness, work);
        let [one, other] = self.sum_of_members(question.growth, bound);
        one.max(other)
    }

    /// Whether the tallies fix the cells.
    pub(crate) fn is_determined(&self) -> bool {
        self.detail.is_some()
    }

    /// Elementary steps to enumerate all crowds; none where enumeration is not exact.
    pub(crate) fn enumeration_cost(&self, others: u64) -> Option<u64> {
        let details = self.detail.as_ref()?;
        Some(details.iter().map(|detail| detail.cost(others)).fold(0, u64::saturating_add))
    }

    /// Both directions, exactly, in one crowd of a view that can be enumerated.
    pub(crate) fn enumerated(&self, yes: u64, no: u64, growth: f64) -> [Bracket; 2] {
        let details = self.detail.iter().flatten();
        details.map(|detail| detail.divergence(yes, no, growth)).fold([Bracket::ZERO; 2], add)
    }

    /// The same in all crowds, from no to all owners *yes*.
    pub(crate) fn all_enumerated(&self, others: u64, growth: f64) -> Vec<[Bracket; 2]> {
        let nothing = vec![[Bracket::ZERO; 2]; others as usize + 1];
        let details = self.detail.iter().flatten();
        details
            .map(|detail| detail.divergences(others, growth))
            .fold(nothing, |sums, values| sums.into_iter().zip(values).map(|(sum, value)| add(sum, value)).collect())
    }

    /// Whether two classes are all there is, and nothing outside: then a crowd is cheap.
    pub(crate) fn is_two_classes(&self) -> bool {
        let simple = |piece: &Piece| piece.classes.len() == 1 || piece.classes.len() == 2 && !piece.has_outside();
        self.is_exact() && self.above.iter().all(simple)
    }

    /// Whether [`Observation::both_truths`] is exact: three classes at most, the outside being one of them.
    pub(crate) fn is_exact_in_every_crowd(&self) -> bool {
        self.is_exact() && self.has_few_members() && self.above.iter().all(Piece::has_few_classes)
    }

    /// A crowd of one truth, in both directions. The upper end bounds the view, the lower end what the tallies show.
    pub(crate) fn one_truth(&self, yes: bool, others: u64, question: Question, work: &Work) -> [Bracket; 2] {
        let sum = |pieces: &[Piece]| {
            pieces.iter().map(|piece| piece.one_truth(yes, others, question, work)).fold([Bracket::ZERO; 2], add)
        };
        if self.is_exact() {
            return sum(&self.above);
        }
        let shown = || self.below.iter().map(|pieces| sum(pieces)).collect::<Vec<[Bracket; 2]>>();
        let lower = match question.side {
            Side::Above => Vec::new(),
            _ if !self.needs_sums() => shown(),
            _ => self.tests(yes, others, question, work).map_or_else(shown, |tests| vec![tests]),
        };
        let upper = match question.side {
            Side::Below => [1.0; 2],
            _ if !self.needs_sums() => sum(&self.above).map(|value| value.upper()),
            _ => self.sums(yes, others, question, work),
        };
        [0, 1].map(|direction: usize| {
            let lower = lower.iter().map(|value| value[direction].lower()).fold(0.0, f64::max);
            Bracket::new(lower.min(upper[direction]), upper[direction])
        })
    }

    /// A crowd of one truth by sums of scores, from above.
    fn sums(&self, yes: bool, others: u64, question: Question, work: &Work) -> [f64; 2] {
        let (yes, no) = if yes { (others, 0) } else { (0, others) };
        let fineness = if others > VERY_MANY { Fineness::LARGE } else { Fineness::FINE };
        let above = |members: &[Member]| many_classes::upper(members, yes, no, question.log_cut, fineness, work);
        self.sum_of_members(question.growth, above)
    }

    /// The same from below, if the tallies fix the cells.
    fn tests(&self, yes: bool, others: u64, question: Question, work: &Work) -> Option<[Bracket; 2]> {
        let (yes, no) = if yes { (others, 0) } else { (0, others) };
        let below = |members: &[Member]| many_classes::lower(members, yes, no, question.log_cut, work);
        let values = self.is_determined().then(|| self.sum_of_members(question.growth, below))?;
        Some(values.map(|value| Bracket::new(value * (1.0 - 1e-13), 1.0)))
    }

    /// A crowd of both truths, in both directions, exactly; only for [`Observation::is_exact_in_every_crowd`].
    pub(crate) fn both_truths(&self, yes: u64, no: u64, question: Question, work: &Work) -> [Bracket; 2] {
        let value = |piece: &Piece| piece.both_truths(yes, no, question, work);
        self.above.iter().map(value).fold([Bracket::ZERO; 2], add)
    }

    /// A crowd with at least these numbers of owners, in both directions, from above. Where a guess says that the question's
    /// goal is out of reach, nothing is bounded.
    pub(crate) fn bound(&self, yes: u64, no: u64, question: Question, work: &Work) -> Attempt {
        if !self.has_few_members() {
            return Attempt::exact(self.many_bound(yes, no, question, work));
        }
        let crowds: Vec<Crowd<'_>> =
            self.above.iter().map(|piece| Crowd::new(piece, yes, no, question, work)).collect();
        let guess = crowds.iter().fold([0.0; 2], |sum, crowd| [sum[0] + crowd.guess[0], sum[1] + crowd.guess[1]]);
        if guess[0].max(guess[1]) > question.goal {
            return Attempt { bound: [1.0; 2], guess };
        }
        // What is left of the goal goes to the pieces in proportion to their guesses.
        let tiny = 1e-3 * question.goal;
        let mut bound = [0.0; 2];
        for crowd in &crowds {
            let goals = [0, 1].map(|which: usize| {
                let share = (crowd.guess[which] + tiny) / (guess[which] + tiny * crowds.len() as f64);
                crowd.guess[which] + (question.goal - guess[which]) * share
            });
            let value = crowd.bound(goals, question, work);
            bound = [0, 1].map(|which: usize| (bound[which] + value[which]) * (1.0 + f64::EPSILON));
        }
        Attempt { bound, guess }
    }

    /// A crowd of both truths by sums of scores.
    fn many_bound(&self, yes: u64, no: u64, question: Question, work: &Work) -> [f64; 2] {
        refined(yes + no, question, work, |fineness| {
            let bound = |members: &[Member]| many_classes::upper(members, yes, no, question.log_cut, fineness, work);
            self.sum_of_members(question.growth, bound)
        })
    }

    /// Whether the two truths may be exchanged: then crowds of few yes-owners are like crowds of few no-owners.
    pub(crate) fn is_symmetric(&self) -> bool {
        let mirrored = |piece: &Piece| {
            let exchange = |share: &Share| Share { yes: share.no, no: share.yes };
            let classes = piece.classes.iter().rev().map(exchange).collect();
            Piece { classes, outside: exchange(&piece.outside) }
        };
        self.above.iter().all(|piece| self.above.contains(&mirrored(piece)))
            && self.members.iter().all(|member| self.members.contains(&member.mirrored()))
    }

    /// The largest parts of the laws that an owner of either truth has in common with one of *no*, and with one of *yes*: a
    /// yes-owner draws from the no-law with the first probability, and from some other law otherwise. Rounded down.
    pub(crate) fn in_common(&self) -> [f64; 2] {
        let least = |ratio: fn(&Class) -> (u128, u128)| {
            let shares = self.ratios.iter().map(ratio).filter(|(_, whole)| *whole > 0);
            let least = shares.map(|(part, whole)| part as f64 / whole as f64).fold(1.0, f64::min);
            least * (1.0 - 1e-12)
        };
        [least(|class| (class.yes(), class.no())), least(|class| (class.no(), class.yes()))]
    }
}

fn add(a: [Bracket; 2], b: [Bracket; 2]) -> [Bracket; 2] {
    [a[0].plus(b[0]), a[1].plus(b[1])]
}

fn without(groups: &[Vec<Class>], index: usize) -> Vec<Class> {
    groups
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != index)
        .flat_map(|(_, group)| group.iter().copied())
        .collect()
}

fn detail(groups: &[Vec<Class>]) -> Vec<Detail> {
    let shares = |classes: Vec<Class>| Piece::new(&reduce(classes), Class::default()).classes;
    let detail = |(index, group): (usize, &Vec<Class>)| Detail {
        inside: shares(group.clone()),
        outside: shares(without(groups, index)),
    };
    groups.iter().enumerate().map(detail).filter(|detail| !detail.inside.is_empty()).collect()
}

impl Piece {
    fn has_outside(&self) -> bool {
        self.outside.yes > 0.0 || self.outside.no > 0.0
    }

    /// Whether the outside is taken as one more class, in which the target never is.
    fn counts_outside(&self) -> bool {
        self.has_outside() && self.classes.len() < 3
    }

    /// The law of an owner over the classes: over all of them, or given that it is inside.
    fn law(&self, yes: bool) -> Option<Vec<f64>> {
        if self.counts_outside() {
            return Some(self.classes.iter().chain([&self.outside]).map(|class| class.of(yes)).collect());
        }
        self.conditional(yes)
    }

    /// The target's weights in the same classes.
    fn targets(&self, growth: f64) -> [Vec<Weight>; 2] {
        Direction::BOTH.map(|direction| {
            let mut weights = self.weights(direction, growth);
            if self.counts_outside() {
                weights.push(Weight { first: 0.0, second: 0.0 });
            }
            weights
        })
    }

    /// A crowd of one truth, in both directions.
    fn one_truth(&self, yes: bool, others: u64, question: Question, work: &Work) -> [Bracket; 2] {
        let targets = self.targets(question.growth);
        let law = self.law(yes).filter(|_| self.classes.len() > 1);
        let Some(law) = law else {
            return targets.map(|weights| weights.iter().map(Weight::positive_part).fold(Bracket::ZERO, Bracket::plus));
        };
        let classes = targets.map(|weights| weights.into_iter().zip(law.iter().copied()).collect::<Vec<_>>());
        let divergence = |others| {
            [0, 1].map(|direction: usize| one_truth::divergence(&classes[direction], others, question.log_cut, work))
        };
        if self.counts_outside() || self.outside.of(yes) == 0.0 {
            return divergence(others);
        }
        expected(Binomial::new(others, self.inside(yes)), true, question, work, divergence)
    }

    /// The classes in the form that takes any number of them; the outside, if it is taken as one, is the last.
    fn members(&self, direction: Direction, growth: f64) -> Vec<Member> {
        let nothing = Share { yes: 0.0, no: 0.0 };
        let inside = |share: &Share| share.member(share.weight(direction, growth));
        let outside = self.counts_outside().then(|| self.outside.member(nothing.weight(direction, growth)));
        self.classes.iter().map(inside).chain(outside).collect()
    }

    /// Whether the classes, the outside being one of them if there is any, are three at most.
    fn has_few_classes(&self) -> bool {
        self.classes.len() < 3 || !self.has_outside()
    }

    /// The same where all others are inside.
    fn one_truth_inside(&self, yes: bool, others: u64, question: Question, work: &Work) -> [Bracket; 2] {
        if self.counts_outside() {
            return self.one_truth(yes, others, question, work);
        }
        let inside = Self { classes: self.classes.clone(), outside: Share { yes: 0.0, no: 0.0 } };
        inside.one_truth(yes, others, question, work)
    }

    /// A crowd of both truths, in both directions, whose owners are all inside, or where the outside is a class like any other.
    fn both_truths(&self, yes: u64, no: u64, question: Question, work: &Work) -> [Bracket; 2] {
        if self.classes.len() == 1 {
            return self.one_truth(true, 0, question, work);
        }
        let (Some(yes_law), Some(no_law)) = (self.law(true), self.law(false)) else {
            let known = self.law(true).is_some();
            return self.one_truth_inside(known, if known { yes } else { no }, question, work);
        };
        if yes.min(no) == 0 {
            return self.one_truth_inside(yes > 0, yes.max(no), question, work);
        }
        let groups = [Group { owners: yes, law: &yes_law }, Group { owners: no, law: &no_law }];
        let targets = self.targets(question.growth);
        if yes_law.len() == 2 {
            return two_classes(targets.map(|target| [target[0], target[1]]), groups, question.log_cut, work);
        }
        if let Some(value) = without_the_rarest(&targets, groups, question, work) {
            return value;
        }
        // Rows are counts of the class between the others by ratio, or of the outside.
        let row = if self.counts_outside() { 2 } else { 1 };
        let direction = |target: &[Weight], work: &Work| {
            three_classes([target[0], target[1], target[2]], row, groups, question, work)
        };
        let exact = if yes + no < MANY_OWNERS {
            [direction(&targets[0], work), direction(&targets[1], work)]
        } else {
            let (one, (other, spent)) = std::thread::scope(|scope| {
                let other = scope.spawn(|| {
                    let work = Work::apart();
                    (direction(&targets[1], &work), work.spent())
                });
                let one = direction(&targets[0], work);
                (one, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            });
            work.spend(spent);
            [one, other]
        };
        if exact.iter().all(|value| value.upper() <= question.goal.max(1.01 * value.lower())) {
            return exact;
        }
        // Where an edge of what is possible was in the way, the commoner truth's owners alone are a bound, and so are told labels.
        let fewer = self.one_truth_inside(yes > no, yes.max(no), question, work);
        let bounded = [0, 1].map(|which: usize| exact[which].at_most(fewer[which].upper()));
        // Sums of scores are dear: they are for a goal that is missed. Without one (a profile is read, often where the divergence
        // is next to nothing) the enclosure is what it is.
        let missed = bounded.iter().any(|value| value.upper() > question.goal);
        if question.goal <= 0.0 || !missed || work.exhausted() {
            return bounded;
        }
        let labelled = self.labelled(yes, no, question, work);
        [0, 1].map(|which: usize| bounded[which].at_most(labelled[which]))
    }

    /// A crowd of both truths by sums of scores, in both directions.
    fn labelled(&self, yes: u64, no: u64, question: Question, work: &Work) -> [f64; 2] {
        refined(yes + no, question, work, |fineness| {
            Direction::BOTH.map(|direction| {
                let members = self.members(direction, question.growth);
                many_classes::upper(&members, yes, no, question.log_cut, fineness, work)
            })
        })
    }
}

/// A bound on a coarse lattice, and on a finer one where it misses the goal by little; without a goal on the finer one.
fn refined(owners: u64, question: Question, work: &Work, bound: impl Fn(Fineness) -> [f64; 2]) -> [f64; 2] {
    if question.goal <= 0.0 && owners <= VERY_MANY {
        return bound(Fineness::FINE);
    }
    let coarse = bound(Fineness::COARSE);
    let largest = coarse[0].max(coarse[1]);
    let little = largest > question.goal && largest < 1.3 * question.goal && !work.exhausted();
    if !little || owners > VERY_MANY {
        return coarse;
    }
    let fine = bound(Fineness::FINE);
    [coarse[0].min(fine[0]), coarse[1].min(fine[1])]
}

/// Three classes where one is so rare that it may be given away: then there are two. Nobody of the crowd is in it but for a small
/// probability; the target's own mass there is added. None where that is too much.
fn without_the_rarest(
    targets: &[Vec<Weight>; 2],
    groups: [Group<'_>; 2],
    question: Question,
    work: &Work,
) -> Option<[Bracket; 2]> {
    let expected = |class: usize| groups.iter().map(|group| group.owners as f64 * group.law[class]).sum::<f64>();
    let rarest = (0..3).min_by(|a, b| expected(*a).total_cmp(&expected(*b)))?;
    let somebody = expected(rarest) * (1.0 + 1e-12);
    let price = [0, 1].map(|which: usize| somebody + targets[which][rarest].first);
    let likely = question.precision * question.goal.max(1e-3);
    if price[0].max(price[1]) > likely {
        return None;
    }
    let [one, other] = [(rarest + 1) % 3, (rarest + 2) % 3];
    let laws = groups.map(|group| [group.law[one], group.law[other]]);
    if laws.iter().any(|law| law[0] + law[1] <= 0.0) {
        return None;
    }
    let left = [0, 1].map(|index: usize| Group { owners: groups[index].owners, law: &laws[index] });
    let weights = [0, 1].map(|which: usize| [targets[which][one], targets[which][other]]);
    let values = two_classes(weights, left, question.log_cut, work);
    let enough = |which: usize| price[which] <= question.precision * question.goal.max(values[which].lower());
    let result = [0, 1].map(|which: usize| {
        let lower = values[which].lower() * (1.0 - somebody).max(0.0);
        Bracket::new(lower, (values[which].upper() + price[which]) * (1.0 + 1e-12))
    });
    (enough(0) && enough(1)).then_some(result)
}
