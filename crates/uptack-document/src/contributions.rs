//! Mechanisms of contributions as documents: their law, and everything that is said about their options.

use serde_json::{Value, json};
use uptack::contribution::Contributions;

use crate::channel::{ChannelDocument, StatedLaw};

/// The law of a mechanism of contributions as JSON. One that is a yes/no mechanism, too, also has the fields of that one.
pub fn contributions_json(contributions: &Contributions) -> Value {
    let (law, count) = (contributions.law(), contributions.count_law());
    let mut document = json!({
        "mechanism": contributions.to_string(),
        "options": contributions.options(),
        "counts": contributions.counts(),
        "most": contributions.most(),
        "told": law.told().to_f64(),
        "other": law.other().to_f64(),
        "silent": law.silent().to_f64(),
        "p": count.yes.to_f64(),
        "q": count.no.to_f64(),
        "exact": StatedLaw::of(law).json(),
        "noise": contributions.noise(),
    });
    if let Some(yes_no) = contributions.yes_no() {
        let channel = yes_no.channel();
        let binary = json!(ChannelDocument::new(yes_no.to_string(), &channel));
        for field in ["answers", "cells", "determined"] {
            document[field] = binary[field].clone();
        }
        document["exact"]["cells"] = binary["exact"]["cells"].clone();
    }
    document
}

#[cfg(test)]
mod tests {
    use uptack::contribution::AnyMechanism;

    use super::*;
    use crate::any_mechanism_from_json;

    fn document(text: &str) -> Value {
        contributions_json(&text.parse().unwrap())
    }

    #[test]
    fn a_document_is_the_mechanism_that_it_states() {
        for text in [
            "choice(k=4,f=1,r=0.001)",
            "choice(k=2,f=0.5,r=0.1) + laplace(scale=2)",
            "contributions(counts=288,most=5,r=1e-5) + laplace(scale=3/7)",
        ] {
            let stated = document(text);
            let read = any_mechanism_from_json(&stated.to_string()).unwrap();
            assert_eq!(read, text.parse::<AnyMechanism>().unwrap());
            let mut changed = stated.clone();
            changed["exact"]["other"] = json!("1");
            assert!(any_mechanism_from_json(&changed.to_string()).is_err(), "{text}");
        }
    }

    #[test]
    fn two_options_have_the_cells_of_their_yes_no_mechanism() {
        let two = document("choice(k=2,f=0.5,r=0.1)");
        assert_eq!(two["answers"], json!([["1", "0", "⊥"]]));
        assert_eq!((&two["options"], &two["counts"]), (&json!(2), &json!(1)));
        assert_eq!(two["cells"][0]["yes"], two["told"]);
        assert!(document("choice(k=3,f=0.5,r=0.1)")["cells"].is_null());
    }
}
