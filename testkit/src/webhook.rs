//! The token webhook of green's API server: what aws-iam-authenticator does for EKS.
//!
//! A token is `k8s-aws-v1.` + base64url of a pre-signed `sts:GetCallerIdentity` URL whose signed headers include
//! `x-k8s-aws-id: CLUSTER`. The header's value is not in the URL: it is proven by the signature, so the webhook
//! signs again with the cluster's name and compares. Then the emulator's STS says who it is, and the cluster's access
//! entries say what that means.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use hmac::{KeyInit, Mac};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::servers::pki::TestCa;
use crate::strict::State;
use crate::strict::eks::{self, catalogue};
use crate::strict::http::{self as wire, Reply, hex, parse_form, percent_encode, sha2_256};
use crate::strict::server;

/// Tokens live this long whatever their X-Amz-Expires says.
const TOKEN_LIFE_S: i64 = 15 * 60;

pub(crate) fn kubeconfig(address: SocketAddr, ca: &TestCa) -> String {
    let ca = base64::engine::general_purpose::STANDARD.encode(ca.pem());
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: aws-iam-authenticator\n  cluster:\n    \
         certificate-authority-data: {ca}\n    server: https://{address}/authenticate\nusers:\n- name: apiserver\n\
         contexts:\n- name: webhook\n  context:\n    cluster: aws-iam-authenticator\n    user: apiserver\n\
         current-context: webhook\n"
    )
}

pub(crate) async fn serve(
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    state: Arc<State>,
) {
    server::serve_tls(listener, tls, move |request| {
        let state = state.clone();
        async move { review(request, &state).await }
    })
    .await;
}

async fn review(request: ::http::Request<Incoming>, state: &State) -> Reply {
    let body = match request.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return wire::json_reply(400, &json!({"error": error.to_string()})),
    };
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let token = asked["spec"]["token"].as_str().unwrap_or("");
    let status = match identify(state, token).await {
        Ok(user) => json!({"authenticated": true, "user": user}),
        Err(why) => json!({"authenticated": false, "error": why}),
    };
    wire::json_reply(
        200,
        &json!({
            "apiVersion": asked["apiVersion"].as_str().unwrap_or("authentication.k8s.io/v1"),
            "kind": "TokenReview",
            "status": status,
        }),
    )
}

/// The Kubernetes user behind a token, or why there is none.
pub(crate) async fn identify(state: &State, token: &str) -> Result<Value, String> {
    let url = token
        .strip_prefix("k8s-aws-v1.")
        .ok_or("the token does not begin with k8s-aws-v1.")?;
    let url = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(url.trim_end_matches('='))
        .ok()
        .and_then(|b| String::from_utf8(b).ok())
        .ok_or("the token is not base64url text")?;
    let signed = Presigned::parse(&url)?;
    signed.check_age()?;
    let secret = state.secret_of(&signed.who).ok_or_else(|| {
        format!(
            "the bench does not know the secret of access key {}: Strict::learn_key tells it",
            signed.who
        )
    })?;
    let clusters: Vec<String> = {
        let mut store = state.lock_eks();
        store.sweep_quietly(&state.config);
        store.clusters.keys().cloned().collect()
    };
    // The one real API server stands for every cluster of the layer, so any of their names may be in the header.
    let cluster = clusters
        .iter()
        .find(|name| signed.signature_with(&secret, name) == signed.signature)
        .ok_or(
            "the signature fits no cluster's x-k8s-aws-id: wrong cluster name, or wrong secret",
        )?;
    let (arn, id) = {
        let (status, root) = state
            .ask("sts", &signed.who, "GetCallerIdentity", &[])
            .await;
        if status != 200 {
            return Err(format!(
                "STS answered {status} for access key {}",
                signed.who
            ));
        }
        let get = |key: &str| root.find(key).map(|e| e.text.clone()).unwrap_or_default();
        (get("Arn"), get("UserId"))
    };
    let principal = eks::principal_of(&arn);
    let session = arn.rsplit('/').next().unwrap_or("").to_owned();
    let current_id = eks::principal_id(state, &signed.who, &principal)
        .await
        .map_err(|r| r.message)?;
    let mut store = state.lock_eks();
    let known = store.cluster(cluster).map_err(|r| r.message)?;
    let entry = known
        .access
        .get(&principal)
        .ok_or_else(|| format!("{principal} has no access entry in cluster {cluster}"))?;
    if !entry.principal_id.is_empty() && entry.principal_id != current_id {
        return Err(format!(
            "{principal} was deleted and created again since its access entry was made; make the entry again"
        ));
    }
    let username = entry.doc["username"]
        .as_str()
        .unwrap_or(&principal)
        .replace("{{SessionName}}", &session);
    let mut groups: Vec<String> = entry.doc["kubernetesGroups"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|g| g.as_str().map(str::to_owned))
        .collect();
    // EKS authorizes policies itself; the bench's API server has RBAC only, so the admin policy becomes a group with all rights.
    if entry
        .policies
        .get(&catalogue::policy_arn("AmazonEKSClusterAdminPolicy"))
        .is_some_and(|p| p["accessScope"]["type"] == "cluster")
    {
        groups.push(crate::servers::kube::CLUSTER_ADMINS.into());
    }
    Ok(json!({
        "username": username,
        "uid": format!("aws-iam-authenticator:{}:{id}", state.config.account),
        "groups": groups,
        "extra": {"arn": [arn], "canonicalArn": [principal], "accessKeyId": [signed.who]},
    }))
}

/// A pre-signed GetCallerIdentity.
struct Presigned {
    host: String,
    path: String,
    /// As sent, without the signature.
    query: Vec<(String, String)>,
    who: String,
    date: String,
    scope: Vec<String>,
    headers: Vec<String>,
    signature: String,
}

impl Presigned {
    fn parse(url: &str) -> Result<Presigned, String> {
        let uri: ::http::Uri = url
            .parse()
            .map_err(|e| format!("the token holds no URL: {e}"))?;
        let host = uri
            .authority()
            .map(|a| a.as_str().to_owned())
            .unwrap_or_default();
        let mut query = parse_form(uri.query().unwrap_or(""));
        let take = |query: &[(String, String)], key: &str| {
            query
                .iter()
                .find(|(k, _)| k.eq_ignore_ascii_case(key))
                .map(|(_, v)| v.clone())
                .ok_or_else(|| format!("the token's URL has no {key}"))
        };
        if take(&query, "Action")? != "GetCallerIdentity" {
            return Err("the token's URL is not sts:GetCallerIdentity".into());
        }
        let credential = take(&query, "X-Amz-Credential")?;
        let mut scope: Vec<String> = credential.split('/').map(str::to_owned).collect();
        if scope.len() != 5 || scope[3] != "sts" {
            return Err(format!(
                "the token's credential scope is not STS's: {credential}"
            ));
        }
        let who = scope.remove(0);
        let headers: Vec<String> = take(&query, "X-Amz-SignedHeaders")?
            .split(';')
            .map(str::to_owned)
            .collect();
        if !headers.iter().any(|h| h == "x-k8s-aws-id") {
            return Err("the token does not sign x-k8s-aws-id".into());
        }
        let signature = take(&query, "X-Amz-Signature")?;
        let date = take(&query, "X-Amz-Date")?;
        query.retain(|(k, _)| !k.eq_ignore_ascii_case("X-Amz-Signature"));
        Ok(Presigned {
            host,
            path: if uri.path().is_empty() {
                "/".into()
            } else {
                uri.path().into()
            },
            query,
            who,
            date,
            scope,
            headers,
            signature,
        })
    }

    fn check_age(&self) -> Result<(), String> {
        let d = &self.date;
        let stamp = (d.len() == 16 && d.is_ascii())
            .then(|| {
                format!(
                    "{}-{}-{}T{}:{}:{}Z",
                    &d[0..4],
                    &d[4..6],
                    &d[6..8],
                    &d[9..11],
                    &d[11..13],
                    &d[13..15]
                )
            })
            .and_then(|t| t.parse::<jiff::Timestamp>().ok())
            .ok_or_else(|| format!("X-Amz-Date '{d}' is not a time"))?;
        let age = jiff::Timestamp::now().as_second() - stamp.as_second();
        if !(-TOKEN_LIFE_S..=TOKEN_LIFE_S).contains(&age) {
            return Err(format!(
                "the token was signed {age} s ago; tokens live {TOKEN_LIFE_S} s"
            ));
        }
        Ok(())
    }

    /// SigV4 of this URL if its `x-k8s-aws-id` were `cluster`.
    fn signature_with(&self, secret: &str, cluster: &str) -> String {
        let mut pairs: Vec<String> = self
            .query
            .iter()
            .map(|(k, v)| format!("{}={}", percent_encode(k), percent_encode(v)))
            .collect();
        pairs.sort();
        let headers: String = self
            .headers
            .iter()
            .map(|h| match h.as_str() {
                "host" => format!("host:{}\n", self.host),
                "x-k8s-aws-id" => format!("x-k8s-aws-id:{cluster}\n"),
                other => format!("{other}:\n"),
            })
            .collect();
        let canonical = format!(
            "GET\n{}\n{}\n{headers}\n{}\n{}",
            self.path,
            pairs.join("&"),
            self.headers.join(";"),
            hex(&sha2_256(b""))
        );
        let to_sign = format!(
            "AWS4-HMAC-SHA256\n{}\n{}\n{}",
            self.date,
            self.scope.join("/"),
            hex(&sha2_256(canonical.as_bytes()))
        );
        let mut key = format!("AWS4{secret}").into_bytes();
        for part in &self.scope {
            key = hmac_sha256(&key, part.as_bytes());
        }
        hex(&hmac_sha256(&key, to_sign.as_bytes()))
    }
}

fn hmac_sha256(key: &[u8], message: &[u8]) -> Vec<u8> {
    // HMAC takes keys of any length, so this cannot fail.
    let Ok(mut mac) = hmac::Hmac::<sha2::Sha256>::new_from_slice(key) else {
        return Vec::new();
    };
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}
