//! The bench's certificate authority: made fresh for each bench, so nothing secret is ever in the repository.

use std::net::IpAddr;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use crate::error::{Context, Result};

/// A certificate authority for API servers and for the strict layer's `*.amazonaws.com`. Cheap to clone.
#[derive(Clone)]
pub struct TestCa {
    inner: Arc<Inner>,
}

struct Inner {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl TestCa {
    /// A new authority with its own key.
    pub fn new() -> Result<Self> {
        let mut params = CertificateParams::new(Vec::<String>::new())
            .context(|| "could not prepare the test CA".into())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "crossfade bench CA");
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        set_validity(&mut params);
        let key = KeyPair::generate().context(|| "could not make the test CA's key".into())?;
        let pem = params
            .self_signed(&key)
            .context(|| "could not sign the test CA".into())?
            .pem();
        let issuer = Issuer::new(params, key);
        Ok(TestCa {
            inner: Arc::new(Inner { issuer, pem }),
        })
    }

    /// The authority's certificate in PEM.
    pub fn pem(&self) -> &str {
        &self.inner.pem
    }

    /// A server certificate for these DNS names (wildcards allowed) and addresses: `(certificate, key)` in PEM.
    /// The first name (or address) is the common name.
    pub fn issue(&self, names: &[&str], ips: &[IpAddr]) -> Result<(String, String)> {
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        let common = names
            .first()
            .cloned()
            .or_else(|| ips.first().map(IpAddr::to_string))
            .unwrap_or_else(|| "bench".into());
        let mut params = CertificateParams::new(names)
            .context(|| format!("no certificate can be made for {common}"))?;
        params
            .subject_alt_names
            .extend(ips.iter().map(|ip| SanType::IpAddress(*ip)));
        params.distinguished_name.push(DnType::CommonName, common);
        self.sign(params)
    }

    /// A client certificate: the API server reads the user from `name` and the groups from `groups`.
    pub fn issue_client(&self, name: &str, groups: &[&str]) -> Result<(String, String)> {
        let mut params = CertificateParams::new(Vec::<String>::new())
            .context(|| format!("no client certificate can be made for {name}"))?;
        params.distinguished_name.push(DnType::CommonName, name);
        for group in groups {
            params
                .distinguished_name
                .push(DnType::OrganizationName, *group);
        }
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<(String, String)> {
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        set_validity(&mut params);
        let key = KeyPair::generate().context(|| "could not make a key".into())?;
        let certificate = params
            .signed_by(&key, &self.inner.issuer)
            .context(|| "could not sign a certificate".into())?;
        Ok((certificate.pem(), key.serialize_pem()))
    }
}

/// A fresh EC key pair `(private, public)` in PEM: service account tokens are signed with it.
pub fn signing_key() -> Result<(String, String)> {
    let key = KeyPair::generate().context(|| "could not make a signing key".into())?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}

/// Wide on purpose: a bench must work whatever the machine's clock says.
fn set_validity(params: &mut CertificateParams) {
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2046, 1, 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

    #[test]
    fn a_server_certificate_is_accepted_by_a_client_that_trusts_the_ca() {
        let ca = TestCa::new().expect("CA");
        let (cert, key) = ca
            .issue(&["*.amazonaws.com"], &["127.0.0.1".parse().expect("ip")])
            .expect("certificate");
        let chain = vec![CertificateDer::from_pem_slice(cert.as_bytes()).expect("pem")];
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(chain.clone(), key)
            .expect("certificate and key belong together");
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(ca.pem().as_bytes()).expect("pem"))
            .expect("root");
        let verifier =
            rustls::client::WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .expect("verifier");
        let check = |name: &str| {
            rustls::client::danger::ServerCertVerifier::verify_server_cert(
                &*verifier,
                &chain[0],
                &[],
                &rustls_pki_types::ServerName::try_from(name.to_owned()).expect("name"),
                &[],
                rustls_pki_types::UnixTime::now(),
            )
            .is_ok()
        };
        assert!(check("route53.amazonaws.com"));
        assert!(check("127.0.0.1"));
        assert!(!check("example.org"), "a name it was not issued for");
    }
}
