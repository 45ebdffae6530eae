#![allow(missing_docs, clippy::print_stdout)]
use std::time::Instant;
use uptack::privacy::{self, Delta};
use uptack::Mechanism;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let n: u64 = a[1].parse().unwrap();
    let m: Mechanism = a[2].parse().unwrap();
    let d = Delta::new(a[3].parse().unwrap()).unwrap();
    let acc = privacy::release(&m.channel(), n).unwrap();
    let t = Instant::now();
    let e = acc.epsilon_of_ends(d);
    println!("ends {e:?} {:?}", t.elapsed());
    let t = Instant::now();
    let g = acc.epsilon(d);
    println!("cert {:?} {} {:?}", g.value(), g.crowd(), t.elapsed());
    let t = Instant::now();
    let v = privacy::Views::of(&m.channel(), n, privacy::Target::Delta(d), privacy::WorkLimit::default()).unwrap();
    println!("views {:?} {:?}", v.answers_with_release[0].value(), t.elapsed());
    let t = Instant::now();
    let v = privacy::Views::of(&m.channel(), n, privacy::Target::Delta(d), privacy::WorkLimit::steps(2_000_000)).unwrap();
    println!("views little {:?} {:?}", v.answers_with_release[0].value(), t.elapsed());
}
