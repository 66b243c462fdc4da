//! The policy, /etc/rocworker/wrapper.json, and what it gives away.

use std::collections::BTreeSet;

use allocation::{
    cdi::{Outline, Spec},
    policy::{Ask, Default, Policy, Requests, Setting},
    request::Request,
    selection::{Chosen, Inventory},
};
use serde_json::Value;

const SPEC: &str = include_str!("../seeds/cdi/partitions");

/// The text of a policy.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let policy = match Policy::parse(text) {
        Ok(policy) => policy,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    says_what_stands_there(&policy, text);
    gives_what_it_has(&policy);
}

fn says_what_stands_there(policy: &Policy, text: &str) {
    // A number that is no f64 can stand only in what this version refuses.
    let tree: Value = serde_json::from_str(text).expect("JSON");
    let file = tree.as_object().expect("read, so it is an object");
    let version = file.get("schema_version").and_then(Value::as_u64);
    assert!(version == Some(1) || file.values().all(Value::is_null), "{text}");
    let requests = policy.requests.map(|requests| match requests {
        Requests::Deny => "deny",
        Requests::Named => "named",
        Requests::Count => "count",
        Requests::All => "all",
    });
    assert_eq!(tree["requests"].as_str(), requests);
    assert_eq!(tree["default"].as_str() == Some("all"), policy.default == Default::All);
    assert_eq!(tree["runtime"].as_str(), policy.runtime.as_deref());
    assert!(policy.runtime.as_ref().is_none_or(|runtime| runtime.starts_with('/')));
    assert_eq!(tree["gpus"].as_array().map(Vec::len), policy.gpus.as_ref().map(Vec::len));
    for pair in policy.gpus.as_deref().unwrap_or_default().windows(2) {
        assert!(pair[0].index < pair[1].index, "in the order of their indexes, each once");
    }
    let asks = [Request::All, Request::Count(1)];
    for request in &asks {
        let answer = policy.ask(Some(request), Setting::default());
        match (policy.says_nothing(), policy.requests) {
            (true, _) => assert_eq!(answer, Ok(Ask::Nothing)),
            (false, None | Some(Requests::Deny)) => assert!(answer.is_err()),
            (false, Some(Requests::All)) => assert_eq!(answer, Ok(Ask::Explicit(request))),
            (false, Some(Requests::Named | Requests::Count)) => {}
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
