//! The policy, /etc/rocworker/wrapper.json, and what it gives away.

use std::collections::BTreeSet;

use allocation::{
    Error,
    gpu::Gpu,
    policy::{self, Ask, Policy, Requests, Setting},
    request::Request,
    selection::Pool,
};

use crate::{
    assert_fit_for_a_log,
    json::{as_go_decodes, members, value},
};

/// The text of a policy.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = Policy::parse(text);
    // The second look reads no half of a surrogate pair; nobody writes one into a policy.
    if as_go_decodes(text) == text {
        names_its_version_and_runtime(text, &read);
    }
    match read {
        Ok(policy) => {
            answers(&policy);
            gives_what_it_has(&Pool::new(policy.gpus.unwrap_or_default()));
        }
        Err(error) => assert_fit_for_a_log(&error.to_string()),
    }
}

/// A newer version's policy is named as such, whatever else stands in it, and its runtime is known.
fn names_its_version_and_runtime(text: &str, read: &Result<Policy, Error>) {
    let version = single(text, "schema_version").and_then(value::<u64>);
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
    let expected = single(text, "runtime").and_then(value::<String>);
    assert_eq!(policy::runtime(text), expected, "{text}");
    if let Ok(policy) = read {
        assert_eq!(policy.runtime, expected, "{text}");
    }
}

/// The member of this name where it stands once in an object.
fn single<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let members = members(text)?;
    let mut found = members.iter().filter(|(key, _)| key == name).map(|(_, value)| *value);
    let (first, second) = (found.next(), found.next());
    first.filter(|_| second.is_none())
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

fn gives_what_it_has(pool: &Pool) {
    let gpus = pool.gpus();
    assert_each_once(&gpus.iter().collect::<Vec<_>>());
    let nodes =
        |gpu: &Gpu| gpu.nodes.iter().filter(|node| node.path.ends_with(&gpu.render.to_string())).count();
    assert!(gpus.iter().all(|gpu| nodes(gpu) == 1), "{gpus:?}");
    let (by_default, left_out) = pool.by_default();
    assert_eq!((by_default.len(), left_out.is_empty()), (gpus.len(), !gpus.is_empty()));
    let all = pool.select(&Request::All, |_| 0);
    assert_eq!(all.ok(), (!gpus.is_empty()).then_some(by_default));
    for count in 1..=gpus.len().min(4) + 1 {
        let request = Request::Count(u32::try_from(count).expect("small"));
        match pool.select(&request, |gpu| gpu.index as usize % 3) {
            Ok(chosen) => {
                assert_eq!(chosen.len(), count);
                assert_each_once(&chosen);
            }
            Err(_) => assert!(count > gpus.len(), "{count} of {}", gpus.len()),
        }
    }
    for gpu in gpus {
        for name in [gpu.index.to_string(), gpu.render.to_string()] {
            let named = Request::from_visible_devices(&name).expect("a GPU's own name");
            assert_eq!(pool.select(&named, |_| 0), Ok(vec![gpu]), "{name}");
        }
    }
}

/// In the order of the indexes, each index and each render node once.
fn assert_each_once(chosen: &[&Gpu]) {
    assert!(chosen.iter().map(|gpu| gpu.index).is_sorted_by(|one, next| one < next), "{chosen:?}");
    let renders: BTreeSet<_> = chosen.iter().map(|gpu| gpu.render).collect();
    assert_eq!(renders.len(), chosen.len(), "one render node for two GPUs: {chosen:?}");
}
