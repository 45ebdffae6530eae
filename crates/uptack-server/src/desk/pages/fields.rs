//! What a form sends.

use axum::{extract::FromRequestParts, http::request::Parts};
use std::convert::Infallible;

/// The fields of a form, in a query or in a body.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields(Vec<(String, String)>);

/// Those of the request's query.
impl<S: Sync> FromRequestParts<S> for Fields {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default().as_bytes()))
    }
}

impl Fields {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(bytes).into_owned().collect())
    }

    /// A field, trimmed; empty if there is none.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.trim())
    }

    /// A field, trimmed, if it was filled in.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        Some(self.get(name)).filter(|value| !value.is_empty())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fields with these names that were filled in, as a query and in this order.
    pub(super) fn query(&self, names: &[&str]) -> String {
        let given = names.iter().filter_map(|name| Some((*name, self.given(name)?)));
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish()
    }
}
