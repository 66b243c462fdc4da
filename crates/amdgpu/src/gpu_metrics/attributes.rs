//! The self-describing versions: a count of attributes, and of each its encoding and its values, packed.
//!
//! The driver writes them with the macros at the end of drivers/gpu/drm/amd/pm/swsmu/smu_cmn.h. The header's
//! `struct gpu_metrics_v1_9` shows a pointer in place of the values; the file has none. Bits 9:0 of an encoding, which the
//! header calls the instance, are the count of values.

use super::integer::{Integer, Values};
use super::structure::HEADER_SIZE;

const NONE: u8 = 0;
const CLOCK_1: u8 = 1;
const TEMP_1: u8 = 2;
const POWER_1: u8 = 3;
const TIME_1: u8 = 4;
const TIME_2: u8 = 5;
const SPEED_1: u8 = 6;
const SPEED_2: u8 = 7;
const BW_1: u8 = 8;
const DATA_1: u8 = 9;
const PERCENT: u8 = 10;

/// Name and unit of each attribute by its id (`enum amdgpu_metrics_attr_id`, `enum amdgpu_metrics_attr_unit`), up to those
/// of boards, which are in other files.
///
/// The names are those of the structures' fields, and so are the units. `gfx_busy_inst` and what follows it count through
/// the engines of the whole card, as in a partition's file: they are not grouped by partition as in `xcp_stats`.
pub const ATTRIBUTES: &[(&str, u8)] = &[
    ("temperature_hotspot", TEMP_1),
    ("temperature_mem", TEMP_1),
    ("temperature_vrsoc", TEMP_1),
    ("curr_socket_power", POWER_1),
    ("average_gfx_activity", PERCENT),
    ("average_umc_activity", PERCENT),
    ("mem_max_bandwidth", BW_1),
    ("energy_accumulator", NONE),
    ("system_clock_counter", TIME_1),
    ("accumulation_counter", NONE),
    ("prochot_residency_acc", NONE),
    ("ppt_residency_acc", NONE),
    ("socket_thm_residency_acc", NONE),
    ("vr_thm_residency_acc", NONE),
    ("hbm_thm_residency_acc", NONE),
    ("gfxclk_lock_status", NONE),
    ("pcie_link_width", NONE),
    ("pcie_link_speed", SPEED_2),
    ("xgmi_link_width", NONE),
    ("xgmi_link_speed", SPEED_1),
    ("gfx_activity_acc", NONE),
    ("mem_activity_acc", NONE),
    ("pcie_bandwidth_acc", NONE),
    ("pcie_bandwidth_inst", BW_1),
    ("pcie_l0_to_recov_count_acc", NONE),
    ("pcie_replay_count_acc", NONE),
    ("pcie_replay_rover_count_acc", NONE),
    ("pcie_nak_sent_count_acc", NONE),
    ("pcie_nak_rcvd_count_acc", NONE),
    ("xgmi_read_data_acc", DATA_1),
    ("xgmi_write_data_acc", DATA_1),
    ("xgmi_link_status", NONE),
    ("firmware_timestamp", TIME_2),
    ("current_gfxclk", CLOCK_1),
    ("current_socclk", CLOCK_1),
    ("current_vclk0", CLOCK_1),
    ("current_dclk0", CLOCK_1),
    ("current_uclk", CLOCK_1),
    ("num_partition", NONE),
    ("pcie_lc_perf_other_end_recovery", NONE),
    ("gfx_busy_inst", PERCENT),
    ("jpeg_busy", PERCENT),
    ("vcn_busy", PERCENT),
    ("gfx_busy_acc", NONE),
    ("gfx_below_host_limit_ppt_acc", NONE),
    ("gfx_below_host_limit_thm_acc", NONE),
    ("gfx_low_utilization_acc", NONE),
    ("gfx_below_host_limit_total_acc", NONE),
    ("temperature_hbm", TEMP_1),
    ("temperature_mid", TEMP_1),
    ("temperature_aid", TEMP_1),
    ("temperature_xcd", TEMP_1),
];

/// One attribute's encoding, `AMDGPU_METRICS_ENC_ATTR` in the header.
#[derive(Clone, Copy)]
struct Encoding([u8; 8]);

impl Encoding {
    fn bits(self, shift: u32, mask: u64) -> usize {
        // The field has at most 10 bits.
        usize::try_from(u64::from_le_bytes(self.0) >> shift & mask).unwrap_or(usize::MAX)
    }

    fn count(self) -> usize {
        self.bits(0, 0x3ff)
    }

    fn integer(self) -> Option<Integer> {
        Integer::ALL.get(self.bits(20, 0xf)).copied()
    }

    /// The field's name where the id is known and the unit is the structures'. A counter may have any unit: the driver
    /// gives it none, and a later one may say what the header's comments do.
    fn name(self) -> Option<&'static str> {
        let (name, unit) = *ATTRIBUTES.get(self.bits(10, 0x3ff))?;
        (unit == NONE || usize::from(unit) == self.bits(24, 0xff)).then_some(name)
    }
}

/// The values that are there; `bytes` is the whole structure, header included. An attribute that is not known here is
/// left out: a later kernel has more of them.
pub(super) fn decode(bytes: &[u8]) -> Result<Vec<Values>, String> {
    let rest = bytes.get(HEADER_SIZE..).unwrap_or_default();
    let (count, mut rest) = rest.split_first_chunk().ok_or("the structure ends before attr_count")?;
    // An int in C.
    let count = i32::from_le_bytes(*count);
    if count < 0 {
        return Err(format!("attr_count is {count}"));
    }
    let mut fields: Vec<Values> = Vec::new();
    for nth in 1..=count {
        let cut = || format!("the structure ends within attribute {nth} of {count}");
        let (encoding, after) = rest.split_first_chunk().ok_or_else(cut)?;
        let encoding = Encoding(*encoding);
        let Some(integer) = encoding.integer() else {
            return Err(format!(
                "attribute {nth} of {count} has an unknown type, so nobody knows where it ends"
            ));
        };
        let (bytes, after) = after.split_at_checked(encoding.count() * integer.size()).ok_or_else(cut)?;
        rest = after;
        let Some(name) = encoding.name() else { continue };
        if fields.iter().any(|(known, _)| *known == name) {
            return Err(format!("{name} is there twice"));
        }
        let values = bytes.chunks_exact(integer.size()).map(|bytes| integer.read(bytes));
        fields.push((name, (0..).zip(values).filter_map(|(place, value)| Some((place, value?))).collect()));
    }
    fields.retain(|(_, values)| !values.is_empty());
    Ok(fields)
}
