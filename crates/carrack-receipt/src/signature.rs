//! SSH signatures over files, as `ssh-keygen -Y sign` makes and `ssh-keygen -Y verify` takes them (PROTOCOL.sshsig of
//! OpenSSH).

use aws_lc_rs::digest::{Context, Digest, SHA512};
use data_encoding::BASE64;

use crate::error::ReceiptError;
use crate::key::{ALGORITHM, PublicKey, ReceiptKey};
use crate::ssh::{SshReader, put_string};

/// What receipts are signed for: a signature for anything else is none.
pub const NAMESPACE: &str = "carrack-receipt";

pub(crate) const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
pub(crate) const END: &str = "-----END SSH SIGNATURE-----";
const MAGIC: &[u8] = b"SSHSIG";
const FORM: u32 = 1;
const HASH: &str = "sha512";
/// Letters of base64 in a line, as OpenSSH has it.
const LETTERS: usize = 70;

/// What a signature is over, as it comes.
pub(crate) struct Signed(Context);

impl Signed {
    pub(crate) fn new() -> Self {
        Self(Context::new(&SHA512))
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> Digest {
        self.0.finish()
    }
}

/// A signature, with the key that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Whose it says it is; a receipt that could be read has been checked against it.
    pub key: PublicKey,
    bytes: Vec<u8>,
}

impl Signature {
    /// Signs bytes of which this is the digest.
    pub(crate) fn make(key: &ReceiptKey, digest: &Digest) -> Self {
        Self { key: key.public(), bytes: key.sign(&message(digest)) }
    }

    /// Whether the key has signed bytes of which this is the digest.
    ///
    /// # Errors
    /// When it has not.
    pub(crate) fn check(&self, digest: &Digest) -> Result<(), ReceiptError> {
        match self.key.verifies(&message(digest), &self.bytes) {
            true => Ok(()),
            false => Err(ReceiptError::Altered(
                "its signature is not over what it says: it was altered after it was signed".into(),
            )),
        }
    }

    /// As OpenSSH writes it, with its line ends.
    pub(crate) fn armored(&self) -> String {
        let mut blob = MAGIC.to_vec();
        blob.extend_from_slice(&FORM.to_be_bytes());
        put_string(&mut blob, &self.key.blob());
        put_string(&mut blob, NAMESPACE.as_bytes());
        put_string(&mut blob, b"");
        put_string(&mut blob, HASH.as_bytes());
        let mut signature = Vec::new();
        put_string(&mut signature, ALGORITHM.as_bytes());
        put_string(&mut signature, &self.bytes);
        put_string(&mut blob, &signature);
        let mut text = format!("{BEGIN}\n");
        for line in BASE64.encode(&blob).as_bytes().chunks(LETTERS) {
            text.extend(line.iter().map(|&letter| char::from(letter)));
            text.push('\n');
        }
        text + END + "\n"
    }

    /// From the lines between [`BEGIN`] and [`END`], as one.
    pub(crate) fn parse(inside: &str) -> Result<Self, ReceiptError> {
        let wrong = |why: &str| ReceiptError::Signature(format!("the signature cannot be used: {why}"));
        let blob = BASE64.decode(inside.as_bytes()).map_err(|_| wrong("it is not in base64"))?;
        let mut reader = SshReader(&blob);
        let parts = (|| {
            let is_one = reader.take(MAGIC.len())? == MAGIC && reader.number()? == FORM;
            let key = reader.string()?;
            let (namespace, _, hash) = (reader.string()?, reader.string()?, reader.string()?);
            let signature = reader.string()?;
            (is_one && reader.0.is_empty()).then_some((key, namespace, hash, signature))
        })();
        let (key, namespace, hash, signature) =
            parts.ok_or_else(|| wrong("it has not the form of an SSH signature"))?;
        if namespace != NAMESPACE.as_bytes() {
            return Err(wrong("it was made for something else than a receipt"));
        }
        let mut reader = SshReader(signature);
        let bytes = (|| {
            let algorithm = reader.string()?;
            let bytes = reader.string()?;
            (algorithm == ALGORITHM.as_bytes() && reader.0.is_empty() && hash == HASH.as_bytes()).then_some(bytes)
        })();
        let known = PublicKey::from_blob(key).zip(bytes);
        let (key, bytes) = known.ok_or_else(|| wrong("it is of another kind than Ed25519 over SHA-512"))?;
        Ok(Self { key, bytes: bytes.to_vec() })
    }
}

/// What is signed in the place of a file.
fn message(digest: &Digest) -> Vec<u8> {
    let mut message = MAGIC.to_vec();
    for part in [NAMESPACE.as_bytes(), b"", HASH.as_bytes(), digest.as_ref()] {
        put_string(&mut message, part);
    }
    message
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn digest(bytes: &[u8]) -> Digest {
        let mut signed = Signed::new();
        signed.update(bytes);
        signed.finish()
    }

    fn inside(armored: &str) -> String {
        armored.lines().filter(|line| !line.starts_with('-')).collect()
    }

    #[test]
    fn signature_is_good_for_what_was_signed_alone() {
        let (key, _) = ReceiptKey::generate().expect("a key");
        let made = Signature::make(&key, &digest(b"what was done"));
        let read = Signature::parse(&inside(&made.armored())).expect("read");
        assert_eq!(read, made);
        read.check(&digest(b"what was done")).expect("good");
        assert!(read.check(&digest(b"what was Done")).is_err());
        let (other, _) = ReceiptKey::generate().expect("a key");
        assert!(Signature { key: other.public(), ..made }.check(&digest(b"what was done")).is_err());
    }

    #[test]
    fn signature_for_something_else_is_refused() {
        let (key, _) = ReceiptKey::generate().expect("a key");
        let armored = Signature::make(&key, &digest(b"x")).armored();
        let blob = BASE64.decode(inside(&armored).as_bytes()).expect("base64");
        let swap = |from: &[u8], to: &[u8]| {
            assert_eq!(from.len(), to.len());
            let at = blob.windows(from.len()).position(|window| window == from).expect("is there");
            let mut changed = blob.clone();
            changed[at..at + to.len()].copy_from_slice(to);
            Signature::parse(&BASE64.encode(&changed)).expect_err("refused").to_string()
        };
        assert!(swap(b"carrack-receipt", b"carrack-reciept").contains("made for something else"));
        assert!(swap(b"sha512", b"sha256").contains("another kind"));
        assert!(swap(b"SSHSIG", b"SSHSIX").contains("form"));
        assert!(Signature::parse(&BASE64.encode(&blob[..blob.len() - 1])).is_err());
        assert!(Signature::parse(&BASE64.encode(&[&blob[..], b"\0"].concat())).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Signature::parse(&BASE64.encode(&bytes));
            let framed = [MAGIC, &FORM.to_be_bytes(), &bytes].concat();
            let _ = Signature::parse(&BASE64.encode(&framed));
        }
    }
}
