//! `uptack ask`

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use uptack::Fraction;
use uptack::card::{plan_whole, whole_progress};
use uptack::plan::{Noise, Over, Prior, Request, Trust};
use uptack::privacy::{Delta, Epsilon};
use uptack_dap::desk_client::{Client, Opened, OpenedQuery, Schedule};
use uptack_document::Trusted;
use uptack_owner::question::{Question, Unaskable};
use uptack_owner::schedule::LEAST_WINDOW;
use uptack_owner::typing::Declared;
use url::Url;

use crate::arguments::{address, count, fraction, range, seconds};
use crate::card_file;
use crate::desk::{DeskArguments, block_on};
use crate::failure::Failure;
use crate::output::{print, print_json, read_small_file, readable, readable_up};
use crate::page_link;
use crate::progress::watched;
use crate::trust_arguments::TrustArguments;

/// Ask a crowd: plan the query, have the desk sign its card and open it
///
/// The guarantees are for everything that the card asks, a ballot's questions and a series' repetitions together. A
/// query closes at the time asked for or a little later, because windows begin at multiples of their length. Unless
/// --noise or --trust says otherwise, the aggregators add noise so that one honest aggregator is enough.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack ask --desk http://127.0.0.1:8080 --token desk/tokens/analyst \\
    --question 'Are you on the A1?' --where 'road == \"A1\"' --owners 5000 \\
    --minimum-batch 4000 --yes 500 --epsilon 1 --delta 1e-6 --closes 10m
  uptack ask --desk http://127.0.0.1:8080 --token desk/tokens/analyst \\
    --question 'At which station are you?' --each station \\
    --values 1203871,1203872,1203873 --owners 5000 --yes 50 --epsilon 1 \\
    --closes 10m
  uptack ask --desk http://127.0.0.1:8080 --token desk/tokens/analyst \\
    --question 'Do you stand?' --where 'speed < 5.0' --owners 5000 --yes 500 \\
    --epsilon 2 --every 5m --times 12
  uptack ask --desk http://127.0.0.1:8080 --token desk/tokens/analyst \\
    --question 'Did you vote?' --people --page https://page.example/ \\
    --owners 500 --yes 250 --epsilon 1 --closes 1d")]
pub(crate) struct Arguments {
    #[command(flatten)]
    desk: DeskArguments,
    /// The question in words
    #[arg(long)]
    question: String,
    /// What a yes is, as a CEL expression over an owner's attributes
    #[arg(long = "where", required_unless_present_any = ["each", "people"])]
    predicate: Option<String>,
    /// Ask people: the truth is what a person answers to the question, in a terminal or on a web page
    #[arg(long, conflicts_with_all = ["predicate", "each", "attributes"])]
    people: bool,
    /// Print a link to this page, on which people can answer; it must not be served by the desk
    #[arg(long, value_name = "URL", value_parser = address, requires = "people")]
    page: Option<Url>,
    /// A ballot: one question for each value of this attribute, for owners of whom --where is true
    #[arg(long, requires = "values")]
    each: Option<String>,
    /// The values: a,b,c, or a file with one per line
    #[arg(long, requires = "each")]
    values: Option<String>,
    /// How many questions of a ballot an owner may answer with yes
    #[arg(long, default_value = "1", requires = "each", value_parser = count)]
    most_yes: u64,
    /// The attributes that owners have, as name or name:type (text, int, double, bool or list): the expression may
    /// read no others, and must fit their types
    #[arg(long, value_delimiter = ',', value_name = "NAME[:TYPE]")]
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
    /// How long the query takes answers, such as 90s, 10m, 2h or 1d
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

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let question = arguments.question()?;
    let schedule = arguments.schedule()?;
    arguments.out.as_deref().map_or(Ok(()), card_file::check_place)?;
    let client = arguments.desk.client()?;
    arguments.page.as_ref().map_or(Ok(()), |page| page_link::check_place(page, arguments.desk.address()))?;
    let (request, queries) = (arguments.request()?, arguments.queries(&question)?);
    // A plan takes longer than to find out that nobody would take it.
    block_on(async { Ok(client.signer().await?) })?;
    let draft = |card| question.on(card, &arguments.question, arguments.every.zip(arguments.times));
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
    let waiting = block_on(why_it_waits(&client, &first.query))?;
    let link =
        |query: &str| Some(page_link::of(arguments.page.as_ref()?, arguments.desk.address(), &opened.card, query));
    if !json {
        print(&describe(&opened, link))?;
        return waiting.map_or(Ok(()), Err);
    }
    let entry = |query: &OpenedQuery| {
        let mut entry = json!({"query": query.query, "opens": query.opens, "closes": query.closes});
        if let Some(link) = link(&query.query) {
            entry["link"] = link.into();
        }
        entry
    };
    let mut document = entry(first);
    document["card"] = json!(opened.card);
    if arguments.every.is_some() {
        document["queries"] = opened.queries.iter().map(entry).collect();
    }
    print_json(&document)?;
    waiting.map_or(Ok(()), Err)
}

/// Why nobody can answer yet although the query was opened: an aggregator that is away.
async fn why_it_waits(client: &Client, query: &str) -> Result<Option<Failure>, Failure> {
    let status = client.status(query).await?;
    let reason = status.reason.filter(|_| status.state == "opening");
    Ok(reason.map(|reason| {
        Failure::environment(format!("the query is not open yet: {reason}"))
            .with_hint(format!("the desk tries again until the query closes; `uptack cancel {query}` takes it back"))
    }))
}

impl Arguments {
    fn schedule(&self) -> Result<Schedule, Failure> {
        if let Some(short) = self.closes.or(self.every).filter(|window| *window < LEAST_WINDOW) {
            let name = if self.closes.is_some() { "--closes" } else { "--every" };
            return Err(Failure::request(format!("{name}: within {short} s no owner could answer"))
                .with_hint(format!("the shortest window is {LEAST_WINDOW}s; reports are held back for some seconds")));
        }
        match (self.closes, self.every, self.times) {
            (Some(seconds), None, None) => Ok(Schedule::Once { seconds }),
            (None, Some(every), Some(times)) => Ok(Schedule::Series { every, times }),
            _ => Err(Failure::request("when does the query close?").with_hint("give --closes, or --every and --times")),
        }
    }

    /// The predicates are parsed as owners will parse them, so that what they would refuse is not asked.
    fn question(&self) -> Result<Question, Failure> {
        if self.question.trim().is_empty() {
            return Err(Failure::request("--question: it is empty")
                .with_hint("say in words what owners are asked; it stands on the card that owners see"));
        }
        if self.people {
            return Ok(Question::of_people());
        }
        let declared = Declared::parse(self.attributes.iter().map(String::as_str))
            .map_err(|error| Failure::from(error).at("--attributes"))?;
        let asked = match &self.each {
            None => Question::single(self.predicate.as_deref().unwrap_or_default(), &declared),
            Some(attribute) => {
                Question::each(attribute, self.values()?, self.predicate.as_deref(), self.most_yes, &declared)
            }
        };
        asked.map_err(|Unaskable { name, is_syntax, cause }| {
            let failure = match name {
                Some(name) => Failure::from(cause).at(name),
                None => Failure::from(cause),
            };
            if is_syntax { failure.with_hint("predicates are CEL, as in 'station == \"1203871\"'") } else { failure }
        })
    }

    fn values(&self) -> Result<Vec<String>, Failure> {
        let given = self.values.as_deref().unwrap_or_default();
        let path = Path::new(given);
        let text =
            if path.is_file() { read_small_file(path)?.replace(['\r', '\n'], "\n") } else { given.replace(',', "\n") };
        let values: Vec<String> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
        match values.len() {
            0 => Err(Failure::request("--values: there are none").with_hint("give a,b,c, or a file with one per line")),
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
        let queries = question.counted_queries(self.times.unwrap_or(1))?;
        queries.ok_or_else(|| Failure::request("a series has at least one window, and an end"))
    }
}

fn describe(opened: &Opened, link: impl Fn(&str) -> Option<String>) -> String {
    let claims = &opened.card.claims;
    let mut text = String::new();
    for query in &opened.queries {
        text += &format!("{}  {} to {}\n", query.query, query.opens, query.closes);
        text += &link(&query.query).map_or(String::new(), |link| format!("{link}\n"));
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
