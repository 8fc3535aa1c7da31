//! The description of the API, made from its code. A copy is committed; a test compares the two.

use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder, SecurityRequirement, Server};

use super::caller::COOKIE;

/// What stands around the paths.
pub(super) fn frame() -> OpenApi {
    let none: [String; 0] = [];
    let bearer = SecurityScheme::Http(
        HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("A token, or a session's.")).build(),
    );
    let cookie = SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::with_description(
        COOKIE,
        "A session of a browser; changes need the header X-Carrack-Csrf beside it.",
    )));
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Carrack")
                .version("v1")
                .description(Some("Managed transfers: tasks, endpoints, timers, users and events."))
                .build(),
        )
        .servers(Some([Server::new("/api/v1")]))
        .components(Some(
            ComponentsBuilder::new().security_scheme("token", bearer).security_scheme("session", cookie).build(),
        ))
        .security(Some([SecurityRequirement::new("token", none.clone()), SecurityRequirement::new("session", none)]))
        .build()
}
