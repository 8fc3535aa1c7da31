//! A peer that means harm, in both directions, at the level of the wire.
//!
//! [`names`], [`lengths`], [`order`], [`attempts`], [`command`] and [`floods`] are a hostile command and sender that
//! speak to a real agent, set up as a node sets it up; [`server`] is a hostile node that a real `copy` pulls from;
//! [`tamper`] stands between two honest agents and changes what passes; [`impostor`] shows a key that is not its own;
//! [`doors`] are other protocols on a node's port; in [`confined`] a copy asks its own end for what is outside;
//! [`attributes`] sends attributes of files that nobody knows, or that are none; [`refusing`] are nodes that do not
//! serve at first; [`greeting`] are peers of other versions; in [`grants`] a client shows a grant and asks for more;
//! [`measuring`] measures the path to a node; in [`reading`] files are read over the control connection; [`parked`]
//! cuts streams off that wait to be needed again; [`pieces`] sends what does not unpack; in [`short`] nobody is
//! hostile. After each: nothing outside the root was touched, no thread of the product panicked, the peer was told what
//! it did, and the next one is served.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // No product.
#![allow(clippy::unwrap_used, missing_docs)]

mod attempts;
mod attributes;
mod command;
mod comparing;
mod confined;
mod doors;
mod examining;
mod fake_node;
mod floods;
mod grants;
mod greeting;
mod impostor;
mod lengths;
mod measuring;
mod names;
mod order;
mod parked;
mod pieces;
mod reading;
mod refusing;
mod sandbox;
mod server;
mod session;
mod short;
mod stopping;
mod tamper;
mod unread;
mod watch;
mod wire;
