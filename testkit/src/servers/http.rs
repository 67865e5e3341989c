//! A very small HTTP/1.1 client for plain loopback endpoints (no TLS, no pool): the loader and readiness checks use it.

use std::time::Duration;

use ::http::HeaderMap;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::error::{Context, Error, Result};

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl Answer {
    /// A header's value, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The body as text; bytes that are no UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// One request to `base` (`http://127.0.0.1:PORT`), path and query in `target`.
pub async fn send(
    base: &str,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Result<Answer> {
    let authority = base.strip_prefix("http://").ok_or_else(|| {
        Error::new(format!(
            "{base} is not a plain http address of this machine"
        ))
    })?;
    let doing = || format!("{method} {base}{target}");
    let stream = TcpStream::connect(authority).await.context(doing)?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .context(doing)?;
    let connection = tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(target);
    // Some requests are signed for another host (`bucket.s3.amazonaws.com`): they bring their own.
    if !headers.iter().any(|(k, _)| k.eq_ignore_ascii_case("host")) {
        request = request.header("host", authority);
    }
    for (key, value) in headers {
        request = request.header(*key, *value);
    }
    let request = request.body(Full::new(body.into())).context(doing)?;
    let response = sender.send_request(request).await.context(doing)?;
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let body = response
        .into_body()
        .collect()
        .await
        .context(doing)?
        .to_bytes();
    connection.abort();
    Ok(Answer {
        status,
        headers,
        body,
    })
}

/// Whether a GET of this address is answered with a success within a second.
pub async fn answers(url: &str) -> bool {
    let Some((base, path)) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
    else {
        return false;
    };
    let (base, path) = (format!("http://{base}"), format!("/{path}"));
    let get = send(&base, "GET", &path, &[], Bytes::new());
    matches!(
        tokio::time::timeout(Duration::from_secs(1), get).await,
        Ok(Ok(answer)) if (200..300).contains(&answer.status)
    )
}
