//! A browser as far as the tests need one: it keeps cookies, follows nothing and sends forms.

use reqwest::{
    Client, Method, Response,
    header::{COOKIE, LOCATION, SET_COOKIE},
    redirect::Policy,
};
use std::collections::BTreeMap;
use uptack_server::desk::Desk;
use url::Url;

/// A browser at a desk.
pub(crate) struct Browser {
    client: Client,
    base: Url,
    pub(crate) cookies: BTreeMap<String, String>,
    /// Headers that every request carries.
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) location: String,
    pub(crate) set_cookies: Vec<String>,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Browser {
    pub(crate) fn new(desk: &Desk) -> Self {
        let client = Client::builder().redirect(Policy::none()).build().unwrap();
        Self { client, base: desk.url(), cookies: BTreeMap::new(), headers: Vec::new() }
    }

    /// One that is signed in as the first analyst.
    pub(crate) async fn signed_in(desk: &Desk) -> Self {
        let token = std::fs::read_to_string(desk.first_token()).unwrap();
        Self::signed_in_with(desk, token.trim()).await
    }

    pub(crate) async fn signed_in_with(desk: &Desk, token: &str) -> Self {
        let mut browser = Self::new(desk);
        let answer = browser.sign_in(token).await;
        assert_eq!((answer.status, answer.location.as_str()), (303, "/pages/"), "{}", answer.text);
        browser
    }

    pub(crate) async fn sign_in(&mut self, token: &str) -> Answer {
        let form = self.get("/pages/sign-in").await;
        let form_token = form.field("form_token");
        self.post("/pages/sign-in", &[("form_token", &form_token), ("token", token)]).await
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn head(&mut self, path: &str) -> Answer {
        self.send(Method::HEAD, path, None).await
    }

    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        self.send(Method::POST, path, Some(("application/x-www-form-urlencoded".to_owned(), body))).await
    }

    /// Sends a form as one with a file is sent.
    pub(crate) async fn upload(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let part = |(name, value): &(&str, &str)| {
            format!("--edge\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let body = format!("{}--edge--\r\n", fields.iter().map(part).collect::<String>());
        self.send(Method::POST, path, Some(("multipart/form-data; boundary=edge".to_owned(), body))).await
    }

    /// Sends what one of the page's forms sends: its token with these fields.
    pub(crate) async fn submit(&mut self, page: &str, action: &str, fields: &[(&str, &str)]) -> Answer {
        let form_token = self.get(page).await.field("form_token");
        let mut all = vec![("form_token", form_token.as_str())];
        all.extend(fields);
        self.post(action, &all).await
    }

    async fn send(&mut self, method: Method, path: &str, body: Option<(String, String)>) -> Answer {
        let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut request = self.client.request(method, self.base.join(path).unwrap());
        if !cookies.is_empty() {
            request = request.header(COOKIE, cookies.join("; "));
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if let Some((media_type, body)) = body {
            request = request.header("content-type", media_type).body(body);
        }
        let answer = Answer::of(request.send().await.unwrap()).await;
        for line in &answer.set_cookies {
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            match value {
                "" => self.cookies.remove(name),
                value => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
        answer
    }

    /// The name and value of the cookie that shows the session.
    pub(crate) fn session(&self) -> (String, String) {
        let found = self.cookies.iter().find(|(name, _)| !name.contains("visit"));
        found.map(|(name, value)| (name.clone(), value.clone())).expect("signed in")
    }
}

impl Answer {
    async fn of(response: Response) -> Self {
        let text = |name| response.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
        let set = response.headers().get_all(SET_COOKIE).iter().map(|value| value.to_str().unwrap().to_owned());
        let (set_cookies, location) = (set.collect(), text(LOCATION));
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Self { status, location, set_cookies, headers, text: response.text().await.unwrap() }
    }

    /// The value of a hidden field.
    pub(crate) fn field(&self, name: &str) -> String {
        let start = format!("name=\"{name}\" value=\"");
        let rest = self.text.split_once(&start).unwrap_or_else(|| panic!("no field {name} in {}", self.text)).1;
        let value = rest.split('"').next().unwrap();
        value.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    }
}
