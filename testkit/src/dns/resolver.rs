//! Caching resolvers of three tempers, between the clients and the authoritative server.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::time::Instant;

use super::wire::{Server, ask, reply};

/// How long an answer is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As long as its TTL says.
    TtlTrue,
    /// At least this long, whatever the TTL says (some providers do).
    MinTtl(Duration),
    /// For ever once it is positive, as a JVM with `networkaddress.cache.ttl=-1` does; failures for 10 s.
    Forever,
}

/// How long a [`Mode::Forever`] client believes a failure.
const JVM_NEGATIVE: Duration = Duration::from_secs(10);

type Key = (String, RecordType);

#[derive(Clone, Debug)]
struct Entry {
    code: ResponseCode,
    answers: Vec<Record>,
    authorities: Vec<Record>,
    stored: Instant,
    /// `None`: never expires.
    life: Option<Duration>,
}

#[derive(Debug)]
struct Cache {
    authority: SocketAddr,
    mode: Mode,
    entries: Mutex<HashMap<Key, Entry>>,
}

/// A running resolver, reachable by DNS at [`Resolver::addr`] and in the process by [`Resolver::lookup`]: one cache. Cheap to
/// clone; it ends with the last clone.
#[derive(Clone, Debug)]
pub struct Resolver {
    cache: Arc<Cache>,
    server: Arc<Server>,
}

impl Resolver {
    /// Starts a resolver on a free port of 127.0.0.1 that asks `authority`.
    pub async fn start(authority: SocketAddr, mode: Mode) -> io::Result<Self> {
        let cache = Arc::new(Cache {
            authority,
            mode,
            entries: Mutex::default(),
        });
        let shared = cache.clone();
        let server = Server::start(move |request: Message| {
            let cache = shared.clone();
            async move { cache.respond(&request).await }
        })
        .await?;
        Ok(Resolver {
            cache,
            server: Arc::new(server),
        })
    }

    /// Where it listens, UDP and TCP.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr
    }

    /// How it caches.
    pub fn mode(&self) -> Mode {
        self.cache.mode
    }

    /// The addresses of a host, through the cache. The error says what the answer was.
    pub async fn lookup(&self, host: &str) -> Result<Vec<Ipv4Addr>, String> {
        let name = Name::from_ascii(host).map_err(|error| format!("{host}: {error}"))?;
        let entry = self
            .cache
            .entry(name, RecordType::A)
            .await
            .map_err(|error| format!("{host}: {error}"))?;
        let addresses: Vec<Ipv4Addr> = entry
            .answers
            .iter()
            .filter_map(|record| match &record.data {
                RData::A(address) => Some(address.0),
                _ => None,
            })
            .collect();
        match addresses.is_empty() {
            true => Err(format!("{host}: {} without an address", entry.code)),
            false => Ok(addresses),
        }
    }

    /// Forgets everything: the process that held this cache was restarted.
    pub fn flush(&self) {
        self.cache
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

impl Cache {
    async fn respond(&self, request: &Message) -> Message {
        let Some(question) = request.queries.first() else {
            return reply(request, ResponseCode::FormErr);
        };
        let mut response = match self
            .entry(question.name().clone(), question.query_type())
            .await
        {
            Ok(entry) => {
                let mut response = reply(request, entry.code);
                response.add_answers(entry.answers);
                response.add_authorities(entry.authorities);
                response
            }
            Err(_) => reply(request, ResponseCode::ServFail),
        };
        response.metadata.recursion_available = true;
        response
    }

    /// From the cache with the TTLs counted down, or fresh.
    async fn entry(&self, name: Name, kind: RecordType) -> io::Result<Entry> {
        let key = (super::zone::normal(&name.to_ascii()), kind);
        let cached = self
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .cloned();
        if let Some(entry) = cached {
            let age = entry.stored.elapsed();
            match entry.life {
                None => return Ok(entry),
                Some(life) if age < life => return Ok(entry.aged(age)),
                Some(_) => {}
            }
        }
        let message = ask(self.authority, name, kind).await?;
        let entry = self.keep(message)?;
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.insert(key, entry.clone());
        Ok(entry)
    }

    /// What a fresh answer becomes in the cache; a SERVFAIL or REFUSED is an error and not kept.
    fn keep(&self, message: Message) -> io::Result<Entry> {
        let code = message.metadata.response_code;
        if code != ResponseCode::NoError && code != ResponseCode::NXDomain {
            return Err(io::Error::other(format!(
                "the authoritative server says {code}"
            )));
        }
        let (mut answers, authorities) = (message.answers, message.authorities);
        let negative = answers
            .iter()
            .all(|record| record.record_type() == RecordType::CNAME);
        if let Mode::MinTtl(least) = self.mode {
            let least = u32::try_from(least.as_secs()).unwrap_or(u32::MAX);
            for record in &mut answers {
                record.ttl = record.ttl.max(least);
            }
        }
        let shortest = answers
            .iter()
            .chain(&authorities)
            .map(|record| record.ttl)
            .min()
            .unwrap_or(0);
        let life = match (self.mode, negative) {
            (Mode::Forever, false) => None,
            (Mode::Forever, true) => Some(JVM_NEGATIVE),
            (Mode::TtlTrue | Mode::MinTtl(_), _) => Some(Duration::from_secs(u64::from(shortest))),
        };
        Ok(Entry {
            code,
            answers,
            authorities,
            stored: Instant::now(),
            life,
        })
    }
}

impl Entry {
    fn aged(mut self, age: Duration) -> Self {
        let seconds = u32::try_from(age.as_secs()).unwrap_or(u32::MAX);
        for record in self.answers.iter_mut().chain(&mut self.authorities) {
            record.ttl = record.ttl.saturating_sub(seconds);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns::query;
    use hickory_proto::rr::rdata::A;
    use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

    /// An authority whose only name has TTL 1 and moves when told.
    async fn moving() -> (Server, Arc<AtomicU8>, Arc<AtomicU32>) {
        let last = Arc::new(AtomicU8::new(10));
        let asked = Arc::new(AtomicU32::new(0));
        let (now, count) = (last.clone(), asked.clone());
        let server = Server::start(move |request: Message| {
            count.fetch_add(1, Ordering::SeqCst);
            let mut response = reply(&request, ResponseCode::NoError);
            let address = Ipv4Addr::new(203, 0, 113, now.load(Ordering::SeqCst));
            response.add_answer(Record::from_rdata(
                request.queries[0].name().clone(),
                1,
                RData::A(A(address)),
            ));
            async move { response }
        })
        .await
        .unwrap();
        (server, last, asked)
    }

    #[tokio::test]
    async fn after_a_record_moves_the_honest_resolver_follows_the_stubborn_one_later_and_the_jvm_never()
     {
        let (authority, last, asked) = moving().await;
        let honest = Resolver::start(authority.addr, Mode::TtlTrue)
            .await
            .unwrap();
        let stubborn = Resolver::start(authority.addr, Mode::MinTtl(Duration::from_secs(3)))
            .await
            .unwrap();
        let jvm = Resolver::start(authority.addr, Mode::Forever)
            .await
            .unwrap();
        let old = vec![Ipv4Addr::new(203, 0, 113, 10)];
        let new = vec![Ipv4Addr::new(203, 0, 113, 20)];
        for resolver in [&honest, &stubborn, &jvm] {
            assert_eq!(resolver.lookup("www.shop.test").await.unwrap(), old);
            assert_eq!(resolver.lookup("WWW.shop.test.").await.unwrap(), old);
        }
        assert_eq!(
            asked.load(Ordering::SeqCst),
            3,
            "the second question is answered from the cache"
        );
        last.store(20, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(1100)).await;
        assert_eq!(honest.lookup("www.shop.test").await.unwrap(), new);
        assert_eq!(stubborn.lookup("www.shop.test").await.unwrap(), old);
        let message = query(stubborn.addr(), "www.shop.test", RecordType::A)
            .await
            .unwrap();
        assert_eq!(message.answers[0].ttl, 2, "the TTL counts down");
        assert!(!message.metadata.authoritative && message.metadata.recursion_available);
        tokio::time::sleep(Duration::from_millis(2100)).await;
        assert_eq!(stubborn.lookup("www.shop.test").await.unwrap(), new);
        assert_eq!(jvm.lookup("www.shop.test").await.unwrap(), old);
        jvm.flush();
        assert_eq!(jvm.lookup("www.shop.test").await.unwrap(), new);
    }
}
