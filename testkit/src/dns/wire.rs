//! Messages over UDP and TCP, for servers and for who asks them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;

use crate::apps::http::Task;

/// The payload that a server of ours accepts and sends over UDP with EDNS.
const PAYLOAD: u16 = 1232;
/// How long one try waits for an answer.
const TRY: Duration = Duration::from_secs(1);

/// A DNS server on one port, UDP and TCP. Dropping it closes both.
#[derive(Debug)]
pub(super) struct Server {
    pub addr: SocketAddr,
    _udp: Task,
    _tcp: Task,
}

impl Server {
    /// Serves `answer` on a free port of 127.0.0.1.
    pub(super) async fn start<H, F>(answer: H) -> io::Result<Self>
    where
        H: Fn(Message) -> F + Send + Sync + 'static,
        F: Future<Output = Message> + Send + 'static,
    {
        let (udp, tcp) = bind().await?;
        let addr = udp.local_addr()?;
        let answer = Arc::new(answer);
        Ok(Server {
            addr,
            _udp: Task::spawn(serve_udp(udp, answer.clone())),
            _tcp: Task::spawn(serve_tcp(tcp, answer)),
        })
    }
}

/// UDP and TCP on the same free port.
async fn bind() -> io::Result<(UdpSocket, TcpListener)> {
    let mut last = io::Error::other("no free port");
    for _ in 0..20 {
        let udp = UdpSocket::bind(("127.0.0.1", 0)).await?;
        match TcpListener::bind(udp.local_addr()?).await {
            Ok(tcp) => return Ok((udp, tcp)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Decodes a query and gives the encoded answer; `None` for what is no query at all.
async fn handle<H, F>(answer: &H, bytes: &[u8], limit: Option<u16>) -> Option<Vec<u8>>
where
    H: Fn(Message) -> F,
    F: Future<Output = Message>,
{
    let request = Message::from_vec(bytes).ok()?;
    if request.metadata.message_type != MessageType::Query {
        return None;
    }
    let mut response = match (request.metadata.op_code, request.queries.len()) {
        (OpCode::Query, 1) => answer(request.clone()).await,
        (OpCode::Query, _) => reply(&request, ResponseCode::FormErr),
        _ => reply(&request, ResponseCode::NotImp),
    };
    let limit = limit.map(|limit| match &request.edns {
        Some(edns) => edns.max_payload().clamp(512, limit),
        None => 512,
    });
    if request.edns.is_some() {
        let mut edns = Edns::new();
        edns.set_max_payload(PAYLOAD);
        response.set_edns(edns);
    }
    let encoded = response.to_vec().ok()?;
    match limit {
        Some(limit) if encoded.len() > usize::from(limit) => response.truncate().to_vec().ok(),
        _ => Some(encoded),
    }
}

async fn serve_udp<H, F>(socket: UdpSocket, answer: Arc<H>)
where
    H: Fn(Message) -> F + Send + Sync + 'static,
    F: Future<Output = Message> + Send + 'static,
{
    let socket = Arc::new(socket);
    let mut running = JoinSet::new();
    let mut buffer = vec![0_u8; 4096];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            continue;
        };
        let (socket, answer, bytes) = (socket.clone(), answer.clone(), buffer[..length].to_vec());
        running.spawn(async move {
            if let Some(encoded) = handle(answer.as_ref(), &bytes, Some(PAYLOAD)).await {
                let _ = socket.send_to(&encoded, from).await;
            }
        });
        while running.try_join_next().is_some() {}
    }
}

async fn serve_tcp<H, F>(listener: TcpListener, answer: Arc<H>)
where
    H: Fn(Message) -> F + Send + Sync + 'static,
    F: Future<Output = Message> + Send + 'static,
{
    let mut running = JoinSet::new();
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let answer = answer.clone();
        running.spawn(async move {
            while let Ok(bytes) = read_frame(&mut stream).await {
                let Some(encoded) = handle(answer.as_ref(), &bytes, None).await else {
                    return;
                };
                if write_frame(&mut stream, &encoded).await.is_err() {
                    return;
                }
            }
        });
        while running.try_join_next().is_some() {}
    }
}

async fn read_frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = stream.read_u16().await?;
    let mut bytes = vec![0_u8; usize::from(length)];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

async fn write_frame(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend_from_slice(bytes);
    stream.write_all(&frame).await
}

/// An empty answer to `request`.
pub(super) fn reply(request: &Message, code: ResponseCode) -> Message {
    let mut response = Message::response(request.metadata.id, request.metadata.op_code);
    response.add_queries(request.queries.iter().cloned());
    response.metadata.recursion_desired = request.metadata.recursion_desired;
    response.metadata.response_code = code;
    response
}

/// Asks a DNS server, twice over UDP, and over TCP when the answer was cut.
pub async fn query(server: SocketAddr, name: &str, kind: RecordType) -> io::Result<Message> {
    let name =
        Name::from_ascii(name).map_err(|error| io::Error::other(format!("{name}: {error}")))?;
    ask(server, name, kind).await
}

pub(super) async fn ask(
    server: SocketAddr,
    mut name: Name,
    kind: RecordType,
) -> io::Result<Message> {
    static IDS: AtomicU16 = AtomicU16::new(1);
    name.set_fqdn(true);
    let mut request = Message::new(
        IDS.fetch_add(1, Ordering::Relaxed),
        MessageType::Query,
        OpCode::Query,
    );
    request.metadata.recursion_desired = true;
    request.add_query(Query::query(name, kind));
    let mut edns = Edns::new();
    edns.set_max_payload(PAYLOAD);
    request.set_edns(edns);
    let bytes = request.to_vec().map_err(io::Error::other)?;

    let socket = UdpSocket::bind(("127.0.0.1", 0)).await?;
    socket.connect(server).await?;
    let mut buffer = vec![0_u8; 4096];
    for _ in 0..2 {
        socket.send(&bytes).await?;
        let Ok(received) = tokio::time::timeout(TRY, socket.recv(&mut buffer)).await else {
            continue;
        };
        let length = received?;
        let response = Message::from_vec(&buffer[..length]).map_err(io::Error::other)?;
        if response.metadata.id != request.metadata.id {
            continue;
        }
        if !response.metadata.truncation {
            return Ok(response);
        }
        let over_tcp = async {
            let mut stream = TcpStream::connect(server).await?;
            write_frame(&mut stream, &bytes).await?;
            let bytes = read_frame(&mut stream).await?;
            Message::from_vec(&bytes).map_err(io::Error::other)
        };
        return tokio::time::timeout(TRY, over_tcp).await?;
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        format!("{server}: no answer in {TRY:?}, twice"),
    ))
}
