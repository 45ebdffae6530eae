//! `uptack channel`

use clap::Args;
use uptack::{Cell, Channel, answer_name};
use uptack_document::ChannelDocument;

use crate::failure::Result;
use crate::mechanism::{self, Named};
use crate::output::{Table, print_result, readable};

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

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<()> {
    let Named { mechanism, channel, .. } = mechanism::read(&arguments.mechanism)?;
    let document = ChannelDocument::new(mechanism.to_string(), &channel);
    print_result(json, &document, || format!("{mechanism}\n\n{}", describe(&channel)))
}

/// The table of cells, and what is published of them.
pub(super) fn describe(channel: &Channel) -> String {
    format!("{}\n{}\n", cells_table(channel).render(), published(channel))
}

fn cells_table(channel: &Channel) -> Table {
    let letters: String = (0..channel.answers().len()).map(answer_name).collect();
    Table::new(&[letters.as_str(), "yes", "no", "ratio"]).with_rows(channel.cells().iter().map(cell_row))
}

fn cell_row(cell: &Cell) -> [String; 4] {
    let (yes, no) = (cell.yes().to_f64(), cell.no().to_f64());
    [cell.name(), readable(yes), readable(no), ratio(yes, no)]
}

fn ratio(yes: f64, no: f64) -> String {
    match (yes > 0.0, no > 0.0) {
        (false, false) => "never".to_owned(),
        (true, false) => "yes only".to_owned(),
        (false, true) => "no only".to_owned(),
        (true, true) => readable(yes / no),
    }
}

fn published(channel: &Channel) -> String {
    match channel.noise() {
        Some(noise) => format!(
            "One answer per owner. What is published is the number of answers 1, to which each of two aggregators adds {noise}."
        ),
        None => published_tallies(channel),
    }
}

fn published_tallies(channel: &Channel) -> String {
    let answers = channel.answers().len();
    let plural = if answers == 1 { "answer" } else { "answers" };
    let seen = if channel.determined() { "fix the count of every cell" } else { "do not fix the count of every cell" };
    format!("{answers} {plural} per owner, drawn with one coin; the tallies {seen}.")
}
