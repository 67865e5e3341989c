//! Traffic that never stops: clients that ask every host, and writers that remember each acknowledged order.

mod clients;
#[cfg(test)]
mod tests;
mod writers;

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response};

use crate::apps::http::{Pool, collect, through_proxy};

pub use self::clients::{Clients, ClientsConfig, Outcome, Report, Sample, Target};
pub use self::writers::{Ack, WriteReport, Writers, WritersConfig};

/// A request without an answer after this time has failed.
const TIMEOUT: Duration = Duration::from_secs(10);

/// One request to a virtual address through the gateway.
async fn send(
    pool: &Pool,
    gateway: SocketAddr,
    method: Method,
    address: &str,
    path: &str,
    host: &str,
    body: Bytes,
) -> Result<Response<Bytes>, String> {
    let request = through_proxy(method, gateway, address, path, host, body)
        .map_err(|error| error.to_string())?;
    let exchange = async {
        let response = pool
            .request(request)
            .await
            .map_err(|error| error.to_string())?;
        collect(response).await
    };
    match tokio::time::timeout(TIMEOUT, exchange).await {
        Ok(result) => result,
        Err(_) => Err(format!("no answer in {TIMEOUT:?}")),
    }
}
