//! The worker that TensorFusion gave this pod: its operator knows the address once the worker runs.
//!
//! The webhook sets `TENSOR_FUSION_OPERATOR_GET_CONNECTION_URL`, whose query names the connection. The operator holds the
//! request while the worker starts, for up to 5 minutes (internal/server/router/connection.go of TensorFusion).

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use hip_transport::Address;
use ureq::Agent;

pub const VARIABLE: &str = "TENSOR_FUSION_OPERATOR_GET_CONNECTION_URL";

/// The token of the pod's service account.
pub const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Longer than the operator's own 5 minutes, so that its answer tells why there is no worker.
const PATIENCE: Duration = Duration::from_secs(320);

/// An address is shorter than this; a longer answer is another server's.
const LONGEST: u64 = 4096;

/// Asks the operator for this pod's worker, with the token in a file.
///
/// # Errors
/// A sentence that names the variable and says what to do.
pub fn connection(url: &str, token: &Path) -> Result<Address, String> {
    let token = std::fs::read_to_string(token).map_err(|error| {
        format!("cannot read {}: {error}; let the pod have its service account's token", token.display())
    })?;
    address(&ask(url, token.trim(), PATIENCE)?)
}

fn ask(url: &str, token: &str, patience: Duration) -> Result<String, String> {
    let failed = |reason: &str| format!("{VARIABLE}={url}: {reason}");
    // The token goes to the operator alone: to no proxy of the environment, and along no redirection.
    let agent: Agent = Agent::config_builder()
        .proxy(None)
        .max_redirects(0)
        .http_status_as_error(false)
        .timeout_global(Some(patience))
        .build()
        .into();
    let mut answer = agent
        .get(url)
        .header("Authorization", format!("Bearer {token}"))
        .call()
        .map_err(|error| failed(&format!("TensorFusion's operator does not answer: {error}")))?;
    let reason = match answer.status().as_u16() {
        200 => {
            let text = answer.body_mut().with_config().limit(LONGEST).read_to_string();
            return text.map_err(|error| failed(&format!("the operator's answer cannot be read: {error}")));
        }
        401 => {
            "the operator refuses this pod's token: the connection is another pod's, so start this pod anew"
        }
        404 => "the operator knows no such connection: start the pod anew, so that TensorFusion makes one",
        503 => "the operator cannot answer now: see whether its pods are ready, and start the program again",
        504 => "no worker has begun to run within the operator's 5 minutes: see why the worker's pod waits",
        other => &format!("the operator answers {other}, which only a server of another kind does"),
    };
    Err(failed(reason))
}

/// Reads `native+IP+PORT+POD-REVISION`. The last part changes when the worker's pod does, and is for the operator.
fn address(connection: &str) -> Result<Address, String> {
    let connection = connection.trim();
    let refused = |reason: &str| Err(format!("{VARIABLE}: the operator answers {connection:?}: {reason}"));
    match *connection.split('+').collect::<Vec<_>>() {
        ["native", host, port, _] => match (host.parse::<IpAddr>(), port.parse()) {
            (Ok(host), Ok(port)) => Ok(Address::Tcp { host: host.to_string(), port }),
            _ => refused("the worker's IP address and port are none"),
        },
        [""] => refused("TensorFusion deleted the connection while this program waited for it"),
        _ => refused("this program can use native+IP+PORT+POD alone"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread::{self, JoinHandle};

    use super::*;

    /// A server that gives one answer, and the request that it got.
    fn operator(answer: &'static str) -> (String, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/api/connection?name=a-tf-1&namespace=b", listener.local_addr().unwrap());
        let serve = move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.extend(byte);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(request).unwrap()
        };
        (url, thread::spawn(serve))
    }

    #[test]
    fn the_operator_gets_the_pods_token_and_gives_the_workers_address() {
        let (url, server) = operator(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 30\r\n\r\nnative+10.42.0.7+8000+a-worker",
        );
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        std::fs::write(&token, "the-token\n").unwrap();
        let worker = connection(&url, &token).unwrap();
        let request = server.join().unwrap().to_lowercase();
        assert!(request.starts_with("get /api/connection?name=a-tf-1&namespace=b http/1.1\r\n"), "{request}");
        assert!(request.contains("\r\nauthorization: bearer the-token\r\n"), "{request}");
        assert_eq!(worker.to_string(), "10.42.0.7:8000");
    }

    #[test]
    fn an_answer_in_pieces_is_whole() {
        let (url, server) = operator(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\nnative+\r\n10\r\n10.0.0.1+8000+a-\r\n0\r\n\r\n",
        );
        assert_eq!(ask(&url, "t", PATIENCE).unwrap(), "native+10.0.0.1+8000+a-");
        server.join().unwrap();
    }

    #[test]
    fn each_refusal_says_what_to_do() {
        for (answer, reason) in [
            ("HTTP/1.1 401 Unauthorized", "refuses this pod's token"),
            ("HTTP/1.1 404 Not Found", "knows no such connection"),
            ("HTTP/1.1 503 Service Unavailable", "cannot answer now"),
            ("HTTP/1.1 504 Gateway Timeout", "no worker has begun to run"),
            ("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/", "answers 302"),
            ("HTTP/1.1 500 Internal Server Error", "answers 500"),
            ("SSH-2.0-OpenSSH_9.2", "does not answer"),
            ("", "does not answer"),
        ] {
            let answer = format!("{answer}\r\nContent-Length: 0\r\n\r\n").leak();
            let (url, server) = operator(answer);
            let refused = ask(&url, "t", PATIENCE).unwrap_err();
            assert!(
                refused.starts_with(&format!("{VARIABLE}={url}: ")) && refused.contains(reason),
                "{refused}"
            );
            server.join().unwrap();
        }
    }

    #[test]
    fn an_operator_that_is_silent_or_not_there_ends_in_a_sentence() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let refused = ask(&url, "t", Duration::from_millis(200)).unwrap_err();
        assert!(refused.contains("does not answer"), "{refused}");
        drop(listener);
        assert!(ask(&url, "t", PATIENCE).unwrap_err().contains("does not answer"));
        assert!(ask("nonsense", "t", PATIENCE).unwrap_err().contains("nonsense"));
    }

    #[test]
    fn an_answer_that_is_no_address_is_refused() {
        assert_eq!(address("native+fd00::7+8000+a-1\n").unwrap().to_string(), "[fd00::7]:8000");
        for (connection, reason) in [
            ("", "deleted the connection"),
            ("shmem+/dev/shm/a+1024+0", "native+IP+PORT+POD"),
            ("native+10.0.0.1+8000", "native+IP+PORT+POD"),
            ("native+10.0.0.1+eight+a-1", "are none"),
            ("native+unix:/tmp/a+8000+a-1", "are none"),
        ] {
            let refused = address(connection).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
    }
}
