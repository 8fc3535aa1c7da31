//! Many clients of one server, as far as one host has them: what each does, and what is told of it line by line. The
//! command runs a part in its own process, or at the far side of ssh ([`far`]); `carrack bench load` puts the parts
//! together and judges what came of them.

// The far side says some things and hears others.
#![cfg_attr(not(feature = "terminal"), allow(dead_code))]

pub mod client;
pub mod far;
pub mod order;
pub mod part;
pub mod program;
pub mod told;
