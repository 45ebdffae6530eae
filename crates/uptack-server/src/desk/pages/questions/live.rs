//! Parts of pages that change by themselves, as server-sent events: one for each change, made from the same parts as the
//! pages.

use axum::{
    body::Bytes,
    extract::{Extension, Path, State},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use futures_util::stream;
use serde::Serialize;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};
use tokio::sync::broadcast::{self, error::RecvError};

use super::{
    progress::{BatchSize, LivePart, QuestionProgress},
    watched::{Followed, Watched},
};
use crate::{
    base::listener::{ClientAddress, Share},
    desk::{
        pages::{
            PageResponse, Pages, Site,
            frame::{PageError, PageResult, Visitor},
            guard::FormFields,
        },
        queries,
        store::{self, Query, Store},
        stream::event_stream,
    },
};

/// How often to look for changes, for all streams together.
const LOOK: Duration = Duration::from_millis(900);
/// How often a stream checks that its visitor is still signed in.
const CHECK: Duration = Duration::from_secs(3);
/// After this many checks without a change a comment is sent: a proxy could take a silent connection for dead.
const QUIET_CHECKS: u32 = 5;
/// Most questions that one stream follows.
const MOST: usize = 60;

/// Follows the questions of a list.
pub(super) async fn questions(
    State(pages): Site,
    Extension(origin): Extension<ClientAddress>,
    headers: HeaderMap,
    fields: FormFields,
) -> PageResponse {
    let names = fields.get("names").split(',').filter(|name| !name.is_empty()).take(MOST).map(str::to_owned);
    let mut stream = QuestionStream::new(pages, origin, headers, names.collect())?;
    stream.watch_for_new(fields.get("asked").parse().unwrap_or(0));
    Ok(stream.into_response())
}

/// Follows one question.
pub(super) async fn question(
    State(pages): Site,
    Extension(origin): Extension<ClientAddress>,
    headers: HeaderMap,
    Path(query): Path<String>,
) -> PageResponse {
    Ok(QuestionStream::new(pages, origin, headers, vec![query])?.into_response())
}

struct QuestionStream {
    pages: Arc<Pages>,
    headers: HeaderMap,
    names: Vec<String>,
    /// Tells of queries that open, for lists.
    opened: Option<broadcast::Receiver<Bytes>>,
    /// How many questions there were when the list was made, until it is compared with the number now: one may have
    /// been opened while the browser loaded the page.
    asked: Option<u64>,
    shown: BrowserState,
    /// Nothing was sent yet.
    is_first: bool,
    followed: Followed<QuestionProgress>,
    _place: Share,
}

impl QuestionStream {
    /// Follows questions by their names, if there is a place for another stream.
    fn new(pages: Arc<Pages>, origin: ClientAddress, headers: HeaderMap, names: Vec<String>) -> PageResult<Self> {
        if pages.visitor(&headers).is_err() {
            return Err(PageError::page(StatusCode::UNAUTHORIZED, "Sign in to follow a question."));
        }
        let Some(place) = pages.shared.streams.take(origin) else {
            return Err(PageError::busy("There are too many streams. Load the page again."));
        };
        let shown = BrowserState::default();
        let followed = pages.live.follow(&names);
        if pages.live.begins_looking() {
            tokio::spawn(keep_looking(Arc::clone(&pages)));
        }
        Ok(Self { pages, headers, names, opened: None, asked: None, shown, is_first: true, followed, _place: place })
    }

    /// Also follows which questions are new to a list that was made when there were `asked` of them.
    fn watch_for_new(&mut self, asked: u64) {
        self.asked = Some(asked);
        self.opened = Some(self.pages.shared.events.subscribe());
    }

    fn into_response(self) -> Response {
        event_stream(stream::unfold(self, |mut stream| async move { stream.next().await.map(|bytes| (bytes, stream)) }))
    }

    /// The next event; none when the desk stops, or the visitor is no longer signed in.
    async fn next(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.is_first) {
            let visitor = self.pages.visitor(&self.headers).ok()?;
            let mut changes = self.changes_at_first(&visitor).await;
            changes.reload |= self.has_missed_some().await;
            if !changes.is_empty() {
                return Some(changes.event());
            }
        }
        for _ in 0..QUIET_CHECKS {
            let has_news = self.wait().await?;
            let visitor = self.pages.visitor(&self.headers).ok()?;
            let mut changes = self.changes(&visitor);
            changes.reload |= has_news;
            if !changes.is_empty() {
                return Some(changes.event());
            }
        }
        Some(Bytes::from_static(b": still here\n\n"))
    }

    /// Waits for a change of any question, or until it is time to check the visitor; says whether a query was opened
    /// meanwhile. None when the desk stops.
    async fn wait(&mut self) -> Option<bool> {
        let mut stopping = self.pages.shared.stopping.subscribe();
        tokio::select! {
            () = tokio::time::sleep(CHECK) => Some(false),
            () = self.followed.changed() => Some(false),
            news = opening(&mut self.opened) => Some(news),
            _ = stopping.wait_for(|stop| *stop) => None,
        }
    }

    /// Whether a question was opened after the list was made and before its stream was.
    async fn has_missed_some(&mut self) -> bool {
        let Some(asked) = self.asked.take() else { return false };
        let Ok(visitor) = self.pages.visitor(&self.headers) else { return false };
        let analyst = queries::seen_by(&visitor.caller);
        let now = self.pages.shared.store.run(move |store| store.number_asked(analyst.as_deref())).await;
        now.is_ok_and(|now| now != asked)
    }

    /// The state of all questions, which the browser may not show yet.
    async fn changes_at_first(&mut self, visitor: &Visitor) -> PageChanges {
        let mut changes = PageChanges::default();
        for name in &self.names {
            let Ok(query) = queries::find_own(&self.pages.shared, &visitor.caller, name).await else { continue };
            let Ok(card) = query.card() else { continue };
            self.shown.update(&self.pages.fill(&query, &card).await, &mut changes);
        }
        changes
    }

    /// The changes that the browser does not show yet, as far as they were seen for all streams.
    fn changes(&mut self, visitor: &Visitor) -> PageChanges {
        let mut changes = PageChanges::default();
        let latest = self.followed.latest();
        for progress in self.names.iter().filter_map(|name| latest.get(name)) {
            if visitor.caller.may_touch(progress.analyst.as_deref()) {
                self.shown.update(progress, &mut changes);
            }
        }
        changes
    }
}

/// The questions that streams follow. One task looks at all of them; the streams wait for what it sees.
pub(in crate::desk::pages) type LiveQuestions = Watched<QuestionProgress>;

/// Looks at the questions that streams follow, until nobody follows any or the desk stops.
async fn keep_looking(pages: Arc<Pages>) {
    let mut stopping = pages.shared.stopping.subscribe();
    let mut read = ReadQuestions::default();
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            _ = stopping.wait_for(|stop| *stop) => return,
        }
        let Some(names) = pages.live.names() else { return };
        read.forget_changed(pages.shared.store.changes());
        let mut found = HashMap::new();
        for name in names {
            if let Some(progress) = read.progress(&pages, &name).await {
                found.insert(name, progress);
            }
        }
        pages.live.publish(found);
    }
}

/// Questions as they were read last, which is good enough as long as the store does not change.
#[derive(Default)]
struct ReadQuestions {
    changes: u64,
    questions: HashMap<String, (Query, BatchSize)>,
}

impl ReadQuestions {
    fn forget_changed(&mut self, changes: u64) {
        if self.changes != changes {
            self.changes = changes;
            self.questions.clear();
        }
    }

    async fn progress(&mut self, pages: &Pages, name: &str) -> Option<QuestionProgress> {
        if !self.questions.contains_key(name) {
            let mut query = pages.shared.store.run_for(name, Store::query).await.ok()??;
            let size = BatchSize::of(&query.card().ok()?);
            // It is not needed any more, and may be large.
            query.signed.card.clear();
            self.questions.insert(name.to_owned(), (query, size));
        }
        let (query, size) = self.questions.get(name)?;
        Some(pages.progress(query, *size).await)
    }
}

/// The state that the browser shows.
#[derive(Default)]
struct BrowserState {
    /// Parts, by their elements.
    parts: HashMap<String, String>,
    /// The states that the page was made for, by question.
    phases: HashMap<String, (store::QueryState, bool)>,
}

impl BrowserState {
    /// Brings a question up to date, and adds its new parts to the changes.
    fn update(&mut self, fill: &QuestionProgress, changes: &mut PageChanges) {
        let phase = (fill.state, fill.is_collected);
        let before = self.phases.insert(fill.query.clone(), phase);
        changes.reload |= before.is_some_and(|before| before != phase);
        for part in LivePart::ALL {
            let (id, text) = (fill.id(part), fill.part(part).into_string());
            if self.replace(part, &id, &text) {
                changes.parts.insert(id, text);
            }
        }
    }

    /// Replaces a part; says whether the browser has to.
    fn replace(&mut self, part: LivePart, id: &str, text: &str) -> bool {
        match self.parts.insert(id.to_owned(), text.to_owned()) {
            // The browser counts the seconds itself.
            Some(_) if part == LivePart::Clock => false,
            Some(before) => before != text,
            None => true,
        }
    }
}

/// An event, as the script reads it.
#[derive(Default, Serialize)]
struct PageChanges {
    /// New parts, by their elements.
    parts: BTreeMap<String, String>,
    /// The whole page has to be made anew.
    reload: bool,
}

impl PageChanges {
    fn is_empty(&self) -> bool {
        self.parts.is_empty() && !self.reload
    }

    fn event(&self) -> Bytes {
        let text = serde_json::to_string(self).expect("an event is strings");
        Bytes::from(format!("data: {text}\n\n"))
    }
}

/// Waits for a query to open; forever without events.
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
