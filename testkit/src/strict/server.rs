//! Listeners: the plain endpoint, and the CONNECT proxy that ends TLS for AWS host names.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::http::{Reply, Req};
use super::{LostReply, State};
use crate::error::{Context, Result};
use crate::servers::pki::TestCa;

pub async fn serve_plain(listener: TcpListener, state: Arc<State>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        tokio::spawn(serve_aws(stream, state.clone(), None));
    }
}

/// Serves AWS calls on one connection. `host` is set when a CONNECT named it.
async fn serve_aws<S>(stream: S, state: Arc<State>, host: Option<String>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: http::Request<Incoming>| {
        let (state, host) = (state.clone(), host.clone());
        async move { aws(request, state, host.as_deref()).await }
    });
    // Errors here are clients that went away, or injected lost replies: the call log has what matters.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn aws(
    request: http::Request<Incoming>,
    state: Arc<State>,
    host: Option<&str>,
) -> Result<Reply, LostReply> {
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else {
        return Err(LostReply);
    };
    let named = parts
        .uri
        .host()
        .or_else(|| {
            parts
                .headers
                .get(http::header::HOST)
                .and_then(|h| h.to_str().ok())
        })
        .unwrap_or("")
        .to_owned();
    let req = Req::new(
        parts,
        body.to_bytes(),
        host.unwrap_or(&named),
        &state.config.region,
    );
    // What has reached AWS is done there, whoever dies before the answer.
    tokio::spawn(async move { super::answer(&state, req).await })
        .await
        .unwrap_or(Err(LostReply))
}

pub async fn serve_proxy(listener: TcpListener, state: Arc<State>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let state = state.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let state = state.clone();
                async move { proxy(request, state).await }
            });
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades()
                .await;
        });
    }
}

async fn proxy(request: http::Request<Incoming>, state: Arc<State>) -> Result<Reply, LostReply> {
    if request.method() != Method::CONNECT {
        // A client that was given http_proxy as well: absolute-form requests.
        return aws(request, state, None).await;
    }
    let host = request.uri().host().unwrap_or("").to_owned();
    if host != "amazonaws.com" && !host.ends_with(".amazonaws.com") {
        return Ok(plain(
            StatusCode::FORBIDDEN,
            format!("the bench's AWS proxy leads to *.amazonaws.com only, not to {host}\n"),
        ));
    }
    let tls = match tls_config(&state.config.ca, &host) {
        Ok(tls) => tls,
        Err(error) => return Ok(plain(StatusCode::BAD_GATEWAY, error.to_string())),
    };
    tokio::spawn(async move {
        if let Ok(upgraded) = hyper::upgrade::on(request).await
            && let Ok(stream) = TlsAcceptor::from(tls).accept(TokioIo::new(upgraded)).await
        {
            serve_aws(stream, state, Some(host)).await;
        }
    });
    Ok(plain(StatusCode::OK, String::new()))
}

fn plain(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut reply = Response::new(Full::new(Bytes::from(text)));
    *reply.status_mut() = status;
    reply
}

/// TLS with a certificate for this name or address from the test CA, HTTP/1.1 only.
pub fn tls_config(ca: &TestCa, host: &str) -> Result<Arc<rustls::ServerConfig>> {
    let (cert, key) = match host.parse() {
        Ok(ip) => ca.issue(&[], &[ip])?,
        Err(_) => ca.issue(&[host], &[])?,
    };
    let chain = vec![
        CertificateDer::from_pem_slice(cert.as_bytes())
            .context(|| format!("the certificate for {host} cannot be read back"))?,
    ];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .context(|| format!("the key for {host} cannot be read back"))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context(|| "TLS versions".into())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context(|| format!("TLS for {host}"))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Serves one handler over TLS until aborted (the token webhook).
pub async fn serve_tls<F, Fut>(listener: TcpListener, tls: Arc<rustls::ServerConfig>, handler: F)
where
    F: Fn(http::Request<Incoming>) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Reply> + Send + 'static,
{
    let acceptor = TlsAcceptor::from(tls);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let (acceptor, handler) = (acceptor.clone(), handler.clone());
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let service = service_fn(move |request| {
                let reply = handler(request);
                async move { Ok::<_, Infallible>(reply.await) }
            });
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}
