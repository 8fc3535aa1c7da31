//! Whether what a data stream sends is compressed: where that makes it quicker, measured while it runs.
//!
//! A stream's thread reads, digests, compresses and sends in turn. Compressing gains time where the thread would else
//! wait for the connection for longer than it takes to compress. Both ways are tried, over some bytes at a time, and
//! their rates compared; the one that is not in use is tried again more and more rarely. Where the thread waits for
//! more than half of its time although it compresses, the path is far slower than the processor: nothing else is tried,
//! and it compresses harder. What does not shrink is left alone for longer and longer.

use std::time::Duration;

use crate::words::words;

words! {
    /// Whether what a copy sends can be compressed, where that was asked for.
    pub enum Compressible {
        Yes "yes" "it was, where that was quicker"
        Local "local" "nothing travels within one host"
        OldSource "old-source" "the source's side runs a carrack that cannot compress"
        OldDestination "old-destination" "the destination's side runs a carrack that cannot unpack"
    }
}

/// A piece that has been sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct SentPiece {
    /// Bytes of it, as they were read.
    pub plain: u64,
    /// Bytes that travelled.
    pub travelled: u64,
    /// How long compressing it took, whether or not it shrank; `None` where that was not tried.
    pub compressing: Option<Duration>,
    /// How long the connection, or a rate limit, was waited for.
    pub waited: Duration,
    /// How long compressing, encrypting and sending it took, with all waiting: reading and digesting it takes as long
    /// whether or not it is compressed.
    pub elapsed: Duration,
}

/// How hard to compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// The processor has other things to do.
    Quick,
    /// The thread waits for most of its time anyway.
    Thorough,
}

/// Decides for one stream.
#[derive(Clone, Debug)]
pub struct Packing {
    packs: bool,
    effort: Effort,
    window: SentSpan,
    /// The newest rate of each way, as seconds a byte.
    packed: Option<f64>,
    plain: Option<f64>,
    /// What compressing took lately, in seconds a byte.
    cost: f64,
    /// Windows before the other way is tried again, and how many they were last time.
    rest: u32,
    patience: u32,
    shrinking: Shrinking,
}

/// What has been sent since the last decision.
#[derive(Clone, Copy, Debug, Default)]
struct SentSpan {
    plain: u64,
    travelled: u64,
    tried: u64,
    compressing: Duration,
    waited: Duration,
    elapsed: Duration,
}

/// Of one content, what is left alone because what came before it did not shrink.
#[derive(Clone, Copy, Debug, Default)]
struct Shrinking {
    /// Pieces that are left alone from now on,
    left: u32,
    /// and how many there were last time.
    skipped: u32,
}

impl Packing {
    /// Less is not worth a header of its own, in bytes.
    pub const LEAST_BYTES: usize = 512;
    /// A decision takes so many bytes that travelled: more than what a socket holds back unsent.
    const WINDOW_BYTES: u64 = 2 << 20;
    /// Or so much time.
    const WINDOW_TIME: Duration = Duration::from_millis(200);
    /// One way is quicker than the other if it takes less than this part of its time.
    const QUICKER: f64 = 0.95;
    /// A thread that waits for more than this part of its time has time to compress.
    const WAITS: f64 = 0.5;
    /// The most windows between two trials of the other way.
    const PATIENCE_MAX: u32 = 64;
    /// The most pieces that are left alone between two trials.
    const SKIPPED_MAX: u32 = 64;
    /// Of so many bytes one must be saved: less is not worth the work of the other side.
    const SAVES_ONE_OF: u64 = 20;

    /// Compresses at first, and finds out.
    pub fn new() -> Self {
        Self {
            packs: true,
            effort: Effort::Quick,
            window: SentSpan::default(),
            packed: None,
            plain: None,
            cost: 0.0,
            rest: 0,
            patience: 1,
            shrinking: Shrinking::default(),
        }
    }

    /// Whether a piece of so many bytes has shrunk enough to travel compressed.
    pub fn has_shrunk(plain: usize, packed: usize) -> bool {
        packed as u64 + (plain as u64).div_ceil(Self::SAVES_ONE_OF) <= plain as u64
    }

    /// Whether it compresses what shrinks.
    pub fn packs(&self) -> bool {
        self.packs
    }

    /// How hard.
    pub fn effort(&self) -> Effort {
        self.effort
    }

    /// Another content begins: whether it shrinks is not known.
    pub fn begin_content(&mut self) {
        self.shrinking = Shrinking::default();
    }

    /// Whether the next piece is tried.
    pub fn tries(&mut self, bytes: usize) -> bool {
        if !self.packs || bytes < Self::LEAST_BYTES {
            return false;
        }
        self.shrinking.left == 0 || {
            self.shrinking.left -= 1;
            false
        }
    }

    /// Takes what became of a piece.
    pub fn handle_sent(&mut self, piece: &SentPiece) {
        if piece.compressing.is_some() {
            self.shrinking = if piece.travelled < piece.plain {
                Shrinking::default()
            } else {
                let skipped = (self.shrinking.skipped * 2).clamp(1, Self::SKIPPED_MAX);
                Shrinking { left: skipped, skipped }
            };
        }
        self.window.add(piece);
        if self.window.travelled >= Self::WINDOW_BYTES || self.window.elapsed >= Self::WINDOW_TIME {
            let window = std::mem::take(&mut self.window);
            self.decide(&window);
        }
    }

    fn decide(&mut self, window: &SentSpan) {
        let bytes = window.plain.max(1) as f64;
        let took = window.elapsed.as_secs_f64() / bytes;
        let waited = window.waited.as_secs_f64() / bytes;
        if window.tried > 0 {
            self.cost = window.compressing.as_secs_f64() / window.tried as f64;
        }
        self.rest = self.rest.saturating_sub(1);
        if self.packs {
            self.packed = Some(took);
            let waits = waited > took * Self::WAITS;
            self.effort = if waits { Effort::Thorough } else { Effort::Quick };
            let is_quicker = self.plain.is_some_and(|plain| took < plain * Self::QUICKER);
            if !waits && (!is_quicker || self.rest == 0) {
                self.take(false);
            }
            return;
        }
        self.plain = Some(took);
        let is_quicker = self.packed.is_some_and(|packed| packed < took * Self::QUICKER);
        // Without waiting there is nothing to gain, whatever it was once.
        if waited > self.cost && (is_quicker || self.rest == 0) {
            self.take(true);
        }
    }

    /// Goes the other way. Each time it takes longer until the way that is not the quicker one is tried again.
    fn take(&mut self, packs: bool) {
        self.packs = packs;
        self.effort = Effort::Quick;
        self.patience = (self.patience * 2).min(Self::PATIENCE_MAX);
        self.rest = self.patience;
    }
}

impl Default for Packing {
    fn default() -> Self {
        Self::new()
    }
}

impl SentSpan {
    fn add(&mut self, piece: &SentPiece) {
        self.plain += piece.plain;
        self.travelled += piece.travelled;
        if let Some(time) = piece.compressing {
            self.tried += piece.plain;
            self.compressing += time;
        }
        self.waited += piece.waited;
        self.elapsed += piece.elapsed;
    }
}

#[cfg(test)]
#[path = "packing_tests.rs"]
mod tests;
