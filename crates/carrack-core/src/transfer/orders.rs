//! x
#![cfg(test)]
