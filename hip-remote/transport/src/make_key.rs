//! A new worker's key.

use rcgen::{CertificateParams, KeyPair};
use ring::rand::{SecureRandom, SystemRandom};

use crate::WorkerKey;
use crate::tls::NAME;

impl WorkerKey {
    /// A certificate that signs itself and never ends, because a client knows it by its hash alone; a random token.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn make() -> Result<Self, String> {
        let failed = |why: &dyn std::fmt::Display| format!("The key cannot be made: {why}");
        let pair = KeyPair::generate().map_err(|why| failed(&why))?;
        let parameters = CertificateParams::new(vec![NAME.to_owned()]).map_err(|why| failed(&why))?;
        let certificate = parameters.self_signed(&pair).map_err(|why| failed(&why))?;
        let mut token = [0; 32];
        SystemRandom::new().fill(&mut token).map_err(|_| failed(&"the system gives no random bytes"))?;
        Ok(Self { certificate: certificate.der().to_vec(), private: pair.serialize_der(), token })
    }
}
