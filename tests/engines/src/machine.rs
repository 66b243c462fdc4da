//! The machines of the tests, with the spec that rocworker writes for them.

use std::path::PathBuf;

use cdi::{Wanted, wanted};
use config::Config;
use config::selection::select;
use host::facts::Facts;
use layout::Machine;
use render::Templates;
use support::stage::Stage;

/// Requests of every kind count; without one there is no GPU.
pub const ASKED: &str = r#"{"schema_version":1,"requests":"all","default":"none","sharing":"shared"}"#;
/// The policy of a Concourse worker: every task has every GPU.
pub const ALL: &str = r#"{"schema_version":1,"requests":"all","default":"all","sharing":"shared"}"#;

/// A stage with the machine, the CDI spec that rocworker makes of it, and a policy.
///
/// # Panics
/// Where rocworker makes no spec of it.
pub fn stage(machine: &Machine, policy: &str) -> Stage {
    let stage = Stage::set(machine);
    let root = root::Root::open(&stage.folder().join("machine")).unwrap();
    let config = Config::read(&root).unwrap();
    let facts = Facts::read(&root);
    let selection = select(&config, &facts).unwrap();
    let Wanted::Spec(spec) = wanted(&config, &selection, &facts.inventory) else {
        panic!("rocworker offers no GPU of this machine");
    };
    stage.put("etc/cdi/amd.json", &cdi::text(&Templates::built_in(), &spec).unwrap());
    stage.put("etc/rocworker/wrapper.json", policy);
    stage
}

/// The output of a look in a container with these GPUs of the demo machine, each of its nodes with this
/// outcome.
pub fn seen_on_demo(indexes: impl IntoIterator<Item = u32>, outcome: &str) -> String {
    // tests/layout/src/sample.rs: card1 and renderD129 are the W7900, card2 and renderD130 on the partitions.
    let gpus: Vec<(u32, u32)> = indexes.into_iter().map(|index| (1 + index, 129 + index)).collect();
    // KFD's major in that machine is 241.
    seen(&gpus, 241, outcome)
}

/// The output of a look in a container with the 64 partitions of [`Machine::instinct`]`(8, 8)`.
pub fn seen_on_instinct(outcome: &str) -> String {
    // tests/layout/src/sample.rs: cards are numbered through from 1, each card has 16 render minors reserved; KFD's
    // major is 511.
    let gpus: Vec<(u32, u32)> = (0..64).map(|n| (1 + n, 128 + 16 * (n / 8) + n % 8)).collect();
    seen(&gpus, 511, outcome)
}

fn seen(gpus: &[(u32, u32)], kfd: u32, outcome: &str) -> String {
    if gpus.is_empty() {
        return String::new();
    }
    let cards = gpus.iter().map(|(card, _)| format!("/dev/dri/card{card} e2:{card:x} {outcome}\n"));
    let renders =
        gpus.iter().map(|(_, render)| format!("/dev/dri/renderD{render} e2:{render:x} {outcome}\n"));
    let mut lines: Vec<String> = cards.chain(renders).collect();
    lines.push(format!("/dev/kfd {kfd:x}:0 {outcome}\n"));
    lines.sort_by(|a, b| a.split(' ').next().cmp(&b.split(' ').next()));
    lines.concat()
}

/// The path on this machine of the root file system for containers.
pub fn rootfs(stage: &Stage) -> PathBuf {
    stage.folder().join("rootfs")
}
