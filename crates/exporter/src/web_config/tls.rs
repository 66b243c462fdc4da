//! The keys below `tls_server_config`, as rustls has them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use root::Root;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};

use super::document::{ClientAuth, Tls, Version};
use super::trusted::read_believed;

/// A chain of certificates has some kilobytes, a bundle of authorities some hundred.
const LIMIT: usize = 4 << 20;

/// Why TLS cannot be spoken so: the key that is wrong, and a sentence.
pub(super) struct Wrong {
    pub(super) key: &'static str,
    pub(super) problem: String,
}

pub(super) fn acceptor(root: &Root, tls: &Tls) -> Result<TlsAcceptor, Wrong> {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions(tls)?)
        .map_err(|error| Wrong { key: "min_version", problem: error.to_string() })?;
    let builder = match verifier(root, tls, provider)? {
        None => builder.with_no_client_auth(),
        Some(verifier) => builder.with_client_cert_verifier(verifier),
    };
    let chain = certificates(root, "cert_file", &tls.cert_file)?;
    let wrong = |problem: String| Wrong { key: "key_file", problem };
    let shown = tls.key_file.display();
    let key = read_believed(root, &tls.key_file, LIMIT).map_err(|error| wrong(error.to_string()))?;
    // `BEGIN ENCRYPTED PRIVATE KEY` of PKCS #8, `Proc-Type: 4,ENCRYPTED` of OpenSSL's older form.
    if key.windows(9).any(|word| word == b"ENCRYPTED") {
        let decrypted = tls.key_file.with_file_name("decrypted.pem");
        let to = decrypted.display();
        return Err(wrong(format!(
            "{shown} is encrypted: `openssl pkey -in {shown} -out {to}` decrypts it; name that file here"
        )));
    }
    let key = PrivateKeyDer::from_pem_slice(&key)
        .map_err(|error| wrong(format!("{shown} holds no private key in PEM: {error}")))?;
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| wrong(format!("{shown} does not go with {}: {error}", tls.cert_file.display())))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn versions(tls: &Tls) -> Result<Vec<&'static SupportedProtocolVersion>, Wrong> {
    let most = tls.max_version.unwrap_or(Version::Tls13);
    let versions: Vec<_> = [(Version::Tls12, &TLS12), (Version::Tls13, &TLS13)]
        .into_iter()
        .filter(|(version, _)| (tls.min_version..=most).contains(version))
        .map(|(_, version)| version)
        .collect();
    if versions.is_empty() {
        return Err(Wrong { key: "max_version", problem: "it is lower than min_version".to_owned() });
    }
    Ok(versions)
}

fn verifier(
    root: &Root,
    tls: &Tls,
    provider: Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, Wrong> {
    let wrong = |key, problem: &str| Err(Wrong { key, problem: problem.to_owned() });
    let (file, required) = match (&tls.client_ca_file, tls.client_auth_type) {
        (None, ClientAuth::NoClientCert) => return Ok(None),
        (Some(_), ClientAuth::NoClientCert) => {
            return wrong("client_ca_file", "set client_auth_type too: RequireAndVerifyClientCert");
        }
        (None, _) => {
            return wrong("client_auth_type", "set client_ca_file too: who signs clients' certificates");
        }
        (Some(file), how) => (file, how == ClientAuth::RequireAndVerifyClientCert),
    };
    let wrong = |problem: String| Wrong { key: "client_ca_file", problem };
    let mut authorities = RootCertStore::empty();
    for certificate in certificates(root, "client_ca_file", file)? {
        authorities.add(certificate).map_err(|error| wrong(format!("{}: {error}", file.display())))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), provider);
    let builder = if required { builder } else { builder.allow_unauthenticated() };
    let verifier = builder.build().map_err(|error| wrong(format!("{}: {error}", file.display())))?;
    Ok(Some(verifier))
}

fn certificates(root: &Root, key: &'static str, file: &Path) -> Result<Vec<CertificateDer<'static>>, Wrong> {
    let wrong = |problem: String| Wrong { key, problem };
    let pem = read_believed(root, file, LIMIT).map_err(|error| wrong(error.to_string()))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|error| wrong(format!("{} is not PEM: {error}", file.display())))?;
    if found.is_empty() {
        return Err(wrong(format!("{} holds no certificate in PEM", file.display())));
    }
    Ok(found)
}

/// The warning about a key that every user of the machine can read.
pub(super) fn readable_key(root: &Root, key: &Path) -> Option<String> {
    let mode = root.stat(key).ok()?.mode;
    (mode & 0o004 != 0)
        .then(|| format!("key_file: every user can read {} (mode {mode:04o}): chmod o-r", key.display()))
}

/// The files that TLS is read from.
pub(super) fn files(tls: &Tls) -> Vec<PathBuf> {
    let files = [Some(&tls.cert_file), Some(&tls.key_file), tls.client_ca_file.as_ref()];
    files.into_iter().flatten().cloned().collect()
}
