//! Tests of the program as users meet it: real processes, real files, real sockets, real `ssh`.
//!
//! No fixed ports, no waiting by sleeping, no timed assertion. What a test starts it ends, by handle.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

mod attributes;
mod bench;
mod bench_faults;
mod bind;
mod changed;
mod check;
mod cli;
mod compress;
mod crash;
mod deaf;
mod delta;
mod destination;
mod direct;
mod disk;
mod doctor;
mod du;
mod durability;
#[cfg(feature = "service")]
mod endpoint;
mod extremes;
mod failing;
mod fake_super;
mod fan;
mod fast;
mod faults;
mod fidelity;
mod firewall;
mod further_attributes;
mod golden;
mod growing;
mod growth;
mod hard_links;
mod held_back;
mod hints;
mod identity;
mod in_flight;
mod in_place;
mod kill;
mod ladder;
mod left;
mod limits;
mod link;
mod load;
mod metadata;
#[cfg(feature = "service")]
mod mounts;
mod names;
mod net;
mod net_iperf3;
mod net_path;
mod network;
mod node;
#[cfg(feature = "service")]
mod old_names;
mod onto_itself;
mod output;
mod ownership;
mod peers;
mod pscheduler;
mod push;
#[cfg(feature = "terminal")]
mod receipts;
mod reconnect;
mod reflink;
mod refused;
mod report;
#[cfg(feature = "service")]
mod service;
mod shapes;
mod smoke;
mod ssh;
mod storage;
mod support;
mod sync;
mod tail;
mod threads;
mod timeline;
mod top;
mod torn;
mod tuning;
mod verbs;
#[cfg(feature = "service")]
mod worker;
mod xxh128;
