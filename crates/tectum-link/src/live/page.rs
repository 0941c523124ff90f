//! The page's files.

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::{Desk, foxglove};

/// The name of the page itself.
const INDEX: &str = "index.html";

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../page/", $name)))),+]
    };
}

/// The files that are part of the program.
const FILES: &[(&str, &str)] = files![
    "index.html",
    "style.css",
    "page.js",
    "feed.js",
    "history.js",
    "chart.js",
    "plot.js",
    "raster.js",
    "body.js",
    "controls.js",
    "format.js",
    "icon.svg",
];

/// The page, or Foxglove's protocol for a WebSocket.
pub(super) async fn index(
    State(desk): State<Desk>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    match upgrade {
        Ok(upgrade) => foxglove::enter(desk, &headers, upgrade),
        Err(_) => respond(&desk, INDEX),
    }
}

/// A file of the page.
pub(super) async fn file(State(desk): State<Desk>, Path(name): Path<String>) -> Response {
    respond(&desk, &name)
}

fn respond(desk: &Desk, name: &str) -> Response {
    let Some((name, text)) = FILES.iter().find(|(known, _)| *known == name) else {
        return (StatusCode::NOT_FOUND, "no such page\n").into_response();
    };
    // Only names of the list: no path leaves the folder.
    let text = match &desk.0.page {
        Some(folder) => std::fs::read_to_string(folder.join(name)),
        None => Ok((*text).to_owned()),
    };
    match text {
        Ok(text) => ([(CONTENT_TYPE, kind(name))], text).into_response(),
        Err(error) => {
            let reason = format!("{name}: {error}\n");
            (StatusCode::INTERNAL_SERVER_ERROR, reason).into_response()
        }
    }
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/javascript; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::FILES;

    /// What a browser loads before the first picture.
    const MAX_BYTES: usize = 200_000;

    #[test]
    fn the_page_is_small_and_has_no_inline_code() {
        let bytes: usize = FILES.iter().map(|(_, text)| text.len()).sum();
        assert!(bytes <= MAX_BYTES, "{bytes} bytes");
        let (_, index) = FILES[0];
        assert!(!index.contains(" style=") && !index.contains(" onclick="));
        assert!(
            index.matches("<script").count()
                == index.matches("<script type=\"module\" src=").count()
        );
    }
}
