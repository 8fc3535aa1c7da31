//! The file of `--timeline`, as somebody may have altered it. Its reader is a part of the program, which is no library:
//! the two files that it consists of are compiled here.

#![no_main]

/// As the program calls them.
#[path = "../../crates/carrack/src/output"]
#[allow(dead_code)]
mod output {
    pub mod sample;
    pub mod timeline {
        pub mod read;
    }
}

// Whatever it has in it, reading ends with an answer.
libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(output::timeline::read::read(data)));
