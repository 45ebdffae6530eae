//! One coin for all answers: which term is part of which, and where each is in every answer.
//!
//! A term is a set of coin values. It holds the same people in every answer; what may change is the output that they write.
//! So an answer is a placement: `+` puts a term into an output, `−` takes it out of the output in which its whole (the term
//! that it is part of) lies, and a term that an answer does not mention lies where its whole lies.

use std::collections::HashMap;
use std::iter;
use std::ops::Range;

use super::fault::{Fault, Result, Span};
use super::syntax::{Definition, Equation, Mention, Parsed, Population};
use crate::channel::{Bin, Output, answer_name};

/// The definitions with the placement of each term.
#[derive(Debug)]
pub(super) struct Coupled {
    pub(super) terms: Vec<Definition>,
    /// The term that each term is part of.
    pub(super) parents: Vec<Option<usize>>,
    /// The outputs of each answer, in the order written.
    pub(super) answers: Vec<Vec<Output>>,
    /// For each term its output in each answer.
    pub(super) places: Vec<Vec<Output>>,
    /// Where a term is first taken out of something, to point at.
    taken: Vec<Option<Span>>,
    /// What each output holds as written: terms with +1 or −1.
    pub(super) contents: Vec<(Bin, Vec<(usize, i64)>)>,
}

/// Finds what each term is part of, and where it lies in every answer.
pub(super) fn couple(parsed: Parsed, text: &str) -> Result<Coupled> {
    let answers = answers(&parsed.equations, text)?;
    let uses = Uses::collect(&parsed, answers.len())?;
    uses.check_all_used(&parsed.definitions)?;
    let terms = Terms { definitions: &parsed.definitions, uses: &uses };
    let parents = terms.parents()?;
    terms.check_acyclic(&parents)?;
    let places = terms.places(&parents)?;
    let taken = (0..parsed.definitions.len()).map(|term| uses.first_removal(term).map(|(_, span)| span)).collect();
    let contents = contents(&parsed);
    Ok(Coupled { terms: parsed.definitions, parents, answers, places, taken, contents })
}

impl Coupled {
    /// The terms that have a share of the population and are part of no other term.
    pub(super) fn roots(&self, population: Population) -> impl Iterator<Item = &Definition> {
        let roots = self.terms.iter().zip(&self.parents).filter(|(_, parent)| parent.is_none());
        roots.map(|(term, _)| term).filter(move |term| term.population.covers(population))
    }

    /// Where a term is first taken out of something, or else where it is defined.
    pub(super) fn place_of_removal(&self, term: usize) -> Span {
        self.taken[term].unwrap_or(self.terms[term].span)
    }
}

/// The outputs of each answer; the answers must be A, B, C, … without a gap.
fn answers(equations: &[Equation], text: &str) -> Result<Vec<Vec<Output>>> {
    let Some(last) = equations.iter().map(|equation| equation.bin.answer).max() else {
        let end = text.trim_end().len();
        let hint = "say what each output of each answer holds, as in A1 = TOTAL_1 + YES_Y";
        return Err(Fault::syntax(Span { start: end, end }, "there is no answer", hint));
    };
    let mut answers = vec![Vec::new(); last + 1];
    for equation in equations {
        answers[equation.bin.answer].push(equation.bin.output);
    }
    match answers.iter().position(Vec::is_empty) {
        Some(missing) => Err(missing_answer(equations, missing)),
        None => Ok(answers),
    }
}

fn missing_answer(equations: &[Equation], missing: usize) -> Fault {
    let later = equations.iter().find(|equation| equation.bin.answer > missing);
    let span = later.expect("the last answer comes after a missing one").span;
    let message = format!("answer {} is missing", answer_name(missing));
    Fault::syntax(span, message, "answers are lettered A, B, C, … without a gap")
}

/// What each output holds as written.
fn contents(parsed: &Parsed) -> Vec<(Bin, Vec<(usize, i64)>)> {
    let index = index(&parsed.definitions);
    let signed = |mention: &Mention| {
        let term = *index.get(mention.name.as_str())?;
        Some((term, if mention.plus { 1 } else { -1 }))
    };
    let content = |equation: &Equation| (equation.bin, equation.mentions.iter().filter_map(signed).collect());
    parsed.equations.iter().map(content).collect()
}

/// The terms by their names.
fn index(terms: &[Definition]) -> HashMap<&str, usize> {
    terms.iter().enumerate().map(|(index, term)| (term.name.as_str(), index)).collect()
}

/// Where one answer adds a term and where it takes it out.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    plus: Option<(Output, Span)>,
    minus: Option<(Output, Span)>,
}

impl Use {
    fn is_empty(&self) -> bool {
        self.plus.is_none() && self.minus.is_none()
    }
}

/// The use of every term in every answer.
struct Uses {
    by_answer: Vec<Vec<Use>>,
}

impl Uses {
    fn collect(parsed: &Parsed, answers: usize) -> Result<Self> {
        let terms = &parsed.definitions;
        let index = index(terms);
        let mut uses = Self { by_answer: vec![vec![Use::default(); terms.len()]; answers] };
        for equation in &parsed.equations {
            for mention in &equation.mentions {
                let term = *index.get(mention.name.as_str()).ok_or_else(|| undefined(mention, terms))?;
                uses.add(equation.bin, term, mention)?;
            }
        }
        Ok(uses)
    }

    fn add(&mut self, bin: Bin, term: usize, mention: &Mention) -> Result<()> {
        let used = &mut self.by_answer[bin.answer][term];
        let (slot, other) = if mention.plus { (&mut used.plus, used.minus) } else { (&mut used.minus, used.plus) };
        if let Some((earlier, _)) = *slot {
            return Err(mentioned_again(mention, bin, earlier));
        }
        if other.is_some_and(|(output, _)| output == bin.output) {
            return Err(added_and_taken(mention, bin));
        }
        *slot = Some((bin.output, mention.span));
        Ok(())
    }

    fn check_all_used(&self, terms: &[Definition]) -> Result<()> {
        let Some(unused) = (0..terms.len()).find(|&term| self.of(term).all(Use::is_empty)) else { return Ok(()) };
        let message = format!("{} is in no output of any answer", terms[unused].name);
        Err(Fault::law(terms[unused].span, message, "add it to an output, or remove its definition"))
    }

    /// The first bin that a term is taken out of, and where the text says so.
    fn first_removal(&self, term: usize) -> Option<(Bin, Span)> {
        let removal = |(answer, used): (usize, &Use)| used.minus.map(|(output, span)| (Bin { answer, output }, span));
        self.of(term).enumerate().find_map(removal)
    }

    /// Whether every output that `part` is taken out of is one to which `whole` is added.
    fn is_taken_out_of(&self, part: usize, whole: usize) -> bool {
        self.by_answer.iter().all(|answer| match answer[part].minus {
            Some((output, _)) => answer[whole].plus.is_some_and(|(place, _)| place == output),
            None => true,
        })
    }

    /// The uses of a term, answer by answer.
    fn of(&self, term: usize) -> impl Iterator<Item = &Use> {
        self.by_answer.iter().map(move |answer| &answer[term])
    }
}

fn mentioned_again(mention: &Mention, bin: Bin, earlier: Output) -> Fault {
    let (name, here, letter) = (&mention.name, bin.name(), answer_name(bin.answer));
    match (mention.plus, earlier == bin.output) {
        (_, true) => Fault::law(mention.span, format!("{name} occurs twice in {here}"), "write it once"),
        (true, false) => Fault::law(
            mention.span,
            format!("{name} is in {letter}{earlier} already and cannot be in {here} too"),
            format!("an owner gives one output in answer {letter}"),
        ),
        (false, false) => Fault::law(
            mention.span,
            format!("{name} is taken out of {letter}{earlier} already and cannot be taken out of {here} too"),
            "a term is moved from one output to one other",
        ),
    }
}

fn added_and_taken(mention: &Mention, bin: Bin) -> Fault {
    let message = format!("{} is both added to {} and taken out of it", mention.name, bin.name());
    Fault::law(mention.span, message, "drop the -, and the + as well where its whole lies there")
}

fn undefined(mention: &Mention, terms: &[Definition]) -> Fault {
    let (population, _) = mention.name.split_once('_').unwrap_or((&mention.name, ""));
    let alike = terms.iter().filter(|term| term.population.name() == population);
    let known: Vec<&str> = alike.map(|term| term.name.as_str()).collect();
    let hint = match known.len() {
        0 => format!("define it, as in let {} = 0.1 * {population}", mention.name),
        1..=8 => format!("define it with let; terms of {population} are {}", known.join(", ")),
        _ => "define it with let".to_owned(),
    };
    Fault::syntax(mention.span, format!("{} is not defined", mention.name), hint)
}

/// The terms of a text, by number, with their uses.
struct Terms<'a> {
    definitions: &'a [Definition],
    uses: &'a Uses,
}

impl Terms<'_> {
    fn numbers(&self) -> Range<usize> {
        0..self.definitions.len()
    }

    fn name(&self, term: usize) -> &str {
        &self.definitions[term].name
    }

    fn population(&self, term: usize) -> Population {
        self.definitions[term].population
    }

    /// What each term is part of: what its definition says, or else what it is taken out of.
    fn parents(&self) -> Result<Vec<Option<usize>>> {
        let parent = |term: usize| match &self.definitions[term].inside {
            Some((name, span)) => self.stated_parent(term, name, *span).map(Some),
            None => self.implied_parent(term),
        };
        self.numbers().map(parent).collect()
    }

    /// The term that a definition names after `in`, or as what it is a share of.
    fn stated_parent(&self, term: usize, name: &str, span: Span) -> Result<usize> {
        let Some(parent) = self.definitions.iter().position(|other| other.name == *name) else {
            let message = format!("{name}, in which {} is said to be, is not defined", self.name(term));
            return Err(Fault::syntax(span, message, "define it with let, above or below"));
        };
        let (own, other) = (self.population(term), self.population(parent));
        if !other.covers(own) {
            let own_name = self.name(term);
            let message = format!("{own_name} is a share of {}, and {name} holds only {}", own.name(), other.name());
            return Err(Fault::law(span, message, "a term is part of one of its own population or of TOTAL"));
        }
        Ok(parent)
    }

    /// The term that stands in every output that this one is taken out of; none if it is taken out of nothing.
    fn implied_parent(&self, term: usize) -> Result<Option<usize>> {
        let Some((bin, span)) = self.uses.first_removal(term) else { return Ok(None) };
        let wide_enough = |other: usize| other != term && self.population(other).covers(self.population(term));
        let possible = |&other: &usize| wide_enough(other) && self.uses.is_taken_out_of(term, other);
        let candidates = self.numbers().filter(possible).collect();
        match self.closest(term, candidates)[..] {
            [parent] => Ok(Some(parent)),
            [] => Err(self.no_parent(term, &bin.name(), span)),
            [first, second, ..] => Err(self.ambiguous_parent(term, first, second, span)),
        }
    }

    /// Of the terms that this one may be part of: those named most like it (NO_f2 for NO_f21); if there are none, those of its
    /// population; if there are none either, all of them.
    fn closest(&self, term: usize, candidates: Vec<usize>) -> Vec<usize> {
        let by_name = self.named_most_like(term, &candidates);
        if !by_name.is_empty() {
            return by_name;
        }
        let same = |other: &usize| self.population(*other) == self.population(term);
        let same_population: Vec<usize> = candidates.iter().copied().filter(same).collect();
        if same_population.is_empty() { candidates } else { same_population }
    }

    /// The terms whose subscripts are the longest that this one's starts with.
    fn named_most_like(&self, term: usize, candidates: &[usize]) -> Vec<usize> {
        let subscript = |other: usize| self.definitions[other].subscript();
        let begins = candidates.iter().copied().filter(|&other| subscript(term).starts_with(subscript(other)));
        let longest = begins.clone().map(|other| subscript(other).len()).max();
        begins.filter(|&other| Some(subscript(other).len()) == longest).collect()
    }

    fn no_parent(&self, term: usize, bin: &str, span: Span) -> Fault {
        Fault::law(
            span,
            format!("{} is taken out of {bin}, which holds nothing that it could be part of", self.name(term)),
            format!("only a term of {} or TOTAL that stands in {bin} can lose it", self.population(term).name()),
        )
    }

    fn ambiguous_parent(&self, term: usize, first: usize, second: usize, span: Span) -> Fault {
        let (own, first, second) = (self.name(term), self.name(first), self.name(second));
        Fault::law(
            span,
            format!("{own} could be part of {first} or of {second}"),
            format!("say which where it is defined: … * {} in {first}", self.population(term).name()),
        )
    }

    fn check_acyclic(&self, parents: &[Option<usize>]) -> Result<()> {
        for start in self.numbers() {
            let chain = iter::successors(parents[start], |&term| parents[term]);
            if chain.take(parents.len()).any(|term| term == start) {
                return Err(self.circle(start, parents[start].expect("a term on a circle has a parent")));
            }
        }
        Ok(())
    }

    fn circle(&self, start: usize, parent: usize) -> Fault {
        let message = match parent == start {
            true => format!("{} is said to be part of itself", self.name(start)),
            false => format!("{} and {} are each part of the other", self.name(start), self.name(parent)),
        };
        Fault::law(self.definitions[start].span, message, "say with `in` which is part of which")
    }

    /// For each term its output in each answer.
    fn places(&self, parents: &[Option<usize>]) -> Result<Vec<Vec<Output>>> {
        let mut places: Vec<Vec<Output>> = vec![Vec::new(); parents.len()];
        for term in parents_first(parents) {
            let own = &self.definitions[term];
            for (answer, used) in self.uses.of(term).enumerate() {
                let place = match parents[term] {
                    None => place_of_root(own, answer, used)?,
                    Some(whole) => place_of_part(own, answer, used, &self.definitions[whole], places[whole][answer])?,
                };
                places[term].push(place);
            }
        }
        Ok(places)
    }
}

/// The terms in an order in which each comes after what it is part of.
fn parents_first(parents: &[Option<usize>]) -> Vec<usize> {
    let depth = |term: usize| iter::successors(parents[term], |&parent| parents[parent]).count();
    let mut order = Vec::from_iter(0..parents.len());
    order.sort_by_key(|&term| depth(term));
    order
}

/// Where a term that is part of no other lies in one answer: where it is put.
fn place_of_root(term: &Definition, answer: usize, used: &Use) -> Result<Output> {
    let (name, letter) = (&term.name, answer_name(answer));
    used.plus.map(|(output, _)| output).ok_or_else(|| {
        Fault::law(
            term.span,
            format!("{name} is in no output of answer {letter}"),
            format!("everybody gives every answer: add {name} to an output of {letter}"),
        )
    })
}

/// Where a part lies in one answer, given where its whole lies: it stays there, or is taken out and added elsewhere.
fn place_of_part(term: &Definition, answer: usize, used: &Use, whole: &Definition, lies: Output) -> Result<Output> {
    let (name, whole, letter) = (&term.name, &whole.name, answer_name(answer));
    match (used.plus, used.minus) {
        (None, None) => Ok(lies),
        (_, Some((output, span))) if output != lies => Err(Fault::law(
            span,
            format!("{name} is taken out of {letter}{output}, but {whole} lies in {letter}{lies}"),
            format!("{name} is part of {whole}: take it out of {letter}{lies}"),
        )),
        (Some((output, span)), None) => Err(Fault::law(
            span,
            format!("{name} is added to {letter}{output} and taken out of nothing"),
            format!("it is part of {whole}, so write - {name} in {letter}{lies}"),
        )),
        (None, Some((output, span))) => Err(Fault::law(
            span,
            format!("{name} is taken out of {letter}{output} and added to nothing"),
            format!("add {name} to the output of {letter} to which it moves"),
        )),
        (Some((output, _)), Some(_)) => Ok(output),
    }
}
