//! `rocworker health` beneath a Root: what it prints, how it ends, and which judgement it takes.

use std::path::Path;
use std::process::Command;

use allocation::document::Document as _;
use gpu_health::rules::{Rules, When};
use inventory::PciAddress;
use inventory::health::{Health, State};
use kernel_log::knowledge::Knowledge;
use kernel_log::origin::Origin;
use layout::{Gpu, Machine, Module, Nodes};
use serde_json::Value;
use support::said::Said;
use support::{captures, document};

/// The address of a synthetic Instinct's first card.
const CARD: &str = "0000:05:00.0";

/// A card's folder.
const DEVICE: &str = "/sys/bus/pci/devices/0000:05:00.0";

/// A record of /dev/kmsg (Documentation/ABI/testing/dev-kmsg) at each second from boot on.
fn kmsg(lines: &[&str]) -> String {
    let record = |(number, line): (usize, &&str)| format!("3,{number},{},-;{line}\n", number * 1_000_000);
    lines.iter().enumerate().map(record).collect()
}

/// With the time of now taken out of it.
fn timeless(text: &str) -> String {
    let is_time = |word: &str| word.len() == 20 && word.starts_with("20") && word.ends_with('Z');
    let word = |word: &str| {
        let bare = word.trim_end_matches([',', ':']);
        if is_time(bare) { word.replace(bare, "TIME") } else { word.to_owned() }
    };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn laid_out(machine: &Machine) -> tempfile::TempDir {
    let root = support::detect::scratch();
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    root
}

fn health(root: &Path, arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocworker"));
    let mut said: Said =
        command.arg("--root").arg(root).arg("health").args(arguments).output().unwrap().into();
    for text in [&mut said.stdout, &mut said.stderr] {
        let root = root.to_str().unwrap();
        *text = text.replace(&format!("--root {root} "), "--root DIR ").replace(root, "");
    }
    said
}

/// Of a machine whose kernel has logged these lines since boot.
fn with_log(machine: Machine, lines: &[&str]) -> Said {
    health(laid_out(&machine.put("/dev/kmsg", kmsg(lines).as_str())).path(), &[])
}

fn json(root: &Path, arguments: &[&str]) -> Value {
    let said = health(root, &[arguments, &["-o", "json"]].concat());
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

/// A line that a kernel logs before anything of a GPU.
const FIRST: &str = "Linux version 6.12.48+deb13-amd64 (debian-kernel@lists.debian.org)";

#[test]
fn each_captured_machine_is_judged_as_recorded() {
    for (name, machine) in captures::ALL {
        let said = with_log(machine(), &[FIRST]);
        assert_eq!(said.status.code(), Some(0), "{said:?}");
        insta::with_settings!({ description => "a captured machine: tests/captures; its log is synthetic", prepend_module_to_snapshot => true }, {
            insta::assert_snapshot!(format!("health_of_{name}"), said.stdout);
        });
    }
}

#[test]
fn a_synthetic_instinct_in_trouble_is_judged_as_recorded() {
    let lines =
        [FIRST, "amdgpu 0000:05:00.0: amdgpu: ring comp_1.0.0 timeout, signaled seq=2219, emitted seq=2221"];
    let said = with_log(Machine::instinct_in_trouble(2, 2), &lines);
    assert_eq!(said.status.code(), Some(3), "{said:?}");
    insta::with_settings!({ description => "synthetic: tests/layout invents every number of this machine", prepend_module_to_snapshot => true }, {
        insta::assert_snapshot!("health_of_synthetic-instinct-in-trouble", timeless(&said.stdout));
    });
}

#[test]
fn without_a_log_no_card_is_healthy_whatever_its_readings() {
    let root = laid_out(&captures::rx7800xt());
    let answer = json(root.path(), &[]);
    let gpu = &answer["gpus"][0];
    assert_eq!((&gpu["state"], &gpu["score"]), (&"unknown".into(), &Value::Null), "{answer:#}");
    assert!(gpu["unknown"].to_string().contains("the kernel's log is not known"), "{answer:#}");
    let why = answer["unknown"][0].as_str().unwrap();
    assert!(why.starts_with("The kernel's log is not judged: ") && why.contains("/dev/kmsg"), "{answer:#}");
    let suspended =
        Machine::instinct_with_readings(1, 1).put(&format!("{DEVICE}/power/runtime_status"), "suspended\n");
    let root = laid_out(&suspended);
    let answer = json(root.path(), &[]);
    let gpu = &answer["gpus"][0];
    assert_eq!((&gpu["state"], &gpu["score"], &gpu["hang"]), (&"unknown".into(), &Value::Null, &Value::Null));
    assert!(gpu["unknown"][0].as_str().unwrap().starts_with("It is suspended"), "{gpu:#}");
    assert_eq!(health(root.path(), &[]).status.code(), Some(0));
    // With a log, a suspended card is judged by that.
    let root = laid_out(&suspended.put("/dev/kmsg", kmsg(&[FIRST]).as_str()));
    assert_eq!(json(root.path(), &[])["gpus"][0]["score"], 100);
}

#[test]
fn a_machine_without_amds_gpus_says_so_and_ends_well() {
    let said = with_log(captures::a380(), &[FIRST]);
    assert_eq!((said.status.code(), said.stdout.as_str()), (Some(0), "No AMD GPU in this machine.\n"));
}

/// The lines of a captured log, of which its owner says that they are partly synthetic (tests/captures/README.md).
#[test]
fn a_captured_log_takes_points_off_the_gpus_that_it_names() {
    let archive = captures::unpack("kernel-log-samples");
    let (_, layout::Entry::File(bytes)) =
        archive.iter().find(|(path, _)| path.ends_with("dmesg_sample.log")).unwrap()
    else {
        panic!("no file")
    };
    let text = String::from_utf8(bytes.clone()).unwrap();
    // `kern  :err   : 2026-01-07T10:02:00,123456-06:00 amdgpu 0000:01:00.0: …`, as `dmesg -x --time-format iso` prints it.
    let lines: Vec<&str> = text.lines().map(|line| line.split_once("-06:00 ").unwrap().1).collect();
    let gpu = |address, minor| Gpu::amd(address, 0x74a1).card(minor).render(128 + minor);
    let machine = Machine::new()
        .module(Module::new("amdgpu"))
        .gpu(gpu("0000:01:00.0", 1))
        .gpu(gpu("0000:02:00.0", 2))
        .gpu(gpu("0000:03:00.0", 3))
        .gpu(gpu("0000:04:00.0", 4))
        .put("/dev/kmsg", kmsg(&lines).as_str());
    let root = laid_out(&machine);
    let answer = json(root.path(), &[]);
    let judged: Vec<(&str, Vec<&str>)> = answer["gpus"]
        .as_array()
        .unwrap()
        .iter()
        .map(|gpu| {
            let by_log = gpu["deductions"].as_array().unwrap().iter();
            (gpu["state"].as_str().unwrap(), by_log.map(|it| it["rule"].as_str().unwrap()).collect())
        })
        .collect();
    assert_eq!(
        judged,
        [
            ("unhealthy", vec!["memory-uncorrectable-log"]),
            ("unhealthy", vec!["bad-pages"]),
            ("degraded", vec!["hardware-event"]),
            ("healthy", vec![]),
        ],
        "{answer:#}"
    );
    let evidence = &answer["gpus"][1]["deductions"][0]["evidence"];
    assert_eq!(evidence, "amdgpu 0000:02:00.0: amdgpu: Saved bad pages 150 reaches threshold value 128");
    // The machine's own PCIe error names a port that is above no GPU here.
    assert_eq!(health(root.path(), &[]).status.code(), Some(3));
}

/// Each known message's sample, ten times, of the only card.
#[test]
#[ignore = "cargo xtask test --all"]
fn each_known_message_takes_off_what_the_rules_of_its_class_say_and_quotes_the_line() {
    let knowledge = Knowledge::built_in().unwrap();
    let root = laid_out(&Machine::instinct_with_readings(1, 1).put("/dev/kmsg", ""));
    let patterns = || knowledge.messages().iter().flat_map(|message| &message.patterns);
    assert!(patterns().count() > 0);
    for pattern in patterns() {
        let words = pattern.sample.split(' ').map(|word| {
            // `0000:03:00.0:` and `device=0000:03:00.0`
            let address = word.trim_end_matches(':').rsplit('=').next().unwrap_or_default();
            match address.parse::<PciAddress>() {
                Ok(_) => word.replace(address, CARD),
                Err(_) => word.to_owned(),
            }
        });
        let line = words.collect::<Vec<_>>().join(" ");
        let line = String::from_utf8(Origin::of_line(line.as_bytes()).text.to_owned()).unwrap();
        // A kernel's message may also be of another known kind, which stands before this one.
        let Some(found) = knowledge.find_from(&Origin::of_record(line.as_bytes(), None)) else {
            // A program's own sentence is no record of the kernel's.
            assert!(line.starts_with("modprobe: "), "{line}");
            continue;
        };
        // The firmware reports errors of every device: a line that names none is no GPU's.
        let is_nobodys = found.device.is_none() && line.contains("[Hardware Error]");
        let message = found.message;
        let mut rules = Rules::built_in().rules;
        rules.retain(|rule| match &rule.when {
            When::Log(of) => {
                !is_nobodys
                    && of.class == message.class
                    && of.severity <= message.severity
                    && of.message.as_ref().is_none_or(|id| *id == message.id)
            }
            When::Metric(_) => false,
        });
        // All of a class are of one group: the first of those that take most counts.
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.points));
        let expected: Vec<&str> = rules.iter().take(1).map(|rule| rule.id.as_str()).collect();
        std::fs::write(root.path().join("dev/kmsg"), kmsg(&[line.as_str(); 20])).unwrap();
        let answer = json(root.path(), &[]);
        let taken = answer["gpus"][0]["deductions"].as_array().unwrap().iter();
        let by_log = taken.filter(|taken| taken["evidence"].as_str().unwrap().ends_with(&line));
        let by_log: Vec<&str> = by_log.map(|taken| taken["rule"].as_str().unwrap()).collect();
        assert_eq!(by_log, expected, "{line}: {answer:#}");
    }
}

fn publish(root: &Path, health: &Health) {
    std::fs::create_dir_all(root.join("run/rocworker")).unwrap();
    std::fs::write(root.join("run/rocworker/health.json"), health.to_json().unwrap()).unwrap();
}

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

/// A judgement of [`CARD`] that no rule here makes.
fn of_the_daemon(written_at: u64) -> Health {
    let gpu = inventory::health::GpuHealth {
        pci: inventory::PciAddress::parse(CARD).unwrap(),
        state: State::Unhealthy,
        score: Some(7),
        hang: Some(false),
        deductions: vec![inventory::health::Deduction {
            rule: "of-the-daemon".to_owned(),
            points: 93,
            reason: "The daemon says so.".to_owned(),
            evidence: "a line".to_owned(),
        }],
        unknown: Vec::new(),
        quarantine: Some(inventory::health::Quarantine {
            since: 1_764_000_000,
            unhealthy_at: written_at,
            reason: "The daemon says so.".to_owned(),
            rules: vec!["a-rule".to_owned()],
        }),
        leftover: Some("Process 7 still holds memory.".to_owned()),
    };
    Health { schema_version: 1, written_at, boot_id: None, gpus: vec![gpu], unknown: Vec::new() }
}

#[test]
fn the_daemons_judgement_is_shown_while_it_is_fresh_and_otherwise_the_machine_is_judged_now() {
    let root = laid_out(&Machine::instinct_with_readings(1, 2).put("/dev/kmsg", kmsg(&[FIRST]).as_str()));
    publish(root.path(), &of_the_daemon(now()));
    let said = health(root.path(), &[]);
    assert_eq!(said.status.code(), Some(3), "{said:?}");
    assert!(said.stderr.starts_with("Judged by rocworker's daemon "), "{said:?}");
    for part in
        [" unhealthy ", "0-1: The daemon says so. (of-the-daemon, -93)", "Process 7 still", "2025-11-24T"]
    {
        assert!(said.stdout.contains(part), "{part}: {said:?}");
    }
    let answer = json(root.path(), &[]);
    assert_eq!((&answer["source"], &answer["gpus"][0]["score"]), (&"daemon".into(), &7.into()));
    assert_eq!(answer["gpus"][0]["indexes"], serde_json::json!([0, 1]));

    publish(root.path(), &of_the_daemon(now() - 61));
    let said = health(root.path(), &[]);
    assert!(said.stderr.starts_with("Judged now, from one reading"), "{said:?}");
    let answer = json(root.path(), &[]);
    assert_eq!((&answer["source"], &answer["gpus"][0]["score"]), (&"now".into(), &95.into()), "{answer:#}");
    // The daemon's quarantine is not over because the daemon is.
    assert_eq!(answer["gpus"][0]["quarantine"]["since"], 1_764_000_000);
}

/// Over ssh, the file is another machine's.
#[test]
fn no_word_of_a_daemons_file_steers_a_terminal() {
    let root = laid_out(&Machine::instinct_with_readings(1, 2));
    let mut health = of_the_daemon(now());
    let gpu = &mut health.gpus[0];
    let (taken, quarantine) = (&mut gpu.deductions[0], gpu.quarantine.as_mut().unwrap());
    let words = [&mut taken.rule, &mut taken.reason, &mut taken.evidence, &mut quarantine.reason];
    for word in words.into_iter().chain(gpu.leftover.as_mut()).chain(&mut quarantine.rules) {
        word.push_str("\u{202e}\u{9b}2J");
    }
    gpu.unknown.push("a reading\u{202e}".to_owned());
    health.unknown.push("a log\u{202e}".to_owned());
    publish(root.path(), &health);
    let said = self::health(root.path(), &[]);
    let text = said.stdout + &said.stderr;
    assert!(text.matches("\\u{202e}").count() >= 5, "{text}");
    assert!(!text.contains(['\u{202e}', '\u{9b}']), "{text}");
}

#[test]
fn a_quarantine_is_called_one_only_where_a_policy_and_a_daemon_keep_it() {
    let root = laid_out(&Machine::instinct_with_readings(1, 1).put("/dev/kmsg", kmsg(&[FIRST]).as_str()));
    let policy = root.path().join("etc/rocworker/wrapper.json");
    std::fs::create_dir_all(policy.parent().unwrap()).unwrap();
    let boot_id = root.path().join("proc/sys/kernel/random/boot_id");
    std::fs::create_dir_all(boot_id.parent().unwrap()).unwrap();
    std::fs::write(boot_id, "this\n").unwrap();
    for (written_at, boot_id, quarantine, expected) in [
        (now(), "this", None, Some("wrapper.quarantine is not set")),
        (now(), "this", Some(false), Some("wrapper.quarantine is not set")),
        (now(), "this", Some(true), None),
        // The wrapper goes on withholding what an old file has in quarantine.
        (now() - 61, "this", Some(true), None),
    ] {
        publish(root.path(), &of_boot(boot_id, written_at));
        if let Some(quarantine) = quarantine {
            let text = format!(r#"{{"schema_version":1,"requests":"all","quarantine":{quarantine}}}"#);
            std::fs::write(&policy, text).unwrap();
        }
        let said = health(root.path(), &[]);
        let text = timeless(&said.stdout);
        assert_eq!(text.contains("quarantined\n"), expected.is_none(), "{text}");
        assert_eq!(
            text.contains("✗ 0: Quarantined since TIME, last unhealthy TIME"),
            expected.is_none(),
            "{text}"
        );
        if let Some(why) = expected {
            let line = format!("? 0: Would be quarantined, but {why}: since TIME, last unhealthy TIME");
            assert!(text.contains(&line), "{text}");
        }
        assert_eq!(json(root.path(), &[])["quarantine_enforced"], expected.is_none());
    }
    publish(root.path(), &of_boot("another", now() - 61));
    let answer = json(root.path(), &[]);
    let of_it = (&answer["quarantine_enforced"], &answer["gpus"][0]["quarantine"]);
    assert_eq!(of_it, (&false.into(), &serde_json::Value::Null), "it ended with its boot");
}

fn of_boot(boot_id: &str, written_at: u64) -> Health {
    Health { boot_id: Some(boot_id.to_owned()), ..of_the_daemon(written_at) }
}

#[test]
fn a_gpu_that_containers_cannot_use_is_marked_whatever_its_score() {
    // Without /dev/kfd no GPU is usable.
    let gpu = Gpu::amd(CARD, 0x74a1).card(1).render(129);
    let root = laid_out(&Machine::new().gpu(gpu).put("/dev/kmsg", kmsg(&[FIRST]).as_str()));
    let said = health(root.path(), &[]);
    assert!(said.stdout.lines().nth(1).unwrap().ends_with(" no"), "{said:?}");
    assert!(said.stdout.contains("? 0: Containers cannot use it: see rocworker doctor\n"), "{said:?}");
    let whole = health(laid_out(&Machine::instinct_with_readings(1, 1)).path(), &[]);
    assert!(!whole.stdout.contains("Containers cannot use it"), "{whole:?}");
}

#[test]
fn a_daemons_file_that_is_damaged_does_not_count_and_is_named() {
    let root = laid_out(&Machine::instinct_with_readings(1, 1));
    publish(root.path(), &of_the_daemon(now()));
    std::fs::write(root.path().join("run/rocworker/health.json"), "{\"schema_version\": 9}").unwrap();
    let said = health(root.path(), &[]);
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    assert!(said.stderr.contains("/run/rocworker/health.json has schema_version 9"), "{said:?}");
    assert!(said.stderr.contains("Judged now"), "{said:?}");
}

const RULES: &str = "degraded_below = 90\nunhealthy_below = 50\nhold_s = 60\n\n[[rule]]\nid = \"any-power\"\npoints = 80\n\
                     reason = \"The GPU draws power.\"\nmetric = { name = \"rocm_power_usage\", above = 0 }\n";

#[test]
fn rules_of_a_file_are_tried_even_if_the_daemon_has_judged_by_others() {
    let root = laid_out(&Machine::instinct_with_readings(1, 1));
    publish(root.path(), &of_the_daemon(now()));
    let file = root.path().join("rules.toml");
    std::fs::write(&file, RULES).unwrap();
    let answer = json(root.path(), &["--rules", file.to_str().unwrap()]);
    let gpu = &answer["gpus"][0];
    assert_eq!((&answer["source"], &gpu["score"]), (&"now".into(), &20.into()), "{answer:#}");
    assert_eq!(gpu["deductions"][0]["evidence"], "rocm_power_usage is 431, above 0");
    let said = health(root.path(), &["--rules", file.to_str().unwrap()]);
    let expected = "Judged now by /rules.toml, from one reading. How fast counters grow is not known.\n";
    assert_eq!(said.stderr, expected);
}

#[test]
fn a_wrong_file_of_rules_ends_with_2_and_its_line() {
    let root = laid_out(&Machine::instinct_with_readings(1, 1));
    let file = root.path().join("rules.toml");
    let path = file.to_str().unwrap();
    let cases: [(Vec<u8>, &str); 4] = [
        (
            RULES.replace("points = 80", "points = 0").into(),
            "/rules.toml, line 7: points is 0: write 1 to 100",
        ),
        (b"degraded_below = 90\nhold_s = \"\xff\"\n".to_vec(), "/rules.toml, line 2: this is not UTF-8 text"),
        (vec![b'#'; 1 << 20], "/rules.toml is larger than 262144 bytes"),
        (b"\n".to_vec(), "/rules.toml is empty: write rules into it"),
    ];
    for (bytes, words) in cases {
        std::fs::write(&file, bytes).unwrap();
        let said = health(root.path(), &["--rules", path]);
        assert_eq!((said.status.code(), said.stdout.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.stderr.starts_with(&format!("rocworker: {words}")), "{said:?}");
    }
    let fifo = root.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for path in [fifo.to_str().unwrap(), "/dev/null", "/dev/kmsg", root.path().to_str().unwrap()] {
        let said = health(root.path(), &["--rules", path]);
        assert_eq!((said.status.code(), said.stdout.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.stderr.contains(" is not a regular file: write the rules into a file"), "{said:?}");
    }
    let said = health(root.path(), &["--rules", "/not/there.toml"]);
    assert_eq!(said.status.code(), Some(2), "{said:?}");
    assert!(said.stderr.contains("cannot open /not/there.toml"), "{said:?}");
}

#[test]
fn an_operators_rules_replace_the_built_in_ones_unless_they_are_wrong_or_not_roots() {
    use std::os::unix::fs::PermissionsExt as _;
    let root = laid_out(&Machine::instinct_with_readings(1, 1).put("/dev/kmsg", kmsg(&[FIRST]).as_str()));
    let file = root.path().join("etc/rocworker/health-rules.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let judged = |text: &str, mode: u32| {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let said = health(root.path(), &["-o", "json"]);
        let answer: Value = serde_json::from_str(&said.stdout).unwrap();
        (answer["gpus"][0]["score"].clone(), said)
    };
    let (score, said) = judged(RULES, 0o644);
    assert_eq!((score, said.status.code()), (20.into(), Some(3)), "{said:?}");
    let (score, said) = judged(&RULES.replace("points", "weight"), 0o644);
    assert_eq!((score, said.status.code()), (95.into(), Some(0)), "{said:?}");
    let words = "/etc/rocworker/health-rules.toml, line 7: unknown field `weight`";
    assert!(said.stderr.starts_with(words), "{said:?}");
    assert!(said.stderr.contains("The built-in rules are in force."), "{said:?}");
    let (score, said) = judged(RULES, 0o666);
    assert_eq!((score, said.status.code()), (95.into(), Some(0)), "{said:?}");
    assert!(said.stderr.contains("can be written by others"), "{said:?}");
}

/// docs/health.md shows commands with what they print, of one synthetic machine.
#[test]
fn the_commands_of_the_health_page_print_what_stands_below_them() {
    let text = document::text("docs/health.md");
    let lines = document::blocks(&text, "## The machine of these examples");
    let lines: Vec<&str> = lines[0].lines().collect();
    let machine = Machine::instinct_in_trouble(2, 1).put("/dev/kmsg", kmsg(&lines).as_str());
    let root = laid_out(&machine);
    let rules = document::blocks(&text, "## Use other rules");
    std::fs::write(root.path().join("rules.toml"), &rules[0]).unwrap();
    let mut ran = 0;
    for heading in ["## How well are my GPUs?", "## Use other rules"] {
        let blocks = document::blocks(&text, heading);
        for pair in blocks.windows(2).filter(|pair| pair[0].starts_with("rocworker ")) {
            let mut words = pair[0].split_whitespace().skip(1);
            let command = Command::new(env!("CARGO_BIN_EXE_rocworker"))
                .current_dir(root.path())
                .arg("--root")
                .arg(root.path())
                .args(&mut words)
                .output();
            let said = Said::from(command.unwrap());
            // A block of a document has no empty line, and no blanks before a line.
            let lines = said.stdout.lines().map(|line| format!("{}\n", line.trim()));
            let printed: String = lines.filter(|line| line != "\n").collect();
            assert_eq!(timeless(&printed), timeless(&pair[1]), "{}{}", pair[0], said.stdout);
            ran += 1;
        }
    }
    assert_eq!(ran, 2);
}
