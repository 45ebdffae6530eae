//! The form: the request to the planner, and the question.

use maud::{Markup, html};

use super::reading::{FieldFault, ID};
use crate::desk::pages::guard::FormFields;

/// The values that the form starts with. The minimum batch is not among them, so that it follows the number of owners.
pub(super) fn usual() -> FormFields {
    FormFields::parse(b"owners=3000&yes=0..300&epsilon=1&trust=one-aggregator&closes=10m")
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
        help: "Nothing is released below; 80 % of the owners by default",
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
        help: "In how many of all counts one person is counted, in all windows together; 1 by default",
    },
];

const WHEN: [FormField; 2] = [
    FormField { name: "closes", label: "Answers are taken for", help: "Such as 90s, 10m, 2h or 1d" },
    FormField {
        name: "times",
        label: "Times",
        help: "More than one makes a series, priced as a whole. Windows miss people who were counted as often as allowed before",
    },
];

const TRUST: [(&str, &str); 3] = [
    ("one-aggregator", "One honest aggregator, even if nobody else is honest"),
    ("owners-and-noise", "One honest aggregator and the owners"),
    ("owners", "The owners' coins alone, no noise"),
];

const WHO: [(&str, &str); 2] =
    [("devices", "Devices, by what they know of their owners"), ("people", "People, on a page or in a terminal")];

/// The form as it was filled in.
pub(super) struct View<'a> {
    pub(super) fields: &'a FormFields,
    /// The field that is at fault, which is marked.
    pub(super) fault: Option<&'a FieldFault>,
    /// Whether the form was sent and not accepted, which is said above it.
    pub(super) is_refused: bool,
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
        "anyway" => "Ask anyway",
        _ => inputs.find(|input| input.name == name).map_or("This form", |input| input.label),
    }
}

impl View<'_> {
    pub(super) fn page(&self, plan: &Markup) -> Markup {
        html! {
            h1 { "Ask" }
            p.lead { "Plan first: leave out owners, ε or the error, and it is solved for." }
            @if let Some(fault) = self.fault.filter(|_| self.is_refused) { p.fault role="alert" { (fault_words(fault)) } }
            div.columns {
                form id=(ID) method="get" action="/pages/ask" data-plan="/pages/ask/plan" {
                    (self.plan_fields())
                    (self.question_fields())
                    (self.anyway_field())
                    p.buttons {
                        button type="submit" { "Update the plan" }
                        button.primary type="submit" formaction="/pages/ask/preview" { "Preview the card" }
                    }
                }
                section #plan.panel aria-label="The plan" aria-live="polite" { (plan) }
            }
        }
    }

    fn plan_fields(&self) -> Markup {
        html! {
            fieldset.panel {
                legend { "How private, how exact" }
                div.grid { @for input in &MAIN { (self.text(input)) } }
                (self.choice("trust", &TRUST))
                details open[self.uses(&MORE)] {
                    summary { "More limits" }
                    div.grid { @for input in &MORE { (self.text(input)) } }
                }
            }
        }
    }

    fn question_fields(&self) -> Markup {
        html! {
            fieldset.panel {
                legend { "The question" }
                (self.text(&QUESTION))
                (self.choice("who", &WHO))
                (self.text(&PREDICATE))
                (self.ballot_fields())
                div.grid { @for input in &WHEN { (self.text(input)) } }
            }
        }
    }

    /// The tick with which a question is asked although its result will say next to nothing. It is shown where it is needed.
    fn anyway_field(&self) -> Markup {
        let is_ticked = self.fields.given("anyway").is_some();
        let described_by = self.words_at("anyway").map(|_| self.described_by("anyway", false));
        html! {
            @if is_ticked || described_by.is_some() {
                div.panel {
                    div.field.check {
                        input #anyway type="checkbox" name="anyway" value="yes" checked[is_ticked]
                            aria-invalid=[self.invalid("anyway")] aria-describedby=[described_by];
                        label for="anyway" { "Ask anyway: owners pay, although the result will say next to nothing" }
                    }
                    (self.field_fault("anyway"))
                }
            }
        }
    }

    fn ballot_fields(&self) -> Markup {
        html! {
            details open[self.uses(&BALLOT) || self.fields.given("values").is_some() || self.words_at("values").is_some()] {
                summary { "A ballot of many questions" }
                div.grid { @for input in &BALLOT { (self.text(input)) } }
                div.field {
                    label for="values" { "Values" }
                    textarea #values name="values" rows="4" aria-invalid=[self.invalid("values")]
                        aria-describedby=(self.described_by("values", true)) { (self.fields.get("values")) }
                    p.help #values-help { "One per line, or with commas between them" }
                    (self.field_fault("values"))
                }
            }
        }
    }

    /// A choice between values, each with its words.
    fn choice(&self, name: &str, values: &[(&str, &str)]) -> Markup {
        let described_by = self.words_at(name).map(|_| self.described_by(name, false));
        html! {
            div.field {
                label for=(name) { (label(name)) }
                select id=(name) name=(name) aria-invalid=[self.invalid(name)] aria-describedby=[described_by] {
                    @for (value, words) in values {
                        option value=(value) selected[self.fields.get(name) == *value] { (words) }
                    }
                }
                (self.field_fault(name))
            }
        }
    }

    fn text(&self, FormField { name, label, help }: &FormField) -> Markup {
        html! {
            div.field {
                label for=(name) { (label) }
                input id=(name) name=(name) value=(self.fields.get(name)) autocomplete="off" spellcheck="false"
                    aria-invalid=[self.invalid(name)] aria-describedby=(self.described_by(name, true));
                p.help id=(format!("{name}-help")) { (help) }
                (self.field_fault(name))
            }
        }
    }

    /// Whether one of these fields is filled in or at fault, and so has to be seen.
    fn uses(&self, inputs: &[FormField]) -> bool {
        inputs.iter().any(|input| self.fields.given(input.name).is_some() || self.words_at(input.name).is_some())
    }

    /// What is wrong with a field.
    fn words_at(&self, name: &str) -> Option<&str> {
        self.fault.filter(|fault| fault.field == name).map(|fault| fault.words.as_str())
    }

    fn invalid(&self, name: &str) -> Option<&'static str> {
        self.words_at(name).map(|_| "true")
    }

    /// The elements that describe a field: what is wrong with it, and its help.
    fn described_by(&self, name: &str, has_help: bool) -> String {
        let fault = self.words_at(name).map(|_| format!("{name}-fault"));
        let help = has_help.then(|| format!("{name}-help"));
        fault.into_iter().chain(help).collect::<Vec<String>>().join(" ")
    }

    fn field_fault(&self, name: &str) -> Markup {
        html! {
            @if let Some(words) = self.words_at(name) { p.field-fault id=(format!("{name}-fault")) { (words) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desk::pages::ask::reading::NAMES;

    /// What was typed stays, and the field at fault says so, without any script.
    #[test]
    fn every_field_can_be_pointed_at_and_keeps_its_text() {
        for field in NAMES {
            let fields = FormFields::parse(format!("{field}=%3Cthis%3E").as_bytes());
            let fault = FieldFault::of(field, "not <that>");
            let view = View { fields: &fields, fault: Some(&fault), is_refused: true };
            let page = view.page(&html! {}).into_string();
            assert!(page.contains("not &lt;that&gt;") && page.contains(&format!("href=\"#{field}\"")), "{field}");
            assert_eq!(page.matches("aria-invalid=\"true\"").count(), 1, "{field}");
            let described = format!("aria-describedby=\"{field}-fault");
            assert!(page.contains(&described) && page.contains(&format!("id=\"{field}-fault\"")), "{field}: {page}");
            let is_choice = ["trust", "who", "anyway"].contains(&field);
            assert!(is_choice || page.contains("&lt;this&gt;"), "{field}");
            assert_eq!(page.contains("<details open"), page.split("<details>").count() < 3, "{field}");
        }
        let fields = usual();
        let page = View { fields: &fields, fault: None, is_refused: false }.page(&html! {}).into_string();
        assert!(!page.contains("aria-invalid") && !page.contains("-fault"));
        assert_eq!(
            fields.given("minimum_batch"),
            None,
            "it would be wrong as soon as another number of owners is typed"
        );
    }
}
