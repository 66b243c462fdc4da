//! Whether heat limits a card's clocks: captured cards with bits of `indep_throttle_status` (`gpu_metrics`, 112) and
//! `throttle_status` (108) set.

use std::fs;

use layout::Machine;
use support::captures;

use crate::readings::Laid;

/// Bits of `indep_throttle_status` (amdgpu_smu.h).
const PPT0: u64 = 1;
const TEMP_MEM: u64 = 1 << 34;
const TEMP_HOTSPOT: u64 = 1 << 36;
const CARD: &str = "sys/bus/pci/devices/0000:03:00.0";

/// A captured card whose firmware reports these bits. `bit`: of the ASIC's own `throttle_status`.
fn throttled(machine: &Machine, bits: u64, bit: u32) -> Laid {
    let laid = Laid::out(machine);
    let file = laid.folder.path().join(CARD).join("gpu_metrics");
    let mut bytes = fs::read(&file).unwrap();
    assert_eq!(bytes[2..4], [1, 3]);
    bytes[108..112].copy_from_slice(&(1_u32 << bit).to_le_bytes());
    bytes[112..120].copy_from_slice(&bits.to_le_bytes());
    fs::write(&file, bytes).unwrap();
    laid
}

fn status(laid: &Laid, reason: &str) -> Option<bool> {
    let card = laid.card("0000:03:00.0");
    assert_eq!(card.faults, []);
    card.throttle.status.iter().find(|(known, _)| *known == reason).map(|(_, is_active)| *is_active)
}

/// THROTTLER_TEMP_HOTSPOT_BIT is 1 on both (smu13_driver_if_v13_0_0.h, smu14_driver_if_v14_0.h).
#[test]
fn a_hotspot_bit_that_firmware_keeps_set_at_idle_is_no_heat_and_a_power_bit_beside_it_counts() {
    for (machine, hwmon) in [(captures::rx7800xt(), "hwmon4"), (captures::rx9070(), "hwmon2")] {
        // 31 and 52 °C, and the limit is 110.
        let idle = throttled(&machine, TEMP_HOTSPOT, 1);
        assert_eq!((status(&idle, "thermal"), status(&idle, "power")), (Some(false), Some(false)));
        let loaded = throttled(&machine, TEMP_HOTSPOT | PPT0, 1);
        assert_eq!((status(&loaded, "thermal"), status(&loaded, "power")), (Some(false), Some(true)));
        let hot_memory = throttled(&machine, TEMP_HOTSPOT | TEMP_MEM, 1);
        assert_eq!(status(&hot_memory, "thermal"), Some(true), "another sensor's bit is not kept set");
        let junction = format!("/{CARD}/hwmon/{hwmon}/temp2_input");
        for (millidegrees, expected) in [("104999\n", false), ("105000\n", true), ("111000\n", true)] {
            let hot = throttled(&machine.clone().put(&junction, millidegrees), TEMP_HOTSPOT, 1);
            assert_eq!(status(&hot, "thermal"), Some(expected), "{millidegrees}");
        }
    }
}

#[test]
fn without_the_junctions_limit_or_reading_a_hotspot_bit_says_nothing() {
    let machine = captures::rx7800xt();
    let file = |name: &str| format!("/{CARD}/hwmon/hwmon4/{name}");
    for (what, machine) in [
        ("no limit", machine.clone().remove(&file("temp2_crit"))),
        ("a limit that the driver left at 0", machine.clone().put(&file("temp2_crit"), "0\n")),
        ("no reading", machine.clone().remove(&file("temp2_input"))),
        ("no hwmon", machine.clone().remove(&format!("/{CARD}/hwmon"))),
    ] {
        let laid = throttled(&machine, TEMP_HOTSPOT | PPT0, 1);
        assert_eq!((status(&laid, "thermal"), status(&laid, "power")), (None, Some(true)), "{what}");
        let cool = throttled(&machine, PPT0, 1);
        assert_eq!(status(&cool, "thermal"), Some(false), "{what}: no thermal bit is set");
    }
}
