//! Why a call gave no answer.

use std::fmt;
use std::io;

use hyper::StatusCode;

use crate::model::{Problem, ProblemCode};

/// Why a call gave no answer, or not the one that was wanted.
#[derive(Clone, Debug)]
pub enum ClientError {
    /// Nobody answers there.
    Unreachable {
        /// Where.
        target: String,
        /// Why, in words.
        why: String,
        /// What the system said.
        kind: io::ErrorKind,
    },
    /// The service shows a key that nobody has vouched for: compare it with what the service printed, then pin it.
    UnknownKey {
        /// Where, as `HOST:PORT`.
        target: String,
        /// SHA-256 of the key that it shows.
        shown: [u8; 32],
    },
    /// The service shows another key than the pinned one.
    ChangedKey {
        /// Where, as `HOST:PORT`.
        target: String,
        /// SHA-256 of the key that it shows.
        shown: [u8; 32],
    },
    /// The service says no.
    Problem(Box<Problem>),
    /// The connection ended, or what came is not what the API says.
    Broken(String),
}

impl ClientError {
    /// The code of the problem, where the service has sent one.
    pub fn code(&self) -> Option<ProblemCode> {
        if let Self::Problem(problem) = self { Some(problem.code) } else { None }
    }

    /// Whether the same call may work a little later: nobody answered, or the connection ended.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Broken(_) => true,
            Self::Problem(problem) => problem.status == 503 || problem.status == 429,
            Self::UnknownKey { .. } | Self::ChangedKey { .. } => false,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { target, why, .. } => write!(f, "no service answers at {target}: {why}"),
            Self::UnknownKey { target, shown } => {
                write!(f, "nothing is known of {target}, which shows the key {}", carrack_core::pin::format_pin(shown))
            }
            Self::ChangedKey { target, shown } => {
                let shown = carrack_core::pin::format_pin(shown);
                write!(f, "{target} shows another key than the pinned one: {shown}")
            }
            Self::Problem(problem) => problem.fmt(f),
            Self::Broken(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ClientError {}

/// What a call gives.
pub type Called<T> = Result<T, ClientError>;

/// What the service says where it says no.
pub(super) fn problem(status: StatusCode, body: &[u8]) -> ClientError {
    match serde_json::from_slice::<Problem>(body) {
        Ok(problem) => ClientError::Problem(Box::new(problem)),
        Err(_) => ClientError::Broken(format!("the answer is {status}, and not from a service of Carrack")),
    }
}
