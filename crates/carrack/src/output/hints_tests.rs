//! What is shown behind a failure comes from its code and its reason, whatever its text says.

use std::fmt::Write;

use carrack_core::report::{At, ErrorCode, Failure, Reason, Side};

use super::hints::{of, of_code, of_reason};
use super::human;
#[cfg(feature = "terminal")]
use crate::error::CommandError;
use crate::golden::compare;

/// Every code with every reason, and with none.
fn situations() -> Vec<Failure> {
    let reasons: Vec<Option<Reason>> = Reason::ALL.iter().copied().map(Some).chain([None]).collect();
    let pairs = ErrorCode::ALL.iter().flat_map(|code| reasons.iter().map(move |reason| (*code, *reason)));
    let made = pairs.map(|(code, reason)| {
        let failure = Failure::new(code, Side::Source, code.meaning()).during("write").at_path(&b"a"[..]);
        Failure { reason, ..failure }
    });
    made.collect()
}

/// The same without a word of it.
fn blanked(failure: &Failure) -> Failure {
    let source = failure.source.as_deref().map(|source| Box::new(blanked(source)));
    Failure { reason: failure.reason, source, ..Failure::new(failure.code, failure.side, "") }
}

/// What the terminal shows behind the text of a failure.
fn shown(failure: &Failure) -> String {
    let line = human::failure(failure);
    let text = format!("{}: {}", failure.side, failure.message());
    line.strip_prefix(&text).expect("its side and text are shown first").to_owned()
}

#[test]
fn hints_come_from_code_and_reason_not_from_the_text() {
    let mut hints = 0;
    for failure in situations() {
        let wrapped = Failure::new(failure.code, Side::Link, "given up").caused_by(failure.clone());
        for failure in [failure, wrapped] {
            assert_eq!(shown(&failure), shown(&blanked(&failure)), "{failure:?}");
            assert_eq!(of(&failure), of(&blanked(&failure)));
            hints += usize::from(of(&failure).is_some());
        }
    }
    assert!(hints > ErrorCode::ALL.len() * Reason::ALL.len());
}

#[test]
fn hint_stands_behind_all_that_is_known() {
    let at = At { end: Some("h:d".into()), path: Some(b"f".to_vec()), offset: Some(7) };
    let grew = Failure::new(ErrorCode::SourceChanged, Side::Source, "grew").during("read");
    let grew = Failure { at: Some(Box::new(at)), ..grew };
    assert_eq!(human::failure(&grew), "source: h:d: f: read at 7: grew; run the same command again");
    let wrapped = Failure::new(ErrorCode::SourceChanged, Side::Link, "given up").caused_by(grew);
    assert!(human::failure(&wrapped).ends_with("given up: h:d: f: read at 7: grew; run the same command again"));
}

/// A measurement that was stopped begins anew; what else ends it is told as of any other command.
#[cfg(feature = "terminal")]
#[test]
fn hint_of_a_stopped_measurement_promises_no_copy() {
    let ended = |code| CommandError::from(Failure::new(code, Side::Command, "stopped"));
    for code in [ErrorCode::Interrupted, ErrorCode::Terminated] {
        let told = ended(code).of_measurement().to_string();
        assert_eq!(told, "stopped; run the same command again to measure it anew");
        assert_eq!(ended(code).to_string(), "stopped; run the same command again to copy what is missing");
    }
    let busy = ended(ErrorCode::Busy);
    assert_eq!(busy.clone().of_measurement().to_string(), busy.to_string());
}

#[test]
fn golden_hints() {
    let mut table = String::new();
    for code in ErrorCode::ALL {
        of_code(*code).iter().for_each(|hint| writeln!(table, "code {}: {hint}", code.name()).expect("text"));
    }
    for reason in Reason::ALL {
        let hint = of_reason(*reason).unwrap_or("nothing");
        writeln!(table, "reason {} {}: {hint}", reason.number(), reason.name()).expect("text");
    }
    compare("hints.txt", &table);
}
