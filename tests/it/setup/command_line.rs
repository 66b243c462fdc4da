//! What the command line says and takes: options, help, suggestions, exit codes, and the commands that answers name.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use assert_cmd::Command;
use layout::Machine;
use serde_json::json;
use support::captures;
use unicode_width::UnicodeWidthStr as _;

use crate::setup::laid::Laid;

const SCRIPTS: [&str; 7] = ["boot", "boot-partitions", "hook", "deb", "probe", "settle", "therock"];

/// Exit code, and what it said on both streams.
pub(super) fn said(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_rocworker")).args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(said).unwrap())
}

fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '-').collect()
}

#[test]
fn help_has_an_example_the_files_and_the_exit_codes() {
    let (code, help) = said(&["--help"]);
    assert_eq!(code, 0);
    for part in [
        "Example:\n",
        "sudo rocworker apply",
        "Files:\n",
        "/etc/rocworker/config.yaml",
        "Exit codes:\n",
        "  3  pending",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
    assert!(help.lines().all(|line| line.width() <= 100), "{help}");
    let (_, page) = said(&["man"]);
    for section in ["EXAMPLES", "FILES", "EXIT STATUS"] {
        assert!(page.contains(&format!(".SH \"{section}\"\n")), "{section}: {page}");
    }
}

#[test]
fn what_only_scripts_run_is_named_nowhere() {
    let mut texts = vec![said(&["--help"]).1, said(&["-h"]).1, said(&["-v"]).1, said(&["man"]).1];
    // Each is a letter away from a command of scripts.
    texts.extend(["boo", "hoo", "de", "prob", "settl"].map(|word| {
        let (code, said) = said(&[word]);
        assert_eq!(code, 2, "{said}");
        said
    }));
    let shells = ["bash", "zsh", "fish", "elvish", "powershell"];
    texts.extend(shells.map(|shell| said(&["completions", shell]).1));
    for text in &texts {
        // In completions, a description may have the word; a command stands in quotes or after the program's name.
        for script in SCRIPTS {
            let is_named = |line: &str| {
                [
                    "'{}'",
                    "({} ",
                    " {})",
                    "rocworker,{})",
                    "rocworker;{}'",
                    "rocworker {}",
                    "    {} ",
                    ", {},",
                    "rocworker-{}",
                ]
                .iter()
                .any(|form| line.contains(&form.replace("{}", script)))
            };
            let line = text.lines().find(|line| is_named(line));
            assert_eq!(line, None, "{script}");
        }
    }
    let (code, plan) = said(&["pla"]);
    assert!(code == 2 && words(&plan).contains(&"plan"), "a visible one is suggested: {plan}");
    for script in SCRIPTS {
        assert_eq!(said(&[script, "--help"]).0, 0, "{script} runs all the same");
    }
    let (_, about) = said(&["plan", "--ou"]);
    assert!(!about.contains("--out"), "{about}");
}

#[test]
fn old_and_new_names_of_options_work() {
    let laid = Laid::demo("");
    for option in ["--out", "--save"] {
        let plan = laid.path(&format!("plan{option}.json"));
        laid.run(&["plan", option, plan.to_str().unwrap()]).success();
        assert_eq!(
            laid.json(&["plan"])["config_sha256"],
            serde_json::from_slice::<serde_json::Value>(&fs::read(plan).unwrap()).unwrap()["config_sha256"]
        );
    }
    let (code, said) = laid.fails(&["lxd", "advise", "--json", "/srv/resources"]);
    assert!(code == 2 && said.contains("--resources /srv/resources; --json is -o json"), "{said}");
    let (code, said) = laid.fails(&["detect", "--json", "-o", "wide"]);
    assert!(code == 2 && said.contains("'--json' cannot be used with '--output <FORMAT>'"), "{said}");
    let by = |option: &str| laid.run(&["detect", option, "json"]).success().get_output().stdout.clone();
    assert_eq!(by("-o"), by("--output"));
}

#[test]
fn an_undo_is_shown_before_it_is_made() {
    let laid = Laid::with_engines("");
    let (code, before) = laid.fails(&["undo", "--dry-run"]);
    assert!(code == 0 && before == "rocworker manages nothing here: nothing to undo\n", "{before}");
    laid.run(&["apply"]);
    let (tree, times) = (laid.tree(), laid.times());
    let (code, shown) = laid.fails(&["undo", "--dry-run"]);
    let next = "rocworker undo reverts them\n";
    assert!(code == 0 && shown.ends_with(next), "{shown}");
    let planned = laid.json(&["undo", "--dry-run"]);
    assert_eq!((laid.tree(), laid.times()), (tree, times), "a dry run writes nothing");
    let undone = laid.json(&["undo"]);
    let of = |answer: &serde_json::Value| {
        let changes = answer["changes"].as_array().unwrap().clone();
        changes.into_iter().map(|it| (it["path"].clone(), it["change"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(of(&planned), of(&undone));
    assert!(
        !of(&planned).is_empty() && planned["effects"].as_array().is_some_and(|it| !it.is_empty()),
        "{planned:#}"
    );

    // What somebody has changed is left, and goes with --force.
    laid.run(&["apply"]);
    laid.put("etc/cdi/amd.json", "{}");
    let left = |arguments: &[&str]| laid.json(arguments)["left"].as_array().unwrap().len();
    assert_eq!((left(&["undo", "--dry-run"]), left(&["undo", "--dry-run", "--force"])), (1, 0));
}

#[test]
fn a_configuration_is_checked_before_it_is_applied() {
    let laid = Laid::demo("compute-runtime: none\n");
    let (code, valid) = laid.fails(&["config", "validate"]);
    assert!(code == 0 && valid.contains("config.yaml is valid; rocworker plan"), "{valid}");
    laid.put("other.yaml", "tag: x\nno-such-key: 1\n");
    let other = laid.path("other.yaml");
    let other = other.to_str().unwrap();
    let (code, wrong) = laid.fails(&["config", "validate", other]);
    assert_eq!((code, wrong.starts_with(&format!("rocworker: {other}:2: "))), (2, true), "{wrong}");
    assert_eq!(wrong.lines().count(), 1, "{wrong}");
    let answer = laid.json(&["config", "validate", other]);
    assert_eq!((&answer["valid"], &answer["path"]), (&json!(false), &json!(other)));
    assert!(answer["problem"].as_str().unwrap().contains(":2: "), "{answer}");
    laid.put("etc/rocworker/config.yaml", "# later\n");
    let (code, empty) = laid.fails(&["config", "validate"]);
    assert!(code == 0 && empty.contains("config.yaml has no key, and every key has its default"), "{empty}");
    // An older spelling counts, and is named: also by plan.
    laid.put("etc/rocworker/config.yaml", "tag: a\nexporter: {pcie_bw: true}\n");
    let (code, older) = laid.fails(&["config", "validate"]);
    let warning = "config.yaml:2: pcie_bw is spelled pcie-bw now\n";
    assert!(code == 0 && older.starts_with("warning: ") && older.contains(warning), "{older}");
    assert_eq!(laid.json(&["config", "validate"])["warnings"].as_array().unwrap().len(), 1);
    assert!(laid.fails(&["plan"]).1.contains("pcie_bw is spelled pcie-bw now"));
    // A GPU that the machine lacks is wrong here, and may be right on the machine of a file.
    laid.put("etc/rocworker/config.yaml", "gpu-device-ids: 99\n");
    let (code, absent) = laid.fails(&["config", "validate"]);
    assert!(code == 2 && absent.contains("config.yaml:1: gpu-device-ids names \"99\""), "{absent}");
    assert_eq!(laid.json(&["config", "validate"])["valid"], json!(false));
    let without = Laid::out(&captures::rtx4080(0, 128), "gpu-device-ids: 99\n");
    assert_eq!(without.fails(&["config", "validate"]).0, 0);
    fs::remove_file(laid.path("etc/rocworker/config.yaml")).unwrap();
    let (code, none) = laid.fails(&["config", "validate"]);
    assert!(code == 0 && none.contains("every key has its default"), "{none}");
}

#[test]
fn a_mode_that_differs_is_named_and_restarts_nothing() {
    let laid = Laid::with_engines("");
    laid.put("usr/lib/systemd/system/containerd.service", "[Service]\nExecStart=/usr/bin/containerd\n");
    laid.run(&["apply"]).success();
    let drop_in = "etc/containerd/conf.d/rocworker.toml";
    let mode = |mode| fs::set_permissions(laid.path(drop_in), fs::Permissions::from_mode(mode)).unwrap();
    // Its content makes a restart of containerd necessary.
    laid.put(drop_in, "version = 3\n");
    assert!(!laid.json(&["plan"])["effects"].as_array().unwrap().is_empty());
    laid.run(&["apply"]).success();
    mode(0o666);
    let plan = laid.json(&["plan"]);
    assert_eq!((plan["changes"].as_array().unwrap().len(), &plan["effects"]), (1, &json!([])));
    for command in ["plan", "status"] {
        let (_, text) = laid.fails(&[command]);
        assert!(text.contains("mode 0666 → 0644"), "{command}: {text}");
    }
    assert_eq!(laid.json(&["apply"])["effects"], json!([]));
    laid.run(&["status"]).success();
}

#[test]
fn tables_fit_a_hundred_columns_and_wide_has_every_one() {
    let laid = Laid::with_engines("");
    laid.put_worker("linux");
    laid.run(&["apply"]);
    for command in [&["detect"][..], &["status"], &["history"], &["cdi", "list"]] {
        let (_, text) = laid.fails(command);
        let rows = text.lines().take_while(|line| !line.is_empty() && !line.contains(": "));
        let widest = rows.map(|row| row.width()).max().unwrap();
        assert!(widest > 20 && widest <= 100, "{command:?}: {text}");
    }
    let heading = |format: &str| laid.fails(&["detect", "-o", format]).1.lines().next().unwrap().to_owned();
    assert!(!heading("table").contains("DRIVER") && heading("wide").contains("DRIVER"));
}

#[test]
fn status_is_a_line_for_each_and_says_what_to_do() {
    let laid = Laid::demo("");
    let (code, first) = laid.fails(&["status"]);
    assert!(code == 0 && first.contains("rocworker manages nothing here: apply would make "), "{first}");
    assert!(first.contains("rocworker apply makes it"), "{first}");
    laid.run(&["apply"]).success();
    laid.put("etc/cdi/amd.json", "{}");
    let (_, text) = laid.fails(&["status"]);
    assert!(!text.contains("@@") && text.contains("rocworker plan shows"), "{text}");
    assert_eq!(text.matches("/etc/cdi/amd.json").count(), 1, "{text}");
    // One that no receipt has yet.
    laid.run(&["apply"]).success();
    fs::remove_dir_all(laid.path("etc/cdi")).unwrap();
    laid.put("etc/rocworker/config.yaml", "cdi: {path: /var/run/cdi/amd.json}\n");
    let (_, text) = laid.fails(&["status"]);
    assert!(text.contains("to apply  /var/run/cdi/amd.json"), "{text}");
}

#[test]
fn a_revert_offers_no_revert() {
    let laid = Laid::demo("");
    let (_, made) = laid.fails(&["apply"]);
    assert!(made.contains("To revert: rocworker undo"), "{made}");
    laid.put("etc/rocworker/config.yaml", "compute-runtime: none\n");
    let (_, reverted) = laid.fails(&["apply"]);
    assert!(reverted.contains(" reverted.\n") && !reverted.contains("To revert"), "{reverted}");
}

#[test]
fn the_same_mistake_has_the_same_exit_code() {
    let laid = Laid::demo("gpu-device-ids: [99]\n");
    for command in [
        &["plan"][..],
        &["apply"],
        &["apply", "--dry-run"],
        &["status"],
        &["tags"],
        &["cdi", "generate"],
        &["config", "validate"],
        &["explain", "/no/such/kern.log"],
    ] {
        let (code, text) = laid.fails(command);
        assert_eq!(code, 2, "{command:?}: {text}");
    }
    assert!(laid.json(&["status"])["problem"].as_str().unwrap().contains("99"));

    let laid = Laid::demo("");
    let none = "/no/such/thing";
    for command in [
        &["apply", none][..],
        &["plan", "--save", "/no/such/thing"],
        &["--config", none, "plan"],
        &["config", "validate", none],
        &["cdi", "validate", none],
        &["cdi", "generate", "--file", none],
        &["lxd", "advise", "--resources", none],
        &["report", "--file", none],
        &["man", "--into", none],
    ] {
        let (code, text) = laid.fails(command);
        assert!(code == 2 && text.contains("/no/such"), "{command:?}: {code} {text}");
        assert_eq!(text.lines().count(), 1, "{command:?}: {text}");
    }
    let (code, text) = laid.fails(&["cdi", "list"]);
    let next = "rocworker apply writes it\n";
    assert!(code == 1 && text.contains("there is no CDI spec: ") && text.ends_with(next), "{text}");
    let (code, text) = laid.fails(&["lease", "list"]);
    assert!(code == 2 && text.contains("no container runs beneath --root"), "{text}");
    let (code, text) = said(&["--root", env!("CARGO_BIN_EXE_rocworker"), "detect"]);
    assert!(code == 2 && text.contains("is no folder: name one that holds a machine"), "{text}");
}

#[test]
fn each_line_of_an_answer_begins_with_a_word() {
    let laid = Laid::with_engines("");
    laid.run(&["apply"]);
    laid.put("etc/rocworker/wrapper.json", "{}\n");
    for command in [&["status"][..], &["apply"], &["undo"], &["apply"], &["undo"]] {
        let (_, text) = laid.fails(command);
        let starts = text.lines().filter_map(|line| line.chars().next());
        assert!(text.lines().count() > 1 && starts.into_iter().all(char::is_alphanumeric), "{text}");
    }
    // The lines of a diff stand further in.
    for line in laid.fails(&["plan"]).1.lines() {
        assert!(line.starts_with("    ") || line.starts_with(char::is_alphanumeric), "{line}");
    }
}

/// The text that this project started from has `detect node01`.
#[test]
fn a_machine_that_is_named_as_an_argument_is_pointed_to_the_option() {
    for (command, host) in
        [("detect", "node01"), ("doctor", "root@gpu1.lan"), ("status", "a,b"), ("health", "10.0.0.7")]
    {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_rocworker"))
            .args([command, host])
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains(&format!("tip: another machine is named by an option: '--host {host}'")),
            "{said}"
        );
    }
    for (arguments, tip) in [
        (["detect", "--hots"], "a similar argument exists: '--host'"),
        (["list-errors", "9"], "one error is explained by 'rocworker explain CODE'"),
    ] {
        let output =
            std::process::Command::new(env!("CARGO_BIN_EXE_rocworker")).args(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(tip) && !said.contains("another machine"), "{said}");
    }
    // A command that works on this machine only.
    let reset = ["partition", "reset", "gpu1"];
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_rocworker")).args(reset).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && !said.contains("another machine"), "{said}");
}

#[test]
fn a_list_without_a_spec_says_what_is_missing_on_this_machine() {
    const NO_GPU: &str = "this machine has no AMD GPU\n";
    for (machine, config, part) in [
        (captures::rtx4080(0, 128), "", NO_GPU),
        (captures::a380(), "", NO_GPU),
        (Machine::new(), "", NO_GPU),
        (captures::phoenix(), "compute-runtime: none", "leaves AMD's GPUs alone (compute-runtime: none)\n"),
        (captures::phoenix().remove("/dev/kfd"), "", "detect says why\n"),
        (captures::phoenix(), "", "apply writes it\n"),
    ] {
        let laid = Laid::out(&machine, config);
        let (code, said) = laid.fails(&["cdi", "list"]);
        assert!(
            code == 1
                && said.contains("there is no CDI spec: ")
                && said.trim_end().ends_with(part.trim_end()),
            "{said}"
        );
        assert!(part.contains("apply") || !said.contains("apply"), "{said}");
    }
}
