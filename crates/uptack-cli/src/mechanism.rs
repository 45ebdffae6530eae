//! The MECHANISM argument: a text, or a file that holds one, as JSON or as privacy algebra.

use std::path::Path;

use serde::Deserialize;
use uptack::algebra::Program;
use uptack::card::Card;
use uptack::mechanism::{Custom, Noisy};
use uptack::{Cell, Channel, DiscreteLaplace, Mechanism, Output, Probability};

use crate::card_file;
use crate::failure::Failure;
use crate::output::read_small_file;

/// A mechanism with its channel.
pub(crate) struct Named {
    pub(crate) mechanism: Mechanism,
    pub(crate) channel: Channel,
    /// The card that it came from.
    pub(crate) card: Option<Card>,
}

impl Named {
    fn new(mechanism: Mechanism) -> Self {
        let channel = mechanism.channel();
        Self { mechanism, channel, card: None }
    }

    fn from_card(card: Card) -> Result<Self, Failure> {
        let channel = card.checked_channel()?;
        Ok(Self { mechanism: card.mechanism.clone(), channel, card: Some(card) })
    }
}

/// Reads the argument.
pub(crate) fn read(argument: &str) -> Result<Named, Failure> {
    let path = Path::new(argument);
    if argument.contains('(') || !path.exists() {
        return Ok(Named::new(argument.parse::<Mechanism>().map_err(|error| neither(argument, error))?));
    }
    if is_algebra(path) {
        return Ok(Named::new(read_algebra(path)?.mechanism().clone()));
    }
    let text = read_small_file(path)?;
    let named = if card_file::is_toml(path) || text.contains("\"minimum_batch\"") {
        Named::from_card(card_file::parse(path, &text)?)
    } else {
        from_json(&text)
    };
    named.map_err(|failure| failure.at(path.display()))
}

/// Whether a file is named as privacy algebra.
pub(crate) fn is_algebra(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("alg"))
}

/// Compiles a file of privacy algebra; an error names the file, the line and the term.
pub(crate) fn read_algebra(path: &Path) -> Result<Program, Failure> {
    let text = read_small_file(path)?;
    Program::parse(&text).map_err(|error| Failure::from(error).at(path.display()))
}

fn neither(argument: &str, error: uptack::Error) -> Failure {
    if argument.contains('(') {
        return error.into();
    }
    Failure::request(format!("`{argument}` is neither a mechanism nor a file"))
        .with_hint("a mechanism is written name(key=value, …), as in normal-form(f=0.5,r=8.2e-5)")
}

/// What `uptack channel --json` prints; more fields may stand beside these.
#[derive(Deserialize)]
struct File {
    mechanism: Option<Mechanism>,
    answers: Option<Vec<Vec<Output>>>,
    exact: Option<Exact>,
    noise: Option<DiscreteLaplace>,
}

#[derive(Deserialize)]
struct Exact {
    bits: u32,
    cells: Vec<Cell>,
}

fn from_json(text: &str) -> Result<Named, Failure> {
    let file: File = serde_json::from_str(text).map_err(|error| {
        Failure::request(format!("not a mechanism's JSON: {error}"))
            .with_hint("`uptack channel MECHANISM --json` writes one")
    })?;
    let stated = file.exact.map(|exact| exact.channel(file.answers)).transpose()?;
    match (file.mechanism, stated) {
        (Some(mechanism), stated) => {
            let named = Named::new(mechanism);
            if stated.is_some_and(|stated| stated.cells() != named.channel.cells()) {
                return Err(Failure::request(format!("the integers are not those of {}", named.mechanism))
                    .with_hint("one of the two was changed; remove the one that you do not mean"));
            }
            if file.noise.is_some_and(|noise| named.channel.noise() != Some(&noise)) {
                return Err(Failure::request(format!("the noise is not that of {}", named.mechanism))
                    .with_hint("one of the two was changed; remove the one that you do not mean"));
            }
            Ok(named)
        }
        (None, Some(stated)) => {
            let custom = Mechanism::Custom(Custom::new(stated)?);
            Ok(Named::new(match file.noise {
                Some(noise) => Mechanism::Noisy(Noisy::new(custom, noise)?),
                None => custom,
            }))
        }
        (None, None) => Err(Failure::request("neither `mechanism` nor `exact` is in it")),
    }
}

impl Exact {
    fn channel(self, answers: Option<Vec<Vec<Output>>>) -> Result<Channel, Failure> {
        if self.bits != Probability::BITS {
            return Err(Failure::request(format!("integers over 2^{}, not 2^{}", self.bits, Probability::BITS)));
        }
        Ok(match answers {
            Some(answers) => Channel::new(answers, self.cells)?,
            None => Channel::from_cells(self.cells)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_whose_integers_were_changed_is_refused() {
        let half = "9223372036854775808";
        let json = format!(
            r#"{{"mechanism":"randomized-response(t=0.5)","exact":{{"bits":64,"cells":[
                {{"outputs":["1"],"yes":"{half}","no":"{half}"}},{{"outputs":["0"],"yes":"{half}","no":"{half}"}}]}}}}"#
        );
        assert!(from_json(&json).is_ok());
        let other = json.replace("t=0.5", "t=0.25");
        assert!(from_json(&other).is_err());
        let custom = json.replace(r#""mechanism":"randomized-response(t=0.5)","#, "");
        assert_eq!(from_json(&custom).unwrap().mechanism.to_string(), "custom(1=0.5:0.5, 0=0.5:0.5)");
        let noisy = custom.replacen('{', r#"{"noise":{"law":"discrete-laplace","scale":"2"},"#, 1);
        let noisy = from_json(&noisy).unwrap().mechanism.to_string();
        assert_eq!(noisy, "custom(1=0.5:0.5, 0=0.5:0.5) + laplace(scale=2)");
        let contradicting = json.replacen('{', r#"{"noise":{"law":"discrete-laplace","scale":"2"},"#, 1);
        assert!(from_json(&contradicting).is_err());
        assert!(from_json("{}").is_err() && from_json("[").is_err());
        assert!(from_json(&json.replace("64", "32")).is_err());
    }
}
