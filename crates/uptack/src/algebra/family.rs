//! The mechanism of the paper's family that a list of exact cells is, if it is one.
//!
//! A family's cells are recognized in the family's order only, so that no cell moves. Its own rounding is then used,
//! and a file and the mechanism of the same numbers have the identical integers.

use super::law::ExactCell;
use crate::channel::name_of;
use crate::fraction::Fraction;
use crate::mechanism::{
    Blended, Cancelling, Mechanism, NoisySampling, NormalForm, Paired, RandomizedResponse, Sampling, Tuned,
};

/// The mechanism of the family with these cells in its own order; none if there is no such mechanism.
pub(super) fn recognize(cells: &[ExactCell]) -> Option<Mechanism> {
    let names: Vec<String> = cells.iter().map(|cell| name_of(&cell.outputs)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match (&names[..], cells) {
        (["1", "0"], [one, zero]) => randomized_response(one, zero),
        (["1", "0", "⊥"], [one, zero, _]) => one_answer(one, zero),
        (["11", "12", "22"], [one, shift, _]) => paired(one, shift),
        (["11", "22", "33", "13", "23"], [base @ .., yes, no]) => cancelling(base, yes, no),
        (["111", "222", "333", "122", "133", "132"], [base @ .., left, moved_on]) => blended(base, left, moved_on),
        _ => None,
    }
}

fn randomized_response(one: &ExactCell, zero: &ExactCell) -> Option<Mechanism> {
    let truthful = one.yes.clone();
    (truthful == zero.no).then(|| Mechanism::RandomizedResponse(RandomizedResponse::new(truthful)))
}

fn one_answer(one: &ExactCell, zero: &ExactCell) -> Option<Mechanism> {
    let none = Fraction::zero();
    if zero.yes == none && one.no == none {
        return Some(Mechanism::Sampling(Sampling::new(one.yes.clone(), zero.no.clone())));
    }
    if zero.yes == none && zero.no == none {
        return Some(Mechanism::NoisySampling(NoisySampling::new(one.yes.clone(), one.no.clone())));
    }
    if one.yes == zero.no && zero.yes == one.no {
        let part = one.yes.plus(&zero.yes).ok()?;
        return NormalForm::new(part, one.no.clone()).ok().map(Mechanism::NormalForm);
    }
    tuned(one, zero)
}

/// Who says 1 truthfully, and who is made to say 0: sy1 with p1 = 1 and sy2 with p2 = 0.
fn tuned(one: &ExactCell, zero: &ExactCell) -> Option<Mechanism> {
    let no_part = one.no.plus(&zero.no).ok()?;
    let no_ones = match no_part == Fraction::zero() {
        true => Fraction::zero(),
        false => Fraction::checked(one.no.exact() / no_part.exact()).ok()?,
    };
    let (yes_ones, yes_zeros) = (one.yes.clone(), zero.yes.clone());
    let tuned = Tuned::new(yes_ones, yes_zeros, Fraction::one(), Fraction::zero(), no_part, no_ones);
    tuned.ok().map(Mechanism::Tuned)
}

fn paired(one: &ExactCell, shift: &ExactCell) -> Option<Mechanism> {
    let half = Fraction::new(1, 2).ok()?;
    let (yes, no) = (shift.yes.times(&half), shift.no.times(&half));
    let base = one.yes.plus(&yes).ok()?;
    if base != one.no.plus(&no).ok()? {
        return None;
    }
    Paired::new(base, yes, no).ok().map(Mechanism::Paired)
}

fn cancelling(base: &[ExactCell], yes: &ExactCell, no: &ExactCell) -> Option<Mechanism> {
    let apart = yes.no == Fraction::zero() && no.yes == Fraction::zero();
    if !apart || !base.iter().all(ExactCell::is_equal_share) {
        return None;
    }
    let share = |index: usize| base[index].yes.clone();
    Cancelling::new(share(0), share(1), share(2), yes.yes.clone()).ok().map(Mechanism::Cancelling)
}

fn blended(base: &[ExactCell], left: &ExactCell, moved_on: &ExactCell) -> Option<Mechanism> {
    // The laws sum to one, so that the shift of no-owners is the same where the base is.
    if !base.iter().all(ExactCell::is_equal_share) {
        return None;
    }
    let shift = left.yes.plus(&moved_on.yes).ok()?;
    let share = |index: usize| base[index].yes.clone();
    let (b1, ry, rn) = (base[0].base.clone(), moved_on.yes.clone(), left.no.clone());
    Blended::new(b1, share(1), share(2), share(3), shift, ry, rn).ok().map(Mechanism::Blended)
}
