//! `explain` of what KFD says of cards that it leaves out: its lines have PCI's ids in place of an address.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use layout::{Gpu, Kfd, KfdNode, Machine, Module, Nodes};
use serde_json::Value;
use support::cases;
use support::detect::scratch;

const ROCWORKER: &str = env!("CARGO_BIN_EXE_rocworker");

fn explain(root: &Path, arguments: &[&str], log: &[u8]) -> String {
    let mut command = Command::new(ROCWORKER);
    command.arg("--root").arg(root).args(arguments).args(["explain", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(log).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn matches(root: &Path, log: &[u8]) -> Vec<Value> {
    let answer: Value = serde_json::from_str(&explain(root, &["-o", "json"], log)).unwrap();
    answer["matches"].as_array().unwrap().clone()
}

fn notes(found: &Value) -> String {
    let notes = found["notes"].as_array().unwrap().iter();
    notes.map(|note| note.as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_line_of_the_users_reports_is_known_and_lists_the_equal_cards_that_kfd_leaves_out() {
    let lines = cases::lines("kfd-lines");
    let root = scratch();
    let ids: Vec<_> = matches(root.path(), &lines).iter().map(|found| found["id"].clone()).collect();
    let expected =
        ["kfd-atomics", "kfd-atomics-unsaid", "kfd-atomics-firmware", "kfd-unsupported", "kfd-parameter"];
    assert_eq!(ids, expected);

    let Some(case) = cases::machine("polaris-atomics") else { return };
    let found = matches(&case.root(), &lines);
    let left_out = "Of this machine's cards 1002:67df KFD leaves out 0000:03:00.0, 0000:05:00.0, 0000:06:00.0, \
                    0000:07:00.0, and has 0000:01:00.0, 0000:02:00.0: compare the slots.";
    assert!(notes(&found[0]).contains(left_out), "{:#}", found[0]);
    assert!(found[0]["means"].as_str().unwrap().contains("this kernel knows no firmware"), "{:#}", found[0]);
    assert_eq!(found[0]["values"]["needed"], "0");
    assert!(found[0]["gpu"].is_null() && found[0]["drain"] == false, "{:#}", found[0]);
    assert!(notes(&found[2]).contains("This machine has no card 1002:7341"), "{:#}", found[2]);
    assert_eq!(
        (&found[2]["values"]["firmware"], &found[2]["values"]["needed"]),
        (&"123".into(), &"145".into())
    );
}

#[test]
fn the_one_card_with_these_ids_that_kfd_leaves_out_is_the_lines_if_it_is_this_machines() {
    let node = KfdNode::gpu(7128, 0x67df, 80_003).at("0000:01:00.0").render(128);
    let machine = Machine::new()
        .module(Module::new("amdgpu"))
        .gpu(Gpu::amd("0000:01:00.0", 0x67df).card(0).render(128))
        .gpu(Gpu::amd("0000:04:00.0", 0x67df).card(1).render(129))
        .kfd(Kfd::new(511).node(KfdNode::cpu(4)).node(node));
    let root = scratch();
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    let log = "kfd kfd: amdgpu: skipped device 1002:67df, PCI rejects atomics 730<0\n\
               kfd kfd: amdgpu: skipped device 1002:7341, PCI rejects atomics 123<145\n\
               kfd kfd: amdgpu: skipped device 1002:73bf, PCI rejects atomics 80<92\n";
    let text = explain(root.path(), &[], log.as_bytes());
    assert!(text.contains("the line names none; if it is this machine's: 0000:04:00.0, index 1"), "{text}");
    assert!(text.contains("KFD leaves out 0000:04:00.0, and has 0000:01:00.0: compare the slots."), "{text}");
    // Lines about other cards are entries of their own.
    assert!(text.contains("no card 1002:7341") && text.contains("no card 1002:73bf"), "{text}");
}
