//! The wrapper's policy: what it says of a machine and a configuration, and that the wrapper's own parser reads it.

use std::path::Path;

use allocation::policy::{DefaultGrant as Grant, PATH, Policy as Parsed, Requests, Sharing};
use allocation::{request::Request, selection::Pool};
use config::Config;
use config::selection::select;
use host::facts::Facts;
use layout::{Machine, Nodes, XcpNames};
use reconcile::{Content, Kind, Stage};
use render::{self, Templates};
use rocworker::desired::policy::{Callers, Policy, action, policy, text};
use root::Root;
use support::captures;
use support::detect::scratch;

fn of(machine: &Machine, config: &str, concourse: bool) -> Policy {
    let dir = scratch();
    machine.lay_out(dir.path(), Nodes::Recorded).unwrap();
    let facts = Facts::read(&Root::open(dir.path()).unwrap());
    let config = Config::parse(Path::new("/etc/rocworker/config.yaml"), config).unwrap();
    let callers = Callers { concourse, ..Callers::default() };
    policy(&config, &select(&config, &facts).unwrap(), &facts.inventory, callers)
}

fn rendered(policy: &Policy) -> Result<String, render::Error> {
    Templates::built_in().render(render::WRAPPER, policy)
}

/// The text, and what the wrapper makes of it.
fn told(machine: &Machine, config: &str, concourse: bool) -> (String, Parsed) {
    let text = text(&Templates::built_in(), &of(machine, config, concourse)).unwrap();
    let parsed = Parsed::parse(&text).unwrap();
    (text, parsed)
}

#[test]
fn a_machine_that_is_no_concourse_worker_gives_a_gpu_to_those_who_ask() {
    let (text, parsed) = told(&captures::phoenix_beside_rtx4080(), "", false);
    insta::assert_snapshot!("by_name", text);
    assert_eq!((parsed.requests, parsed.default), (Some(Requests::All), Grant::None));
    assert_eq!((parsed.pods, parsed.folders.len()), (None, 0));
    assert_eq!(parsed.gpus.unwrap().len(), 1);
    let denied = told(&captures::phoenix(), "wrapper: {requests: deny}", false).1;
    assert_eq!((denied.requests, denied.default), (Some(Requests::Deny), Grant::None));
}

#[test]
fn pods_may_ask_where_the_configuration_lets_them() {
    let pods = |config: &str| told(&captures::phoenix(), config, false).1.pods;
    for (word, requests) in [("all", Requests::All), ("named", Requests::Named), ("deny", Requests::Deny)] {
        assert_eq!(pods(&format!("wrapper: {{pods: {word}}}")), Some(requests));
    }
    // An older wrapper refuses a policy with a key that it does not know.
    assert!(!told(&captures::phoenix(), "wrapper: {pods: null}", false).0.contains("pods"));
}

#[test]
fn a_concourse_worker_gives_all_to_everyone() {
    let machine = captures::phoenix_beside_rtx4080();
    insta::assert_snapshot!("concourse", rendered(&of(&machine, "", true)).unwrap());
    let (_, parsed) = told(&machine, "", true);
    assert_eq!((parsed.requests, parsed.default), (Some(Requests::All), Grant::All));
    assert!(parsed.folders.is_empty(), "no folder of the host's is a task's unless somebody says so");
}

/// What the program writes of 63 partitions, and a request as a container makes it.
#[test]
fn a_request_by_a_partitioned_cards_uuid_gets_all_its_partitions() {
    let (text, policy) = told(&captures::mi300x(XcpNames::Dot), "", true);
    assert_eq!(text.matches("\"GPU-2250f807caf2231a\"").count(), 8, "{text}");
    let pool = Pool::new(policy.gpus.unwrap());
    let asked = Request::from_visible_devices("GPU-2250f807caf2231a").unwrap();
    let selected = pool.select(&asked, |_| 0).unwrap();
    // drm_render_minor of nodes 10 to 17.
    let renders: Vec<u32> = selected.iter().map(|gpu| gpu.render.number()).collect();
    assert_eq!(renders, (136..=143).collect::<Vec<u32>>());
}

#[test]
fn where_a_gpu_has_one_holder_nobody_gets_it_unasked() {
    let (_, parsed) = told(&captures::phoenix(), "wrapper: {folders: [], sharing: exclusive}", true);
    assert_eq!(
        (parsed.requests, parsed.default, parsed.sharing),
        (Some(Requests::All), Grant::None, Sharing::Exclusive)
    );
}

#[test]
fn what_is_configured_goes_before_what_is_usual() {
    for concourse in [false, true] {
        let configured = "wrapper: {runtime: /opt/bin/runc, requests: named, default: none, sharing: exclusive, \
                          wait-limit-s: 30, idle-grace-s: 600, folders: []}";
        let (_, parsed) = told(&captures::phoenix(), configured, concourse);
        assert_eq!((parsed.requests, parsed.default), (Some(Requests::Named), Grant::None));
        assert_eq!(parsed.runtime.as_deref(), Some("/opt/bin/runc"));
        assert_eq!((parsed.wait_limit_s, parsed.idle_grace_s), (30, Some(600)));
    }
    assert_eq!(told(&captures::phoenix(), "wrapper: {default: all}", false).1.default, Grant::All);
}

#[test]
fn quarantine_stands_in_the_policy_only_where_it_is_configured() {
    // An older wrapper refuses a policy with a key that it does not know.
    for config in ["", "wrapper: {quarantine: false}", "wrapper: {quarantine: null}"] {
        let (text, parsed) = told(&captures::phoenix(), config, false);
        assert!(!text.contains("quarantine") && !parsed.quarantine, "{config}: {text}");
    }
    let without = told(&captures::phoenix(), "", false).0;
    let (text, parsed) = told(&captures::phoenix(), "wrapper: {quarantine: true}", false);
    assert!(parsed.quarantine);
    assert_eq!(text.replace("  \"quarantine\": true,\n", ""), without);
}

#[test]
fn folders_and_edits_are_written_as_they_are_configured() {
    let configured = "wrapper: {folders: [/srv, /data/shared], edits: {shm-size: 8G, memlock: unlimited, \
                      hsa-override-gfx-version: {gfx1103: \"11.0.0\", gfx942: \"9.4.2\"}}}";
    // By snapshot: a wrapper that cannot do these yet refuses them.
    let policy = of(&captures::phoenix(), configured, false);
    insta::assert_snapshot!("edits", rendered(&policy).unwrap());
    let bytes = of(&captures::phoenix(), "wrapper: {edits: {memlock: 1G}}", false);
    let text = rendered(&bytes).unwrap();
    assert!(text.contains(r#""edits": {"memlock_bytes":1073741824}"#), "{text}");
}

#[test]
fn each_partition_names_the_card_that_its_node_must_be_of() {
    let (_, parsed) = told(&captures::mi300x(XcpNames::Underscore), "", false);
    let gpus = parsed.gpus.unwrap();
    assert_eq!(gpus.len(), 63);
    // tests/support/src/captures.rs, MI300X: the second card's first partition is KFD node 10, render 136.
    let ninth = gpus.get(8).unwrap();
    assert_eq!((ninth.index, ninth.card.unwrap().to_string()), (8, "0000:27:00.0".to_owned()));
    assert_eq!(ninth.render.to_string(), "renderD136");
}

#[test]
fn a_hive_is_the_number_that_kfd_gives_it() {
    // tests/layout/src/sample.rs: the partitioned card's nodes have hive_id 0x5ca1ab1effffffff.
    let policy = of(&Machine::demo(), "", false);
    let hives: Vec<_> = policy.gpus.iter().filter_map(|gpu| gpu.hive.as_deref()).collect();
    assert!(
        !hives.is_empty() && hives.iter().all(|hive| *hive == 0x5ca1_ab1e_ffff_ffff_u64.to_string()),
        "{hives:?}"
    );
}

#[test]
fn only_selected_gpus_stand_in_it() {
    let policy = of(&captures::mi300x(XcpNames::Underscore), "gpu-device-ids: [3, 5]", false);
    assert_eq!(policy.gpus.iter().map(|gpu| gpu.index).collect::<Vec<_>>(), [3, 5]);
}

#[test]
fn its_file_is_roots_and_readable_by_all() {
    let action = action("{}\n".to_owned(), None);
    let Kind::Owned(Content::File { bytes, attributes }) = &action.kind else { unreachable!("{action:?}") };
    assert_eq!((bytes.as_slice(), attributes.mode, action.stage), (&b"{}\n"[..], 0o644, Stage::Expose));
    assert_eq!(action.path, Path::new(PATH));
}
