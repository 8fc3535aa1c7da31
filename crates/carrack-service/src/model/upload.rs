//! Uploads: files that come to an endpoint in blocks, through the service.

use carrack_core::limits;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::FileFailure;
use super::word_enum;
use crate::clock::Moment;

word_enum! {
    /// How far an upload is.
    pub enum UploadState {
        Receiving "receiving" "blocks are taken"
        Publishing "publishing" "the file is written to its endpoint"
        Published "published" "the file has its name, whole and verified"
        Failed "failed" "the file could not be written to its endpoint; publishing may be tried again"
    }
}

word_enum! {
    /// What happens to a file that has the name already.
    pub enum UploadExisting {
        Fail "fail" "it stays, and the upload fails"
        Replace "replace" "it is replaced, once the new file is whole"
    }
}

/// A file to be uploaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUpload {
    /// The file's path, below the endpoint's root; begins with `/`.
    pub path: String,
    /// Bytes of the file: at most 64 GiB.
    pub size: u64,
    /// Bytes of each block but the last: 4194304.
    pub block_bytes: u32,
    /// SHA-256 of each block, in hexadecimal.
    pub blocks: Vec<String>,
    /// When its content was last modified; the time of the upload where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<Moment>,
    /// What happens to a file that has the name already; `fail` where it is left out.
    #[serde(default = "fail")]
    pub existing: UploadExisting,
}

fn fail() -> UploadExisting {
    UploadExisting::Fail
}

impl NewUpload {
    /// What is wrong with it, but for its path.
    ///
    /// # Errors
    /// In words.
    pub fn check(&self) -> Result<(), String> {
        if self.block_bytes != limits::UPLOAD_BLOCK_BYTES {
            return Err(format!("block_bytes: {}", limits::UPLOAD_BLOCK_BYTES));
        }
        if self.size > limits::UPLOAD_BYTES {
            let most = limits::UPLOAD_BYTES >> 30;
            return Err(format!("size: at most {most} GiB; `carrack copy` takes files of any size"));
        }
        if self.blocks.len() as u64 != self.size.div_ceil(self.block_bytes.into()) {
            return Err("blocks: one digest for each block of the file".to_owned());
        }
        let is_digest = |text: &String| {
            text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        };
        if !self.blocks.iter().all(is_digest) {
            return Err("blocks: SHA-256, 64 hexadecimal digits in lower case each".to_owned());
        }
        Ok(())
    }

    /// Bytes of a block; none where there is no such block.
    pub fn block_length(&self, block: u32) -> Option<usize> {
        let offset = self.block_offset(block);
        let length = self.size.checked_sub(offset).filter(|length| *length > 0)?.min(self.block_bytes.into());
        usize::try_from(length).ok()
    }

    /// Where a block begins.
    pub fn block_offset(&self, block: u32) -> u64 {
        u64::from(block) * u64::from(self.block_bytes)
    }
}

/// An upload, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Upload {
    /// What it is called. It comes from the user, the endpoint, the path, the size and the digests.
    pub id: String,
    /// The endpoint.
    pub endpoint: String,
    /// The file's path, below the endpoint's root.
    pub path: String,
    /// Bytes of the file.
    pub size: u64,
    /// Bytes of each block but the last.
    pub block_bytes: u32,
    /// How far it is.
    pub state: UploadState,
    /// The blocks that are not there yet: the first and the last of each run of them.
    #[schema(value_type = Vec<Vec<u32>>)]
    pub missing: Vec<[u32; 2]>,
    /// Why it has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FileFailure>,
}
