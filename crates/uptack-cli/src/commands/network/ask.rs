//! `uptack ask`

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use uptack::card::{self, Card, Operators, Remedy, plan_whole, whole_progress};
use uptack::display::{self, Rounding};
use uptack::plan::{Asked, Request, Trust, linked_words};
use uptack::{Fraction, Progress};
use uptack_dap::desk_client::{DeskClient, Opened, OpenedQuery, Schedule, answer_link};
use uptack_document::{Purpose, Wanted};
use uptack_owner::question::{Question, Unaskable, check_attribute};
use uptack_owner::schedule::LEAST_WINDOW;
use uptack_owner::typing::Declared;
use url::Url;

use super::{DeskArguments, block_on};
use crate::arguments::{TrustArguments, address, count, fraction, number, range, seconds};
use crate::commands::plan::refused;
use crate::failure::{Failure, Result, ResultExt};
use crate::input::read_small_file;
use crate::layout::joined;
use crate::output::{check_card_path, grouped, print_result, readable, readable_up, write_card};
use crate::progress::watched;

/// Ask a crowd: plan the query, have the desk sign its card and open it
///
/// The guarantees cover everything that the card asks: all questions of a ballot and all windows of a series together. A
/// query closes at the time asked for or a little later, because windows begin at multiples of their length. Unless
/// --noise or --trust says otherwise, the aggregators add noise so that one honest aggregator is enough.
///
/// If the result would say next to nothing, because its expected error (standard deviation) is more than half of the range
/// of --yes, nothing is asked, so that no owner spends privacy on it. One number for --yes stands for the range from 0 to it.
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
    /// What counts as yes: a CEL expression over an owner's attributes
    #[arg(long = "where", required_unless_present_any = ["each", "people"])]
    predicate: Option<String>,
    /// Ask people: the truth is what a person answers to the question, in a terminal or on a web page
    // Where one of these is given, the parser does not ask for what it requires in turn.
    #[arg(long, conflicts_with_all = ["predicate", "each", "values", "most_yes", "attributes"])]
    people: bool,
    /// Print a link to this page, on which people can answer; it must not be served by the desk
    #[arg(long, value_name = "URL", value_parser = address, requires = "people", conflicts_with_all = ["predicate", "each"])]
    page: Option<Url>,
    /// A ballot: one question for each value of this attribute, for owners for whom --where is true
    #[arg(long, requires = "values")]
    each: Option<String>,
    /// The values: a,b,c, or a file with one per line
    #[arg(long, requires = "each")]
    values: Option<String>,
    /// How many questions of a ballot, or windows of a series, one owner may answer with yes in all
    #[arg(long, default_value = "1", value_parser = count)]
    most_yes: u64,
    /// The attributes that owners have, as name or name:type (text, int, double, bool or list): the expression may
    /// read no others, and must fit their types
    #[arg(long, value_delimiter = ',', value_name = "NAME[:TYPE]")]
    attributes: Vec<String>,
    /// How many owners will answer
    #[arg(long, value_parser = count)]
    owners: u64,
    /// Roughly how many of them would say yes, to each question: a number, or a range such as 0..500
    #[arg(long, value_parser = range)]
    yes: (u64, u64),
    /// The largest ε of everything that is published
    #[arg(long, value_parser = number)]
    epsilon: f64,
    /// The δ of everything that is published
    #[arg(long, default_value = "1e-8", value_parser = number)]
    delta: f64,
    #[command(flatten)]
    trust: TrustArguments,
    /// The share of owners assumed to flip their coins as they should
    #[arg(long, default_value = "1", value_parser = fraction)]
    honest: Fraction,
    /// Release nothing below this many answers; by default 80 % of the owners, rounded up
    #[arg(long, value_parser = count)]
    minimum_batch: Option<u64>,
    /// How long the query accepts answers, such as 90s, 10m, 2h or 1d
    #[arg(long, value_parser = seconds, required_unless_present = "every", conflicts_with = "every")]
    closes: Option<u64>,
    /// For a series: the length of each window
    #[arg(long, value_parser = seconds, requires = "times")]
    every: Option<u64>,
    /// For a series: the number of windows
    #[arg(long, value_parser = count, requires = "every", conflicts_with = "closes")]
    times: Option<u64>,
    /// Ask even if the expected error is more than half of the expected range of yes
    #[arg(long)]
    anyway: bool,
    /// Write the signed card to this file, as TOML or JSON by its extension
    #[arg(long)]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<()> {
    let question = arguments.question()?;
    let schedule = arguments.schedule()?;
    arguments.out.as_deref().map_or(Ok(()), check_card_path)?;
    let client = arguments.desk.client()?;
    arguments.page.as_ref().map_or(Ok(()), |page| check_page(page, arguments.desk.address()))?;
    let request = arguments.request(&question)?;
    let card = arguments.plan(&question, &request, &client)?;
    let opened = arguments.open(&client, &card, schedule)?;
    let first = opened.queries.first().ok_or_else(|| Failure::environment("the desk opened nothing"))?;
    let waiting = block_on(why_it_waits(&client, &first.query))?;
    print_result(json, &arguments.document(first, &opened), || arguments.describe(&opened, &request))?;
    waiting.map_or(Ok(()), Err)
}

/// Why nobody can answer yet although the query was opened: an aggregator cannot be reached.
async fn why_it_waits(client: &DeskClient, query: &str) -> Result<Option<Failure>> {
    let status = client.status(query).await?;
    let reason = status.reason.filter(|_| status.state == "opening");
    Ok(reason.map(|reason| {
        Failure::environment(format!("the query is not open yet: {reason}"))
            .with_hint(format!("the desk tries again until the query closes; `uptack cancel {query}` cancels it"))
    }))
}

impl Arguments {
    fn schedule(&self) -> Result<Schedule> {
        self.check_window()?;
        self.check_most_yes()?;
        match (self.closes, self.every, self.times) {
            (Some(seconds), None, None) => Ok(Schedule::Once { seconds }),
            (None, Some(every), Some(times)) => Ok(Schedule::Series { every, times }),
            _ => Err(Failure::request("when does the query close?").with_hint("give --closes, or --every and --times")),
        }
    }

    /// Refuses a number of yes where there is one question in one window.
    fn check_most_yes(&self) -> Result<()> {
        if self.most_yes == 1 || self.each.is_some() || self.times.is_some() {
            return Ok(());
        }
        Err(Failure::request("--most-yes: there is one question, which an owner answers once")
            .with_hint("give --each and --values for a ballot, or --every and --times for a series"))
    }

    /// Refuses a window that is over before any report is sent.
    fn check_window(&self) -> Result<()> {
        let Some(short) = self.closes.or(self.every).filter(|window| *window < LEAST_WINDOW) else {
            return Ok(());
        };
        let name = if self.closes.is_some() { "--closes" } else { "--every" };
        Err(Failure::request(format!("{name}: within {short} s no owner could answer"))
            .with_hint(format!("the shortest window is {LEAST_WINDOW}s, because reports are delayed by a few seconds")))
    }

    /// Predicates are parsed as owners will parse them: nothing is asked that owners would refuse.
    fn question(&self) -> Result<Question> {
        if self.question.trim().is_empty() {
            return Err(Failure::request("--question: it is empty")
                .with_hint("say in words what owners are asked; owners see it on the card"));
        }
        if self.people {
            return Ok(Question::of_people());
        }
        let declared = Declared::parse(self.attributes.iter().map(String::as_str)).at("--attributes")?;
        let predicate = self.predicate.as_deref();
        let question = match &self.each {
            None => Question::single(predicate.unwrap_or_default(), &declared),
            Some(attribute) => {
                check_attribute(attribute).at("--each")?;
                Question::each(attribute, self.values()?, predicate, self.most_yes, &declared)
            }
        };
        question.map_err(unaskable)
    }

    /// The values of a ballot.
    fn values(&self) -> Result<Vec<String>> {
        let text = self.values_text()?;
        let values: Vec<String> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
        if values.is_empty() {
            return Err(Failure::request("--values: the list is empty")
                .with_hint("give values with commas between them, as in A1,A2, or a file with one per line"));
        }
        let mut seen = BTreeSet::new();
        match values.iter().find(|value| !seen.insert(*value)) {
            Some(twice) => Err(Failure::request(format!("--values: `{twice}` is given twice"))),
            None => Ok(values),
        }
    }

    /// The values, one per line.
    fn values_text(&self) -> Result<String> {
        let given = self.values.as_deref().unwrap_or_default();
        let path = Path::new(given);
        if path.is_file() {
            return Ok(read_small_file(path)?.replace('\r', "\n"));
        }
        if !given.contains(',') && !given.trim().is_empty() {
            return Err(not_a_list(given));
        }
        Ok(given.replace(',', "\n"))
    }

    fn plan(&self, question: &Question, request: &Request, client: &DeskClient) -> Result<Card> {
        let queries = self.queries(question)?;
        // Planning takes longer than finding out that the desk cannot be reached.
        block_on(client.signer())?;
        let draft = |card| question.on(card, &self.question, self.every.zip(self.times));
        let work = |progress: &Progress| plan_whole(request, queries, draft, progress);
        let mut card = watched("of the plan", whole_progress(queries), work)?;
        self.check_precision(&card, request, queries)?;
        // The desk fills in the series with its times.
        card.series = None;
        Ok(card)
    }

    /// Refuses a card whose result would say next to nothing: its owners would spend privacy on it all the same.
    fn check_precision(&self, card: &Card, request: &Request, queries: u64) -> Result<()> {
        let Some(imprecision) = card.imprecision().filter(|_| !self.anyway) else { return Ok(()) };
        let remedies = imprecision.remedies(request, queries, self.times.unwrap_or(1));
        Err(Failure::request(format!("{imprecision}; nothing was asked")).with_hint(remedy_words(&remedies)))
    }

    fn request(&self, question: &Question) -> Result<Request> {
        let wanted = Wanted {
            asked: self.asked(question),
            queries: self.queries(question)?,
            owners: Some(self.owners),
            epsilon: Some(self.epsilon),
            delta: self.delta,
            answer_epsilon: self.trust.answer_epsilon,
            trust: self.trust.wanted(),
            honest: self.honest.clone(),
            minimum_batch: self.minimum_batch,
            ..Wanted::new(Purpose::Asking, self.yes)
        };
        Ok(wanted.complete().map_err(refused)?.request)
    }

    /// How much is asked. Pages for people answer each window of a series by itself.
    fn asked(&self, question: &Question) -> Asked {
        if self.people { Asked::YesNo } else { question.asked(self.times.unwrap_or(1), self.most_yes) }
    }

    /// Has the desk sign the card and open it, and writes the signed card.
    fn open(&self, client: &DeskClient, card: &Card, schedule: Schedule) -> Result<Opened> {
        let opened = block_on(client.open(card, schedule))?;
        if let Some(path) = &self.out {
            write_card(path, &opened.card)?;
        }
        Ok(opened)
    }

    /// How many queries can differ for one owner.
    fn queries(&self, question: &Question) -> Result<u64> {
        let queries = question.counted_queries(self.times.unwrap_or(1))?;
        queries.ok_or_else(|| Failure::request("a series needs at least one window, and must end"))
    }

    /// The link to the page on which people can answer, if there is one.
    fn link(&self, card: &Card, query: &OpenedQuery) -> Option<String> {
        let page = self.page.as_ref()?;
        Some(answer_link(page, self.desk.address(), card, &query.query).to_string())
    }

    /// The first query and the card; of a series, all its queries.
    fn document(&self, first: &OpenedQuery, opened: &Opened) -> Value {
        let entry = |query| self.query_json(&opened.card, query);
        let mut document = entry(first);
        document["card"] = json!(opened.card);
        if self.every.is_some() {
            document["queries"] = opened.queries.iter().map(entry).collect();
        }
        document
    }

    fn query_json(&self, card: &Card, query: &OpenedQuery) -> Value {
        let mut entry = json!({"query": query.query, "opens": query.opens, "closes": query.closes});
        if let Some(link) = self.link(card, query) {
            entry["link"] = link.into();
        }
        entry
    }

    fn describe(&self, opened: &Opened, request: &Request) -> String {
        let queries: String = opened.queries.iter().map(|query| self.query_lines(&opened.card, query)).collect();
        let (card, linked) = (describe_card(&opened.card, request), chosen_linked(&opened.card, request));
        format!("{queries}\n{card}{linked}{}", self.people_words(opened))
    }

    /// How people answer, and what keeps them from it; nothing if devices are asked.
    fn people_words(&self, opened: &Opened) -> String {
        let mut words = String::new();
        let Some(first) = opened.queries.first().filter(|_| self.people) else { return words };
        if self.page.is_none() {
            let (desk, query) = (self.desk.address(), &first.query);
            words += &format!(
                "\npeople answer in a terminal: uptack answer --desk {desk} --policy policy.toml --data FOLDER --query \
                 {query}\nor in a browser: --page prints the link\n"
            );
        }
        if opened.card.operators != Some(Operators::Two) {
            words += "\none operator runs both aggregators and could see every answer, so people's clients refuse by \
                      default; for a trial, allow it in the page's settings, or by separate-operators = false in the \
                      policy\n";
        }
        words
    }

    fn query_lines(&self, card: &Card, query: &OpenedQuery) -> String {
        let link = self.link(card, query).map(|link| link + "\n").unwrap_or_default();
        format!("{}  {} to {}\n{link}", query.query, query.opens, query.closes)
    }
}

/// Why owners would refuse the question, in the words of the options.
fn unaskable(Unaskable { name, cause, meant }: Unaskable) -> Failure {
    let mut failure = Failure::from(*cause);
    if let Some(name) = name {
        failure = failure.at(name);
    }
    match meant {
        Some(meant) => failure.with_hint(format!("did you mean --where '{meant}'?")),
        None => failure,
    }
}

/// A single value is more often the name of a file that does not exist, or a list with other signs between its values.
fn not_a_list(given: &str) -> Failure {
    let failure =
        Failure::request(format!("--values: `{given}` is neither a file nor values with commas between them"));
    match given.split([';', '|', '\t']).map(str::trim).collect::<Vec<_>>() {
        values if values.len() > 1 => failure.with_hint(format!("did you mean --values '{}'?", values.join(","))),
        _ => failure.with_hint(
            "to count one value only, ask with --where, as in --where 'station == \"7\"'; a file has one value per line",
        ),
    }
}

/// What would make the result useful, and the option that asks all the same.
fn remedy_words(remedies: &[Remedy]) -> String {
    if remedies.is_empty() {
        return "no single change is enough: ask more owners or fewer questions, and allow a larger --epsilon; --anyway \
                asks all the same"
            .to_owned();
    }
    format!("{}; --anyway asks all the same", joined(remedies, "; or "))
}

/// The card's error, its minimum batch, and its claims, the one that was asked for first.
fn describe_card(card: &Card, request: &Request) -> String {
    let error = readable(card.predicted.sd.value());
    let claims = by_request(card.trust().unwrap_or_default(), request.trust);
    let mut lines: Vec<String> = claims.iter().map(card::Trust::claim_words).collect();
    // The best mechanism may stay below the ε that was asked for.
    let asked = readable_up(request.release_epsilon());
    if let Some(first) = claims.first().filter(|first| readable_up(first.epsilon) != asked) {
        lines[0] = format!("{}; ε = {asked} was asked for", first.claim_words());
    }
    let (mechanism, batch, claims) = (&card.mechanism, batch_words(card), lines.join("\n"));
    let contributions = contribution_words(card);
    format!("{mechanism}\nexpected error {error} (standard deviation); {batch}\n{contributions}{claims}\n")
}

/// Whom the counts miss, and the option that changes it.
fn contribution_words(card: &Card) -> String {
    card.contribution_words().map(|words| format!("{words} (--most-yes allows more)\n")).unwrap_or_default()
}

/// Which linked ε was chosen and what it costs, for a single question; several share the usual one.
fn chosen_linked(card: &Card, request: &Request) -> String {
    let is_one = card.counted_queries().is_ok_and(|queries| queries == 1) && card.mechanism.noise().is_some();
    let words = is_one.then(|| linked_words(request, card.predicted.sd.value())).flatten();
    words.map(|words| words + "\n").unwrap_or_default()
}

/// How many answers there must be, and how many of the owners that is.
fn batch_words(card: &Card) -> String {
    let share = display::percent(card.minimum_batch as f64 / card.owners.max(1) as f64, 1, Rounding::Nearest);
    let (batch, owners) = (grouped(card.minimum_batch), grouped(card.owners));
    format!("nothing is released below {batch} answers, {share} of the {owners} owners expected")
}

/// The claim that was asked for, and the others.
fn by_request(trust: Vec<card::Trust>, asked: Trust) -> Vec<card::Trust> {
    let view = match asked {
        Trust::OneAggregator => "one_aggregator",
        Trust::Owners => "release",
    };
    let (asked, others): (Vec<_>, Vec<_>) = trust.into_iter().partition(|claim| claim.view == view);
    asked.into_iter().chain(others).collect()
}

/// Refuses a page that the desk serves: it could not check the desk.
fn check_page(page: &Url, desk: &Url) -> Result<()> {
    if page.origin() != desk.origin() {
        return Ok(());
    }
    Err(Failure::request("--page: a page that the desk serves cannot check what the desk says")
        .with_hint("serve the page from another origin; `docs/person.md` says how"))
}
