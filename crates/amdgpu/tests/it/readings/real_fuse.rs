//! Cards whose files fail as sysfs' do, served through FUSE, and which files are read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use inventory::Vendor;
use inventory::readings::{CardReadings, PartitionReadings};
use layout::Machine;
use nix::errno::Errno;
use root::Root;
use support::fuse::{Fault, Operation, Served, require};

use crate::readings::Laid;

const CARD: &str = "0000:05:00.0";

/// One file of each kind.
const FILES: [&str; 14] = [
    "power/runtime_status",
    "gpu_busy_percent",
    "mem_info_vram_used",
    "current_link_speed",
    "max_link_width",
    "max_link_speed",
    "pp_dpm_fclk",
    "gpu_metrics",
    "vbios_version",
    "fw_version/smc_fw_version",
    "ras/umc_err_count",
    "ras/gpu_vram_bad_pages",
    "hwmon/hwmon2/temp2_input",
    "hwmon/hwmon2/power1_input",
];

fn path(file: &str) -> String {
    format!("/sys/bus/pci/devices/{CARD}/{file}")
}

#[test]
fn real_fuse_a_read_that_fails_costs_its_own_value_and_is_named() {
    if !require() {
        return;
    }
    let laid = Laid::out(&Machine::instinct_with_readings(1, 2));
    let served = Served::new(laid.folder.path());
    let root = Root::open(served.path()).unwrap();
    let read = || amdgpu::readings::of_card(&root, CARD.parse().unwrap());
    let good = read();
    assert_eq!(good.faults, []);
    for errno in [Errno::EINVAL, Errno::EBUSY, Errno::EPERM, Errno::EIO] {
        for file in FILES {
            served.fault(&path(file), Fault::Errno(errno));
            let bad = read();
            if errno == Errno::EINVAL && file.starts_with("ras/") {
                assert_eq!(bad.faults, [], "{file}: a block without counters answers EINVAL");
                served.mend();
                continue;
            }
            let [fault] = &bad.faults[..] else { panic!("{file}, {errno}: {:?}", bad.faults) };
            assert_eq!(fault.file, Path::new(&path(file)));
            let reason = fault.reason.to_string();
            assert!(reason.contains(errno.desc()), "{file}: {reason}");
            assert_ne!(CardReadings { faults: Vec::new(), ..bad }, good, "{file}, {errno}");
            served.mend();
        }
        for folder in ["hwmon", "hwmon/hwmon2", "ras", "fw_version"] {
            served.fault(&path(folder), Fault::Errno(errno));
            let bad = read();
            assert_eq!(bad.faults.len(), 1, "{folder}, {errno}: {:?}", bad.faults);
            assert_eq!(bad.faults[0].file, Path::new(&path(folder)));
            served.mend();
        }
    }
    for errno in [Errno::EOPNOTSUPP, Errno::ENODATA, Errno::ENODEV] {
        served.fault(&path("mem_busy_percent"), Fault::Errno(errno));
        assert_eq!(read().faults, [], "{errno}: the driver has no such value");
        served.mend();
    }
    let partition = "/sys/class/drm/renderD129/device/xcp/xcp_metrics";
    served.fault(partition, Fault::Errno(Errno::EBUSY));
    let partition_readings = amdgpu::readings::of_partition(&root, &good, 1, "renderD129");
    assert_eq!(partition_readings.faults[0].file, Path::new(partition));
    assert_eq!(
        partition_readings.busy_percent, good.partitions[1].busy_percent,
        "the card's file says it too"
    );
    assert_eq!(read(), good);
}

#[test]
fn real_fuse_each_file_is_opened_and_read_once_and_pcie_bw_and_xgmi_error_never() {
    if !require() {
        return;
    }
    let instinct = Machine::instinct_with_readings(1, 1)
        .put(&path("pcie_bw"), "1 2 256\n")
        .put(&path("xgmi_error"), "1\n");
    let machines = [
        ("instinct", instinct, CARD),
        ("phoenix", support::captures::phoenix(), "0000:64:00.0"),
        ("rx6900xt", support::captures::rx6900xt(), "0000:0c:00.0"),
    ];
    for (name, machine, address) in machines {
        let laid = Laid::out(&machine);
        let served = Served::new(laid.folder.path());
        let root = Root::open(served.path()).unwrap();
        served.take_log();
        let card = amdgpu::readings::of_card(&root, address.parse().unwrap());
        assert_eq!(card.faults, [], "{name}");
        let mut counts = BTreeMap::<(PathBuf, Operation), u32>::new();
        for (operation, path) in served.take_log() {
            *counts.entry((path, operation)).or_default() += 1;
        }
        assert!(counts.len() > 20, "{name}: {counts:#?}");
        for ((path, operation), count) in &counts {
            assert!(!["pcie_bw", "xgmi_error"].iter().any(|name| path.ends_with(name)), "{}", path.display());
            // The list of bad pages gives only a part in each read (amdgpu_ras_sysfs_badpages_read).
            let is_long = path.ends_with("ras/gpu_vram_bad_pages");
            assert!(*count == 1 || is_long, "{name}: {operation:?} {}: {count}", path.display());
        }
        assert_eq!(amdgpu::readings::of_card(&root, address.parse().unwrap()), laid.card(address), "{name}");
    }
}

#[test]
fn real_fuse_of_a_suspended_card_only_its_power_state_is_read() {
    if !require() {
        return;
    }
    let machine = Machine::instinct_with_readings(2, 2).put(&path("power/runtime_status"), "suspended\n");
    let laid = Laid::out(&machine);
    let served = Served::new(laid.folder.path());
    let root = Root::open(served.path()).unwrap();
    let folder = served.real(&path(""));
    let partition = served.real("/sys/class/drm/renderD129/device");
    let of_card = |log: Vec<(Operation, PathBuf)>| -> Vec<(Operation, PathBuf)> {
        let is_cards = |path: &Path| path.starts_with(&folder) || path.starts_with(&partition);
        log.into_iter().filter(|(_, path)| is_cards(path)).collect()
    };
    let state = folder.join("power/runtime_status");

    served.take_log();
    let card = amdgpu::readings::of_card(&root, CARD.parse().unwrap());
    for id in 0..2 {
        let partition = amdgpu::readings::of_partition(&root, &card, id, &format!("renderD{}", 128 + id));
        assert_eq!(partition, PartitionReadings::default());
    }
    let expected = [(Operation::Open, state.clone()), (Operation::Read, state)];
    assert_eq!(of_card(served.take_log()), expected);

    assert_eq!(amdgpu::read(&root).gpus.iter().filter(|gpu| gpu.vendor == Vendor::Amd).count(), 4);
    // The PCI core's and the DRM core's own files do not touch the card.
    let cores = ["uevent", "class", "vendor", "device", "numa_node", "sriov_numvfs", "runtime_status", "dev"];
    for (operation, path) in of_card(served.take_log()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(cores.contains(&name), "{operation:?} {}", path.display());
    }
}

#[test]
fn real_fuse_a_card_that_goes_while_it_is_read_leaves_what_was_read_before() {
    if !require() {
        return;
    }
    let laid = Laid::out(&Machine::instinct_with_readings(1, 1));
    let served = Served::new(laid.folder.path());
    let root = Root::open(served.path()).unwrap();
    served.fault(&path("gpu_busy_percent"), Fault::Delay(Duration::from_millis(300)));
    let device = laid.folder.path().join(served.real(&path("")).strip_prefix("/").unwrap());
    let read = std::thread::spawn(move || amdgpu::readings::of_card(&root, CARD.parse().unwrap()));
    let is_reached =
        |log: Vec<(Operation, PathBuf)>| log.iter().any(|(_, path)| path.ends_with("gpu_busy_percent"));
    while !is_reached(served.take_log()) {
        std::thread::yield_now();
    }
    std::fs::remove_dir_all(device).unwrap();
    let card = read.join().unwrap();
    assert_eq!(card.temperatures.len(), 2, "hwmon comes first");
    assert_eq!((card.busy_percent, card.vbios_version), (None, None));
    assert_eq!(card.faults, []);
}
