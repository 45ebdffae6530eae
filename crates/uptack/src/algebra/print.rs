//! A channel as algebra.

use std::cmp::Reverse;
use std::fmt::Write as _;

use crate::channel::{Bin, Cell, Channel, Output, name_of};
use crate::fraction::Fraction;
use crate::probability::Probability;

use super::syntax::Population;

/// This channel in the notation of the privacy algebra; it compiles to the identical channel.
///
/// A cell is named by its outputs up to its last change: `TOTAL_13` writes 1 in answer A and 3 from B on. Where two
/// cells part in some answer and are together the same share of both populations, one is written as a part of the other
/// that is moved; otherwise each is a term of its own.
///
/// ```
/// use uptack::{Mechanism, algebra};
/// let channel = "blended(b1=0.1,b2=0.2,b3=0.2,f1=0,f2=0.5,ry=0,rn=0)".parse::<Mechanism>()?.channel();
/// let text = algebra::to_text(&channel);
/// assert!(text.contains("B1 = TOTAL_1 - TOTAL_12 - TOTAL_13\n"));
/// assert_eq!(algebra::Program::parse(&text)?.channel(), &channel);
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn to_text(channel: &Channel) -> String {
    let tree = Tree::new(channel);
    let terms: Vec<Term> = (0..channel.cells().len()).flat_map(|cell| tree.terms(cell)).collect();
    let mut lines: Vec<String> = terms.iter().map(|term| tree.definition(term)).collect();
    for bin in channel.bins() {
        if Some(&bin.output) == channel.answers()[bin.answer].first() {
            lines.push(String::new());
        }
        lines.push(tree.equation(bin, &terms));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

struct Term {
    cell: usize,
    population: Population,
    share: Probability,
}

/// Which cell is written as a part of which other.
struct Tree<'a> {
    channel: &'a Channel,
    /// The outputs of each cell up to its last change.
    names: Vec<String>,
    parents: Vec<Option<usize>>,
    /// The share of each population in a cell and all its parts.
    yes: Vec<Probability>,
    no: Vec<Probability>,
}

impl<'a> Tree<'a> {
    fn new(channel: &'a Channel) -> Self {
        let cells = channel.cells();
        let mut tree = Self {
            channel,
            names: cells.iter().map(|cell| until_last_change(cell.outputs())).collect(),
            parents: vec![None; cells.len()],
            yes: cells.iter().map(Cell::yes).collect(),
            no: cells.iter().map(Cell::no).collect(),
        };
        tree.gather_all();
        tree
    }

    /// Makes each cell a part of the nearest one if that one is then the same share of both populations.
    fn gather_all(&mut self) {
        let cells = self.channel.cells();
        let near: Vec<Option<usize>> = cells.iter().map(|cell| nearest(self.channel, cell.outputs())).collect();
        for whole in most_changes_first(cells) {
            let parts: Vec<usize> = (0..cells.len()).filter(|&part| near[part] == Some(whole)).collect();
            self.gather(whole, &parts);
        }
    }

    /// Makes the cells parts of the whole if it is then the same share of both populations.
    fn gather(&mut self, whole: usize, parts: &[usize]) {
        let sum = |shares: &[Probability]| -> Option<Probability> {
            parts.iter().try_fold(shares[whole], |sum, &part| sum.checked_add(shares[part]))
        };
        let (Some(yes), Some(no)) = (sum(&self.yes), sum(&self.no)) else { return };
        if yes == no {
            (self.yes[whole], self.no[whole]) = (yes, no);
            parts.iter().for_each(|&part| self.parents[part] = Some(whole));
        }
    }

    /// One term of TOTAL, or one for each population that the cell has people of.
    fn terms(&self, cell: usize) -> Vec<Term> {
        let (yes, no) = (self.yes[cell], self.no[cell]);
        if yes == no {
            return vec![Term { cell, population: Population::Total, share: yes }];
        }
        let both = [(Population::Yes, yes), (Population::No, no)];
        let some = both.into_iter().filter(|(_, share)| *share != Probability::ZERO);
        some.map(|(population, share)| Term { cell, population, share }).collect()
    }

    fn name(&self, term: &Term) -> String {
        format!("{}_{}", term.population.name(), self.names[term.cell])
    }

    /// `let NAME = share * POPULATION`, with the whole that it is part of.
    fn definition(&self, term: &Term) -> String {
        let (name, share) = (self.name(term), Fraction::from_probability(term.share));
        let parent = self.parents[term.cell];
        let inside = parent.map(|parent| format!(" in TOTAL_{}", self.names[parent])).unwrap_or_default();
        format!("let {name} = {share} * {}{inside}", term.population.name())
    }

    /// `A1 = TERM + TERM - TERM`, with the noise that is added to the number of answers `1`.
    fn equation(&self, bin: Bin, terms: &[Term]) -> String {
        let noise = self.channel.noise().filter(|_| bin.output == Output::ONE);
        let added = noise.map(|noise| format!(" + {noise}")).unwrap_or_default();
        format!("{} = {}{added}", bin.name(), self.content(bin, terms))
    }

    /// What an output holds: the terms that lie in it and not where their whole lies, less the parts that left.
    fn content(&self, bin: Bin, terms: &[Term]) -> String {
        let mut text = String::new();
        for term in terms {
            let sign = match (self.sign(bin, term.cell), text.is_empty()) {
                (None, _) => continue,
                (Some(Sign::Plus), true) => "",
                (Some(Sign::Plus), false) => " + ",
                (Some(Sign::Minus), true) => "-",
                (Some(Sign::Minus), false) => " - ",
            };
            write!(text, "{sign}{}", self.name(term)).expect("a string takes all");
        }
        if text.is_empty() { "0".to_owned() } else { text }
    }

    /// Whether the equation of an output adds the terms of a cell or takes them out.
    fn sign(&self, bin: Bin, cell: usize) -> Option<Sign> {
        let lies = |cell: usize| self.channel.cells()[cell].outputs()[bin.answer] == bin.output;
        match (lies(cell), self.parents[cell].map(lies)) {
            (true, None | Some(false)) => Some(Sign::Plus),
            (false, Some(true)) => Some(Sign::Minus),
            _ => None,
        }
    }
}

#[derive(Clone, Copy)]
enum Sign {
    Plus,
    Minus,
}

/// The listed cell that agrees for longest and then does not change any more.
fn nearest(channel: &Channel, outputs: &[Output]) -> Option<usize> {
    let staying = (1..outputs.len()).rev().map(|kept| staying_after(outputs, kept));
    staying.filter(|other| other != outputs).find_map(|other| channel.cell_index(&other))
}

/// The outputs up to a place, and the last of them from there on.
fn staying_after(outputs: &[Output], kept: usize) -> Vec<Output> {
    let mut staying = outputs.to_vec();
    staying[kept..].fill(outputs[kept - 1]);
    staying
}

fn changes(outputs: &[Output]) -> usize {
    outputs.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// A part changes more often than its whole, so in this order parts are complete before they are counted into one.
fn most_changes_first(cells: &[Cell]) -> Vec<usize> {
    let mut order = Vec::from_iter(0..cells.len());
    order.sort_by_key(|&cell| Reverse(changes(cells[cell].outputs())));
    order
}

fn until_last_change(outputs: &[Output]) -> String {
    let last = outputs.windows(2).rposition(|pair| pair[0] != pair[1]).map_or(0, |index| index + 1);
    name_of(&outputs[..=last])
}
