//! Values that claims must have, and how they must change with ε, δ and the crowd.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::{
    Target, Views, WorkLimit, answer_epsilon, answer_with_release, honest_owners, linked_epsilon, release,
};
use super::{channel, delta, epsilon, release_of};
use crate::progress::Progress;
use crate::{Channel, Fraction};

#[test]
fn the_worst_crowd_is_not_always_an_extreme_one() {
    let accountant = release_of("randomized-response(t=0.6)", 3);
    let claim = accountant.delta(epsilon(0.0));
    assert!((claim.value().expect("δ always has a value").upper() - 0.104).abs() < 1e-12);
    assert_eq!(claim.crowd(), Some(1));
    assert!((accountant.delta_of_ends(epsilon(0.0)).middle() - 0.096).abs() < 1e-12);
}

#[test]
fn local_views_are_those_of_the_laws_rounded_up() {
    let response = channel("randomized-response(t=0.8)");
    let linked = linked_epsilon(&response).expect("finite");
    assert!(linked >= 4_f64.ln() && linked < 4_f64.ln() * (1.0 + 1e-14));
    assert_eq!(answer_epsilon(&response, 0), Ok(Some(linked)));
    assert!(answer_epsilon(&response, 1).is_err());
    let paired = channel("paired(b=0.5,sy=0.2,sn=0.05)");
    assert!((answer_epsilon(&paired, 0).expect("an answer").expect("finite") - 0.405_465_108_108_164_44).abs() < 1e-14);
    assert!((linked_epsilon(&paired).expect("finite") - 1.386_294_361_119_890_6).abs() < 1e-14);
    assert_eq!(linked_epsilon(&channel("sampling(sy=0.05,sn=0.05)")), None);
    assert_eq!(answer_epsilon(&channel("sampling(sy=0.05,sn=0.05)"), 0), Ok(None));
    // Equal laws reveal nothing, exactly.
    assert_eq!(linked_epsilon(&channel("noisy-sampling(sy=0.3,sn=0.3)")), Some(0.0));
}

#[test]
fn channels_that_give_a_truth_away_have_a_floor_and_no_epsilon() {
    for (mechanism, floor, crowd) in [
        ("sampling(sy=0.05,sn=0.03)", 0.05, 0),
        ("sampling(sy=0.02,sn=0.03)", 0.03, 99_999),
        ("cancelling(b1=0.4,b2=0.3,b3=0.2,s=0.1)", 0.1, 0),
        ("paired(b=0.5,sy=0.2,sn=0)", 0.4, 0),
        ("noisy-sampling(sy=0.25,sn=0)", 0.25, 0),
        ("deniable-sampling(sy=0.5,sn=0.2,p1=0.5,p2=0)", 0.25, 0),
        ("blended(b1=0.05,b2=0.25,b3=0.25,f1=0.05,f2=0.4,ry=0.0001,rn=0)", 0.3999, 0),
        ("blended(b1=0.05,b2=0.25,b3=0.25,f1=0.05,f2=0.4,ry=0,rn=0.0001)", 0.3999, 99_999),
    ] {
        let channel = channel(mechanism);
        let views = std::iter::once(release(&channel, 100_000).expect("owners"))
            .chain((0..channel.answers().len()).map(|k| answer_with_release(&channel, k, 100_000).expect("an answer")));
        for accountant in views {
            let accountant = accountant.with_limit(WorkLimit::steps(1_000_000));
            let claim = accountant.epsilon(delta(floor * 0.99));
            assert_eq!(claim.value(), None, "{mechanism}: {claim:?}");
            assert!((claim.floor() - floor).abs() < 1e-12, "{mechanism}: {claim:?}");
            assert_eq!(claim.crowd(), Some(crowd), "{mechanism}");
            let value = accountant.delta(epsilon(60.0)).value().expect("δ always has a value");
            assert!((value.upper() - floor).abs() < 1e-12 && value.lower() <= value.upper(), "{mechanism}: {value:?}");
            assert!(accountant.epsilon(delta((floor * 1.01).min(1.0))).value().is_some(), "{mechanism}");
        }
    }
}

#[test]
fn two_sided_channels_have_no_floor() {
    for mechanism in ["randomized-response(t=0.999)", "normal-form(f=0.000001,r=0.0000001)", "normal-form(f=1,r=0.01)"]
    {
        assert_eq!(release_of(mechanism, 10).floor(), 0.0);
    }
}

#[test]
fn more_than_three_classes_are_bounded_from_both_sides() {
    let channel = Channel::parse_cells("1=0.3:0.1, 2=0.25:0.2, 3=0.2:0.22, 4=0.15:0.28, 5=0.1:0.2").expect("a channel");
    for (owners, at) in [(4_u64, 0.3), (200, 0.2), (5000, 0.05)] {
        let claim = release(&channel, owners).expect("owners").delta(epsilon(at));
        let value = claim.value().expect("δ always has a value");
        assert!(value.lower() > 0.0 && value.lower() <= value.upper() && value.upper() < 1.0, "{claim:?}");
        assert!(owners > 4 || claim.certificate().closed(), "few owners are enumerated: {claim:?}");
    }
}

/// Five classes whose ratios are e^±4, e^±2 and 1: the privacy blanket certifies 1.193 and 0.329 here, and variation-ratio 1.489
/// at a thousand owners.
#[test]
fn five_classes_close_below_the_published_bounds() {
    let channel = five_classes();
    for (owners, published) in [(1000, 1.193), (10_000, 0.329)] {
        let accountant = release(&channel, owners).expect("owners");
        let claim = accountant.epsilon(delta(1e-6));
        let value = claim.value().expect("a guarantee");
        assert!(claim.certificate().closed() && value.upper() < 0.9 * published, "{owners}: {claim:?}");
        let blanket = accountant.blanket_epsilon(delta(1e-6)).expect("no floor");
        assert!((blanket / published - 1.0).abs() < 5e-3, "{owners}: the blanket says {blanket}, not {published}");
    }
}

fn five_classes() -> Channel {
    let cells = "11=0.636408:0.011656, 12=0.234122:0.031685, 13=0.086129:0.086129, 21=0.031685:0.234122, \
                 31=0.011656:0.636408";
    Channel::parse_cells(cells).expect("a channel")
}

/// An answer that reveals nearly everything: tests on what is left have tails that underflow.
#[test]
fn joint_views_of_five_classes_are_bounded_in_a_large_crowd() {
    for answer in [0, 1] {
        let claim = answer_with_release(&five_classes(), answer, 100_000).expect("owners").epsilon(delta(1e-6));
        let value = claim.value().expect("a guarantee");
        assert!(value.lower() <= value.upper() && value.upper() < 4.1, "{claim:?}");
    }
}

/// Lattice effects move the worst crowd away from the ends, most of all where hardly anybody lies.
#[test]
fn two_classes_close_where_hardly_anybody_lies() {
    for (mechanism, owners) in
        [("randomized-response(t=0.99951)", 100_000), ("randomized-response(t=0.999951)", 1_000_000)]
    {
        let claim = release_of(mechanism, owners).epsilon(delta(1e-8));
        assert!(claim.certificate().closed(), "{mechanism}, {owners}: {claim:?}");
    }
}

/// In a huge crowd with so few flips that δ is just the chance that nobody flips, the worst crowd is next to an end, and D hardly
/// falls in ε. ε is 2.9613 there (a convolution of two binomials by another program).
#[test]
fn a_handful_of_flips_closes_in_a_huge_crowd() {
    let claim = release_of("randomized-response(t=0.999999815793)", 100_000_000).epsilon(delta(1e-8));
    let value = claim.value().expect("a guarantee");
    assert!(value.lower() <= 2.96136 && value.upper() >= 2.96134, "{claim:?}");
    assert!(claim.certificate().closed(), "{claim:?}");
}

/// Rounding to integers leaves a cell of three pairs that hardly anybody is ever in.
#[test]
fn a_cell_that_is_left_by_rounding_costs_nothing_in_a_huge_crowd() {
    let spread = release_of("spread(pairs=3,f=1,r=4.95299e-7)", 100_000_000).epsilon(delta(1e-8));
    let cells = release_of("normal-form(f=1,r=4.95299e-7)", 100_000_000).epsilon(delta(1e-8));
    let (spread, cells) = (spread.value().expect("a guarantee"), cells.value().expect("a guarantee"));
    assert!(spread.upper() <= 1.002 * cells.upper() && spread.upper() >= cells.lower(), "{spread:?} and {cells:?}");
}

/// Some channels whose third class is rare, or whose laws are nearly alike.
#[test]
fn rare_classes_and_nearly_equal_laws_are_bounded_closely() {
    let claim = release_of("deniable-sampling(sy=0.823726,sn=0.28,p1=0.106,p2=0.9943654)", 2723).epsilon(delta(1e-8));
    assert!(claim.certificate().gap() < 0.2, "{claim:?}");
    let accountant = release_of("paired(b=0.000258,sy=0.000101,sn=0.000125)", 455);
    let claim = accountant.delta(epsilon(0.001));
    assert!(claim.certificate().gap() < 1.0, "{claim:?}");
}

#[test]
fn tallies_that_do_not_fix_the_cells_are_bounded_from_both_sides() {
    let spread = channel("spread(pairs=2,f=1,r=0.01)");
    assert!(!spread.determined());
    let claim = release(&spread, 2000).expect("owners").epsilon(delta(1e-6));
    let value = claim.value().expect("a guarantee");
    // The cells are those of normal-form; each answer alone is far noisier.
    let cells = release_of("normal-form(f=1,r=0.01)", 2000).epsilon(delta(1e-6)).value().expect("a guarantee");
    assert!((value.upper() / cells.upper() - 1.0).abs() < 2e-3, "{value:?} against {cells:?}");
    assert!(value.lower() > 0.0 && value.lower() < value.upper(), "{value:?}");
}

#[test]
fn the_range_of_sizes_participations_and_deltas() {
    for owners in [1, 2, 3, 100, 1_000_000, 1_000_000_000] {
        for mechanism in
            ["normal-form(f=0.000001,r=0.0000004)", "normal-form(f=0.3,r=0.0001)", "randomized-response(t=0.7)"]
        {
            let accountant = release_of(mechanism, owners);
            let linked = linked_epsilon(&channel(mechanism)).expect("finite");
            let mut last = f64::INFINITY;
            for exponent in [-30.0, -15.0, -8.0, -2.0] {
                let found = accountant.epsilon_of_ends(delta(10_f64.powf(exponent))).expect("no floor");
                let (lower, upper) = (found.lower(), found.upper());
                assert!(0.0 <= lower && lower <= upper && upper <= linked, "{mechanism}, {owners}: [{lower}, {upper}]");
                assert!(upper <= last * (1.0 + 1e-9), "{mechanism}, {owners}: ε grows with δ");
                last = upper;
                // Next to the linked ε the divergence falls too steeply for doubles.
                if upper > 0.0 && upper < 0.999 * linked {
                    let given = 10_f64.powf(exponent);
                    let (above, below) =
                        (accountant.delta_of_ends(epsilon(lower)), accountant.delta_of_ends(epsilon(upper)));
                    assert!(below.upper() <= given * (1.0 + 1e-6), "{mechanism}, {owners}: δ({upper}) is {below:?}");
                    assert!(above.lower() >= given * (1.0 - 1e-6), "{mechanism}, {owners}: δ({lower}) is {above:?}");
                    assert!(below.middle() > 0.98 * given, "{mechanism}, {owners}: δ({upper}) is {below:?}");
                }
            }
        }
    }
}

#[test]
fn ends_do_not_jump_between_neighbouring_sizes_or_epsilons() {
    let mut last = f64::INFINITY;
    for owners in [999_000, 999_500, 1_000_000, 1_000_500] {
        let value = release_of("normal-form(f=0.5,r=0.000005)", owners).delta_of_ends(epsilon(1.0)).middle();
        assert!(value < last && (last.is_infinite() || value > 0.9 * last), "{owners}: {value:e} after {last:e}");
        last = value;
    }
}

#[test]
fn normal_form_closes_at_a_hundred_million_owners() {
    for mechanism in ["normal-form(f=0.626,r=0.0000000587)", "normal-form(f=1,r=0.000001)"] {
        let claim = release_of(mechanism, 100_000_000).epsilon(delta(1e-8));
        assert!(claim.certificate().closed(), "{mechanism}: {claim:?}");
    }
}

/// The certificate over all crowds closes for these; each stands for a kind of channel and a size.
#[test]
fn certificates_close_over_the_family() {
    for (mechanism, owners) in [
        ("randomized-response(t=0.51)", 1_000_000),
        ("noisy-sampling(sy=0.5,sn=0.4)", 100_000_000),
        ("deniable-sampling(sy=0.5,sn=0.2,p1=0.5,p2=0.3)", 1_000_000),
        ("deniable-sampling(sy=0.5,sn=0.45,p1=0.1,p2=0.3)", 25_000),
        ("deniable-sampling(sy=0.05,sn=0.05,p1=0.5,p2=0.5)", 1_000_000),
        ("tuned(sy1=0.05,sy2=0.02,p1=0.9,p2=0.8,sn=0.01,p3=0.3)", 1_000_000),
        ("tuned(sy1=0.3,sy2=0.2,p1=0.6,p2=0.5,sn=0.4,p3=0.45)", 1_000_000),
        ("normal-form(f=0.5,r=0.24)", 100),
        ("normal-form(f=0.5,r=0.05)", 25_000),
        ("normal-form(f=0.5,r=0.05)", 1_000_000),
        ("normal-form(f=0.95,r=0.01)", 1_000_000),
        ("normal-form(f=0.626,r=0.00000587)", 1_000_000),
        ("paired(b=0.5,sy=0.2,sn=0.19)", 1_000_000),
        ("blended(b1=0,b2=0.25,b3=0.25,f1=0,f2=0.5,ry=0.01,rn=0.01)", 1_000_000),
    ] {
        let claim = release_of(mechanism, owners).epsilon(delta(1e-8));
        assert!(claim.certificate().closed(), "{mechanism}, {owners}: {claim:?}");
    }
    let near_flat = release_of("deniable-sampling(sy=0.5,sn=0.2,p1=0.5,p2=0.3)", 1_000_000).epsilon(delta(1e-8));
    assert!((near_flat.value().expect("a guarantee").upper() - 0.007_036).abs() < 3e-6, "{near_flat:?}");
}

#[test]
fn joint_certificates_close_too() {
    for (mechanism, answers) in [("paired(b=0.5,sy=0.2,sn=0.05)", 2), ("paired(b=0.5,sy=0.01,sn=0.005)", 2)] {
        for answer in 0..answers {
            let accountant = answer_with_release(&channel(mechanism), answer, 1_000_000).expect("an answer");
            let claim = accountant.epsilon(delta(1e-8));
            assert!(claim.certificate().closed(), "{mechanism}, answer {answer}: {claim:?}");
        }
    }
}

/// Many flips, few participants and both: crowds of both truths are nearly as bad as those of one, at every size and δ.
#[test]
fn certificates_close_where_every_crowd_matters() {
    for (mechanism, owners, given) in [
        ("normal-form(f=0.5,r=0.1)", 1000, 1e-8),
        ("normal-form(f=0.5,r=0.1)", 5000, 1e-8),
        ("normal-form(f=0.5,r=0.24)", 20_000, 1e-8),
        ("normal-form(f=0.2,r=0.05)", 100_000, 1e-8),
        ("normal-form(f=0.35,r=0.1)", 1_000_000, 1e-8),
        ("normal-form(f=0.01,r=0.002)", 5000, 1e-8),
        ("normal-form(f=0.95,r=0.2)", 100_000, 1e-8),
        ("normal-form(f=0.5,r=0.01)", 300_000, 1e-30),
        ("normal-form(f=0.5,r=0.1)", 1000, 1e-2),
        ("blended(b1=0,b2=0.25,b3=0.25,f1=0,f2=0.5,ry=0.2,rn=0.15)", 20_000, 1e-8),
        ("deniable-sampling(sy=0.9,sn=0.9,p1=0.05,p2=0.5)", 100_000, 1e-8),
        ("tuned(sy1=0.05,sy2=0.02,p1=0.9,p2=0.8,sn=0.01,p3=0.3)", 3000, 1e-12),
    ] {
        let claim = release_of(mechanism, owners).epsilon(delta(given));
        assert!(claim.certificate().closed(), "{mechanism}, {owners}, {given}: {claim:?}");
    }
}

#[test]
fn a_small_budget_still_gives_a_sound_answer() {
    let full = release_of("randomized-response(t=0.75)", 1_000_000).epsilon(delta(1e-8));
    let hasty =
        release_of("randomized-response(t=0.75)", 1_000_000).with_limit(WorkLimit::steps(1)).epsilon(delta(1e-8));
    let (full, rough) = (full.value().expect("a guarantee"), hasty.value().expect("a guarantee"));
    assert!(!hasty.certificate().closed());
    assert!(rough.upper() >= full.lower() && rough.upper() < 2.0 * full.upper(), "{rough:?} against {full:?}");
}

#[test]
fn all_views_at_once() {
    let paired = channel("paired(b=0.5,sy=0.2,sn=0.05)");
    let views = Views::of(&paired, 5000, Target::Delta(delta(1e-8)), WorkLimit::default()).expect("owners");
    assert_eq!(views.answers.len(), 2);
    assert_eq!(views.answers_with_release.len(), 2);
    let release = views.release.value().expect("a guarantee").upper();
    let linked = views.linked.expect("finite");
    for (alone, joint) in views.answers.iter().zip(&views.answers_with_release) {
        let joint = joint.value().expect("a guarantee").upper();
        assert!(joint >= release && joint >= alone.expect("finite") && joint <= linked, "{joint}");
    }
}

#[test]
fn honest_owners_are_the_floor_of_the_fraction() {
    let fraction = |text: &str| text.parse::<Fraction>().expect("a fraction");
    assert_eq!(honest_owners(50_000, &fraction("90%")), Ok(45_000));
    assert_eq!(honest_owners(10, &fraction("1/3")), Ok(3));
    assert_eq!(honest_owners(3, &fraction("1")), Ok(3));
    assert!(honest_owners(3, &fraction("0.1")).is_err());
}

#[test]
fn bad_requests_are_refused() {
    assert!(release(&channel("randomized-response(t=0.6)"), 0).is_err());
    assert!(release(&channel("randomized-response(t=0.6)"), 2_000_000_000).is_err());
    for bad in [f64::NAN, -1.0, f64::INFINITY] {
        assert!(super::super::Epsilon::new(bad).is_err());
        assert!(super::super::Delta::new(bad).is_err());
    }
    assert!(super::super::Delta::new(0.0).is_err());
}

#[test]
fn a_profile_falls_from_the_divergence_at_zero_to_the_floor() {
    let accountant = release_of("sampling(sy=0.05,sn=0.05)", 1000);
    let profile = accountant.profile(&[0.0, 0.5, 2.0, f64::INFINITY]);
    assert!(profile.windows(2).all(|pair| pair[0] >= pair[1]), "{profile:?}");
    assert!((profile[3] - 0.05).abs() < 1e-12, "{profile:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The exact functions are monotone; the two ends of a claim are monotone within the certificate's tolerance.
    #[test]
    fn claims_are_monotone(f in 0.05_f64..1.0, share in 0.001_f64..0.4, owners in 20_u64..30_000, at in 0.01_f64..1.5) {
        let mechanism = format!("normal-form(f={f},r={})", f * share);
        let limit = WorkLimit::steps(20_000_000);
        let claim = |owners: u64, at: f64| release_of(&mechanism, owners).with_limit(limit).delta(epsilon(at));
        let first = claim(owners, at);
        let here = first.value().expect("a value");
        prop_assert!(here.lower() <= here.upper() && here.lower() >= 0.0);
        for second in [claim(owners, at * 1.05), claim(owners + owners / 20 + 1, at)] {
            let less = second.value().expect("a value");
            prop_assert!(less.lower() <= here.upper(), "{here:?} then {less:?}");
            let closed = first.certificate().closed() && second.certificate().closed();
            prop_assert!(!closed || less.upper() <= here.upper() * 1.05 + 1e-300, "{here:?} then {less:?}");
        }
        if here.lower() > 1e-100 {
            let back = release_of(&mechanism, owners).with_limit(limit).epsilon(delta(here.lower())).value().expect("no floor");
            prop_assert!(back.upper() >= at * (1.0 - 1e-9), "{back:?} at {at}");
            let wider = release_of(&mechanism, owners).with_limit(limit).epsilon(delta((2.0 * here.lower()).min(1.0))).value().expect("no floor");
            prop_assert!(wider.lower() <= back.upper(), "{back:?} then {wider:?}");
        }
    }
}

#[test]
fn the_delta_of_a_certified_epsilon_is_at_most_the_delta_it_was_certified_at() {
    for (text, owners, wanted) in [
        ("randomized-response(t=0.9994)", 104_994, 1.17e-8),
        ("normal-form(f=0.9,r=0.0004)", 60_000, 1e-8),
        ("normal-form(f=0.5,r=0.01)", 3000, 1e-6),
        ("noisy-sampling(sy=0.9,sn=0.0005)", 40_000, 1e-9),
        ("tuned(sy1=0.5,sy2=0.2,p1=0.9,p2=0.8,sn=0.4,p3=0.1)", 5000, 1e-5),
    ] {
        let accountant = release_of(text, owners);
        let claimed = accountant.epsilon(delta(wanted)).value().expect("a guarantee");
        let asked = accountant.delta(epsilon(claimed.upper())).value().expect("δ always has a value");
        assert!(asked.upper() <= wanted * (1.0 + 1e-6), "{text}: {asked:?} at {claimed:?}");
    }
}

/// For two classes, whichever of ε and δ is asked for: what one question certifies, the other one does, too, to 2·10⁻⁴ in ε.
#[test]
fn both_questions_about_two_classes_have_the_same_answer() {
    for (text, owners, at, wanted) in [
        ("randomized-response(t=0.9998028)", 104_994, 2.335, 1.17e-8),
        ("randomized-response(t=0.9994)", 104_994, 0.8, 1e-8),
        ("randomized-response(t=0.75)", 10_000, 0.05, 1e-6),
        ("randomized-response(t=0.99)", 3000, 1.1, 1e-10),
        ("noisy-sampling(sy=0.5,sn=0.001)", 20_000, 1.5, 1e-7),
        ("randomized-response(t=0.9) + laplace(scale=2)", 3000, 0.3, 1e-5),
    ] {
        let accountant = release_of(text, owners);
        let shown = accountant.delta(epsilon(at)).value().expect("δ always has a value");
        let back = accountant.epsilon(delta(shown.upper())).value().expect("a guarantee");
        assert!(back.upper() <= at * (1.0 + 2e-4), "{text}: {shown:?} at {at}, but {back:?} there");
        let claimed = accountant.epsilon(delta(wanted)).value().expect("a guarantee");
        let asked = accountant.delta(epsilon(claimed.upper() * (1.0 + 2e-4))).value().expect("δ always has a value");
        assert!(asked.upper() <= wanted, "{text}: {claimed:?} at {wanted}, but {asked:?} there");
    }
}

/// A joint view of very many owners whose claim is the local ε: the lower end may not take many times the work allowed.
#[test]
fn the_lower_end_of_an_overdrawn_view_takes_little_more_work() {
    let blended = channel("blended(b1=0,b2=0.25,b3=0.25,f1=0,f2=0.5,ry=4.06e-8,rn=4.06e-8)");
    let steps = Arc::new(Progress::default());
    let accountant = answer_with_release(&blended, 1, 100_000_000).expect("an answer").watched(Some(&steps));
    let claim = accountant.epsilon(delta(1e-8)).value().expect("a guarantee");
    assert_eq!(Some(claim.upper()), linked_epsilon(&blended));
    // To 2 % and a little that a coarser lattice loses.
    assert!(claim.lower() > 0.97 * 1.181_446 && claim.lower() <= 1.181_552, "{claim:?}");
    assert!(steps.done() < 200_000_000, "{} steps", steps.done());
}

#[test]
fn more_work_buys_a_closer_claim_for_a_joint_view_of_a_small_crowd() {
    let blended = channel("blended(b1=0,b2=0.2,b3=0.3,f1=0.1,f2=0.4,ry=0.03,rn=0.06)");
    let claim = |limit: WorkLimit| {
        let accountant = answer_with_release(&blended, 1, 34).expect("an answer").with_limit(limit);
        accountant.epsilon(delta(1e-8)).value().expect("a guarantee")
    };
    let (little, more) = (claim(WorkLimit::default()), claim(WorkLimit::default().times(5)));
    assert!(more.upper() < little.upper() && more.upper() <= 1.0005 * more.lower(), "{little:?} {more:?}");
}
