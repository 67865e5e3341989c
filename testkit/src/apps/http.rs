//! A small HTTP/1.1 server and client over hyper, shared by the gateway, the load balancers and the apps.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Bodies on the bench are small; a larger one is a bug and is refused instead of filling memory.
const BODY_LIMIT: usize = 4 << 20;

/// A task that ends with its owner, so that nothing goes on after a panic.
#[derive(Debug)]
pub struct Task(JoinHandle<()>);

impl Task {
    /// Starts `future` on the current runtime.
    pub fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Task(tokio::spawn(future))
    }

    /// Waits until the task has ended by itself.
    pub async fn join(mut self) {
        let _ = (&mut self.0).await;
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A listener with its connections. Dropping it closes all at once; [`HttpServer::drain`] lets requests in flight end.
#[derive(Debug)]
pub struct HttpServer {
    addr: SocketAddr,
    stop: watch::Sender<bool>,
    task: Task,
}

impl HttpServer {
    /// Serves `handler` on a free port of 127.0.0.1.
    pub async fn start<H, F>(handler: H) -> io::Result<Self>
    where
        H: Fn(Request<Bytes>) -> F + Send + Sync + 'static,
        F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let addr = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let task = Task::spawn(accept(listener, Arc::new(handler), stopped));
        Ok(HttpServer { addr, stop, task })
    }

    /// The real address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Stops accepting, then waits at most `grace` for the requests in flight.
    pub async fn drain(self, grace: Duration) {
        let _ = self.stop.send(true);
        let _ = tokio::time::timeout(grace, self.task.join()).await;
    }
}

async fn accept<H, F>(listener: TcpListener, handler: Arc<H>, mut stopped: watch::Receiver<bool>)
where
    H: Fn(Request<Bytes>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    let watcher = stopped.clone();
    loop {
        tokio::select! {
            () = told(&mut stopped) => break,
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    // Out of file descriptors: a pause, not a busy loop.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                };
                connections.spawn(connection(stream, handler.clone(), watcher.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn connection<H, F>(stream: TcpStream, handler: Arc<H>, mut stopped: watch::Receiver<bool>)
where
    H: Fn(Request<Bytes>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let handler = handler.clone();
        async move {
            let (parts, body) = request.into_parts();
            let response = match Limited::new(body, BODY_LIMIT).collect().await {
                Ok(body) => handler(Request::from_parts(parts, body.to_bytes())).await,
                Err(error) => text(StatusCode::BAD_REQUEST, &format!("request body: {error}\n")),
            };
            Ok::<_, Infallible>(response)
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(served);
    tokio::select! {
        _ = served.as_mut() => return,
        () = told(&mut stopped) => served.as_mut().graceful_shutdown(),
    }
    let _ = served.await;
}

/// Waits for the order to stop (or for the one who could give it to be gone).
pub async fn told(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stop| *stop).await;
}

/// A plain text answer.
pub fn text(status: StatusCode, body: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::copy_from_slice(body.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(
        http::header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain"),
    );
    response
}

/// A JSON answer.
pub fn json(status: StatusCode, body: &serde_json::Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    response.headers_mut().insert(
        http::header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

/// Why a request had no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nothing was sent: another address may be tried without risk.
    #[error("connect to {0}: {1}")]
    Connect(SocketAddr, io::Error),
    /// Something may have been sent: the outcome at the other end is unknown.
    #[error("{0}: {1}")]
    Broken(SocketAddr, String),
}

/// One request over a fresh connection. The URI must be in origin form; the Host header is the caller's.
pub async fn ask(
    addr: SocketAddr,
    request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, AskError> {
    let stream = TcpStream::connect(addr)
        .await
        .map_err(|error| AskError::Connect(addr, error))?;
    let _ = stream.set_nodelay(true);
    let broken = |error: &dyn std::fmt::Display| AskError::Broken(addr, error.to_string());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| broken(&error))?;
    let _connection = Task::spawn(async move {
        let _ = connection.await;
    });
    let (parts, body) = sender
        .send_request(request)
        .await
        .map_err(|error| broken(&error))?
        .into_parts();
    let body = Limited::new(body, BODY_LIMIT)
        .collect()
        .await
        .map_err(|error| broken(&error))?;
    Ok(Response::from_parts(parts, body.to_bytes()))
}

/// A client that keeps connections: hundreds of requests a second would otherwise use up the loopback's ports.
pub type Pool = Client<HttpConnector, Full<Bytes>>;

/// A new [`Pool`].
pub fn pool() -> Pool {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(Duration::from_secs(2)));
    Client::builder(TokioExecutor::new())
        .pool_idle_timeout(Duration::from_secs(5))
        .pool_timer(TokioTimer::new())
        .build(connector)
}

/// Sends an absolute-form request through `proxy` (the gateway) over a kept connection: the pool dials the proxy, and the
/// proxy is told the target in the request line.
pub fn through_proxy(
    method: http::Method,
    proxy: SocketAddr,
    target: &str,
    path: &str,
    host: &str,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, http::Error> {
    // hyper's pooled client rewrites the request line into origin form, so the target travels in a header that
    // only the gateway knows; other proxy users send the absolute form.
    Request::builder()
        .method(method)
        .uri(format!("http://{proxy}{path}"))
        .header(http::header::HOST, host)
        .header(crate::net::TARGET_HEADER, target)
        .body(Full::new(body))
}

/// Collects a pooled answer.
pub async fn collect(response: Response<Incoming>) -> Result<Response<Bytes>, String> {
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, BODY_LIMIT)
        .collect()
        .await
        .map_err(|error| error.to_string())?;
    Ok(Response::from_parts(parts, body.to_bytes()))
}
