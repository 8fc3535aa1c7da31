//! Lists of digests, as `--digest` takes them.

use carrack_core::request::{Digests, MainDigest};

/// Parses `none`, or digests separated by commas.
pub fn parse_digests(text: &str) -> Result<Digests, String> {
    if text == "none" {
        return Ok(Digests::NONE);
    }
    let mut digests = Digests::NONE;
    for name in text.split(',') {
        let main = match name {
            "blake3" => MainDigest::Blake3,
            "xxh128" => MainDigest::Xxh128,
            "adler32" => {
                digests.adler32 = true;
                continue;
            }
            "crc32c" => {
                digests.crc32c = true;
                continue;
            }
            _ => {
                return Err(format!("{name:?} is not a digest: use blake3, xxh128, adler32, crc32c, or none alone"));
            }
        };
        if digests.main.replace(main).is_some_and(|other| other != main) {
            return Err("blake3 and xxh128 are not computed together: name one of them".to_owned());
        }
    }
    Ok(digests)
}
