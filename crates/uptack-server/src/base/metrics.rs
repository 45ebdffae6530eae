//! Counters, in the text format of Prometheus.

use std::{collections::BTreeMap, fmt::Write, sync::Mutex};

use super::lock;

/// Everything that a server counts. Labels are fixed words: nothing here depends on the content of a request.
#[derive(Debug)]
pub(crate) struct Metrics<C>(Mutex<BTreeMap<(C, &'static str), u64>>);

/// The counters of a server.
pub(crate) trait CounterName: Copy + Ord {
    fn describe(self) -> Description;
}

/// A counter as it is shown.
pub(crate) struct Description {
    metric: &'static str,
    /// The name of the label.
    label: &'static str,
    help: &'static str,
}

impl Description {
    pub(crate) fn new(metric: &'static str, label: &'static str, help: &'static str) -> Self {
        Self { metric, label, help }
    }
}

/// Something that goes up and down.
pub(crate) struct Gauge {
    pub(crate) metric: &'static str,
    pub(crate) help: &'static str,
    /// Labels in braces, or an empty text, and the value.
    pub(crate) values: Vec<(String, u64)>,
}

impl Gauge {
    /// One value without labels.
    pub(crate) fn single(metric: &'static str, help: &'static str, value: u64) -> Self {
        Self { metric, help, values: vec![(String::new(), value)] }
    }

    fn render(&self, text: &mut String) {
        let Self { metric, help, values } = self;
        let _ = writeln!(text, "# HELP {metric} {help}\n# TYPE {metric} gauge");
        for (labels, value) in values {
            let _ = writeln!(text, "{metric}{labels} {value}");
        }
    }
}

impl<C> Default for Metrics<C> {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

impl<C: CounterName> Metrics<C> {
    pub(crate) fn add(&self, counter: C, label: &'static str, amount: u64) {
        *lock(&self.0).entry((counter, label)).or_default() += amount;
    }

    /// The text format, followed by these gauges.
    pub(crate) fn render(&self, gauges: &[Gauge]) -> String {
        let mut text = String::new();
        self.render_counters(&mut text);
        for gauge in gauges {
            gauge.render(&mut text);
        }
        text
    }

    fn render_counters(&self, text: &mut String) {
        let mut last = None;
        for ((counter, value_of_label), value) in lock(&self.0).iter() {
            let Description { metric, label, help } = counter.describe();
            if last != Some(*counter) {
                let _ = writeln!(text, "# HELP {metric} {help}\n# TYPE {metric} counter");
                last = Some(*counter);
            }
            let _ = writeln!(text, "{metric}{{{label}=\"{value_of_label}\"}} {value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    struct Uploads;

    impl CounterName for Uploads {
        fn describe(self) -> Description {
            Description { metric: "uptack_uploads_total", label: "kind", help: "Reports taken." }
        }
    }

    #[test]
    fn the_text_form_groups_by_metric() {
        let metrics = Metrics::default();
        metrics.add(Uploads, "repeated", 1);
        metrics.add(Uploads, "new", 2);
        metrics.add(Uploads, "new", 3);
        let values = vec![("{state=\"open\"}".to_owned(), 3)];
        let queries = Gauge { metric: "uptack_desk_queries", help: "Queries.", values };
        let text = metrics.render(&[Gauge::single("uptack_pending_reports", "Waiting.", 7), queries]);
        assert_eq!(
            text,
            "# HELP uptack_uploads_total Reports taken.\n\
             # TYPE uptack_uploads_total counter\n\
             uptack_uploads_total{kind=\"new\"} 5\n\
             uptack_uploads_total{kind=\"repeated\"} 1\n\
             # HELP uptack_pending_reports Waiting.\n\
             # TYPE uptack_pending_reports gauge\n\
             uptack_pending_reports 7\n\
             # HELP uptack_desk_queries Queries.\n\
             # TYPE uptack_desk_queries gauge\n\
             uptack_desk_queries{state=\"open\"} 3\n"
        );
    }
}
