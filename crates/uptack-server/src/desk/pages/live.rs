//! What changes by itself, as server-sent events: one for each change, made from the same parts as the pages.

use axum::{
    body::{Body, Bytes},
    extract::{Extension, Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header},
    response::IntoResponse,
};
use futures_util::stream;
use serde_json::json;
use std::{collections::HashMap, convert::Infallible, sync::Arc, time::Duration};
use tokio::sync::broadcast::{self, error::RecvError};
use uptack::card::Card;

use super::{Page, Pages, fields::Fields, refusal::Refusal};
use crate::{
    base::listener::{Origin, Share},
    desk::{overview, queries, store},
};

/// How often it is looked whether something has changed.
const LOOK: Duration = Duration::from_millis(900);
/// After so many looks without a change a word is sent, so that no proxy takes the connection for dead.
const QUIET_LOOKS: u32 = 15;
/// Most questions that one stream follows.
const MOST: usize = 60;

/// Follows the questions of a list.
pub(super) async fn questions(
    State(pages): State<Arc<Pages>>,
    Extension(origin): Extension<Origin>,
    headers: HeaderMap,
    uri: Uri,
) -> Page {
    let fields = Fields::of_query(&uri);
    let names = fields.get("names").split(',').filter(|name| !name.is_empty()).take(MOST).map(str::to_owned);
    follow(pages, origin, headers, names.collect(), Some(fields.get("asked").parse().unwrap_or(0)))
}

/// Follows one question.
pub(super) async fn question(
    State(pages): State<Arc<Pages>>,
    Extension(origin): Extension<Origin>,
    headers: HeaderMap,
    Path(query): Path<String>,
) -> Page {
    follow(pages, origin, headers, vec![query], None)
}

/// Follows questions by their names; a list that was made when there were `asked` questions is told of new ones, too.
fn follow(pages: Arc<Pages>, origin: Origin, headers: HeaderMap, names: Vec<String>, asked: Option<u64>) -> Page {
    if pages.visitor(&headers).is_err() {
        return Err(Refusal::page(StatusCode::UNAUTHORIZED, "Sign in to follow a question."));
    }
    let Some(place) = pages.shared.streams.take(origin) else {
        return Err(Refusal::page(StatusCode::SERVICE_UNAVAILABLE, "There are too many streams. Load the page again."));
    };
    let opened = asked.is_some().then(|| pages.shared.events.subscribe());
    let follower =
        Follower { pages, headers, names, opened, asked, shown: HashMap::new(), phases: HashMap::new(), _place: place };
    let events = stream::unfold((follower, true), |(mut follower, is_first)| async move {
        follower.next(is_first).await.map(|bytes| (Ok::<_, Infallible>(bytes), (follower, false)))
    });
    let mut response = Body::from_stream(events).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

struct Follower {
    pages: Arc<Pages>,
    headers: HeaderMap,
    names: Vec<String>,
    /// Tells of queries that open, for lists.
    opened: Option<broadcast::Receiver<Bytes>>,
    /// How many questions there were when the list was made, until it is compared with how many there are now: one may have opened
    /// while the browser loaded the page.
    asked: Option<u64>,
    /// What the browser shows, by element.
    shown: HashMap<String, String>,
    /// The states that the browser's page was made for.
    phases: HashMap<String, (store::State, bool)>,
    _place: Share,
}

impl Follower {
    /// The next event; nothing when the desk stops, or who asked is no longer signed in.
    async fn next(&mut self, is_first: bool) -> Option<Bytes> {
        let mut stopping = self.pages.shared.stopping.subscribe();
        let mut is_due = is_first;
        for _ in 0..QUIET_LOOKS {
            let mut has_news = self.has_missed_some().await;
            if !is_due {
                tokio::select! {
                    () = tokio::time::sleep(LOOK) => {}
                    news = opening(&mut self.opened) => has_news |= news,
                    _ = stopping.wait_for(|stop| *stop) => return None,
                }
            }
            is_due = false;
            let (parts, has_moved_on) = self.changes().await?;
            if !parts.is_empty() || has_news || has_moved_on {
                let event = json!({"parts": parts, "reload": has_news || has_moved_on});
                return Some(Bytes::from(format!("data: {event}\n\n")));
            }
        }
        Some(Bytes::from_static(b": still here\n\n"))
    }

    /// Whether a question was opened after the list was made and before its stream was.
    async fn has_missed_some(&mut self) -> bool {
        let Some(asked) = self.asked.take() else { return false };
        let Ok(visitor) = self.pages.visitor(&self.headers) else { return false };
        let analyst = overview::seen_by(&visitor.caller);
        let now = self.pages.shared.store.run(move |store| store.number_asked(analyst.as_deref())).await;
        now.is_ok_and(|now| now != asked)
    }

    /// The parts that are not what is shown, and whether a question's page has to be made anew.
    async fn changes(&mut self) -> Option<(HashMap<String, String>, bool)> {
        let visitor = self.pages.visitor(&self.headers).ok()?;
        let now = self.pages.shared.now();
        let (mut parts, mut has_moved_on) = (HashMap::new(), false);
        for name in &self.names {
            let Ok(query) = queries::find_own(&self.pages.shared, &visitor.caller, name).await else { continue };
            let Ok(card) = Card::from_json(&query.signed.card) else { continue };
            let fill = self.pages.fill(&query, &card).await;
            let phase = (fill.state, fill.is_collected);
            has_moved_on |= self.phases.insert(name.clone(), phase).is_some_and(|before| before != phase);
            for (id, markup) in fill.parts(now) {
                // The browser counts the seconds itself.
                let (text, is_clock) = (markup.into_string(), id.starts_with("clock-"));
                let before = self.shown.insert(id.clone(), text.clone());
                if before.as_ref() != Some(&text) && !(is_clock && before.is_some()) {
                    parts.insert(id, text);
                }
            }
        }
        Some((parts, has_moved_on))
    }
}

/// Waits for a query to open; for ever if nobody tells.
async fn opening(events: &mut Option<broadcast::Receiver<Bytes>>) -> bool {
    let Some(events) = events else { return std::future::pending().await };
    loop {
        match events.recv().await {
            Ok(event) if event.starts_with(b"event: query") => return true,
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => return true,
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}
