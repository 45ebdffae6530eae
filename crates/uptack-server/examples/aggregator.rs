//! One aggregator as a process of its own: `aggregator leader|helper DATA LISTEN [PEER]`.
//!
//! Prints its address on standard output once it takes requests, logs to standard error, and stops
//! in order when it is asked to. Tasks are read from `DATA/tasks/*.json`.

use std::io::Write;
use uptack_dap::task::AggregatorRole;
use uptack_server::{
    aggregator::{self, Config},
    base::logging,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    logging::init(tracing::Level::DEBUG);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [role, data, listen, peer @ ..] = arguments.as_slice() else {
        return Err("usage: aggregator leader|helper DATA LISTEN [PEER]".into());
    };
    let role = match role.as_str() {
        "leader" => AggregatorRole::Leader,
        "helper" => AggregatorRole::Helper,
        _ => return Err("the role is leader or helper".into()),
    };
    let mut config = Config::new(role, data);
    config.listen = listen.parse()?;
    config.peer = peer.first().map(|url| url.parse()).transpose()?;
    config.gather = std::time::Duration::from_millis(20);
    // The tests' tasks have no cards.
    config.admission.allow_tasks_without_card = true;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(aggregator::run(config, |aggregator| {
        let mut output = std::io::stdout();
        let operations = aggregator.operations_url().map_or(String::new(), |url| url.to_string());
        let _ = writeln!(output, "{}\n{operations}", aggregator.url());
        let _ = output.flush();
    }))?;
    Ok(())
}
