//! Rules of `provision`.

use super::*;
use crate::spec::model::Via;

/// Settings of Terraform's backends that are credentials: the rendering and its folder never hold any.
const SECRET: &[&str] = &[
    "access_key",
    "client_secret",
    "conn_str",
    "credentials",
    "encryption_key",
    "password",
    "secret_key",
    "security_token",
    "session_token",
    "token",
    "sas_token",
];

/// Backends that keep the state by themselves; `remote` and `cloud` run plans elsewhere, where nothing can be pinned.
const BACKENDS: &[&str] = &[
    "azurerm",
    "consul",
    "cos",
    "gcs",
    "http",
    "kubernetes",
    "local",
    "oss",
    "pg",
    "s3",
];

impl Checker<'_> {
    pub(super) fn provision(&self, spec: &Spec) -> Result<()> {
        let p = &spec.provision;
        if p.via == Via::Aws {
            for (field, given) in [
                ("binary", p.binary.is_some()),
                ("backend", p.backend.is_some()),
            ] {
                if given {
                    return Err(self.refuse(
                        &["provision", field],
                        format!(
                            "`provision.{field}` is given, but crossfade makes the resources itself"
                        ),
                        "add `via: terraform`, or leave it out",
                    ));
                }
            }
        }
        if let Some(binary) = &p.binary {
            self.not_empty(&["provision", "binary"], binary)?;
            if binary.starts_with('-') || binary.chars().any(char::is_whitespace) {
                return Err(self.refuse(
                    &["provision", "binary"],
                    format!("`{binary}` is no program"),
                    "give its name (`tofu`) or path, without arguments",
                ));
            }
        }
        let Some(backend) = &p.backend else {
            return Ok(());
        };
        if !BACKENDS.contains(&backend.kind.as_str()) {
            return Err(self.refuse(
                &["provision", "backend", "type"],
                format!("`{}` is no backend that crossfade can use", backend.kind),
                format!("one of {}", BACKENDS.join(", ")),
            ));
        }
        for key in backend.config.keys() {
            let path = ["provision", "backend", "config", key.as_str()];
            if SECRET.contains(&key.as_str()) {
                return Err(self.refuse(
                    &path,
                    format!("`{key}` is a credential"),
                    "give it to Terraform by its environment: nothing that crossfade writes holds a secret",
                ));
            }
            let name = key.starts_with(|c: char| c.is_ascii_alphabetic())
                && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !name {
                return Err(self.refuse(
                    &path,
                    format!("`{key}` is no setting of a backend"),
                    "use its name in Terraform, as in `bucket`",
                ));
            }
        }
        Ok(())
    }
}
