//! The policy, /etc/rocworker/wrapper.json, and what it gives away.

use std::collections::BTreeSet;

use allocation::{
    Error,
    cdi::{Outline, Spec},
    policy::{self, Ask, Policy, Requests, Setting},
    request::Request,
    selection::{Chosen, Inventory},
};

use crate::{
    assert_fit_for_a_log,
    json::{as_go_decodes, is_shallow, value},
    oracle::policy as oracle,
};

const SPEC: &str = include_str!("../seeds/cdi/partitions");

/// The text of a policy.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = Policy::parse(text);
    // Go does not read this file. A lone surrogate in it is read as by the reader that it shares with what Go reads.
    let as_read = as_go_decodes(text);
    assert_eq!(read.as_ref().ok(), oracle::read(&as_read).as_ref(), "{text}");
    // Nobody writes a policy as deep as that, and what goes past a value counts otherwise in serde_json.
    if is_shallow(text) {
        names_its_version_and_runtime(text, &as_read, &read);
    }
    match read {
        Ok(policy) => {
            answers(&policy);
            gives_what_it_has(&policy);
        }
        Err(error) => assert_fit_for_a_log(&error.to_string()),
    }
}

/// A newer version's policy is named as such, whatever else stands in it, and its runtime is known.
fn names_its_version_and_runtime(text: &str, as_read: &str, read: &Result<Policy, Error>) {
    let version = oracle::single(as_read, "schema_version").and_then(value::<u64>);
    let newer = version.filter(|version| *version > u64::from(policy::SCHEMA_VERSION));
    let said = newer.map(|version| format!("schema_version {version} belongs to a newer version"));
    let is_newer = |error: &Error| {
        error.to_string().starts_with("schema_version ") && error.to_string().contains(" newer ")
    };
    match (read, said) {
        (Err(error), Some(said)) => assert!(error.to_string().starts_with(&said), "{error} of {text}"),
        (Err(error), None) => assert!(!is_newer(error), "{error} of {text}"),
        (read, Some(said)) => panic!("{said}, and is read as {read:?}"),
        (Ok(_), None) => {}
    }
    let runtime = oracle::single(as_read, "runtime");
    let expected = runtime.and_then(value::<String>);
    assert_eq!(policy::runtime(text), expected, "{text}");
    if let Ok(policy) = read {
        assert_eq!(policy.runtime, expected, "{text}");
    }
}

fn answers(policy: &Policy) {
    let asks = [Request::All, Request::Count(1)];
    for request in &asks {
        let answer = policy.ask(Some(request), Setting::default());
        let pods = policy.ask(Some(request), Setting { kubernetes: true, ..Setting::default() });
        for (answer, requests) in [(answer, policy.requests), (pods, policy.pods)] {
            match (policy.says_nothing(), requests) {
                (true, _) => assert_eq!(answer, Ok(Ask::Nothing)),
                (false, None | Some(Requests::Deny)) => assert!(answer.is_err()),
                (false, Some(Requests::All)) => assert_eq!(answer, Ok(Ask::Explicit(request))),
                (false, Some(Requests::Named | Requests::Count)) => {}
            }
        }
    }
    assert_eq!(policy.ask(Some(&Request::Nothing), Setting::default()), Ok(Ask::Nothing));
}

fn gives_what_it_has(policy: &Policy) {
    let spec = Spec::parse(SPEC).expect("a seed");
    let outline = Outline::parse(SPEC).expect("a seed");
    let inventory = Inventory::new(policy, &outline);
    let (there, gone) = inventory.all_that_is_there();
    assert_each_once(&there, &spec);
    let most = inventory.gpus().count();
    assert_eq!(there.len() + gone.len(), most.max(1), "each is there or gone, and none at all is said");
    match inventory.select(&Request::All, |_| 0) {
        Ok(chosen) => assert_eq!((chosen.len(), most > 0), (there.len(), true)),
        Err(_) => assert!(!gone.is_empty()),
    }
    for count in 1..=most.min(4) + 1 {
        let request = Request::Count(u32::try_from(count).expect("small"));
        match inventory.select(&request, |gpu| gpu.index as usize % 3) {
            Ok(chosen) => {
                assert_eq!(chosen.len(), count);
                assert_each_once(&chosen, &spec);
            }
            Err(_) => assert!(count > there.len(), "{count} of {}", there.len()),
        }
    }
    for gpu in inventory.gpus() {
        let named = Request::from_visible_devices(&gpu.index.to_string()).expect("an index");
        if let Ok(chosen) = inventory.select(&named, |_| 0) {
            assert_eq!(chosen.iter().map(|chosen| chosen.gpu.index).collect::<Vec<_>>(), [gpu.index]);
        }
    }
}

/// In the order of the indexes, each index once, and every one a device of the spec.
fn assert_each_once(chosen: &[Chosen<'_>], spec: &Spec<'_>) {
    assert!(chosen.iter().all(|chosen| chosen.device < spec.devices.len()));
    let indexes: BTreeSet<u32> = chosen.iter().map(|chosen| chosen.gpu.index).collect();
    assert!(chosen.iter().map(|chosen| chosen.gpu.index).eq(indexes));
    let devices: BTreeSet<usize> = chosen.iter().map(|chosen| chosen.device).collect();
    assert_eq!(devices.len(), chosen.len(), "one device for two GPUs: {chosen:?}");
}
