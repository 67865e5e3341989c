//! A TCP proxy between a client and one server: it adds the round trip of a long way, and can cut connections.
//!
//! What an EKS endpoint looks like from outside is neither fast nor steady; loopback is both. Bytes are passed on as they are
//! (TLS stays end to end), each chunk after half the round trip, in both directions, without a limit on bandwidth.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::error::{Context, Result};

/// Chunks on their way at once, in one direction of one connection.
const IN_FLIGHT: usize = 4096;

/// How the way behaves.
#[derive(Debug, Clone, Copy, Default)]
pub struct Way {
    /// Added to each chunk, once in each direction: 10 ms here are 20 ms of round trip.
    pub one_way: Duration,
    /// A connection is cut after so many bytes of answers, a different number each time between half of this and one and a
    /// half of it; in the middle of an answer as likely as between two. Never when absent.
    pub cut_after: Option<u64>,
}

/// A running proxy; it ends, with its connections, when it is dropped.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
    _alive: watch::Sender<()>,
}

struct Shared {
    way: std::sync::Mutex<Way>,
    seed: AtomicU64,
    cuts: AtomicU64,
    connections: AtomicU64,
}

impl Proxy {
    /// Listens on a free port of 127.0.0.1 and passes connections on to `upstream`. `seed` decides where connections are cut.
    pub async fn start(upstream: SocketAddr, way: Way, seed: u64) -> Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context(|| "the proxy found no free port on 127.0.0.1".into())?;
        let address = listener
            .local_addr()
            .context(|| "the proxy cannot tell its port".into())?;
        let shared = Arc::new(Shared {
            way: std::sync::Mutex::new(way),
            seed: AtomicU64::new(seed),
            cuts: AtomicU64::new(0),
            connections: AtomicU64::new(0),
        });
        let (alive, watched) = watch::channel(());
        let task = tokio::spawn({
            let shared = shared.clone();
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    shared.connections.fetch_add(1, Ordering::Relaxed);
                    tokio::spawn(connection(
                        client,
                        upstream,
                        shared.clone(),
                        watched.clone(),
                    ));
                }
            }
        });
        Ok(Proxy {
            address,
            shared,
            task,
            _alive: alive,
        })
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections that were cut so far.
    pub fn cuts(&self) -> u64 {
        self.shared.cuts.load(Ordering::Relaxed)
    }

    /// Connections so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn way(&self) -> Way {
        *self
            .way
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The next number of a fixed series (xorshift64*): the same seed cuts at the same places.
    fn next(&self) -> u64 {
        let mut x = self.seed.load(Ordering::Relaxed).max(1);
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.seed.store(x, Ordering::Relaxed);
        x.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

async fn connection(
    client: TcpStream,
    upstream: SocketAddr,
    shared: Arc<Shared>,
    mut alive: watch::Receiver<()>,
) {
    let way = shared.way();
    let Ok(server) = TcpStream::connect(upstream).await else {
        return;
    };
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let limit = way
        .cut_after
        .map(|mean| mean / 2 + shared.next() % mean.max(1));
    // A cut connection must not end in good order, or the client could take half an answer for a whole one.
    if limit.is_some() {
        let _ = client.set_zero_linger();
        let _ = server.set_zero_linger();
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let cut = Arc::new(AtomicBool::new(false));
    let there = pass(from_client, to_server, way.one_way, None, cut.clone());
    let back = pass(from_server, to_client, way.one_way, limit, cut.clone());
    tokio::pin!(there, back);
    // Either end closing ends both directions, but for what is still on its way to the client.
    tokio::select! {
        () = async { tokio::select! { () = &mut there => back.await, () = &mut back => {} } } => {}
        _ = alive.changed() => {}
    }
    if cut.load(Ordering::Relaxed) {
        shared.cuts.fetch_add(1, Ordering::Relaxed);
    }
}

/// One direction: every chunk leaves `delay` after it came. With a limit, what is beyond it never arrives.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    delay: Duration,
    limit: Option<u64>,
    cut: Arc<AtomicBool>,
) {
    let (send, mut due) = mpsc::channel::<(Instant, Vec<u8>)>(IN_FLIGHT);
    let read = async move {
        let mut left = limit;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let n = match from.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(n) => n,
            };
            let mut chunk = buffer[..n].to_vec();
            if let Some(left) = &mut left {
                if *left <= n as u64 {
                    chunk.truncate(usize::try_from(*left).unwrap_or(n));
                    cut.store(true, Ordering::Relaxed);
                    let _ = send.send((Instant::now() + delay, chunk)).await;
                    return;
                }
                *left -= n as u64;
            }
            if send.send((Instant::now() + delay, chunk)).await.is_err() {
                return;
            }
        }
    };
    let write = async move {
        while let Some((at, chunk)) = due.recv().await {
            if !delay.is_zero() {
                sleep_until(at).await;
            }
            if to.write_all(&chunk).await.is_err() {
                return;
            }
        }
        if limit.is_none() {
            let _ = to.shutdown().await;
        }
    };
    tokio::join!(read, write);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers every 4 bytes with the same 4 bytes.
    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut word = [0; 4];
                    while stream.read_exact(&mut word).await.is_ok() {
                        if stream.write_all(&word).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        address
    }

    #[tokio::test]
    async fn a_round_trip_takes_twice_the_way_and_many_at_once_take_no_longer() {
        let way = Way {
            one_way: Duration::from_millis(10),
            cut_after: None,
        };
        let proxy = Proxy::start(echo().await, way, 1).await.expect("starts");
        let one = || async {
            let mut stream = TcpStream::connect(proxy.address()).await.expect("connects");
            let mut word = [0; 4];
            let start = Instant::now();
            for _ in 0..5 {
                stream.write_all(b"ping").await.expect("sends");
                stream.read_exact(&mut word).await.expect("is answered");
            }
            assert_eq!(&word, b"ping");
            start.elapsed()
        };
        let took = one().await;
        assert!(took >= Duration::from_millis(100), "{took:?}");
        let start = Instant::now();
        futures::future::join_all((0..20).map(|_| one())).await;
        // One after the other they would take two seconds.
        assert!(
            start.elapsed() < Duration::from_secs(1),
            "{:?}",
            start.elapsed()
        );
    }

    #[tokio::test]
    async fn a_flaky_way_cuts_connections_at_places_that_the_seed_decides() {
        let way = Way {
            one_way: Duration::ZERO,
            cut_after: Some(40),
        };
        let mut seen = vec![];
        for _ in 0..2 {
            let proxy = Proxy::start(echo().await, way, 7).await.expect("starts");
            let mut lengths = vec![];
            for _ in 0..4 {
                let mut stream = TcpStream::connect(proxy.address()).await.expect("connects");
                let mut got = 0;
                let mut word = [0; 4];
                loop {
                    if stream.write_all(b"ping").await.is_err()
                        || stream.read_exact(&mut word).await.is_err()
                    {
                        break;
                    }
                    got += 4;
                }
                assert!((16..=60).contains(&got), "{got}");
                lengths.push(got);
            }
            assert_eq!(proxy.connections(), 4);
            seen.push(lengths);
        }
        assert_eq!(seen[0], seen[1]);
        assert!(seen[0].iter().any(|l| *l != seen[0][0]), "{:?}", seen[0]);
    }
}
