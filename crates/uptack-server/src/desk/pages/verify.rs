//! Recomputing what a card or a record states.

use axum::{
    body::Body,
    extract::{FromRequest, Multipart, Request, State, multipart::MultipartError},
    http::HeaderMap,
    response::Response,
};
use maud::{Markup, html};
use std::sync::Arc;
use uptack::{
    Progress,
    card::{Check, Trust, Verdict},
    privacy::WorkLimit,
};
use uptack_dap::{
    release::verification::{Document, Verifier},
    signed::PublicKey,
};

use super::{
    PageResponse, Pages, Site,
    frame::{self, FORM_TOKEN, PageError, PageResult, Tab, Visitor, scrolling_table},
    guard,
};
use crate::base::bodies::Sender;

/// Largest form with a card or a record.
const LARGEST_DOCUMENT: usize = 2 * 1024 * 1024;
/// The longest value that is shown in full, in characters.
const LONGEST_SHOWN: usize = 160;

pub(super) async fn form(visitor: Visitor) -> PageResponse {
    Ok(form_page(&visitor, None, ""))
}

pub(super) async fn submit(State(pages): Site, visitor: Visitor, headers: HeaderMap, request: Request) -> PageResponse {
    let sent = Sent::read(&pages, &headers, request).await?;
    guard::check_form_token(&sent.form_token, &visitor.form_token)?;
    let document = match Document::from_json(&sent.text) {
        Ok(document) => document,
        Err(error) => return Ok(form_page(&visitor, Some(&error.to_string()), &sent.pasted)),
    };
    Ok(match pages.verify(document, sent.only_own_key).await?.as_ref() {
        Ok(verified) => page(&visitor, html! { (verified.markup()) (verify_form(&visitor, None, "")) }),
        Err(words) => form_page(&visitor, Some(words), &sent.pasted),
    })
}

impl Pages {
    async fn verify(&self, document: Document, only_own_key: bool) -> PageResult<Arc<Result<Verified, String>>> {
        let key = only_own_key.then(|| self.shared.signer.public());
        self.work.once(move || Verified::of(&document, key.as_ref())).await.ok_or_else(busy)
    }
}

fn form_page(visitor: &Visitor, fault: Option<&str>, pasted: &str) -> Response {
    page(visitor, verify_form(visitor, fault, pasted))
}

fn page(visitor: &Visitor, body: Markup) -> Response {
    frame::page("Verify", Tab::Verify, visitor, body)
}

fn busy() -> PageError {
    PageError::busy("Too much is being computed at once. Try again in a moment, or use `uptack verify`.")
}

/// The submitted form. A file takes precedence over pasted text.
#[derive(Default)]
struct Sent {
    form_token: String,
    text: String,
    /// What was pasted, to be shown again if it cannot be read.
    pasted: String,
    only_own_key: bool,
}

impl Sent {
    async fn read(pages: &Pages, headers: &HeaderMap, request: Request) -> PageResult<Self> {
        guard::check_origin(headers)?;
        let (parts, body) = request.into_parts();
        let body = pages.shared.bodies.read(body, LARGEST_DOCUMENT, Sender::Known).await?;
        Self::read_parts(Request::from_parts(parts, Body::from(body.to_vec()))).await
    }

    async fn read_parts(request: Request) -> PageResult<Self> {
        let refuse = |error: MultipartError| PageError::page(error.status(), error.body_text());
        let parts = Multipart::from_request(request, &()).await;
        let mut parts = parts.map_err(|error| PageError::page(error.status(), error.body_text()))?;
        let mut sent = Self::default();
        while let Some(part) = parts.next_field().await.map_err(refuse)? {
            let name = part.name().unwrap_or_default().to_owned();
            sent.set(&name, part.text().await.map_err(refuse)?);
        }
        Ok(sent)
    }

    fn set(&mut self, name: &str, text: String) {
        match name {
            FORM_TOKEN => self.form_token = text,
            "own_key" => self.only_own_key = true,
            "document" if !text.trim().is_empty() => (self.text, self.pasted) = (text.clone(), text),
            "file" if !text.trim().is_empty() => self.text = text,
            _ => {}
        }
    }
}

struct Verified {
    name: &'static str,
    checks: Vec<Check>,
    trust: Vec<Trust>,
}

impl Verified {
    fn of(document: &Document, key: Option<&PublicKey>) -> Result<Self, String> {
        let verifier = Verifier { desk_key: key, limit: WorkLimit::default() };
        let checks = verifier.verify(document, &Arc::new(Progress::default())).map_err(|error| error.to_string())?;
        // Whom a claim relies on is shown only if it holds.
        let holds = checks.iter().all(Check::holds);
        let card = document.card().ok().filter(|_| holds);
        let trust = card.and_then(|card| card.trust().ok()).unwrap_or_default();
        Ok(Self { name: document.name(), checks, trust })
    }

    fn markup(&self) -> Markup {
        let failed = self.checks.iter().filter(|check| !check.holds()).count();
        html! {
            section.panel aria-label="What was found" {
                h1 {
                    @if failed == 0 { "All checks of this " (self.name) " passed" }
                    @else { (failed) " of " (self.checks.len()) " checks of this " (self.name) " fail" }
                }
                (scrolling_table("Checks", &self.table()))
                @for trust in &self.trust { p.help { (trust.holds) } }
            }
        }
    }

    fn table(&self) -> Markup {
        html! {
            table.checks {
                thead { tr {
                    th scope="col" { span.visually-hidden { "Verdict" } } th scope="col" { "What" } th scope="col" { "Stated" }
                    th scope="col" { "Recomputed" }
                } }
                tbody { @for check in &self.checks { (row(check)) } }
            }
        }
    }
}

fn row(check: &Check) -> Markup {
    let (sign, words) = sign_and_words(check.verdict);
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

fn sign_and_words(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Equal => ("✓", "holds"),
        Verdict::RoundedUp => ("✓", "holds, rounded up"),
        Verdict::Wider => ("✗", "wider than was found"),
        Verdict::Wrong => ("✗", "wrong"),
        Verdict::NotStated => ("–", "not stated"),
    }
}

fn short(text: &str) -> String {
    let start: String = text.chars().take(LONGEST_SHOWN).collect();
    if start.len() < text.len() { format!("{start}…") } else { start }
}

fn verify_form(visitor: &Visitor, fault: Option<&str>, pasted: &str) -> Markup {
    html! {
        section.panel {
            h2 { "Verify a card or a record" }
            p { "Every claim, the name, the signature, the tallies and the estimates are computed again by this desk's library. \
                 Whoever does not trust this desk runs " code { "uptack verify" } " instead, which needs no desk." }
            @if let Some(fault) = fault { p.fault #document-fault role="alert" { (fault) } }
            form method="post" action="/pages/verify" enctype="multipart/form-data" {
                (frame::form_token(visitor))
                div.field {
                    label for="document" { "Paste it" }
                    textarea #document name="document" rows="8" spellcheck="false" aria-invalid=[fault.map(|_| "true")]
                        aria-describedby=[fault.map(|_| "document-fault")] { (pasted) }
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
