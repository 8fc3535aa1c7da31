//! What the API says where it does not do what it was asked: a problem document as in RFC 9457.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::word_enum;

word_enum! {
    /// What kind of problem it is. Words, once shipped, keep their meaning.
    pub enum ProblemCode {
        Malformed "malformed" "the request is not what the route takes"
        Unauthenticated "unauthenticated" "nobody is known by what the request shows"
        WrongLogin "wrong-login" "name and password do not fit"
        Forbidden "forbidden" "the caller may not do this"
        CsrfMissing "csrf-missing" "a request with a cookie lacks its second proof"
        NotFound "not-found" "it does not exist, or belongs to somebody else"
        WrongHost "wrong-host" "the request names a host that is none of the service's"
        MethodNotAllowed "method-not-allowed" "the route does not take this method"
        Conflict "conflict" "the thing is in a state that does not allow this"
        NameTaken "name-taken" "the name belongs to something else"
        SubmissionDiffers "submission-differs" "the submission's id came with another request before"
        VersionDiffers "version-differs" "the thing has changed since the caller read it"
        TooLarge "too-large" "the request is larger than the service takes"
        TooSlow "too-slow" "the request took too long to arrive"
        TooMany "too-many" "too many attempts or connections; later is better"
        StorageFull "storage-full" "the service cannot keep anything new at present"
        LedgerHeld "ledger-held" "another program holds the service's ledger at present; later is better"
        Stopping "stopping" "the service ends"
        Unreachable "unreachable" "an endpoint cannot be reached"
        Exists "exists" "something has the name already"
        DigestMismatch "digest-mismatch" "the bytes are not those of the digest that was given before"
        Denied "denied" "the file system there does not allow it"
        FilesFailed "files-failed" "something could not be done with files: the detail says why"
        WorkerLost "worker-lost" "the process that serves the files has ended; another try starts a new one"
        Internal "internal" "the service has a fault; its log says more"
    }
}

/// A problem document: `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `about:blank`: the code says what kind it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status in words.
    pub title: String,
    /// The status of HTTP.
    pub status: u16,
    /// What is wrong with this request, in words.
    pub detail: String,
    /// What kind of problem it is, for programs.
    pub code: ProblemCode,
    /// What to try.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Problem {}
