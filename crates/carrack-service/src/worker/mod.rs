//! A worker: a process that carries out one attempt of one task. It gets its order on standard input, holds the task's
//! lock, moves the bytes with the engine, and tells everything by the task's journal.

mod order;

pub use order::{Credentials, EndOrder, Order, PairOrder, Secret};
