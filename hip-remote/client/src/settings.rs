//! What the environment says about workers.

use std::env;
use std::path::Path;

use hip_transport::{Address, ClientKey};

use crate::operator;

const REMOTE: &str = "ROCWORKER_HIP_REMOTE";
const KEY: &str = "ROCWORKER_HIP_KEY";

/// TensorFusion sets it to `true` in a pod whose GPU is remote.
const TENSOR_FUSION: &str = "TF_REMOTE_GPU";

/// In MiB, for each device (TensorFusion).
const MEMORY: &str = "TF_GPU_MEMORY_LIMIT";

pub struct Settings {
    pub workers: Vec<Address>,
    pub key: Option<ClientKey>,
    /// The most bytes that the program may allocate on each device; 0 is no bound.
    pub memory: u64,
}

/// Reads the environment, and asks TensorFusion's operator where that is named.
///
/// # Errors
/// A sentence that names the variable.
pub fn read() -> Result<Settings, String> {
    let workers = if let Some(list) = variable(REMOTE)? {
        Address::list(&list).map_err(|why| format!("{REMOTE}: {why}"))?
    } else if let Some(url) = variable(operator::VARIABLE)? {
        vec![operator::connection(&url)?]
    } else {
        let first = if variable(TENSOR_FUSION)?.as_deref() == Some("true") {
            format!(
                "{TENSOR_FUSION}=true asks for a remote GPU, and neither {REMOTE} nor {} says where",
                operator::VARIABLE
            )
        } else {
            format!("{REMOTE} is not set")
        };
        return Err(format!("{first}: set {REMOTE} to a worker's HOST:PORT, or to unix:PATH"));
    };
    let key = match variable(KEY)? {
        Some(path) => Some(ClientKey::read(Path::new(&path)).map_err(|why| format!("{KEY}: {why}"))?),
        None => None,
    };
    let memory = match variable(MEMORY)? {
        Some(text) => megabytes(&text).ok_or_else(|| {
            format!("{MEMORY}={text} is no whole number of MiB: set it to one, or unset it")
        })?,
        None => 0,
    };
    Ok(Settings { workers, key, memory })
}

fn megabytes(text: &str) -> Option<u64> {
    text.trim().parse::<u64>().ok()?.checked_mul(1024 * 1024)
}

/// A variable that is set to something.
fn variable(name: &str) -> Result<Option<String>, String> {
    match env::var(name) {
        Ok(text) if text.is_empty() => Ok(None),
        Ok(text) => Ok(Some(text)),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => Err(format!("{name} is not UTF-8: set it to readable text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_limit_is_a_whole_number_of_mebibytes() {
        assert_eq!(megabytes(" 16\n"), Some(16 * 1024 * 1024));
        assert_eq!(megabytes("16Gi"), None);
        assert_eq!(megabytes("99999999999999999"), None);
    }
}
