//! A node as the service knows it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::EndpointTest;
use crate::clock::Moment;

/// What is known of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeStatus {
    /// What it is called.
    pub name: String,
    /// Where it listens; none: it asks for no token, or there is no node beside the service.
    pub address: Option<String>,
    /// SHA-256 of its public key, in hexadecimal.
    pub fingerprint: Option<String>,
    /// The version of its program.
    pub program: String,
    /// Tasks that are carried out.
    pub running: u64,
    /// Bytes a second that they move.
    pub rate: f64,
    /// File systems of the endpoints that are its directories.
    pub storage: Vec<StorageStatus>,
    /// The last test of each endpoint, as far as there was one.
    pub tests: Vec<KeptTest>,
}

/// How much a file system holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StorageStatus {
    /// The endpoint.
    pub endpoint: String,
    /// Its directory.
    pub root: String,
    /// Bytes in all.
    pub bytes_total: Option<u64>,
    /// Bytes that are free for the service's account.
    pub bytes_free: Option<u64>,
    /// Files in all.
    pub files_total: Option<u64>,
    /// Files that can still be made.
    pub files_free: Option<u64>,
    /// Why nothing is known.
    pub failure: Option<String>,
}

impl StorageStatus {
    /// Of an endpoint at this directory. Nothing is known of it.
    pub fn of(endpoint: String, root: String) -> Self {
        let (bytes_total, bytes_free, files_total, files_free) = (None, None, None, None);
        Self { endpoint, root, bytes_total, bytes_free, files_total, files_free, failure: None }
    }
}

/// What a test of an endpoint has found, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeptTest {
    /// The endpoint.
    pub endpoint: String,
    /// When.
    pub time: Moment,
    /// What.
    pub test: EndpointTest,
}
