#![allow(missing_docs, clippy::print_stdout)]
use std::time::Instant;
use uptack::plan::{Prior, Request, plan};
use uptack::privacy::{Delta, Epsilon};
fn main() {
    let a: Vec<f64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let rows: Vec<[f64; 5]> = if a.len() == 4 { vec![[a[0], a[1], a[2], a[3], 0.0]] } else { vec![
        [5000., 10., 4., 1e-6, 0.5108],
        [50000., 500., 3.4, 1e-8, 4.187],
        [50000., 500., 5., 1e-8, 1.854],
        [50000., 500., 7., 1e-8, 0.687],
        [10000., 10., 6., 1e-6, 0.180],
        [2000., 20., 3., 1e-6, 1.146],
        [30000., 0., 1., 1e-7, 3.584],
        [5000., 100., 2., 1e-6, 4.153],
        [300., 4., 4., 1e-4, 0.4197],
        [50000., 0., 1., 1e-8, 3.872],
        [50000., 500., 1., 1e-8, 7.007],
        [50000., 25000., 0.5, 1e-8, 11.61],
        [1e6, 10000., 0.1, 1e-8, 47.49],
        [1000., 100., 6., 1e-8, 0.],
        [1e6, 1000., 1., 1e-8, 0.],
    ]};
    for [n, y, e, d, known] in rows {
        let mut r = Request::new(n as u64, Prior::at(y as u64));
        r.release = Some((Epsilon::new(e).unwrap(), Delta::new(d).unwrap()));
        let t = Instant::now();
        match plan(&r) {
            Ok(p) => {
                println!("{n} {y} {e} {d}: {} {:.4} known {known} ({:+.2} %) gap {:?} {:?} calls {} {:?}", p.best.mechanism, p.best.sd, 100.0 * (p.best.sd / known - 1.0), p.gap, p.rule, p.calls, t.elapsed());
                for x in &p.alternatives { println!("     {} {:.4}", x.mechanism, x.sd) }
            }
            Err(x) => println!("{n} {y} {e} {d}: {x}"),
        }
    }
}
