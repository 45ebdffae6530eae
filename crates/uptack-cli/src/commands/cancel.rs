//! `uptack cancel`

use clap::Args;
use serde_json::json;

use crate::desk::{DeskArguments, block_on};
use crate::failure::Failure;
use crate::output::{print, print_json};

/// Cancel a query: nothing is released, and its reports are deleted
///
/// What owners spent of their budgets stays spent.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack cancel QUERY --desk http://127.0.0.1:8080 --token desk/tokens/analyst")]
pub(crate) struct Arguments {
    /// The query's name, as `uptack ask` printed it
    // A query's name may begin with a hyphen.
    #[arg(allow_hyphen_values = true)]
    query: String,
    #[command(flatten)]
    desk: DeskArguments,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let client = arguments.desk.client()?;
    block_on(async { Ok(client.cancel(&arguments.query).await?) })?;
    if json {
        return print_json(&json!({"query": arguments.query, "state": "cancelled"}));
    }
    print(&format!("{} is cancelled.\n", arguments.query))
}
