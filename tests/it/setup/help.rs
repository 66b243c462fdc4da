//! `--help` of each command: its own options first, then the global ones that have an effect there, then examples.

use std::collections::BTreeSet;
use std::process::Command;

use support::real;

use crate::setup::command_line::said;

/// The headings of a help in their order, without their indented lines.
fn headings(help: &str) -> Vec<&str> {
    help.lines().filter_map(|line| line.strip_suffix(':')).filter(|line| !line.starts_with(' ')).collect()
}

/// The lines beneath a heading that no line above them continues on.
fn beneath<'h>(help: &'h str, heading: &str) -> Vec<&'h str> {
    let start = help.lines().skip_while(|line| line.strip_suffix(':') != Some(heading)).skip(1);
    let lines = start.take_while(|line| line.is_empty() || line.starts_with(' '));
    lines.filter(|line| !line.trim().is_empty() && !line.starts_with("          ")).collect()
}

fn help(path: &[&str]) -> String {
    let (code, text) = said(&[path, &["--help"]].concat());
    assert_eq!(code, 0, "{path:?}: {text}");
    text
}

/// Each command that `rocworker --help` lists, and those beneath it.
fn commands() -> Vec<Vec<String>> {
    let all = help(&[]);
    let groups =
        headings(&all).into_iter().filter(|it| *it != "Global options").take_while(|it| *it != "Example");
    let first = |line: &str| line.split_whitespace().next().unwrap().to_owned();
    let mut paths = Vec::new();
    for command in groups.flat_map(|group| beneath(&all, group)).map(first) {
        let of = help(&[&command]);
        paths.push(vec![command.clone()]);
        let within = beneath(&of, "Commands").into_iter().map(first).filter(|name| name != "help");
        paths.extend(within.map(|name| vec![command.clone(), name]));
    }
    paths
}

#[test]
fn the_commands_stand_in_groups_that_begin_with_what_a_new_user_runs() {
    let all = help(&[]);
    let groups: Vec<&str> = headings(&all).into_iter().take_while(|it| *it != "Global options").collect();
    assert_eq!(
        groups,
        [
            "Start here (nothing is changed)",
            "Change this machine",
            "Watch",
            "Concourse and CI",
            "Other machines (most commands also take --host)",
            "Reference"
        ]
    );
    let commands = commands();
    let names: BTreeSet<_> = commands.iter().filter(|path| path.len() == 1).map(|path| &path[0]).collect();
    assert_eq!(names.len(), commands.iter().filter(|path| path.len() == 1).count(), "each once");
    assert!(commands[0] == ["detect"] && names.contains(&"serve".to_owned()), "{names:?}");
    // What completes in a shell is what is listed.
    let (_, script) = said(&["completions", "bash"]);
    let completed =
        script.lines().filter_map(|line| line.trim().strip_prefix("rocworker,")?.strip_suffix(')'));
    let completed: BTreeSet<String> = completed.filter(|name| *name != "help").map(str::to_owned).collect();
    assert_eq!(completed, names.into_iter().cloned().collect());
}

#[test]
fn each_command_has_its_own_options_first_then_global_ones_and_examples() {
    let commands = commands();
    assert!(commands.len() > 30, "{commands:?}");
    for path in &commands {
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        let text = help(&words);
        let order: Vec<_> =
            headings(&text).into_iter().filter(|it| *it != "Commands" && *it != "Arguments").collect();
        assert_eq!(order, ["Options", "Global options", "Examples"], "{path:?}: {text}");
        assert!(text.lines().all(|line| line.len() <= 100 || line.contains('…')), "{path:?}: {text}");
        let name = format!("{} ", words.join(" "));
        let examples = beneath(&text, "Examples");
        assert!(
            !examples.is_empty() && examples.iter().all(|line| format!("{line} ").contains(&name)),
            "{examples:?}"
        );
    }
}

#[test]
fn a_global_option_is_shown_where_it_has_an_effect() {
    for (path, absent) in [
        (&["demo"][..], &["--root", "--config", "--output", "--json", "--host", "--hosts"][..]),
        (&["completions"], &["--root", "--config", "--output", "--json", "--host", "--hosts"]),
        (&["man"], &["--root", "--config", "--output", "--json", "--host", "--hosts"]),
        (&["serve"], &["--output", "--json", "--host", "--hosts"]),
        (&["lease", "release"], &["--host", "--hosts"]),
        (&["cdi", "generate"], &["--host", "--hosts"]),
        (&["detect"], &[]),
        (&["remote", "install"], &["--root"]),
    ] {
        let text = help(path);
        let global = beneath(&text, "Global options").join("\n");
        for option in ["--root", "--config", "--output", "--json", "--host", "--hosts"] {
            let is_there = global.split([' ', '\n', ',']).any(|word| word == option);
            assert_eq!(is_there, !absent.contains(&option), "{path:?} {option}: {global}");
        }
    }
}

#[test]
fn json_is_output_json_and_group_is_hosts() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path().to_str().unwrap();
    for command in [&["detect"][..], &["health"], &["history"], &["list-errors"], &["cdi", "validate"]] {
        let by = |option: &[&str]| {
            let root = if command == ["list-errors"] { &[][..] } else { &["--root", at] };
            let (code, text) = said(&[root, command, option].concat());
            // The clock goes on between the two.
            let is_of_both = |line: &&str| !line.contains("\"written_at\":");
            (code, text.lines().filter(is_of_both).collect::<Vec<_>>().join("\n"))
        };
        let (short, long) = (by(&["--json"]), by(&["-o", "json"]));
        assert_eq!(short, long, "{command:?}");
        assert!(short.1.starts_with('{'), "{command:?}: {}", short.1);
    }
    let config = root.path().join("c.yaml");
    std::fs::write(&config, "inventory: {groups: {all: [x]}}\n").unwrap();
    let of =
        |option: &str, group: &str| said(&["--config", config.to_str().unwrap(), option, group, "detect"]);
    for option in ["--group", "--hosts"] {
        let (code, text) = of(option, "gpu1,gpu2");
        assert!(code == 2 && text.ends_with("; machines are named by --host gpu1,gpu2\n"), "{text}");
        let (code, text) = of(option, "other");
        assert!(code == 2 && text.ends_with("no group \"other\": the groups are all\n"), "{text}");
    }
}

#[test]
fn real_an_ordinary_user_is_sent_to_sudo_before_anything_else() {
    if !real::require_root(&["setpriv"]) {
        return;
    }
    let folder =
        tempfile::Builder::new().permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755)).tempdir();
    let folder = folder.unwrap();
    let program = folder.path().join("rocworker");
    std::fs::copy(env!("CARGO_BIN_EXE_rocworker"), &program).unwrap();
    let as_nobody = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).args(words);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    for words in
        ["apply --only=exporter", "undo", "lease release renderD128", "cdi generate", "serve", "boot"]
    {
        let (code, text) = as_nobody(&words.split(' ').collect::<Vec<_>>());
        let expected =
            format!("rocworker: {words} changes this machine, which only root may: sudo rocworker {words}\n");
        assert_eq!((code, text), (Some(1), expected));
    }
    let (_, text) = as_nobody(&["-v", "apply", "--config", "/srv/a b.yaml", "--json"]);
    assert!(text.ends_with(": sudo rocworker --config '/srv/a b.yaml' -o json -v apply\n"), "{text}");
    let own = folder.path().join("machine");
    for words in [&["undo", "--dry-run"][..], &["--root", own.to_str().unwrap(), "apply"]] {
        let (_, text) = as_nobody(words);
        assert!(!text.contains("only root may"), "{words:?}: {text}");
    }
}
