//! Numbers and headings in the words of the report.

use uptack::display::{self, Rounding};

use crate::compare::Comparison;
use crate::evaluation::Evaluation;

/// A measured value to four digits, which is more than trials can tell, with its thousands separated; a dash if it is not
/// finite.
pub fn measured(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let plain = display::rounded(value, 4, Rounding::Nearest);
    let (whole, part) = plain.split_once('.').map_or((plain.as_str(), None), |(whole, part)| (whole, Some(part)));
    // Negative numbers and those with an exponent stay as they are.
    let whole = whole.parse::<u64>().map_or(whole.to_owned(), display::grouped);
    part.map_or(whole.clone(), |part| format!("{whole}.{part}"))
}

pub(crate) fn percent(value: impl Into<Option<f64>>) -> String {
    value.into().map_or("–".to_owned(), |value| display::percent(value, 1, Rounding::Nearest))
}

/// What all methods of a comparison have in common.
pub(crate) fn heading(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Trust => "At equal ε of the release, by who must be honest",
        Comparison::Ballot => "All stations in one ballot, at equal ε of its release",
        Comparison::Paper => "The paper's settings",
        Comparison::Release => "At equal guarantee of the release",
        Comparison::Answer => "At equal ε of a single answer",
        Comparison::Linked => "At equal ε of the whole report",
    }
}

impl Evaluation {
    /// The guarantee at which methods are compared; none if they differ in it.
    pub(crate) fn level(&self, comparison: Comparison) -> Option<String> {
        let levels = &self.settings.levels;
        let epsilon = format!("ε = {}", display::claim(levels.epsilon(comparison)?));
        Some(match comparison {
            Comparison::Trust | Comparison::Release | Comparison::Ballot => {
                format!("{epsilon}, δ = {}", display::claim(levels.release.delta))
            }
            _ => epsilon,
        })
    }
}

/// What the guarantee means, and what it does not.
pub(crate) fn explanation(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Trust => {
            "Nobody: the promise holds against whoever sees the report itself. The owners: the other owners toss their \
             coins as they should, nobody invents owners, and nobody sees a single report; δ is what it says. One \
             aggregator: one of the two adds its noise, once, and keeps it and its shares to itself; nothing is assumed of \
             any owner, and δ = 0. The curator sees every truth; with discrete Laplace noise δ = 0. ε linked is what \
             is left if nobody is honest: “none” means that an owner's truth is plain then. At a fixed linked ε the \
             error grows like the root of the crowd."
        }
        Comparison::Ballot => {
            "Each owner is at exactly one station and answers for all of them: by moving it changes two of the published \
             counts, which share ε. The frequency oracles hide the whole place in one report and assume nobody; the planned \
             normal form has (ε/2, δ/2) for each count and assumes the owners; with noise one honest aggregator is enough. \
             ε linked is that of the whole ballot."
        }
        Comparison::Paper => {
            "Their guarantees differ, so that their errors cannot be compared; “none” in the column of the release means \
             that a lone owner can be seen."
        }
        Comparison::Release => {
            "Whoever sees the tallies learns no more than this of anybody, provided that nobody sees a single answer. \
             Local methods keep it, too, at this local ε, and pay for the stronger promise. A trusted curator sees \
             every truth."
        }
        Comparison::Answer => {
            "Whoever sees one of an owner's answers learns no more than this. Methods of several answers need parties \
             that do not put them together; their releases keep the guarantee of the comparison above."
        }
        Comparison::Linked => {
            "Whoever sees all that an owner writes learns no more than this. With a yes or no truth every such method is a \
             garbling of randomized response, so nothing is better: it is shown here."
        }
    }
}

/// The names as “A”, “A and B” or “A, B and C”.
pub(crate) fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => one.to_string(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        let cases = [
            (195_703.4, "195 703"),
            (6828.35, "6 828"),
            (0.99553, "0.9955"),
            (0.25, "0.25"),
            (-1234.0, "-1234"),
            (f64::NAN, "–"),
        ];
        for (value, text) in cases {
            assert_eq!(measured(value), text);
        }
    }

    #[test]
    fn names_are_listed_as_in_a_sentence() {
        assert_eq!([&["A"][..], &["A", "B"], &["A", "B", "C"]].map(listed), ["A", "A and B", "A, B and C"]);
    }
}
