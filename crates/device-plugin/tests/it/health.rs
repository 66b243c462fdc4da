//! Which devices no pod may get, and why.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use layout::Machine;

use crate::kubelet::{Kubelet, Watching, unhealthy};
use crate::lists::laid;
use crate::running::Running;

const GPU: &str = "amd.com/gpu";
const FIRST: &str = "0000:05:00.0";
const SECOND: &str = "0000:15:00.0";

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// health.json of a machine of which one card is withheld.
fn judged(root: &Path, quarantine: Option<&str>, leftover: Option<&str>, age_s: u64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let quoted = |text: &str| format!("{text:?}");
    let quarantine = quarantine.map_or("null".to_owned(), |why| {
        format!(r#"{{"since":{0},"unhealthy_at":{0},"reason":{why:?},"rules":[]}}"#, now - 60)
    });
    let leftover = leftover.map_or("null".to_owned(), quoted);
    let text = format!(
        r#"{{"schema_version":1,"written_at":{},"gpus":[{{"pci":"{FIRST}","state":"unhealthy","score":0,"hang":null,"deductions":[],"unknown":[],"quarantine":{quarantine},"leftover":{leftover}}}],"unknown":[]}}"#,
        now - age_s
    );
    // As the daemon does: whole or not at all.
    put(root, "run/rocworker/health.new", &text);
    fs::rename(root.join("run/rocworker/health.new"), root.join("run/rocworker/health.json")).unwrap();
}

fn both(watching: &mut Watching) {
    watching.until("both are healthy", |list| list.len() == 2 && unhealthy(list).is_empty());
}

#[test]
fn the_daemons_verdict_reaches_the_kubelet_and_so_does_its_end() {
    let place = laid(&Machine::instinct(2, 1));
    let root = place.path();
    let kubelet = Kubelet::start(root);
    let running = Running::start(root, &[]);
    let mut watching = kubelet.watch(GPU);
    both(&mut watching);
    let begun = Instant::now();
    judged(root, Some("The card hangs."), None, 0);
    watching.until("the first is unhealthy", |list| unhealthy(list) == [FIRST]);
    println!("a verdict reached the kubelet after {:?}", begun.elapsed());
    running.says("no pod gets 0000:05:00.0: it is quarantined since");
    let refused = kubelet.allocate(GPU, &[FIRST]).unwrap_err();
    assert!(refused.message().contains("The card hangs"), "{}", refused.message());
    assert!(kubelet.allocate(GPU, &[SECOND]).is_ok());
    judged(root, None, None, 0);
    both(&mut watching);
    running.says("pods get 0000:05:00.0 again");
    judged(root, None, Some("3072 MiB of VRAM are in use, and no process uses the GPU."), 0);
    watching.until("memory is left on the first", |list| unhealthy(list) == [FIRST]);
    // What was left there an hour ago may have gone; a quarantine lasts until the daemon judges again.
    judged(root, None, Some("3072 MiB of VRAM are in use, and no process uses the GPU."), 3600);
    both(&mut watching);
    judged(root, Some("The card hangs."), None, 3600);
    watching.until("the quarantine lasts", |list| unhealthy(list) == [FIRST]);
    fs::remove_file(root.join("run/rocworker/health.json")).unwrap();
    both(&mut watching);
}

#[test]
fn a_health_file_that_is_damaged_or_newer_is_named_and_changes_no_verdict() {
    let place = laid(&Machine::instinct(2, 1));
    let root = place.path();
    put(root, "run/rocworker/health.json", "{");
    let kubelet = Kubelet::start(root);
    let running = Running::start(root, &[]);
    both(&mut kubelet.watch(GPU));
    running.says("health.json is no health file");
    // What the daemon last said counts on: a newer one of its files does not lift a quarantine.
    judged(root, Some("The card hangs."), None, 0);
    let mut watching = kubelet.watch(GPU);
    watching.until("the first is unhealthy", |list| unhealthy(list) == [FIRST]);
    put(root, "run/rocworker/health.json", r#"{"schema_version":9}"#);
    running.says("version");
    assert!(watching.is_quiet_for(Duration::from_millis(1200)));
}

/// A process on the first card: KFD's folder of it, and its cgroup.
fn process(root: &Path, pid: u32, cgroup: Option<&str>) {
    put(root, &format!("sys/class/kfd/kfd/proc/{pid}/vram_1000"), "1073741824\n");
    match cgroup {
        Some(cgroup) => put(root, &format!("proc/{pid}/cgroup"), &format!("0::{cgroup}\n")),
        None => drop(fs::remove_dir_all(root.join(format!("proc/{pid}")))),
    }
    let namespace = root.join("proc/self/ns");
    fs::create_dir_all(&namespace).unwrap();
    symlink("pid:[4026531836]", namespace.join("pid")).ok();
}

fn gone(root: &Path, pid: u32) {
    fs::remove_dir_all(root.join(format!("sys/class/kfd/kfd/proc/{pid}"))).unwrap();
}

const POD: &str =
    "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1234.slice/cri-containerd-9.scope";

#[test]
fn what_a_pod_that_has_ended_leaves_on_a_gpu_keeps_the_gpu_from_others_until_it_is_gone() {
    for (what, cgroup, is_evidence) in [
        ("a pod's, by systemd's cgroups", Some(POD), true),
        ("a pod's, by cgroupfs", Some("/kubepods/burstable/pod12/34"), true),
        (
            "a pod's, in kind",
            Some("/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod1.slice/x.scope"),
            true,
        ),
        ("a pod's that has ended", None, true),
        ("the host's", Some("/system.slice/ollama.service"), false),
        ("another container's", Some("/docker/kubepodsy"), false),
    ] {
        let place = laid(&Machine::instinct(2, 1));
        let root = place.path();
        let kubelet = Kubelet::start(root);
        kubelet.give(GPU, &[FIRST]);
        process(root, 4711, Some(POD));
        let running = Running::start(root, &[]);
        let mut watching = kubelet.watch(GPU);
        both(&mut watching);
        assert!(watching.is_quiet_for(Duration::from_millis(1200)), "{what}: the pod has the GPU");
        process(root, 4711, cgroup);
        kubelet.give(GPU, &[]);
        if is_evidence {
            watching.until(what, |list| unhealthy(list) == [FIRST]);
            running.says("4711");
            gone(root, 4711);
            both(&mut watching);
        } else {
            assert!(watching.is_quiet_for(Duration::from_millis(2000)), "{what}");
        }
    }
}

#[test]
fn a_kubelet_that_has_just_started_and_knows_no_pod_yet_is_no_evidence() {
    let place = laid(&Machine::instinct(2, 1));
    let root = place.path();
    process(root, 4711, Some(POD));
    let kubelet = Kubelet::start(root);
    let running = Running::start(root, &["--pod-name=rocworker-device-plugin-x7k2p"]);
    let mut watching = kubelet.watch(GPU);
    both(&mut watching);
    running.says("it has not heard of its pods yet");
    assert!(watching.is_quiet_for(Duration::from_millis(2000)));
    kubelet.run("rocworker-device-plugin-x7k2p");
    watching.until("the first is unhealthy", |list| unhealthy(list) == [FIRST]);
}

#[test]
fn what_cannot_be_read_leaves_the_verdict_and_is_named() {
    let place = laid(&Machine::instinct(2, 1));
    let root = place.path();
    process(root, 4711, Some(POD));
    let kubelet = Kubelet::start(root);
    let running = Running::start(root, &[]);
    let mut watching = kubelet.watch(GPU);
    watching.until("the first is unhealthy", |list| unhealthy(list) == [FIRST]);
    // A container may give a cgroup any name.
    fs::write(root.join("proc/4711/cgroup"), [b"0::".as_slice(), POD.as_bytes(), b"/\xff\n"].concat())
        .unwrap();
    assert!(watching.is_quiet_for(Duration::from_millis(1500)));
    let files = ["proc/4711/cgroup", "sys/class/kfd/kfd/topology/nodes/2/gpu_id"];
    for file in files {
        let kept = fs::read(root.join(file)).unwrap();
        fs::remove_file(root.join(file)).unwrap();
        fs::create_dir(root.join(file)).unwrap();
        running.says("what pods leave on GPUs is not known");
        assert!(watching.is_quiet_for(Duration::from_millis(1500)), "{file}");
        fs::remove_dir(root.join(file)).unwrap();
        fs::write(root.join(file), kept).unwrap();
    }
    gone(root, 4711);
    both(&mut watching);
}

#[test]
fn where_the_kubelet_does_not_say_which_pods_have_which_gpus_no_process_is_evidence() {
    let place = laid(&Machine::instinct(2, 1));
    let root = place.path();
    process(root, 4711, Some(POD));
    let kubelet = Kubelet::start(root);
    fs::remove_file(root.join("var/lib/kubelet/pod-resources/kubelet.sock")).unwrap();
    let running = Running::start(root, &[]);
    let mut watching = kubelet.watch(GPU);
    both(&mut watching);
    assert!(watching.is_quiet_for(Duration::from_millis(1200)));
    running.says("pod-resources/kubelet.sock");
}

#[test]
fn a_slice_that_a_pod_has_keeps_its_gpu_in_use() {
    let place = laid(&Machine::instinct(2, 1));
    let root = place.path();
    process(root, 4711, Some(POD));
    let kubelet = Kubelet::start(root);
    kubelet.give(GPU, &["0000:05:00.0-slice-1"]);
    let _running = Running::start(root, &["--replicas=2"]);
    let mut watching = kubelet.watch(GPU);
    watching.until("all slices are healthy", |list| list.len() == 4 && unhealthy(list).is_empty());
    kubelet.give(GPU, &[]);
    watching.until("both slices of the first are unhealthy", |list| unhealthy(list).len() == 2);
}

#[test]
fn real_a_folder_that_the_host_makes_anew_lifts_no_quarantine() {
    if !support::real::require_root(&["mount", "umount"]) {
        return;
    }
    let place = laid(&Machine::instinct(2, 1));
    let host = tempfile::tempdir().unwrap();
    let of_host = host.path().join("run/rocworker");
    judged(host.path(), Some("The card hangs."), None, 0);
    let mounted = place.path().join("run/rocworker");
    fs::create_dir_all(&mounted).unwrap();
    let _mount = Bound::mount(&of_host, &mounted);
    let kubelet = Kubelet::start(place.path());
    let running = Running::start(place.path(), &[]);
    let mut watching = kubelet.watch(GPU);
    watching.until("the first is unhealthy", |list| unhealthy(list) == [FIRST]);
    fs::remove_dir_all(&of_host).unwrap();
    judged(host.path(), Some("The card hangs."), None, 0);
    running.says("run/rocworker was removed on the host: delete this pod");
    assert!(watching.is_quiet_for(Duration::from_millis(1500)));
}

/// A folder that shows another one until it is dropped.
struct Bound<'p>(&'p Path);

impl<'p> Bound<'p> {
    fn mount(from: &Path, place: &'p Path) -> Self {
        let status = Command::new("mount").arg("--bind").args([from, place]).status().unwrap();
        assert!(status.success());
        Self(place)
    }
}

impl Drop for Bound<'_> {
    fn drop(&mut self) {
        Command::new("umount").arg("--lazy").arg(self.0).status().ok();
    }
}
