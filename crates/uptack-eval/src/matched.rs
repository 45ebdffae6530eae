//! Channels at a wanted guarantee of the release.

use uptack::estimate::Estimator;
use uptack::privacy::{Delta, Epsilon, release};
use uptack::{Channel, Fraction, Mechanism};

use crate::error::Error;

/// A guarantee of the release.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted {
    /// Its ε.
    pub epsilon: f64,
    /// Its δ.
    pub delta: f64,
}

/// The `normal-form` of least error at `yes` of `owners` whose release keeps the guarantee.
///
/// Taking part always is compared with taking part a little less often than 1−e^(−ε), below which one direction of the
/// divergence vanishes and far fewer flips suffice.
pub fn best_normal_form(owners: u64, yes: u64, wanted: Wanted) -> Result<Mechanism, Error> {
    let cliff = 1.0 - (-wanted.epsilon).exp();
    let mut best: Option<(f64, Mechanism)> = None;
    for part in [1.0, cliff - 0.002, cliff * 0.99, cliff * 0.98, cliff * 0.96] {
        let mechanism = normal_form(rounded_down(part), owners, wanted)?;
        let sd = Estimator::new(&mechanism.channel())?.sd(owners, yes as f64)?;
        if best.as_ref().is_none_or(|(least, _)| sd < *least) {
            best = Some((sd, mechanism));
        }
    }
    best.map(|(_, mechanism)| mechanism).ok_or_else(|| Error::new("no participation to try"))
}

/// `normal-form` at this participation with as few flips as the guarantee allows.
pub fn normal_form(part: f64, owners: u64, wanted: Wanted) -> Result<Mechanism, Error> {
    let flip = flips(part, owners, wanted)?;
    Ok(format!("normal-form(f={part},r={flip})").parse()?)
}

/// `blended` likewise: the same release, written as shifts over a base that is the same whatever the truth.
pub fn blended(part: f64, owners: u64, wanted: Wanted) -> Result<Mechanism, Error> {
    let (flip, base) = (flips(part, owners, wanted)?, (1.0 - part) / 2.0);
    Ok(format!("blended(b1=0,b2={base},b3={base},f1=0,f2={part},ry={flip},rn={flip})").parse()?)
}

/// `spread` over two pairs, everybody taking part.
pub fn spread(owners: u64, wanted: Wanted) -> Result<Mechanism, Error> {
    let flip = flips(1.0, owners, wanted)?;
    Ok(format!("spread(pairs=2,f=1,r={flip})").parse()?)
}

/// Shuffled randomized response: only the tally is released.
pub fn shuffled(owners: u64, wanted: Wanted) -> Result<Mechanism, Error> {
    let flip = flips(1.0, owners, wanted)?;
    let truth = Fraction::from_f64(flip)?.complement();
    Ok(format!("randomized-response(t={truth})").parse()?)
}

/// The least flip that keeps the guarantee, certified over every crowd; rounded up to five digits.
fn flips(part: f64, owners: u64, wanted: Wanted) -> Result<f64, Error> {
    let (mut low, mut high) = ((0.01 / owners as f64).ln(), (part / 2.0).ln());
    while high - low > 2e-4 {
        let half = 0.5 * (low + high);
        let ends = release(&channel(part, half.exp())?, owners)?.delta_of_ends(Epsilon::new(wanted.epsilon)?);
        if ends.upper() > wanted.delta { low = half } else { high = half }
    }
    // The ends are nearly the worst crowds, not always: the certificate has the last word.
    let mut flip = rounded_up(high.exp());
    for _ in 0..200 {
        let flip_or_half = flip.min(part / 2.0);
        let certified = release(&channel(part, flip_or_half)?, owners)?;
        let claim = certified.epsilon(Delta::new(wanted.delta)?).value();
        if flip_or_half < flip || claim.is_some_and(|claim| claim.upper() <= wanted.epsilon) {
            return Ok(flip_or_half);
        }
        flip = rounded_up(flip * 1.002);
    }
    Err(Error::new(format!("no flips reach ε = {} at δ = {} with {owners} owners", wanted.epsilon, wanted.delta)))
}

fn channel(part: f64, flip: f64) -> Result<Channel, Error> {
    Ok(format!("normal-form(f={part},r={flip})").parse::<Mechanism>()?.channel())
}

/// Four digits, for people to read; downwards, so as not to step over the cliff.
fn rounded_down(value: f64) -> f64 {
    (value * 1e4).floor() / 1e4
}

fn rounded_up(value: f64) -> f64 {
    let scale = 10f64.powi(4 - value.log10().floor() as i32);
    let up = (value * scale).ceil() / scale;
    // Printing five digits and reading them again drops the noise of the division.
    format!("{up:.4e}").parse().unwrap_or(up)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Wanted = Wanted { epsilon: 1.0, delta: 1e-8 };

    /// The reference optima for n = 50 000 and (1, 1e-8): 3.872 at f = 0.626 for yes = 0, 7.007 at f = 1 for 500.
    #[test]
    fn the_reference_optima_are_found() {
        let sd =
            |mechanism: &Mechanism, yes: f64| Estimator::new(&mechanism.channel()).unwrap().sd(50_000, yes).unwrap();
        let few = best_normal_form(50_000, 0, WANTED).unwrap();
        assert!((sd(&few, 0.0) / 3.872 - 1.0).abs() < 0.01, "{few}: {}", sd(&few, 0.0));
        let many = best_normal_form(50_000, 500, WANTED).unwrap();
        assert!((sd(&many, 500.0) / 7.007 - 1.0).abs() < 0.01, "{many}: {}", sd(&many, 500.0));
    }

    #[test]
    fn what_is_matched_is_certified() {
        for mechanism in
            [blended(0.5, 2000, WANTED).unwrap(), shuffled(2000, WANTED).unwrap(), spread(2000, WANTED).unwrap()]
        {
            let claim = release(&mechanism.channel(), 2000).unwrap().epsilon(Delta::new(1e-8).unwrap());
            let upper = claim.value().unwrap().upper();
            assert!(upper <= 1.0 && upper > 0.97, "{mechanism}: {upper}");
        }
    }
}
