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
    read_from(variable, Path::new(operator::TOKEN))
}

fn read_from(
    variable: impl Fn(&str) -> Result<Option<String>, String>,
    token: &Path,
) -> Result<Settings, String> {
    let workers = if let Some(list) = variable(REMOTE)? {
        Address::list(&list).map_err(|why| format!("{REMOTE}: {why}"))?
    } else if let Some(url) = variable(operator::VARIABLE)? {
        vec![operator::connection(&url, token)?]
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

    fn settings(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(set, _)| *set == name);
            Ok(found.map(|(_, text)| (*text).to_owned()))
        };
        read_from(variable, Path::new("no/token"))
    }

    #[test]
    fn rocworkers_own_address_counts_before_tensorfusions() {
        let both = [
            (operator::VARIABLE, "http://127.0.0.1:1/"),
            (REMOTE, "gpu1,gpu2:7"),
            (TENSOR_FUSION, "true"),
            (MEMORY, "3"),
        ];
        let read = settings(&both).unwrap_or_else(|why| panic!("{why}"));
        let workers: Vec<_> = read.workers.iter().map(ToString::to_string).collect();
        assert_eq!((workers.join(" "), read.memory), ("gpu1:50051 gpu2:7".to_owned(), 3 * 1024 * 1024));
    }

    #[test]
    fn what_the_environment_says_wrongly_is_a_sentence_that_names_the_variable() {
        for (variables, reason) in [
            (&[][..], "ROCWORKER_HIP_REMOTE is not set: set ROCWORKER_HIP_REMOTE to"),
            (&[(TENSOR_FUSION, "false")], "ROCWORKER_HIP_REMOTE is not set"),
            (
                &[(TENSOR_FUSION, "true")],
                "TF_REMOTE_GPU=true asks for a remote GPU, and neither ROCWORKER_HIP_REMOTE nor \
                 TENSOR_FUSION_OPERATOR_GET_CONNECTION_URL says where",
            ),
            (&[(operator::VARIABLE, "http://127.0.0.1:1/")], "cannot read no/token"),
            (&[(REMOTE, "gpu:port")], "ROCWORKER_HIP_REMOTE: "),
            (&[(REMOTE, "gpu"), (KEY, "no/client.key")], "ROCWORKER_HIP_KEY: "),
            (&[(REMOTE, "gpu"), (MEMORY, "16Gi")], "TF_GPU_MEMORY_LIMIT=16Gi is no whole number of MiB"),
        ] {
            let Err(why) = settings(variables) else { panic!("{variables:?} is taken") };
            assert!(why.starts_with(reason), "{variables:?}: {why}");
        }
    }

    #[test]
    fn a_memory_limit_is_a_whole_number_of_mebibytes() {
        assert_eq!(megabytes(" 16\n"), Some(16 * 1024 * 1024));
        assert_eq!(megabytes("16Gi"), None);
        assert_eq!(megabytes("99999999999999999"), None);
    }
}
