//! An HTTP CONNECT proxy and a SOCKS5 proxy, as small as they can be and as strict as they must be: the name of the target comes with the
//! request (resolved here, on the far side), an unknown one is refused in the protocol's own words.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::Names;

/// What both share: an address, a log of what was asked for, an end with the value.
struct Served {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An HTTP proxy that knows only CONNECT.
pub struct HttpProxy(Served);

/// A SOCKS5 proxy.
pub struct SocksProxy(Served);

#[derive(Clone)]
struct Rules {
    names: Names,
    /// `name:password`.
    credentials: Option<String>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Rules {
    fn note(&self, target: &str) {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(target.to_owned());
    }
}

async fn serve<F, Fut>(rules: Rules, one: F) -> io::Result<Served>
where
    F: Fn(TcpStream, Rules) -> Fut + Send + 'static,
    Fut: Future<Output = io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let asked = rules.asked.clone();
    let task = tokio::spawn(async move {
        // Connections end with the proxy, as they do when one is restarted.
        let mut open = tokio::task::JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            open.spawn(one(stream, rules.clone()));
        }
    });
    Ok(Served {
        address,
        asked,
        task,
    })
}

impl HttpProxy {
    pub async fn start(names: Names, credentials: Option<&str>) -> io::Result<HttpProxy> {
        let rules = Rules {
            names,
            credentials: credentials.map(str::to_owned),
            asked: Arc::default(),
        };
        Ok(HttpProxy(serve(rules, connect).await?))
    }
    pub fn url(&self) -> String {
        format!("http://{}", self.0.address)
    }
    /// Every target that was asked for, as it was spelled.
    pub fn asked(&self) -> Vec<String> {
        self.0
            .asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl SocksProxy {
    pub async fn start(names: Names, credentials: Option<&str>) -> io::Result<SocksProxy> {
        let rules = Rules {
            names,
            credentials: credentials.map(str::to_owned),
            asked: Arc::default(),
        };
        Ok(SocksProxy(serve(rules, socks).await?))
    }
    pub fn url(&self) -> String {
        format!("socks5://{}", self.0.address)
    }
    pub fn asked(&self) -> Vec<String> {
        self.0
            .asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

async fn connect(mut client: TcpStream, rules: Rules) -> io::Result<()> {
    let mut head = vec![];
    while !head.ends_with(b"\r\n\r\n") && head.len() < 8192 {
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, target) = (
        words.next().unwrap_or(""),
        words.next().unwrap_or("").to_owned(),
    );
    rules.note(&target);
    let answer = |line: &str| format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n").into_bytes();
    if method != "CONNECT" {
        return client.write_all(&answer("405 Method Not Allowed")).await;
    }
    if let Some(wanted) = &rules.credentials {
        let value = base64::engine::general_purpose::STANDARD.encode(wanted);
        let shown = head.lines().any(|l| {
            l.split_once(": ").is_some_and(|(k, v)| {
                k.eq_ignore_ascii_case("proxy-authorization") && v == format!("Basic {value}")
            })
        });
        if !shown {
            return client
                .write_all(&answer(
                    "407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"far\"",
                ))
                .await;
        }
    }
    let Some(to) = rules.names.resolve(&target) else {
        return client.write_all(&answer("502 Bad Gateway")).await;
    };
    let Ok(mut server) = TcpStream::connect(to).await else {
        return client.write_all(&answer("504 Gateway Timeout")).await;
    };
    client
        .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        .await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

async fn socks(mut client: TcpStream, rules: Rules) -> io::Result<()> {
    let bad = || io::Error::other("not SOCKS5");
    let mut head = [0; 2];
    client.read_exact(&mut head).await?;
    if head[0] != 5 {
        return Err(bad());
    }
    let mut methods = vec![0; usize::from(head[1])];
    client.read_exact(&mut methods).await?;
    let method = if rules.credentials.is_some() { 2 } else { 0 };
    if !methods.contains(&method) {
        return client.write_all(&[5, 0xff]).await;
    }
    client.write_all(&[5, method]).await?;
    if let Some(wanted) = &rules.credentials {
        let text = async |client: &mut TcpStream| -> io::Result<String> {
            let mut text = vec![0; usize::from(client.read_u8().await?)];
            client.read_exact(&mut text).await?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        };
        if client.read_u8().await? != 1 {
            return Err(bad());
        }
        let shown = format!("{}:{}", text(&mut client).await?, text(&mut client).await?);
        if shown != *wanted {
            return client.write_all(&[1, 1]).await;
        }
        client.write_all(&[1, 0]).await?;
    }
    let mut ask = [0; 4];
    client.read_exact(&mut ask).await?;
    let host = match ask[3] {
        1 => {
            let mut ip = [0; 4];
            client.read_exact(&mut ip).await?;
            std::net::Ipv4Addr::from(ip).to_string()
        }
        3 => {
            let mut name = vec![0; usize::from(client.read_u8().await?)];
            client.read_exact(&mut name).await?;
            String::from_utf8_lossy(&name).into_owned()
        }
        _ => return client.write_all(&[5, 8, 0, 1, 0, 0, 0, 0, 0, 0]).await,
    };
    let target = format!("{host}:{}", client.read_u16().await?);
    rules.note(&target);
    let Some(to) = rules.names.resolve(&target) else {
        return client.write_all(&[5, 4, 0, 1, 0, 0, 0, 0, 0, 0]).await;
    };
    let Ok(mut server) = TcpStream::connect(to).await else {
        return client.write_all(&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]).await;
    };
    // Bound to a name: clients must read past whatever stands here.
    client.write_all(b"\x05\x00\x00\x03\x03far\x04\x38").await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
