//! A running `rocworker-exporter`, as Prometheus meets it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// A time limit longer than any scrape here takes.
const LONGEST: Duration = Duration::from_secs(30);

/// An exporter that serves until it is dropped.
pub(crate) struct Exporter {
    child: Child,
    address: String,
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Exporter {
    /// Starts it for the machine beneath `root`.
    pub(crate) fn start(program: &Path, root: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.arg("--root").arg(root).args(["--listen", "127.0.0.1:0"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("starting {}", program.display()))?;
        let mut log = BufReader::new(child.stderr.take().context("it has no stderr")?);
        let mut started = Self { child, address: String::new() };
        let mut line = String::new();
        log.read_line(&mut line).context("reading what it says")?;
        let address = line.split_once("http://").and_then(|(_, rest)| rest.split_once("/metrics"));
        let (address, _) = address.with_context(|| format!("{} says: {line}", program.display()))?;
        started.address = address.to_owned();
        // The exporter must not block on a full pipe.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Ok(started)
    }

    /// The exporter's answer, and the time from the connection to the answer's end.
    pub(crate) fn scrape(&self) -> Result<(String, Duration)> {
        scrape(&self.address)
    }

    /// The page for people, and how long it takes.
    pub(crate) fn page(&self) -> Result<(String, Duration)> {
        get(&self.address, "/")
    }

    /// The field of proc_pid_status(5) in KiB: `VmHWM`.
    pub(crate) fn memory_kib(&self, field: &str) -> Result<u32> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        match line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()) {
            Some(kib) => Ok(kib),
            None => bail!("{path} names no {field}"),
        }
    }
}

/// Requests `/metrics` once.
pub(crate) fn scrape(address: &str) -> Result<(String, Duration)> {
    get(address, "/metrics")
}

fn get(address: &str, path: &str) -> Result<(String, Duration)> {
    let began = Instant::now();
    let mut connection = TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
    connection.set_read_timeout(Some(LONGEST)).context("setting a time limit")?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).with_context(|| format!("asking for {path}"))?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).context("reading the answer")?;
    let took = began.elapsed();
    ensure!(
        answer.starts_with("HTTP/1.1 200"),
        "the answer is no 200: {}",
        answer.lines().next().unwrap_or("")
    );
    Ok((answer, took))
}
