//! What a copy tells while it runs, in order. What nobody has read is bounded in bytes: the copy waits for its reader,
//! however long that takes, and nothing else is kept in memory meanwhile.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use carrack_core::limits;
use carrack_core::report::{EndFacts, EndSample, Event, Failure, Outcome};

use crate::stop::Until;
use crate::sync::{lock, wait, wait_timeout};

/// How often whoever waits for the reader looks whether it is to stop.
const GLANCE: Duration = Duration::from_millis(100);

/// Between those who tell, on any thread, and one reader.
pub struct Events {
    state: Mutex<EventQueue>,
    /// Something was taken, or nobody reads any more.
    taken: Condvar,
    /// Something was told, or all has been.
    told: Condvar,
    /// Ends the waiting for the reader.
    until: Until,
}

#[derive(Default)]
struct EventQueue {
    waiting: VecDeque<Event>,
    bytes: usize,
    /// The copy has ended: what is told now goes nowhere.
    ended: bool,
    /// Nobody reads any more: nothing is kept.
    unread: bool,
}

impl Events {
    /// A queue without events.
    pub fn new(until: Until) -> Self {
        Self { state: Mutex::default(), taken: Condvar::new(), told: Condvar::new(), until }
    }

    fn lock(&self) -> MutexGuard<'_, EventQueue> {
        lock(&self.state)
    }

    /// Tells something, and waits while too much is unread. A copy that is to end does not wait: it
    /// tells a little more at most.
    pub fn tell(&self, event: Event) {
        let bytes = weight(&event);
        let mut state = self.lock();
        while state.bytes > 0
            && state.bytes + bytes > limits::EVENT_BYTES
            && !state.unread
            && self.until.check().is_ok()
        {
            state = wait_timeout(&self.taken, state, GLANCE);
        }
        if state.ended || state.unread {
            return;
        }
        state.bytes += bytes;
        state.waiting.push_back(event);
        if state.waiting.len() == 1 {
            self.told.notify_one();
        }
    }

    /// Takes all that has been told, and waits for something; nothing once the copy has ended and all has been taken.
    pub fn take(&self) -> VecDeque<Event> {
        let mut state = self.lock();
        while state.waiting.is_empty() && !state.ended {
            state = wait(&self.told, state);
        }
        state.bytes = 0;
        let taken = std::mem::take(&mut state.waiting);
        drop(state);
        self.taken.notify_all();
        taken
    }

    /// The copy has ended.
    pub fn end(&self) {
        self.lock().ended = true;
        self.told.notify_all();
    }

    /// Nobody reads any more.
    pub fn leave(&self) {
        let mut state = self.lock();
        (state.unread, state.bytes) = (true, 0);
        state.waiting = VecDeque::new();
        drop(state);
        self.taken.notify_all();
    }
}

/// Bytes of the texts of an end.
fn end_text(end: &EndFacts) -> usize {
    end.name.len() + end.program.len() + end.system.len() + end.congestion.len()
}

/// What an event takes in memory, roughly.
fn weight(event: &Event) -> usize {
    let text = |all: &[String]| all.iter().map(|text| size_of::<String>() + text.len()).sum::<usize>();
    let more = match event {
        Event::Resolved { sources, targets, .. } => text(sources) + text(targets),
        Event::Note(text) => text.len(),
        Event::SessionLost { failure, .. } => failure.held_bytes(),
        Event::StreamEnded { failure } => failure.as_ref().map_or(0, Failure::held_bytes),
        Event::Sample(told) => size_of::<EndSample>() + told.point.sample.memory_bytes(),
        Event::Ends(ends) => size_of_val(&**ends) + end_text(&ends.source) + end_text(&ends.destination),
        Event::Changed(change) => change.path.len() + change.leads_to.len(),
        Event::InFlight(list) => size_of_val(&list[..]) + list.iter().map(|item| item.path.len()).sum::<usize>(),
        Event::Item(item) => match &item.outcome {
            Outcome::Failed(failure) => item.path.len() + failure.held_bytes(),
            _ => item.path.len(),
        },
        _ => 0,
    };
    size_of::<Event>() + more
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use super::*;
    use crate::stop::{Stop, StopReason};

    const NOTE_BYTES: usize = limits::EVENT_BYTES / 8;

    fn note(number: usize) -> Event {
        Event::Note(format!("{}{number}", "0".repeat(NOTE_BYTES)))
    }

    fn number(event: Option<Event>) -> usize {
        match event {
            Some(Event::Note(text)) => text.parse().unwrap(),
            other => panic!("no note: {other:?}"),
        }
    }

    /// Tells on and on until all is told, and counts.
    fn teller(events: &Arc<Events>, count: usize) -> (std::thread::JoinHandle<()>, Arc<AtomicUsize>) {
        let (events, told) = (Arc::clone(events), Arc::new(AtomicUsize::new(0)));
        let telling = Arc::clone(&told);
        let thread = std::thread::spawn(move || {
            for number in 0..count {
                events.tell(note(number));
                telling.fetch_add(1, Ordering::Relaxed);
            }
            events.end();
        });
        (thread, told)
    }

    #[test]
    fn events_wait_for_their_reader_in_order_and_within_their_bound() {
        let events = Arc::new(Events::new(Until::default()));
        let (thread, told) = teller(&events, 100);
        let (mut heard, mut most) = (0, 0);
        loop {
            let taken = events.take();
            if taken.is_empty() {
                break;
            }
            most = most.max(taken.iter().map(weight).sum());
            // It may have put as much again into the place of what was taken, and no more.
            assert!(told.load(Ordering::Relaxed) <= heard + taken.len() + 8);
            for event in taken {
                assert_eq!(number(Some(event)), heard);
                heard += 1;
            }
        }
        thread.join().unwrap();
        assert_eq!(heard, 100);
        assert!(most <= limits::EVENT_BYTES, "{most}");
    }

    #[test]
    fn event_that_is_too_large_comes_alone() {
        let events = Arc::new(Events::new(Until::default()));
        let large = "x".repeat(2 * limits::EVENT_BYTES);
        events.tell(Event::Note(large.clone()));
        assert!(matches!(events.take().pop_front(), Some(Event::Note(text)) if text == large));
    }

    #[test]
    fn reader_that_has_left_is_not_waited_for_nor_when_all_is_to_end() {
        let events = Arc::new(Events::new(Until::default()));
        let (thread, _) = teller(&events, 100);
        events.leave();
        thread.join().unwrap();
        assert!(events.take().is_empty());

        let (stop, end) = (Stop::new(), Some(Instant::now()));
        stop.request(StopReason::Cancel);
        for until in [Until::new(stop, None), Until::new(Stop::new(), end)] {
            let (thread, _) = teller(&Arc::new(Events::new(until)), 100);
            thread.join().unwrap();
        }
    }

    #[test]
    fn reader_waits_until_something_is_told_or_all_has_been() {
        let events = Arc::new(Events::new(Until::default()));
        let reading = Arc::clone(&events);
        let reader = std::thread::spawn(move || (number(reading.take().pop_front()), reading.take().len()));
        events.tell(note(7));
        while !events.lock().waiting.is_empty() {
            std::thread::yield_now();
        }
        events.end();
        // Whoever is late goes nowhere.
        events.tell(note(8));
        assert_eq!(reader.join().unwrap(), (7, 0));
    }
}
