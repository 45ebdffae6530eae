//! Every mechanism, with settings under which a crowd of 20 says something about the truth.

pub(crate) const MECHANISMS: [&str; 14] = [
    "randomized-response(t=0.8)",
    "randomized-response(t=0.999)",
    "sampling(sy=0.05,sn=0.05)",
    "sampling(sy=0.5,sn=0.5)",
    "noisy-sampling(sy=0.5,sn=0.1)",
    "deniable-sampling(sy=0.5,sn=0.2,p1=0.5,p2=0.3)",
    "tuned(sy1=0.05,sy2=0.02,p1=0.9,p2=0.8,sn=0.01,p3=0.3)",
    "paired(b=0.5,sy=0.2,sn=0.05)",
    "cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.1)",
    "blended(b1=0,b2=0.25,b3=0.25,f1=0,f2=0.5,ry=0.01,rn=0.01)",
    "normal-form(f=0.5,r=0.001)",
    "normal-form(f=0.9,r=0.1)",
    "spread(pairs=2,f=0.5,r=0.05)",
    DATA_DEPENDENT,
];
/// An interval by the single count that looks best in the tallies covers 0.949 874 here, at 60 owners and 35 yes.
pub(crate) const DATA_DEPENDENT: &str = "custom(1=50/122:13/122, 0=3/122:41/122, ⊥=69/122:68/122)";

/// Mechanisms with noise: none before it, hardly any, much; with the ones rarer for *yes*; with noise that hides all of a small crowd.
pub(crate) const NOISY: [&str; 7] = [
    "randomized-response(t=1) + laplace(scale=1)",
    "randomized-response(t=0.999) + laplace(scale=2)",
    "randomized-response(t=0.8) + laplace(scale=0.5)",
    "randomized-response(t=0.1) + laplace(scale=3)",
    "sampling(sy=0.5,sn=0.5) + laplace(scale=1/5)",
    "deniable-sampling(sy=0.5,sn=0.2,p1=0.5,p2=0.3) + laplace(scale=1)",
    "normal-form(f=0.9,r=0.1) + laplace(scale=10)",
];
