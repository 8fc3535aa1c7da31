//! Passwords: Argon2id, kept in PHC's form. Both functions take tens of milliseconds and 19 MiB: whoever calls them
//! bounds how many run at once.

use std::io;

use argon2::{Algorithm, Argon2, Params, Version};
use data_encoding::BASE64_NOPAD;

use super::digest::{is_same, random};

const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;
/// Of a kept hash: what a ledger that somebody has written to may cost.
const MEMORY_KIB_MAX: u32 = 256 << 10;
const PASSES_MAX: u32 = 16;

/// A password's hash, with a salt of its own: `$argon2id$v=19$m=…,t=…,p=…$SALT$HASH`.
///
/// # Errors
/// When the system gives no random bytes or no memory.
pub fn hash_password(password: &str) -> io::Result<String> {
    let salt: [u8; SALT_BYTES] = random()?;
    let params = Params::default();
    let hash = derive(password, &salt, params.clone())?;
    let (memory, passes, lanes) = (params.m_cost(), params.t_cost(), params.p_cost());
    let (salt, hash) = (BASE64_NOPAD.encode(&salt), BASE64_NOPAD.encode(&hash));
    Ok(format!("$argon2id$v=19$m={memory},t={passes},p={lanes}${salt}${hash}"))
}

/// Whether this is the password. Without a kept hash it is not, after the same time: nobody learns which users there
/// are.
///
/// # Errors
/// When the kept hash is none that [`hash_password`] makes, or there is no memory.
pub fn verify_password(password: &str, kept: Option<&str>) -> io::Result<bool> {
    let Some(kept) = kept else {
        derive(password, &[0; SALT_BYTES], Params::default())?;
        return Ok(false);
    };
    let (params, salt, hash) = parse(kept).ok_or_else(|| io::Error::other("a password's hash cannot be read"))?;
    Ok(is_same(&derive(password, &salt, params)?, &hash))
}

fn derive(password: &str, salt: &[u8], params: Params) -> io::Result<[u8; HASH_BYTES]> {
    let mut hash = [0; HASH_BYTES];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(password.as_bytes(), salt, &mut hash)
        .map_err(|error| io::Error::other(error.to_string()))?;
    Ok(hash)
}

fn parse(kept: &str) -> Option<(Params, Vec<u8>, Vec<u8>)> {
    let rest = kept.strip_prefix("$argon2id$v=19$m=")?;
    let mut parts = rest.split('$');
    let (costs, salt, hash) = (parts.next()?, parts.next()?, parts.next()?);
    let (memory, rest) = costs.split_once(",t=")?;
    let (passes, lanes) = rest.split_once(",p=")?;
    let (memory, passes, lanes): (u32, u32, u32) = (memory.parse().ok()?, passes.parse().ok()?, lanes.parse().ok()?);
    if parts.next().is_some() || memory > MEMORY_KIB_MAX || passes > PASSES_MAX || lanes > 4 {
        return None;
    }
    let params = Params::new(memory, passes, lanes, Some(HASH_BYTES)).ok()?;
    let hash = BASE64_NOPAD.decode(hash.as_bytes()).ok().filter(|hash| hash.len() == HASH_BYTES)?;
    Some((params, BASE64_NOPAD.decode(salt.as_bytes()).ok()?, hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_known_by_its_hash_alone() {
        let (one, other) = (hash_password("correct horse").unwrap(), hash_password("correct horse").unwrap());
        assert!(one.starts_with("$argon2id$v=19$m=19456,t=2,p=1$") && one != other, "{one}");
        assert!(verify_password("correct horse", Some(&one)).unwrap());
        assert!(!verify_password("correct horsf", Some(&one)).unwrap());
        assert!(!verify_password("", None).unwrap());
    }

    #[test]
    fn password_hash_that_is_none_is_an_error() {
        let good = hash_password("x").unwrap();
        for bad in [
            String::new(),
            good.replace("argon2id", "argon2i"),
            good.replace("m=19456", "m=4000000"),
            good.replace("t=2", "t=0"),
            good[..good.len() - 2].to_owned(),
            format!("{good}$x"),
        ] {
            assert!(verify_password("x", Some(&bad)).is_err(), "{bad}");
        }
    }
}
