//! `uptack ask`

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use uptack::Fraction;
use uptack::card::{BallotQuery, Card, CardBallot, CardSeries, Timestamp, plan_whole, whole_progress};
use uptack::plan::{Noise, Over, Prior, Request, Trust};
use uptack::privacy::composition::Ballot;
use uptack::privacy::{Delta, Epsilon};
use uptack_dap::desk_client::{Opened, Schedule};
use uptack_owner::predicate::Predicate;

use crate::arguments::{count, fraction, range, seconds};
use crate::card_file;
use crate::desk::{DeskArguments, block_on};
use crate::failure::Failure;
use crate::output::{print, print_json, read_small_file, readable, readable_up};
use crate::progress::watched;
use crate::trust_arguments::{TrustArguments, Trusted};

/// Ask a crowd: plan the query, have the desk sign its card and open it
///
/// The guarantees are for everything that the card asks, a ballot's questions and a series' repetitions together. A
/// query closes at the time asked for or a little later, because windows begin at multiples of their length. Unless
/// --noise or --trust says otherwise, the aggregators add noise so that one honest aggregator is enough.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack ask --desk http://127.0.0.1:8080 --token desk/tokens/analyst --question 'Are you on the A1?' \\
    --where 'road == \"A1\"' --owners 5000 --minimum-batch 4000 --yes 500 --epsilon 1 --delta 1e-6 --closes 10m
  uptack ask --desk http://127.0.0.1:8080 --token desk/tokens/analyst --question 'At which station are you?' \\
    --each station --values 1203871,1203872,1203873 --owners 5000 --yes 50 --epsilon 1 --closes 10m
  uptack ask --desk http://127.0.0.1:8080 --token desk/tokens/analyst --question 'Do you stand?' \\
    --where 'speed < 5.0' --owners 5000 --yes 500 --epsilon 2 --every 5m --times 12")]
pub(crate) struct Arguments {
    #[command(flatten)]
    desk: DeskArguments,
    /// The question in words
    #[arg(long)]
    question: String,
    /// What a yes is, as a CEL expression over an owner's attributes
    #[arg(long = "where", required_unless_present = "each")]
    predicate: Option<String>,
    /// A ballot: one question for each value of this attribute, for owners of whom --where is true
    #[arg(long, requires = "values")]
    each: Option<String>,
    /// The values: a,b,c, or a file with one a line
    #[arg(long, requires = "each")]
    values: Option<String>,
    /// How many questions of a ballot an owner may answer with yes
    #[arg(long, default_value = "1", requires = "each", value_parser = count)]
    most_yes: u64,
    /// The attributes that you mean to ask about; by default those that the expression reads
    #[arg(long, value_delimiter = ',')]
    attributes: Vec<String>,
    /// How many owners will answer
    #[arg(long, value_parser = count)]
    owners: u64,
    /// Roughly how many of them hold yes, to each question: a number, or a range such as 0..500
    #[arg(long, value_parser = range)]
    yes: (u64, u64),
    /// The largest ε of everything that is published
    #[arg(long)]
    epsilon: f64,
    /// The δ of everything that is published
    #[arg(long, default_value = "1e-8")]
    delta: f64,
    #[command(flatten)]
    trust: TrustArguments,
    /// The share of owners who are counted on to toss their coins
    #[arg(long, default_value = "1", value_parser = fraction)]
    honest: Fraction,
    /// Below this many answers nothing is released; by default all owners
    #[arg(long, value_parser = count)]
    minimum_batch: Option<u64>,
    /// How long answers are taken, such as 90s, 10m, 2h or 1d
    #[arg(long, value_parser = seconds, required_unless_present = "every", conflicts_with = "every")]
    closes: Option<u64>,
    /// A series: how long each of its windows is
    #[arg(long, value_parser = seconds, requires = "times")]
    every: Option<u64>,
    /// A series: how many windows
    #[arg(long, value_parser = count, requires = "every")]
    times: Option<u64>,
    /// Write the card as it was signed, as TOML or JSON by its ending
    #[arg(long)]
    out: Option<PathBuf>,
}

/// What is asked, once it is known to be askable.
struct Question {
    predicate: Option<String>,
    ballot: Option<CardBallot>,
    attributes: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let client = arguments.desk.client()?;
    let question = arguments.question()?;
    let schedule = arguments.schedule()?;
    let (request, queries) = (arguments.request()?, arguments.queries(&question)?);
    let draft = |card| arguments.draft(card, &question);
    let mut card =
        watched("of the plan", whole_progress(queries), |progress| plan_whole(&request, queries, draft, progress))?;
    // The desk fills in the series with its times.
    card.series = None;
    let opened = block_on(async { Ok(client.open(&card, schedule).await?) })?;
    if let Some(path) = &arguments.out {
        card_file::write(path, &opened.card)?;
    }
    let Some(first) = opened.queries.first() else {
        return Err(Failure::environment("the desk opened nothing"));
    };
    if !json {
        return print(&describe(&opened));
    }
    let mut document = json!({"query": first.query, "card": opened.card, "opens": first.opens, "closes": first.closes});
    if arguments.every.is_some() {
        let entry = |query: &uptack_dap::desk_client::OpenedQuery| json!({"query": query.query, "opens": query.opens, "closes": query.closes});
        document["queries"] = opened.queries.iter().map(entry).collect();
    }
    print_json(&document)
}

impl Arguments {
    fn schedule(&self) -> Result<Schedule, Failure> {
        match (self.closes, self.every, self.times) {
            (Some(seconds), None, None) => Ok(Schedule::Once { seconds }),
            (None, Some(every), Some(times)) => Ok(Schedule::Series { every, times }),
            _ => Err(Failure::request("when does the query close?").with_hint("give --closes, or --every and --times")),
        }
    }

    /// The predicates are parsed as owners will parse them, so that what they would refuse is not asked.
    fn question(&self) -> Result<Question, Failure> {
        let predicates = match &self.each {
            None => vec![(String::new(), self.predicate.clone().unwrap_or_default())],
            Some(attribute) => self.values()?.into_iter().map(|value| self.one_of(attribute, value)).collect(),
        };
        let mut attributes = Vec::new();
        for (name, text) in &predicates {
            let parsed = Predicate::parse(text).map_err(|error| {
                let place = if name.is_empty() { String::new() } else { format!("{name}: ") };
                Failure::request(format!("{place}{error}"))
                    .with_hint("predicates are CEL, as in 'station == \"1203871\"'")
            })?;
            attributes.extend(parsed.attributes().iter().cloned());
        }
        attributes.sort();
        attributes.dedup();
        self.check_attributes(&attributes)?;
        let ballot = self.each.is_some().then(|| {
            let query =
                |(name, predicate): &(String, String)| BallotQuery { name: name.clone(), predicate: predicate.clone() };
            CardBallot { most_yes: self.most_yes, queries: predicates.iter().map(query).collect() }
        });
        let predicate = if ballot.is_some() { None } else { self.predicate.clone() };
        Ok(Question { predicate, ballot, attributes })
    }

    fn check_attributes(&self, read: &[String]) -> Result<(), Failure> {
        let mut meant = self.attributes.clone();
        meant.sort();
        if meant.is_empty() || meant == read {
            return Ok(());
        }
        Err(Failure::request(format!("the question reads {}, not {}", read.join(", "), meant.join(", ")))
            .with_hint("--attributes may be left out; owners are told what the expression reads"))
    }

    /// One question of a ballot.
    fn one_of(&self, attribute: &str, value: String) -> (String, String) {
        let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
        let one = format!("{attribute} == \"{quoted}\"");
        let text = self.predicate.as_ref().map_or(one.clone(), |all| format!("({all}) && {one}"));
        (value, text)
    }

    fn values(&self) -> Result<Vec<String>, Failure> {
        let given = self.values.as_deref().unwrap_or_default();
        let path = Path::new(given);
        let text =
            if path.is_file() { read_small_file(path)?.replace(['\r', '\n'], "\n") } else { given.replace(',', "\n") };
        let values: Vec<String> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
        match values.len() {
            0 => Err(Failure::request("--values: there are none").with_hint("give a,b,c, or a file with one a line")),
            _ => Ok(values),
        }
    }

    fn request(&self) -> Result<Request, Failure> {
        let Trusted { noise, trust, linked, .. } = self.trust.complete((Noise::Aggregators, Trust::OneAggregator));
        Ok(Request {
            release: Some((Epsilon::new(self.epsilon)?, Delta::new(self.delta)?)),
            answer_epsilon: self.trust.answer_epsilon,
            linked_epsilon: linked,
            noise,
            trust,
            honest: self.honest.clone(),
            minimum_batch: self.minimum_batch.unwrap_or(self.owners),
            ..Request::new(self.owners, Prior { low: self.yes.0, high: self.yes.1, over: Over::Worst })
        })
    }

    /// How many queries can differ for one owner.
    fn queries(&self, question: &Question) -> Result<u64, Failure> {
        let changing = match &question.ballot {
            Some(ballot) => Ballot::new(ballot.queries.len() as u64, self.most_yes)?.changing_queries(),
            None => 1,
        };
        let queries = changing.checked_mul(self.times.unwrap_or(1)).filter(|&queries| queries > 0);
        queries.ok_or_else(|| Failure::request("a series has at least one window, and an end"))
    }

    fn draft(&self, card: Card, question: &Question) -> Card {
        let series = self.every.zip(self.times).map(|(every, times)| CardSeries {
            times,
            number: Some(1),
            starts: Timestamp::EPOCH,
            every,
        });
        Card {
            question: Some(self.question.clone()),
            predicate: question.predicate.clone(),
            ballot: question.ballot.clone(),
            attributes: question.attributes.clone(),
            series,
            ..card
        }
    }
}

fn describe(opened: &Opened) -> String {
    let claims = &opened.card.claims;
    let mut text = String::new();
    for query in &opened.queries {
        text += &format!("{}  {} to {}\n", query.query, query.opens, query.closes);
    }
    let sd = readable(opened.card.predicted.sd.value());
    format!(
        "{text}\n{}\nexpected error {sd} (standard deviation); nothing is released below {} answers\n\
         ε of everything published {} at δ = {}; ε of an owner's own reports {}\n",
        opened.card.mechanism,
        opened.card.minimum_batch,
        readable_up(claims.whole_release()),
        readable_up(opened.card.delta().value()),
        readable_up(claims.whole_linked()),
    )
}
