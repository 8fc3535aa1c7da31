//! An endpoint: a named root, on this host, on a node, or behind ssh.

use carrack_core::location::{Location, NodeAddress, SshHost, decode_path, encode_path};
use carrack_core::request::{Encrypt, Verify};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{EndpointHealth, option_schema};
use crate::clock::Moment;

const NO_FINGERPRINT: &str = "fingerprint: 64 hexadecimal digits in lower case";

/// Where an endpoint's root is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum EndpointLocation {
    /// A directory of the service's host, read and written by the worker itself.
    Local {
        /// Absolute; bytes that are no text, and `%` itself, as `%HH`.
        root: String,
    },
    /// A node.
    Node {
        /// A name or an address, without brackets.
        host: String,
        /// Its TCP port.
        port: u16,
        /// SHA-256 of its public key, in hexadecimal; learnt at the first connection where it is not given.
        fingerprint: Option<String>,
        /// Below the node's root; begins with `/`.
        path: String,
    },
    /// A host that ssh of the service's account reaches.
    Ssh {
        /// The login.
        user: Option<String>,
        /// A name or an alias of `ssh_config`.
        host: String,
        /// Absolute, or relative to the login directory.
        path: String,
    },
}

impl EndpointLocation {
    /// The location as documents of endpoints have it, where an endpoint can be there.
    pub fn of(location: &Location) -> Option<Self> {
        let path = encode_path(location.path()?);
        Some(match location {
            Location::Local(bytes) if bytes.starts_with(b"/") => Self::Local { root: path },
            Location::Node { node, .. } => {
                let slash = if path.starts_with('/') { "" } else { "/" };
                Self::Node {
                    host: node.host.clone(),
                    port: node.port,
                    fingerprint: node.pin.map(|pin| HEXLOWER.encode(&pin)),
                    path: format!("{slash}{path}"),
                }
            }
            Location::Ssh { host, .. } => {
                let login = if path == "~" || path.starts_with(['/', '~']) { "" } else { "~/" };
                Self::Ssh { user: host.user.clone(), host: host.host.clone(), path: format!("{login}{path}") }
            }
            _ => return None,
        })
    }

    /// The location that it says.
    ///
    /// # Errors
    /// A sentence that says which part of it is none.
    pub fn location(&self) -> Result<Location, String> {
        let path = |text: &str| match text.contains(char::is_control) {
            true => Err("a control character in a path is written %HH".to_owned()),
            false => decode_path(text.as_bytes()),
        };
        match self {
            Self::Local { root } => Ok(Location::Local(path(root)?)),
            Self::Node { host, port, fingerprint, path: below } => {
                let bytes = |pin: &String| HEXLOWER.decode(pin.as_bytes()).ok()?.try_into().ok();
                let pin = fingerprint.as_ref().map(|pin| bytes(pin).ok_or(NO_FINGERPRINT)).transpose()?;
                let node = NodeAddress { host: host.clone(), port: *port, pin: None };
                // Whatever a host holds that ends it would be another place.
                if NodeAddress::parse(node.to_string().as_bytes())? != node {
                    return Err("that is no host".to_owned());
                }
                Ok(Location::Node { node: NodeAddress { pin, ..node }, path: path(below)? })
            }
            Self::Ssh { user, host, path: below } => {
                let host = SshHost { user: user.clone(), host: host.clone() };
                if SshHost::parse(host.to_string().as_bytes())? != host {
                    return Err("that is no login, or no host".to_owned());
                }
                Ok(Location::Ssh { host, path: path(below)? })
            }
        }
    }

    /// The location as tasks have it; what is wrong with it, where it is none.
    pub fn text(&self) -> String {
        self.location().map_or_else(|why| why, |location| location.document().unwrap_or_default())
    }

    /// The directory, as this document has it.
    pub fn directory(&self) -> &str {
        match self {
            Self::Local { root: path } | Self::Node { path, .. } | Self::Ssh { path, .. } => path,
        }
    }

    /// The host that it is on; none: the service's own.
    pub fn host(&self) -> Option<&str> {
        match self {
            Self::Local { .. } => None,
            Self::Node { host, .. } | Self::Ssh { host, .. } => Some(host),
        }
    }

    /// The directory of the service's own host.
    pub fn local_root(&self) -> Option<&str> {
        match self {
            Self::Local { root } => Some(root),
            Self::Node { .. } | Self::Ssh { .. } => None,
        }
    }

    /// The path below the root of a node, which asks for a token and lets nobody out of what that allows.
    pub fn node_path(&self) -> Option<&str> {
        match self {
            Self::Node { path, .. } => Some(path),
            Self::Local { .. } | Self::Ssh { .. } => None,
        }
    }

    /// Whether it is a directory of the service's host, or a host that the service's own ssh reaches: only an admin can
    /// offer one.
    pub fn is_of_service(&self) -> bool {
        match self {
            Self::Local { .. } | Self::Ssh { .. } => true,
            Self::Node { .. } => false,
        }
    }
}

/// What an endpoint allows. What is left out is not limited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EndpointLimits {
    /// Transfers at once, as source and as destination together.
    pub transfers: Option<u32>,
    /// Data connections of each transfer.
    pub streams: Option<u16>,
    /// Bytes a second of each transfer.
    pub rate: Option<u64>,
    /// Rates by hour of the service's local time; outside all of them `rate` holds.
    pub timetable: Vec<RateWindow>,
    /// Why no transfer begins there at present, in words for whoever waits; attempts that run go on to their end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drained: Option<String>,
}

/// A rate for some hours of each day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RateWindow {
    /// `HH:MM`.
    pub from: String,
    /// `HH:MM`; earlier than `from` where it is the next day's.
    pub until: String,
    /// Bytes a second of each transfer; 0: none begins.
    pub rate: u64,
}

/// How tasks with this endpoint copy where they do not say it themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EndpointDefaults {
    /// How each file is proved before its name appears.
    #[schema(schema_with = option_schema::verify)]
    pub verify: Option<Verify>,
    /// Whether data connections keep secrets.
    #[schema(schema_with = option_schema::encrypt)]
    pub encrypt: Option<Encrypt>,
}

/// A named root. Its node's token is kept apart, sealed, and no document has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Endpoint {
    /// What it is called: letters, digits, `-`, `_` and `.`; unique.
    pub name: String,
    /// Whoever added it.
    pub owner: String,
    /// Where its root is.
    pub location: EndpointLocation,
    /// Nothing there may be changed.
    pub read_only: bool,
    /// Files may be uploaded to it through the service.
    #[serde(default)]
    pub uploads: bool,
    /// Owners, special bits and devices that a task keeps are set there, where its node or the service may. Only an
    /// admin allows it: whoever may write there can make programs that run as others.
    #[serde(default)]
    pub ownership: bool,
    /// What it allows.
    pub limits: EndpointLimits,
    /// What its tasks do where they do not say it.
    pub defaults: EndpointDefaults,
    /// Free text.
    pub description: String,
    /// Users who may use it beside its owner; `*` stands for every user.
    pub users: Vec<String>,
    /// Whether a token is kept for it.
    pub has_token: bool,
    /// When it was added.
    pub added: Moment,
    /// Grows with every change: the entity tag.
    pub version: u64,
    /// How it does. It is no part of what is changed: `version` does not grow with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<EndpointHealth>,
}

impl Endpoint {
    /// Why it is closed, where only an admin could have added it and its owner is none.
    pub fn why_closed(&self) -> String {
        let Self { name, owner, .. } = self;
        format!("@{name} leads to the service's host, or through its ssh, and its owner {owner} is no admin any more")
    }
}
