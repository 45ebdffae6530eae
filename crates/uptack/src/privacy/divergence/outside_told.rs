//! One piece of a view in a crowd of both truths, where it may be bounded only.

use super::Question;
use super::averaged::Falling;
use crate::certified::binomial::{Binomial, window};
use crate::certified::enclosure::Bracket;
use crate::privacy::effort::Work;
use crate::privacy::likelihood::Piece;

/// One piece in a crowd of both truths: a guess at its divergence, and how to bound it.
pub(super) struct Crowd<'a> {
    pub(super) guess: [f64; 2],
    way: Way<'a>,
}

enum Way<'a> {
    /// The guess is a bound.
    Exact,
    /// The adversary is told who is outside: of the commoner truth's owners their number is averaged over, of the rarer
    /// truth's it is taken at its largest.
    Outside { piece: &'a Piece, common_is_yes: bool, law: Binomial, rare: u64 },
}

impl<'a> Crowd<'a> {
    pub(super) fn new(piece: &'a Piece, yes: u64, no: u64, question: Question, work: &'a Work) -> Self {
        work.spend(200);
        let upper = |value: [Bracket; 2]| value.map(|value| value.upper());
        if yes.min(no) == 0 {
            return Self { guess: upper(piece.one_truth(yes > 0, yes.max(no), question, work)), way: Way::Exact };
        }
        if piece.has_few_classes() {
            return Self { guess: upper(piece.both_truths(yes, no, question, work)), way: Way::Exact };
        }
        let common_is_yes = yes >= no;
        let (common, rare) = if common_is_yes { (yes, no) } else { (no, yes) };
        let law = Binomial::new(common, piece.inside(common_is_yes));
        let (rare, _) = window(&[Binomial::new(rare, piece.inside(!common_is_yes))], question.log_cut);
        let (yes, no) = oriented(common_is_yes, law.mean() as u64, rare);
        let guess = upper(piece.both_truths(yes, no, question, work));
        Self { guess, way: Way::Outside { piece, common_is_yes, law, rare } }
    }

    /// A bound that does not exceed the goals, if that is within reach.
    pub(super) fn bound(&self, goals: [f64; 2], question: Question, work: &Work) -> [f64; 2] {
        match &self.way {
            Way::Exact => self.guess,
            Way::Outside { piece, common_is_yes, law, rare } => {
                let inside = |count: u64| {
                    let (yes, no) = oriented(*common_is_yes, count, *rare);
                    piece.both_truths(yes, no, question, work).map(|value| value.upper())
                };
                let falling = Falling { law: *law, center: self.guess, everywhere: [1.0; 2], goals };
                let values = falling.expected(question.log_cut, work, inside);
                values.map(|value| value + 2.0 * question.log_cut.exp())
            }
        }
    }
}

fn oriented(common_is_yes: bool, common: u64, rare: u64) -> (u64, u64) {
    if common_is_yes { (common, rare) } else { (rare, common) }
}
