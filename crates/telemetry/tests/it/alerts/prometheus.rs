//! A real Prometheus, and the machines that it scrapes.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use layout::{JUDGED_AT, Machine};
use root::Root;
use serde_json::Value;
use support::laid::Laid;
use support::real;
use support::said::Said;
use support::waiting::eventually;
use telemetry::exporter::Exporter;
use telemetry::exposition::{self, Format};
use telemetry::sample::count;
use telemetry::samples::samples;
use tempfile::TempDir;

/// Prometheus, until it is dropped.
#[derive(Debug)]
pub(crate) struct Prometheus {
    process: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl Prometheus {
    /// Starts a server with these rules that scrapes each target every second, under its name as `instance`.
    pub(crate) fn start(targets: &[(&str, SocketAddr)], rules: &[String]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), targets, rules)
    }

    /// Starts a server that scrapes nothing and holds these samples, given as OpenMetrics.
    pub(crate) fn knowing(samples: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("samples");
        fs::write(&file, samples).unwrap();
        let mut promtool = Command::new(real::program("promtool").unwrap());
        promtool
            .args(["tsdb", "create-blocks-from", "openmetrics"])
            .arg(file)
            .arg(folder.path().join("data"));
        Said::from(promtool.output().unwrap()).well();
        Self::start_in(folder, &[], &[])
    }

    fn start_in(folder: TempDir, targets: &[(&str, SocketAddr)], rules: &[String]) -> Self {
        let mut configuration = "global: {scrape_interval: 1s, scrape_timeout: 1s}\nrule_files:\n".to_owned();
        for (number, text) in rules.iter().enumerate() {
            fs::write(folder.path().join(format!("{number}.yaml")), text).unwrap();
            writeln!(configuration, "  - {number}.yaml").unwrap();
        }
        configuration += "scrape_configs:\n  - job_name: rocm\n    static_configs:\n";
        for (name, address) in targets {
            writeln!(configuration, "      - {{targets: ['{address}'], labels: {{instance: {name}}}}}")
                .unwrap();
        }
        let file = folder.path().join("prometheus.yml");
        fs::write(&file, configuration).unwrap();
        let address = free();
        let log = File::create(folder.path().join("log")).unwrap();
        let process = Command::new(real::program("prometheus").unwrap())
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut prometheus = Self { process, address, folder };
        eventually("Prometheus is ready", || {
            assert!(prometheus.process.try_wait().unwrap().is_none(), "{}", prometheus.log());
            prometheus.ask("/-/ready").is_some()
        });
        prometheus
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// The body, of an answer that is 200.
    fn ask(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.lines().next()?.contains(" 200 ").then(|| body.to_owned())
    }

    /// The API's answer at a path.
    pub(crate) fn api(&self, path: &str) -> Value {
        let body = self.ask(path).unwrap_or_else(|| panic!("{path}: no answer, or an error\n{}", self.log()));
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["status"], "success", "{path}: {body}");
        answer["data"].clone()
    }

    /// The series of an expression's answer.
    pub(crate) fn query(&self, expression: &str) -> Vec<Value> {
        self.answer(expression)["result"].as_array().unwrap().clone()
    }

    /// The most samples that the server holds in memory while it evaluates an expression.
    pub(crate) fn samples_for(&self, expression: &str) -> u64 {
        self.answer(expression)["stats"]["samples"]["peakSamples"].as_u64().unwrap()
    }

    fn answer(&self, expression: &str) -> Value {
        let mut path = "/api/v1/query?stats=all&query=".to_owned();
        for byte in expression.bytes() {
            write!(path, "%{byte:02x}").unwrap();
        }
        self.api(&path)
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An address that nothing listens on.
pub(crate) fn free() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}

/// Serves a machine's metrics, read anew for each scrape, until the test ends.
pub(crate) fn exported(machine: &Machine) -> SocketAddr {
    let laid = Laid::out(machine);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let root = Root::open(laid.top()).unwrap();
        let mut exporter = Exporter::default();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let text =
                exposition::write(&samples(&exporter.scrape(&root, count(JUDGED_AT))), Format::Prometheus);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {}\r\n", Format::Prometheus.content_type());
            // A scrape that the test's end cuts off.
            let _ = write!(stream, "{head}Connection: close\r\nContent-Length: {}\r\n\r\n{text}", text.len());
        }
    });
    address
}
