//! DNS questions: one packet to one named server, TCP when the answer does not fit.

use crate::world::probe::DnsAnswer;
use crate::world::{Class, Error, Result};
use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

const PATIENCE: Duration = Duration::from_secs(3);
/// A datagram is lost now and then; each server is asked this often.
const TRIES: u32 = 2;
/// Longest chain of names that is followed.
const MAX_CHAIN: usize = 8;

pub(super) struct Resolver {
    /// The server that the spec declares; it stands for users' resolver and for the authority alike.
    declared: Option<SocketAddr>,
}

impl Resolver {
    pub(super) fn new(declared: Option<SocketAddr>) -> Self {
        Resolver { declared }
    }

    fn recursive(&self) -> Result<Vec<SocketAddr>> {
        if let Some(d) = self.declared {
            return Ok(vec![d]);
        }
        let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        let servers = name_servers(&text);
        if servers.is_empty() {
            return Err(
                Error::new(Class::Refused, "dns", "/etc/resolv.conf names no server")
                    .remedy("set probes.resolver in migration.yaml"),
            );
        }
        Ok(servers)
    }

    /// IPv4 addresses of a host, as a user's resolver gives them.
    pub(super) async fn addresses(&self, host: &str) -> Result<Vec<String>> {
        let servers = self.recursive()?;
        let mut name = host.to_string();
        for _ in 0..MAX_CHAIN {
            let answer = ask_any(&servers, &name, RecordType::A, true).await?;
            let found: Vec<String> = answer
                .answers
                .iter()
                .filter_map(|r| match &r.data {
                    RData::A(a) => Some(a.0.to_string()),
                    _ => None,
                })
                .collect();
            if !found.is_empty() {
                return Ok(found);
            }
            // A server that does not follow a CNAME leaves the rest of the chain to us.
            let next = answer.answers.iter().rev().find_map(|r| match &r.data {
                RData::CNAME(c) => Some(c.0.to_ascii()),
                _ => None,
            });
            match next {
                Some(n) => name = n,
                None => return Ok(vec![]),
            }
        }
        Err(Error::new(
            Class::Refused,
            host,
            "the chain of CNAME records does not end",
        ))
    }

    /// The answer of the declared server, or of the zone's own servers: no cache in between.
    pub(super) async fn authoritative(&self, name: &str, rtype: &str) -> Result<DnsAnswer> {
        let kind: RecordType = rtype
            .parse()
            .map_err(|_| Error::new(Class::Refused, name, format!("{rtype} is no record type")))?;
        let (servers, recurse) = match self.declared {
            Some(d) => (vec![d], true),
            None => (self.authority(name).await?, false),
        };
        let answer = ask_any(&servers, name, kind, recurse).await?;
        let mut values: Vec<String> = answer
            .answers
            .iter()
            .filter(|r| r.record_type() == kind)
            .map(|r| spell(&r.data))
            .collect();
        values.sort();
        Ok(DnsAnswer {
            values,
            ttl: answer.answers.iter().map(|r| r.ttl).min().unwrap_or(0),
        })
    }

    /// Addresses of the name servers of the nearest zone above a name.
    async fn authority(&self, name: &str) -> Result<Vec<SocketAddr>> {
        let recursive = self.recursive()?;
        let mut zone = name.trim_end_matches('.');
        loop {
            let ns = match ask_any(&recursive, zone, RecordType::NS, true).await {
                Ok(a) => a,
                Err(e) if e.class == Class::NotFound => Message::query(),
                Err(e) => return Err(e),
            };
            let mut servers = vec![];
            for r in &ns.answers {
                if let RData::NS(host) = &r.data {
                    for address in self.addresses(&host.0.to_ascii()).await.unwrap_or_default() {
                        servers.extend(
                            address
                                .parse::<IpAddr>()
                                .ok()
                                .map(|ip| SocketAddr::new(ip, 53)),
                        );
                    }
                }
            }
            if !servers.is_empty() {
                return Ok(servers);
            }
            zone = match zone.split_once('.') {
                Some((_, parent)) if !parent.is_empty() => parent,
                _ => return Ok(recursive),
            };
        }
    }
}

/// `nameserver` lines of resolv.conf.
fn name_servers(text: &str) -> Vec<SocketAddr> {
    text.lines()
        .filter_map(|l| l.trim().strip_prefix("nameserver"))
        .filter_map(|a| a.trim().parse::<IpAddr>().ok())
        .map(|ip| SocketAddr::new(ip, 53))
        .collect()
}

/// A value as Route 53 spells it.
fn spell(data: &RData) -> String {
    match data {
        RData::TXT(t) => t
            .txt_data
            .iter()
            .map(|part| {
                let text = String::from_utf8_lossy(part);
                format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
            })
            .collect::<Vec<_>>()
            .join(" "),
        RData::CNAME(c) => c.0.to_ascii().to_lowercase(),
        other => other.to_string(),
    }
}

async fn ask_any(
    servers: &[SocketAddr],
    name: &str,
    rtype: RecordType,
    recurse: bool,
) -> Result<Message> {
    let mut last = None;
    for _ in 0..TRIES {
        for server in servers {
            match ask(*server, name, rtype, recurse).await {
                Ok(m) => return Ok(m),
                Err(e) if e.class == Class::Unreachable => last = Some(e),
                Err(e) => return Err(e),
            }
        }
    }
    Err(last.unwrap_or_else(|| Error::new(Class::Refused, name, "no server to ask")))
}

async fn ask(server: SocketAddr, name: &str, rtype: RecordType, recurse: bool) -> Result<Message> {
    let at = format!("{name} {rtype} at {server}");
    let lost = |e: String| Error::new(Class::Unreachable, &at, e);
    let mut qname = Name::from_ascii(name)
        .map_err(|e| Error::new(Class::Refused, &at, format!("this is no DNS name: {e}")))?;
    qname.set_fqdn(true);
    let mut query = Message::new(message_id(), MessageType::Query, OpCode::Query);
    query.metadata.recursion_desired = recurse;
    query.add_query(Query::query(qname, rtype));
    let bytes = query
        .to_vec()
        .map_err(|e| Error::new(Class::Internal, &at, e.to_string()))?;
    let mut answer = tokio::time::timeout(PATIENCE, over_udp(server, &bytes, query.metadata.id))
        .await
        .map_err(|_| lost("no answer".into()))?
        .map_err(&lost)?;
    if answer.metadata.truncation {
        answer = tokio::time::timeout(PATIENCE, over_tcp(server, &bytes))
            .await
            .map_err(|_| lost("no answer over TCP".into()))?
            .map_err(&lost)?;
    }
    match answer.metadata.response_code {
        ResponseCode::NoError => Ok(answer),
        ResponseCode::NXDomain => Err(Error::new(
            Class::NotFound,
            &at,
            "there is no such name (NXDOMAIN)",
        )),
        other => Err(lost(format!("the server answered {other}"))),
    }
}

/// Not a secret, only different from the questions before: each one has its own socket.
fn message_id() -> u16 {
    use std::sync::atomic::{AtomicU16, Ordering};
    static NEXT: AtomicU16 = AtomicU16::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

async fn over_udp(
    server: SocketAddr,
    query: &[u8],
    id: u16,
) -> std::result::Result<Message, String> {
    let local = if server.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(local).await.map_err(|e| e.to_string())?;
    socket.connect(server).await.map_err(|e| e.to_string())?;
    socket.send(query).await.map_err(|e| e.to_string())?;
    let mut buffer = vec![0; 65_535];
    loop {
        let n = socket.recv(&mut buffer).await.map_err(|e| e.to_string())?;
        // An answer to something else is not ours.
        if let Ok(m) = Message::from_vec(&buffer[..n])
            && m.metadata.id == id
        {
            return Ok(m);
        }
    }
}

async fn over_tcp(server: SocketAddr, query: &[u8]) -> std::result::Result<Message, String> {
    let io = |e: std::io::Error| e.to_string();
    let mut stream = TcpStream::connect(server).await.map_err(io)?;
    let length = u16::try_from(query.len()).map_err(|e| e.to_string())?;
    stream.write_all(&length.to_be_bytes()).await.map_err(io)?;
    stream.write_all(query).await.map_err(io)?;
    let mut head = [0; 2];
    stream.read_exact(&mut head).await.map_err(io)?;
    let mut body = vec![0; usize::from(u16::from_be_bytes(head))];
    stream.read_exact(&mut body).await.map_err(io)?;
    Message::from_vec(&body).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::rr::Record;
    use hickory_proto::rr::rdata::{A, TXT};

    /// A server that answers every question with these records and code, and says whether recursion was asked for.
    async fn server(records: Vec<(u32, RData)>, code: ResponseCode) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut buffer = vec![0; 4096];
            while let Ok((n, from)) = socket.recv_from(&mut buffer).await {
                let query = Message::from_vec(&buffer[..n]).unwrap();
                let mut m = Message::new(query.metadata.id, MessageType::Response, OpCode::Query);
                m.metadata.response_code = code;
                for q in &query.queries {
                    m.add_query(q.clone());
                }
                for (ttl, data) in &records {
                    m.add_answer(Record::from_rdata(
                        query.queries[0].name().clone(),
                        *ttl,
                        data.clone(),
                    ));
                }
                socket.send_to(&m.to_vec().unwrap(), from).await.unwrap();
            }
        });
        address
    }

    #[tokio::test]
    async fn values_are_sorted_and_the_smallest_ttl_counts() {
        let s = server(
            vec![
                (60, RData::A(A::new(192, 0, 2, 9))),
                (20, RData::A(A::new(192, 0, 2, 1))),
            ],
            ResponseCode::NoError,
        )
        .await;
        let answer = Resolver::new(Some(s))
            .authoritative("www.shop.test", "A")
            .await
            .unwrap();
        assert_eq!(answer.values, ["192.0.2.1", "192.0.2.9"]);
        assert_eq!(answer.ttl, 20);
    }

    #[tokio::test]
    async fn a_name_that_does_not_exist_is_not_found() {
        let s = server(vec![], ResponseCode::NXDomain).await;
        let e = Resolver::new(Some(s))
            .authoritative("nothing.shop.test", "A")
            .await
            .unwrap_err();
        assert_eq!(e.class, Class::NotFound);
    }

    #[tokio::test]
    async fn a_text_value_is_quoted_as_route_53_lists_it() {
        let s = server(
            vec![(
                300,
                RData::TXT(TXT::new(vec!["heritage=external-dns".into()])),
            )],
            ResponseCode::NoError,
        )
        .await;
        let answer = Resolver::new(Some(s))
            .authoritative("www.shop.test", "TXT")
            .await
            .unwrap();
        assert_eq!(answer.values, ["\"heritage=external-dns\""]);
    }

    #[tokio::test]
    async fn a_server_in_trouble_is_unreachable_not_a_missing_name() {
        let s = server(vec![], ResponseCode::ServFail).await;
        let e = Resolver::new(Some(s))
            .authoritative("www.shop.test", "A")
            .await
            .unwrap_err();
        assert_eq!(e.class, Class::Unreachable);
    }

    #[test]
    fn resolv_conf_is_read_leniently() {
        assert_eq!(
            name_servers("# x\nnameserver 192.0.2.53\nsearch shop.test\nnameserver ::1\n"),
            [
                "192.0.2.53:53".parse().unwrap(),
                "[::1]:53".parse().unwrap()
            ]
        );
    }
}
