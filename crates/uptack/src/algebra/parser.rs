//! From tokens to definitions and equations, every number exact.

use std::collections::HashMap;

use super::cursor::Cursor;
use super::fault::{Fault, Span, line_of};
use super::lexer::{Kind, Token, statements};
use super::noise;
use crate::channel::{Bin, MOST_ANSWERS, Output};
use crate::fraction::Fraction;
use crate::noise::DiscreteLaplace;
use crate::output::shortened;

/// A text longer than any channel prints to is refused unread.
const LONGEST_TEXT: usize = 1 << 20;
/// More terms than the largest channel prints to.
const MOST_TERMS: usize = 256;
/// Brackets within brackets.
const DEEPEST: usize = 32;
/// Numerators and denominators of more bits than this are refused: no honest share needs them, and they would cost time.
const MOST_BITS: u64 = 4096;

/// How a number is written.
const NUMBERS: &str = "a share may be written 0.05, 1/20 or 5%";

/// Whose share a term is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Population {
    Total,
    Yes,
    No,
}

impl Population {
    const ALL: [Self; 3] = [Self::Total, Self::Yes, Self::No];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Total => "TOTAL",
            Self::Yes => "YES",
            Self::No => "NO",
        }
    }

    /// Whether a term of this population has a share of `other`.
    pub(super) fn covers(self, other: Self) -> bool {
        self == Self::Total || self == other
    }

    fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|population| population.name() == word)
    }

    /// The population of a term's name: `NO_f2` is a share of NO.
    fn of_term(word: &str) -> Option<Self> {
        word.split_once('_').and_then(|(population, _)| Self::named(population))
    }
}

/// A term: a share of a population.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) population: Population,
    /// The share of the whole population, also where it was written as a share of another term.
    pub(super) share: Fraction,
    /// The term that this one is said to be part of.
    pub(super) inside: Option<(String, Span)>,
}

impl Definition {
    /// What stands after the population: `f2` of `NO_f2`.
    pub(super) fn subscript(&self) -> &str {
        &self.name[self.population.name().len() + 1..]
    }
}

/// What one output of one answer holds.
#[derive(Debug)]
pub(super) struct Equation {
    pub(super) bin: Bin,
    pub(super) span: Span,
    pub(super) mentions: Vec<Mention>,
}

/// A term with its sign.
#[derive(Debug)]
pub(super) struct Mention {
    pub(super) plus: bool,
    pub(super) name: String,
    pub(super) span: Span,
}

/// All that a text says.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) definitions: Vec<Definition>,
    pub(super) equations: Vec<Equation>,
    /// What the aggregators add to the count of `1`, and where it stands.
    pub(super) noise: Option<(DiscreteLaplace, Span)>,
}

pub(super) fn parse(text: &str) -> Result<Parsed, Fault> {
    if text.len() > LONGEST_TEXT {
        let start = Span { start: 0, end: 0 };
        return Err(Fault::syntax(start, format!("{} bytes of algebra are too many", text.len()), "is this the file?"));
    }
    let mut reader = Reader { text, parsed: Parsed::default(), constants: HashMap::new() };
    for tokens in statements(text)? {
        reader.statement(&tokens)?;
    }
    Ok(reader.parsed)
}

/// The sum or product, if it is not absurdly fine.
pub(super) fn bounded(value: Fraction, span: Span) -> Result<Fraction, Fault> {
    if value.exact().denom().bits() > MOST_BITS {
        let message = format!("a share with a denominator of more than {MOST_BITS} bits is too fine");
        return Err(Fault::parameter(span, message, "shares are rounded to 2^-64 in the end; write fewer digits"));
    }
    Ok(value)
}

struct Reader<'a> {
    text: &'a str,
    parsed: Parsed,
    constants: HashMap<&'a str, (Fraction, Span)>,
}

impl<'a> Reader<'a> {
    fn statement(&mut self, tokens: &[Token<'a>]) -> Result<(), Fault> {
        let mut cursor = Cursor { tokens, at: 0, depth: 0 };
        let first = tokens[0];
        match first.kind {
            Kind::Word if first.text == "let" => {
                cursor.at = 1;
                self.definition(&mut cursor)
            }
            Kind::Word => self.equation(&mut cursor),
            _ => Err(Fault::syntax(
                first.span,
                format!("a line cannot start with `{}`", shortened(first.text)),
                "a line is `let TERM = share * POPULATION` or `A1 = TERM + TERM - TERM`",
            )),
        }
    }

    fn definition(&mut self, cursor: &mut Cursor<'a, '_>) -> Result<(), Fault> {
        let name = cursor.expect(Kind::Word, "a name", "as in let YES_Y = 0.1 * YES")?;
        self.check_new(name)?;
        cursor.expect(Kind::Equals, "=", "as in let YES_Y = 0.1 * YES")?;
        match Population::of_term(name.text) {
            Some(population) => self.term(name, population, cursor),
            None => self.constant(name, cursor),
        }
    }

    fn check_new(&self, name: Token<'_>) -> Result<(), Fault> {
        let wrong = |message: String, hint: &str| Err(Fault::syntax(name.span, message, hint));
        if Population::named(name.text).is_some() {
            return wrong(
                format!("{} is a whole population and cannot be defined", name.text),
                "name a share of it, as in YES_Y or TOTAL_1",
            );
        }
        if matches!(name.text, "let" | "in") || name.text.ends_with('_') {
            return wrong(format!("`{}` cannot be a name", name.text), "as in YES_Y, NO_f2 or TOTAL_1");
        }
        let Some(before) = self.defined_at(name.text) else { return Ok(()) };
        let line = line_of(self.text, before);
        wrong(format!("{} is defined twice, first in line {line}", name.text), "give the second another name")
    }

    /// The term of this name, if it is defined above.
    fn term_named(&self, name: &str) -> Option<&Definition> {
        self.parsed.definitions.iter().find(|known| known.name == name)
    }

    /// Where a term or a constant of this name is defined.
    fn defined_at(&self, name: &str) -> Option<Span> {
        let constant = || self.constants.get(name).map(|(_, span)| *span);
        self.term_named(name).map(|known| known.span).or_else(constant)
    }

    fn constant(&mut self, name: Token<'a>, cursor: &mut Cursor<'a, '_>) -> Result<(), Fault> {
        let value = self.sum(cursor)?;
        cursor.end("a constant is a number, as in let f = 0.4 or let rest = 1 - f")?;
        self.constants.insert(name.text, (value, name.span));
        Ok(())
    }

    /// `share * share * POPULATION`, `share * TERM` or `share * POPULATION in TERM`.
    fn term(&mut self, name: Token<'a>, population: Population, cursor: &mut Cursor<'a, '_>) -> Result<(), Fault> {
        if self.parsed.definitions.len() == MOST_TERMS {
            let hint = "a channel has at most 64 cells, so fewer terms say the same";
            return Err(Fault::syntax(name.span, format!("more than {MOST_TERMS} terms"), hint));
        }
        let (share, whole) = self.share_and_whole(name, population, cursor)?;
        let (share, implied) = self.resolve_whole(name, population, share, whole)?;
        let inside = match (parent(cursor)?, &implied) {
            (Some(parent), Some((before, _))) => {
                let message = format!("{} is a share of {before} and therefore in it already", name.text);
                return Err(Fault::syntax(parent.span, message, "drop `in` and what follows"));
            }
            (Some(parent), None) => Some((parent.text.to_owned(), parent.span)),
            (None, _) => implied,
        };
        cursor.end("a definition ends with the population or term that it is a share of")?;
        let (name, span) = (name.text.to_owned(), name.span);
        self.parsed.definitions.push(Definition { name, span, population, share, inside });
        Ok(())
    }

    /// The product of the shares, and the population or term behind them.
    fn share_and_whole(
        &self,
        name: Token<'_>,
        population: Population,
        cursor: &mut Cursor<'a, '_>,
    ) -> Result<(Fraction, Token<'a>), Fault> {
        let mut share = Fraction::one();
        loop {
            if let Some(whole) = cursor.take_if(|token| token.kind == Kind::Word && is_share_of(token.text)) {
                return Ok((share, whole));
            }
            let (factor, span) = self.factor(cursor)?;
            share = bounded(share.times(&factor), span)?;
            if !cursor.take(Kind::Times) {
                return Err(lacks_whole(name.text, population, cursor));
            }
        }
    }

    /// The share of the whole population, and the term that it was written as a share of.
    fn resolve_whole(
        &self,
        name: Token<'_>,
        population: Population,
        share: Fraction,
        whole: Token<'_>,
    ) -> Result<(Fraction, Option<(String, Span)>), Fault> {
        match Population::named(whole.text) {
            Some(named) if named == population => return Ok((share, None)),
            Some(_) => return Err(other_population(name, population, whole)),
            None => {}
        }
        let parent = self.term_named(whole.text).ok_or_else(|| {
            let message = format!("`{}` is not defined yet", shortened(whole.text));
            Fault::syntax(whole.span, message, "define a term above those that are shares of it")
        })?;
        let share = bounded(share.times(&parent.share), whole.span)?;
        Ok((share, Some((whole.text.to_owned(), whole.span))))
    }

    /// Products with + and − between them.
    fn sum(&self, cursor: &mut Cursor<'a, '_>) -> Result<Fraction, Fault> {
        let (mut sum, mut span) = self.product(cursor)?;
        while let Some(plus) = cursor.take_sign() {
            let (next, end) = self.product(cursor)?;
            span.end = end.end;
            let reached = if plus { sum.plus(&next) } else { sum.minus(&next) };
            let out_of_range = |error: crate::Error| {
                Fault::parameter(span, error.to_string(), "shares are between 0 and 1, and so are their sums")
            };
            sum = bounded(reached.map_err(out_of_range)?, span)?;
        }
        Ok(sum)
    }

    fn product(&self, cursor: &mut Cursor<'a, '_>) -> Result<(Fraction, Span), Fault> {
        let (mut product, mut span) = self.factor(cursor)?;
        while cursor.take(Kind::Times) {
            let (next, end) = self.factor(cursor)?;
            span.end = end.end;
            product = bounded(product.times(&next), span)?;
        }
        Ok((product, span))
    }

    fn factor(&self, cursor: &mut Cursor<'a, '_>) -> Result<(Fraction, Span), Fault> {
        let token = cursor.next("a number", NUMBERS)?;
        match token.kind {
            Kind::Number => Ok((number(token)?, token.span)),
            Kind::Word if cursor.depth > 0 && is_share_of(token.text) => Err(Fault::syntax(
                token.span,
                format!("{} stands in a bracket that is not closed before it", shortened(token.text)),
                "brackets hold numbers only, as in (1 - 0.2) * TOTAL",
            )),
            Kind::Word => Ok((self.constant_named(token)?, token.span)),
            Kind::Open => self.bracket(token, cursor),
            _ => {
                let message = format!("expected a number, found `{}`", shortened(token.text));
                Err(Fault::syntax(token.span, message, NUMBERS))
            }
        }
    }

    /// What follows a bracket that was opened, up to the one that closes it.
    fn bracket(&self, open: Token<'_>, cursor: &mut Cursor<'a, '_>) -> Result<(Fraction, Span), Fault> {
        if cursor.depth == DEEPEST {
            return Err(Fault::syntax(open.span, "too many brackets within brackets", "name the inner parts with let"));
        }
        cursor.depth += 1;
        let value = self.sum(cursor)?;
        cursor.depth -= 1;
        let close = cursor.expect(Kind::Close, ")", "every ( needs a )")?;
        Ok((value, Span { start: open.span.start, end: close.span.end }))
    }

    fn constant_named(&self, token: Token<'_>) -> Result<Fraction, Fault> {
        if let Some((value, _)) = self.constants.get(token.text) {
            return Ok(value.clone());
        }
        let word = shortened(token.text);
        Err(match is_share_of(token.text) {
            true => Fault::syntax(
                token.span,
                format!("{word} is people, where a number is needed"),
                "a population or term stands once, at the end of a term's definition",
            ),
            false => Fault::syntax(
                token.span,
                format!("the constant `{word}` is not defined"),
                format!("define it above this line, as in let {word} = 0.1"),
            ),
        })
    }

    fn equation(&mut self, cursor: &mut Cursor<'a, '_>) -> Result<(), Fault> {
        let left = cursor.tokens[0];
        let bin = bin(left)?;
        self.check_first(left, bin)?;
        cursor.at = 1;
        cursor.expect(Kind::Equals, "=", "as in A1 = TOTAL_1 + YES_Y")?;
        let (terms, added) = noise::split(cursor.tokens);
        if let Some(added) = added {
            self.parsed.noise = Some(noise::read(self.text, bin, added)?);
        }
        let mentions = mentions(&mut Cursor { tokens: terms, ..*cursor })?;
        self.parsed.equations.push(Equation { bin, span: left.span, mentions });
        Ok(())
    }

    fn check_first(&self, left: Token<'_>, bin: Bin) -> Result<(), Fault> {
        let Some(before) = self.parsed.equations.iter().find(|known| known.bin == bin) else { return Ok(()) };
        let line = line_of(self.text, before.span);
        let message = format!("{} is written twice, first in line {line}", left.text);
        Err(Fault::syntax(left.span, message, "put all that an output holds on one line"))
    }
}

/// `TERM + TERM - TERM`, or `0` for an output that holds nobody.
fn mentions(cursor: &mut Cursor<'_, '_>) -> Result<Vec<Mention>, Fault> {
    if cursor.take_if(|token| token.text == "0").is_some() {
        cursor.end("an output that holds nobody is 0 and nothing else")?;
        return Ok(Vec::new());
    }
    let mut mentions = Vec::new();
    let mut plus = !cursor.take(Kind::Minus);
    loop {
        let token = cursor.next("a term", "what an output holds is written TOTAL_1 + YES_Y - YES_f1, or 0")?;
        mentions.push(mention(token, plus)?);
        plus = match cursor.take_sign() {
            Some(plus) => plus,
            None => break,
        };
    }
    match cursor.peek() {
        None => Ok(mentions),
        Some(other) => {
            let message = format!("expected + or -, found `{}`", shortened(other.text));
            let hint = "terms are joined by + and -; give a share of one a name of its own with let";
            Err(Fault::syntax(other.span, message, hint))
        }
    }
}

/// The term after `in`, if there is one.
fn parent<'a>(cursor: &mut Cursor<'a, '_>) -> Result<Option<Token<'a>>, Fault> {
    match cursor.take_if(|token| token.text == "in") {
        Some(_) => cursor.expect(Kind::Word, "a term", "as in let NO_f21 = 0.1 * NO in NO_f2").map(Some),
        None => Ok(None),
    }
}

fn mention(token: Token<'_>, plus: bool) -> Result<Mention, Fault> {
    if token.kind == Kind::Word && Population::of_term(token.text).is_some() {
        return Ok(Mention { plus, name: token.text.to_owned(), span: token.span });
    }
    let word = shortened(token.text);
    if Population::named(token.text).is_some() {
        let message = format!("{word} is a whole population, not a term");
        return Err(Fault::syntax(token.span, message, format!("name it: let {word}_all = 1 * {word}")));
    }
    let hint = match token.kind {
        Kind::Number => "give a share of a term a name of its own, as in let YES_g = 0.5 * YES_Y",
        _ => "a term starts with its population: TOTAL_1, YES_Y, NO_f2",
    };
    Err(Fault::syntax(token.span, format!("expected a term, found `{word}`"), hint))
}

/// `A1`, `B⊥` or `Bbottom`.
fn bin(token: Token<'_>) -> Result<Bin, Fault> {
    let word = shortened(token.text);
    if is_share_of(token.text) {
        let message = format!("{word} is a term, and a line starts with an output or `let`");
        return Err(Fault::syntax(token.span, message, format!("write let {word} = …")));
    }
    let letter = token.text.chars().next().filter(char::is_ascii_uppercase);
    let output = letter.and_then(|_| token.text[1..].parse::<Output>().ok());
    let (Some(letter), Some(output)) = (letter, output) else {
        let hint = "write the answer's letter and the output, as in A1, C3 or B⊥; definitions start with `let`";
        return Err(Fault::syntax(token.span, format!("`{word}` is not an output of an answer"), hint));
    };
    let answer = usize::from(letter as u8 - b'A').min(MOST_ANSWERS - 1);
    Ok(Bin { answer, output })
}

fn number(token: Token<'_>) -> Result<Fraction, Fault> {
    token.text.parse().map_err(|error: crate::Error| {
        let hint = error.hint().unwrap_or(NUMBERS).to_owned();
        match error.is_syntax() {
            true => Fault::syntax(token.span, error.to_string(), hint),
            false => Fault::parameter(token.span, error.to_string(), hint),
        }
    })
}

fn is_share_of(word: &str) -> bool {
    Population::named(word).is_some() || Population::of_term(word).is_some()
}

fn other_population(name: Token<'_>, population: Population, whole: Token<'_>) -> Fault {
    let message = format!("{} cannot be a share of {}", name.text, whole.text);
    let hint = format!("a term is a share of the population in its name: write * {}", population.name());
    Fault::syntax(whole.span, message, hint)
}

fn lacks_whole(name: &str, population: Population, cursor: &Cursor<'_, '_>) -> Fault {
    let sum = cursor.peek().is_some_and(|token| matches!(token.kind, Kind::Plus | Kind::Minus));
    let (message, hint) = match sum {
        true => (
            format!("the share of {name} is a sum without brackets"),
            format!("write it as in (0.4 - 0.1) * {}", population.name()),
        ),
        false => (
            format!("{name} is a share of what?"),
            format!("end it with * {}, or with * and a term that it is part of", population.name()),
        ),
    };
    Fault::syntax(cursor.here(), message, hint)
}
