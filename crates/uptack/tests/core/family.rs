//! What holds of every mechanism that tests go through.

pub(crate) use crate::settings::FAMILY;
use uptack::{Channel, Mechanism};

pub(crate) fn channel(text: &str) -> Channel {
    text.parse::<Mechanism>().unwrap().channel()
}

#[test]
fn laws_sum_to_one_in_integers_and_every_output_is_covered() {
    for text in FAMILY {
        let channel = channel(text);
        for law in [uptack::Cell::yes, uptack::Cell::no] {
            assert_eq!(channel.cells().iter().map(|cell| law(cell).numerator()).sum::<u128>(), 1 << 64, "{text}");
        }
        for bin in channel.bins() {
            let covered = channel.cells().iter().any(|cell| cell.outputs()[bin.answer] == bin.output);
            assert!(covered, "{text}: nobody can answer {bin:?}");
        }
    }
}

#[test]
fn the_family_has_at_most_three_classes_and_only_spread_hides_its_cells() {
    for text in FAMILY {
        let channel = channel(text);
        assert!(channel.classes().len() <= 3, "{text}");
        assert_eq!(channel.determined(), !text.starts_with("spread"), "{text}");
    }
}

/// The one-answer normal form, written as shifts and written as the tuned mechanism, is one law over the classes.
#[test]
fn three_ways_to_write_the_normal_form() {
    let classes = |text: &str| -> Vec<(u128, u128)> {
        channel(text)
            .classes()
            .iter()
            .map(|class| (class.probability.yes.numerator(), class.probability.no.numerator()))
            .collect()
    };
    let normal = classes("normal-form(f=0.5,r=1/1024)");
    assert_eq!(classes("tuned(sy1=0.5,sy2=0,p1=511/512,p2=0,sn=0.5,p3=1/512)"), normal);
    assert_eq!(classes("blended(b1=0,b2=0.25,b3=0.25,f1=0,f2=0.5,ry=1/1024,rn=1/1024)"), normal);
    assert_eq!(classes("spread(pairs=2,f=0.5,r=1/1024)"), normal);
}

#[test]
fn parameters_that_do_not_fit_are_refused_with_the_cell_and_the_amount() {
    for (text, part) in [
        ("normal-form(f=0.1,r=0.2)", "normal-form: r = 0.2 is more than f = 0.1, by 0.1"),
        ("tuned(sy1=0.6,sy2=0.5,p1=1,p2=1,sn=0,p3=0)", "tuned: sy1 + sy2: 1.1 is not between 0 and 1"),
        ("paired(b=0.1,sy=0.2,sn=0)", "paired: cell 11: sy = 0.2 is more than b = 0.1, by 0.1"),
        ("paired(b=0.9,sy=0.2,sn=0)", "paired: cell 22: sy = 0.2 is more than 1 - b = 0.1, by 0.1"),
        ("cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.2)", "b1 + b2 + b3 + s must be 1; it is 0.1 too much"),
        ("cancelling(b1=0.1,b2=0.3,b3=0.3,s=0.2)", "b1 + b2 + b3 + s must be 1; it is 0.1 too little"),
        ("blended(b1=0.2,b2=0.25,b3=0.25,f1=0,f2=0.4,ry=0,rn=0)", "cell 111: b1 = 0.2 is more than"),
        ("blended(b1=0,b2=0.5,b3=0.5,f1=0.1,f2=0,ry=0,rn=0)", "b2 + b3 + f1 + f2: 1.1"),
        ("blended(b1=0,b2=0,b3=0,f1=0,f2=0.4,ry=0.5,rn=0)", "cell 133: ry = 0.5 is more than f2 = 0.4, by 0.1"),
        ("blended(b1=0,b2=0,b3=0,f1=0,f2=0.4,ry=0,rn=0.5)", "cell 132: rn = 0.5 is more than f2 = 0.4, by 0.1"),
        ("spread(pairs=0,f=1,r=0)", "pairs = 0 is not between 1 and 3"),
        ("spread(pairs=2,f=0.1,r=0.2)", "r = 0.2 is more than f = 0.1"),
    ] {
        let error = text.parse::<Mechanism>().unwrap_err();
        assert!(error.to_string().contains(part), "{text}: {error}");
        assert!(error.is_parameter(), "{text}");
    }
}

/// Extreme parameters, at which rounding would leave a law above one or a part below zero.
#[test]
fn laws_hold_at_the_ends_of_their_ranges() {
    for text in [
        "normal-form(f=1,r=1)",
        "normal-form(f=1/3,r=1/3)",
        "normal-form(f=1/2^65,r=1/2^65)",
        "paired(b=2/3,sy=1/3,sn=1/3)",
        "paired(b=1/2^65,sy=1/2^65,sn=0)",
        "cancelling(b1=0,b2=2/9,b3=2/9,s=5/9)",
        "cancelling(b1=1/3,b2=1/3,b3=1/3,s=0)",
        "blended(b1=0,b2=1/3,b3=1/3,f1=0,f2=1/3,ry=1/3,rn=1/3)",
        "blended(b1=0,b2=1/6,b3=1/6,f1=1/6,f2=1/2,ry=1/2,rn=0)",
        "spread(pairs=3,f=1,r=1)",
        "spread(pairs=3,f=1/7,r=1/7)",
        "deniable-sampling(sy=1/3,sn=1/3,p1=1/3,p2=1)",
        "tuned(sy1=1/3,sy2=2/3,p1=1,p2=1,sn=1,p3=1)",
    ] {
        let channel = channel(text);
        for law in [uptack::Cell::yes, uptack::Cell::no] {
            assert_eq!(channel.cells().iter().map(|cell| law(cell).numerator()).sum::<u128>(), 1 << 64, "{text}");
        }
    }
}
