//! Measurements of the path to other hosts ([`net`], [`ladder`]) and of a server with many clients ([`load`]), made by
//! ordinary copies, and of other programs beside them ([`peers`]); and the results of all measurements: kept in files,
//! shown to people, written for other programs.
//! What one host does by itself `carrack_measure` measures.

pub mod bonnie;
pub mod csv;
pub mod diff;
pub mod document;
pub mod each_second;
pub mod fio;
#[cfg(test)]
mod hostile_tests;
pub mod html;
pub mod iperf3;
pub mod kept;
pub mod ladder;
pub mod load;
pub mod moved;
pub mod net;
pub mod numbers;
mod page_tables;
pub mod peers;
pub mod table;
