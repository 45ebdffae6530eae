//! The owner's side in a device of your own: one visit to a desk.
//!
//! `cargo run --release -p uptack-owner --example embed_an_owner -- http://127.0.0.1:8080 policy.toml ledger`
//!
//! [docs/tutorial.md](../../../docs/tutorial.md) shows how to start a desk and write a policy, [docs/owner.md](../../../docs/owner.md)
//! what happens in which order.
#![allow(clippy::print_stdout, reason = "an example shows its results")]

use std::path::Path;

use uptack_owner::attributes::Attributes;
use uptack_owner::check::Checker;
use uptack_owner::client::{Client, Config};
use uptack_owner::ledger::Ledger;
use uptack_owner::policy::Policy;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [desk, policy, ledger] = arguments.as_slice() else {
        return Err("usage: embed_an_owner DESK POLICY LEDGER_FOLDER".into());
    };
    // What the owner allows: whose cards, which attributes, how much per card and in a lifetime.
    let checker = Checker::new(Policy::read(Path::new(policy))?);
    // What was answered and what is left; written before the first coin is tossed.
    let ledger = Ledger::open(Path::new(ledger))?;
    let client = Client::new(Config::new(desk.parse()?), checker, ledger)?;

    // What the device knows of itself. It never leaves the device, and has no part in whether a card is answered.
    let attributes = Attributes::from_json(r#"{"station": "7", "speed": 42}"#)?;
    let owners = [("this-device".to_owned(), attributes)];
    for outcome in client.visit(&owners, |_, _| {}).await? {
        println!("{}: {} {}", outcome.query, outcome.status.word(), outcome.reason.unwrap_or_default());
    }
    Ok(())
}
