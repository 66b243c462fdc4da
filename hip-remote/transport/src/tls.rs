//! TLS 1.3 over a socket, for a reader and a writer in two threads.
//!
//! Both need the one [`Crypt`]. No thread holds its lock in a system call: a writer that waits for its peer while it keeps the
//! peer's reader waiting would wait for ever. So each has a buffer for encrypted bytes.

use std::fmt::Display;
use std::io::IoSlice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::net::RecvFlags;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::UnbufferedServerConnection;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};

use crate::crypt::{Crypt, Side};
use crate::refuse;
use crate::sha256::sha256;
use crate::socket::Socket;
use crate::text::MOST;
use crate::{ClientKey, Error, Result, WorkerKey};

/// The name in a worker's certificate. Clients look at the hash alone.
pub(crate) const NAME: &str = "rocworker-hip-worker";

/// How many bytes the writer encrypts, and the reader reads, at once: they stay in a processor's own cache.
pub(crate) const STEP: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Tls(Mutex<Crypt>);

impl Tls {
    pub(crate) fn client(socket: &Socket, key: &ClientKey, deadline: Instant) -> Result<Self> {
        let failed = |why: rustls::Error| Error::Failed(format!("TLS cannot begin: {why}"));
        let provider = Arc::new(ring::default_provider());
        let pin =
            Pin { certificate: key.certificate, algorithms: provider.signature_verification_algorithms };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(failed)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(pin))
            .with_no_client_auth();
        config.resumption = Resumption::disabled();
        let name = ServerName::try_from(NAME).map_err(|why| Error::Failed(why.to_string()))?;
        let client = UnbufferedClientConnection::new(Arc::new(config), name).map_err(failed)?;
        Self::shake(Side::Client(client), socket, deadline)
    }

    pub(crate) fn worker(socket: &Socket, key: &WorkerKey, deadline: Instant) -> Result<Self> {
        let failed = |why: rustls::Error| Error::Failed(format!("The worker's key is of no use: {why}"));
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.private.clone()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(failed)?
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(key.certificate.clone())], private)
            .map_err(failed)?;
        config.send_tls13_tickets = 0;
        let worker = UnbufferedServerConnection::new(Arc::new(config)).map_err(failed)?;
        Self::shake(Side::Worker(worker), socket, deadline)
    }

    fn shake(side: Side, socket: &Socket, deadline: Instant) -> Result<Self> {
        let mut crypt = Crypt::new(side);
        // What the peer said first: a worker without TLS says why it refuses.
        let mut first = Vec::new();
        let mut received = vec![0; STEP];
        loop {
            let shaken = crypt.go_on();
            let sent = socket.send(&mut [IoSlice::new(&crypt.outgoing)]);
            shaken.map_err(|why| refused(&socket.peer, &first, &why))?;
            sent?;
            crypt.outgoing.clear();
            if !crypt.is_handshaking() {
                return Ok(Self(Mutex::new(crypt)));
            }
            let read = socket.receive_until(&mut received, RecvFlags::empty(), Some(deadline))?;
            let bytes = received.get(..read).unwrap_or_default();
            if bytes.is_empty() {
                return Err(Error::Failed(format!(
                    "{} closed the connection while TLS began: perhaps it has another key",
                    socket.peer
                )));
            }
            first.extend_from_slice(bytes.get(..MOST.saturating_sub(first.len())).unwrap_or(bytes));
            crypt.push(bytes);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Crypt> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends all bytes through `encrypted`, a buffer that one writer keeps.
    pub(crate) fn send(
        &self,
        socket: &Socket,
        mut slices: &mut [IoSlice<'_>],
        encrypted: &mut Vec<u8>,
    ) -> Result<()> {
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            encrypted.clear();
            let mut crypt = self.lock();
            let mut left = STEP;
            let mut result = Ok(());
            while let Some(slice) = slices.first()
                && left > 0
                && result.is_ok()
            {
                let some = slice.get(..left).unwrap_or(slice);
                result = crypt.encrypt(some).map_err(|why| broke(socket, &why));
                let taken = some.len();
                left -= taken;
                IoSlice::advance_slices(&mut slices, taken);
            }
            std::mem::swap(&mut crypt.outgoing, encrypted);
            drop(crypt);
            // Where the peer sent what is no TLS, this is the alert that says so.
            socket.send(&mut [IoSlice::new(encrypted)]).and(result)?;
        }
        Ok(())
    }

    /// Receives some bytes through `received`, a buffer that one reader keeps. 0 is the end.
    pub(crate) fn receive(
        &self,
        socket: &Socket,
        to: &mut [u8],
        received: &mut [u8],
        deadline: Option<Instant>,
    ) -> Result<usize> {
        let mut read = 0;
        loop {
            let mut crypt = self.lock();
            crypt.push(received.get(..read).unwrap_or_default());
            let filled = crypt.decrypt(to).map_err(|why| broke(socket, &why))?;
            if filled > 0 || crypt.ended || to.is_empty() {
                return Ok(filled);
            }
            drop(crypt);
            read = socket.receive_until(received, RecvFlags::empty(), deadline)?;
            if read == 0 {
                return Ok(0);
            }
        }
    }

    /// Whether bytes have come that no call has taken.
    pub(crate) fn is_buffered(&self) -> bool {
        self.lock().has_more()
    }
}

fn broke(socket: &Socket, why: &dyn Display) -> Error {
    Error::Failed(format!("The connection to {} broke: {why}", socket.peer))
}

/// Why a handshake failed with a peer who said `first`.
fn refused(peer: &str, first: &[u8], why: &rustls::Error) -> Error {
    if let Some(sentence) = refuse::sentence(first) {
        return Error::Failed(format!("{peer} answered without TLS: {sentence}"));
    }
    Error::Failed(match why {
        rustls::Error::InvalidCertificate(_) => {
            format!(
                "{peer} has another certificate than the key says: use the client.key that was made with its worker.key"
            )
        }
        rustls::Error::AlertReceived(alert) => {
            format!(
                "{peer} refused TLS ({alert:?}): does it use the client.key that was made with our worker.key?"
            )
        }
        rustls::Error::InvalidMessage(_) => {
            format!("{peer} does not speak TLS, as workers and their clients do: another program is there")
        }
        _ => format!("TLS with {peer} did not begin: {why}"),
    })
}

/// Takes the one certificate that the key names, whoever signed it.
#[derive(Debug)]
struct Pin {
    certificate: [u8; 32],
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Pin {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        if sha256(certificate) == self.certificate {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not spoken".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
