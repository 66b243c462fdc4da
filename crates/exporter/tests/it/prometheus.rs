//! A real Prometheus scrapes a captured machine, and is asked what it knows then.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use layout::Nodes;
use serde_json::Value;
use support::{captures, real};

use crate::auth::certificates;
use crate::running::Running;

/// Killed when dropped.
struct Prometheus {
    child: Child,
    address: SocketAddr,
}

impl Prometheus {
    /// `how`: lines of YAML for the job that scrapes the exporter.
    fn scraping(running: &Running, folder: &Path, how: &str) -> Self {
        // The kernel does not give this port to another soon.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        // A scrape may last as long as its interval, and two cores build other tests meanwhile.
        let job = "global: {scrape_interval: 5s, scrape_timeout: 5s}\nscrape_configs:\n  - job_name: gpu\n";
        let targets = format!("    static_configs: [{{targets: [\"{}\"]}}]\n", running.address);
        let config = folder.join("prometheus.yml");
        fs::write(&config, format!("{job}{targets}{how}")).unwrap();
        let data = folder.join("data");
        let child = Command::new(real::program("prometheus").unwrap())
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", data.display()))
            .arg(format!("--web.listen-address={address}"))
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, address }
    }

    /// An answer of the API; none while it is coming up.
    fn ask(&self, path: &str) -> Option<Value> {
        let url = format!("http://{}/api/v1/{path}", self.address);
        let output =
            Command::new("curl").args(["--silent", "--noproxy", "*", "--get", &url]).output().unwrap();
        serde_json::from_slice(&output.stdout).ok()
    }

    /// The target's state once it was scraped.
    fn health(&self) -> Value {
        let begun = Instant::now();
        loop {
            let answer = self.ask("targets").unwrap_or_default();
            let target = &answer["data"]["activeTargets"][0];
            if target["health"].as_str().is_some_and(|health| health != "unknown") {
                return target.clone();
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{answer}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn value(&self, query: &str) -> Option<f64> {
        let answer = self.ask(&format!("query?query={query}"))?;
        answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn phoenix() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    captures::phoenix().lay_out(root.path(), Nodes::Recorded).unwrap();
    root
}

/// Checks Prometheus' values against phoenix' files.
fn has_values(prometheus: &Prometheus, root: &Path) {
    let folder = root.join("sys/bus/pci/devices/0000:64:00.0");
    let gtt: f64 = fs::read_to_string(folder.join("mem_info_gtt_used")).unwrap().trim().parse().unwrap();
    assert_eq!(prometheus.value("rocm_memory_pool_used_bytes%7Bpool=\"gtt\"%7D"), Some(gtt));
    assert_eq!(prometheus.value("rocm_gpu_info"), Some(1.0));
    assert_eq!(prometheus.value("rocm_exporter_stuck_reads"), Some(0.0));
    assert_eq!(prometheus.value("up"), Some(1.0));
    // Prometheus chose OpenMetrics: the text format tells no unit, and has no infos.
    for (family, kind, unit) in [("rocm_memory_pool_used_bytes", "gauge", "bytes"), ("rocm_gpu", "info", "")]
    {
        let answer = prometheus.ask(&format!("targets/metadata?metric={family}")).unwrap();
        let found = &answer["data"][0];
        assert_eq!((&found["type"], &found["unit"]), (&kind.into(), &unit.into()), "{family}: {answer}");
    }
}

#[test]
fn real_prometheus_scrapes_a_captured_machine() {
    if !real::require(&["prometheus", "curl"]) {
        return;
    }
    let (root, folder) = (phoenix(), tempfile::tempdir().unwrap());
    let running = Running::start(root.path(), &[]);
    let prometheus = Prometheus::scraping(&running, folder.path(), "");
    let target = prometheus.health();
    assert_eq!((&target["health"], &target["lastError"]), (&"up".into(), &"".into()), "{target}");
    has_values(&prometheus, root.path());
}

#[test]
fn real_prometheus_and_openssl_scrape_over_tls_with_a_password() {
    if !real::require(&["prometheus", "openssl", "curl"]) {
        return;
    }
    let (root, folder) = (phoenix(), tempfile::tempdir().unwrap());
    certificates(folder.path());
    let hash = bcrypt::hash("secret", 10).unwrap();
    let config = folder.path().join("web.yml");
    let tls = "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n";
    fs::write(&config, format!("{tls}basic_auth_users: {{prometheus: \"{hash}\"}}\n")).unwrap();
    let running = Running::start(root.path(), &["--web-config".as_ref(), config.as_os_str()]);
    let how = |password: &str| {
        format!(
            "    scheme: https\n    tls_config: {{ca_file: ca.pem}}\n    basic_auth: {{username: prometheus, password: {password}}}\n"
        )
    };
    let prometheus = Prometheus::scraping(&running, folder.path(), &how("secret"));
    let target = prometheus.health();
    assert_eq!((&target["health"], &target["lastError"]), (&"up".into(), &"".into()), "{target}");
    has_values(&prometheus, root.path());
    drop(prometheus);
    let prometheus = Prometheus::scraping(&running, folder.path(), &how("wrong"));
    let target = prometheus.health();
    assert_eq!(target["health"], "down", "{target}");
    assert!(target["lastError"].as_str().unwrap().contains("401"), "{target}");
}
