//! Uploads from the service's side: which there are, whose they are, and which are being published. What has to outlast
//! the service stands in their spools; this is found again from there.

use carrack_engine::sync::lock;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use carrack_core::limits;
use tokio::sync::watch;

use crate::model::{FileFailure, Upload, UploadState};
use crate::worker::files::spool::{Spool, SpoolEnd, SpoolRequest};

/// A spool goes when nothing of it has changed for so long.
const KEPT: Duration = Duration::from_secs(86_400);
/// That of a file that is published goes sooner: only who uploaded it asks for it.
const KEPT_PUBLISHED: Duration = Duration::from_secs(3600);

/// Why an upload is not taken.
#[derive(Debug)]
pub enum Refused {
    /// The user has as much waiting as they may, or as many uploads: in words.
    Full(String),
    /// The system.
    System(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// All uploads of a service.
pub struct Uploads {
    directory: PathBuf,
    known: Mutex<HashMap<String, Known>>,
    /// Grows when publishing has begun or ended.
    changed: watch::Sender<u64>,
}

struct Known {
    request: Arc<SpoolRequest>,
    is_publishing: bool,
    /// Its file has no space any more.
    is_released: bool,
}

/// An upload that was found.
#[derive(Clone)]
pub struct FoundUpload {
    /// What it is called.
    pub id: String,
    /// Where it stands.
    pub spool: Spool,
    /// What was asked for.
    pub request: Arc<SpoolRequest>,
    is_publishing: bool,
}

impl FoundUpload {
    /// How far it is.
    ///
    /// # Errors
    /// Those of the system.
    pub fn document(&self) -> io::Result<Upload> {
        let end = if self.is_publishing { None } else { self.spool.end()? };
        let (state, failure) = match end {
            _ if self.is_publishing => (UploadState::Publishing, None),
            None => (UploadState::Receiving, None),
            Some(SpoolEnd { failure: None, .. }) => (UploadState::Published, None),
            Some(SpoolEnd { failure, .. }) => (UploadState::Failed, failure),
        };
        let SpoolRequest { endpoint, upload, .. } = &*self.request;
        Ok(Upload {
            id: self.id.clone(),
            endpoint: endpoint.clone(),
            path: upload.path.clone(),
            size: upload.size,
            block_bytes: upload.block_bytes,
            state,
            missing: self.spool.missing()?,
            failure,
        })
    }
}

/// An upload that is being published, until this is dropped.
pub struct Publishing {
    uploads: Arc<Uploads>,
    id: String,
}

impl Publishing {
    /// Writes how it has ended.
    pub fn end(self, failure: Option<FileFailure>) {
        let spool = self.uploads.spool(&self.id);
        let written = match failure {
            // The worker has written that it is there.
            None => spool.release(),
            failure => spool.set_end(&SpoolEnd { failure, size: 0, modified: None }),
        };
        match written {
            Ok(()) => self.uploads.note_released(&self.id),
            // It stays as it is: publishing may be tried again.
            Err(error) => tracing::error!(target: "carrack::files", upload = self.id, %error, "an upload's spool"),
        }
    }
}

impl Drop for Publishing {
    fn drop(&mut self) {
        if let Some(known) = self.uploads.known().get_mut(&self.id) {
            known.is_publishing = false;
        }
        self.uploads.changed.send_modify(|count| *count = count.wrapping_add(1));
    }
}

impl Uploads {
    /// Those whose spools are in a directory. Old ones are removed.
    pub fn open(directory: PathBuf) -> Arc<Self> {
        let uploads = Self { directory, known: Mutex::default(), changed: watch::Sender::new(0) };
        uploads.sweep();
        let mut known = uploads.known();
        for id in uploads.ids() {
            if let Ok(request) = uploads.spool(&id).request() {
                let is_released = uploads.is_published(&id);
                known.insert(id, Known { request: Arc::new(request), is_publishing: false, is_released });
            }
        }
        drop(known);
        Arc::new(uploads)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        lock(&self.known)
    }

    fn spool(&self, id: &str) -> Spool {
        Spool::at(self.directory.join(id))
    }

    fn is_published(&self, id: &str) -> bool {
        self.spool(id).end().is_ok_and(|end| end.is_some_and(|end| end.failure.is_none()))
    }

    fn note_released(&self, id: &str) {
        let is_released = self.is_published(id);
        if let Some(known) = self.known().get_mut(id) {
            known.is_released = is_released;
        }
    }

    /// Names in the directory that may be those of uploads.
    fn ids(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return Vec::new() };
        let is_id = |name: &String| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).filter(is_id).collect()
    }

    /// An upload of a user.
    pub fn find(&self, user: &str, id: &str) -> Option<FoundUpload> {
        let known = self.known();
        let found = known.get(id).filter(|known| known.request.user == user)?;
        let (request, is_publishing) = (Arc::clone(&found.request), found.is_publishing);
        Some(FoundUpload { id: id.to_owned(), spool: self.spool(id), request, is_publishing })
    }

    /// Begins an upload from nothing, unless there is one that is not published.
    ///
    /// # Errors
    /// Every [`Refused`].
    pub fn begin(&self, request: SpoolRequest) -> Result<(), Refused> {
        let id = request.id();
        let mut known = self.known();
        if known.get(&id).is_some_and(|found| found.is_publishing || !self.is_published(&id)) {
            // Another request has begun it meanwhile.
            return Ok(());
        }
        let of_user = known.iter().filter(|(other, known)| **other != id && known.request.user == request.user);
        let (mut count, mut bytes) = (0, request.upload.size);
        for (_, other) in of_user {
            count += 1;
            bytes += if other.is_released { 0 } else { other.request.upload.size };
        }
        if bytes > limits::UPLOADS_BYTES {
            let most = limits::UPLOADS_BYTES >> 30;
            let why = format!("with this file, your uploads that are not published would take more than {most} GiB");
            return Err(Refused::Full(why));
        }
        if count >= limits::UPLOADS {
            return Err(Refused::Full(format!("the service keeps {} uploads of a user at most", limits::UPLOADS)));
        }
        self.spool(&id).make(&request)?;
        known.insert(id, Known { request: Arc::new(request), is_publishing: false, is_released: false });
        Ok(())
    }

    /// Goes on with an upload, asked for by the same user with other wishes than before.
    ///
    /// # Errors
    /// Those of the system.
    pub fn go_on(&self, request: SpoolRequest) -> io::Result<()> {
        let id = request.id();
        let mut known = self.known();
        let Some(found) = known.get_mut(&id).filter(|found| !found.is_publishing) else { return Ok(()) };
        let spool = self.spool(&id);
        if self.is_published(&id) {
            return Ok(());
        }
        if *found.request != request {
            spool.ask(&request)?;
            found.request = Arc::new(request);
        }
        spool.forget_end()
    }

    /// Notes that an upload is being published; none where it is already, or is gone.
    pub fn publish(self: &Arc<Self>, id: &str) -> Option<Publishing> {
        let mut known = self.known();
        let found = known.get_mut(id).filter(|found| !found.is_publishing)?;
        found.is_publishing = true;
        drop(known);
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
        Some(Publishing { uploads: Arc::clone(self), id: id.to_owned() })
    }

    /// Removes an upload; false while it is published.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove(&self, id: &str) -> io::Result<bool> {
        let mut known = self.known();
        if known.get(id).is_some_and(|found| found.is_publishing) {
            return Ok(false);
        }
        self.spool(id).remove()?;
        known.remove(id);
        Ok(true)
    }

    /// Tells when publishing of any upload has begun or ended.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Removes what nobody goes on with.
    pub fn sweep(&self) {
        let now = SystemTime::now();
        for id in self.ids() {
            let kept = if self.is_published(&id) { KEPT_PUBLISHED } else { KEPT };
            let age = self.spool(&id).changed().and_then(|changed| now.duration_since(changed).ok());
            if age.is_some_and(|age| age >= kept)
                && let Err(error) = self.remove(&id)
            {
                tracing::warn!(target: "carrack::files", upload = id, %error, "an old upload cannot be removed");
            }
        }
    }
}
