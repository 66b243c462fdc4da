//! Clients and folders that misbehave.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use layout::Machine;

use crate::kubelet::Kubelet;
use crate::lists::laid;
use crate::running::Running;

const GPU: &str = "amd.com/gpu";

#[test]
fn a_flood_of_streams_is_refused_and_the_kubelets_own_lives_on() {
    let place = laid(&Machine::instinct(2, 1));
    let kubelet = Kubelet::start(place.path());
    let running = Running::start(place.path(), &[]);
    let mut first = kubelet.watch(GPU);
    assert_eq!(first.next().unwrap().len(), 2);
    let others: Vec<_> = (0..200).map(|_| kubelet.try_watch(GPU)).collect();
    let refused = others.iter().filter_map(|it| it.as_ref().err());
    let sentences: Vec<&str> = refused.map(tonic::Status::message).collect();
    assert_eq!(sentences.len(), 200 - 15);
    assert!(sentences.iter().all(|it| *it == "16 clients watch this resource"), "{sentences:?}");
    std::fs::create_dir_all(place.path().join("run/rocworker")).unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let health = format!(
        r#"{{"schema_version":1,"written_at":{now},"gpus":[{{"pci":"0000:05:00.0","state":"unhealthy","score":0,"hang":null,"deductions":[],"unknown":[],"quarantine":null,"leftover":"x"}}],"unknown":[]}}"#
    );
    std::fs::write(place.path().join("run/rocworker/health.json"), health).unwrap();
    assert_eq!(crate::kubelet::unhealthy(&first.next().unwrap()), ["0000:05:00.0"]);
    drop(others);
    support::waiting::eventually("another may watch", || kubelet.try_watch(GPU).is_ok());
    let resident = running.most_resident_kib();
    println!("{resident} KiB resident after 200 streams");
    assert!(resident < 16 << 10, "{resident} KiB");
}

/// A file system with room for so many files, mounted until it is dropped.
struct Small<'p>(&'p Path);

impl<'p> Small<'p> {
    fn mount(place: &'p Path, options: &str) -> Self {
        run(
            "mount",
            &[
                "-t".as_ref(),
                "tmpfs".as_ref(),
                "-o".as_ref(),
                options.as_ref(),
                "none".as_ref(),
                place.as_ref(),
            ],
        );
        Self(place)
    }

    fn remount(&self, options: &str) {
        run("mount", &["-o".as_ref(), format!("remount,{options}").as_ref(), self.0.as_ref()]);
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        Command::new("umount").arg("--lazy").arg(self.0).status().ok();
    }
}

fn run(program: &str, arguments: &[&OsStr]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn real_a_full_folder_of_the_kubelets_is_named_and_the_plugin_registers_once_there_is_room() {
    if !support::real::require_root(&["mount", "umount"]) {
        return;
    }
    let place = laid(&Machine::instinct(1, 1));
    let folder = place.path().join("var/lib/kubelet/device-plugins");
    std::fs::create_dir_all(&folder).unwrap();
    // The folder itself, and the kubelet's socket.
    let small = Small::mount(&folder, "nr_inodes=2,mode=755");
    let kubelet = Kubelet::start(place.path());
    let running = Running::start(place.path(), &[]);
    running.says("rocworker-gpu.sock: No space left on device");
    small.remount("nr_inodes=9");
    assert_eq!(kubelet.watch(GPU).next().unwrap().len(), 1);
    assert_eq!(running.said().matches("No space left on device").count(), 1);
}
