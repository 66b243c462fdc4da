//! A dockerd that runs and does not say what it runs by.

use std::path::Path;

use engines::docker::DefaultRuntime;
use engines::undo_constraints::named_by_default;

use super::{config, docker};

const PATHS: [&str; 2] = ["/usr/lib/rocworker/runc-amd-wrapper", "/usr/local/lib/rocworker/runc-amd-wrapper"];

#[test]
fn it_keeps_the_wrapper_wherever_it_stands() {
    let runtime = |name: &str| Ok(DefaultRuntime { name: name.to_owned(), program: None });
    for (running, keeps) in
        [(Err("timed out".to_owned()), true), (runtime("amd"), true), (runtime("kata"), false)]
    {
        let installed = docker("28.5.2", Some("{}")).installed.unwrap();
        let named = named_by_default(&config(""), &installed, running.clone());
        for path in PATHS {
            let is_named = named.iter().any(|named| Path::new(&named.value) == Path::new(path));
            assert_eq!(is_named, keeps, "{path} {running:?}");
        }
    }
}
