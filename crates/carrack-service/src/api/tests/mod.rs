//! The API over real connections: a Unix socket, and the port of a node.

mod acts;
mod bench;
mod bodies;
mod bounds;
mod closed;
mod content;
mod events;
mod figures;
mod files;
mod grants;
mod hosts;
mod listings;
mod logins;
mod matrix;
mod openapi;
mod pages;
mod paths;
mod port;
mod rig;
mod slow;
mod tasks;
mod tokens;
mod uploads;
