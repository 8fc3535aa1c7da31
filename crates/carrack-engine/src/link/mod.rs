//! Connections: ssh sessions, TLS, data connections and what ties them to a session, the multiplexed control connection.

mod bootstrap;
pub mod dial;
pub mod dial_rule;
pub mod hello;
pub mod known_nodes;
pub mod listen;
pub mod mux;
pub mod node_client;
mod records;
pub mod refusals;
pub mod ssh;
pub mod tls;
pub mod tls_duplex;
pub mod token;
pub mod unproved;
