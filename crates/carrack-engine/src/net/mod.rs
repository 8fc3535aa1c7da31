//! Sockets, TLS, and the multiplexed control connection: bytes, before anybody knows which session they belong to.

pub mod bind;
pub mod connect;
pub mod deadlines;
pub mod dial_rule;
pub mod mux;
pub mod opening;
pub mod pipe;
mod records;
pub mod route;
pub mod socket;
pub mod tls;
pub mod tls_duplex;
pub mod unproved;
