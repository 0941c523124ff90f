//! Who may connect: hosts, origins and tokens; and the headers of every response.

use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Desk;
use crate::server::{authority_of, is_local_authority, is_local_origin};

/// The page loads its own files and connects to its own server, nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// Headers of every response.
const HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// Checks where a request comes from.
pub(super) async fn check(State(desk): State<Desk>, request: Request, next: Next) -> Response {
    let is_root = request.uri().path() == "/";
    let refused = refusal(request.headers(), desk.0.token.is_some(), is_root);
    let mut response = match refused {
        Some(reason) => (StatusCode::FORBIDDEN, reason).into_response(),
        None => next.run(request).await,
    };
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Why a request is refused. Without a token only this machine's names reach the server: a page of
/// another host whose name points to this machine is refused too. A request of a page is accepted
/// from a page of this server. At `/`, which serves Foxglove's protocol and accepts no commands, it
/// is accepted from any page of this machine.
fn refusal(headers: &HeaderMap, has_token: bool, is_root: bool) -> Option<&'static str> {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(HOST).unwrap_or_default();
    if !has_token && !is_local_authority(host) {
        return Some("this server is for names of this machine, such as localhost\n");
    }
    let is_own = |origin: &str| authority_of(origin) == Some(host);
    let is_accepted = |origin: &str| is_own(origin) || (is_root && is_local_origin(origin));
    text(ORIGIN)
        .is_some_and(|origin| !is_accepted(origin))
        .then_some("pages of other origins are refused\n")
}

/// Checks the token of a request that a program sends.
pub(super) async fn require_token(
    State(desk): State<Desk>,
    request: Request,
    next: Next,
) -> Response {
    match shows_token(&desk, request.headers()) {
        true => next.run(request).await,
        false => unauthorized(),
    }
}

/// Whether a request shows the token, or none is needed.
pub(super) fn shows_token(desk: &Desk, headers: &HeaderMap) -> bool {
    let shown = headers.get(AUTHORIZATION);
    let shown = shown.and_then(|value| value.to_str().ok());
    let token = desk.0.token.as_ref();
    token.is_none_or(|token| token.is_shown_by(shown))
}

/// The response to a request without it.
pub(super) fn unauthorized() -> Response {
    let reason = "a token is needed: Authorization: Bearer TOKEN\n";
    (StatusCode::UNAUTHORIZED, reason).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_origins_of_others_are_refused() {
        // Host, origin, whether a token is set, whether `/live` is served, whether `/` is.
        for (host, origin, has_token, is_live_served, is_root_served) in [
            ("127.0.0.1:8080", None, false, true, true),
            (
                "localhost:8080",
                Some("http://localhost:8080"),
                false,
                true,
                true,
            ),
            (
                "localhost:8080",
                Some("http://localhost:9000"),
                false,
                false,
                true,
            ),
            (
                "127.0.0.1:8080",
                Some("http://example.org"),
                false,
                false,
                false,
            ),
            ("127.0.0.1:8080", Some("null"), false, false, false),
            // A name of another host that points to this machine.
            ("example.org:8080", None, false, false, false),
            (
                "example.org",
                Some("http://example.org"),
                false,
                false,
                false,
            ),
            ("", None, false, false, false),
            ("robot:8080", Some("http://robot:8080"), true, true, true),
            (
                "robot:8080",
                Some("http://localhost:8080"),
                true,
                false,
                true,
            ),
            ("robot:8080", Some("http://robot:8081"), true, false, false),
            ("robot:8080", None, true, true, true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static(host));
            if let Some(origin) = origin {
                headers.insert(ORIGIN, HeaderValue::from_static(origin));
            }
            for (is_root, is_served) in [(false, is_live_served), (true, is_root_served)] {
                let refused = refusal(&headers, has_token, is_root);
                assert_eq!(refused.is_none(), is_served, "{host} {origin:?} {is_root}");
            }
        }
    }
}
