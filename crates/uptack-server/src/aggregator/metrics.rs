//! Counters, in Prometheus' text form.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Mutex, PoisonError},
};

/// Everything that is counted. Labels are fixed words: nothing here depends on a report's content.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Mutex<BTreeMap<(Name, &'static str), u64>>);

/// What can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    /// Requests answered, by outcome.
    Requests,
    /// Reports taken, by whether they were new.
    Uploads,
    /// Reports that left the store with an aggregation job, by outcome.
    Aggregated,
    /// Aggregation jobs completed.
    Jobs,
    /// Calls to the helper that failed and are repeated.
    PeerFailures,
    /// Batches released to the collector.
    Collections,
}

impl Name {
    fn describe(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Requests => ("uptack_requests_total", "outcome", "Requests answered, by outcome."),
            Self::Uploads => ("uptack_uploads_total", "kind", "Reports taken."),
            Self::Aggregated => (
                "uptack_reports_aggregated_total",
                "outcome",
                "Reports that left the store through aggregation, by outcome.",
            ),
            Self::Jobs => ("uptack_aggregation_jobs_total", "outcome", "Aggregation jobs completed."),
            Self::PeerFailures => {
                ("uptack_peer_failures_total", "call", "Calls to the helper that failed and are repeated.")
            }
            Self::Collections => ("uptack_collections_total", "outcome", "Collection jobs that ended."),
        }
    }
}

impl Metrics {
    pub(crate) fn add(&self, name: Name, label: &'static str, amount: u64) {
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counters.entry((name, label)).or_default() += amount;
    }

    /// The text form, with gauges that the caller reads elsewhere.
    pub(crate) fn render(&self, gauges: &[(&str, &str, u64)]) -> String {
        let counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        let mut last = None;
        for ((name, label), value) in counters.iter() {
            let (metric, key, help) = name.describe();
            if last != Some(*name) {
                let _ = writeln!(text, "# HELP {metric} {help}\n# TYPE {metric} counter");
                last = Some(*name);
            }
            let _ = writeln!(text, "{metric}{{{key}=\"{label}\"}} {value}");
        }
        for (metric, help, value) in gauges {
            let _ = writeln!(text, "# HELP {metric} {help}\n# TYPE {metric} gauge\n{metric} {value}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_groups_by_metric() {
        let metrics = Metrics::default();
        metrics.add(Name::Uploads, "repeated", 1);
        metrics.add(Name::Uploads, "new", 2);
        metrics.add(Name::Uploads, "new", 3);
        let text = metrics.render(&[("uptack_pending_reports", "Waiting.", 7)]);
        assert_eq!(
            text,
            "# HELP uptack_uploads_total Reports taken.\n\
             # TYPE uptack_uploads_total counter\n\
             uptack_uploads_total{kind=\"new\"} 5\n\
             uptack_uploads_total{kind=\"repeated\"} 1\n\
             # HELP uptack_pending_reports Waiting.\n\
             # TYPE uptack_pending_reports gauge\n\
             uptack_pending_reports 7\n"
        );
    }
}
