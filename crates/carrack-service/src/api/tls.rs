//! The certificate of the API's TLS: files of an operator, loaded again when they change, or one that the service signs
//! itself and keeps in its state directory. Clients pin its public key.

use carrack_engine::sync::unpoisoned;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use rustls::crypto::aws_lc_rs as provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, ServerConfig};

use crate::identity::digest::sha256;

/// What clients of the API name in TLS.
const ALPN: &[u8] = b"http/1.1";

/// Where a certificate and its key are, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, and those that lead to its authority behind it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Why there is no certificate.
#[derive(Debug)]
pub enum CertificateError {
    /// A file cannot be read or made.
    File(PathBuf, String),
    /// The key is not the certificate's.
    Differ(CertificateFiles),
    /// rustls or rcgen refuse it.
    Unusable(String),
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, why) => write!(f, "{}: {why}", path.display()),
            Self::Differ(files) => {
                let (certificate, key) = (files.certificate.display(), files.key.display());
                write!(f, "{key} is not the key of the certificate {certificate}")
            }
            Self::Unusable(why) => write!(f, "the certificate cannot be used: {why}"),
        }
    }
}

impl std::error::Error for CertificateError {}

/// When files were written last: another stamp, other files.
type Stamp = [(u64, i64, i64); 2];

struct Loaded {
    key: Arc<CertifiedKey>,
    fingerprint: [u8; 32],
    stamp: Stamp,
}

/// The certificate in use.
pub struct Certificate {
    files: CertificateFiles,
    loaded: RwLock<Loaded>,
}

impl Certificate {
    /// The one in these files.
    ///
    /// # Errors
    /// Every [`CertificateError`].
    pub fn load(files: CertificateFiles) -> Result<Arc<Self>, CertificateError> {
        let loaded = RwLock::new(load(&files)?);
        Ok(Arc::new(Self { files, loaded }))
    }

    /// The service's own one, in `tls.crt` and `tls.key` of this directory; made there at the first time, for these
    /// names and addresses.
    ///
    /// # Errors
    /// Every [`CertificateError`].
    pub fn own(directory: &Path, names: &[String]) -> Result<Arc<Self>, CertificateError> {
        let files = CertificateFiles { certificate: directory.join("tls.crt"), key: directory.join("tls.key") };
        if !files.certificate.exists() || !files.key.exists() {
            make(&files, names)?;
        }
        Self::load(files)
    }

    /// SHA-256 of its public key: what clients pin.
    pub fn fingerprint(&self) -> [u8; 32] {
        unpoisoned(self.loaded.read()).fingerprint
    }

    /// Loads the files again if they have changed; says whether. Where they cannot be used the one before stays.
    ///
    /// # Errors
    /// Every [`CertificateError`].
    pub fn reload(&self) -> Result<bool, CertificateError> {
        let known = unpoisoned(self.loaded.read()).stamp;
        if stamp(&self.files)? == known {
            return Ok(false);
        }
        let loaded = load(&self.files)?;
        *unpoisoned(self.loaded.write()) = loaded;
        Ok(true)
    }

    /// TLS 1.3 for HTTP/1.1, always with the certificate that is in use at the time.
    pub(super) fn config(self: &Arc<Self>) -> Result<Arc<ServerConfig>, CertificateError> {
        let builder = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| CertificateError::Unusable(error.to_string()))?;
        let mut config = builder.with_no_client_auth().with_cert_resolver(Arc::<Self>::clone(self));
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&unpoisoned(self.loaded.read()).key))
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("files", &self.files).finish_non_exhaustive()
    }
}

fn stamp(files: &CertificateFiles) -> Result<Stamp, CertificateError> {
    let stamp = |path: &PathBuf| {
        let facts = fs::metadata(path).map_err(|error| CertificateError::File(path.clone(), error.to_string()))?;
        Ok((facts.ino(), facts.mtime(), facts.mtime_nsec()))
    };
    Ok([stamp(&files.certificate)?, stamp(&files.key)?])
}

fn load(files: &CertificateFiles) -> Result<Loaded, CertificateError> {
    let failed = |path: &PathBuf, why: String| CertificateError::File(path.clone(), why);
    let stamp = stamp(files)?;
    let key_facts = fs::metadata(&files.key).map_err(|error| failed(&files.key, error.to_string()))?;
    if key_facts.mode() & 0o007 != 0 {
        return Err(failed(&files.key, "everybody can read it: chmod 640 or 600 it".into()));
    }
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_file_iter(&files.certificate).and_then(Iterator::collect);
    let chain = chain.map_err(|error| failed(&files.certificate, error.to_string()))?;
    let Some(first) = chain.first() else {
        return Err(failed(&files.certificate, "it holds no certificate in PEM".into()));
    };
    let parsed = ParsedCertificate::try_from(first).map_err(|error| failed(&files.certificate, error.to_string()))?;
    let fingerprint = sha256(&parsed.subject_public_key_info());
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| failed(&files.key, error.to_string()))?;
    let signing = provider::sign::any_supported_type(&key).map_err(|error| failed(&files.key, error.to_string()))?;
    let key = CertifiedKey::new(chain, signing);
    match key.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
        Err(_) => return Err(CertificateError::Differ(files.clone())),
    }
    Ok(Loaded { key: Arc::new(key), fingerprint, stamp })
}

/// Makes a key and a certificate that it signs itself.
fn make(files: &CertificateFiles, names: &[String]) -> Result<(), CertificateError> {
    let unusable = |error: rcgen::Error| CertificateError::Unusable(error.to_string());
    let key = rcgen::KeyPair::generate().map_err(unusable)?;
    let mut params = rcgen::CertificateParams::new(names).map_err(unusable)?;
    params.distinguished_name.push(rcgen::DnType::CommonName, "Carrack");
    let certificate = params.self_signed(&key).map_err(unusable)?;
    write(&files.key, key.serialize_pem().as_bytes(), 0o600)?;
    write(&files.certificate, certificate.pem().as_bytes(), 0o644)
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), CertificateError> {
    let failed = |error: io::Error| CertificateError::File(path.to_owned(), error.to_string());
    // What a crash has left of an earlier try is of no use to anybody.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn certificate_is_made_once_and_loaded_again_when_it_changes() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = Certificate::own(one.path(), &names).unwrap();
        assert_eq!(fs::metadata(one.path().join("tls.key")).unwrap().mode() & 0o777, 0o600);
        let (before, again) = (made.fingerprint(), Certificate::own(one.path(), &names).unwrap());
        assert_eq!((again.fingerprint(), made.reload().unwrap()), (before, false));
        let new = Certificate::own(other.path(), &names).unwrap();
        // Half of the change is there: the one before stays.
        fs::copy(other.path().join("tls.crt"), one.path().join("tls.crt")).unwrap();
        assert!(matches!(made.reload(), Err(CertificateError::Differ(_))));
        assert_eq!(made.fingerprint(), before);
        fs::copy(other.path().join("tls.key"), one.path().join("tls.key")).unwrap();
        assert!(made.reload().unwrap());
        assert_eq!(made.fingerprint(), new.fingerprint());
    }

    #[test]
    fn certificate_with_a_key_for_everybody_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let made = Certificate::own(directory.path(), &["localhost".to_owned()]).unwrap();
        fs::set_permissions(directory.path().join("tls.key"), fs::Permissions::from_mode(0o644)).unwrap();
        let error = Certificate::load(made.files.clone()).unwrap_err();
        assert!(error.to_string().contains("everybody can read it"), "{error}");
        fs::write(directory.path().join("tls.crt"), "nothing").unwrap();
        fs::set_permissions(directory.path().join("tls.key"), fs::Permissions::from_mode(0o600)).unwrap();
        assert!(Certificate::load(made.files.clone()).is_err());
    }
}
