//! Who has a node of an AMD card open, and how much VRAM that client has: /proc/PID/fdinfo/FD
//! (Documentation/gpu/drm-usage-stats.rst). Only root may read it of others.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use inventory::published::Client;
use root::{Root, if_there};

/// How many open nodes are read, since the driver has to answer each read: more than are open on any machine that
/// works.
const MOST: usize = 1024;

/// How many nodes of one process are read: with no limit, one process could use up [`MOST`] alone.
const MOST_OF_PROCESS: usize = 64;

/// How many descriptors of one process are asked whether they lead to a driver: any file may be called /dev/dri/… in a
/// container.
const MOST_ASKED: usize = 1024;

/// A node that is closed as another is opened leaves the count as it was.
const AGAIN: Duration = Duration::from_secs(60);

/// Stands in the place of the count of open nodes: a driver that is built into the kernel has none.
const BUILT_IN: &str = "built in";

/// The limit for a client's fdinfo: some twenty times what the driver prints.
const LIMIT: usize = 64 << 10;

/// What fdinfo says of a client of amdgpu's.
#[derive(Debug, PartialEq, Eq)]
struct Fdinfo {
    pci: String,
    /// The client's number: every descriptor that leads to one client has it.
    id: Option<u64>,
    vram_bytes: Option<u64>,
}

/// The descriptors by which processes have nodes open. A look at every descriptor of a thousand processes takes tens of
/// milliseconds: it is done when the count of open nodes has changed, and each minute.
#[derive(Debug, Default)]
pub(in crate::daemon) struct Clients {
    nodes: Vec<Node>,
    looked: Option<(Instant, String)>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    pid: u32,
    fd: u32,
}

impl Node {
    /// `None` where it has ended, leads elsewhere by now, or never led to a card of amdgpu's.
    fn fdinfo(&self, root: &Root) -> Option<Fdinfo> {
        let Self { pid, fd } = self;
        fdinfo(&root.read_text(format!("/proc/{pid}/fdinfo/{fd}"), LIMIT).ok()?)
    }
}

impl Clients {
    /// The clients in the order of their pids. Several clients of a process on a card count together; one that several
    /// processes share counts with the first.
    pub(in crate::daemon) fn read(&mut self, root: &Root, now: Instant) -> Vec<Client> {
        self.look(root, now);
        let mut known = BTreeSet::new();
        let mut found = BTreeMap::<(u32, String), Option<u64>>::new();
        for node in &self.nodes {
            let pid = &node.pid;
            let Some(Fdinfo { pci, id, vram_bytes }) = node.fdinfo(root) else { continue };
            let is_new = id.is_none_or(|id| known.insert((pci.clone(), id)));
            let all = found.entry((*pid, pci)).or_default();
            if let Some(bytes) = vram_bytes.filter(|_| is_new) {
                *all = Some(all.unwrap_or(0).saturating_add(bytes));
            }
        }
        found.into_iter().map(|((pid, pci), vram_bytes)| Client { pid, pci, vram_bytes }).collect()
    }

    fn look(&mut self, root: &Root, now: Instant) {
        let Some(count) = count(root) else {
            *self = Self::default();
            return;
        };
        let is_known = self
            .looked
            .as_ref()
            .is_some_and(|(looked, then)| count == *then && now.saturating_duration_since(*looked) < AGAIN);
        if is_known {
            return;
        }
        let names = root.list("/proc").unwrap_or_default();
        let mut pids: Vec<u32> = names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect();
        pids.sort_unstable();
        let is_real = |node: &Node| node.fdinfo(root).is_some();
        let nodes = pids.into_iter().flat_map(|pid| {
            open_nodes(root, pid).into_iter().take(MOST_ASKED).filter(is_real).take(MOST_OF_PROCESS)
        });
        self.nodes = nodes.take(MOST).collect();
        self.looked = Some((now, count));
    }
}

/// How many references there are to the driver's module: each open node holds one (`fops_get` in drm_stub_open,
/// drm_drv.c). `None` where there is none, and so no client.
fn count(root: &Root) -> Option<String> {
    let module = Path::new("/sys/module/amdgpu");
    match if_there(root.read_text(module.join("refcnt"), 64)) {
        Ok(Some(count)) => Some(count.trim().to_owned()).filter(|count| count != "0"),
        Ok(None) | Err(_) => root.exists(module).then(|| BUILT_IN.to_owned()),
    }
}

/// The descriptors of a process that lead to DRM's nodes, of whatever card.
fn open_nodes(root: &Root, pid: u32) -> Vec<Node> {
    let mut found = Vec::new();
    let note = |name: &OsStr, target: &[u8]| {
        if target.starts_with(b"/dev/dri/") {
            found.extend(name.to_str().and_then(|fd| Some(Node { pid, fd: fd.parse().ok()? })));
        }
    };
    // The process may have ended.
    root.each_link(format!("/proc/{pid}/fd"), note).ok();
    found
}

fn fdinfo(text: &str) -> Option<Fdinfo> {
    let value = |key: &str| {
        text.lines()
            .find_map(|line| line.split_once(':').filter(|(name, _)| *name == key))
            .map(|it| it.1.trim())
    };
    if value("drm-driver") != Some("amdgpu") {
        return None;
    }
    // The bytes in VRAM now, whose key older kernels call `memory`.
    let keys = ["drm-resident-vram", "drm-memory-vram", "drm-total-vram"];
    Some(Fdinfo {
        pci: value("drm-pdev")?.to_owned(),
        id: value("drm-client-id").and_then(|id| id.parse().ok()),
        vram_bytes: keys.into_iter().find_map(|key| bytes(value(key)?)),
    })
}

/// Parses a size such as `12 KiB`: a number, then no unit, `KiB` or `MiB`.
fn bytes(text: &str) -> Option<u64> {
    let mut words = text.split_ascii_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    let unit = match words.next() {
        None => 1,
        Some("KiB") => 1 << 10,
        Some("MiB") => 1 << 20,
        Some(_) => return None,
    };
    number.checked_mul(unit)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test lays out files")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// fdinfo as amdgpu_fdinfo.c of Linux 6.1 prints it.
    const OLD: &str = "pos:\t0\nflags:\t02100002\nmnt_id:\t26\nino:\t312\npasid:\t32770\ndrm-driver:\tamdgpu\n\
        drm-pdev:\t0000:03:00.0\ndrm-client-id:\t41\ndrm-memory-vram:\t1024 KiB\ndrm-memory-gtt: \t2048 KiB\n\
        drm-memory-cpu: \t0 KiB\ndrm-engine-gfx:\t13563 ns\n";

    /// fdinfo as amdgpu_fdinfo.c and drm_file.c of Linux 6.14 print it.
    const NEW: &str = "pos:\t0\nflags:\t02100002\ndrm-driver:\tamdgpu\ndrm-client-id:\t42\ndrm-pdev:\t0000:03:00.0\n\
        pasid:\t32771\ndrm-total-vram:\t3 MiB\ndrm-shared-vram:\t0\ndrm-active-vram:\t0\ndrm-resident-vram:\t2 MiB\n\
        drm-purgeable-vram:\t0\ndrm-memory-vram:\t2048 KiB\namd-evicted-vram:\t0 KiB\n";

    #[test]
    fn fdinfo_of_old_and_new_kernels_is_understood() {
        let pci = || "0000:03:00.0".to_owned();
        let client = |id, vram_bytes| Some(Fdinfo { pci: pci(), id: Some(id), vram_bytes });
        assert_eq!(fdinfo(OLD), client(41, Some(1 << 20)));
        assert_eq!(fdinfo(NEW), client(42, Some(2 << 20)));
        assert_eq!(fdinfo(&NEW.replace("amdgpu", "i915")), None);
        assert_eq!(fdinfo("pos:\t0\nflags:\t02\n"), None);
        for (value, expected) in [
            ("7", Some(7)),
            ("7 KiB", Some(7168)),
            ("7 GiB", None),
            ("-7", None),
            ("", None),
            ("99999999999999 MiB", None),
        ] {
            let text = format!(
                "drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t1\ndrm-memory-vram:\t{value}\n"
            );
            assert_eq!(fdinfo(&text), client(1, expected), "{value}");
        }
    }

    #[test]
    fn a_process_that_opens_many_nodes_hides_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: String, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("sys/module/amdgpu/refcnt".to_owned(), "3\n");
        let opens = |pid: u32, fd: usize, target: &str, fdinfo: &str| {
            let folder = dir.path().join(format!("proc/{pid}/fd"));
            fs::create_dir_all(&folder).unwrap();
            symlink(target, folder.join(fd.to_string())).unwrap();
            put(format!("proc/{pid}/fdinfo/{fd}"), fdinfo);
        };
        for fd in 0..MOST {
            opens(100, fd, "/dev/dri/x", "pos:\t0\n");
            opens(101, fd, "/dev/dri/renderD128", &OLD.replace("id:\t41", &format!("id:\t{}", 1000 + fd)));
        }
        opens(300, 3, "/dev/dri/card1", NEW);
        let clients = Clients::default().read(&Root::open(dir.path()).unwrap(), Instant::now());
        let of: Vec<(u32, Option<u64>)> = clients.iter().map(|it| (it.pid, it.vram_bytes)).collect();
        assert_eq!(of, [(101, Some((MOST_OF_PROCESS as u64) << 20)), (300, Some(2 << 20))]);
    }

    #[test]
    fn clients_are_found_by_their_open_nodes_and_counted_once() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: String, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let opens = |pid: u32, fd: u32, target: &str, fdinfo: &str| {
            let folder = dir.path().join(format!("proc/{pid}/fd"));
            fs::create_dir_all(&folder).unwrap();
            symlink(target, folder.join(fd.to_string())).unwrap();
            put(format!("proc/{pid}/fdinfo/{fd}"), fdinfo);
        };
        put("proc/uptime".to_owned(), "1.0 1.0\n");
        // Two clients, one of them by two descriptors; a socket; another vendor's card; a child that has one client
        // too.
        opens(300, 3, "/dev/dri/renderD128", OLD);
        opens(300, 4, "/dev/dri/renderD128", OLD);
        opens(300, 5, "/dev/dri/card1", NEW);
        opens(300, 6, "socket:[1]", NEW);
        opens(300, 7, "/dev/dri/renderD129", "drm-driver:\ti915\ndrm-pdev:\t0000:00:02.0\n");
        opens(301, 3, "/dev/dri/renderD128", OLD);
        opens(302, 3, "/dev/kfd", "pos:\t0\n");
        fs::create_dir_all(dir.path().join("proc/303")).unwrap();
        let root = Root::open(dir.path()).unwrap();
        let mut clients = Clients::default();
        let start = Instant::now();
        let mut at = |seconds| clients.read(&root, start + Duration::from_secs(seconds));
        assert_eq!(at(0), [], "no driver");
        put("sys/module/amdgpu/refcnt".to_owned(), "0\n");
        assert_eq!(at(0), [], "nobody holds it");
        put("sys/module/amdgpu/refcnt".to_owned(), "3\n");
        let client = |pid, vram_bytes| Client { pid, pci: "0000:03:00.0".to_owned(), vram_bytes };
        let two = [client(300, Some(3 << 20)), client(301, None)];
        assert_eq!(at(0), two);
        opens(304, 9, "/dev/dri/renderD128", &NEW.replace("id:\t42", "id:\t43"));
        assert_eq!(at(59), two, "the count is the same");
        put("sys/module/amdgpu/refcnt".to_owned(), "4\n");
        let three = [two[0].clone(), two[1].clone(), client(304, Some(2 << 20))];
        assert_eq!(at(59), three);
        fs::remove_dir_all(dir.path().join("proc/304")).unwrap();
        assert_eq!(at(60), two, "it has ended");
        opens(304, 9, "/dev/dri/renderD128", &NEW.replace("id:\t42", "id:\t43"));
        opens(305, 9, "/dev/dri/renderD128", OLD);
        assert_eq!(at(118), three);
        assert_eq!(at(119), [&three[..], &[client(305, None)]].concat(), "after a minute");
        fs::remove_file(dir.path().join("sys/module/amdgpu/refcnt")).unwrap();
        fs::remove_dir_all(dir.path().join("proc/305")).unwrap();
        assert_eq!(at(119), three, "the driver is built in");
        fs::remove_dir_all(dir.path().join("sys/module/amdgpu")).unwrap();
        assert_eq!(at(119), [], "it has gone");
    }
}
