//! Connecting to another process.

use tokio::net::TcpStream;
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;

use crate::socket::{Socket, client_limits};
use crate::{Address, Token};

/// Connects once.
pub(crate) async fn connect(address: &Address, token: Option<&Token>) -> Result<Socket, String> {
    let stream = TcpStream::connect(address.host_and_port())
        .await
        .map_err(|error| error.to_string())?;
    // A small message is sent at once.
    stream
        .set_nodelay(true)
        .map_err(|error| error.to_string())?;
    let mut request = address
        .to_string()
        .into_client_request()
        .map_err(|error| error.to_string())?;
    if let Some(token) = token {
        let value = HeaderValue::from_str(&token.header()).map_err(|error| error.to_string())?;
        request.headers_mut().insert(AUTHORIZATION, value);
    }
    let (socket, _) = client_async_with_config(request, stream, Some(client_limits()))
        .await
        .map_err(|error| error.to_string())?;
    Ok(Socket::Connected(Box::new(socket)))
}
