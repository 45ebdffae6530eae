//! What does a mechanism of your own give away? Write down its cells and ask.
//!
//! `cargo run --release --example custom_channel`
#![allow(clippy::print_stdout, reason = "an example shows its results")]

use uptack::Mechanism;
use uptack::privacy::{Delta, Target, Views, WorkLimit};

fn main() -> Result<(), uptack::Error> {
    // Five outputs; before the colon the probability for an owner of *yes*, behind it for one of *no*.
    let text = "custom(1=0.4:0.1, 2=0.2:0.1, 3=0.2:0.2, 4=0.1:0.2, 5=0.1:0.4)";
    let channel = text.parse::<Mechanism>()?.channel();
    for owners in [100, 1_000, 10_000] {
        let target = Target::Delta(Delta::new(1e-6)?);
        let views = Views::of(&channel, owners, target, WorkLimit::default())?;
        let local = views.linked.expect("every cell can be drawn by both truths");
        let release = views.release.value().expect("and so the counts have a guarantee, too");
        println!(
            "{owners} owners: ε = {local:.4} for one answer; for the published counts between {:.4} and {:.4} at δ = 1e-6",
            release.lower(),
            release.upper()
        );
    }
    Ok(())
}
