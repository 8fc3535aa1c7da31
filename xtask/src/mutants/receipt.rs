//! What a receipt promises.

use super::{Mutation, mutation};

const RECEIPT: &str = "-p carrack-receipt";

pub const MUTATIONS: &[Mutation] = &[
    mutation(
        "an altered receipt passes",
        "crates/carrack-receipt/src/read.rs",
        ["    signature.check(&signed.finish())?;\n", "    let _ = signed.finish();\n"],
        RECEIPT,
    ),
    mutation(
        "a receipt that changes while it is read passes",
        "crates/carrack-receipt/src/read.rs",
        [
            "return if is_same { Ok(None) } else { Err(changed()) };",
            "return if is_same { Ok(None) } else { Ok(None) };",
        ],
        RECEIPT,
    ),
    mutation(
        "a signature for something else signs a receipt",
        "crates/carrack-receipt/src/signature.rs",
        ["if namespace != NAMESPACE.as_bytes() {", "if namespace.is_empty() {"],
        RECEIPT,
    ),
    mutation(
        "an item that is gone when the receipt is made is claimed",
        "crates/carrack-receipt/src/write.rs",
        ["item.is_another(\"nothing stood there when the receipt was made\");", ""],
        RECEIPT,
    ),
    mutation(
        "what was said of an item first is signed",
        "crates/carrack-receipt/src/sorted.rs",
        ["            entry = self.take()?.unwrap_or(entry);\n", "            self.take()?;\n"],
        RECEIPT,
    ),
    mutation(
        "content is not compared with a receipt",
        "crates/carrack-core/src/plan/check.rs",
        [
            "content: source.digests.blake3.is_some() && source.digests.blake3 != destination.digests.blake3,",
            "content: false,",
        ],
        RECEIPT,
    ),
];
