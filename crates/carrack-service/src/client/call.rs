//! One request, and what answers it.

use std::fmt;

use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{Called, ClientError};
use crate::model::percent;

/// Where all routes but health and metrics are.
pub const API_PREFIX: &str = "/api/v1";

/// One request.
#[derive(Clone, Debug)]
pub struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Option<Vec<u8>>,
    pub(super) headers: Vec<(&'static str, String)>,
}

impl Call {
    /// Asks for what is there.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    /// Adds something, or has something done.
    pub fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    /// Changes something.
    pub fn patch(path: impl Into<String>) -> Self {
        Self::new(Method::PATCH, path)
    }

    /// Brings something to its place.
    pub fn put(path: impl Into<String>) -> Self {
        Self::new(Method::PUT, path)
    }

    /// Removes something.
    pub fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), body: None, headers: Vec::new() }
    }

    /// The same with this document.
    ///
    /// # Errors
    /// [`ClientError::Broken`] for what JSON cannot hold, as a map whose keys are no text.
    pub fn body(mut self, document: &impl Serialize) -> Called<Self> {
        let bytes = serde_json::to_vec(document).map_err(|error| ClientError::Broken(error.to_string()))?;
        self.body = Some(bytes);
        Ok(self)
    }

    /// The same with these bytes, which are no document.
    #[must_use]
    pub fn bytes(mut self, bytes: Vec<u8>) -> Self {
        self.body = Some(bytes);
        self.header("content-type", "application/octet-stream")
    }

    /// The same with this header: `Idempotency-Key`, `If-Match`.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// `GET /tasks`
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// An answer that is no problem.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Of HTTP: 200, 201, 202 or 204.
    pub status: u16,
    /// The entity tag, as `If-Match` takes it.
    pub etag: Option<String>,
    /// The task was there already, by its submission's id.
    pub is_replay: bool,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// The body as it came.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The document.
    ///
    /// # Errors
    /// [`ClientError::Broken`] where it is another one.
    pub fn json<T: DeserializeOwned>(&self) -> Called<T> {
        serde_json::from_slice(&self.body).map_err(|error| {
            ClientError::Broken(format!("the service's answer is not what this program knows: {error}"))
        })
    }
}

/// A path with a query behind it, or more of one.
pub fn with_query(path: &str, query: &[(&str, &str)]) -> String {
    let mut whole = path.to_owned();
    for (name, value) in query {
        whole.push(if whole.contains('?') { '&' } else { '?' });
        whole.push_str(name);
        whole.push('=');
        whole.push_str(&segment(value));
    }
    whole
}

/// A text as one segment of a path, or one value of a query.
pub fn segment(text: &str) -> String {
    percent(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_hold_whatever_a_name_holds() {
        assert_eq!(with_query("/tasks", &[("label", "a b&c"), ("after", "x")]), "/tasks?label=a%20b%26c&after=x");
        assert_eq!(segment("é/?#%"), "%C3%A9%2F%3F%23%25");
    }
}
