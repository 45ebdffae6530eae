//! The guarantee in plain words (`docs/accounting.md`, "What a guesser gains").

use super::bayes_accuracy::BayesAccuracy;
use crate::channel::{Channel, answer_name};
use crate::display::{self, Rounding};
use crate::privacy::{self, Accountant, Enclosure, Guarantee, Repeated, Target, View, Views, answer_epsilon};

/// What somebody can conclude from each view, and what is not protected, for readers who are not mathematicians.
pub fn statement(channel: &Channel, views: &Views, accountant: &Accountant, repeated: Option<&Repeated>) -> String {
    let mut parts = vec![answers(channel)];
    parts.extend(linked(channel, views));
    parts.extend(one_aggregator(channel, views));
    parts.push(release(views, accountant));
    parts.extend(owners_alone(views, accountant));
    parts.extend(joint(views));
    parts.extend(repeated.map(repetition));
    parts.push(limits(views, repeated));
    parts.join("\n\n")
}

fn answers(channel: &Channel) -> String {
    match channel.answers().len() {
        1 if channel.noise().is_some() => format!(
            "If nobody is honest, neither an aggregator nor anybody else: whoever sees one person's answer, and whatever \
             else they know, {}",
            conclusion_from_answer(channel, 0)
        ),
        1 => format!("Whoever sees one person's answer {}", conclusion_from_answer(channel, 0)),
        count => (0..count).map(|answer| one_of_many_answers(channel, answer)).collect::<Vec<_>>().join("\n"),
    }
}

fn one_of_many_answers(channel: &Channel, answer: usize) -> String {
    let name = answer_name(answer);
    format!("Whoever sees one person's answer {name}, alone, {}", conclusion_from_answer(channel, answer))
}

fn conclusion_from_answer(channel: &Channel, answer: usize) -> String {
    let finite = answer_epsilon(channel, answer).is_ok_and(|epsilon| epsilon.is_some());
    conclusion(BayesAccuracy::from_answer(channel, answer), finite)
}

/// What all answers together show, where there are several.
fn linked(channel: &Channel, views: &Views) -> Option<String> {
    if views.answers.len() < 2 {
        return None;
    }
    let conclusion = conclusion(BayesAccuracy::from_linked(channel), views.linked.is_some());
    Some(format!("Whoever sees all answers of one person, side by side, {conclusion}"))
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

/// What holds if one aggregator is honest, as if there were no crowd.
fn one_aggregator(channel: &Channel, views: &Views) -> Option<String> {
    let epsilon = views.one_aggregator?;
    let alone = privacy::release(channel, 1).ok()?;
    let accuracy = BayesAccuracy::from_release(&alone, &alone.guarantee(views.release.target()));
    Some(format!(
        "If one aggregator is honest and nobody else, whoever sees the published sum, and even knows everybody else's answer \
         and the other aggregator's noise, {} That is ε = {} with δ = 0, whatever the crowd, invented people included.",
        conclusion(accuracy, true),
        display::claim(epsilon.upper())
    ))
}

fn release(views: &Views, accountant: &Accountant) -> String {
    let who = match views.one_aggregator {
        Some(_) => {
            "If one aggregator is honest and the people toss their coins, whoever sees the published sum, and even knows \
             everybody else's truth and the other aggregator's noise,"
        }
        None => "Whoever sees the published counts, and even knows everybody else's truth,",
    };
    published(who, &views.release, accountant)
}

/// What holds if both aggregators leave out their noise, or hand it over.
fn owners_alone(views: &Views, accountant: &Accountant) -> Option<String> {
    let who = "If no aggregator is honest but reports stay private and people toss their coins, whoever sees the published sum, \
               and even knows everybody else's truth and all noise,";
    Some(published(who, views.owners_alone.as_ref()?, &accountant.owners_alone()?))
}

fn published(who: &str, claim: &Guarantee, accountant: &Accountant) -> String {
    if claim.floor() > 0.0 {
        return format!(
            "{who} can be certain of one person's truth with a probability of {}: one person stands out among {} others, \
             {} of whom would say yes. That is no guarantee.",
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
    if views.one_aggregator.is_some() {
        return Some(
            "Whoever sees one person's answer learns nothing more about them from the published sum. So the guarantees of the \
             sum hold only while nobody sees a single answer; that is what the private write is for."
                .to_owned(),
        );
    }
    let worst = worst_joint_view(views)?;
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

/// The answer that gives most away together with the counts, if that is more than the counts alone.
fn worst_joint_view(views: &Views) -> Option<&Guarantee> {
    let worse = |claim: &&Guarantee| loss(claim) > loss(&views.release) * 1.01 + 1e-12;
    views.answers_with_release.iter().filter(worse).max_by(|a, b| loss(a).total_cmp(&loss(b)))
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
             together have {} for what one of them has above.{}",
            display::claim(release.upper()),
            repeated.one_aggregator.map_or_else(String::new, |epsilon| sums_together(times, epsilon))
        ),
        (None, _) => format!("Somebody who answers {times} times has no guarantee for all the counts together."),
    }
}

fn sums_together(times: u64, epsilon: Enclosure) -> String {
    format!(
        " If one aggregator is honest and nobody else, all {times} sums together have ε = {} with δ = 0.",
        display::claim(epsilon.upper())
    )
}

/// What is left where people are invented: with noise, what one honest aggregator guarantees.
fn kept_by_noise(views: &Views, repeated: Option<&Repeated>) -> Option<String> {
    let epsilon = repeated.map_or(views.one_aggregator, |repeated| repeated.one_aggregator)?;
    Some(format!("what one honest aggregator guarantees (ε = {}), and without one ", display::claim(epsilon.upper())))
}

/// What is left even without an honest aggregator.
fn kept_by_coins(views: &Views, repeated: Option<&Repeated>) -> String {
    match (repeated, views.linked) {
        (Some(Repeated { times, linked: Some(epsilon), .. }), _) if *times > 1 => {
            format!(
                "what all answers of one person to all {times} queries give away (ε = {})",
                display::claim(*epsilon)
            )
        }
        (_, Some(epsilon)) => format!("what all answers of one person give away (ε = {})", display::claim(epsilon)),
        (_, None) => "no guarantee at all".to_owned(),
    }
}

fn limits(views: &Views, repeated: Option<&Repeated>) -> String {
    let kept = kept_by_noise(views, repeated).unwrap_or_default();
    let linked = kept_by_coins(views, repeated);
    format!(
        "Not protected: that somebody was asked; what is true of the whole crowd, or follows from it for anybody; and \
         other places where the truth can be seen. Whoever can invent people or drop reports leaves {kept}{linked}. Every \
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
    fn with_noise_it_says_who_must_be_honest_for_what() {
        let text = words("randomized-response(t=0.99) + laplace(scale=1)", 5000);
        for part in [
            "If nobody is honest, neither an aggregator nor anybody else",
            "If one aggregator is honest and nobody else",
            "If one aggregator is honest and the people toss their coins",
            "If no aggregator is honest but reports stay private",
            "leaves what one honest aggregator guarantees (ε = ",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // Told plainly, the bit plus noise: right with probability 1/(1 + a).
        let text = words("randomized-response(t=1) + laplace(scale=1)", 5000);
        let right = format!("at most {} of the time", percent(1.0 / (1.0 + (-1_f64).exp())));
        assert!(text.contains(&right) && text.contains("That is ε = 1 with δ = 0"), "{right}: {text}");
        assert!(text.contains("Some answers give the truth away for certain."), "{text}");
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
