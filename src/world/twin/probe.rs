//! HTTP and DNS as crossfade's own probes see them.

use super::Twin;
use super::lb::{Route, normal};
use super::state::State;
use crate::object::sha256_hex;
use crate::world::probe::{DnsAnswer, HttpAnswer, HttpProbe, Probe, Via};
use crate::world::{Class, Error, Result};
use async_trait::async_trait;
use std::collections::BTreeMap;

/// Client number of rows that probes write.
const PROBE_CLIENT: u32 = 99;

impl State {
    fn http(&mut self, probe: &HttpProbe) -> Result<HttpAnswer> {
        let at = format!("http/{}{}", probe.host, probe.path);
        let address = match &probe.via {
            Via::LoadBalancer(a) => normal(a),
            Via::Dns => {
                self.look_up(&probe.host)
                    .ok_or_else(|| {
                        Error::new(Class::Unreachable, &at, "the name does not resolve")
                    })?
                    .0
            }
        };
        let (status, body, side) = match self.route(&address, &probe.host) {
            Route::Nobody => {
                return Err(Error::new(
                    Class::Unreachable,
                    &at,
                    format!("connection to {address} refused"),
                ));
            }
            Route::NoHost(side) => (404, "default backend - 404".to_owned(), side),
            Route::NoPods(side, _) => (503, "no endpoints".to_owned(), side),
            Route::Served(side, service) => {
                let written = self
                    .write_probes
                    .iter()
                    .find_map(|(set, (host, path, method))| {
                        (*host == probe.host && *path == probe.path && *method == probe.method)
                            .then(|| set.clone())
                    });
                match written {
                    None => (200, format!("{{\"app\":\"{service}\"}}"), side),
                    Some(set) => {
                        let row = (PROBE_CLIENT, self.next_row());
                        match self.insert_row(&set, side, row) {
                            Some(id) => {
                                self.acknowledge(&set, id, row);
                                (201, format!("{{\"id\":{id}}}"), side)
                            }
                            None => (503, "the database is closed for writes".to_owned(), side),
                        }
                    }
                }
            }
        };
        Ok(HttpAnswer {
            status,
            headers: BTreeMap::from([("x-served-by".into(), side.to_string())]),
            body_sha256: sha256_hex(body),
            address,
        })
    }
}

#[async_trait]
impl Probe for Twin {
    async fn http(&self, probe: &HttpProbe) -> Result<HttpAnswer> {
        self.call(
            format!("probe {} {}{}", probe.method, probe.host, probe.path),
            false,
            |s| s.http(probe),
        )
        .await
    }
    async fn resolve(&self, name: &str, rtype: &str) -> Result<DnsAnswer> {
        self.call(format!("probe resolve {name} {rtype}"), false, |s| {
            if let Some(r) = s.dns.answer(name, rtype) {
                let mut values = match &r.alias {
                    Some(a) => vec![normal(&a.name)],
                    None => r.values.clone(),
                };
                values.sort();
                return Ok(DnsAnswer {
                    values,
                    ttl: r.ttl.unwrap_or(60),
                });
            }
            let (address, ttl) = s
                .look_up(name)
                .filter(|_| matches!(rtype, "A" | "AAAA"))
                .ok_or_else(|| Error::new(Class::NotFound, name, format!("no {rtype} record")))?;
            Ok(DnsAnswer {
                values: vec![address],
                ttl: ttl as u32,
            })
        })
        .await
    }
}
