//! The paper's privacy algebra as a small language that compiles to a [`Channel`].
//!
//! A *term* is a share of a population: `TOTAL_1` of everybody, `YES_Y` of the yes-owners, `NO_f2` of the no-owners. An
//! *equation* says what one output of one answer holds, with + and − for what is shifted:
//!
//! ```
//! use uptack::algebra::Program;
//! let program = Program::parse("
//!     let TOTAL_1 = 30% * TOTAL
//!     let TOTAL_2 = 30% * TOTAL
//!     let TOTAL_3 = 30% * TOTAL
//!     let YES_Y = 10% * YES
//!     let NO_N = 10% * NO
//!
//!     A1 = TOTAL_1 + YES_Y
//!     A2 = TOTAL_2 + NO_N
//!     A3 = TOTAL_3
//!     B1 = TOTAL_1
//!     B2 = TOTAL_2
//!     B3 = TOTAL_3 + YES_Y + NO_N
//! ")?;
//! assert_eq!(program.mechanism().to_string(), "cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.1)");
//! let solution = program.solve().expect("the tallies depend on the truth");
//! assert_eq!((solution.combination.as_str(), solution.holds.as_str()), ("A1 - B1", "YES_Y"));
//! assert!(!solution.noise_from_no);
//! # Ok::<(), uptack::Error>(())
//! ```
//!
//! All answers are drawn with one coin: a term is the same people in every answer. An error points at its place:
//!
//! ```
//! use uptack::algebra::Program;
//! let error = Program::parse("let TOTAL_1 = 0.9 * TOTAL\nA1 = TOTAL_1").unwrap_err();
//! assert_eq!(error.to_string(), "\
//! line 1: the terms of YES sum to 0.9: 0.1 of YES is in no output
//!     |
//!   1 | let TOTAL_1 = 0.9 * TOTAL
//!     |     ^^^^^^^");
//! ```

mod coupling;
mod family;
mod fault;
mod law;
mod lexer;
mod parser;
mod print;
mod solution;

pub use print::to_text;
pub use solution::{Solution, Step};

use crate::channel::Channel;
use crate::error::Error;
use crate::mechanism::{Custom, Mechanism};

use coupling::Coupled;
use law::ExactCell;

/// A text of the privacy algebra, compiled.
#[derive(Debug)]
pub struct Program {
    coupled: Coupled,
    mechanism: Mechanism,
    channel: Channel,
}

impl Program {
    /// Reads a text, couples its answers, checks conservation and compiles it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let parsed = parser::parse(text).map_err(|fault| fault.render(text))?;
        let coupled = coupling::couple(parsed, text).map_err(|fault| fault.render(text))?;
        let cells = law::cells(&coupled).map_err(|fault| fault.render(text))?;
        let mechanism = mechanism(&cells)?;
        // The file's own order of outputs, and outputs that hold nobody.
        let channel = Channel::new(coupled.answers.clone(), mechanism.channel().cells().to_vec())?;
        Ok(Self { coupled, mechanism, channel })
    }

    /// The program that a channel prints to, which compiles to the same channel.
    pub fn of_channel(channel: &Channel) -> Result<Self, Error> {
        Self::parse(&to_text(channel))
    }

    /// The channel; the outputs of each answer are in the order written.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// The mechanism of the paper's family that it is, where it is one, else its cells; with the identical integers.
    pub fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    /// Each term that is part of another, with that other; said by the text or found by the compiler.
    pub fn nested(&self) -> Vec<(&str, &str)> {
        let name = |term: usize| self.coupled.terms[term].name.as_str();
        let parents = self.coupled.parents.iter().enumerate();
        parents.filter_map(|(term, parent)| Some((name(term), name((*parent)?)))).collect()
    }

    /// How YES is found from the tallies; none where they do not depend on the truth.
    pub fn solve(&self) -> Option<Solution> {
        solution::solve(&self.coupled, &self.channel)
    }
}

fn mechanism(cells: &[ExactCell]) -> Result<Mechanism, Error> {
    if let Some(known) = family::recognize(cells) {
        return Ok(known);
    }
    let channel = law::round(cells)?;
    let cell = |cell: &ExactCell| {
        let name: String = cell.outputs.iter().map(|output| output.symbol()).collect();
        format!("{name}={}:{}", cell.yes, cell.no)
    };
    let text = format!("custom({})", cells.iter().map(cell).collect::<Vec<_>>().join(", "));
    // The shares as written, unless they are too long to read back or their rounding is not the one taken.
    let written = text.parse::<Mechanism>().ok().filter(|written| written.channel() == channel);
    Ok(match written {
        Some(written) => written,
        None => Mechanism::Custom(Custom::new(channel)?),
    })
}
