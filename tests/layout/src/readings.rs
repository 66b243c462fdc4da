//! The readings of a synthetic Instinct: **every number here is invented**, and differs from every other, so
//! that a test notices values that change places. The files are those that amdgpu_pm.c, amdgpu_ras.c and
//! amdgpu_xcp.c of Linux 7.3 make.

use crate::{Entry, Machine, gpu_metrics, partition_metrics};

const GIB: u64 = 1 << 30;

/// A card of a server as it is in sysfs.
pub(crate) struct Card {
    /// The card's number, from 0.
    pub(crate) number: u8,
    pub(crate) address: String,
    pub(crate) first_render: u32,
    pub(crate) partitions: u8,
    pub(crate) trouble: Option<Trouble>,
}

/// The trouble of a card.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The firmware has limited the card's clocks, RAS has found errors and bad pages, and the kernel holds
    /// the dump of a hang.
    Broken,
    /// The card's `gpu_metrics` has version 1.3, as an MI200's, in which power and temperature limit the
    /// clocks now.
    Throttled,
}

/// A field's values.
type Values = Vec<(&'static str, u32, u64)>;

impl Card {
    /// Puts the card's files, and those of its further partitions.
    pub(crate) fn put(&self, machine: Machine) -> Machine {
        let folder = format!("/sys/bus/pci/devices/{}", self.address);
        let mut machine = self.files().into_iter().fold(machine, |machine, (name, text)| {
            machine.put(&format!("{folder}/{name}"), format!("{text}\n"))
        });
        machine = machine
            .put(&format!("{folder}/gpu_metrics"), self.metrics())
            .put(&format!("{folder}/ras/gpu_vram_bad_pages"), self.bad_pages());
        for id in 1..self.partitions {
            let render = self.first_render + u32::from(id);
            let file = format!("/sys/class/drm/renderD{render}/device/xcp/xcp_metrics");
            machine = machine.put(&file, self.partition_metrics(id));
        }
        if self.trouble == Some(Trouble::Broken) {
            let dump = "/sys/devices/virtual/devcoredump/devcd1";
            machine = machine
                .put(&format!("{dump}/data"), "an invented dump\n")
                .put(
                    &format!("{dump}/failing_device"),
                    Entry::Link(format!("../../../../bus/pci/devices/{}", self.address)),
                )
                .put("/sys/class/devcoredump/disabled", "0\n")
                .put(
                    "/sys/class/devcoredump/devcd1",
                    Entry::Link("../../devices/virtual/devcoredump/devcd1".to_owned()),
                );
        }
        machine
    }

    fn n(&self) -> u64 {
        u64::from(self.number)
    }

    fn files(&self) -> Vec<(String, String)> {
        let n = self.n();
        let hwmon = |name: &str| format!("hwmon/hwmon{}/{name}", n + 2);
        let mut files: Vec<(String, String)> = [
            ("name", "amdgpu".to_owned()),
            ("temp2_label", "junction".to_owned()),
            ("temp2_input", (51_000 + 1_000 * n).to_string()),
            ("temp2_crit", "100000".to_owned()),
            ("temp2_emergency", "110000".to_owned()),
            ("temp3_label", "mem".to_owned()),
            ("temp3_input", (41_000 + 1_000 * n).to_string()),
            ("temp3_crit", "105000".to_owned()),
            ("temp3_emergency", "115000".to_owned()),
            ("power1_label", "PPT".to_owned()),
            ("power1_input", (431_000_000 + 1_000_000 * n).to_string()),
            ("power1_cap", "740000000".to_owned()),
            ("power1_cap_default", "750000000".to_owned()),
            ("power1_cap_min", "5000000".to_owned()),
            ("power1_cap_max", "760000000".to_owned()),
            ("freq1_label", "sclk".to_owned()),
            ("freq1_input", (1_701_000_000 + 1_000_000 * n).to_string()),
            ("freq2_label", "mclk".to_owned()),
            ("freq2_input", (1_301_000_000 + 1_000_000 * n).to_string()),
        ]
        .into_iter()
        .map(|(name, text)| (hwmon(name), text))
        .collect();
        let mut put = |name: &str, text: String| files.push((name.to_owned(), text));
        put("gpu_busy_percent", (61 + n).to_string());
        put("mem_busy_percent", (31 + n).to_string());
        put("mem_info_vram_used", ((17 + n) * GIB + 4096).to_string());
        put("mem_info_vis_vram_total", (191 * GIB + n * 4096).to_string());
        put("mem_info_vis_vram_used", ((16 + n) * GIB + 8192).to_string());
        put("mem_info_gtt_total", (256 * GIB + n * 4096).to_string());
        put("mem_info_gtt_used", ((2 + n) * GIB + 12_288).to_string());
        put("current_link_speed", "16.0 GT/s PCIe".to_owned());
        put("max_link_speed", "32.0 GT/s PCIe".to_owned());
        put("current_link_width", "8".to_owned());
        put("max_link_width", "16".to_owned());
        put("pcie_replay_count", (7 + n).to_string());
        put("pp_dpm_sclk", "0: 132Mhz\n1: 1701Mhz *\n2: 2100Mhz".to_owned());
        put("pp_dpm_mclk", "0: 900Mhz\n1: 1301Mhz *".to_owned());
        put("pp_dpm_fclk", format!("0: 1200Mhz\n1: {}Mhz *", 1_801 + n));
        put("pp_dpm_socclk", "0: 800Mhz *".to_owned());
        put("vbios_version", format!("113-SYNTHETIC-{:03}", 101 + n));
        put("fw_version/smc_fw_version", format!("0x{:08x}", 0x0055_7300 + n));
        put("fw_version/mec_fw_version", format!("0x{:08x}", 0x0000_00b0 + n));
        put("fw_version/sdma_fw_version", format!("0x{:08x}", 0x0000_0010 + n));
        put("ras/features", "feature mask: 0x5f".to_owned());
        let blocks: [(&str, u64); 6] =
            [("gfx", 2), ("mmhub", 3), ("pcie_bif", 4), ("sdma", 5), ("umc", 6), ("xgmi_wafl", 7)];
        for (block, correctable) in blocks {
            let is_broken = self.trouble == Some(Trouble::Broken);
            let uncorrectable = if is_broken { correctable + 10 } else { 0 };
            let mut text = format!("ue: {uncorrectable}\nce: {}", correctable + 10 * n);
            if block == "umc" {
                let deferred = if is_broken { 41 } else { 0 };
                text.push_str(&format!("\nde: {deferred}"));
            }
            put(&format!("ras/{block}_err_count"), text);
        }
        files
    }

    /// Three retired, two pending, one that could not be reserved.
    fn bad_pages(&self) -> String {
        let states = if self.trouble == Some(Trouble::Broken) { "RRRPPF" } else { "" };
        let line = |(page, state)| format!("0x{:08x} : 0x00001000 : {state}\n", 0x0012_3400 + page);
        (0_u64..).zip(states.chars()).map(line).collect()
    }

    fn metrics(&self) -> Vec<u8> {
        if self.trouble == Some(Trouble::Throttled) {
            return self.metrics_of_mi200();
        }
        let n = self.n();
        let is_broken = self.trouble == Some(Trouble::Broken);
        let limited = |samples: u64| if is_broken { samples } else { 0 };
        let mut values: Values = vec![
            ("temperature_hotspot", 0, 52 + n),
            ("temperature_mem", 0, 42 + n),
            ("temperature_vrsoc", 0, 33 + n),
            ("curr_socket_power", 0, 432 + n),
            ("average_gfx_activity", 0, 62 + n),
            ("average_umc_activity", 0, 32 + n),
            // 2,000,000 J and more.
            ("energy_accumulator", 0, (2_000_000 + n) * 65_536),
            ("accumulation_counter", 0, 1_000_001 + n),
            ("prochot_residency_acc", 0, limited(11)),
            ("ppt_residency_acc", 0, limited(22) + 1_001 + n),
            ("socket_thm_residency_acc", 0, limited(33)),
            ("vr_thm_residency_acc", 0, limited(44)),
            ("hbm_thm_residency_acc", 0, limited(55)),
            ("pcie_link_width", 0, 16),
            ("pcie_link_speed", 0, 320),
            ("xgmi_link_width", 0, 16),
            ("xgmi_link_speed", 0, 32),
            ("pcie_bandwidth_inst", 0, 21 + n),
            ("pcie_l0_to_recov_count_acc", 0, 201 + n),
            ("pcie_replay_count_acc", 0, 107 + n),
            ("pcie_replay_rover_count_acc", 0, 301 + n),
            ("pcie_nak_sent_count_acc", 0, 401 + n),
            ("pcie_nak_rcvd_count_acc", 0, 501 + n),
            ("current_uclk", 0, 1_302 + n),
            ("num_partition", 0, u64::from(self.partitions)),
        ];
        for link in 0..7 {
            values.push(("xgmi_read_data_acc", link, 10_000 + 100 * n + u64::from(link)));
            values.push(("xgmi_write_data_acc", link, 20_000 + 100 * n + u64::from(link)));
            values.push(("xgmi_link_status", link, u64::from(!is_broken || link != 6)));
        }
        for id in 0..self.partitions {
            for (name, place, value) in self.engines(id) {
                let (name, count) = match name {
                    "gfx_busy_inst" => ("xcp_stats.gfx_busy_inst", 8),
                    "vcn_busy" => ("xcp_stats.vcn_busy", 4),
                    _ => ("xcp_stats.jpeg_busy", 40),
                };
                values.push((name, u32::from(id) * count + place, value));
            }
        }
        for xcc in 0..8 {
            values.push(("current_gfxclk", xcc, self.gfx_clock(xcc)));
        }
        for aid in 0..4 {
            values.push(("current_socclk", aid, 1_101 + 10 * n + u64::from(aid)));
            values.push(("current_vclk0", aid, 901 + 10 * n + u64::from(aid)));
            values.push(("current_dclk0", aid, 701 + 10 * n + u64::from(aid)));
        }
        gpu_metrics((1, 8), &values)
    }

    fn metrics_of_mi200(&self) -> Vec<u8> {
        let n = self.n();
        let values = [
            ("temperature_hotspot", 0, 53 + n),
            ("temperature_hbm", 0, 43 + n),
            ("temperature_hbm", 1, 44 + n),
            ("average_gfx_activity", 0, 63 + n),
            ("current_gfxclk", 0, 1_703 + n),
            ("current_socclk", 0, 1_103 + n),
            ("voltage_soc", 0, 803 + n),
            // SMU_THROTTLER_PPT0_BIT and SMU_THROTTLER_TEMP_MEM_BIT (amdgpu_smu.h).
            ("indep_throttle_status", 0, 1 | 1 << 34),
        ];
        gpu_metrics((1, 3), &values)
    }

    /// The metrics of a further partition, whose engines have the values of the card's file.
    fn partition_metrics(&self, id: u8) -> Vec<u8> {
        let mut values = self.engines(id);
        for xcc in 0..self.xccs() {
            values.push(("current_gfxclk", xcc, self.gfx_clock(u32::from(id) * self.xccs() + xcc)));
        }
        values.push(("current_uclk", 0, 1_302 + self.n()));
        partition_metrics((1, 0), &values)
    }

    /// XCCs of a partition.
    fn xccs(&self) -> u32 {
        8 / u32::from(self.partitions.clamp(1, 8))
    }

    fn gfx_clock(&self, xcc: u32) -> u64 {
        1_501 + 10 * self.n() + u64::from(xcc)
    }

    /// The load of a partition's engines in per cent: each of its XCCs, one VCN, two JPEG engines.
    fn engines(&self, id: u8) -> Values {
        let (n, id) = (self.n(), u64::from(id));
        let mut values: Values = (0..self.xccs())
            .map(|xcc| ("gfx_busy_inst", xcc, 10 + n + id * u64::from(self.xccs()) + u64::from(xcc)))
            .collect();
        values.push(("vcn_busy", 0, 71 + id));
        values.push(("jpeg_busy", 0, 81 + id));
        values.push(("jpeg_busy", 1, 91 + id));
        values
    }
}
