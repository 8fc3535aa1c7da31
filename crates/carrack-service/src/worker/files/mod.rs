//! A file worker: a process that serves the files of one endpoint to one caller, until its input ends. The service
//! starts it with `carrack worker --files`, sends it a [`FilesOrder`], and then requests ([`Ask`]), each with a number.
//! Every request runs in a thread of its own, so that a slow one holds up no other, and is answered by frames with its
//! number ([`Tell`]).
//!
//! To add a request: a variant of [`Ask`], a line in `serve::carry_out`, and a function in a file of this folder. It
//! gets a `Reply` to answer with and reaches the endpoint by `End::with_files`, which lends an open
//! conversation and ends it when the request is cancelled.

mod archive;
mod content;
mod end;
pub mod frame;
mod gate;
mod leftovers;
mod listing;
mod message;
mod natural;
mod operations;
mod reply;
mod rows;
mod serve;
pub mod spool;
mod tar;
mod told;
mod totals;
mod upload;
mod view;

pub use message::{Ask, ContentFacts, FilesOrder, FromWorker, LeftAt, Range, Tell, ToWorker, WindowAsk};
pub use serve::{Means, run, serve};
