//! A dockerd that runs and does not say what it runs by.

use std::path::Path;

use rocworker::engines::InForce;
use rocworker::engines::docker::DefaultRuntime;
use rocworker::engines::undo_constraints::undo_constraints;

use super::{config, docker};

const PATHS: [&str; 2] = ["/usr/lib/rocworker/runc-amd-wrapper", "/usr/local/lib/rocworker/runc-amd-wrapper"];

#[test]
fn it_keeps_the_wrapper_wherever_it_stands() {
    let runtime = |name: &str| Ok(DefaultRuntime { name: name.to_owned(), program: None });
    for (running, keeps) in [
        (Some(Err("timed out".to_owned())), true),
        (Some(runtime("amd")), true),
        (Some(runtime("kata")), false),
        (None, false),
    ] {
        let in_force = InForce { running, ..InForce::default() };
        let now = undo_constraints(&config(""), &in_force, &docker("28.5.2", Some("{}")));
        for path in PATHS {
            let named = now.named.iter().any(|named| Path::new(&named.value) == Path::new(path));
            assert_eq!(named, keeps, "{path} {:?}", in_force.running);
        }
    }
}
