//! Whatever a command asks a machine for, the script has read, listed, or found missing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fleet::script::{Further, Wanted};
use layout::Machine;
use root::{Asked, Error, Root};

use crate::frames::{answers, machines, shells};

/// What a test alone has.
const LEFT_OUT: [&str; 1] = ["/capture.json"];

#[test]
fn everything_that_a_command_asks_for_is_read() {
    let shell = &shells::all()[0];
    let mut missing = BTreeMap::<PathBuf, String>::new();
    for (name, machine) in machines::all() {
        let folder = machines::laid_out(&machine);
        for wanted in answers::COMMANDS {
            let reading = answers::with_nodes(shell.read(folder.path(), wanted), folder.path());
            let root = Root::of_files(reading.files);
            answers::answer(&root, wanted, folder.path());
            for path in root.not_read().into_keys() {
                if LEFT_OUT.iter().all(|it| path != Path::new(it)) {
                    missing.entry(path).or_insert_with(|| format!("{wanted:?} of {name}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{} are not read: {missing:#?}", missing.len());
}

#[test]
fn what_is_known_only_by_a_first_answer_is_read_in_a_further_connection() {
    let shell = &shells::all()[0];
    let lacking = [
        (Wanted::Doctor, "/opt/gpu/imports/amd.toml"),
        (Wanted::Readings, "/sys/class/drm/renderD145/device/xcp/xcp_metrics"),
        (Wanted::Doctor, "/opt/ctd/conf/main.toml"),
    ];
    for ((name, machine), (wanted, path)) in machines::in_several_connections().into_iter().zip(lacking) {
        let folder = machines::laid_out(&machine);
        let first = Root::of_files(shell.read(folder.path(), wanted).files);
        assert!(
            matches!(first.read(path, 1 << 16), Err(Error::NotRead { .. })),
            "{name}: {:?}",
            first.read(path, 1 << 16)
        );
        assert!(answers::whole(shell, folder.path(), wanted).read(path, 1 << 16).is_ok(), "{name}");
    }
}

#[test]
fn keys_and_passwords_that_no_command_reads_do_not_leave_their_machine() {
    let secrets = [
        "/etc/rocworker/exporter.key",
        "/etc/rocworker/web-config.yaml",
        "/etc/docker/key.json",
        "/etc/concourse/worker_key",
        "/etc/default/concourse-web",
        "/etc/default/grafana",
    ];
    for (name, machine) in machines::all().into_iter().filter(|(name, _)| *name != "odd") {
        let machine = secrets.iter().fold(machine, |machine, path| machine.put(path, "hush"));
        let folder = machines::laid_out(&machine);
        for wanted in answers::COMMANDS {
            let root = answers::whole(&shells::all()[0], folder.path(), wanted);
            for path in secrets {
                assert!(root.read(path, 99).is_err(), "{name}: {wanted:?} takes {path}");
            }
        }
    }
}

/// A program may be larger than an answer, and doctor asks only whether it is there.
#[test]
fn of_what_a_command_only_looks_for_a_further_connection_reads_no_content() {
    let (_, machine) = machines::in_several_connections().into_iter().nth(2).unwrap();
    let folder = machines::laid_out(&machine);
    for shell in shells::all() {
        let root = answers::whole(&shell, folder.path(), Wanted::Doctor);
        let program = "/opt/ctd/bin/containerd";
        assert!(root.exists(program), "{}", shell.name);
        assert!(matches!(root.read(program, 1 << 16), Err(Error::NotRead { .. })), "{}", shell.name);
    }
}

#[test]
fn a_card_that_falls_asleep_between_two_connections_is_not_woken() {
    let folder = machines::laid_out(&Machine::instinct_with_readings(2, 8));
    let state = |word| fs::write(folder.path().join(machines::STATE.trim_start_matches('/')), word).unwrap();
    let metrics = "/sys/class/drm/renderD145/device/xcp/xcp_metrics";
    for shell in shells::all() {
        state("suspended\n");
        let first = shell.read(folder.path(), Wanted::Readings);
        let paths = [(metrics.into(), Asked::Content)].into();
        let mut further = Further { paths, asleep: first.asleep };
        let is_read = |further: &Further| {
            let reading = shell.read_further(folder.path(), Wanted::Readings, further);
            Root::of_files(reading.files).read(metrics, 1 << 16).is_ok()
        };
        assert!(is_read(&further), "{}", shell.name);
        further.asleep.clear();
        assert!(!is_read(&further), "{}: another card sleeps now", shell.name);
    }
}
