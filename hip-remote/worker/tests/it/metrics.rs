//! The file for the exporter.

use std::os::unix::fs::PermissionsExt as _;

use allocation::document::Document as _;
use inventory::hip_worker::{HipGpu, HipWorker};

use crate::client::pattern;
use crate::modules::launch;
use crate::worker::{Worker, eventually};

#[test]
fn the_exporters_file_says_what_clients_do_and_did() {
    let mut worker = Worker::start(&[], &[]);
    let file = worker.folder.path().join("counts");
    let is = |what: &str, so: &dyn Fn(&HipWorker) -> bool| {
        eventually(what, || {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            HipWorker::parse(&text).is_ok_and(|counted| so(&counted))
        });
    };
    is("nothing is counted", &|counted| counted.clients == 0 && counted.gpus.is_empty());
    let mut client = worker.client();
    let pointer = client.malloc(3 << 20);
    client.put(pointer, &pattern(3 << 20));
    launch(&mut client);
    client.sync(0).unwrap();
    let gpu = HipGpu { launches: 1, allocated_bytes: 3 << 20 };
    is("the client is counted", &|counted| {
        counted.clients == 1 && counted.gpus == [gpu] && counted.received_bytes >= 3 << 20
    });
    drop(client);
    let gpu = HipGpu { allocated_bytes: 0, ..gpu };
    is("it is gone", &|counted| counted.clients == 0 && counted.gpus == [gpu]);
    is("it was served", &|counted| (counted.served, counted.refused, counted.crashed) == (1, 0, 0));
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    // A client that is there when the worker ends is in no file for ever.
    let _client = worker.client();
    worker.signal(rustix::process::Signal::TERM);
    assert!(worker.child.wait().unwrap().success());
    assert!(!file.exists());
}
