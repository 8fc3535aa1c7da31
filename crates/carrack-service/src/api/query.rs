//! The parameters of queries: a request that has one which its route does not take is refused. A misspelt filter would
//! otherwise choose everything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::{MatchedPath, Query, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::{OpenApi, RefOr};

use super::problem::ApiError;

/// For each method and path the parameters that the description tells of.
#[derive(Clone, Debug)]
pub(super) struct Parameters(Arc<BTreeMap<(&'static str, String), BTreeSet<String>>>);

impl Parameters {
    /// Those of a description whose paths stand below a prefix.
    pub fn of(description: &OpenApi, prefix: &str) -> Self {
        let mut all = BTreeMap::new();
        for (path, item) in &description.paths.paths {
            let methods: [(&'static str, &Option<Operation>); 5] = [
                ("GET", &item.get),
                ("POST", &item.post),
                ("PUT", &item.put),
                ("PATCH", &item.patch),
                ("DELETE", &item.delete),
            ];
            for (method, operation) in methods {
                let Some(operation) = operation else { continue };
                let told = operation.parameters.iter().flatten().chain(item.parameters.iter().flatten());
                let names = told.filter_map(|told| match told {
                    RefOr::T(told) if told.parameter_in == ParameterIn::Query => Some(told.name.clone()),
                    _ => None,
                });
                let names = names.collect();
                all.insert((method, format!("{prefix}{path}")), names);
            }
        }
        Self(Arc::new(all))
    }

    /// The first parameter of a request that its route does not take. Routes without a description take none.
    fn unknown(&self, method: &'static str, path: &str, names: &[(String, String)]) -> Option<String> {
        let known = self.0.get(&(method, path.to_owned()));
        let is_known = |name: &String| known.is_some_and(|known| known.contains(name));
        names.iter().map(|(name, _)| name).find(|name| !is_known(name)).cloned()
    }
}

/// Stands before each route.
pub(super) async fn check(State(parameters): State<Parameters>, request: Request, next: Next) -> Response {
    let method = match request.method().as_str() {
        "GET" | "HEAD" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => return next.run(request).await,
    };
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned()).unwrap_or_default();
    // What cannot be parsed is refused where the route parses it.
    let names = Query::<Vec<(String, String)>>::try_from_uri(request.uri()).map(|Query(names)| names);
    if let Some(name) = parameters.unknown(method, &path, &names.unwrap_or_default()) {
        let name = carrack_core::path::display_bytes(name.as_bytes()).to_string();
        return ApiError::malformed(format!("the route takes no parameter {name:?}")).into_response();
    }
    next.run(request).await
}
