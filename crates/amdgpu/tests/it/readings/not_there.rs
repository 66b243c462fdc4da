//! Values that a card does not have but that its files give as a number.

use std::fs;

use inventory::readings::{Power, Temperature};
use layout::{Machine, gpu_metrics};
use support::captures;

use crate::readings::Laid;

const CARD: &str = "0000:05:00.0";

fn power_of(files: &[(&str, &str)]) -> Power {
    let folder = format!("/sys/bus/pci/devices/{CARD}/hwmon/hwmon2");
    let names = [
        "power1_average",
        "power1_input",
        "power1_cap",
        "power1_cap_default",
        "power1_cap_min",
        "power1_cap_max",
    ];
    let machine = Machine::instinct_with_readings(1, 1)
        // An MI200's version, whose power is not read.
        .put(&format!("/sys/bus/pci/devices/{CARD}/gpu_metrics"), gpu_metrics((1, 3), &[]));
    let machine = names.iter().fold(machine, |machine, name| machine.remove(&format!("{folder}/{name}")));
    let machine = files
        .iter()
        .fold(machine, |machine, (name, text)| machine.put(&format!("{folder}/{name}"), format!("{text}\n")));
    Laid::out(&machine).card(CARD).power
}

#[test]
fn a_die_whose_power_limit_is_0_has_no_power_reading() {
    // The second die of an MI250 by aldebaran_ppt.c: power is not supported, and by older kernels 0.
    let limits = [
        ("power1_cap", "0"),
        ("power1_cap_default", "0"),
        ("power1_cap_min", "0"),
        ("power1_cap_max", "560000000"),
    ];
    for first in [None, Some(("power1_average", "0")), Some(("power1_input", "0"))] {
        let files: Vec<_> = first.into_iter().chain(limits).collect();
        assert_eq!(power_of(&files), Power::default(), "{first:?}");
    }
    // Kernels before 5.14 have no default.
    assert_eq!(power_of(&[("power1_average", "0"), ("power1_cap", "0")]), Power::default());
    // A card whose firmware limits no power (SMU_FEATURE_PPT_BIT) and measures it.
    let measured: Vec<_> = [("power1_average", "91000000")].into_iter().chain(limits).collect();
    assert_eq!(power_of(&measured), Power { watts: Some(91.0), ..Power::default() });
}

#[test]
fn a_die_with_a_limit_keeps_each_of_its_numbers() {
    let files = [
        ("power1_average", "0"),
        ("power1_cap", "560000000"),
        ("power1_cap_default", "560000000"),
        ("power1_cap_min", "0"),
        ("power1_cap_max", "560000000"),
    ];
    let expected = Power {
        watts: Some(0.0),
        cap_watts: Some(560.0),
        cap_default_watts: Some(560.0),
        cap_min_watts: Some(0.0),
        cap_max_watts: Some(560.0),
    };
    assert_eq!(power_of(&files), expected);
}

/// `temperature_vrgfx`, `vrsoc` and `vrmem` of 1.3 are at 10, 12 and 14.
#[test]
fn a_regulator_without_a_sensor_has_no_temperature() {
    for (machine, lacking, expected) in [
        (captures::rx7800xt(), &[10, 12, 14][..], &["edge", "junction", "mem"][..]),
        (captures::rx9070(), &[14], &["edge", "junction", "mem", "vrgfx", "vrsoc"]),
    ] {
        let laid = Laid::out(&machine);
        let file = laid.folder.path().join("sys/bus/pci/devices/0000:03:00.0/gpu_metrics");
        let mut bytes = fs::read(&file).unwrap();
        lacking.iter().for_each(|at| bytes[*at..at + 2].fill(0));
        fs::write(&file, bytes).unwrap();
        let card = laid.card("0000:03:00.0");
        let sensors: Vec<&str> = card.temperatures.iter().map(|it| it.sensor.as_str()).collect();
        assert_eq!((sensors.as_slice(), card.faults), (expected, Vec::new()));
    }
}

#[test]
fn no_version_of_gpu_metrics_has_a_sensor_of_0_degrees() {
    for (version, field) in [
        ((1, 3), "temperature_hbm"),
        ((1, 5), "temperature_vrsoc"),
        ((1, 8), "temperature_mem"),
        ((1, 9), "temperature_xcd"),
        ((2, 4), "temperature_soc"),
        ((3, 0), "temperature_skin"),
    ] {
        let read = |value| {
            let metrics = gpu_metrics(version, &[(field, 0, value)]);
            let hwmon = format!("/sys/bus/pci/devices/{CARD}/hwmon");
            let machine = Machine::instinct_with_readings(1, 1).remove(&hwmon);
            Laid::out(&machine.put(&format!("/sys/bus/pci/devices/{CARD}/gpu_metrics"), metrics)).card(CARD)
        };
        assert_eq!(read(0).temperatures, [], "{version:?} {field}");
        let [Temperature { celsius: Some(celsius), .. }] = read(1).temperatures[..] else {
            panic!("{version:?} {field}")
        };
        assert_eq!(celsius, if version.0 == 1 { 1.0 } else { 0.01 }, "{version:?} {field}");
    }
}
