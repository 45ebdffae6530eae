//! The mechanism that a list of exact cells is, where the paper's family has it.
//!
//! A family's cells are recognized in the family's order only, so that no cell moves. Its own rounding is then used,
//! and a file and the mechanism of the same numbers have the identical integers.

use super::law::ExactCell;
use crate::fraction::Fraction;
use crate::mechanism::{
    Blended, Cancelling, Mechanism, NoisySampling, NormalForm, Paired, RandomizedResponse, Sampling, Tuned,
};

pub(super) fn recognize(cells: &[ExactCell]) -> Option<Mechanism> {
    let names: Vec<String> = cells.iter().map(|cell| cell.outputs.iter().map(|o| o.symbol()).collect()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match names[..] {
        ["1", "0"] => randomized_response(cells),
        ["1", "0", "⊥"] => one_answer(cells),
        ["11", "12", "22"] => paired(cells),
        ["11", "22", "33", "13", "23"] => cancelling(cells),
        ["111", "222", "333", "122", "133", "132"] => blended(cells),
        _ => None,
    }
}

fn randomized_response(cells: &[ExactCell]) -> Option<Mechanism> {
    let truthful = cells[0].yes.clone();
    (truthful == cells[1].no).then(|| Mechanism::RandomizedResponse(RandomizedResponse::new(truthful)))
}

fn one_answer(cells: &[ExactCell]) -> Option<Mechanism> {
    let [one, zero, _] = cells else { return None };
    let none = Fraction::zero();
    if zero.yes == none && one.no == none {
        return Some(Mechanism::Sampling(Sampling::new(one.yes.clone(), zero.no.clone())));
    }
    if zero.yes == none && zero.no == none {
        return Some(Mechanism::NoisySampling(NoisySampling::new(one.yes.clone(), one.no.clone())));
    }
    if one.yes == zero.no && zero.yes == one.no {
        let part = one.yes.plus(&zero.yes).ok()?;
        return Some(Mechanism::NormalForm(NormalForm::new(part, one.no.clone()).ok()?));
    }
    tuned(one, zero)
}

fn tuned(one: &ExactCell, zero: &ExactCell) -> Option<Mechanism> {
    let no_part = one.no.plus(&zero.no).ok()?;
    let no_ones = match no_part == Fraction::zero() {
        true => Fraction::zero(),
        false => Fraction::checked(one.no.exact() / no_part.exact()).ok()?,
    };
    // Who says 1 truthfully, who is made to say 0: sy1 with p1 = 1 and sy2 with p2 = 0.
    let (yes_ones, yes_zeros) = (one.yes.clone(), zero.yes.clone());
    let tuned = Tuned::new(yes_ones, yes_zeros, Fraction::one(), Fraction::zero(), no_part, no_ones);
    Some(Mechanism::Tuned(tuned.ok()?))
}

fn paired(cells: &[ExactCell]) -> Option<Mechanism> {
    let half = Fraction::new(1, 2).ok()?;
    let (yes, no) = (cells[1].yes.times(&half), cells[1].no.times(&half));
    let base = cells[0].yes.plus(&yes).ok()?;
    let same = base == cells[0].no.plus(&no).ok()?;
    same.then(|| Paired::new(base, yes, no).ok().map(Mechanism::Paired))?
}

fn cancelling(cells: &[ExactCell]) -> Option<Mechanism> {
    let base = cells[..3].iter().all(|cell| cell.yes == cell.no);
    let apart = cells[3].no == Fraction::zero() && cells[4].yes == Fraction::zero();
    let share = |index: usize| cells[index].yes.clone();
    let mechanism = Cancelling::new(share(0), share(1), share(2), share(3));
    (base && apart).then(|| mechanism.ok().map(Mechanism::Cancelling))?
}

fn blended(cells: &[ExactCell]) -> Option<Mechanism> {
    let base = cells[..4].iter().all(|cell| cell.yes == cell.no);
    let (left, moved_on) = (&cells[4], &cells[5]);
    let shift = left.yes.plus(&moved_on.yes).ok()?;
    let share = |index: usize| cells[index].yes.clone();
    let (b1, ry, rn) = (cells[0].base.clone(), moved_on.yes.clone(), left.no.clone());
    // The laws sum to one, so that the shift of no-owners is the same where the base is.
    let mechanism = Blended::new(b1, share(1), share(2), share(3), shift, ry, rn);
    base.then(|| mechanism.ok().map(Mechanism::Blended))?
}
