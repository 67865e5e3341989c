//! `connections`: how the two API servers are reached where the network does not lead there by itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the API servers are reached from here; directly when absent. Whatever lies between, the server's certificate is checked against
/// its own name, and that name is looked up on the far side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Connections {
    /// Way to blue's API server. When absent, a `proxy-url` in the kubeconfig counts; nothing from the environment does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blue: Option<Connection>,
    /// Way to green's API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub green: Option<Connection>,
}

impl Connections {
    pub(super) fn is_default(&self) -> bool {
        *self == Connections::default()
    }
}

/// One way: a proxy, an SSH bastion or an SSM session. Only one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Connection {
    /// `http://host:port`, `https://host:port` or `socks5://host:port`, without name and password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Environment variable that holds `name:password` for the proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_credentials_env: Option<String>,
    /// An SSH bastion; crossfade starts `ssh -N -L`, starts it again when it ends, and ends it with itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh: Option<SshTunnel>,
    /// An instance with the SSM agent; crossfade starts `aws ssm start-session` (with the session-manager-plugin).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssm: Option<SsmTunnel>,
    /// Name that the server's certificate must carry, when it is not the host of its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_server_name: Option<String>,
}

/// An SSH bastion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SshTunnel {
    /// `user@bastion.example.com`, or a Host of the SSH configuration.
    pub host: String,
    /// Port, 1 to 65535; that of the SSH configuration when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Private key; relative to this file. The agent's keys when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_file: Option<String>,
    /// Further words for ssh, as in `["-J", "jump.example.com"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Program; `ssh` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// An instance that the Systems Manager reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SsmTunnel {
    /// Instance id, `i-...` or `mi-...`, in aws.region.
    pub target: String,
    /// Program; `aws` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}
