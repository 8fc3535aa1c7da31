//! Authentication of metadata on streams without TLS: keyed BLAKE3 over a counter and the bytes, so that nothing can be
//! injected, altered, repeated or reordered.

use carrack_core::wire::frame::MAC_BYTES;

/// Makes, or checks, the MACs of one stream in one direction.
pub struct Mac {
    key: [u8; 32],
    count: u64,
}

impl Mac {
    /// With a key for this stream and connection alone.
    pub fn new(key: [u8; 32]) -> Self {
        Self { key, count: 0 }
    }

    /// The MAC of the next piece of metadata.
    pub fn next(&mut self, pieces: &[&[u8]]) -> [u8; MAC_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&self.count.to_be_bytes());
        for piece in pieces {
            hasher.update(piece);
        }
        self.count += 1;
        let mut mac = [0; MAC_BYTES];
        mac.copy_from_slice(&hasher.finalize().as_bytes()[..MAC_BYTES]);
        mac
    }

    /// Checks the next one, in constant time.
    #[must_use]
    pub fn check(&mut self, pieces: &[&[u8]], mac: &[u8; MAC_BYTES]) -> bool {
        let right = self.next(pieces);
        right.iter().zip(mac).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replay_or_a_swap_is_noticed() {
        let (mut ours, mut theirs) = (Mac::new([1; 32]), Mac::new([1; 32]));
        let first = ours.next(&[b"ab", b"c"]);
        let second = ours.next(&[b"abc"]);
        assert_ne!(first, second);
        assert!(theirs.check(&[b"abc"], &first));
        assert!(!theirs.check(&[b"abc"], &first));
        assert!(!Mac::new([2; 32]).check(&[b"abc"], &first));
    }
}
