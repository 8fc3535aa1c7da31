//! What a session has left of an upload, where the service says nothing of it or has removed it.

use std::sync::Arc;

use carrack_engine::stores::over::{Call, Over};
use carrack_faults::stores::fault::{Fault, StoreFaults};

use crate::object::Service;
use crate::{at, copy, expect_only, filled, here, store};

/// The service may have cleaned up what a session has left: then the file starts over.
#[test]
fn object_store_starts_over_where_an_upload_is_gone() {
    let ((place, files), service) = (filled(), Service::default());
    let from = here(&place.path().join("from/"));
    let broken = Over::new(store(&service), Arc::new(StoreFaults::new([Fault::panics(Call::EndBlock).after(5)])));
    assert!(copy(Arc::new(broken), from.clone(), at("bucket")).error.is_some());
    service.lock().uploads.clear();
    let report = copy(store(&service), from, at("bucket"));
    assert!(report.error.is_none() && report.counts.files_failed == 0, "{report:?}");
    expect_only(&service, &files);
}
