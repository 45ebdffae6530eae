//! Channels that might be better than a plan, found without the planner.

use super::*;

/// Rivals that are worse than a plan by more than this are not looked at.
const CLOSE: f64 = 0.02;
/// No rival was ever better by more.
const MOST: f64 = 0.3;

/// A family with everything but how much doubt an answer leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    RandomizedResponse,
    NormalForm {
        part: f64,
    },
    /// Who speaks: owners of *no*, or of *yes*.
    NoisySampling {
        part: f64,
        of_no: bool,
    },
    /// Participation of *yes* and of *no*, and how many times more doubt there is about the former.
    Tuned {
        parts: [f64; 2],
        lean: f64,
    },
    Blended {
        part: f64,
    },
    Spread {
        pairs: u64,
        part: f64,
    },
}

impl Shape {
    /// The member with this doubt: the share of answers that are flipped.
    fn mechanism(&self, doubt: f64) -> Option<Mechanism> {
        let text = match *self {
            Self::RandomizedResponse => format!("randomized-response(t={})", 1.0 - doubt),
            Self::NormalForm { part } => format!("normal-form(f={part},r={})", part * doubt),
            Self::NoisySampling { part, of_no: false } => format!("noisy-sampling(sy={part},sn={})", part * doubt),
            Self::NoisySampling { part, of_no: true } => format!("noisy-sampling(sy={},sn={part})", part * doubt),
            Self::Tuned { parts: [sy, sn], lean } => {
                let (truthful, forced) = (1.0 - doubt * lean.min(1.0), doubt / lean.max(1.0));
                format!("tuned(sy1={sy},sy2=0,p1={truthful},p2=0,sn={sn},p3={forced})")
            }
            Self::Blended { part } => {
                let (base, flip) =
                    (Fraction::from_f64(part).ok()?.complement().times(&Fraction::new(1, 2).ok()?), part * doubt);
                format!("blended(b1=0,b2={base},b3={base},f1=0,f2={part},ry={flip},rn={flip})")
            }
            Self::Spread { pairs, part } => format!("spread(pairs={pairs},f={part},r={})", part * doubt),
        };
        Some(text.parse().unwrap_or_else(|error| panic!("{text}: {error}")))
    }

    /// The member with the most doubt whose error is at most `goal`: of all of these it gives the least away.
    fn at_error(&self, request: &Request, goal: f64) -> Option<Mechanism> {
        let sd = |log_doubt: f64| {
            let channel = self.mechanism(log_doubt.exp())?.channel();
            Estimator::new(&channel).ok()?.sd(request.owners, request.yes.low as f64).ok()
        };
        let (mut low, mut high) = (1e-12f64.ln(), 0.499f64.ln());
        if sd(low)? > goal {
            return None;
        }
        while high - low > 4e-4 {
            let half = 0.5 * (low + high);
            if sd(half).is_some_and(|sd| sd <= goal) { low = half } else { high = half }
        }
        self.mechanism(low.exp())
    }
}

/// The best of these shapes that keeps the request by its certificate, with the share by which its error is smaller than the
/// planned one; none where none comes close.
pub(crate) fn best_rival(request: &Request, planned: f64, shapes: Vec<Shape>) -> Option<(f64, Mechanism)> {
    let within = |shape: &Shape, gain: f64| {
        let mechanism = shape.at_error(request, planned * (1.0 - gain))?;
        may_keep(request, &mechanism.channel()).then_some(mechanism)
    };
    let mut close: Vec<(f64, Shape)> = Vec::new();
    for shape in shapes.into_iter().filter(|shape| within(shape, -CLOSE).is_some()) {
        let (mut low, mut high) = (-CLOSE, MOST);
        while high - low > 5e-4 {
            let half = 0.5 * (low + high);
            if within(&shape, half).is_some() { low = half } else { high = half }
        }
        close.push((low, shape));
    }
    close.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let mut best: Option<(f64, Mechanism)> = None;
    for (gain, shape) in close.into_iter().take(3) {
        // A certificate is a little wider than the crowds of one truth.
        for gain in [0.0, 1e-3, 3e-3, 1e-2].map(|less| gain - less) {
            if best.as_ref().is_some_and(|(best, _)| *best >= gain) {
                break;
            }
            if let Some(mechanism) =
                within(&shape, gain).filter(|mechanism| is_certified(request, &mechanism.channel()))
            {
                best = Some((gain, mechanism));
                break;
            }
        }
    }
    best
}

/// Every family of two numbers in steps, closer together towards the cliff and full participation.
pub(crate) fn grid(request: &Request) -> impl Iterator<Item = Shape> {
    let most = request.participation.unwrap_or(1.0);
    let cliff = (-request.release.unwrap().0.value()).exp();
    let even = (1..=12).map(move |step| f64::from(step) / 12.0 * most);
    let near = [1.0, 1.002, 1.01, 1.05, 1.2].map(|times| (1.0 - cliff * times).clamp(0.01, most));
    let parts = even.chain(near).chain([0.01 * most, 0.03 * most, 0.999 * most]);
    let several = request.form == Form::Any && request.answer_epsilon.is_some();
    let shapes = parts.flat_map(|part| {
        [
            Shape::NormalForm { part },
            Shape::NoisySampling { part, of_no: false },
            Shape::NoisySampling { part, of_no: true },
        ]
    });
    let several = [0.2, 0.5, 0.9, 1.0].into_iter().filter(move |_| several).flat_map(move |share| {
        let part = share * most;
        [Shape::Blended { part }, Shape::Spread { pairs: 2, part }, Shape::Spread { pairs: 3, part }]
    });
    shapes.chain(several).chain((most >= 1.0).then_some(Shape::RandomizedResponse))
}

/// Whether the local bounds are kept, and the release's as far as the crowds of one truth show it.
fn may_keep(request: &Request, channel: &Channel) -> bool {
    let (epsilon, delta) = request.release.unwrap();
    let within = |found: Option<f64>, most: f64| found.is_some_and(|epsilon| epsilon <= most);
    let answer = |most: f64| (0..channel.answers().len()).all(|k| within(answer_epsilon(channel, k).unwrap(), most));
    says_something(channel, delta)
        && request.linked_epsilon.is_none_or(|most| within(linked_epsilon(channel), most))
        && request.answer_epsilon.is_none_or(answer)
        && release(channel, claim_owners(request)).unwrap().delta_of_ends(epsilon).lower() <= delta.value()
}

/// By the certified accounting over every crowd.
fn is_certified(request: &Request, channel: &Channel) -> bool {
    let (epsilon, delta) = request.release.unwrap();
    let accountant = release(channel, claim_owners(request)).unwrap();
    accountant.epsilon(delta).value().is_some_and(|found| found.upper() <= epsilon.value())
}

fn claim_owners(request: &Request) -> u64 {
    honest_owners(request.minimum_batch, &request.honest).unwrap()
}

/// Whoever never speaks is exact where nobody would say yes: such channels estimate nothing.
fn says_something(channel: &Channel, delta: Delta) -> bool {
    channel.cells().iter().all(|cell| {
        let [yes, no] = [cell.yes(), cell.no()].map(|probability| probability.numerator() as f64 / 2f64.powi(64));
        (yes > 0.0) == (no > 0.0) && (yes.max(no) > 100.0 * delta.value() || yes == no)
    })
}
