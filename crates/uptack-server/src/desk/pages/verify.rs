//! Recomputing what a card or a record states.

use axum::{
    extract::{FromRequest, Multipart, Request, State, multipart::MultipartError},
    http::{HeaderMap, StatusCode},
};
use maud::{Markup, html};
use std::sync::Arc;
use uptack::{
    card::{Check, Trust, Verdict},
    privacy::WorkLimit,
    simulate::Progress,
};
use uptack_dap::{
    release::verification::{Document, Verifier},
    signed::PublicKey,
};

use super::{
    Page, Pages,
    frame::{self, Tab},
    guard,
    refusal::Refusal,
    visitor::{FORM_TOKEN, Visitor},
};

/// What is longer is cut off.
const LONGEST_SHOWN: usize = 160;

pub(super) async fn form(State(pages): State<Arc<Pages>>, headers: HeaderMap) -> Page {
    let visitor = pages.visitor(&headers)?;
    Ok(frame::page("Verify", Tab::Verify, &visitor, verify_form(&visitor, None)))
}

pub(super) async fn submit(State(pages): State<Arc<Pages>>, headers: HeaderMap, request: Request) -> Page {
    let visitor = pages.visitor(&headers)?;
    let sent = Sent::read(&pages, &headers, request).await?;
    guard::check_form_token(&sent.form_token, &visitor.form_token)?;
    let document = match Document::from_json(&sent.text) {
        Ok(document) => document,
        Err(error) => {
            let form = verify_form(&visitor, Some(&error.to_string()));
            return Ok(frame::page("Verify", Tab::Verify, &visitor, form));
        }
    };
    let key = sent.only_own_key.then(|| pages.shared.signer.public());
    let work = pages.work.once(move || verified(&document, key.as_ref()));
    let words = "Too much is being computed at once. Try again in a moment, or use `uptack verify`.";
    let found = work.await.ok_or_else(|| Refusal::page(StatusCode::SERVICE_UNAVAILABLE, words))?;
    let body = match found.as_ref() {
        Ok(verified) => html! { (verified.markup()) (verify_form(&visitor, None)) },
        Err(words) => verify_form(&visitor, Some(words)),
    };
    Ok(frame::page("Verify", Tab::Verify, &visitor, body))
}

/// What the form sends; a file counts more than what is pasted.
#[derive(Default)]
struct Sent {
    form_token: String,
    text: String,
    only_own_key: bool,
}

impl Sent {
    async fn read(pages: &Pages, headers: &HeaderMap, request: Request) -> Result<Self, Refusal> {
        guard::check_origin(headers)?;
        let late = |_| Refusal::page(StatusCode::REQUEST_TIMEOUT, "The document did not arrive in time.");
        tokio::time::timeout(pages.shared.config.request_timeout, Self::read_parts(request)).await.map_err(late)?
    }

    async fn read_parts(request: Request) -> Result<Self, Refusal> {
        let refuse = |error: MultipartError| Refusal::page(error.status(), error.body_text());
        let parts = Multipart::from_request(request, &()).await;
        let mut parts = parts.map_err(|error| Refusal::page(error.status(), error.body_text()))?;
        let mut sent = Self::default();
        // A body of more than two MiB is refused while it is read.
        while let Some(part) = parts.next_field().await.map_err(refuse)? {
            let name = part.name().unwrap_or_default().to_owned();
            let text = part.text().await.map_err(refuse)?;
            match name.as_str() {
                FORM_TOKEN => sent.form_token = text,
                "own_key" => sent.only_own_key = true,
                "document" | "file" if !text.trim().is_empty() => sent.text = text,
                _ => {}
            }
        }
        Ok(sent)
    }
}

struct Verified {
    name: &'static str,
    checks: Vec<Check>,
    trust: Vec<Trust>,
}

fn verified(document: &Document, key: Option<&PublicKey>) -> Result<Verified, String> {
    let verifier = Verifier { desk_key: key, limit: WorkLimit::default() };
    let checks = verifier.verify(document, &Arc::new(Progress::default())).map_err(|error| error.to_string())?;
    // What a false claim would rest on is of no interest.
    let sound = checks.iter().all(Check::holds);
    let trust = document.card().ok().filter(|_| sound).and_then(|card| card.trust().ok()).unwrap_or_default();
    Ok(Verified { name: document.name(), checks, trust })
}

impl Verified {
    fn markup(&self) -> Markup {
        let failed = self.checks.iter().filter(|check| !check.holds()).count();
        html! {
            section.panel aria-label="What was found" {
                h1 {
                    @if failed == 0 { "This " (self.name) " states what follows from it" }
                    @else { (failed) " of " (self.checks.len()) " checks of this " (self.name) " fail" }
                }
                div.scroll tabindex="0" role="group" aria-label="Checks" {
                    table.checks {
                        thead { tr {
                            th scope="col" { span.visually-hidden { "Verdict" } } th scope="col" { "What" } th scope="col" { "Stated" }
                            th scope="col" { "Recomputed" }
                        } }
                        tbody { @for check in &self.checks { (row(check)) } }
                    }
                }
                @for trust in &self.trust { p.help { (trust.holds) } }
            }
        }
    }
}

fn row(check: &Check) -> Markup {
    let (sign, words) = match check.verdict {
        Verdict::Equal => ("✓", "holds"),
        Verdict::RoundedUp => ("✓", "holds, rounded up"),
        Verdict::Wider => ("✗", "wider than was found"),
        Verdict::Wrong => ("✗", "wrong"),
        Verdict::NotStated => ("–", "not stated"),
    };
    html! {
        tr {
            td class=(if check.holds() { "tick" } else { "cross" }) {
                span aria-hidden="true" { (sign) } span.visually-hidden { (words) }
            }
            th scope="row" { (short(&check.what)) }
            td { code { (short(check.stated.as_deref().unwrap_or("–"))) } }
            td { code { (short(&check.recomputed)) } @if check.verdict != Verdict::Equal { span.help { (words) } } }
        }
    }
}

fn short(text: &str) -> String {
    let start: String = text.chars().take(LONGEST_SHOWN).collect();
    if start.len() < text.len() { format!("{start}…") } else { start }
}

fn verify_form(visitor: &Visitor, fault: Option<&str>) -> Markup {
    html! {
        section.panel {
            h2 { "Verify a card or a record" }
            p { "Every claim, the name, the signature, the tallies and the estimates are computed again by this desk's library. \
                 Whoever does not trust this desk runs " code { "uptack verify" } " instead, which needs no desk." }
            @if let Some(fault) = fault { p.fault role="alert" { (fault) } }
            form method="post" action="/pages/verify" enctype="multipart/form-data" {
                (frame::form_token(visitor))
                div.field {
                    label for="document" { "Paste it" }
                    textarea #document name="document" rows="8" spellcheck="false" {}
                }
                div.field {
                    label for="file" { "or choose a file (JSON)" }
                    input #file type="file" name="file" accept=".json,application/json";
                }
                div.field.check {
                    input #own_key type="checkbox" name="own_key" value="yes";
                    label for="own_key" { "It has to be signed by this desk" }
                }
                button.primary type="submit" { "Verify" }
            }
        }
    }
}
