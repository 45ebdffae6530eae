//! What a guarantee means: in plain words, and as the accuracy of the best guess (`docs/accounting.md`, "What a guesser gains").

use super::likelihood::ExactLikelihood;
use super::views::{cells, marginal};
use super::{Accountant, Enclosure, Guarantee, Repeated, Target, View, Views, answer_epsilon};
use crate::channel::{Channel, answer_name};
use crate::display::{self, Rounding};
use crate::probability::Probability;
use crate::truth::Truth;

/// States what somebody can conclude from each view, and what is not protected, for readers who are not mathematicians.
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

/// The statement about all answers together, if there are several.
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
    let certain = if finite { "" } else { " Some answers reveal the truth with certainty." };
    format!(
        "can guess the truth correctly with a probability of at most {} if it was 50 % before, and of at most {} if it \
         was 99 % before.{certain}",
        percent(accuracy.even),
        percent(accuracy.rare)
    )
}

/// The statement for one honest aggregator, as if there were no crowd.
fn one_aggregator(channel: &Channel, views: &Views) -> Option<String> {
    let epsilon = views.one_aggregator?;
    let alone = super::release(channel, 1).ok()?;
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
            "If one aggregator is honest and the people randomize their answers, whoever sees the published sum, and even knows \
             everybody else's truth and the other aggregator's noise,"
        }
        None => "Whoever sees the published counts, and even knows everybody else's truth,",
    };
    published(who, &views.release, accountant)
}

/// The statement in case both aggregators leave out their noise or reveal it.
fn owners_alone(views: &Views, accountant: &Accountant) -> Option<String> {
    let who = "If no aggregator is honest, but reports stay private and people randomize their answers, whoever sees the published sum, \
               and even knows everybody else's truth and all noise,";
    Some(published(who, views.owners_alone.as_ref()?, &accountant.owners_alone()?))
}

fn published(who: &str, claim: &Guarantee, accountant: &Accountant) -> String {
    if claim.floor() > 0.0 && claim.value().is_some() && matches!(claim.target(), Target::Delta(_)) {
        return format!(
            "{who} can be certain of one person's truth with a probability of at most {}, which δ covers: the guarantee is {}. \
             This counts on {} people who randomize their answers.",
            percent(claim.floor()),
            claim_words(claim),
            claim.owners()
        );
    }
    if claim.floor() > 0.0 {
        return format!(
            "{who} can be certain of one person's truth with a probability of {}: one person stands out among {} others, \
             {} of whom would say yes. That is no guarantee.",
            percent(claim.floor()),
            claim.owners() - 1,
            claim.crowd().unwrap_or(0)
        );
    }
    let accuracy = BayesAccuracy::from_release(accountant, claim);
    format!(
        "{who} can guess one person's truth correctly with a probability of at most {} if it was 50 % before, and of at most {} \
         if it was 99 % before. This counts on {} people who randomize their answers.",
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

/// The answer that reveals most together with the counts, if that is more than the counts alone.
fn worst_joint_view(views: &Views) -> Option<&Guarantee> {
    let worse = |claim: &&Guarantee| loss(claim) > loss(&views.release) * 1.01 + 1e-12;
    views.answers_with_release.iter().filter(worse).max_by(|a, b| loss(a).total_cmp(&loss(b)))
}

/// A number that grows with what is revealed.
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
            "Somebody who answers {times} times, with fresh coins each time, reveals more: all {times} published counts \
             together have {} in place of the value above for one of them.{}",
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

/// The guarantee that is left if people are invented: with noise, that of one honest aggregator.
fn kept_by_noise(views: &Views, repeated: Option<&Repeated>) -> Option<String> {
    let epsilon = repeated.map_or(views.one_aggregator, |repeated| repeated.one_aggregator)?;
    Some(format!("what one honest aggregator guarantees (ε = {}), and without one ", display::claim(epsilon.upper())))
}

/// The guarantee that is left even without an honest aggregator.
fn kept_by_coins(views: &Views, repeated: Option<&Repeated>) -> String {
    match (repeated, views.linked) {
        (Some(Repeated { times, linked: Some(epsilon), .. }), _) if *times > 1 => {
            format!("what all answers of one person to all {times} queries reveal (ε = {})", display::claim(*epsilon))
        }
        (_, Some(epsilon)) => format!("what all answers of one person reveal (ε = {})", display::claim(epsilon)),
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

/// The best possible accuracy of a guess at one owner's truth, whatever the guesser knows of the others.
///
/// A guesser who believes in *yes* with probability π and then sees the view is right with probability at most
/// (1−π) + π·δ(ln((1−π)/π)), and the best guesser reaches that. The numbers are exact for local views and certified for the
/// release; they are rounded up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BayesAccuracy {
    /// From an even prior: before the view, the guess is right half of the time.
    pub even: f64,
    /// From a prior of 1 %: before the view, guessing the likelier truth is right 99 % of the time.
    pub rare: f64,
}

/// The odds of the likelier truth under the prior of 1 %.
const RARE_ODDS: f64 = 99.0;

impl BayesAccuracy {
    /// For somebody who sees one answer of a known owner.
    pub fn from_answer(channel: &Channel, answer: usize) -> Self {
        Self::local(&marginal(channel, answer))
    }

    /// For somebody who sees all answers of a known owner.
    pub fn from_linked(channel: &Channel) -> Self {
        Self::local(&cells(channel))
    }

    /// For somebody who sees the tallies and knows everybody else's truth.
    pub fn from_release(accountant: &Accountant, claim: &Guarantee) -> Self {
        let even = 0.5 + 0.5 * accountant.delta_upper(0.0);
        let claimed = delta_at_rare_odds(claim).filter(|&delta| delta < 1e-3);
        let rare = claimed.unwrap_or_else(|| accountant.delta_upper(RARE_ODDS.ln()));
        Self { even: up(even), rare: up(0.99 + 0.01 * rare) }
    }

    /// For somebody who sees a view with at most this δ at every ε.
    pub(super) fn from_profile(delta: impl Fn(f64) -> f64) -> Self {
        Self { even: up(0.5 + 0.5 * delta(0.0)), rare: up(0.99 + 0.01 * delta(RARE_ODDS.ln())) }
    }

    /// In integers, so that at most the last bit of a double is off: 57 % does not become 57.0001 %.
    pub(super) fn local(classes: &[ExactLikelihood]) -> Self {
        let whole = Probability::ONE.numerator();
        let even = excess(classes, Truth::Yes, 1);
        let rare_odds = RARE_ODDS as u128;
        let rare = match excess(classes, Truth::Yes, rare_odds).max(excess(classes, Truth::No, rare_odds)) {
            0 => 0.99,
            excess => up(0.99 + 0.01 * (excess as f64 / whole as f64)),
        };
        Self { even: (whole + even) as f64 / (2.0 * whole as f64), rare }
    }
}

/// δ at ε = ln 99 from above, by a claim alone: δ falls with ε, so where a claim's ε is below that, its own δ is a bound.
fn delta_at_rare_odds(claim: &Guarantee) -> Option<f64> {
    match (claim.target(), claim.value()) {
        (Target::Delta(delta), Some(value)) if value.upper() <= RARE_ODDS.ln() => Some(delta.value()),
        (Target::Epsilon(epsilon), Some(value)) if epsilon.value() <= RARE_ODDS.ln() => Some(value.upper()),
        _ => None,
    }
}

/// Σ over the classes of (p − odds·q)₊, p being the probability under `truth` and q that under the other one: δ at e^ε = odds.
fn excess(classes: &[ExactLikelihood], truth: Truth, odds: u128) -> u128 {
    classes.iter().map(|class| class[truth].saturating_sub(odds * class[truth.other()])).sum()
}

/// Slightly more than `accuracy`, which covers the rounding of a few operations.
fn up(accuracy: f64) -> f64 {
    (accuracy * (1.0 + 1e-12)).min(1.0)
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
        assert!(
            text.contains(
                "Whoever sees one person's answer can guess the truth correctly with a probability of at most 80 %"
            ),
            "{text}"
        );
        assert!(text.contains("Not protected"), "{text}");
        let text = words("cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.1)", 5000);
        assert!(text.contains("That is no guarantee") && text.contains("10 %"), "{text}");
        assert!(text.contains("answer B, alone, learns nothing"), "{text}");
        assert!(text.contains("leaves no guarantee at all"), "{text}");
    }

    /// One truth alone reaches `11`, but in the tallies of nine owners hardly anybody shows by it: less often than δ.
    #[test]
    fn a_certainty_that_delta_covers_is_said_and_leaves_the_guarantee() {
        let channel = channel("custom(11=1/100:0/100, 12=6/100:11/100, 22=34/100:66/100, 21=59/100:23/100)");
        let target = Target::Delta(Delta::new(1.32e-5).unwrap());
        let views = Views::of(&channel, 9, target, WorkLimit::default()).unwrap();
        let text = statement(&channel, &views, &release(&channel, 9).unwrap(), None);
        assert!(
            text.contains("of at most 0.0002 %, which δ covers: the guarantee is ε = 1.0591 at δ = 1.32e-5"),
            "{text}"
        );
        assert!(!text.contains("That is no guarantee"), "{text}");
    }

    #[test]
    fn with_noise_it_says_who_must_be_honest_for_what() {
        let text = words("randomized-response(t=0.99) + laplace(scale=1)", 5000);
        for part in [
            "If nobody is honest, neither an aggregator nor anybody else",
            "If one aggregator is honest and nobody else",
            "If one aggregator is honest and the people randomize their answers",
            "If no aggregator is honest, but reports stay private",
            "leaves what one honest aggregator guarantees (ε = ",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // Told plainly, the bit plus noise: right with probability 1/(1 + a).
        let text = words("randomized-response(t=1) + laplace(scale=1)", 5000);
        let right =
            format!("with a probability of at most {} if it was 50 % before", percent(1.0 / (1.0 + (-1_f64).exp())));
        assert!(text.contains(&right) && text.contains("That is ε = 1 with δ = 0"), "{right}: {text}");
        assert!(text.contains("Some answers reveal the truth with certainty."), "{text}");
    }

    #[test]
    fn words_are_never_better_than_numbers() {
        assert_eq!(percent(0.500_000_1), "50.0001 %");
        assert_eq!(percent(0.8), "80 %");
        for t in ["0.55", "0.57", "0.7", "0.9"] {
            let text = words(&format!("randomized-response(t={t})"), 50);
            assert!(
                text.contains(&format!("at most {} % if it was 50 % before", &(t.to_owned() + "0")[2..4])),
                "{text}"
            );
        }
        // As every other place prints it.
        let text = words("randomized-response(t=0.8)", 5000);
        assert!(text.contains(&format!("(ε = {})", display::claim(4f64.ln()))), "{text}");
    }

    fn channel(text: &str) -> Channel {
        text.parse::<Mechanism>().unwrap().channel()
    }

    #[test]
    fn local_guesses_are_those_of_the_law() {
        let guess = BayesAccuracy::from_linked(&channel("randomized-response(t=0.8)"));
        assert!((guess.even - 0.8).abs() < 1e-9);
        assert!((guess.rare - 0.99).abs() < 1e-9);
        let bare = BayesAccuracy::from_linked(&channel("sampling(sy=0.5,sn=0.5)"));
        assert!((bare.even - 0.75).abs() < 1e-9);
        assert!((bare.rare - 0.995).abs() < 1e-9);
        let nothing = BayesAccuracy::from_answer(&channel("blended(0,0.25,0.25,0,0.5,0.1,0.1)"), 0);
        assert!((nothing.even - 0.5).abs() < 1e-9);
    }

    #[test]
    fn alone_in_the_crowd_the_release_is_the_cell() {
        let channel = channel("randomized-response(t=0.8)");
        let accountant = release(&channel, 1).unwrap();
        let claim = accountant.epsilon(Delta::new(1e-8).unwrap());
        let (alone, local) = (BayesAccuracy::from_release(&accountant, &claim), BayesAccuracy::from_linked(&channel));
        assert!((alone.even - local.even).abs() < 1e-6 && alone.even >= local.even - 1e-11);
        let crowd = release(&channel, 1000).unwrap();
        let claim = crowd.epsilon(Delta::new(1e-8).unwrap());
        assert!(BayesAccuracy::from_release(&crowd, &claim).even < 0.55);
    }
}
