//! What a form sends.

use axum::http::Uri;

/// The fields of a form, in a query or in a body.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(super) fn of_query(uri: &Uri) -> Self {
        Self::parse(uri.query().unwrap_or_default().as_bytes())
    }

    pub(super) fn parse(bytes: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(bytes).into_owned().collect())
    }

    /// A field without blanks around it; empty where there is none.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.trim())
    }

    /// A field that was filled in.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        Some(self.get(name)).filter(|value| !value.is_empty())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same as a query, with these fields and no others, in this order.
    pub(super) fn query(&self, names: &[&str]) -> String {
        let given = names.iter().filter_map(|name| Some((*name, self.given(name)?)));
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish()
    }
}
