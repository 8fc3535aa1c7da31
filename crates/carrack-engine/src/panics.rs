//! What becomes of a panic: it ends the session in which it happened, with an error that its peer is told, and nothing
//! else. Whoever would have waited for the thread that panicked hears of it instead.

use std::panic::{AssertUnwindSafe, catch_unwind};

use carrack_core::path::display_bytes;
use carrack_core::report::{ErrorCode, Failure, Side};

use crate::error::failure;

/// Does `work`, which is `what` of this side. What it leaves half done when it panics is to be given up by the caller;
/// locks are taken over from those who panicked, everywhere.
///
/// # Errors
/// When it panics.
pub fn contain<T>(side: Side, what: &str, work: impl FnOnce() -> T) -> Result<T, Failure> {
    // What was half done is looked at by nobody but those who tell how it ended.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = display_bytes(text.unwrap_or("it did not say why").as_bytes()).to_string();
        let message = format!("an error in Carrack, in {what}: {text}");
        failure(ErrorCode::Internal, side, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_message_is_told() {
        assert_eq!(contain(Side::Source, "a test", || 7), Ok(7));
        let number = 7;
        let told = [
            contain(Side::Source, "a test", || -> () { panic!("seven") }),
            contain(Side::Source, "a test", || -> () { panic!("number {number}") }),
            contain(Side::Source, "a test", || -> () { std::panic::panic_any(number) }),
        ];
        for (told, words) in told.into_iter().zip(["a test: seven", "a test: number 7", "it did not say why"]) {
            let why = told.unwrap_err();
            assert_eq!((why.code, why.side), (ErrorCode::Internal, Side::Source));
            assert!(why.message().contains(words), "{}", why.message());
        }
    }
}
