//! A question that was asked, with what the pages show of it.

use axum::response::{IntoResponse, Redirect, Response};
use std::sync::Arc;
use uptack::card::Card;

use super::{Pages, fill::Fill, outcome::Outcome, refusal::Granted};
use crate::desk::store::Query;

/// A question that was asked.
pub(super) struct Asked {
    pub(super) query: Query,
    pub(super) card: Card,
    pub(super) fill: Fill,
    /// What came out, if it is released.
    pub(super) outcome: Option<Arc<Outcome>>,
}

impl Asked {
    pub(super) fn words(&self) -> &str {
        self.card.question.as_deref().unwrap_or("(without words)")
    }

    pub(super) fn path(&self) -> String {
        path(self.query.name())
    }

    pub(super) fn is_over(&self) -> bool {
        self.fill.state.is_over()
    }
}

/// Where the page of a question is.
fn path(name: &str) -> String {
    format!("/pages/questions/{name}")
}

/// Leads to the page of a question.
pub(super) fn redirect(name: &str) -> Response {
    Redirect::to(&path(name)).into_response()
}

impl Pages {
    pub(super) async fn asked(&self, query: Query, card: Card, outcome: Option<Arc<Outcome>>) -> Asked {
        let fill = self.fill(&query, &card).await;
        Asked { query, card, fill, outcome }
    }

    /// The outcome of a query, if it is released.
    pub(super) async fn released(&self, query: &Query) -> Granted<Option<Arc<Outcome>>> {
        let Some(record) = query.released_record() else { return Ok(None) };
        self.outcome(query.name(), record).await.map(Some)
    }
}
