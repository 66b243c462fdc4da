//! Captured cards. Each expected value was read off the raw file that is named beside it; `gpu_metrics` by `od -A d -t u2`,
//! whose offsets are named.

use amdgpu::readings::pcie_traffic;
use inventory::readings::{CardReadings, Engine, Fan, MemoryPool, Pcie, Power, Throttle, Voltage, Xgmi};
use support::captures;

use crate::readings::{Laid, megahertz, temperature};

fn volts(rail: &str, volts: f64) -> Voltage {
    Voltage { rail: rail.to_owned(), volts }
}

fn pool(pool: &'static str, total: u64, used: u64) -> MemoryPool {
    MemoryPool { pool: pool.into(), total_bytes: Some(total), used_bytes: Some(used) }
}

/// A card of format 1 whose firmware limits nothing (`gpu_metrics`, 112: eight zeros).
fn unlimited() -> Throttle {
    Throttle {
        status: ["power", "current", "thermal", "other"].map(|reason| (reason.into(), false)).to_vec(),
        ..Throttle::default()
    }
}

fn link(gigatransfers: f64, width: u32) -> Pcie {
    let speed = Some(gigatransfers * 1e9);
    Pcie { speed, max_speed: speed, width: Some(width), max_width: Some(width), ..Pcie::default() }
}

#[test]
fn phoenix_says_what_its_files_say() {
    let firmware = [
        ("asd", "0x21000104"), // fw_version/*_fw_version
        ("dmcub", "0x08005400"),
        ("imu", "0x0b012d00"),
        ("me", "0x00000063"),
        ("mec", "0x00000043"),
        ("mes", "0x00000080"),
        ("mes_kiq", "0x00000106"),
        ("pfp", "0x00000067"),
        ("rlc", "0x0000008a"),
        ("sdma", "0x00000017"),
        ("smc", "0x004c6000"),
        ("vcn", "0x0911801b"),
    ];
    let expected = CardReadings {
        power_state: Some("active".to_owned()), // power/runtime_status
        is_apu: Some(true),                     // gpu_metrics, 2: 02 01
        temperatures: vec![
            temperature("edge", 25.0, None), // hwmon6/temp1_{label,input}: 25000
            temperature("soc", 27.37, None), // gpu_metrics, 6: 2737
        ],
        power: Power { watts: Some(3.103), ..Power::default() }, // hwmon6/power1_average: 3103000
        clocks: vec![
            megahertz("sclk", None, 800),   // hwmon6/freq1_{label,input}
            megahertz("mclk", None, 400),   // pp_dpm_mclk: `0: 400Mhz *`
            megahertz("fclk", None, 400),   // pp_dpm_fclk: `0: 400Mhz *`
            megahertz("socclk", None, 400), // pp_dpm_socclk: `0: 400Mhz *`
            megahertz("vclk", None, 800),   // pp_dpm_vclk: levels 0 and 1 are active, both 800
            megahertz("dclk", None, 800),   // pp_dpm_dclk: levels 0 and 1 are active, both 800
        ],
        busy_percent: Some(0.0), // gpu_busy_percent
        engines: vec![Engine { name: "vcn".into(), instance: None, busy: 0.0 }], // vcn_busy_percent
        memory: vec![
            pool("vram", 4_294_967_296, 1_272_893_440), // mem_info_vram_*
            pool("visible_vram", 4_294_967_296, 1_272_893_440), // mem_info_vis_vram_*
            pool("gtt", 31_433_977_856, 211_398_656),   // mem_info_gtt_*
        ],
        voltages: vec![volts("vddgfx", 0.814), volts("vddnb", 0.615)], // hwmon6/in{0,1}_{label,input}
        pcie: link(16.0, 16),                                          // {current,max}_link_{speed,width}
        vbios_version: Some("113-PHXGENERIC-001".to_owned()),
        firmware: firmware.map(|(name, version)| (name.to_owned(), version.to_owned())).to_vec(),
        ..CardReadings::default()
    };
    assert_eq!(Laid::out(&captures::phoenix()).card("0000:64:00.0"), expected);
}

#[test]
fn a_steam_deck_says_what_its_files_say() {
    let expected = CardReadings {
        is_apu: Some(true),                                  // hwmon4/in1_label: vddnb
        temperatures: vec![temperature("edge", 56.0, None)], // hwmon4/temp1_{label,input}
        power: Power {
            watts: Some(3.218),            // hwmon4/power1_average
            cap_watts: Some(15.0),         // hwmon4/power1_cap
            cap_default_watts: Some(15.0), // hwmon4/power1_cap_default
            cap_min_watts: Some(0.0),      // hwmon4/power1_cap_min
            cap_max_watts: Some(29.0),     // hwmon4/power1_cap_max
        },
        clocks: vec![
            megahertz("sclk", None, 200),   // hwmon4/freq1_{label,input}
            megahertz("mclk", None, 687),   // pp_dpm_mclk: levels 2 and 3 are active, both 687
            megahertz("socclk", None, 400), // pp_dpm_socclk
        ],
        busy_percent: Some(0.0), // gpu_busy_percent
        voltages: vec![volts("vddgfx", 0.015), volts("vddnb", 0.669)], // hwmon4/in{0,1}_{label,input}
        pcie: Pcie { speed: Some(8e9), width: Some(16), ..Pcie::default() }, // current_link_*; no max_link_*
        vbios_version: Some("113-AMDAerithJ-005".to_owned()),
        ..CardReadings::default()
    };
    let laid = Laid::out(&captures::vangogh());
    // The archive has neither runtime_status nor gpu_metrics; the layout adds the former.
    let read = CardReadings { power_state: None, ..laid.card("0000:04:00.0") };
    assert_eq!(read, expected);
}

#[test]
fn an_rx_6900_xt_says_what_its_padded_files_say() {
    let read = Laid::out(&captures::rx6900xt()).card("0000:0c:00.0");
    let expected = CardReadings {
        power_state: Some("active".to_owned()),
        is_apu: Some(false), // gpu_metrics, 2: 01 03
        temperatures: vec![
            temperature("edge", 56.0, Some((100.0, 105.0))), // hwmon5/temp1_{input,crit,emergency}
            temperature("junction", 59.0, Some((110.0, 115.0))), // hwmon5/temp2_*
            temperature("mem", 54.0, Some((100.0, 105.0))),  // hwmon5/temp3_*
            temperature("vrgfx", 49.0, None),                // gpu_metrics, 10
            temperature("vrsoc", 49.0, None),                // gpu_metrics, 12
            temperature("vrmem", 51.0, None),                // gpu_metrics, 14
        ],
        power: Power {
            watts: Some(36.0), // hwmon5/power1_average
            cap_watts: Some(289.0),
            cap_default_watts: Some(289.0),
            cap_min_watts: Some(0.0),
            cap_max_watts: Some(332.0),
        },
        clocks: vec![
            megahertz("sclk", None, 500),   // hwmon5/freq1_*
            megahertz("mclk", None, 1_000), // hwmon5/freq2_*
            megahertz("socclk", None, 800), // gpu_metrics, 56
            megahertz("vclk", Some(0), 0),  // gpu_metrics, 60: 0, the engine is off
            megahertz("vclk", Some(1), 0),  // gpu_metrics, 64
            megahertz("dclk", Some(0), 0),  // gpu_metrics, 62
            megahertz("dclk", Some(1), 0),  // gpu_metrics, 66
            megahertz("fclk", None, 1_302), // pp_dpm_fclk: `1: 1302Mhz *`
        ],
        busy_percent: Some(3.0),        // gpu_busy_percent
        memory_busy_percent: Some(0.0), // mem_busy_percent
        engines: vec![Engine { name: "vcn".into(), instance: None, busy: 0.0 }], // gpu_metrics, 20: 0
        memory: vec![
            pool("vram", 17_163_091_968, 668_274_688),
            pool("visible_vram", 17_163_091_968, 668_274_688),
            pool("gtt", 16_786_171_904, 62_369_792),
        ],
        // hwmon5/in0_input: 775; gpu_metrics, 104: 818; 108: 1356
        voltages: vec![volts("vddgfx", 0.775), volts("soc", 0.818), volts("mem", 1.356)],
        fans: vec![Fan { number: 1, rpm: Some(0.0), max_rpm: Some(3400.0) }], // hwmon5/fan1_{input,max}
        pcie: link(16.0, 16), // pcie_replay_count: 0, which every Navi says
        throttle: unlimited(),
        vbios_version: Some("113-D4121EXT-CO1".to_owned()),
        firmware: read.firmware.clone(),
        ..CardReadings::default()
    };
    assert_eq!(read, expected);
    let firmware = |name: &str| read.firmware.iter().find(|it| it.0 == name).map(|it| it.1.as_str());
    assert_eq!(firmware("smc"), Some("0x003a5600")); // fw_version/smc_fw_version
    assert_eq!(firmware("sos"), Some("0x00210864")); // fw_version/sos_fw_version
    assert_eq!(firmware("uvd"), None); // fw_version/uvd_fw_version: 0x00000000, it has none
}

#[test]
fn an_rx_7800_xt_says_what_its_files_say() {
    let read = Laid::out(&captures::rx7800xt()).card("0000:03:00.0");
    let expected = CardReadings {
        power_state: read.power_state.clone(),
        is_apu: Some(false),
        temperatures: vec![
            temperature("edge", 24.0, Some((100.0, 105.0))), // hwmon4/temp1_*
            temperature("junction", 31.0, Some((110.0, 115.0))), // hwmon4/temp2_*
            temperature("mem", 48.0, Some((108.0, 113.0))),  // hwmon4/temp3_*
            temperature("vrgfx", 34.0, None),                // gpu_metrics, 10
            temperature("vrsoc", 32.0, None),                // gpu_metrics, 12
            temperature("vrmem", 34.0, None),                // gpu_metrics, 14
        ],
        power: Power {
            watts: Some(32.0), // hwmon4/power1_average
            cap_watts: Some(236.0),
            cap_default_watts: Some(236.0),
            cap_min_watts: Some(212.0),
            cap_max_watts: Some(280.0),
        },
        clocks: vec![
            megahertz("sclk", None, 2_011), // hwmon4/freq1_*
            megahertz("mclk", None, 456),   // hwmon4/freq2_*
            megahertz("socclk", None, 750), // gpu_metrics, 56
            megahertz("vclk", Some(0), 25), // gpu_metrics, 60
            megahertz("vclk", Some(1), 25), // gpu_metrics, 64
            megahertz("dclk", Some(0), 25), // gpu_metrics, 62
            megahertz("dclk", Some(1), 25), // gpu_metrics, 66
        ],
        busy_percent: Some(2.0),        // gpu_busy_percent, not gpu_metrics' 24
        memory_busy_percent: Some(0.0), // gpu_metrics, 18; the archive has no mem_busy_percent
        engines: vec![Engine { name: "vcn".into(), instance: None, busy: 0.0 }], // gpu_metrics, 20
        // hwmon4/in0_input: 985; gpu_metrics, 104: 768; 108: 704
        voltages: vec![volts("vddgfx", 0.985), volts("soc", 0.768), volts("mem", 0.704)],
        fans: vec![Fan { number: 1, rpm: Some(868.0), max_rpm: Some(3300.0) }], // hwmon4/fan1_*
        pcie: Pcie { speed: Some(16e9), width: Some(16), ..Pcie::default() },   // current_link_*
        throttle: unlimited(),
        vbios_version: Some("113-EXT90249-100".to_owned()),
        ..CardReadings::default()
    };
    assert_eq!(read, expected);
}

#[test]
fn an_rx_9070_says_what_its_files_say() {
    let read = Laid::out(&captures::rx9070()).card("0000:03:00.0");
    let expected = CardReadings {
        power_state: read.power_state.clone(),
        is_apu: Some(false),
        temperatures: vec![
            temperature("edge", 48.0, Some((110.0, 115.0))), // hwmon2/temp1_*
            temperature("junction", 52.0, Some((110.0, 115.0))), // hwmon2/temp2_*
            temperature("mem", 72.0, Some((108.0, 113.0))),  // hwmon2/temp3_*
            temperature("vrgfx", 46.0, None),                // gpu_metrics, 10
            temperature("vrsoc", 49.0, None),                // gpu_metrics, 12
            temperature("vrmem", 54.0, None),                // gpu_metrics, 14
        ],
        power: Power {
            watts: Some(49.0), // hwmon2/power1_average
            cap_watts: Some(200.0),
            cap_default_watts: Some(220.0),
            cap_min_watts: Some(0.0),
            cap_max_watts: Some(245.0),
        },
        clocks: vec![
            megahertz("sclk", None, 900),     // hwmon2/freq1_*
            megahertz("mclk", None, 1_124),   // hwmon2/freq2_*
            megahertz("socclk", None, 1_200), // gpu_metrics, 56
            megahertz("vclk", Some(0), 25),   // gpu_metrics, 60
            megahertz("vclk", Some(1), 25),   // gpu_metrics, 64
            megahertz("dclk", Some(0), 25),   // gpu_metrics, 62
            megahertz("dclk", Some(1), 25),   // gpu_metrics, 66
        ],
        busy_percent: Some(25.0),       // gpu_busy_percent
        memory_busy_percent: Some(0.0), // gpu_metrics, 18
        engines: vec![Engine { name: "vcn".into(), instance: None, busy: 0.0 }], // gpu_metrics, 20
        // hwmon2/in0_input: 790; gpu_metrics, 104: 842; 108: 1345
        voltages: vec![volts("vddgfx", 0.79), volts("soc", 0.842), volts("mem", 1.345)],
        fans: vec![Fan { number: 1, rpm: Some(1944.0), max_rpm: Some(6000.0) }], // hwmon2/fan1_*
        pcie: Pcie { speed: Some(32e9), width: Some(16), ..Pcie::default() },    // current_link_*
        throttle: unlimited(),
        vbios_version: Some("113-2E490TX-US2".to_owned()),
        ..CardReadings::default()
    };
    assert_eq!(read, expected);
}

#[test]
fn a_vega_without_hwmon_says_what_its_files_say() {
    let laid = Laid::out(&captures::vega());
    let read = laid.card("0000:09:00.0");
    let expected = CardReadings {
        power_state: read.power_state.clone(),
        is_apu: Some(false), // pcie_bw is there
        clocks: vec![
            megahertz("sclk", None, 852),   // pp_dpm_sclk: `0: 852Mhz *`
            megahertz("mclk", None, 167),   // pp_dpm_mclk: `0: 167Mhz *`
            megahertz("socclk", None, 720), // pp_dpm_socclk: `1: 720Mhz *`
        ],
        busy_percent: Some(4.0), // gpu_busy_percent
        memory: vec![
            pool("vram", 8_573_157_376, 1_490_378_752),
            pool("visible_vram", 8_573_157_376, 1_490_378_752),
            pool("gtt", 8_573_157_376, 144_560_128),
        ],
        pcie: link(8.0, 16),
        vbios_version: Some("115-D050PIL-100".to_owned()),
        xgmi: Xgmi::default(),
        ..CardReadings::default()
    };
    assert_eq!(read, expected);
    // pcie_bw: 6641 815 256
    let traffic = pcie_traffic(&laid.root, "0000:09:00.0".parse().unwrap()).unwrap();
    assert_eq!(traffic.received_bytes_per_second, 6641.0 * 256.0);
    assert_eq!(traffic.sent_bytes_per_second, 815.0 * 256.0);
}
