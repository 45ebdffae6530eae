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
//! Noise that each of two aggregators adds to the number of answers `1` stands at the end of that output's equation:
//! `A1 = YES_1 + NO_1 + laplace(scale=2)`.
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
mod noise;
mod numbers;
mod parser;
mod print;
mod solution;
mod syntax;

pub use print::to_text;
pub use solution::{Solution, Step};

use crate::channel::{Channel, name_of};
use crate::error::Result;
use crate::mechanism::{Custom, Mechanism, Noisy};
use crate::noise::NoiseLaw;

use coupling::Coupled;
use fault::Fault;
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
    pub fn parse(text: &str) -> Result<Self> {
        let parsed = parser::parse(text).map_err(|fault| fault.render(text))?;
        let noise = parsed.noise;
        let coupled = coupling::couple(parsed, text).map_err(|fault| fault.render(text))?;
        let cells = law::cells(&coupled).map_err(|fault| fault.render(text))?;
        let mechanism = mechanism(&cells)?;
        // The file's own order of outputs, and outputs that hold nobody.
        let channel = Channel::new(coupled.answers.clone(), mechanism.channel().cells().to_vec())?;
        let program = Self { coupled, mechanism, channel };
        match noise {
            Some((noise, span)) => program.with_noise(noise).map_err(|error| Fault::refused(span, &error).render(text)),
            None => Ok(program),
        }
    }

    fn with_noise(self, noise: NoiseLaw) -> Result<Self> {
        Ok(Self {
            channel: self.channel.with_noise(noise)?,
            mechanism: Mechanism::Noisy(Noisy::new(self.mechanism, noise)?),
            ..self
        })
    }

    /// The program that a channel prints to, which compiles to the same channel.
    pub fn of_channel(channel: &Channel) -> Result<Self> {
        Self::parse(&to_text(channel))
    }

    /// The channel; the outputs of each answer are in the order written.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// The mechanism of the paper's family that it is, or else its cells; with the identical integers.
    pub fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    /// Each term that is part of another, with that other; said by the text or found by the compiler.
    pub fn nested(&self) -> Vec<(&str, &str)> {
        let name = |term: usize| self.coupled.terms[term].name.as_str();
        let parents = self.coupled.parents.iter().enumerate();
        parents.filter_map(|(term, parent)| Some((name(term), name((*parent)?)))).collect()
    }

    /// How YES is found from the tallies; none if they do not depend on the truth.
    pub fn solve(&self) -> Option<Solution> {
        solution::solve(&self.coupled, &self.channel)
    }
}

/// The mechanism of some cells: of the paper's family, or else given by its cells.
fn mechanism(cells: &[ExactCell]) -> Result<Mechanism> {
    if let Some(known) = family::recognize(cells) {
        return Ok(known);
    }
    let channel = law::round(cells)?;
    // The shares as written, unless they are too long to read back or their rounding is not the one taken.
    match as_written(cells).filter(|written| written.channel() == channel) {
        Some(written) => Ok(written),
        None => Ok(Mechanism::Custom(Custom::new(channel)?)),
    }
}

fn as_written(cells: &[ExactCell]) -> Option<Mechanism> {
    let text = |cell: &ExactCell| format!("{}={}:{}", name_of(&cell.outputs), cell.yes, cell.no);
    let cells: Vec<String> = cells.iter().map(text).collect();
    format!("custom({})", cells.join(", ")).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Cell;
    use crate::fraction::Fraction;
    use proptest::prelude::*;
    use syntax::Population;

    /// What an output holds of a population, summed as it is written.
    fn written(program: &Program, content: &[(usize, i64)], population: Population) -> f64 {
        let terms = &program.coupled.terms;
        let held = content.iter().filter(|(term, _)| terms[*term].population.covers(population));
        held.map(|(term, sign)| *sign as f64 * terms[*term].share.to_f64()).sum()
    }

    /// The coupling gives every answer the law that its equations state.
    fn assert_outputs_hold_what_is_written(program: &Program) {
        for (bin, content) in &program.coupled.contents {
            let crate::PerTruth { yes, no } = program.channel().bin_law(*bin);
            assert!((written(program, content, Population::Yes) - yes.to_f64()).abs() < 1e-12, "{bin:?}");
            assert!((written(program, content, Population::No) - no.to_f64()).abs() < 1e-12, "{bin:?}");
        }
    }

    const EXAMPLES: [&str; 8] = [
        include_str!("../../../../examples/plausible-deniability.alg"),
        include_str!("../../../../examples/cancelling.alg"),
        include_str!("../../../../examples/first-attempt.alg"),
        include_str!("../../../../examples/third-output.alg"),
        include_str!("../../../../examples/sampling.alg"),
        include_str!("../../../../examples/noisy-sampling.alg"),
        include_str!("../../../../examples/deniable-sampling.alg"),
        include_str!("../../../../examples/tuned.alg"),
    ];

    #[test]
    fn outputs_hold_what_is_written_in_every_example() {
        for text in EXAMPLES {
            assert_outputs_hold_what_is_written(&Program::parse(text).unwrap());
        }
    }

    #[test]
    fn nested_terms_are_found() {
        let program = Program::parse(EXAMPLES[0]).unwrap();
        assert!(program.nested().contains(&("NO_f21", "NO_f2")));
        assert!(program.nested().contains(&("NO_f2", "NO_N")));
        let program = Program::parse(EXAMPLES[2]).unwrap();
        assert!(program.nested().contains(&("YES_Y'", "TOTAL_1")));
    }

    /// Rounded one by one, the remainder of each law would go to 22, and its class would split by a unit.
    #[test]
    fn cells_that_are_the_same_have_one_integer() {
        let plain = Channel::parse_cells("11=0.2:0.2, 22=0.4:0.4, 12=0.2:0.1, 21=0.2:0.3").unwrap();
        assert_ne!(plain.cells()[1].yes(), plain.cells()[1].no(), "this channel no longer tests anything");
        let program = Program::parse(
            "let TOTAL_1 = 0.2 * TOTAL\nlet TOTAL_2 = 0.4 * TOTAL\nlet YES_12 = 0.2 * YES\nlet NO_12 = 0.1 * NO
             let YES_21 = 0.2 * YES\nlet NO_21 = 0.3 * NO
             A1 = TOTAL_1 + YES_12 + NO_12\nA2 = TOTAL_2 + YES_21 + NO_21
             B1 = TOTAL_1 + YES_21 + NO_21\nB2 = TOTAL_2 + YES_12 + NO_12",
        )
        .unwrap();
        let cells = program.channel().cells();
        assert!(cells[..2].iter().all(|cell| cell.yes() == cell.no()));
        assert_eq!(program.mechanism().channel().cells(), cells);
        assert_outputs_hold_what_is_written(&program);
    }

    #[test]
    fn a_channel_has_no_more_cells_than_it_may() {
        let mut text = String::new();
        for term in 0..65 {
            text.push_str(&format!("let TOTAL_{term} = 1/65 * TOTAL\n"));
        }
        for answer in ['A', 'B'] {
            for output in 0..8 + usize::from(answer == 'A') {
                let lies = |term: usize| (if answer == 'A' { term % 9 } else { term / 9 }) == output;
                let held: Vec<String> =
                    (0..65).filter(|&term| lies(term)).map(|term| format!("TOTAL_{term}")).collect();
                text.push_str(&format!("{answer}{output} = {}\n", held.join(" + ")));
            }
        }
        let error = Program::parse(&text).unwrap_err();
        assert!(error.to_string().starts_with("line 65: TOTAL_64 is in a cell of its own"), "{error}");
    }

    /// 64 cells of 12 answers with all ten digits: the bit sets and the limit of terms hold them.
    #[test]
    fn a_channel_of_the_most_cells_goes_there_and_back() {
        let digit = |cell: usize, answer: usize| char::from(b'0' + ((cell * (answer + 3) + cell / 7) % 10) as u8);
        let names: Vec<String> = (0..64).map(|cell| (0..12).map(|answer| digit(cell, answer)).collect()).collect();
        let cells = names.iter().enumerate().map(|(cell, name)| {
            let no = [1, 3][cell % 2];
            format!("{name}=1/64:{no}/128")
        });
        let channel = Channel::parse_cells(&cells.collect::<Vec<_>>().join(",")).unwrap();
        let program = Program::of_channel(&channel).unwrap();
        assert_eq!(program.channel(), &channel);
        assert!(program.solve().is_some());
    }

    #[test]
    fn absurdly_fine_shares_cost_nothing() {
        let mut text = "let a0 = 1e-300\n".to_owned();
        (1..60).for_each(|power| text.push_str(&format!("let a{power} = a{} * a{}\n", power - 1, power - 1)));
        let error = Program::parse(&text).unwrap_err();
        assert!(error.is_parameter() && error.to_string().contains("too fine"), "{error}");
        let deep = format!("let x = {}1{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(Program::parse(&deep).unwrap_err().to_string().contains("too many brackets"));
    }

    fn share() -> impl Strategy<Value = Fraction> {
        (0u64..=40, 40u64..=200).prop_map(|(numerator, denominator)| Fraction::new(numerator, denominator).unwrap())
    }

    /// Integer weights, and at times the same again with two cells swapped: parts that move within a whole.
    fn channels() -> impl Strategy<Value = Channel> {
        let shape =
            proptest::collection::vec(proptest::sample::subsequence(vec!['1', '2', '3', '0', '⊥'], 1..=4), 1..=4);
        (shape, proptest::collection::vec((any::<u16>(), 0u64.., 0u64..), 1..=14), any::<bool>(), any::<bool>())
            .prop_map(|(answers, picks, turned, swapped)| random_channel(&answers, &picks, turned, swapped))
    }

    fn random_channel(answers: &[Vec<char>], picks: &[(u16, u64, u64)], turned: bool, swapped: bool) -> Channel {
        let mut answers: Vec<Vec<_>> = (answers.iter())
            .map(|outputs| outputs.iter().map(|&symbol| crate::Output::new(symbol).unwrap()).collect())
            .collect();
        if turned {
            answers.iter_mut().for_each(|outputs| outputs.reverse());
        }
        let mut names: Vec<Vec<crate::Output>> = Vec::new();
        for (pick, ..) in picks {
            let mut rest = usize::from(*pick);
            let mut cell = Vec::new();
            for outputs in &answers {
                cell.push(outputs[rest % outputs.len()]);
                rest /= outputs.len();
            }
            if !names.contains(&cell) {
                names.push(cell);
            }
        }
        let law = |weight: fn(&(u16, u64, u64)) -> u64| -> Vec<crate::Probability> {
            let count = names.len();
            let grid = |numerator: u128| crate::Probability::from_numerator(numerator).unwrap();
            let mut parts: Vec<u128> =
                picks.iter().take(count).map(|pick| u128::from(weight(pick)) / count as u128).collect();
            // Every fourth cell is impossible at times.
            parts.iter_mut().skip(1).filter(|part| **part % 4 == 0).for_each(|part| *part = 0);
            parts[0] += (1 << 64) - parts.iter().sum::<u128>();
            parts.into_iter().map(grid).collect()
        };
        let yes = law(|pick| pick.1);
        let mut no = if swapped { yes.clone() } else { law(|pick| pick.2) };
        if swapped && names.len() > 2 {
            let last = names.len() - 1;
            no.swap(last, last - 1);
        }
        let cells = names.into_iter().zip(yes.into_iter().zip(no));
        Channel::new(answers, cells.map(|(outputs, (yes, no))| Cell::new(outputs, yes, no)).collect()).unwrap()
    }

    proptest! {
        #[test]
        fn a_channel_printed_and_compiled_is_itself(channel in channels()) {
            let text = to_text(&channel);
            let program = Program::parse(&text).unwrap();
            prop_assert_eq!(program.channel(), &channel, "{}", text);
            let mechanism = program.mechanism().channel();
            prop_assert_eq!(mechanism.cells(), channel.cells());
            let again: Mechanism = program.mechanism().to_string().parse().unwrap();
            prop_assert_eq!(again.channel(), mechanism);
            assert_outputs_hold_what_is_written(&program);
        }

        #[test]
        fn a_solution_is_unbiased(channel in channels()) {
            let program = Program::of_channel(&channel).unwrap();
            if let Some(solution) = program.solve() {
                let mean = |yes: bool| -> f64 {
                    let law = |bin| channel.bin_law(bin)[crate::Truth::from_bool(yes)];
                    solution.bins.iter().map(|(bin, weight)| *weight as f64 * law(*bin).to_f64()).sum()
                };
                prop_assert!((mean(true) - solution.yes).abs() < 1e-9 && (mean(false) - solution.no).abs() < 1e-9);
                prop_assert!(solution.variance_per_no >= 0.0 && solution.variance_per_yes >= 0.0);
                prop_assert_eq!(solution.noise_from_no, solution.variance_per_no > 0.0);
            }
        }

        /// Shares that no grid holds round as the family rounds them.
        #[test]
        fn blended_in_any_numbers_has_the_family_s_integers(
            b2 in share(), b3 in share(), f1 in share(), f2 in share(), ry in share(), rn in share(), b1 in share(),
        ) {
            let quarter = Fraction::new(1, 4).unwrap();
            let [b2, b3, f1, f2] = [b2, b3, f1, f2].map(|part| part.times(&quarter));
            let rest = b2.plus(&b3).unwrap().plus(&f1).unwrap().plus(&f2).unwrap().complement();
            let (b1, ry, rn) = (b1.times(&rest), ry.times(&f2), rn.times(&f2));
            let family = format!("blended(b1={b1},b2={b2},b3={b3},f1={f1},f2={f2},ry={ry},rn={rn})");
            let number = |line: &&str| ["let b", "let f", "let r"].iter().any(|start| line.starts_with(start));
            let body: Vec<&str> = EXAMPLES[0].lines().filter(|line| !number(line)).collect();
            let text = format!(
                "let b1 = {b1}\nlet b2 = {b2}\nlet b3 = {b3}\nlet f1 = {f1}\nlet f2 = {f2}\nlet ry = {ry}\nlet rn = {rn}\n{}",
                body.join("\n")
            );
            let program = Program::parse(&text).unwrap();
            let family: Mechanism = family.parse().unwrap();
            prop_assert_eq!(program.channel(), &family.channel());
            prop_assert_eq!(program.mechanism().to_string(), family.to_string());
        }

        #[test]
        fn paired_and_cancelling_in_any_numbers_have_the_family_s_integers(b in share(), y in share(), n in share()) {
            let half = Fraction::new(1, 2).unwrap();
            let (base, yes, no) = (b.plus(&half).unwrap_or(half.clone()), y.times(&half), n.times(&half));
            let small = base.complement().min(half.clone());
            let (yes, no) = (yes.times(&small), no.times(&small));
            let text = format!(
                "let TOTAL_1 = {base} * TOTAL\nlet YES_Y = {yes} * YES\nlet NO_N = {no} * NO\nlet YES_Z = {yes} * YES
                 let NO_M = {no} * NO\nlet TOTAL_2 = {} * TOTAL
                 A1 = TOTAL_1 + YES_Y + NO_N\nA2 = TOTAL_2 - YES_Y - NO_N
                 B1 = TOTAL_1 - YES_Z - NO_M\nB2 = TOTAL_2 + YES_Z + NO_M",
                base.complement()
            );
            let family: Mechanism = format!("paired(b={base},sy={yes},sn={no})").parse().unwrap();
            let program = Program::parse(&text).unwrap();
            prop_assert_eq!(program.channel(), &family.channel());

            let (b2, b3) = (y.times(&half), n.times(&half).times(&half));
            let shift = b.times(&b2.plus(&b3).unwrap().complement());
            let b1 = b2.plus(&b3).unwrap().plus(&shift).unwrap().complement();
            let text = format!(
                "let TOTAL_1 = {b1} * TOTAL\nlet TOTAL_2 = {b2} * TOTAL\nlet TOTAL_3 = {b3} * TOTAL
                 let YES_Y = {shift} * YES\nlet NO_N = {shift} * NO
                 A1 = TOTAL_1 + YES_Y\nA2 = TOTAL_2 + NO_N\nA3 = TOTAL_3
                 B1 = TOTAL_1\nB2 = TOTAL_2\nB3 = TOTAL_3 + YES_Y + NO_N"
            );
            let family: Mechanism = format!("cancelling(b1={b1},b2={b2},b3={b3},s={shift})").parse().unwrap();
            let program = Program::parse(&text).unwrap();
            prop_assert_eq!(program.channel(), &family.channel());
        }

        #[test]
        fn no_text_panics(text in "(let |TOTAL_1|YES_Y|NO_f|NO|YES|[A-C][0-3⊥]| = |\\+|-|\\*|0\\.5|1/3|in |\\(|\\)|\n|.){0,60}") {
            if let Err(error) = Program::parse(&text) {
                prop_assert!(error.hint().is_some() && error.to_string().starts_with("line "));
                prop_assert!(error.to_string().ends_with('^'));
            }
        }
    }
}
