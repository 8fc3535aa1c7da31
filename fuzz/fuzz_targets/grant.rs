//! See `bodies::grant`.

#![no_main]

#[path = "../src/bodies.rs"]
#[allow(dead_code)]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::grant(data));
