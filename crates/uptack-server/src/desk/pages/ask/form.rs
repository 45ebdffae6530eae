//! The form: the request to the planner, and the question.

use maud::{Markup, html};

use super::plan::FieldFault;
use crate::desk::pages::guard::FormFields;

/// Every field: first those of the plan, then those of the question.
pub(super) const NAMES: [&str; 18] = [
    "owners",
    "yes",
    "epsilon",
    "error",
    "trust",
    "delta",
    "answer_epsilon",
    "linked_epsilon",
    "honest",
    "minimum_batch",
    "question",
    "who",
    "predicate",
    "each",
    "values",
    "most_yes",
    "closes",
    "times",
];

/// The fields that determine a plan.
pub(super) const PLANNED_FROM: &[&str] = NAMES.split_at(10).0;

/// The values that the form starts with.
pub(super) fn usual() -> FormFields {
    FormFields::parse(b"owners=3000&yes=0..300&epsilon=1&trust=one-aggregator&minimum_batch=2500&closes=10m")
}

/// A field of the form.
struct FormField {
    name: &'static str,
    label: &'static str,
    help: &'static str,
}

const MAIN: [FormField; 5] = [
    FormField { name: "owners", label: "Owners", help: "How many will answer" },
    FormField { name: "yes", label: "Expected yes", help: "A number, or a range such as 0..500" },
    FormField { name: "epsilon", label: "ε of what is published", help: "Smaller hides more" },
    FormField { name: "error", label: "Largest error", help: "A standard deviation, in people" },
    FormField {
        name: "minimum_batch",
        label: "Minimum batch",
        help: "Nothing is released below; all owners by default",
    },
];

const MORE: [FormField; 4] = [
    FormField { name: "delta", label: "δ", help: "By default 1e-8" },
    FormField {
        name: "answer_epsilon",
        label: "ε of one answer",
        help: "A limit for a single answer; none by default",
    },
    FormField {
        name: "linked_epsilon",
        label: "ε of all a person sends",
        help: "Holds if nobody is honest; 8 by default with noise, or none",
    },
    FormField { name: "honest", label: "Honest share", help: "Of the owners, such as 0.9; all by default" },
];

const QUESTION: FormField =
    FormField { name: "question", label: "The question in words", help: "It stands on the card that owners see" };

const PREDICATE: FormField = FormField {
    name: "predicate",
    label: "A yes is",
    help: "Where devices answer: an expression over an owner's own attributes, as in station == \"7\"",
};

const BALLOT: [FormField; 2] = [
    FormField { name: "each", label: "Attribute", help: "One question for each value of it" },
    FormField {
        name: "most_yes",
        label: "Most yes",
        help: "How many of them one person answers with yes; 1 by default",
    },
];

const WHEN: [FormField; 2] = [
    FormField { name: "closes", label: "Answers are taken for", help: "Such as 90s, 10m, 2h or 1d" },
    FormField { name: "times", label: "Times", help: "More than one makes a series, priced as a whole" },
];

const TRUST: [(&str, &str); 3] = [
    ("one-aggregator", "One honest aggregator, even if nobody else is honest"),
    ("owners-and-noise", "One honest aggregator and the owners"),
    ("owners", "The owners' coins alone, no noise"),
];

const WHO: [(&str, &str); 2] =
    [("devices", "Devices, by what they know of their owners"), ("people", "People, on a page or in a terminal")];

pub(super) fn page(fields: &FormFields, fault: Option<&FieldFault>, plan: &Markup) -> Markup {
    html! {
        h1 { "Ask" }
        p.lead { "Plan first: leave out owners, ε or the error, and it is solved for." }
        @if let Some(fault) = fault { p.fault role="alert" { (fault_words(fault)) } }
        div.columns {
            form #ask method="get" action="/pages/ask" data-plan="/pages/ask/plan" {
                (plan_fields(fields))
                (question_fields(fields))
                p.buttons {
                    button type="submit" { "Update the plan" }
                    button.primary type="submit" formaction="/pages/ask/preview" { "Preview the card" }
                }
            }
            section #plan.panel aria-label="The plan" aria-live="polite" { (plan) }
        }
    }
}

/// The fault in words, with a link to the field.
pub(super) fn fault_words(fault: &FieldFault) -> Markup {
    html! { a href=(format!("#{}", fault.field)) { (label(fault.field)) } ": " (fault.words) }
}

/// The label above a field.
pub(super) fn label(name: &str) -> &'static str {
    let mut inputs = MAIN.iter().chain(&MORE).chain([&QUESTION, &PREDICATE]).chain(&BALLOT).chain(&WHEN);
    match name {
        "trust" => "Who is trusted",
        "who" => "Who answers",
        "values" => "Values",
        _ => inputs.find(|input| input.name == name).map_or("This form", |input| input.label),
    }
}

fn plan_fields(fields: &FormFields) -> Markup {
    html! {
        fieldset.panel {
            legend { "How private, how exact" }
            div.grid { @for input in &MAIN { (text(fields, input)) } }
            (choice(fields, "trust", &TRUST))
            details open[MORE.iter().any(|input| fields.given(input.name).is_some())] {
                summary { "More limits" }
                div.grid { @for input in &MORE { (text(fields, input)) } }
            }
        }
    }
}

fn question_fields(fields: &FormFields) -> Markup {
    html! {
        fieldset.panel {
            legend { "The question" }
            (text(fields, &QUESTION))
            (choice(fields, "who", &WHO))
            (text(fields, &PREDICATE))
            (ballot_fields(fields))
            div.grid { @for input in &WHEN { (text(fields, input)) } }
        }
    }
}

fn ballot_fields(fields: &FormFields) -> Markup {
    html! {
        details open[fields.given("each").is_some()] {
            summary { "A ballot of many questions" }
            div.grid { @for input in &BALLOT { (text(fields, input)) } }
            div.field {
                label for="values" { "Values" }
                textarea #values name="values" rows="4" aria-describedby="values-help" { (fields.get("values")) }
                p.help #values-help { "One per line, or with commas between them" }
            }
        }
    }
}

/// A choice between values, each with its words.
fn choice(fields: &FormFields, name: &str, values: &[(&str, &str)]) -> Markup {
    html! {
        div.field {
            label for=(name) { (label(name)) }
            select id=(name) name=(name) {
                @for (value, words) in values { option value=(value) selected[fields.get(name) == *value] { (words) } }
            }
        }
    }
}

fn text(fields: &FormFields, FormField { name, label, help }: &FormField) -> Markup {
    let help_id = format!("{name}-help");
    html! {
        div.field {
            label for=(name) { (label) }
            input id=(name) name=(name) value=(fields.get(name)) autocomplete="off" spellcheck="false"
                aria-describedby=(help_id);
            p.help id=(help_id) { (help) }
        }
    }
}
