//! An object service as others have it, in memory: objects that are put whole or in parts, no rename, no directories,
//! no times, no links, no writing in the middle. This file and one registration make it a source and a destination.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use carrack_core::failure::{ErrorCode, Failure, Side};
use carrack_engine::stores::objects::{Bucket, Object, Overwrite, Put, Upload, Version};
use carrack_engine::stores::properties::BlockBytes;

/// Of an upload, by their numbers: what each holds, and the number of its version.
type Parts = BTreeMap<u64, (Vec<u8>, u64)>;

/// The whole service. A clone is the same one.
#[derive(Clone, Debug, Default)]
pub struct Service(Arc<Mutex<State>>);

#[derive(Clone, Debug, Default)]
pub struct State {
    /// What is under each key, and the number of its version.
    pub objects: BTreeMap<Vec<u8>, (Vec<u8>, u64)>,
    /// Parts of uploads that are not complete, by the key of the object and the name of the upload.
    pub uploads: BTreeMap<(Vec<u8>, Vec<u8>), Parts>,
    /// Counts versions and uploads.
    count: u64,
}

/// As S3, but for the smallest part, which is smaller.
pub const PART_BYTES: BlockBytes = BlockBytes { smallest: 100 << 10, largest: 1 << 30 };

fn refuse<T>(code: ErrorCode, side: Side, why: &str) -> Result<T, Failure> {
    Err(Failure::new(code, side, why))
}

fn known_by(number: u64) -> Version {
    u128::from(number).to_le_bytes()
}

fn described((content, number): &(Vec<u8>, u64)) -> Object {
    Object { size: content.len() as u64, version: known_by(*number) }
}

fn id(upload: Upload<'_>) -> (Vec<u8>, Vec<u8>) {
    (upload.key.to_vec(), upload.name.to_vec())
}

impl Service {
    /// Another one, with the same in it.
    pub fn clone_of(other: &Self) -> Self {
        Self(Arc::new(Mutex::new(other.lock().clone())))
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl State {
    fn put(&mut self, key: &[u8], content: Vec<u8>, over: Overwrite) -> Put {
        if over == Overwrite::Nothing && self.objects.contains_key(key) {
            return Put::Kept;
        }
        self.count += 1;
        self.objects.insert(key.to_vec(), (content, self.count));
        Put::There(known_by(self.count))
    }

    fn parts(&mut self, upload: Upload<'_>) -> Result<&mut Parts, Failure> {
        self.uploads
            .get_mut(&id(upload))
            .map_or_else(|| refuse(ErrorCode::NotFound, Side::Destination, "no upload"), Ok)
    }
}

impl Bucket for Service {
    fn part_bytes(&self) -> BlockBytes {
        PART_BYTES
    }

    fn head(&self, key: &[u8]) -> Result<Option<Object>, Failure> {
        Ok(self.lock().objects.get(key).map(described))
    }

    fn list(&self, prefix: &[u8], each: &mut dyn FnMut(&[u8], Object) -> bool) -> Result<(), Failure> {
        let all: Vec<_> = self.lock().objects.iter().map(|(key, object)| (key.clone(), described(object))).collect();
        let _ = all.iter().filter(|(key, _)| key.starts_with(prefix)).all(|(key, object)| each(key, *object));
        Ok(())
    }

    fn get(&self, key: &[u8], version: Version, offset: u64, out: &mut [u8]) -> Result<(), Failure> {
        let state = self.lock();
        let Some((content, number)) = state.objects.get(key) else {
            return refuse(ErrorCode::SourceVanished, Side::Source, "no such key");
        };
        let bytes = content.get(offset as usize..offset as usize + out.len());
        let Some(bytes) = bytes.filter(|_| known_by(*number) == version) else {
            return refuse(ErrorCode::SourceChanged, Side::Source, "another version, or a shorter one");
        };
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn put(&self, key: &[u8], content: &[u8], over: Overwrite) -> Result<Put, Failure> {
        Ok(self.lock().put(key, content.to_vec(), over))
    }

    fn remove(&self, key: &[u8]) -> Result<(), Failure> {
        self.lock().objects.remove(key);
        Ok(())
    }

    fn begin_upload(&self, key: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut state = self.lock();
        state.count += 1;
        let name = format!("upload-{}", state.count).into_bytes();
        state.uploads.insert((key.to_vec(), name.clone()), BTreeMap::new());
        Ok(name)
    }

    fn put_part(&self, upload: Upload<'_>, number: u64, content: &[u8]) -> Result<Version, Failure> {
        if content.len() > PART_BYTES.largest as usize {
            return refuse(ErrorCode::FileTooLarge, Side::Destination, "a part is too large");
        }
        let mut state = self.lock();
        state.count += 1;
        let version = state.count;
        state.parts(upload)?.insert(number, (content.to_vec(), version));
        Ok(known_by(version))
    }

    fn parts(&self, upload: Upload<'_>) -> Result<BTreeMap<u64, Version>, Failure> {
        let state = self.lock();
        let parts = state.uploads.get(&id(upload)).into_iter().flatten();
        Ok(parts.map(|(number, (_, version))| (*number, known_by(*version))).collect())
    }

    fn get_part(&self, upload: Upload<'_>, number: u64) -> Result<Vec<u8>, Failure> {
        let part = self.lock().parts(upload)?.get(&number).map(|(content, _)| content.clone());
        part.map_or_else(|| refuse(ErrorCode::NotFound, Side::Destination, "no such part"), Ok)
    }

    fn complete(&self, upload: Upload<'_>, parts: &[Version], over: Overwrite) -> Result<Put, Failure> {
        let mut state = self.lock();
        let there = state.parts(upload)?;
        let is_small = |(content, _): &(Vec<u8>, u64)| content.len() < PART_BYTES.smallest as usize;
        let are_these = there.values().map(|(_, version)| known_by(*version)).eq(parts.iter().copied());
        if !are_these || !there.keys().copied().eq(0..parts.len() as u64) || there.values().rev().skip(1).any(is_small)
        {
            return refuse(ErrorCode::InputOutput, Side::Destination, "a part is missing, another, or too small");
        }
        let content = there.values().flat_map(|(content, _)| content).copied().collect();
        state.uploads.remove(&id(upload));
        Ok(state.put(upload.key, content, over))
    }

    fn abort(&self, upload: Upload<'_>) -> Result<(), Failure> {
        self.lock().uploads.remove(&id(upload));
        Ok(())
    }
}
