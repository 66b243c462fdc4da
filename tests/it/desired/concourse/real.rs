//! The readers of units and environment files against systemd's own, without a running systemd: `systemd-analyze
//! verify` tells what it made of a unit, and the generator for environment.d reads its files as the manager reads
//! environment files, except that it expands `$`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use engines::concourse::{DROP_IN, UNIT as NAME};
use host::env_file::EnvFile;
use host::unit::{FOLDERS, Unit};
use root::Root;
use support::real;

use crate::desired::concourse::worker::{DROP_INS, Machine, UNIT};
use crate::desired::concourse::{V7_8, V7_14, V8_1, V8_2, machine};

const GENERATOR: &str = "/usr/lib/systemd/user-environment-generators/30-systemd-environment-d-generator";

/// What systemd made of a unit.
#[derive(Debug, Default, PartialEq, Eq)]
struct Made {
    drop_ins: Vec<String>,
    environment: Vec<String>,
    environment_files: Vec<String>,
    unset: Vec<String>,
    command: Vec<String>,
}

/// Has systemd read the unit of a tree and verify it.
fn verified(root: &Path) -> Made {
    let folders = FOLDERS.map(|folder| root.join(folder.trim_start_matches('/')).display().to_string());
    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no", NAME])
        // With a colon at the end, the system's own folders come after these.
        .env("SYSTEMD_UNIT_PATH", format!("{}:", folders.join(":")))
        .env("SYSTEMD_LOG_LEVEL", "debug")
        .env("SYSTEMD_LOG_TARGET", "console")
        .output()
        .unwrap();
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let unit = said.split(&format!("-> Unit {NAME}:")).nth(1).unwrap_or_else(|| panic!("{said}"));
    let unit = unit.split("-> Unit ").next().unwrap();
    let mut made = Made::default();
    for line in unit.lines() {
        let Some((key, value)) = line.trim().split_once(": ") else { continue };
        let value = value.replace(&root.display().to_string(), "");
        match key {
            "DropIn Path" => made.drop_ins.push(value),
            "Environment" => made.environment.push(value),
            "EnvironmentFile" => made.environment_files.push(value),
            "UnsetEnvironment" => made.unset.push(value),
            "Command Line" => made.command = value.split(' ').map(str::to_owned).collect(),
            _ => {}
        }
    }
    made
}

/// What this reader makes of it, with our own drop-in as any other.
fn read(root: &Path) -> Made {
    let unit = Unit::read(&Root::open(root).unwrap(), NAME, None).unwrap().unwrap();
    assert!(unit.unread.is_empty(), "{unit:?}");
    let shown = |path: &PathBuf| path.display().to_string();
    Made {
        drop_ins: unit.drop_ins.iter().map(shown).collect(),
        environment: unit.environment.iter().map(|(name, value)| format!("{name}={value}")).collect(),
        environment_files: unit
            .environment_files
            .iter()
            .map(|file| format!("{}{}", if file.optional { "-" } else { "" }, shown(&file.path)))
            .collect(),
        unset: unit.unset,
        command: unit.exec_start,
    }
}

/// With a program that is there on this machine: verify looks for it.
fn unit() -> String {
    UNIT.replace("/var/lib/concourse/bin/concourse worker", "/bin/true worker --tag a")
}

#[test]
fn real_systemd_reads_rocworkers_environment_file_last_and_finds_no_fault() {
    if !real::require_root(&["systemd-analyze"]) {
        return;
    }
    for release in [V7_8, V7_14, V8_1, V8_2] {
        let machine = machine(release);
        let desired = machine.desired("tag: a");
        machine.apply(&desired);
        machine.put("etc/systemd/system/concourse-worker.service", &unit());
        machine.drop_in("override.conf", "[Service]\nEnvironmentFile=-/etc/other.env\n");
        let made = verified(machine.root());
        assert_eq!(made.environment_files.last().unwrap(), "-/etc/rocworker/concourse.env");
        assert_eq!(made.drop_ins.last().unwrap(), DROP_IN);
        assert_eq!(made, read(machine.root()));
    }
}

#[test]
fn real_systemd_makes_of_units_and_drop_ins_what_this_reader_makes_of_them() {
    if !real::require_root(&["systemd-analyze"]) {
        return;
    }
    let own = |name: &str| format!("{DROP_INS}/{name}");
    let service = |lines: &str| format!("[Service]\n{lines}\n");
    let file = |name: &str| service(&format!("EnvironmentFile=/etc/{name}"));
    for files in [
        vec![],
        vec![
            (own("a.conf"), file("a")),
            (own("Z.conf"), file("z")),
            (own("0.conf"), file("0")),
            (own("a.txt"), file("t")),
        ],
        vec![
            (own("b.conf"), file("b")),
            ("run/systemd/system/concourse-worker.service.d/a.conf".into(), file("run-a")),
            ("usr/lib/systemd/system/concourse-worker.service.d/a.conf".into(), file("lib-a")),
            ("usr/lib/systemd/system/concourse-worker.service.d/c.conf".into(), file("lib-c")),
        ],
        vec![
            ("etc/systemd/system/concourse-.service.d/a.conf".into(), file("dash")),
            ("etc/systemd/system/service.d/a.conf".into(), file("kind")),
            ("etc/systemd/system/service.d/b.conf".into(), file("kind-b")),
            ("usr/lib/systemd/system/concourse-worker.service.d/a.conf".into(), file("own")),
        ],
        vec![
            ("etc/systemd/system/service.d/a.conf".into(), file("kind")),
            ("etc/systemd/system/concourse-.service.d/b.conf".into(), file("dash")),
            (own("b.conf"), file("own-b")),
            ("usr/lib/systemd/system/concourse-.service.d/a.conf".into(), file("own")),
        ],
        vec![
            (own("a.conf"), service("EnvironmentFile=\nEnvironmentFile=-/etc/a")),
            (own("b.conf"), String::new()),
        ],
        vec![(
            own("a.conf"),
            service(
                "Environment=A=b \"C=d e\" 'F=g' H=\"i j\" K=\"l\"m\nEnvironment=N=o \\\n# no\n  P=q%%r\nEnvironment=\"S=\\x41\\t\\\"\"",
            ),
        )],
        vec![
            (own("a.conf"), service("Environment=A=b\nEnvironment=\nEnvironment=C=d")),
            (
                own("b.conf"),
                service("UnsetEnvironment=A C=d\nExecStart=\nExecStart=-/bin/true worker \"--tag=a b\""),
            ),
        ],
        vec![(
            own("a.conf"),
            "[Unit]\nEnvironment=A=b\r\n[Service]\r\nEnvironment = C=d \r\n;x\n# y\n[Install]\n".into(),
        )],
    ] {
        let machine = Machine::without_worker(&support::captures::phoenix());
        machine.put("etc/systemd/system/concourse-worker.service", &unit());
        for (path, text) in &files {
            machine.put(path, text);
        }
        let (made, mut read) = (verified(machine.root()), read(machine.root()));
        // systemd shows a command with quotes of its own.
        if read.command.iter().any(|word| word.contains(' ')) {
            assert_eq!(read.command, ["/bin/true", "worker", "--tag=a b"]);
            read.command.clone_from(&made.command);
        }
        assert_eq!(made, read, "{files:?}");
    }
}

#[test]
fn real_systemd_makes_of_environment_files_what_this_reader_makes_of_them() {
    if !real::require_root(&["systemd-analyze"]) {
        return;
    }
    let mut texts: Vec<String> = [
        "A=b c \nB=\"c d \" \nC='d\"e\\'\nD=\"b\"'c'\nE=\"b\"c d\"e\"\nF=b\"c\"\nG=\nH=''\n",
        "  A = b\n\tB\t=\tc\t\n",
        "A=b\nA=c\nB=1\nB=\n",
        "A=b\\\nc\nB=b \\\n  c\nC=b\\ \nD=b\\c\nE=\"b\\\nc\"\n",
        "A=\"\\\"\\\\\\n\\x\"\n",
        "# A=b\n;C=d\nE=f # g\n  # h=i\n",
        "A=b\r\nC=d\r\nE=f\\\r\nG=h\r\n",
        "A\nB=c\n=d\nE=f=g\n",
        "export A=b\nC=d\n",
        "\u{feff}A=b\nC=d\n",
        "1A=b\nA-B=c\nC=d\n",
        "A=ä ö\nB=\"ü\"\n",
        "A=b\\",
        "A='b",
        "A=\"b\\",
    ]
    .map(str::to_owned)
    .into();
    // Texts that nobody would think of, from a fixed seed.
    let mut state = 20_261_122_u64;
    for _ in 0..150 {
        let mut text = String::new();
        for _ in 0..40 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let pieces =
                ["A", "B", "=", "=", " ", "\"", "'", "\\", "\n", "\n", "\r", "x", ";", "C=", "\t", "A=y"];
            text.push_str(pieces[usize::try_from(state >> 40).unwrap() % pieces.len()]);
        }
        texts.push(text);
    }
    let mut variables = 0;
    for text in texts {
        let folder = support::detect::scratch();
        fs::create_dir(folder.path().join("environment.d")).unwrap();
        fs::write(folder.path().join("environment.d/test.conf"), &text).unwrap();
        let output =
            Command::new(GENERATOR).env_clear().env("XDG_CONFIG_HOME", folder.path()).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text:?}");
        let made: BTreeMap<String, String> = lines(&said)
            .filter_map(|line| Some((line.split_once('=')?.0.to_owned(), unquoted(line.split_once('=')?.1))))
            .filter(|(name, _)| name.bytes().all(|byte| b"ABCDEFGHxy".contains(&byte)))
            .collect();
        // The generator passes over a line with an empty value, which the manager does not (`merge_env_file_push` and
        // `load_env_file_push`).
        let read = EnvFile::parse(&text).variables.into_iter().filter(|(_, value)| !value.is_empty());
        let read: BTreeMap<String, String> = read.collect();
        variables += read.len();
        assert_eq!(made, read, "{text:?} {said}");
    }
    assert!(variables > 200, "the texts hold {variables} variables");
}

/// What the generator prints, a variable each: a quoted value may have several lines.
fn lines(said: &str) -> impl Iterator<Item = &str> {
    said.split_inclusive('\n')
        .scan((0, 0, 0), move |(start, end, quotes), line| {
            *end += line.len();
            *quotes += line.replace("\\\\", "").replace("\\\"", "").matches('"').count();
            let whole = (*quotes % 2 == 0).then(|| said.get(*start..*end - 1).unwrap());
            if whole.is_some() {
                *start = *end;
            }
            Some(whole)
        })
        .flatten()
}

/// The generator puts what needs it in double quotes, and escapes it as C does.
fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return value.to_owned();
    };
    let mut plain = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        plain.push(match (c, chars.clone().next()) {
            ('\\', Some(escaped)) => {
                chars.next();
                BTreeMap::from([('t', '\t'), ('n', '\n'), ('r', '\r')])
                    .get(&escaped)
                    .copied()
                    .unwrap_or(escaped)
            }
            (c, _) => c,
        });
    }
    plain
}
