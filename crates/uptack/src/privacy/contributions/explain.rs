//! What the guarantees of contributions mean, in plain words (`docs/accounting.md`, "What a guesser gains").

use super::owners_alone::{OwnersAlone, pure_delta};
use super::{ContributionViews, RepeatedContributions};
use crate::display::{self, Rounding};
use crate::error::Result;
use crate::privacy::composition::Profile;
use crate::privacy::likelihood::ExactLikelihood;
use crate::privacy::{BayesAccuracy, Guarantee};

/// States what somebody can conclude from each view, for readers who are not mathematicians: of everything that is published
/// together, and who must be honest for that.
///
/// ```
/// use uptack::privacy::{Delta, Target, WorkLimit, contributions};
/// let asked = "choice(k=12,r=0.0012) + laplace(scale=2)".parse()?;
/// let target = Target::Delta(Delta::new(1e-8)?);
/// let views = contributions::ContributionViews::of(&asked, 50_186, target, WorkLimit::default())?;
/// assert!(contributions::statement(&views, None)?.contains("If one aggregator is honest and nobody else"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn statement(views: &ContributionViews, repeated: Option<&RepeatedContributions>) -> Result<String> {
    let mut parts = vec![subject(views), report(views)];
    parts.extend(one_aggregator(views));
    parts.push(release(views)?);
    parts.extend(owners_alone(views)?);
    parts.push(both(views));
    parts.extend(repeated.map(repetition));
    parts.push(limits(views, repeated));
    Ok(parts.join("\n\n"))
}

/// What the statements are about: how much of what is published one person can change.
fn subject(views: &ContributionViews) -> String {
    let (asked, counts) = (views.contributions(), counts(views));
    let changed = if asked.is_choice() {
        "which of two options a person has".to_owned()
    } else {
        match asked.most() {
            1 => "which count a person belongs to, if any".to_owned(),
            most => format!("which counts a person belongs to, at most {most} of them"),
        }
    };
    format!("All statements are about {changed}, and hold for {counts} together.")
}

/// Everything that is published.
fn counts(views: &ContributionViews) -> String {
    match views.contributions().counts() {
        1 => "the published count".to_owned(),
        counts => format!("all {} published counts", display::grouped(counts as u64)),
    }
}

fn report(views: &ContributionViews) -> String {
    let who = match views.one_aggregator {
        Some(_) => "If nobody is honest, neither an aggregator nor anybody else: whoever sees one person's report,",
        None => "Whoever sees one person's report,",
    };
    let certain = if views.linked.is_some() { "" } else { " Some reports reveal the truth with certainty." };
    format!("{who} and whatever else they know, {}{certain}", conclusion(from_report(views)))
}

/// The best guess from one report: exact for one contribution, and bounded by the linked ε for several.
fn from_report(views: &ContributionViews) -> BayesAccuracy {
    let asked = views.contributions();
    if asked.most() > 1 {
        return BayesAccuracy::from_profile(|epsilon| views.linked.map_or(1.0, |linked| pure_delta(linked, epsilon)));
    }
    let (told, other) = (asked.law().told().numerator(), asked.law().other().numerator());
    BayesAccuracy::local(&[ExactLikelihood { yes: told, no: other }, ExactLikelihood { yes: other, no: told }])
}

/// The statement for one honest aggregator, as if there were no crowd.
fn one_aggregator(views: &ContributionViews) -> Option<String> {
    let epsilon = views.one_aggregator?.upper();
    Some(format!(
        "If one aggregator is honest and nobody else, whoever sees {}, and even knows everybody else's report and the other \
         aggregator's noise, {} That is ε = {} with δ = 0, whatever the crowd, invented people included.",
        counts(views),
        conclusion(BayesAccuracy::from_profile(|asked| pure_delta(epsilon, asked))),
        display::claim(epsilon)
    ))
}

fn release(views: &ContributionViews) -> Result<String> {
    let published = views.published()?;
    let counts = counts(views);
    let who = match views.one_aggregator {
        Some(_) => format!(
            "If one aggregator is honest and the people randomize their answers, whoever sees {counts}, and even knows everybody \
             else's truth and the other aggregator's noise,"
        ),
        None => format!("Whoever sees {counts}, and even knows everybody else's truth,"),
    };
    Ok(in_a_crowd(&who, &views.release, |epsilon| published.delta_upper(epsilon)))
}

/// The statement in case both aggregators leave out their noise or reveal it.
fn owners_alone(views: &ContributionViews) -> Result<Option<String>> {
    let Some(claim) = &views.owners_alone else { return Ok(None) };
    let alone = OwnersAlone::new(views.contributions(), claim.owners())?.with_limit(views.limit());
    let who = format!(
        "If no aggregator is honest, but reports stay private and people randomize their answers, whoever sees {}, and even \
         knows everybody else's truth and all noise,",
        counts(views)
    );
    Ok(Some(in_a_crowd(&who, claim, |epsilon| alone.delta_upper(epsilon))))
}

fn in_a_crowd(who: &str, claim: &Guarantee, delta: impl Fn(f64) -> f64) -> String {
    if claim.floor() > 0.0 {
        return format!(
            "{who} can be certain of one person's truth with a probability of {}: nobody else may have the same one, and there are \
             no coins that hide it. That is no guarantee.",
            percent(claim.floor())
        );
    }
    let people = display::grouped(claim.owners());
    format!(
        "{who} {} This counts on {people} people who randomize their answers.",
        conclusion(BayesAccuracy::from_profile(delta))
    )
}

/// The best guess between two truths of one person.
fn conclusion(accuracy: BayesAccuracy) -> String {
    if accuracy.even < 0.5 + 1e-9 {
        return "learns nothing from it.".to_owned();
    }
    format!(
        "can guess correctly which of two truths is a person's with a probability of at most {} if it was 50 % before, and of \
         at most {} if it was 99 % before.",
        percent(accuracy.even),
        percent(accuracy.rare)
    )
}

fn both(views: &ContributionViews) -> String {
    format!(
        "Whoever sees one person's report learns nothing more about them from {}. So the guarantees of what is published hold \
         only while nobody sees a single report; that is what the private write is for.",
        counts(views)
    )
}

fn repetition(repeated: &RepeatedContributions) -> String {
    let times = repeated.times;
    let Some(release) = repeated.release else {
        return format!(
            "Somebody who answers {times} times has no guarantee for everything that is published together."
        );
    };
    let noise = repeated.one_aggregator.map_or_else(String::new, |epsilon| {
        let epsilon = display::claim(epsilon.upper());
        format!(" If one aggregator is honest and nobody else, all of them together have ε = {epsilon} with δ = 0.")
    });
    format!(
        "Somebody who answers {times} times, with fresh coins each time, reveals more: all {times} releases together have {} in \
         place of the value above for one of them.{noise}",
        display::claim(release.upper())
    )
}

/// The guarantees that are left if people are invented.
fn limits(views: &ContributionViews, repeated: Option<&RepeatedContributions>) -> String {
    let noise = repeated.map_or(views.one_aggregator, |repeated| repeated.one_aggregator);
    let noise = noise.map_or_else(String::new, |epsilon| {
        format!("what one honest aggregator guarantees (ε = {}), and without one ", display::claim(epsilon.upper()))
    });
    let linked = repeated.map_or(views.linked, |repeated| repeated.linked);
    let linked = linked.map_or_else(
        || "no guarantee at all".to_owned(),
        |epsilon| format!("what all reports of one person reveal (ε = {})", display::claim(epsilon)),
    );
    format!(
        "Not protected: that somebody was asked; what is true of the whole crowd, or follows from it for anybody; and other \
         places where the truth can be seen. Whoever can invent people or drop reports leaves {noise}{linked}. Every further \
         question costs again."
    )
}

/// Rounded up, so that the words are never better than the number.
fn percent(share: f64) -> String {
    display::percent(share, 4, Rounding::Up)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::{Delta, Target, WorkLimit};

    fn words(text: &str, times: u64) -> String {
        let target = Target::Delta(Delta::new(1e-8).unwrap());
        let views = ContributionViews::of(&text.parse().unwrap(), 5000, target, WorkLimit::default()).unwrap();
        let repeated = (times > 1).then(|| views.repeated(times).unwrap());
        statement(&views, repeated.as_ref()).unwrap()
    }

    #[test]
    fn says_what_can_be_concluded_without_noise() {
        let text = words("choice(k=4,f=1,r=0.1)", 1);
        // g = 0.7: half of 1 + g − r.
        for part in [
            "which of two options a person has, and hold for all 4 published counts together",
            "Whoever sees one person's report, and whatever else they know, can guess correctly which of two truths is a \
             person's with a probability of at most 80 % if it was 50 % before",
            &format!("This counts on {} people", display::grouped(5000)),
            "leaves what all reports of one person reveal (ε = ",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("aggregator"), "{text}");
        let text = words("choice(k=4,f=0.5,r=0)", 1);
        assert!(text.contains("50 %: nobody else") && text.contains("no guarantee at all"), "{text}");
        assert!(words("choice(k=4,f=1,r=0.25)", 1).contains("learns nothing from it"));
    }

    #[test]
    fn with_noise_it_says_who_must_be_honest_for_what() {
        let text = words("contributions(counts=20,most=2,r=0.001) + laplace(scale=4)", 3);
        for part in [
            "which counts a person belongs to, at most 2 of them, and hold for all 20 published counts together",
            "If nobody is honest, neither an aggregator nor anybody else",
            "If one aggregator is honest and nobody else",
            "If one aggregator is honest and the people randomize their answers",
            "If no aggregator is honest, but reports stay private",
            "Somebody who answers 3 times",
            "leaves what one honest aggregator guarantees (ε = ",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
