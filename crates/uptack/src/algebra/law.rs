//! The law of every cell, from the shares of the terms.

use super::coupling::Coupled;
use super::fault::Fault;
use super::numbers::bounded;
use super::syntax::{Definition, Population};
use crate::channel::{Cell, Channel, MOST_CELLS, Output};
use crate::error::Result;
use crate::fraction::Fraction;
use crate::law::Law;
use crate::probability::Probability;

/// A cell with its exact law.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExactCell {
    pub(super) outputs: Vec<Output>,
    pub(super) yes: Fraction,
    pub(super) no: Fraction,
    /// How much of it consists of terms of TOTAL.
    pub(super) base: Fraction,
}

impl ExactCell {
    fn empty(outputs: Vec<Output>) -> Self {
        Self { outputs, yes: Fraction::zero(), no: Fraction::zero(), base: Fraction::zero() }
    }

    /// Whether it is the same share of both populations.
    pub(super) fn is_equal_share(&self) -> bool {
        self.yes == self.no
    }

    /// Adds a term that lies in this cell, given its own share of each population.
    fn add(&mut self, term: &Definition, yes: &Fraction, no: &Fraction) -> Result<(), Fault> {
        let add = |sum: &Fraction, part: &Fraction| {
            // Both laws sum to one and no part is negative, so no sum of parts exceeds one.
            bounded(sum.plus(part).unwrap_or_else(|_| Fraction::one()), term.span)
        };
        if term.population == Population::Total {
            self.base = add(&self.base, yes.min(no))?;
        }
        self.yes = add(&self.yes, yes)?;
        self.no = add(&self.no, no)?;
        Ok(())
    }
}

/// The cells, in the order in which the terms that lie in them are defined.
pub(super) fn cells(coupled: &Coupled) -> Result<Vec<ExactCell>, Fault> {
    check_sum(coupled, Population::Yes)?;
    check_sum(coupled, Population::No)?;
    let yes = own_shares(coupled, Population::Yes)?;
    let no = own_shares(coupled, Population::No)?;
    let mut cells: Vec<ExactCell> = Vec::new();
    for (index, term) in coupled.terms.iter().enumerate() {
        let cell = cell_of(term, &coupled.places[index], &mut cells)?;
        cell.add(term, &yes[index], &no[index])?;
    }
    Ok(cells)
}

/// The cell of these outputs, which is new if no term before was in it.
fn cell_of<'a>(
    term: &Definition,
    outputs: &[Output],
    cells: &'a mut Vec<ExactCell>,
) -> Result<&'a mut ExactCell, Fault> {
    let place = cells.iter().position(|cell| cell.outputs == outputs).unwrap_or(cells.len());
    if place == MOST_CELLS {
        return Err(too_many_cells(term));
    }
    if place == cells.len() {
        cells.push(ExactCell::empty(outputs.to_vec()));
    }
    Ok(&mut cells[place])
}

fn too_many_cells(term: &Definition) -> Fault {
    let message = format!("{} is in a cell of its own, of which there are already {MOST_CELLS}", term.name);
    Fault::law(term.span, message, "let terms travel together through the answers")
}

/// Rounds the exact laws to a channel's integers.
///
/// Each share is rounded by itself and the most likely cell takes the remainder, as in a channel given by its cells.
/// Where that would give a cell that is the same under both truths two integers, running sums are rounded instead,
/// beginning with the cells that are the same.
pub(super) fn round(cells: &[ExactCell]) -> Result<Channel> {
    let plain = cells.iter().map(|cell| (cell.outputs.clone(), cell.yes.clone(), cell.no.clone())).collect();
    let channel = Channel::from_fractions(plain)?;
    let kept = |(exact, rounded): (&ExactCell, &Cell)| !exact.is_equal_share() || rounded.yes() == rounded.no();
    if cells.iter().zip(channel.cells()).all(kept) { Ok(channel) } else { round_running_sums(cells) }
}

fn round_running_sums(cells: &[ExactCell]) -> Result<Channel> {
    let order = equal_shares_first(cells);
    let yes = running(&order, |index| &cells[index].yes)?;
    let no = running(&order, |index| &cells[index].no)?;
    let rounded = cells.iter().zip(yes.into_iter().zip(no));
    Channel::from_cells(rounded.map(|(cell, (yes, no))| Cell::new(cell.outputs.clone(), yes, no)).collect())
}

/// The cells that are the same share of both populations, then the others.
fn equal_shares_first(cells: &[ExactCell]) -> Vec<usize> {
    let mut order = Vec::from_iter(0..cells.len());
    order.sort_by_key(|&cell| !cells[cell].is_equal_share());
    order
}

/// Rounds the running sums in the given order, so that no part is negative and the parts sum to one.
fn running<'a>(order: &[usize], share: impl Fn(usize) -> &'a Fraction) -> Result<Vec<Probability>> {
    let law = Law::with_rest(order.iter().map(|&index| share(index)))?;
    let mut rounded = vec![Probability::ZERO; order.len()];
    order.iter().zip(law.probabilities()).for_each(|(&index, &part)| rounded[index] = part);
    Ok(rounded)
}

/// Checks that the terms that are part of no other make up the population, neither more nor less.
fn check_sum(coupled: &Coupled, population: Population) -> Result<(), Fault> {
    let mut sum = Fraction::zero();
    for term in coupled.roots(population) {
        let next = sum.plus(&term.share).map_err(|_| overfull(term, population, &sum))?;
        sum = bounded(next, term.span)?;
    }
    match coupled.roots(population).last().or(coupled.terms.last()) {
        Some(last) if sum != Fraction::one() => Err(incomplete(last, population, &sum)),
        _ => Ok(()),
    }
}

/// A term that is more than the rest of its population, when the terms before it make up `sum`.
fn overfull(term: &Definition, population: Population, sum: &Fraction) -> Fault {
    let population = population.name();
    let excess = term.share.minus(&sum.complement());
    let excess = excess.map_or_else(|error| error.to_string(), |excess| excess.to_string());
    let message = format!("with {} the terms of {population} are {excess} more than all of {population}", term.name);
    Fault::law(term.span, message, format!("{} may be at most {}", term.name, sum.complement()))
}

/// Terms that make up only `sum` of a population; the last of them is pointed at.
fn incomplete(last: &Definition, population: Population, sum: &Fraction) -> Fault {
    let name = population.name();
    let rest = sum.complement();
    let message = format!("the terms of {name} sum to {sum}: {rest} of {name} is in no output");
    let hint = "the terms that are part of no other must make up all of each population; thirds are written 1/3";
    Fault::law(last.span, message, hint)
}

/// What is left of each term's share of a population without the terms that are part of it.
fn own_shares(coupled: &Coupled, population: Population) -> Result<Vec<Fraction>, Fault> {
    let mut left: Vec<Fraction> = coupled.terms.iter().map(|term| term.share_of(population)).collect();
    for (part, term) in coupled.terms.iter().enumerate() {
        let Some(whole) = coupled.parents[part].filter(|_| term.population.covers(population)) else { continue };
        let rest = left[whole].minus(&term.share).map_err(|_| too_much(coupled, part, whole, &left[whole]))?;
        left[whole] = bounded(rest, coupled.place_of_removal(part))?;
    }
    Ok(left)
}

fn too_much(coupled: &Coupled, part: usize, whole: usize, left: &Fraction) -> Fault {
    let span = coupled.place_of_removal(part);
    let (part, whole) = (&coupled.terms[part], &coupled.terms[whole]);
    let left_of = match *left == whole.share {
        true => format!("which is {left}"),
        false => format!("of whose {} only {left} is left", whole.share),
    };
    let message = format!("{} = {} is more than {}, {left_of}", part.name, part.share, whole.name);
    let (part, whole) = (&part.name, &whole.name);
    let hint = format!("{part} is part of {whole}: make it smaller, or say with `in` what it is part of");
    Fault::law(span, message, hint)
}
