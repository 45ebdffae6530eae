//! `uptack channel` of a mechanism with options: the law of one contribution, and of one count.

use uptack::contribution::Contributions;
use uptack_document::contributions_json;

use crate::failure::Result;
use crate::output::{Table, grouped, print_result, readable};

pub(crate) fn run_channel(contributions: &Contributions, json: bool) -> Result<()> {
    print_result(json, &contributions_json(contributions), || describe(contributions))
}

fn describe(contributions: &Contributions) -> String {
    format!(
        "{contributions}\n\n{}\n\n{}\n{}\n{}\n",
        possibilities_words(contributions),
        law_table(contributions).render(),
        count_table(contributions).render(),
        published_words(contributions),
    )
}

fn possibilities_words(contributions: &Contributions) -> String {
    let options = grouped(contributions.options() as u64);
    if contributions.is_choice() {
        return format!("Each owner has one of {options} options, and a coin decides which one the report names:");
    }
    let most = contributions.most();
    let plural = if most == 1 { "contribution" } else { "contributions" };
    format!(
        "Each owner makes {most} {plural}. Each goes to one of the {options} counts or to none of them, as a coin of its own \
         decides:"
    )
}

/// The probabilities of one contribution.
fn law_table(contributions: &Contributions) -> Table {
    let law = contributions.law();
    let mut table = Table::new(&["possibility", "how many", "probability of each"]);
    table.row(["the true one", "1", &readable(law.told().to_f64())]);
    let others = grouped(u64::from(law.possibilities()) - 1);
    table.row(["another one", &others, &readable(law.other().to_f64())]);
    if law.silent().numerator() > 0 {
        table.row(["⊥, none of them", "1", &readable(law.silent().to_f64())]);
    }
    table
}

/// One count as a yes/no question of its own.
fn count_table(contributions: &Contributions) -> Table {
    let law = contributions.count_law();
    let (yes, no) = (law.yes.to_f64(), law.no.to_f64());
    let ratio = if no > 0.0 { readable(yes / no) } else { "members only".to_owned() };
    let mut table = Table::new(&["an owner adds to a count if it", "belongs to it", "does not", "ratio"]);
    table.row(["with probability".to_owned(), readable(yes), readable(no), ratio]);
    table
}

fn published_words(contributions: &Contributions) -> String {
    let counts = match contributions.counts() {
        1 if contributions.is_choice() => "the count of the first option".to_owned(),
        1 => "the count".to_owned(),
        counts => format!("all {} counts", grouped(counts as u64)),
    };
    match contributions.noise() {
        Some(noise) => format!("Published: {counts}, each plus {noise} from each of the two aggregators."),
        None => format!("Published: {counts}, without noise."),
    }
}
