//! Noise in an equation: `A1 = TOTAL_1 + YES_Y + laplace(scale=2)`.
//!
//! It is not a term: nobody holds it, and each of the two aggregators adds it to the count of `A1` that is published.

use super::fault::{Fault, Result, Span};
use super::lexer::{Token, TokenKind};
use crate::channel::{Bin, Output};
use crate::error::Error;
use crate::noise::NoiseLaw;

/// The tokens of an equation, and those of the noise that is added at its end.
pub(super) fn split<'t, 'a>(tokens: &'t [Token<'a>]) -> (&'t [Token<'a>], Option<&'t [Token<'a>]>) {
    let added = |pair: &[Token<'_>]| pair[0].kind == TokenKind::Plus && NoiseLaw::is_name(pair[1].text);
    match tokens.windows(2).position(added) {
        Some(place) => (&tokens[..place], Some(&tokens[place + 1..])),
        None => (tokens, None),
    }
}

/// Reads what is added to an output; only the output `1` can have noise.
pub(super) fn read(text: &str, bin: Bin, tokens: &[Token<'_>]) -> Result<(NoiseLaw, Span)> {
    let span = Span { start: tokens[0].span.start, end: tokens[tokens.len() - 1].span.end };
    if bin.output != Output::ONE {
        return Err(Fault::syntax(
            span,
            "noise is added to an output that is not 1",
            "what is published with noise is the number of answers 1: add it to A1",
        ));
    }
    match text[span.start..span.end].parse() {
        Ok(noise) => Ok((noise, span)),
        Err(error) => Err(unreadable(span, &error)),
    }
}

fn unreadable(span: Span, error: &Error) -> Fault {
    let hint = error.hint().unwrap_or("noise is written laplace(scale=2), at the end of A1");
    Fault::parameter(span, error.to_string(), hint)
}

#[cfg(test)]
mod tests {
    use crate::Mechanism;
    use crate::algebra::{Program, to_text};

    #[test]
    fn noise_goes_there_and_back() {
        for text in [
            "randomized-response(t=0.8) + laplace(scale=2.5)",
            "normal-form(f=0.5,r=0.01) + laplace(scale=1/3)",
            "custom(0=0.5:0.75, 1=0.5:0.25) + laplace(scale=10)",
            "randomized-response(t=1) + laplace(scale=1)",
        ] {
            let channel = text.parse::<Mechanism>().unwrap().channel();
            let written = to_text(&channel);
            let program = Program::parse(&written).unwrap();
            assert_eq!(program.channel(), &channel, "{written}");
            assert_eq!(program.mechanism().channel().noise(), channel.noise());
            assert_eq!(program.mechanism().channel().cells(), channel.cells());
        }
    }

    /// The sd of the working backwards is that of the estimator: only the ones are published.
    #[test]
    fn the_solution_knows_of_the_noise() {
        let text = "normal-form(f=0.5,r=0.01) + laplace(scale=3)";
        let channel = text.parse::<Mechanism>().unwrap().channel();
        let solution = Program::of_channel(&channel).unwrap().solve().unwrap();
        assert_eq!(solution.combination, "A1");
        let sd = crate::estimate::Estimator::new(&channel).unwrap().sd(5000, 100.0).unwrap();
        assert!((solution.sd(5000, 100).unwrap() / sd - 1.0).abs() < 1e-9);
    }

    #[test]
    fn noise_in_the_wrong_place_is_refused_there() {
        let text = |one: &str, zero: &str| {
            format!(
                "let YES_1 = 0.8 * YES\nlet NO_1 = 0.2 * NO\nlet YES_0 = 0.2 * YES\nlet NO_0 = 0.8 * NO\n\
                     A1 = YES_1 + NO_1{one}\nA0 = YES_0 + NO_0{zero}\n"
            )
        };
        assert!(Program::parse(&text(" + laplace(scale=2)", "")).is_ok());
        for (one, zero, line) in [
            ("", " + laplace(scale=2)", "line 6"),
            (" + laplace(scale=0)", "", "line 5"),
            (" + laplace", "", "line 5"),
            (" + laplace(scale=2) + YES_1", "", "line 5"),
            (" + laplace(scale=1) + laplace(scale=1)", "", "line 5"),
        ] {
            let error = Program::parse(&text(one, zero)).unwrap_err();
            assert!(error.to_string().starts_with(line), "{error}");
        }
        let two = "let TOTAL_1 = 1 * TOTAL\nA1 = TOTAL_1\nB1 = TOTAL_1 + laplace(scale=1)";
        let error = Program::parse(two).unwrap_err().to_string();
        assert!(error.starts_with("line 3: noise cannot be added to the tallies of several answers"), "{error}");
    }
}
