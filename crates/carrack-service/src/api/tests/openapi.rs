//! The description of the API is the committed one.

use std::path::Path;

use crate::api::openapi_json;

#[test]
fn openapi_is_the_committed_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    let made = openapi_json();
    if std::env::var_os("CARRACK_GOLDEN").is_some_and(|word| word == "write") {
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == made, "{} differs: CARRACK_GOLDEN=write writes it", path.display());
}

#[test]
fn openapi_tells_of_problems_on_every_route() {
    let description: serde_json::Value = serde_json::from_str(&openapi_json()).unwrap();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let problem = &operation["responses"]["default"]["content"]["application/problem+json"];
            assert!(problem.is_object(), "{method} {path}");
            assert!(operation["operationId"].is_string(), "{method} {path}");
        }
    }
}
