//! The law of every cell, from the shares of the terms.

use super::coupling::Coupled;
use super::fault::Fault;
use super::parser::{Population, bounded};
use crate::channel::{Cell, Channel, MOST_CELLS, Output};
use crate::error::Error;
use crate::fraction::Fraction;
use crate::probability::Probability;

/// A cell with its exact law.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExactCell {
    pub(super) outputs: Vec<Output>,
    pub(super) yes: Fraction,
    pub(super) no: Fraction,
    /// How much of it are terms of TOTAL.
    pub(super) base: Fraction,
}

/// The cells, in the order in which the terms that lie in them are defined.
pub(super) fn cells(coupled: &Coupled) -> Result<Vec<ExactCell>, Fault> {
    check_sum(coupled, Population::Yes)?;
    check_sum(coupled, Population::No)?;
    let (yes, no) = (own_shares(coupled, Population::Yes)?, own_shares(coupled, Population::No)?);
    let mut cells: Vec<ExactCell> = Vec::new();
    for (term, outputs) in coupled.places.iter().enumerate() {
        let span = coupled.terms[term].span;
        let index = cells.iter().position(|cell| cell.outputs == *outputs).unwrap_or(cells.len());
        if index == MOST_CELLS {
            let message = format!("{} is in a cell of its own, of which there are already {MOST_CELLS}", {
                &coupled.terms[term].name
            });
            return Err(Fault::law(span, message, "let terms travel together through the answers"));
        }
        if index == cells.len() {
            let (yes, no, base) = (Fraction::zero(), Fraction::zero(), Fraction::zero());
            cells.push(ExactCell { outputs: outputs.clone(), yes, no, base });
        }
        let cell = &mut cells[index];
        // Both laws sum to one and no part is negative, so that no sum of parts exceeds one.
        let add = |sum: &Fraction, part: &Fraction| bounded(sum.plus(part).unwrap_or_else(|_| Fraction::one()), span);
        if coupled.terms[term].population == Population::Total {
            cell.base = add(&cell.base, (&yes[term]).min(&no[term]))?;
        }
        cell.yes = add(&cell.yes, &yes[term])?;
        cell.no = add(&cell.no, &no[term])?;
    }
    Ok(cells)
}

/// Rounds the exact laws to a channel's integers.
///
/// Each share is rounded by itself and the most likely cell takes the remainder, as in a channel given by its cells.
/// Where that would give a cell that is the same under both truths two integers, running sums are rounded instead,
/// beginning with the cells that are the same.
pub(super) fn round(cells: &[ExactCell]) -> Result<Channel, Error> {
    let plain = cells.iter().map(|cell| (cell.outputs.clone(), cell.yes.clone(), cell.no.clone())).collect();
    let channel = Channel::from_fractions(plain)?;
    let kept = |(exact, rounded): (&ExactCell, &Cell)| exact.yes != exact.no || rounded.yes() == rounded.no();
    if cells.iter().zip(channel.cells()).all(kept) {
        return Ok(channel);
    }
    let (same, differing): (Vec<usize>, Vec<usize>) = (0..cells.len()).partition(|&i| cells[i].yes == cells[i].no);
    let order = [same, differing].concat();
    let yes = running(&order, |index| &cells[index].yes)?;
    let no = running(&order, |index| &cells[index].no)?;
    let rounded = cells.iter().zip(yes.into_iter().zip(no));
    Channel::from_cells(rounded.map(|(cell, (yes, no))| Cell::new(cell.outputs.clone(), yes, no)).collect())
}

/// Rounds the running sums in the given order, so that no part is negative and all are together one.
fn running<'a>(order: &[usize], share: impl Fn(usize) -> &'a Fraction) -> Result<Vec<Probability>, Error> {
    let mut rounded = vec![Probability::ZERO; order.len()];
    let (mut sum, mut reached) = (Fraction::zero(), Probability::ZERO);
    for &index in order {
        sum = sum.plus(share(index))?;
        let next = sum.round();
        rounded[index] = next.saturating_sub(reached);
        reached = next;
    }
    Ok(rounded)
}

/// The terms that are part of no other must make up the population, neither more nor less.
fn check_sum(coupled: &Coupled, population: Population) -> Result<(), Fault> {
    let name = population.name();
    let mut sum = Fraction::zero();
    let mut last = None;
    let roots = (0..coupled.terms.len()).filter(|&term| coupled.parents[term].is_none());
    for term in roots.filter(|&term| coupled.terms[term].population.covers(population)) {
        let definition = &coupled.terms[term];
        let next = sum.plus(&definition.share).map_err(|_| {
            let excess = definition.share.minus(&sum.complement());
            let excess = excess.map_or_else(|error| error.to_string(), |excess| excess.to_string());
            let message = format!("with {} the terms of {name} are {excess} more than all of {name}", definition.name);
            Fault::law(definition.span, message, format!("{} may be at most {}", definition.name, sum.complement()))
        })?;
        sum = bounded(next, definition.span)?;
        last = Some(definition);
    }
    if sum == Fraction::one() {
        return Ok(());
    }
    let Some(definition) = last.or(coupled.terms.last()) else {
        return Ok(());
    };
    let rest = sum.complement();
    let message = format!("the terms of {name} sum to {sum}: {rest} of {name} is in no output");
    let hint = "the terms that are part of no other must make up all of each population; thirds are written 1/3";
    Err(Fault::law(definition.span, message, hint))
}

/// What is left of each term's share of a population without the terms that are part of it.
fn own_shares(coupled: &Coupled, population: Population) -> Result<Vec<Fraction>, Fault> {
    let holds = |term: usize| coupled.terms[term].population.covers(population);
    let share = |term: usize| if holds(term) { coupled.terms[term].share.clone() } else { Fraction::zero() };
    let mut left: Vec<Fraction> = (0..coupled.terms.len()).map(share).collect();
    for (part, parent) in coupled.parents.iter().enumerate() {
        if let (Some(whole), true) = (*parent, holds(part)) {
            let rest = left[whole].minus(&coupled.terms[part].share);
            let span = coupled.taken[part].unwrap_or(coupled.terms[part].span);
            left[whole] = bounded(rest.map_err(|_| too_much(coupled, part, whole, &left[whole]))?, span)?;
        }
    }
    Ok(left)
}

fn too_much(coupled: &Coupled, part: usize, whole: usize, left: &Fraction) -> Fault {
    let (part_term, whole_term) = (&coupled.terms[part], &coupled.terms[whole]);
    let span = coupled.taken[part].unwrap_or(part_term.span);
    let left_of = match *left == whole_term.share {
        true => format!("which is {left}"),
        false => format!("of whose {} only {left} is left", whole_term.share),
    };
    let message = format!("{} = {} is more than {}, {left_of}", part_term.name, part_term.share, whole_term.name);
    let hint = format!("{} is part of {}: make it smaller, or say with `in` what it is part of", part_term.name, {
        &whole_term.name
    });
    Fault::law(span, message, hint)
}
