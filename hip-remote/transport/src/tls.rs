//! TLS 1.3 over a socket, for a reader and a writer in two threads.
//!
//! Both need the one rustls connection. Nobody holds its lock in a system call: a writer that waits for its peer while it
//! keeps the peer's reader waiting would wait for ever. So the writer encrypts into memory, and the reader reads into it.

use std::io::{IoSlice, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::net::RecvFlags;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Connection, DigitallySignedStruct, ServerConfig,
    ServerConnection, SignatureScheme,
};

use crate::refuse;
use crate::sha256::sha256;
use crate::socket::Socket;
use crate::text::MOST;
use crate::{ClientKey, Error, Result, WorkerKey};

/// The name in a worker's certificate. Clients look at the hash alone.
pub(crate) const NAME: &str = "rocworker-hip-worker";

/// How many bytes the writer encrypts, and the reader reads, at once: they stay in a processor's own cache.
const STEP: usize = 128 * 1024;

#[derive(Debug)]
pub(crate) struct Tls(Mutex<Connection>);

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
        let connection = ClientConnection::new(Arc::new(config), name).map_err(failed)?;
        Self::shake(connection.into(), socket, deadline)
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
        let connection = ServerConnection::new(Arc::new(config)).map_err(failed)?;
        Self::shake(connection.into(), socket, deadline)
    }

    fn shake(mut connection: Connection, socket: &Socket, deadline: Instant) -> Result<Self> {
        let mut hands = Hands { socket, deadline, first: Vec::new() };
        while connection.is_handshaking() {
            connection.complete_io(&mut hands).map_err(|why| hands.failed(&why))?;
        }
        connection.set_buffer_limit(None);
        Ok(Self(Mutex::new(connection)))
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
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
            let mut connection = self.lock();
            let mut left = STEP;
            while let Some(slice) = slices.first()
                && left > 0
            {
                let some = slice.get(..left).unwrap_or(slice);
                let taken = connection.writer().write(some).map_err(|why| broke(socket, &why))?;
                left -= taken;
                IoSlice::advance_slices(&mut slices, taken);
            }
            while connection.wants_write() {
                connection.write_tls(encrypted).map_err(|why| broke(socket, &why))?;
            }
            drop(connection);
            socket.send(&mut [IoSlice::new(encrypted)])?;
        }
        Ok(())
    }

    /// Receives some bytes. 0 is the end.
    pub(crate) fn receive(
        &self,
        socket: &Socket,
        to: &mut [u8],
        encrypted: &mut Encrypted,
        deadline: Option<Instant>,
    ) -> Result<usize> {
        loop {
            let mut filled = 0;
            let mut ended = false;
            let mut connection = self.lock();
            while let Some(rest) = to.get_mut(filled..).filter(|rest| !rest.is_empty()) {
                match connection.reader().read(rest) {
                    Ok(0) => ended = true,
                    Ok(read) => {
                        filled += read;
                        continue;
                    }
                    Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => {}
                    Err(_) => ended = true,
                }
                if ended || encrypted.is_empty() {
                    break;
                }
                connection.read_tls(encrypted).map_err(|why| broke(socket, &why))?;
                connection.process_new_packets().map_err(|why| broke(socket, &why))?;
            }
            drop(connection);
            if filled > 0 || ended || to.is_empty() {
                return Ok(filled);
            }
            encrypted.fill(socket, deadline)?;
            if encrypted.is_empty() {
                return Ok(0);
            }
        }
    }

    /// Whether decrypted bytes wait.
    pub(crate) fn is_buffered(&self) -> bool {
        self.lock().process_new_packets().is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
    }
}

fn broke(socket: &Socket, why: &dyn std::fmt::Display) -> Error {
    Error::Failed(format!("The connection to {} broke: {why}", socket.peer))
}

/// Bytes that the socket gave and the connection has not yet taken.
#[derive(Debug)]
pub(crate) struct Encrypted {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Encrypted {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; STEP].into(), start: 0, end: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    fn fill(&mut self, socket: &Socket, deadline: Option<Instant>) -> Result<()> {
        self.start = 0;
        self.end = 0;
        self.end = socket.receive_until(&mut self.bytes, RecvFlags::empty(), deadline)?;
        Ok(())
    }
}

impl Read for Encrypted {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let mut have = self.bytes.get(self.start..self.end).unwrap_or_default();
        let read = have.read(to)?;
        self.start += read;
        Ok(read)
    }
}

/// The handshake's bytes, until a deadline.
struct Hands<'a> {
    socket: &'a Socket,
    deadline: Instant,
    /// What the peer said first: a worker without TLS says why it refuses.
    first: Vec<u8>,
}

impl Hands<'_> {
    fn failed(&self, why: &std::io::Error) -> Error {
        let peer = &self.socket.peer;
        if let Some(sentence) = refuse::sentence(&self.first) {
            return Error::Failed(format!("{peer} answered without TLS: {sentence}"));
        }
        let tls = why.get_ref().and_then(|why| why.downcast_ref::<rustls::Error>());
        Error::Failed(match (tls, why.kind()) {
            (Some(rustls::Error::InvalidCertificate(_)), _) => {
                format!(
                    "{peer} has another certificate than the key says: use the client.key that was made with its worker.key"
                )
            }
            (Some(rustls::Error::AlertReceived(alert)), _) => {
                format!(
                    "{peer} refused TLS ({alert:?}): does it use the client.key that was made with our worker.key?"
                )
            }
            (Some(rustls::Error::InvalidMessage(_)), _) => {
                format!(
                    "{peer} does not speak TLS, as workers and their clients do: another program is there"
                )
            }
            (_, std::io::ErrorKind::UnexpectedEof) => {
                format!("{peer} closed the connection while TLS began: perhaps it has another key")
            }
            _ => format!("TLS with {peer} did not begin: {why}"),
        })
    }
}

impl Read for Hands<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        if !self.socket.readable(Some(self.deadline)).map_err(std::io::Error::other)? {
            return Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "nothing came in time"));
        }
        let read = self.socket.receive(to, RecvFlags::empty()).map_err(std::io::Error::other)?;
        if self.first.len() < MOST {
            self.first.extend_from_slice(to.get(..read).unwrap_or_default());
        }
        Ok(read)
    }
}

impl Write for Hands<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    /// All slices: rustls writes once before it gives up, and its alert may be the last of several.
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> std::io::Result<usize> {
        self.socket.send(&mut slices.to_vec()).map_err(std::io::Error::other)?;
        Ok(slices.iter().map(|slice| slice.len()).sum())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
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
