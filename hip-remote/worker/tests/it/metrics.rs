//! The file of metrics.

use std::os::unix::fs::PermissionsExt as _;

use crate::client::pattern;
use crate::modules::launch;
use crate::worker::{Worker, eventually};

#[test]
fn the_metrics_say_what_clients_do_and_did() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hip.prom");
    let mut worker = Worker::start(&["--metrics", file.to_str().unwrap()], &[]);
    let value = |name: &str| -> Option<f64> {
        let text = std::fs::read_to_string(&file).ok()?;
        let line = text.lines().find(|line| line.starts_with(&format!("rocworker_hip_{name} ")))?;
        line.rsplit(' ').next()?.parse().ok()
    };
    let is = |name: &str, wanted: f64| eventually(name, || value(name) == Some(wanted));
    is("clients", 0.0);
    let mut client = worker.client();
    let pointer = client.malloc(3 << 20);
    client.put(pointer, &pattern(3 << 20));
    launch(&mut client);
    client.sync(0).unwrap();
    is("clients", 1.0);
    is("allocated_bytes{gpu=\"0\"}", f64::from(3 << 20));
    is("launches_total{gpu=\"0\"}", 1.0);
    assert!(value("received_bytes_total").unwrap() >= f64::from(3 << 20));
    drop(client);
    is("clients", 0.0);
    is("clients_total", 1.0);
    is("refused_total", 0.0);
    is("launches_total{gpu=\"0\"}", 1.0);
    is("allocated_bytes{gpu=\"0\"}", 0.0);
    is("crashed_total", 0.0);
    // Any user may read them, and no client outlives the worker in them.
    let _client = worker.client();
    is("clients", 1.0);
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    worker.signal(rustix::process::Signal::TERM);
    assert!(worker.child.wait().unwrap().success());
    assert_eq!((value("clients"), value("crashed_total")), (Some(0.0), Some(0.0)));
}
