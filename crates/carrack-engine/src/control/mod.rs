//! Control connections: to an agent behind ssh, which may have to be installed first, and to a node, whose key must be
//! known and which is shown its own token.

mod bootstrap;
pub mod far_part;
pub mod known_nodes;
pub mod node_client;
mod program;
#[cfg(test)]
mod push_tests;
pub mod refusals;
pub mod ssh;
pub mod token;
pub mod whereabouts;
