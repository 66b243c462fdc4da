use std::fs;

use serde_json::{Value, json};

use crate::setup::laid::Laid;

const SPEC: &str = "etc/cdi/amd.json";

fn of<'a>(answer: &'a Value, list: &str) -> Vec<(&'a str, &'a str)> {
    let change = |it: &'a Value| (it["path"].as_str().unwrap(), it["change"].as_str().unwrap());
    answer[list].as_array().unwrap().iter().map(change).collect()
}

#[test]
fn a_plan_is_applied_once_and_a_second_apply_touches_nothing() {
    let laid = Laid::demo("");
    let before = laid.tree();
    let plan = laid.json(&["plan"]);
    assert!(of(&plan, "changes").contains(&("/etc/cdi/amd.json", "create")), "{plan:#}");
    assert_eq!(laid.tree(), before, "a plan writes nothing");
    laid.run(&["plan", "--exit-code"]).code(3);

    let applied = laid.json(&["apply"]);
    assert_eq!(of(&applied, "changes"), of(&plan, "changes"));
    assert!(laid.text(SPEC).contains("amd.com/gpu"));

    let times = laid.times();
    assert_eq!(laid.json(&["apply"])["changes"], json!([]));
    laid.run(&["plan", "--exit-code"]).success();
    laid.run(&["status"]).success();
    assert_eq!(laid.times(), times, "a second apply touches nothing");

    laid.run(&["undo"]).success();
    assert_eq!(laid.tree(), before);
    let times = laid.times();
    laid.run(&["undo"]).success();
    assert_eq!(laid.times(), times, "a second undo touches nothing");
}

#[test]
fn a_file_that_somebody_edits_is_noticed_repaired_and_after_the_third_time_contested() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    let ours = laid.text(SPEC);
    for time in 1..=3 {
        laid.put(SPEC, "{\"theirs\":1}");
        laid.run(&["status"]).code(3);
        let applied = laid.json(&["apply"]);
        assert_eq!(of(&applied, "changes"), [("/etc/cdi/amd.json", "repair")], "the {time}. time");
        assert_eq!(laid.text(SPEC), ours);
    }
    laid.put(SPEC, "{\"theirs\":1}");
    let applied = laid.json(&["apply"]);
    assert_eq!(applied["changes"], json!([]));
    let said = laid.run(&["apply"]).success();
    let said = String::from_utf8_lossy(&said.get_output().stdout).into_owned();
    let left =
        format!("Nothing changed.\nLeft alone, for the reasons above: {}.\n", laid.path(SPEC).display());
    assert!(said.starts_with("contested ") && said.ends_with(&left), "{said}");
    let text = applied["contested"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("amd-ctk or the Concourse charm keeps writing it: repaired 3 times"), "{text}");
    assert_eq!(laid.text(SPEC), "{\"theirs\":1}", "never fight");
    laid.run(&["status"]).code(3);

    // Nothing was there before, and what is there now is unmanaged.
    let (code, said) = laid.fails(&["undo"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("somebody has changed it since: it stays as it is"), "{said}");
    laid.run(&["undo", "--force"]).success();
    assert!(!laid.path(SPEC).exists());
}

#[test]
fn what_was_there_before_comes_back_byte_for_byte() {
    let laid = Laid::demo("");
    laid.put(SPEC, "{\"cdiVersion\":\"0.3.0\",\"kind\":\"amd.com/gpu\",\"devices\":[]}");
    let before = laid.tree();
    let applied = laid.json(&["apply"]);
    assert!(of(&applied, "changes").contains(&("/etc/cdi/amd.json", "replace")));
    laid.run(&["undo"]).success();
    assert_eq!(laid.tree(), before);
}

#[test]
fn the_gpu_turned_off_takes_back_what_named_it() {
    let laid = Laid::demo("");
    laid.put("etc/rocworker/config.yaml", "compute-runtime: none\n");
    let before = laid.tree();
    laid.put("etc/rocworker/config.yaml", "");
    laid.run(&["apply"]).success();
    laid.put("etc/rocworker/config.yaml", "compute-runtime: none\n");
    let applied = laid.json(&["apply"]);
    assert!(of(&applied, "changes").contains(&("/etc/cdi/amd.json", "remove")), "{applied:#}");
    assert_eq!(laid.tree(), before);
}

#[test]
fn a_kept_plan_is_applied_to_the_machine_that_it_was_made_for_and_no_other() {
    let laid = Laid::demo("");
    let plan = laid.path("plan.json");
    let plan = plan.to_str().unwrap();
    laid.run(&["plan", "--save", plan]).success();
    laid.put(SPEC, "{\"kind\":\"amd.com/gpu\"}");
    let before = laid.tree();
    let (code, said) = laid.fails(&["apply", plan]);
    assert_eq!(code, 1);
    assert!(
        said.contains(
            "plan is stale, and nothing was applied: /etc/cdi/amd.json was nothing, and is a file, mode"
        ),
        "{said}"
    );
    let next = format!("rocworker plan --save {plan}");
    assert!(said.contains(&next), "{said}");
    assert_eq!(laid.tree(), before);
    fs::remove_dir_all(laid.path("etc/cdi")).unwrap();
    laid.run(&["apply", plan]).success();
    laid.run(&["plan", "--exit-code"]).success();

    let (code, said) = laid.fails(&["apply", "/no/such/plan"]);
    assert!(code == 2 && said.contains("the plan: cannot open /no/such/plan"), "{said}");
    let (code, said) = laid.fails(&["plan", "--save", "/no/such/folder/plan"]);
    assert!(code == 2 && said.contains("cannot write into /no/such/folder"), "{said}");
    fs::write(plan, "{").unwrap();
    let (code, said) = laid.fails(&["apply", plan]);
    assert_eq!(code, 2);
    assert!(said.contains("plan.json is no plan"), "{said}");
}

#[test]
fn history_tells_who_changed_what() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    laid.run(&["apply"]).success();
    laid.run(&["undo"]).success();
    let history = laid.json(&["history"]);
    let events = history["events"].as_array().unwrap();
    let commands: Vec<_> = events.iter().map(|event| event["command"].as_str().unwrap()).collect();
    assert_eq!(commands, ["apply", "undo"], "what changes nothing is no event");
    assert!(of(&events[0], "changed").contains(&("/etc/cdi/amd.json", "create")));
    assert!(of(&events[1], "changed").contains(&("/etc/cdi/amd.json", "remove")));
    assert_eq!(events[0]["config_sha256"].as_str().unwrap().len(), 64);
    assert!(events[0]["caller"].as_str().unwrap().starts_with("uid "), "{history:#}");
}

#[test]
fn an_index_keeps_meaning_the_gpu_that_it_meant_first() {
    let laid = Laid::demo("gpu-device-ids: 0\n");
    laid.run(&["apply"]).success();
    let status = laid.json(&["status"]);
    assert_eq!(status["chosen"][0]["word"], "0");
    assert_eq!(status["chosen"][0]["index"], 0);
    let memory = laid.text("var/lib/rocworker/memory.json");
    let uuid = status["chosen"][0]["uuid"].as_str().unwrap();
    // Another card is in its slot by now.
    laid.put("var/lib/rocworker/memory.json", &memory.replace(uuid, "GPU-00c0ffee00c0ffee"));
    let (code, said) = laid.fails(&["apply"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("and that GPU is not there any more"), "{said}");
}

#[test]
fn a_cdi_path_that_cannot_be_used_keeps_the_spec() {
    let laid = Laid::demo("wrapper: {requests: all}");
    laid.run(&["apply"]);
    let spec = laid.text(SPEC);
    laid.put("etc/cdi/other.json", "{\"x\":1}");
    laid.put("etc/rocworker/config.yaml", "wrapper: {requests: all}\ncdi: {path: /etc/cdi/other.json}\n");
    let (code, said) = laid.fails(&["apply"]);
    assert!(code == 1 && said.contains("no CDI spec of amd.com/gpu: name another file"), "{said}");
    assert_eq!(laid.text(SPEC), spec);
    fs::remove_file(laid.path("etc/cdi/other.json")).unwrap();
    // The wrapper reads no spec.
    laid.run(&["apply"]);
}
