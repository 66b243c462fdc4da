//! Every file that is read, holding nothing or nonsense: its value is absent, the fault names it, and nothing else changes.

use std::path::Path;

use amdgpu::readings::pcie_traffic;
use inventory::readings::CardReadings;
use layout::Machine;

use crate::readings::Laid;

const CARD: &str = "0000:05:00.0";
const HWMON: &str = "hwmon/hwmon2";

/// Texts that one kind of file can hold and that are no value of it, beside those of [`never`].
const KINDS: &[(&str, &[&str], &[&str])] = &[
    (
        "a count",
        &[
            "mem_info_vram_total",
            "mem_info_vram_used",
            "mem_info_vis_vram_total",
            "mem_info_vis_vram_used",
            "mem_info_gtt_total",
            "mem_info_gtt_used",
            "current_link_width",
            "max_link_width",
            "hwmon/hwmon2/power1_input",
            "hwmon/hwmon2/power1_cap",
            "hwmon/hwmon2/power1_cap_default",
            "hwmon/hwmon2/power1_cap_min",
            "hwmon/hwmon2/power1_cap_max",
            "hwmon/hwmon2/freq1_input",
            "hwmon/hwmon2/freq2_input",
            "hwmon/hwmon2/fan1_input",
            "hwmon/hwmon2/fan1_max",
            "hwmon/hwmon2/in0_input",
            "hwmon/hwmon2/energy1_input",
        ],
        &["-1\n", "18446744073709551616\n", "12 34\n", "0x10\n", "12.5\n", "none\n"],
    ),
    (
        "a percentage",
        &["gpu_busy_percent", "mem_busy_percent", "vcn_busy_percent"],
        &["-1\n", "101\n", "256\n", "18446744073709551616\n", "50 %\n"],
    ),
    (
        "a temperature",
        &[
            "hwmon/hwmon2/temp2_input",
            "hwmon/hwmon2/temp2_crit",
            "hwmon/hwmon2/temp2_emergency",
            "hwmon/hwmon2/temp3_input",
        ],
        &["-273151\n", "9223372036854775808\n", "hot\n", "51.5\n"],
    ),
    (
        "a speed",
        &["current_link_speed", "max_link_speed"],
        &["-16.0 GT/s PCIe\n", "inf GT/s\n", "0 GT/s\n", "16\n"],
    ),
    (
        "levels",
        &["pp_dpm_fclk"],
        &["1200Mhz\n", "0: 1Mhz *\n1: 2Mhz *\n", "0: -5Mhz *\n", "0: 99999999999999999999Mhz *\n", "*\n"],
    ),
    (
        "a counter of errors",
        &["ras/umc_err_count", "ras/gfx_err_count"],
        &["ue: -1\nce: -2\n", "ue: 18446744073709551616\n", "7\n"],
    ),
    (
        "bad pages",
        &["ras/gpu_vram_bad_pages"],
        &["0x00000001 : 0x00001000 : X\n", "0x00000001 : 0x00001000 : R\nR?\n"],
    ),
    ("a state of power", &["power/runtime_status"], &["hello\n"]),
    (
        "words",
        &["vbios_version", "fw_version/smc_fw_version", "hwmon/hwmon2/freq1_label", "hwmon/hwmon2/in0_label"],
        &[],
    ),
    ("metrics", &["gpu_metrics"], &["\u{8}\u{0}\u{63}\u{1}abcd", "text\n", "\u{4}"]),
];

/// Contents that no file may hold.
fn never(file: &str) -> Vec<(&'static str, Vec<u8>)> {
    let mut bytes = vec![
        ("NULs", vec![0; 4096]),
        ("white space", b" \n".to_vec()),
        ("no UTF-8", b"\xff\xfe\n".to_vec()),
        ("more than a page", vec![b'1'; 5000]),
    ];
    // No bad page is an empty list; see amdgpu_ras_sysfs_badpages_read.
    if file != "ras/gpu_vram_bad_pages" {
        bytes.push(("nothing", Vec::new()));
    }
    bytes
}

/// A card with every file that is read.
fn machine() -> Machine {
    let files = [
        ("vcn_busy_percent", "42"),
        ("hwmon/hwmon2/fan1_input", "1201"),
        ("hwmon/hwmon2/fan1_max", "3401"),
        ("hwmon/hwmon2/in0_label", "vddgfx"),
        ("hwmon/hwmon2/in0_input", "815"),
        ("hwmon/hwmon2/energy1_input", "5000000"),
    ];
    let put = |machine: Machine, (name, text): (&str, &str)| machine.put(&path(name), format!("{text}\n"));
    files.into_iter().fold(Machine::instinct_with_readings(1, 1), put)
}

fn path(file: &str) -> String {
    format!("/sys/bus/pci/devices/{CARD}/{file}")
}

#[test]
fn a_file_that_holds_nothing_or_nonsense_costs_its_own_value_and_is_named() {
    let laid = Laid::out(&machine());
    let good = laid.card(CARD);
    assert_eq!(good.faults, []);
    assert_eq!(good.fans[0].rpm, Some(1201.0), "{HWMON} is the card's");
    assert_eq!(good.energy_joules, Some(5.0));
    for (kind, files, nonsense) in KINDS {
        for file in *files {
            let on_disk = laid.folder.path().join(path(file).trim_start_matches('/'));
            let before = std::fs::read(&on_disk).unwrap_or_else(|error| panic!("{file}: {error}"));
            let nonsense = nonsense.iter().map(|text| (*text, text.as_bytes().to_vec()));
            for (what, bytes) in never(file).into_iter().chain(nonsense) {
                let case = format!("{kind}, {file}: {what:?}");
                std::fs::write(&on_disk, bytes).unwrap();
                let read = laid.card(CARD);
                let named = |fault: &inventory::readings::Fault| fault.file == Path::new(&path(file));
                assert!(
                    !read.faults.is_empty() && read.faults.iter().all(named),
                    "{case}: {:?}",
                    read.faults
                );
                let reason = read.faults[0].reason.to_string();
                assert!(reason.contains(file), "{case}: the reason names the file: {reason}");
                assert_ne!(without_faults(&read), good, "{case}: its value is absent");
                if *file != "gpu_metrics" && *file != "power/runtime_status" {
                    assert_eq!(lost(&good, &read), 1, "{case}: more than its value is lost: {read:#?}");
                }
            }
            std::fs::write(&on_disk, before).unwrap();
            assert_eq!(laid.card(CARD), good, "{file} is as it was");
        }
    }
}

fn without_faults(read: &CardReadings) -> CardReadings {
    CardReadings { faults: Vec::new(), ..read.clone() }
}

/// The number of parts in which two readings differ.
fn lost(good: &CardReadings, read: &CardReadings) -> usize {
    let parts = |card: &CardReadings| {
        let card = without_faults(card);
        [
            format!("{:?}", card.temperatures),
            format!("{:?}", card.power),
            format!("{:?}", card.energy_joules),
            format!("{:?}", card.clocks),
            format!("{:?} {:?} {:?}", card.busy_percent, card.memory_busy_percent, card.engines),
            format!("{:?}", card.memory),
            format!("{:?}", card.voltages),
            format!("{:?}", card.fans),
            format!("{:?}", card.pcie),
            format!("{:?}", card.ras),
            format!("{:?}", card.retired_pages),
            format!("{:?}", card.vbios_version),
            format!("{:?}", card.firmware),
            format!("{:?} {:?} {:?} {:?}", card.xgmi, card.throttle, card.hang, card.is_apu),
        ]
    };
    parts(good).iter().zip(parts(read)).filter(|(good, read)| *good != read).count()
}

#[test]
fn a_file_that_is_not_there_is_no_fault() {
    for (_, files, _) in KINDS {
        for file in *files {
            let laid = Laid::out(&machine().remove(&path(file)));
            assert_eq!(laid.card(CARD).faults, [], "{file}");
        }
    }
}

#[test]
fn a_link_that_the_kernel_does_not_know_is_absent_without_a_fault() {
    let unknown = [
        ("current_link_speed", "Unknown\n"),
        ("max_link_speed", "Unknown speed\n"),
        ("current_link_width", "0\n"),
        ("max_link_width", "255\n"),
    ];
    let put = |machine: Machine, (file, text): (&str, &str)| machine.put(&path(file), text);
    let laid = Laid::out(&unknown.into_iter().fold(machine().remove(&path("gpu_metrics")), put));
    let card = laid.card(CARD);
    assert_eq!(
        (card.pcie.speed, card.pcie.max_speed, card.pcie.width, card.pcie.max_width),
        (None, None, None, None)
    );
    assert_eq!(card.faults, []);
}

#[test]
fn what_a_driver_says_of_a_value_that_it_has_not_is_no_fault() {
    let good = Laid::out(&machine()).card(CARD);
    for (file, text) in [
        ("pp_dpm_fclk", "\n"),
        ("pp_dpm_fclk", "0: 1200Mhz \n1: 1800Mhz \n"),
        ("ras/umc_err_count", "Query currently inaccessible\n"),
    ] {
        let card = Laid::out(&machine().put(&path(file), text)).card(CARD);
        assert_eq!(card.faults, [], "{file}: {text:?}");
        assert_eq!(lost(&good, &card), 1, "{file}: {text:?}");
        assert_eq!(card.ras.len(), good.ras.len(), "{file}: a block that cannot be read now is one still");
    }
}

#[test]
fn a_card_in_a_state_of_power_that_is_not_known_is_not_read() {
    let status = path("power/runtime_status");
    for text in ["hello\n", "", "\n", "Active\n"] {
        let laid = Laid::out(&machine().put(&status, text));
        let card = laid.card(CARD);
        assert_eq!(without_faults(&card), CardReadings::default(), "{text:?}");
        assert!(card.is_suspended() && card.faults.len() == 1, "{text:?}: {:?}", card.faults);
        let traffic = pcie_traffic(&laid.root, CARD.parse().unwrap()).unwrap_err().to_string();
        assert!(traffic.contains("power/runtime_status"), "{text:?}: {traffic}");
    }
    for state in ["active", "resuming", "error", "unsupported"] {
        let card = Laid::out(&machine().put(&status, format!("{state}\n"))).card(CARD);
        assert_eq!((card.is_suspended(), &card.faults[..]), (false, &[][..]), "{state}");
    }
}

#[test]
fn a_card_with_thousands_of_files_of_a_kind_has_64_of_each() {
    let put = |machine: Machine, number: u32| {
        machine
            .put(&path(&format!("fw_version/x{number}_fw_version")), "0x1\n")
            .put(&path(&format!("ras/x{number}_err_count")), "ue: 1\nce: 1\n")
            .put(&path(&format!("{HWMON}/temp{number}_input")), "50000\n")
            .put(&path(&format!("{HWMON}/fan{number}_input")), "50\n")
    };
    let card = Laid::out(&(100..300).fold(machine().remove(&path("gpu_metrics")), put)).card(CARD);
    assert_eq!(
        [card.firmware.len(), card.ras.len(), card.temperatures.len(), card.fans.len()],
        [64, 64, 64, 64]
    );
    assert_eq!(card.faults, []);
}

#[test]
fn replays_are_those_of_gpu_metrics_and_a_file_that_says_0_says_nothing() {
    let without = || machine().remove(&path("gpu_metrics"));
    for (machine, text, expected) in
        [(machine(), "9\n", Some(107)), (without(), "9\n", Some(9)), (without(), "0\n", None)]
    {
        let card = Laid::out(&machine.put(&path("pcie_replay_count"), text)).card(CARD);
        assert_eq!((card.pcie.replays, &card.faults[..]), (expected, &[][..]), "{text:?}");
    }
    let card = Laid::out(&without().put(&path("pcie_replay_count"), "-1\n")).card(CARD);
    assert_eq!((card.pcie.replays, card.faults.len()), (None, 1));
}

#[test]
fn whether_a_card_is_an_apu_is_known_without_gpu_metrics_or_not_at_all() {
    let vram = path("mem_info_vram_total");
    let undecodable = || machine().put(&path("gpu_metrics"), "text\n");
    let nothing = || undecodable().remove(&path("hwmon/hwmon2/freq2_label"));
    for (what, machine, expected) in [
        ("an MI300A: gpu_metrics 1.x, no VRAM", machine().put(&vram, "0\n"), Some(true)),
        ("VRAM of unknown size", machine().put(&vram, "lots\n"), Some(false)),
        ("mclk", undecodable(), Some(false)),
        ("nothing tells", nothing(), None),
        ("pcie_bw", nothing().put(&path("pcie_bw"), "1 2 256\n"), Some(false)),
        ("vddnb", nothing().put(&path("hwmon/hwmon2/in0_label"), "vddnb\n"), Some(true)),
    ] {
        assert_eq!(Laid::out(&machine).card(CARD).is_apu, expected, "{what}");
    }
}

#[test]
fn a_hang_is_reported_where_the_kernel_makes_dumps() {
    let folder = "/sys/class/devcoredump";
    let with = |disabled: &str| machine().put(&format!("{folder}/disabled"), disabled);
    let dump = |of: &str| {
        let device = layout::Entry::Link(format!("../../../../devices/pci0000:00/{of}"));
        with("0\n").put(&format!("{folder}/devcd1/failing_device"), device)
    };
    for (what, machine, expected) in [
        ("no class", machine(), None),
        ("disabled", with("1\n"), None),
        ("no dump", with("0\n"), Some(false)),
        ("another card's dump", dump("0000:99:00.0"), Some(false)),
        ("this card's", dump(CARD), Some(true)),
        ("somebody's", with("0\n").put(&format!("{folder}/devcd1/data"), ""), None),
    ] {
        assert_eq!(Laid::out(&machine).card(CARD).hang, expected, "{what}");
    }
}

#[test]
fn a_limit_of_0_degrees_is_none_without_a_fault() {
    for text in ["0\n", "-1000\n"] {
        let files = ["temp2_crit", "temp2_emergency"].map(|name| path(&format!("{HWMON}/{name}")));
        let laid = Laid::out(&files.iter().fold(machine(), |machine, file| machine.put(file, text)));
        let card = laid.card(CARD);
        let junction = card.temperatures.iter().find(|it| it.sensor == "junction").unwrap();
        assert_eq!((junction.critical_celsius, junction.emergency_celsius), (None, None), "{text:?}");
        assert!(junction.celsius.is_some());
        assert_eq!(card.faults, []);
    }
}

#[test]
fn traffic_is_three_numbers_or_unknown() {
    for (text, expected) in [
        ("6641 815 256\n", Some((1_700_096.0, 208_640.0))),
        ("0 0 128\n", Some((0.0, 0.0))),
        ("1 2\n", None),
        ("1 2 3 4\n", None),
        ("-1 2 256\n", None),
        ("18446744073709551615 1 256\n", None),
        ("", None),
    ] {
        let laid = Laid::out(&machine().put(&path("pcie_bw"), text));
        let traffic = pcie_traffic(&laid.root, CARD.parse().unwrap());
        let traffic = traffic.map(|it| (it.received_bytes_per_second, it.sent_bytes_per_second)).ok();
        assert_eq!(traffic, expected, "{text:?}");
    }
}
