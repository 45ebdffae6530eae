//! The guarantee in plain words (`docs/accounting.md`, "What a guesser gains").

use super::bayes_accuracy::BayesAccuracy;
use crate::channel::{Channel, answer_name};
use crate::display::{self, Rounding};
use crate::privacy::{Accountant, Guarantee, Repeated, Target, View, Views, answer_epsilon};

/// What somebody can conclude from each view, and what is not protected, for a reader without mathematics.
pub fn statement(channel: &Channel, views: &Views, accountant: &Accountant, repeated: Option<&Repeated>) -> String {
    let mut parts = vec![answers(channel)];
    if channel.answers().len() > 1 {
        let accuracy = BayesAccuracy::from_linked(channel);
        let what = "Whoever sees all answers of one person, side by side,";
        parts.push(format!("{what} {}", conclusion(accuracy, views.linked.is_some())));
    }
    parts.push(release(views, accountant));
    parts.extend(joint(views));
    parts.extend(repeated.map(repetition));
    parts.push(limits(views, repeated));
    parts.join("\n\n")
}

fn answers(channel: &Channel) -> String {
    let accuracies: Vec<BayesAccuracy> =
        (0..channel.answers().len()).map(|answer| BayesAccuracy::from_answer(channel, answer)).collect();
    let finite = |answer: usize| answer_epsilon(channel, answer).is_ok_and(|epsilon| epsilon.is_some());
    if let [accuracy] = accuracies[..] {
        return format!("Whoever sees one person's answer {}", conclusion(accuracy, finite(0)));
    }
    let sentence = |(answer, accuracy): (usize, &BayesAccuracy)| {
        format!(
            "Whoever sees one person's answer {}, alone, {}",
            answer_name(answer),
            conclusion(*accuracy, finite(answer))
        )
    };
    accuracies.iter().enumerate().map(sentence).collect::<Vec<_>>().join("\n")
}

fn conclusion(accuracy: BayesAccuracy, finite: bool) -> String {
    if accuracy.even < 0.5 + 1e-9 {
        return "learns nothing from it.".to_owned();
    }
    let certain = if finite { "" } else { " Some answers give the truth away for certain." };
    format!(
        "can guess the truth right at most {} of the time where it was a toss-up before, and at most {} where it was \
         99 % sure before.{certain}",
        percent(accuracy.even),
        percent(accuracy.rare)
    )
}

fn release(views: &Views, accountant: &Accountant) -> String {
    let claim = &views.release;
    let who = "Whoever sees the published counts, and even knows everybody else's truth,";
    if claim.floor() > 0.0 {
        return format!(
            "{who} can be certain of one person's truth with a probability of {}: a lone person among {} others of \
             whom {} hold yes shows. That is no guarantee.",
            percent(claim.floor()),
            claim.owners() - 1,
            claim.crowd()
        );
    }
    let accuracy = BayesAccuracy::from_release(accountant, claim);
    format!(
        "{who} can guess one person's truth right at most {} of the time where it was a toss-up before, and at most {} \
         where it was 99 % sure before. This counts on {} people who toss their coins.",
        percent(accuracy.even),
        percent(accuracy.rare),
        claim.owners()
    )
}

fn joint(views: &Views) -> Option<String> {
    let worse = |claim: &&Guarantee| loss(claim) > loss(&views.release) * 1.01 + 1e-12;
    let worst = views.answers_with_release.iter().filter(worse).max_by(|a, b| loss(a).total_cmp(&loss(b)))?;
    let View::AnswerWithRelease(answer) = worst.view() else { return None };
    let which = match views.answers.len() {
        1 => "one person's answer".to_owned(),
        _ => format!("one person's answer {}", answer_name(answer)),
    };
    Some(format!(
        "Whoever sees both the counts and {which} learns more than from either: {}. So the guarantee of the counts holds \
         only while nobody sees a single answer; that is what the private write is for.",
        claim_words(worst)
    ))
}

/// A number that grows with what is given away.
fn loss(claim: &Guarantee) -> f64 {
    claim.value().map_or(f64::INFINITY, |value| value.upper())
}

fn claim_words(claim: &Guarantee) -> String {
    match (claim.target(), claim.value()) {
        (Target::Delta(delta), Some(value)) => {
            format!("ε = {} at δ = {}", display::claim(value.upper()), display::claim(delta.value()))
        }
        (Target::Epsilon(epsilon), Some(value)) => {
            format!("δ = {} at ε = {}", display::claim(value.upper()), display::claim(epsilon.value()))
        }
        (_, None) => "there is no guarantee".to_owned(),
    }
}

fn repetition(repeated: &Repeated) -> String {
    let times = repeated.times;
    match (repeated.release, repeated.linked) {
        (Some(release), _) => format!(
            "Somebody who answers {times} times, with fresh coins each time, gives away more: all {times} published counts \
             together have {} for what one of them has above.",
            display::claim(release.upper())
        ),
        (None, _) => format!("Somebody who answers {times} times has no guarantee for all the counts together."),
    }
}

fn limits(views: &Views, repeated: Option<&Repeated>) -> String {
    let linked = match (repeated, views.linked) {
        (Some(Repeated { times, linked: Some(epsilon), .. }), _) if *times > 1 => {
            format!(
                "what all answers of one person to all {times} queries give away (ε = {})",
                display::claim(*epsilon)
            )
        }
        (_, Some(epsilon)) => format!("what all answers of one person give away (ε = {})", display::claim(epsilon)),
        (_, None) => "no guarantee at all".to_owned(),
    };
    format!(
        "Not protected: that somebody was asked; what is true of the whole crowd, or follows from it for anybody; and \
         other places where the truth can be seen. Whoever can invent people or drop reports leaves {linked}. Every \
         further question costs again."
    )
}

/// Rounded up, so that the words are never better than the number.
fn percent(share: f64) -> String {
    display::percent(share, 4, Rounding::Up)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mechanism;
    use crate::privacy::{Delta, WorkLimit, release};

    fn words(text: &str, owners: u64) -> String {
        let channel = text.parse::<Mechanism>().unwrap().channel();
        let target = Target::Delta(Delta::new(1e-8).unwrap());
        let views = Views::of(&channel, owners, target, WorkLimit::default()).unwrap();
        statement(&channel, &views, &release(&channel, owners).unwrap(), None)
    }

    #[test]
    fn says_what_can_be_concluded() {
        let text = words("randomized-response(t=0.8)", 5000);
        assert!(text.contains("Whoever sees one person's answer can guess the truth right at most 80 %"), "{text}");
        assert!(text.contains("Not protected"), "{text}");
        let text = words("cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.1)", 5000);
        assert!(text.contains("That is no guarantee") && text.contains("10 %"), "{text}");
        assert!(text.contains("answer B, alone, learns nothing"), "{text}");
        assert!(text.contains("leaves no guarantee at all"), "{text}");
    }

    #[test]
    fn words_are_never_better_than_numbers() {
        assert_eq!(percent(0.500_000_1), "50.0001 %");
        assert_eq!(percent(0.8), "80 %");
        for t in ["0.55", "0.57", "0.7", "0.9"] {
            let text = words(&format!("randomized-response(t={t})"), 50);
            assert!(text.contains(&format!("at most {} % of the time", &(t.to_owned() + "0")[2..4])), "{text}");
        }
        // As every other place prints it.
        let text = words("randomized-response(t=0.8)", 5000);
        assert!(text.contains(&format!("(ε = {})", display::claim(4f64.ln()))), "{text}");
    }
}
