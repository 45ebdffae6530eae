//! Two aggregators elsewhere, over their operators' interface or by files.

use reqwest::{Method, RequestBuilder, Response, StatusCode};
use std::path::{Path, PathBuf};
use uptack_dap::{
    http_client, private,
    protocol::{ProblemType, TaskId},
    signed::{PublicKey, SignedCard},
    task::{self, AggregatorRole, CollectorTask, TaskParameters},
};

use super::{Addresses, base_address};
use crate::{
    aggregator::{CardDefinition, TaskList},
    base::problem::problem_type,
    desk::config::{Config, Remote},
    error::{Error, Result},
};

/// Both servers.
pub(super) struct RemoteServers {
    leader: RemoteServer,
    helper: RemoteServer,
    /// Where definitions are written for operators who add tasks by hand.
    folder: PathBuf,
}

impl RemoteServers {
    pub(super) fn new(config: &Config, leader: &Remote, helper: &Remote) -> Result<(Self, Addresses)> {
        let addresses = Addresses { leader: base_address(&leader.url)?, helper: base_address(&helper.url)? };
        if addresses.leader == addresses.helper {
            return Err(Error::input("leader and helper are the same server"));
        }
        let http = http_client::client(config.root.as_deref())?;
        let servers = Self {
            leader: RemoteServer::new(AggregatorRole::Leader, leader, &http),
            helper: RemoteServer::new(AggregatorRole::Helper, helper, &http),
            folder: config.data.join("provision"),
        };
        Ok((servers, addresses))
    }

    pub(super) async fn add(&self, card: &SignedCard, collector: &CollectorTask) -> Result<()> {
        let define = |server: &RemoteServer| CardDefinition::new(server.role, card.clone(), collector);
        let (for_leader, for_helper) = (define(&self.leader), define(&self.helper));
        if self.leader.is_served_by_hand() || self.helper.is_served_by_hand() {
            write_files(&self.folder, &[&for_leader, &for_helper], &collector.parameters)?;
        }
        // The helper first: it must know the task before the leader speaks of it.
        self.helper.put(&for_helper).await?;
        self.leader.put(&for_leader).await
    }

    pub(super) async fn remove(&self, task: &TaskId) -> Result<()> {
        self.leader.delete(task).await?;
        self.helper.delete(task).await?;
        remove_files(&self.folder, task)
    }

    pub(super) fn server(&self, role: AggregatorRole) -> &RemoteServer {
        match role {
            AggregatorRole::Leader => &self.leader,
            AggregatorRole::Helper => &self.helper,
        }
    }

    pub(super) async fn count_reports(&self, task: &TaskId) -> Result<Option<u64>> {
        self.leader.count_reports(task).await
    }
}

/// One of the servers. It is called only with its operator's token.
pub(super) struct RemoteServer {
    role: AggregatorRole,
    remote: Remote,
    http: reqwest::Client,
}

impl RemoteServer {
    fn new(role: AggregatorRole, remote: &Remote, http: &reqwest::Client) -> Self {
        Self { role, remote: remote.clone(), http: http.clone() }
    }

    fn is_served_by_hand(&self) -> bool {
        self.remote.admin.is_none()
    }

    async fn put(&self, definition: &CardDefinition) -> Result<()> {
        let Some(request) = self.request(Method::PUT, &format!("/{}", definition.card.query))? else { return Ok(()) };
        let body = serde_json::to_vec(definition).expect("task definitions are plain data");
        self.call(request.body(body)).await?;
        Ok(())
    }

    pub(super) async fn delete(&self, task: &TaskId) -> Result<()> {
        let Some(request) = self.request(Method::DELETE, &format!("/{task}"))? else { return Ok(()) };
        let response = self.send(request).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let body = http_client::body(&self.role.to_string(), response).await?;
        match problem_type(&body) {
            // Removed by an earlier call whose answer did not arrive.
            Some(ProblemType::UnrecognizedTask) => Ok(()),
            _ => Err(Error::unreachable(format!(
                "the {} answers {} to the removal of a task",
                self.role,
                status.as_u16()
            ))),
        }
    }

    /// How many reports the operator says there are.
    async fn count_reports(&self, task: &TaskId) -> Result<Option<u64>> {
        let Some(request) = self.request(Method::GET, &format!("/{task}"))? else { return Ok(None) };
        let response = self.call(request).await?;
        let body = http_client::body(&self.role.to_string(), response).await?;
        let document: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        Ok(document["reports"].as_u64())
    }

    /// The tasks of one desk's cards that are served there; `None` if the server is not asked, or does not know the question.
    pub(super) async fn tasks(&self, desk: &PublicKey) -> Result<Option<Vec<TaskId>>> {
        let Some(request) = self.request(Method::GET, "")? else { return Ok(None) };
        let response = self.send(request).await?;
        if matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) {
            return Ok(None);
        }
        let whose = self.role.to_string();
        let response = http_client::check(&whose, response).await?;
        let body = http_client::body(&whose, response).await?;
        let listed: TaskList = serde_json::from_slice(&body)
            .map_err(|_| Error::unreachable(format!("the {whose}'s list of tasks cannot be read")))?;
        let own = listed.tasks.into_iter().filter(|task| task.signer.as_ref() == Some(desk));
        // A name that is not that of a task is not one of ours.
        Ok(Some(own.filter_map(|task| task.task.parse().ok()).collect()))
    }

    /// A request about tasks; none without the operator's token.
    fn request(&self, method: Method, path: &str) -> Result<Option<RequestBuilder>> {
        let Some(token) = &self.remote.admin else { return Ok(None) };
        let url = http_client::join(&self.remote.url, &format!("uptack/tasks{path}"))?;
        Ok(Some(self.http.request(method, url).bearer_auth(token.as_str())))
    }

    /// Sends a request that has to succeed.
    async fn call(&self, request: RequestBuilder) -> Result<Response> {
        let response = self.send(request).await?;
        Ok(http_client::check(&self.role.to_string(), response).await?)
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response> {
        let answered = request.send().await;
        Ok(answered.map_err(|error| http_client::no_answer(&self.role.to_string(), error))?)
    }
}

/// Writes definitions for operators who add tasks by hand. Nothing in them is secret.
fn write_files(folder: &Path, definitions: &[&CardDefinition], parameters: &TaskParameters) -> Result<()> {
    let place = folder.join(parameters.task_id.to_string());
    if place.exists() {
        return Ok(());
    }
    let partial = place.with_extension("partial");
    private::create_folder(&partial)?;
    for definition in definitions {
        task::write(&partial.join(format!("{}.json", definition.role)), definition)?;
    }
    task::write(&partial.join("client.json"), parameters)?;
    Ok(std::fs::rename(&partial, &place)?)
}

fn remove_files(folder: &Path, task: &TaskId) -> Result<()> {
    match std::fs::remove_dir_all(folder.join(task.to_string())) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use uptack_dap::token::Token;

    /// Removes a task from a server that answers with this status and body.
    async fn removal(status: u16, body: &'static str) -> Result<()> {
        let status = StatusCode::from_u16(status).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let server = tokio::spawn(async move {
            axum::serve(listener, Router::new().fallback(move || async move { (status, body) })).await
        });
        let remote = Remote { url, admin: Some(Token::generate()) };
        let leader = RemoteServer::new(AggregatorRole::Leader, &remote, &http_client::client(None).unwrap());
        let outcome = leader.delete(&TaskId::from([7; 32])).await;
        server.abort();
        outcome
    }

    #[tokio::test]
    async fn only_the_type_of_an_answer_says_that_a_task_is_already_removed() {
        assert!(removal(204, "").await.is_ok());
        assert!(removal(404, r#"{"type": "urn:ietf:params:ppm:dap:error:unrecognizedTask"}"#).await.is_ok());
        for stranger in [
            r#"{"type": "about:blank", "detail": "not urn:ietf:params:ppm:dap:error:unrecognizedTask"}"#,
            r#"{"type": "urn:ietf:params:ppm:dap:error:unauthorizedRequest", "title": "unrecognizedTask"}"#,
            r#"{"detail": {"type": "urn:ietf:params:ppm:dap:error:unrecognizedTask"}}"#,
            r#"["urn:ietf:params:ppm:dap:error:unrecognizedTask"]"#,
            "urn:ietf:params:ppm:dap:error:unrecognizedTask",
        ] {
            assert!(removal(404, stranger).await.is_err(), "{stranger}");
        }
    }
}
