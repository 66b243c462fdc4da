//! Leases and tickets, as they are kept in /run/rocworker: read by serde_json, as records are (see there).

use allocation::{
    document::Document as _,
    lease::Lease,
    ticket::{Ticket, Wants},
};
use serde_json::{Value, json};

use crate::{
    record::{fields, is_the_gpu, tree},
    reference::normal,
};

/// The text of a lease, or of a ticket.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = (Lease::parse(text), Ticket::parse(text));
    match &read {
        (Ok(lease), Err(_)) => is_kept(lease, text),
        (Err(_), Ok(ticket)) => is_waited_for(ticket, text),
        (Err(lease), Err(ticket)) => {
            assert!(!lease.to_string().is_empty() && !ticket.to_string().is_empty());
        }
        (Ok(_), Ok(_)) => panic!("a lease and a ticket at once: {text}"),
    }
}

fn is_kept(lease: &Lease, text: &str) {
    assert!(lease.schema_version <= Lease::SCHEMA_VERSION);
    let written = lease.to_json().expect("every lease can be written");
    assert_eq!(&Lease::parse(&written).expect("what was written reads again"), lease);
    let (before, after) = (tree(text), tree(&written));
    for key in ["schema_version", "root", "id", "kind", "since", "cgroups_path", "idle_since_ms"] {
        assert_eq!(named(&before[key]), after[key], "{key}");
    }
    same_creator(&before, &after);
    is_the_gpu(&before["gpu"], &after["gpu"]);
    names_its_cgroup(lease);
}

/// Which cgroups can be this container's is said by its own path, or by its own id.
fn names_its_cgroup(lease: &Lease) {
    let id = &lease.id;
    let path = lease.cgroups_path.as_deref().unwrap_or_default();
    let below_the_root = normal(path);
    let Some(ends) = lease.cgroup_ends() else {
        return assert!(!path.is_empty() && below_the_root.is_empty(), "{path} is not the root cgroup");
    };
    if path.is_empty() {
        return assert_eq!(ends, [id.clone(), format!("runc-{id}.scope"), format!("crun-{id}.scope")]);
    }
    assert!(!below_the_root.is_empty() && ends[0] == below_the_root, "{path} ends in {ends:?}");
    assert!(ends.len() <= 2 && ends.iter().all(|end| !end.is_empty()), "{path} ends in {ends:?}");
    if let Some(scope) = ends.get(1) {
        let pieces: Vec<&str> = path.split(':').collect();
        assert_eq!(pieces.len(), 3, "{path} is not SLICE:PREFIX:NAME");
        let name = scope.strip_suffix(".scope").unwrap_or(scope);
        assert!(name.ends_with(pieces[2]) || pieces[2] == *scope, "{scope} of {path}");
    }
}

fn is_waited_for(ticket: &Ticket, text: &str) {
    assert!(ticket.schema_version <= Ticket::SCHEMA_VERSION);
    let written = ticket.to_json().expect("every ticket can be written");
    assert_eq!(&Ticket::parse(&written).expect("what was written reads again"), ticket);
    let (before, after) = (tree(text), tree(&written));
    for key in ["schema_version", "root", "id", "since"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    same_creator(&before, &after);
    match &ticket.wants {
        Wants::Count(count) => assert_eq!(before["wants"], json!({"count": count})),
        Wants::Named(renders) => {
            let wanted = before["wants"]["named"].as_array().expect("a list");
            let path = |name: &Value| {
                let name = name.as_str().expect("a text");
                format!("/dev/dri/{}", name.strip_prefix("/dev/dri/").unwrap_or(name))
            };
            assert!(wanted.iter().map(path).eq(renders.iter().map(|render| render.path())));
        }
    }
}

fn same_creator(before: &Value, after: &Value) {
    let creator = |tree: &Value| fields(&tree["creator"], &["pid", "start_time", "boot_id"]);
    assert_eq!(creator(before), creator(after));
}

/// A name that serde takes in a longer form, too: `{"named":null}`.
fn named(value: &Value) -> Value {
    match value.as_object().filter(|object| object.len() == 1) {
        Some(object) => object.keys().next().map_or(Value::Null, |name| json!(name)),
        None => value.clone(),
    }
}
