//! Counters, in Prometheus' text form. Labels are fixed words.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Mutex, PoisonError},
};

#[derive(Debug, Default)]
pub(crate) struct Metrics(Mutex<BTreeMap<(Name, &'static str), u64>>);

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    Requests,
    Collections,
    AggregatorFailures,
}

impl Name {
    fn describe(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Requests => ("uptack_desk_requests_total", "outcome", "Requests answered, by outcome."),
            Self::Collections => ("uptack_desk_collections_total", "outcome", "Queries that ended, by outcome."),
            Self::AggregatorFailures => (
                "uptack_desk_aggregator_failures_total",
                "call",
                "Calls to the aggregators that failed and are repeated.",
            ),
        }
    }
}

impl Metrics {
    pub(crate) fn add(&self, name: Name, label: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry((name, label)).or_default() += 1;
    }

    /// The text form, with gauges that the caller reads elsewhere: name, help, label, and values by the label's value.
    pub(crate) fn render(&self, gauges: &[Gauge<'_>]) -> String {
        let mut text = String::new();
        let mut last = None;
        for ((name, label), value) in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let (metric, key, help) = name.describe();
            if last != Some(*name) {
                let _ = writeln!(text, "# HELP {metric} {help}\n# TYPE {metric} counter");
                last = Some(*name);
            }
            let _ = writeln!(text, "{metric}{{{key}=\"{label}\"}} {value}");
        }
        for Gauge { metric, help, values } in gauges {
            let _ = writeln!(text, "# HELP {metric} {help}\n# TYPE {metric} gauge");
            for (labels, value) in values {
                let _ = writeln!(text, "{metric}{labels} {value}");
            }
        }
        text
    }
}

/// Something that goes up and down.
pub(crate) struct Gauge<'a> {
    pub(crate) metric: &'a str,
    pub(crate) help: &'a str,
    /// Labels in their braces, or nothing, and the value.
    pub(crate) values: Vec<(String, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_groups_by_metric() {
        let metrics = Metrics::default();
        metrics.add(Name::Requests, "ok");
        metrics.add(Name::Requests, "ok");
        metrics.add(Name::Requests, "Not Found");
        let values = vec![("{state=\"open\"}".to_owned(), 3)];
        let text = metrics.render(&[Gauge { metric: "uptack_desk_queries", help: "Queries.", values }]);
        assert_eq!(
            text,
            "# HELP uptack_desk_requests_total Requests answered, by outcome.\n\
             # TYPE uptack_desk_requests_total counter\n\
             uptack_desk_requests_total{outcome=\"Not Found\"} 1\n\
             uptack_desk_requests_total{outcome=\"ok\"} 2\n\
             # HELP uptack_desk_queries Queries.\n\
             # TYPE uptack_desk_queries gauge\n\
             uptack_desk_queries{state=\"open\"} 3\n"
        );
    }
}
