//! Stores for tests, and tests of stores: [`memory`], a store that can lose power; [`fault`] and [`rate`], hooks for a
//! store over another one ([`carrack_engine::stores::over`]); [`conformance`], the suite that every store passes.

pub mod conformance;
pub mod fault;
pub mod memory;
pub mod rate;
