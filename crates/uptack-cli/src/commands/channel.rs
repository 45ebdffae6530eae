//! `uptack channel`

use clap::Args;
use uptack::{Channel, answer_name};
use uptack_document::ChannelDocument;

use crate::failure::Failure;
use crate::mechanism;
use crate::output::{Table, print, print_json, readable};

/// Show a mechanism's cells and both laws, as accounted for and sampled
#[derive(Args)]
#[command(after_help = "Examples:
  uptack channel 'randomized-response(t=0.8)'
  uptack channel 'blended(b1=0,b2=0.25,b3=0.25,f1=0,f2=0.5,ry=1e-4,rn=1e-4)'
  uptack channel 'custom(1=2/3:1/3, 0=1/3:2/3)' --json > channel.json
  uptack channel 'randomized-response(t=0.999) + laplace(scale=1)'
  uptack channel channel.json
  uptack channel examples/cancelling.alg")]
pub(crate) struct Arguments {
    /// name(key=value, …), an `.alg` file, or a file that `uptack channel --json` wrote
    mechanism: String,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let named = mechanism::read(&arguments.mechanism)?;
    let name = named.mechanism.to_string();
    if json {
        return print_json(&ChannelDocument::new(name, &named.channel));
    }
    print(&format!("{name}\n\n{}", describe(&named.channel)))
}

/// The table of cells.
pub(super) fn describe(channel: &Channel) -> String {
    let letters: String = (0..channel.answers().len()).map(answer_name).collect();
    let mut table = Table::new(&[&letters, "yes", "no", "ratio"]);
    for cell in channel.cells() {
        let (yes, no) = (cell.yes().to_f64(), cell.no().to_f64());
        let ratio = match (yes > 0.0, no > 0.0) {
            (false, false) => "never".to_owned(),
            (true, false) => "yes only".to_owned(),
            (false, true) => "no only".to_owned(),
            (true, true) => readable(yes / no),
        };
        table.row([cell.name(), readable(yes), readable(no), ratio]);
    }
    let answers = channel.answers().len();
    let plural = if answers == 1 { "answer" } else { "answers" };
    if let Some(noise) = channel.noise() {
        return format!(
            "{}\nOne answer per owner. What is published is the number of answers 1, to which each of two aggregators adds {noise}.\n",
            table.render()
        );
    }
    let seen = if channel.determined() { "fix the count of every cell" } else { "do not fix the count of every cell" };
    format!("{}\n{answers} {plural} per owner, drawn with one coin; the tallies {seen}.\n", table.render())
}
