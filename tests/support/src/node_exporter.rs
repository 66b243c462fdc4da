//! Prometheus' node_exporter, as a reader of a laid-out machine's /sys that nobody here wrote.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::real;

/// Debian's name of the program.
pub const PROGRAM: &str = "prometheus-node-exporter";

/// A node_exporter that serves until it is dropped.
#[derive(Debug)]
pub struct NodeExporter {
    child: Child,
    address: String,
}

impl Drop for NodeExporter {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl NodeExporter {
    /// Starts node_exporter on the machine beneath `root` with these collectors only.
    ///
    /// # Panics
    /// With node_exporter's output, where it does not start.
    #[must_use]
    pub fn start(root: &Path, collectors: &[&str]) -> Self {
        let mut command = Command::new(real::program(PROGRAM).unwrap());
        command.arg(format!("--path.sysfs={}", root.join("sys").display()));
        command.arg("--collector.disable-defaults");
        command.args(collectors.iter().map(|name| format!("--collector.{name}")));
        command.arg("--web.listen-address=127.0.0.1:0").stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut started = Self { child, address: String::new() };
        let mut said = String::new();
        while started.address.is_empty() {
            let line = said.len();
            assert_ne!(log.read_line(&mut said).unwrap(), 0, "{PROGRAM} ended before it listened: {said}");
            let line = said[line..].trim();
            let address = line.split_once("address=127.0.0.1:").filter(|_| line.contains("Listening"));
            started.address = address.map(|(_, port)| format!("127.0.0.1:{port}")).unwrap_or_default();
        }
        // node_exporter must not block on a full pipe.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        started
    }

    /// node_exporter's exposition, with the head of HTTP.
    ///
    /// # Panics
    /// Where node_exporter does not answer with 200.
    #[must_use]
    pub fn scrape(&self) -> String {
        let mut connection = TcpStream::connect(&self.address).unwrap();
        connection.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
        answer
    }
}
