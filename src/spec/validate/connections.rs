//! Rules of `connections`.

use super::*;
use crate::spec::connections::Connection;

impl Checker<'_> {
    pub(super) fn connections(&self, spec: &Spec) -> Result<()> {
        for (side, way) in [
            ("blue", &spec.connections.blue),
            ("green", &spec.connections.green),
        ] {
            if let Some(way) = way {
                self.connection(side, way)?;
            }
        }
        Ok(())
    }

    fn connection(&self, side: &str, way: &Connection) -> Result<()> {
        let at = ["connections", side];
        let within = |key: &'static str| ["connections", side, key];
        let ways = [way.proxy.is_some(), way.ssh.is_some(), way.ssm.is_some()];
        match ways.iter().filter(|w| **w).count() {
            0 if way.tls_server_name.is_none() => {
                return Err(self.refuse(
                    &at,
                    format!("`connections.{side}` names no way"),
                    "give one of proxy, ssh and ssm, or take it out to connect directly",
                ));
            }
            0 | 1 => {}
            _ => {
                return Err(self.refuse(
                    &at,
                    format!("`connections.{side}` names several ways"),
                    "keep one of proxy, ssh and ssm (a jump host before a bastion goes into ssh.options: [\"-J\", \"jump\"])",
                ));
            }
        }
        if let Some(proxy) = &way.proxy {
            proxy_url(proxy).map_err(|(why, remedy)| {
                // Never quoted: it may hold a password.
                self.refuse(&within("proxy"), why, remedy)
            })?;
        }
        if way.proxy_credentials_env.is_some() && way.proxy.is_none() {
            return Err(self.refuse(
                &within("proxyCredentialsEnv"),
                "there is no proxy to give a password to",
                "add proxy, or take this out",
            ));
        }
        if let Some(ssh) = &way.ssh {
            // A word that begins with `-` would be an option of ssh, and some options run programs.
            if ssh.host.trim().is_empty()
                || ssh.host.starts_with('-')
                || ssh.host.contains(char::is_whitespace)
            {
                return Err(self.refuse(
                    &["connections", side, "ssh", "host"],
                    format!("`{}` is no host for ssh", ssh.host),
                    "write it as user@bastion.example.com; options go into ssh.options",
                ));
            }
            if ssh.port == Some(0) {
                return Err(self.refuse(
                    &["connections", side, "ssh", "port"],
                    "port 0 is no port",
                    "give 1 to 65535",
                ));
            }
        }
        if let Some(ssm) = &way.ssm {
            let good = ssm
                .target
                .strip_prefix("mi-")
                .or(ssm.target.strip_prefix("i-"))
                .is_some_and(|id| id.len() >= 8 && id.bytes().all(|b| b.is_ascii_hexdigit()));
            if !good {
                return Err(self.refuse(
                    &["connections", side, "ssm", "target"],
                    format!("`{}` is no instance id", ssm.target),
                    "write it as i-0123456789abcdef0 (or mi-... of a managed node)",
                ));
            }
        }
        if let Some(name) = &way.tls_server_name
            && (!is_host(name) || name.contains('*'))
            && name.parse::<std::net::IpAddr>().is_err()
        {
            return Err(self.refuse(
                &within("tlsServerName"),
                format!("`{name}` is no name of a server"),
                "give the DNS name that is in its certificate",
            ));
        }
        Ok(())
    }
}

/// Whether this is a proxy that can be used; why not, and what to do.
fn proxy_url(url: &str) -> std::result::Result<(), (String, &'static str)> {
    const FORM: &str = "write it as http://host:port, https://host:port or socks5://host:port";
    let parsed: http::Uri = url
        .parse()
        .map_err(|_| ("this is no URL of a proxy".to_string(), FORM))?;
    let (Some(scheme), Some(authority)) = (parsed.scheme_str(), parsed.authority()) else {
        return Err(("this is no URL of a proxy".into(), FORM));
    };
    if !matches!(scheme, "http" | "https" | "socks5" | "socks5h") {
        return Err((
            format!("`{scheme}` is no kind of proxy that is known"),
            FORM,
        ));
    }
    if authority.as_str().contains('@') {
        return Err((
            "a password must not stand in this file".into(),
            "put name:password into an environment variable and name it in proxyCredentialsEnv",
        ));
    }
    if authority.host().is_empty() {
        return Err(("the proxy has no host".into(), FORM));
    }
    if !matches!(parsed.path(), "" | "/") {
        return Err(("a proxy has no path".into(), FORM));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::spec::parse;

    fn said(connections: &str) -> Result<(), (String, String)> {
        let text = format!(
            "apiVersion: crossfade.dev/v1alpha1\nkind: Migration\nname: shop\nblue: {{cluster: shop.test}}\ngreen: {{name: shop-green}}\nconnections:\n{connections}"
        );
        parse(&text, "migration.yaml")
            .map(|_| ())
            .map_err(|e| (e.message, e.at))
    }

    #[test]
    fn a_proxy_a_bastion_and_an_ssm_target_are_each_a_way() {
        for good in [
            "  green: {proxy: 'http://proxy.example.com:3128', proxyCredentialsEnv: PROXY}\n",
            "  green: {proxy: 'socks5://127.0.0.1:1080'}\n  blue: {proxy: 'https://proxy.example.com'}\n",
            "  green:\n    ssh: {host: ec2-user@bastion.example.com, port: 2222, identityFile: keys/bastion, options: [-J, jump]}\n",
            "  green: {ssm: {target: i-0123456789abcdef0}}\n",
            "  blue: {tlsServerName: api.internal.shop.test}\n",
        ] {
            assert_eq!(said(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn what_is_no_way_is_refused_at_its_place_and_a_password_is_never_quoted() {
        for (bad, message, place) in [
            ("  green: {}\n", "names no way", "migration.yaml:7"),
            (
                "  green:\n    proxy: http://a:1\n    ssm: {target: i-0123456789abcdef0}\n",
                "several ways",
                "migration.yaml:7",
            ),
            (
                "  green: {proxy: 'ftp://a:1'}\n",
                "`ftp` is no kind",
                "migration.yaml:7",
            ),
            (
                "  green: {proxy: 'http://me:hunter2@proxy:3128'}\n",
                "password must not stand",
                "migration.yaml:7",
            ),
            (
                "  green: {ssh: {host: -oProxyCommand=sh}}\n",
                "no host for ssh",
                "migration.yaml:7",
            ),
            (
                "  green: {ssm: {target: bastion}}\n",
                "no instance id",
                "migration.yaml:7",
            ),
            (
                "  blue: {tlsServerName: 'a b'}\n",
                "no name of a server",
                "migration.yaml:7",
            ),
        ] {
            let (said, at) = said(bad).expect_err(bad);
            assert!(said.contains(message), "{bad}: {said}");
            assert!(!said.contains("hunter2"), "{said}");
            assert!(at.starts_with(place), "{bad}: {at}");
        }
    }
}
