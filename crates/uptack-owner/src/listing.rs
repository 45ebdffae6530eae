//! What a desk has open.

use uptack_net::{signed::SignedCard, web};
use url::Url;

use crate::error::{Error, Result};

/// The open queries of a desk. The request is the same for every owner.
pub(crate) async fn fetch(http: &reqwest::Client, desk: &Url) -> Result<Vec<SignedCard>> {
    #[derive(serde::Deserialize)]
    struct Listed {
        queries: Vec<SignedCard>,
    }
    let url = desk.join("queries").map_err(|error| Error::Input(format!("desk: {error}")))?;
    let response = http.get(url).send().await.map_err(|error| web::no_answer("desk", error))?;
    let bytes = web::body("desk", web::check("desk", response).await?).await?;
    let listed: Listed = serde_json::from_slice(&bytes)
        .map_err(|_| Error::Input("the desk's answer is not a list of queries".to_owned()))?;
    Ok(listed.queries)
}
