//! The mechanisms that tests go through, with settings that make every cell and every reading matter, and with a claim in
//! some views and none in others. The library's own tests read this file, too.

pub(crate) const FAMILY: [&str; 10] = [
    "randomized-response(t=0.8)",
    "sampling(sy=0.05,sn=0.05)",
    "noisy-sampling(sy=0.05,sn=0.01)",
    "deniable-sampling(sy=0.5,sn=0.2,p1=0.5,p2=0.3)",
    "tuned(sy1=0.05,sy2=0.02,p1=0.9,p2=0.8,sn=0.01,p3=0.3)",
    "paired(b=0.5,sy=0.2,sn=0.05)",
    "cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.1)",
    "blended(b1=0.05,b2=0.25,b3=0.25,f1=0.05,f2=0.4,ry=0.0001,rn=0.0001)",
    "normal-form(f=0.5,r=0.0001)",
    "spread(pairs=2,f=0.5,r=0.0001)",
];
