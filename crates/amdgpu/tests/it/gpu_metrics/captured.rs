//! Captured files. Each value was worked out from `xxd -g1 gpu_metrics`, and stands beside its offset there.

use amdgpu::gpu_metrics::GpuMetrics;
use layout::Entry;
use support::captures;

/// Offset in the file, the bytes there, the field's name, its place, and its value.
type Row = (usize, &'static [u8], &'static str, u32, Option<u64>);

fn check(capture: &str, card: &str, length: usize, version: (u8, u8), rows: &[Row]) {
    let archive = captures::unpack(capture);
    let path = format!("{capture}/{card}/device/gpu_metrics");
    let Some(Entry::File(bytes)) = archive.get(&path) else { panic!("{path} was not captured") };
    assert_eq!(bytes.len(), length, "{capture}");
    let metrics = GpuMetrics::decode(bytes).unwrap();
    assert_eq!(metrics.version, version, "{capture}");
    for (offset, raw, name, place, value) in rows {
        assert_eq!(&bytes[*offset..offset + raw.len()], *raw, "{capture}: {offset:#x}");
        let read = metrics.values(name).find(|(at, _)| at == place).map(|(_, value)| value);
        assert_eq!(read, *value, "{capture}: {name}[{place}] at {offset:#x}");
    }
    // structure_size says 120, however long the file is.
    assert_eq!(bytes[..2], [0x78, 0x00], "{capture}");
    assert_eq!(GpuMetrics::decode(&bytes[..120]).unwrap(), metrics, "{capture}");
    assert!(metrics.names().all(|name| !name.starts_with("padding")), "{capture}");
}

#[test]
fn an_apu_of_format_2_1() {
    let rows: [Row; 22] = [
        (0x04, &[0xc4, 0x09], "temperature_gfx", 0, Some(2500)),
        (0x06, &[0xb1, 0x0a], "temperature_soc", 0, Some(2737)),
        (0x08, &[0xe9, 0x09], "temperature_core", 0, Some(2537)),
        (0x16, &[0x47, 0x09], "temperature_core", 7, Some(2375)),
        (0x18, &[0xdd, 0x09], "temperature_l3", 0, Some(2525)),
        (0x1a, &[0xff, 0xff], "temperature_l3", 1, None),
        (0x1c, &[0x4f, 0x00], "average_gfx_activity", 0, Some(79)),
        (0x1e, &[0x00, 0x00], "average_mm_activity", 0, Some(0)),
        (
            0x20,
            &[0xe0, 0x9f, 0xe5, 0xf6, 0x71, 0x71, 0x01, 0x00],
            "system_clock_counter",
            0,
            Some(0x0001_7171_f6e5_9fe0),
        ),
        (0x28, &[0x49, 0x0d], "average_socket_power", 0, Some(3401)),
        (0x2a, &[0xff, 0xff], "average_cpu_power", 0, None),
        (0x2c, &[0xe7, 0x02], "average_soc_power", 0, Some(743)),
        (0x2e, &[0x49, 0x02], "average_gfx_power", 0, Some(585)),
        (0x3e, &[0x09, 0x00], "average_core_power", 7, Some(9)),
        (0x40, &[0x20, 0x03], "average_gfxclk_frequency", 0, Some(800)),
        (0x4a, &[0x20, 0x03], "average_dclk_frequency", 0, Some(800)),
        (0x4c, &[0xff, 0xff], "current_gfxclk", 0, None),
        (0x58, &[0x78, 0x05], "current_coreclk", 0, Some(1400)),
        (0x68, &[0x78, 0x05], "current_l3clk", 0, Some(1400)),
        (0x6a, &[0xff, 0xff], "current_l3clk", 1, None),
        (0x6c, &[0x00, 0x00, 0x00, 0x00], "throttle_status", 0, Some(0)),
        (0x70, &[0xff, 0xff], "fan_pwm", 0, None),
    ];
    check("phoenix", "card1", 120, (2, 1), &rows);
}

#[test]
fn a_card_whose_file_was_padded_to_a_page() {
    let rows: [Row; 18] = [
        (0x04, &[0x38, 0x00], "temperature_edge", 0, Some(56)),
        (0x06, &[0x3b, 0x00], "temperature_hotspot", 0, Some(59)),
        (0x08, &[0x36, 0x00], "temperature_mem", 0, Some(54)),
        (0x10, &[0x03, 0x00], "average_gfx_activity", 0, Some(3)),
        (0x16, &[0x24, 0x00], "average_socket_power", 0, Some(36)),
        (0x18, &[0x22, 0xf4, 0x0d, 0x01, 0, 0, 0, 0], "energy_accumulator", 0, Some(0x010d_f422)),
        (0x28, &[0x29, 0x00], "average_gfxclk_frequency", 0, Some(41)),
        (0x2a, &[0xff, 0xff], "average_socclk_frequency", 0, None),
        (0x36, &[0xf4, 0x01], "current_gfxclk", 0, Some(500)),
        (0x38, &[0x20, 0x03], "current_socclk", 0, Some(800)),
        (0x3a, &[0xe8, 0x03], "current_uclk", 0, Some(1000)),
        (0x48, &[0x00, 0x00], "current_fan_speed", 0, Some(0)),
        (0x4a, &[0x10, 0x00], "pcie_link_width", 0, Some(16)),
        (0x4c, &[0xa0, 0x00], "pcie_link_speed", 0, Some(160)),
        (0x50, &[0xff; 4], "gfx_activity_acc", 0, None),
        (0x60, &[0xff; 8], "firmware_timestamp", 0, None),
        (0x6a, &[0x07, 0x03], "voltage_gfx", 0, Some(775)),
        (0x70, &[0; 8], "indep_throttle_status", 0, Some(0)),
    ];
    check("rx6900xt", "card0", 4096, (1, 3), &rows);
}

#[test]
fn two_cards_of_format_1_3() {
    let rows: [Row; 12] = [
        (0x04, &[0x18, 0x00], "temperature_edge", 0, Some(24)),
        (0x06, &[0x1f, 0x00], "temperature_hotspot", 0, Some(31)),
        (0x08, &[0x30, 0x00], "temperature_mem", 0, Some(48)),
        (0x0e, &[0x22, 0x00], "temperature_vrmem", 0, Some(34)),
        (0x10, &[0x18, 0x00], "average_gfx_activity", 0, Some(24)),
        (0x16, &[0x20, 0x00], "average_socket_power", 0, Some(32)),
        (0x28, &[0xdb, 0x07], "average_gfxclk_frequency", 0, Some(2011)),
        (0x2c, &[0x8d, 0x03], "average_uclk_frequency", 0, Some(909)),
        (0x3a, &[0xc8, 0x01], "current_uclk", 0, Some(456)),
        (0x48, &[0x64, 0x03], "current_fan_speed", 0, Some(868)),
        (0x58, &[0xff, 0xff], "temperature_hbm", 0, None),
        (0x6c, &[0xc0, 0x02], "voltage_mem", 0, Some(704)),
    ];
    check("rx7800xt", "card1", 120, (1, 3), &rows);
    let rows: [Row; 12] = [
        (0x04, &[0x30, 0x00], "temperature_edge", 0, Some(48)),
        (0x06, &[0x34, 0x00], "temperature_hotspot", 0, Some(52)),
        (0x08, &[0x48, 0x00], "temperature_mem", 0, Some(72)),
        (0x0a, &[0x2e, 0x00], "temperature_vrgfx", 0, Some(46)),
        (0x16, &[0x31, 0x00], "average_socket_power", 0, Some(49)),
        (0x2c, &[0xbe, 0x08], "average_uclk_frequency", 0, Some(2238)),
        (0x36, &[0x84, 0x03], "current_gfxclk", 0, Some(900)),
        (0x38, &[0xb0, 0x04], "current_socclk", 0, Some(1200)),
        (0x48, &[0x98, 0x07], "current_fan_speed", 0, Some(1944)),
        (0x54, &[0xff; 4], "mem_activity_acc", 0, None),
        (0x68, &[0x4a, 0x03], "voltage_soc", 0, Some(842)),
        (0x6c, &[0x41, 0x05], "voltage_mem", 0, Some(1345)),
    ];
    check("rx9070", "card1", 120, (1, 3), &rows);
}
