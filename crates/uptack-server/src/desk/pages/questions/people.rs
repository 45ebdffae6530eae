//! How people answer a question: the link to a page, the command for a terminal, and what keeps them from answering.

use axum::http::{HeaderMap, header::HOST};
use maud::{Markup, html};
use uptack::card::{Card, Enrolment, Operators};
use uptack_dap::desk_client::answer_link;
use url::Url;

use crate::desk::pages::Pages;

/// How people reach this desk.
pub(in crate::desk::pages) struct PeopleAccess {
    /// The address of this desk, as the analyst's browser reaches it.
    desk: Option<Url>,
    /// The pages that may read its cards.
    pages: Vec<Url>,
    operators: Operators,
}

impl PeopleAccess {
    pub(in crate::desk::pages) fn of(pages: &Pages, headers: &HeaderMap) -> Self {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let scheme = if pages.is_secure(headers) { "https" } else { "http" };
        let allowed = &pages.shared.config.allowed_origins;
        Self {
            desk: host.and_then(|host| Url::parse(&format!("{scheme}://{host}/")).ok()),
            pages: allowed.iter().filter_map(|origin| Url::parse(&origin.to_string()).ok()).collect(),
            operators: pages.shared.provisioner.operators(),
        }
    }

    pub(super) fn how_to_answer(&self, card: &Card, query: &str) -> Markup {
        let desk = self.desk.as_ref().map_or("DESK", Url::as_str);
        html! {
            section.panel {
                h2 { "How people answer" }
                (self.links(card, query))
                p { "In a terminal:" }
                pre tabindex="0" {
                    code { "uptack answer --desk " (desk) " --policy policy.toml --data FOLDER --query " (query) }
                }
                (self.obstacles())
            }
        }
    }

    /// One link for each page that may read the card.
    fn links(&self, card: &Card, query: &str) -> Markup {
        html! {
            @if let (Some(desk), false) = (&self.desk, self.pages.is_empty()) {
                p { "In a browser, by this link:" }
                @for page in &self.pages {
                    pre tabindex="0" { code { (answer_link(page, desk, card, query)) } }
                }
                @if card.enrolment == Some(Enrolment::Required) {
                    p { "Append each person's secret, and send each person their own link." }
                }
                p.help { "If the page is not at the root of its server, write its path before the #. If people reach this desk at \
                    another address, replace " code { (desk) } "." }
            }
        }
    }

    /// What keeps people from answering, and how to try it nevertheless.
    pub(in crate::desk::pages) fn obstacles(&self) -> Markup {
        html! {
            @if self.pages.is_empty() {
                p { "Nobody can answer in a browser yet: this desk lets no web page read its cards. To try it on this machine, build \
                    the page in " code { "web/owner" } ", serve it at another address than the desk's, and start the desk again \
                    with that address:" }
                pre tabindex="0" { code { "uptack serve --data DESK --allow-origin http://127.0.0.1:8000" } }
            }
            @if self.operators == Operators::One {
                p { "One operator runs both aggregators of this desk and could see every answer, so owners refuse to answer by \
                    default. For a trial, allow it: in a browser in the page's settings, in a terminal by "
                    code { "separate-operators = false" } " in the policy. For a survey, let two operators run the aggregators." }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(pages: &[&str], operators: Operators) -> PeopleAccess {
        let url = |text: &str| Url::parse(text).unwrap();
        let desk = Some(url("https://desk.example/"));
        PeopleAccess { desk, pages: pages.iter().map(|page| url(page)).collect(), operators }
    }

    #[test]
    fn without_a_page_or_with_one_operator_it_is_said_how_to_try() {
        let plain = access(&[], Operators::One).obstacles().into_string();
        assert!(plain.contains("--allow-origin") && plain.contains("separate-operators = false"), "{plain}");
        assert_eq!(access(&["https://page.example/"], Operators::Two).obstacles().into_string(), "");
    }
}
