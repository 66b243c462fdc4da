//! PCIe traffic, which the library measures in the background.

use std::ffi::CString;
use std::fs;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use accelerator_amd::AccelResult;
use accelerator_amd::today::{AccelGetDeviceMetrics, AccelShutdown};
use accelerator_amd::types::DeviceMetrics;
use layout::{Machine, Nodes};

/// `pcieRxBytes` and `pcieTxBytes` of crates/accelerator-amd/tests/abi/abi-of-today.json.
const RECEIVED: usize = 80;
const SENT: usize = 88;

fn traffic(uuid: &str) -> (u64, u64) {
    let uuid = CString::new(uuid).unwrap();
    let mut metrics = MaybeUninit::<DeviceMetrics>::uninit();
    // SAFETY: one uuid, and room for one device's metrics, which are there once the call succeeds.
    unsafe {
        assert_eq!(
            AccelGetDeviceMetrics([uuid.as_ptr()].as_ptr(), 1, metrics.as_mut_ptr()),
            AccelResult::Success
        );
        let at = |offset: usize| metrics.as_ptr().cast::<u8>().add(offset).cast::<u64>().read();
        (at(RECEIVED), at(SENT))
    }
}

#[test]
fn a_cards_traffic_is_in_kilobytes_a_second_once_it_was_measured() {
    let machine = tempfile::tempdir().unwrap();
    Machine::instinct(1, 1).lay_out(machine.path(), Nodes::Recorded).unwrap();
    let cards = fs::read_dir(machine.path().join("sys/bus/pci/devices")).unwrap();
    let card = cards.map(|card| card.unwrap().path()).find(|card| card.join("unique_id").exists()).unwrap();
    // Packets received and sent within a second, and the most bytes of one (amdgpu_pm.c, amdgpu_get_pcie_bw).
    fs::write(card.join("pcie_bw"), "5000000 3000000 256\n").unwrap();
    let uuid = format!("GPU-{}", fs::read_to_string(card.join("unique_id")).unwrap().trim());
    // SAFETY: no other thread of this process reads the environment yet.
    unsafe { std::env::set_var("ACCELERATOR_AMD_ROOT", machine.path()) };
    assert_eq!(traffic(&uuid), (0, 0));
    let begun = Instant::now();
    while traffic(&uuid) == (0, 0) {
        assert!(begun.elapsed() < Duration::from_secs(30), "nothing was measured");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(traffic(&uuid), (1_280_000, 768_000));
    AccelShutdown();
    assert_eq!(traffic(&uuid), (0, 0), "a new session measures anew");
}
