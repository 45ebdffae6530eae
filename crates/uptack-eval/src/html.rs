//! The page: text, tables and plots in one file that asks nothing of the network.

use std::fmt::Write as _;

use uptack::display::{self, Rounding};

use crate::compare::Comparison;
use crate::evaluation::{Evaluation, Row};
use crate::measure::SMALL;
use crate::report::Plot;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;color:#1a1a1a;background:#fff;max-width:70rem;\
margin:0 auto;padding:1rem}h1,h2{line-height:1.2}figure{margin:1.5rem 0;max-width:48rem}svg{max-width:100%;height:auto}\
.table{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}\
th,td{border-bottom:1px solid #ccc;padding:.25rem .5rem;text-align:right;white-space:nowrap}th:first-child,td:first-child\
{text-align:left}code{overflow-wrap:anywhere}.note{border-left:4px solid #0072B2;padding-left:.8rem}";

impl Evaluation {
    pub(crate) fn html(&self, plots: &[(&'static str, Plot)]) -> String {
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><link rel=\"icon\" href=\"data:,\">\
             <title>Uptack: evaluation</title><style>{STYLE}</style></head><body>\n<h1>Counting a crowd: the evaluation</h1>\n"
        );
        page.push_str(&self.introduction());
        page.push_str(&self.found());
        for comparison in Comparison::ALL {
            let _ = write!(page, "<h2>{}</h2>\n<p>{}</p>\n", heading(comparison), explanation(comparison));
            page.push_str(&figure(plots, &format!("error-{comparison}")));
            page.push_str(&self.table(comparison));
        }
        page.push_str("<h2>Error against ε</h2>\n");
        page.push_str(&figure(plots, "error-epsilon"));
        page.push_str("<h2>Coverage of the intervals</h2>\n");
        page.push_str(&figure(plots, "coverage"));
        page.push_str("<h2>The stations</h2>\n");
        page.push_str(&figure(plots, "map"));
        page.push_str(&self.day());
        page.push_str("</body></html>\n");
        page
    }

    fn introduction(&self) -> String {
        let traffic = &self.traffic;
        let doubtful: Vec<String> = traffic
            .stations
            .iter()
            .filter(|station| station.flags.iter().any(|flag| flag.is_suspect()))
            .map(|station| format!("{} with {} vehicles", escaped(&station.name), station.vehicles))
            .collect();
        let flagged = match traffic.stations.iter().filter(|station| !station.flags.is_empty()).count() {
            1 => "1 station carries".to_owned(),
            count => format!("{count} stations carry"),
        };
        let partial = if self.complete {
            String::new()
        } else {
            "<p class=\"note\"><strong>Partial.</strong> The run was stopped; rows have the trials that were done.</p>"
                .to_owned()
        };
        let doubt = if doubtful.is_empty() {
            String::new()
        } else {
            format!(" Detectors in doubt, kept as published: {}.", doubtful.join(", "))
        };
        format!(
            "{partial}<p>{}: {} vehicles at {} stations, the median station has {}. {flagged} a flag \
             (imputed, partly observed, doubtful).{doubt} For every station the question is “are you at this \
             station?”; the population grows by vehicles elsewhere. Every vehicle that crosses a station is taken as \
             one owner.</p>\n\
             <p class=\"note\">A guarantee is for a <em>view</em>: of one answer alone, of one owner's whole report, \
             of the released tallies. Two methods are comparable only in the view in which their guarantees are \
             equal, so every row shows all of them. They are for one station's question; an owner who answers all \
             stations with a one-station method changes two answers by moving. The methods marked “all” hide the \
             whole place in one report.</p>\n",
            escaped(&traffic.origin),
            traffic.total(),
            traffic.stations.len(),
            traffic.median()
        )
    }

    /// The findings first, in words and numbers.
    fn found(&self) -> String {
        let mut text = String::from("<h2 id=\"findings\">What was found</h2>\n");
        text.push_str(&self.found_by_growth());
        text.push_str(&self.found_at_release());
        text.push_str(&self.found_of_intervals());
        text
    }

    fn found_by_growth(&self) -> String {
        let growth = self.growth();
        let Some(first) = growth.first() else { return String::new() };
        let (grown, root) = (first.population(), first.population().sqrt());
        let mut text = format!(
            "<p><strong>With the stations as they are and {grown:.0} times the population</strong>, at equal ε of a \
             single answer (ε = {}): an error that does not grow has the factor 1, one that grows like the root of the \
             crowd {root:.1}.</p>\n<div class=\"table\"><table id=\"growth\"><thead><tr><th>method</th>\
             <th>median station, {} owners</th><th>{} owners</th><th>factor</th><th>factor, all stations</th></tr></thead>\
             <tbody>\n",
            display::claim(self.settings.levels.answer),
            first.owners[0],
            first.owners[1],
        );
        for part in &growth {
            let [median, all] = part.errors();
            let cells = [digits(part.median[0]), digits(part.median[1]), digits(median), digits(all)];
            text.push_str(&line(&part.label, &cells));
        }
        text.push_str("</tbody></table></div>\n");
        text
    }

    fn found_at_release(&self) -> String {
        let (release, found) = (&self.settings.levels.release, self.at_release());
        if found.is_empty() {
            return String::new();
        }
        let mut text = format!(
            "<p><strong>At equal guarantee of the release</strong>, (ε, δ) = ({}, {}), at the median station ({} \
             vehicles): the best planned mechanism, without a trusted party, and the curators, who see every truth. Discrete \
             Laplace noise keeps ε at δ = 0.</p>\n<div class=\"table\"><table id=\"at-release\"><thead><tr><th>method</th>\
             <th>owners</th><th>median station</th><th>theory</th><th>all stations</th></tr></thead><tbody>\n",
            display::claim(release.epsilon),
            display::claim(release.delta),
            self.traffic.median()
        );
        for part in found {
            let cells = [part.owners.to_string(), digits(part.median), digits(part.predicted), digits(part.all)];
            text.push_str(&line(&part.label, &cells));
        }
        text.push_str("</tbody></table></div>\n");
        text
    }

    fn found_of_intervals(&self) -> String {
        let Some(found) = self.intervals() else { return String::new() };
        let many = found.many.map_or(String::new(), |[low, high]| {
            format!(
                " Over the stations whose rarest informative count expects at least 50, every row is between {} and {}.",
                percent(Some(low)),
                percent(Some(high))
            )
        });
        format!(
            "<p id=\"intervals\"><strong>The 95 % intervals</strong> of the worst row hold the truth {} of the time, at \
             stations with fewer than {SMALL} vehicles {}.{many} The simultaneous intervals of all stations hold together in \
             {} of {} trials, where at least 95 % are promised; of the worst row in {}, and below {} a row falls by chance \
             in one of a thousand evaluations.</p>\n",
            percent(Some(found.lowest)),
            percent(found.lowest_small),
            percent(Some(found.simultaneous)),
            found.trials,
            percent(Some(found.lowest_simultaneous)),
            percent(Some(found.by_chance))
        )
    }

    fn table(&self, comparison: Comparison) -> String {
        let mut text = String::from(
            "<div class=\"table\"><table><thead><tr><th>method</th><th>owners</th><th>RMSE</th><th>theory</th>\
             <th>median station</th><th>relative error</th><th>worst station</th><th>coverage</th><th>fewer than 5</th>\
             <th>all at once</th><th>ranks right</th><th>ε answer</th><th>ε linked</th><th>ε release</th>\
             <th>bytes</th><th>coins</th></tr></thead><tbody>\n",
        );
        self.of(comparison).for_each(|row| text.push_str(&self.table_row(row)));
        text.push_str("</tbody></table></div>\n");
        text
    }

    fn table_row(&self, row: &Row) -> String {
        let vehicles = self.vehicles();
        let (worst, worst_rmse) = row.worst();
        let cells = [
            row.owners.to_string(),
            digits(row.rmse()),
            digits(row.predicted()),
            digits(row.at(&vehicles, self.traffic.median()).0),
            digits(row.relative_error(&vehicles)),
            format!("{} ({})", digits(worst_rmse), escaped(&self.traffic.stations[worst].name)),
            percent(row.coverage(&vehicles, |_, _| true)),
            percent(row.coverage(&vehicles, |_, yes| yes < SMALL)),
            percent(Some(row.measured.simultaneous)),
            percent(Some(row.measured.ranks)),
            display::claim(row.claims.answer()),
            display::claim(row.claims.linked()),
            display::claim(row.claims.release()),
            format!("{}{}", row.bytes.0, if row.bytes.1 { " (all)" } else { "" }),
            row.coins.to_string(),
        ];
        let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        format!("<tr><td title=\"{}\">{}</td>{cells}</tr>\n", escaped(&row.mechanism), escaped(&row.label))
    }

    fn day(&self) -> String {
        let Some(day) = &self.longitudinal else { return String::new() };
        let mut text = format!(
            "<h2>One day of five-minute windows</h2>\n<p>An owner who answers every window with fresh coins gives away \
             more and more; ε of all releases together at δ = {}, certified:</p>\n<div class=\"table\"><table><thead>\
             <tr><th>method</th><th>windows</th><th>ε of the releases</th><th>ε of all reports</th>\
             <th>error of a window</th></tr></thead><tbody>\n",
            display::claim(day.delta)
        );
        for part in &day.composed {
            let _ = writeln!(
                text,
                "<tr><td title=\"{}\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escaped(&part.mechanism),
                escaped(&part.label),
                part.windows,
                display::claim(part.release.map(|(_, upper)| upper)),
                display::claim(part.linked),
                digits(part.error)
            );
        }
        text.push_str(
            "</tbody></table></div>\n<p>With <em>memoized</em> coins an owner tosses once for each truth and repeats \
             itself. While its truth stays the same, the day says no more than one window. The price is twofold: the \
             day's mean is no better than one window's, and noise that is repeated cancels in the difference of two \
             windows, so that an owner whose truth changes is hidden only among those who change in the same \
             window. No guarantee of the release is claimed for memoized coins.</p>\n<div class=\"table\"><table>\
             <thead><tr><th>method</th><th>error of a window</th><th>error of the day's mean, fresh</th>\
             <th>memoized</th><th>ε of all reports, fresh</th><th>memoized, truth unchanged</th></tr></thead><tbody>\n",
        );
        for part in &day.memoized {
            let _ = writeln!(
                text,
                "<tr><td title=\"{}\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escaped(&part.mechanism),
                escaped(&part.label),
                digits(part.window),
                digits(part.fresh),
                digits(part.memoized),
                display::claim(part.fresh_linked),
                display::claim(part.memoized_linked)
            );
        }
        text.push_str("</tbody></table></div>\n");
        text
    }
}

fn heading(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Paper => "The paper's settings",
        Comparison::Release => "At equal guarantee of the release",
        Comparison::Answer => "At equal ε of a single answer",
        Comparison::Linked => "At equal ε of the whole report",
    }
}

fn explanation(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Paper => {
            "Their guarantees differ, so that their errors cannot be compared; “none” in the column of the release means \
             that a lone owner can be seen."
        }
        Comparison::Release => {
            "Whoever sees the tallies learns no more than this of anybody, provided that nobody sees a single answer. \
             Local methods keep it, too, at this local ε, and pay for the stronger promise. A trusted curator sees \
             every truth."
        }
        Comparison::Answer => {
            "Whoever sees one of an owner's answers learns no more than this. Methods of several answers need parties \
             that do not put them together; their releases keep the guarantee of the comparison above."
        }
        Comparison::Linked => {
            "Whoever sees all that an owner writes learns no more than this. With a yes or no truth every such method is a \
             garbling of randomized response, so nothing is better: it is shown here."
        }
    }
}

fn figure(plots: &[(&'static str, Plot)], name: &str) -> String {
    let found = plots.iter().find(|(other, _)| *other == name);
    found.map_or(String::new(), |(_, plot)| format!("<figure id=\"{name}\">\n{}</figure>\n", plot.to_svg()))
}

fn line(label: &str, cells: &[String]) -> String {
    let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
    format!("<tr><td>{}</td>{cells}</tr>\n", escaped(label))
}

fn digits(value: f64) -> String {
    if value.is_finite() { display::nearest(value) } else { "–".to_owned() }
}

fn percent(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |value| display::percent(value, 1, Rounding::Nearest))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
