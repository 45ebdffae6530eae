//! `uptack cancel`

use clap::Args;
use serde_json::json;

use crate::desk::DeskArguments;
use crate::failure::Result;
use crate::output::print_result;
use crate::runtime::block_on;

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

pub(crate) fn run(Arguments { query, desk }: &Arguments, json: bool) -> Result<()> {
    block_on(desk.client()?.cancel(query))?;
    print_result(json, &json!({"query": query, "state": "cancelled"}), || format!("{query} is cancelled.\n"))
}
