//! The machine of the scrapes at work: processes on each partition, and all that a daemon publishes of it. **Invented.**

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};
use inventory::published::{
    Change, Client, Drift, DriftState, DriftingPath, Lease, PATH, Published, SCHEMA_VERSION,
};

/// The number of processes: more than the page shows.
const PROCESSES: u32 = 300;

/// The number of drifting paths: the daemon publishes no more.
const DRIFTING: u64 = 50;
const CHANGES: u64 = 20;

/// A container for each process, by turns on each GPU that KFD has.
pub(super) fn use_gpus(root: &Path) -> Result<()> {
    let nodes = root.join("sys/class/kfd/kfd/topology/nodes");
    let mut ids = Vec::new();
    for node in fs::read_dir(&nodes).with_context(|| format!("listing {}", nodes.display()))? {
        let path = node.context("listing KFD's nodes")?.path().join("gpu_id");
        let id = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        ids.push(id.trim().to_owned());
    }
    ids.retain(|id| id != "0");
    ensure!(!ids.is_empty(), "no GPU in {}", nodes.display());
    put(root, "proc/uptime", "86400.00 99999.00\n")?;
    for (pid, id) in (10_000..10_000 + PROCESSES).zip(ids.iter().cycle()) {
        let kfd = format!("sys/class/kfd/kfd/proc/{pid}");
        put(root, &format!("{kfd}/vram_{id}"), &format!("{}\n", u64::from(pid) << 20))?;
        put(root, &format!("{kfd}/queues/0/gpuid"), &format!("{id}\n"))?;
        put(root, &format!("proc/{pid}/comm"), "python3\n")?;
        put(
            root,
            &format!("proc/{pid}/cgroup"),
            &format!("0::/system.slice/docker-{}.scope\n", container(pid)),
        )?;
        put(root, &format!("proc/{pid}/stat"), &format!("{pid} (python3) R {}1000 0\n", "0 ".repeat(18)))?;
    }
    Ok(())
}

/// Writes the daemon's files anew: they count for 30 seconds.
pub(super) fn publish(root: &Path) -> Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    let lease = |number: u32| Lease { gpu: format!("renderD{}", 128 + number), container: container(number) };
    let drifting = |number| DriftingPath {
        path: format!("/etc/rocworker/managed/path/{number}"),
        state: DriftState::Differs,
        reason: "Only rocworker apply changes it.".to_owned(),
    };
    let change = |number| Change {
        at: now - 600 * number,
        command: "serve".to_owned(),
        text: "Repaired /etc/cdi/amd.json, edited /etc/containerd/config.toml.".to_owned(),
    };
    let client = |pid| Client { pid, pci: "0000:05:00.0".to_owned(), vram_bytes: Some(u64::from(pid) << 20) };
    let published = Published {
        schema_version: SCHEMA_VERSION,
        written_at: now,
        leases: Some((0..64).map(lease).collect()),
        drift: Drift { differs: DRIFTING, ..Drift::default() },
        drifting: (0..DRIFTING).map(drifting).collect(),
        config_in_force: Some(true),
        problems: Some(0),
        changes: Some((0..CHANGES).map(change).collect()),
        pods: Vec::new(),
        clients: (10_000..10_000 + PROCESSES).map(client).collect(),
    };
    put(root, PATH.trim_start_matches('/'), &serde_json::to_string(&published)?)
}

fn container(number: u32) -> String {
    format!("{number:064x}")
}

fn put(root: &Path, path: &str, text: &str) -> Result<()> {
    let path = root.join(path);
    let folder = path.parent().context("it is in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use telemetry::exporter::Exporter;
    use telemetry::patient::{DEADLINE, PATIENCE, Patient};

    use super::*;

    #[test]
    fn an_exporter_finds_every_process_and_what_the_daemon_publishes() {
        let folder = tempfile::tempdir().unwrap();
        let machine = layout::Machine::instinct_with_readings(2, 8);
        machine.lay_out(folder.path(), layout::Nodes::Recorded).unwrap();
        use_gpus(folder.path()).unwrap();
        publish(folder.path()).unwrap();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
        let mut patient = Patient::new(folder.path().to_owned(), PATIENCE, DEADLINE);
        let snapshot = patient.run(move |root| Exporter::default().scrape(root, now)).unwrap();
        assert_eq!(snapshot.processes.len(), 300, "{:?}", snapshot.unknown());
        assert!(
            snapshot.processes.iter().all(|it| it.owner.container.is_some()),
            "{:?}",
            snapshot.processes[0]
        );
        let gpus = snapshot.cards.iter().flat_map(|card| &card.gpus);
        assert_eq!(gpus.filter_map(|gpu| gpu.compute_processes).sum::<u64>(), 300);
        assert_eq!(snapshot.daemon.unwrap().changes.unwrap().len(), 20);
    }
}
