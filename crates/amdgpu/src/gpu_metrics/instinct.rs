//! MI300 and later, and their partitions.

use super::structure::{Structure, array, plain};

pub(super) const V1_4: Structure = Structure(&[plain! {
    U16 temperature_hotspot, temperature_mem, temperature_vrsoc, curr_socket_power, average_gfx_activity;
    U16 average_umc_activity, vcn_activity[4];
    U64 energy_accumulator, system_clock_counter;
    U32 throttle_status, gfxclk_lock_status;
    U16 pcie_link_width, pcie_link_speed, xgmi_link_width, xgmi_link_speed;
    U32 gfx_activity_acc, mem_activity_acc;
    U64 pcie_bandwidth_acc, pcie_bandwidth_inst, pcie_l0_to_recov_count_acc, pcie_replay_count_acc;
    U64 pcie_replay_rover_count_acc, xgmi_read_data_acc[8], xgmi_write_data_acc[8], firmware_timestamp;
    U16 current_gfxclk[8], current_socclk[4], current_vclk0[4], current_dclk0[4], current_uclk, padding;
}]);

pub(super) const V1_5: Structure = Structure(&[plain! {
    U16 temperature_hotspot, temperature_mem, temperature_vrsoc, curr_socket_power, average_gfx_activity;
    U16 average_umc_activity, vcn_activity[4], jpeg_activity[32];
    U64 energy_accumulator, system_clock_counter;
    U32 throttle_status, gfxclk_lock_status;
    U16 pcie_link_width, pcie_link_speed, xgmi_link_width, xgmi_link_speed;
    U32 gfx_activity_acc, mem_activity_acc;
    U64 pcie_bandwidth_acc, pcie_bandwidth_inst, pcie_l0_to_recov_count_acc, pcie_replay_count_acc;
    U64 pcie_replay_rover_count_acc;
    U32 pcie_nak_sent_count_acc, pcie_nak_rcvd_count_acc;
    U64 xgmi_read_data_acc[8], xgmi_write_data_acc[8], firmware_timestamp;
    U16 current_gfxclk[8], current_socclk[4], current_vclk0[4], current_dclk0[4], current_uclk, padding;
}]);

pub(super) const V1_6: Structure = Structure(&[
    plain! {
        U16 temperature_hotspot, temperature_mem, temperature_vrsoc, curr_socket_power, average_gfx_activity;
        U16 average_umc_activity;
        U64 energy_accumulator, system_clock_counter;
        U32 accumulation_counter, prochot_residency_acc, ppt_residency_acc, socket_thm_residency_acc;
        U32 vr_thm_residency_acc, hbm_thm_residency_acc, gfxclk_lock_status;
        U16 pcie_link_width, pcie_link_speed, xgmi_link_width, xgmi_link_speed;
        U32 gfx_activity_acc, mem_activity_acc;
        U64 pcie_bandwidth_acc, pcie_bandwidth_inst, pcie_l0_to_recov_count_acc, pcie_replay_count_acc;
        U64 pcie_replay_rover_count_acc;
        U32 pcie_nak_sent_count_acc, pcie_nak_rcvd_count_acc;
        U64 xgmi_read_data_acc[8], xgmi_write_data_acc[8], firmware_timestamp;
        U16 current_gfxclk[8], current_socclk[4], current_vclk0[4], current_dclk0[4], current_uclk;
        U16 num_partition;
    },
    array! { xcp_stats[8] {
        U32 gfx_busy_inst[8];
        U16 jpeg_busy[32], vcn_busy[4];
        U64 gfx_busy_acc[8];
    } },
    plain! {
        U32 pcie_lc_perf_other_end_recovery;
    },
]);

pub(super) const V1_7: Structure = Structure(&[
    plain! {
        U16 temperature_hotspot, temperature_mem, temperature_vrsoc, curr_socket_power, average_gfx_activity;
        U16 average_umc_activity;
        U64 mem_max_bandwidth, energy_accumulator, system_clock_counter;
        U32 accumulation_counter, prochot_residency_acc, ppt_residency_acc, socket_thm_residency_acc;
        U32 vr_thm_residency_acc, hbm_thm_residency_acc, gfxclk_lock_status;
        U16 pcie_link_width, pcie_link_speed, xgmi_link_width, xgmi_link_speed;
        U32 gfx_activity_acc, mem_activity_acc;
        U64 pcie_bandwidth_acc, pcie_bandwidth_inst, pcie_l0_to_recov_count_acc, pcie_replay_count_acc;
        U64 pcie_replay_rover_count_acc;
        U32 pcie_nak_sent_count_acc, pcie_nak_rcvd_count_acc;
        U64 xgmi_read_data_acc[8], xgmi_write_data_acc[8];
        U16 xgmi_link_status[8], padding;
        U64 firmware_timestamp;
        U16 current_gfxclk[8], current_socclk[4], current_vclk0[4], current_dclk0[4], current_uclk;
        U16 num_partition;
    },
    array! { xcp_stats[8] {
        U32 gfx_busy_inst[8];
        U16 jpeg_busy[32], vcn_busy[4];
        U64 gfx_busy_acc[8], gfx_below_host_limit_acc[8];
    } },
    plain! {
        U32 pcie_lc_perf_other_end_recovery;
    },
]);

pub(super) const V1_8: Structure = Structure(&[
    plain! {
        U16 temperature_hotspot, temperature_mem, temperature_vrsoc, curr_socket_power, average_gfx_activity;
        U16 average_umc_activity;
        U64 mem_max_bandwidth, energy_accumulator, system_clock_counter;
        U32 accumulation_counter, prochot_residency_acc, ppt_residency_acc, socket_thm_residency_acc;
        U32 vr_thm_residency_acc, hbm_thm_residency_acc, gfxclk_lock_status;
        U16 pcie_link_width, pcie_link_speed, xgmi_link_width, xgmi_link_speed;
        U32 gfx_activity_acc, mem_activity_acc;
        U64 pcie_bandwidth_acc, pcie_bandwidth_inst, pcie_l0_to_recov_count_acc, pcie_replay_count_acc;
        U64 pcie_replay_rover_count_acc;
        U32 pcie_nak_sent_count_acc, pcie_nak_rcvd_count_acc;
        U64 xgmi_read_data_acc[8], xgmi_write_data_acc[8];
        U16 xgmi_link_status[8], padding;
        U64 firmware_timestamp;
        U16 current_gfxclk[8], current_socclk[4], current_vclk0[4], current_dclk0[4], current_uclk;
        U16 num_partition;
    },
    array! { xcp_stats[8] {
        U32 gfx_busy_inst[8];
        U16 jpeg_busy[40], vcn_busy[4];
        U64 gfx_busy_acc[8], gfx_below_host_limit_ppt_acc[8], gfx_below_host_limit_thm_acc[8];
        U64 gfx_low_utilization_acc[8], gfx_below_host_limit_total_acc[8];
    } },
    plain! {
        U32 pcie_lc_perf_other_end_recovery;
    },
]);

pub(super) const PARTITION_V1_0: Structure = Structure(&[plain! {
    U16 current_gfxclk[8], current_socclk[4], current_vclk0[4], current_dclk0[4], current_uclk, padding;
    U32 gfx_busy_inst[8];
    U16 jpeg_busy[40], vcn_busy[4];
    U64 gfx_busy_acc[8], gfx_below_host_limit_ppt_acc[8], gfx_below_host_limit_thm_acc[8];
    U64 gfx_low_utilization_acc[8], gfx_below_host_limit_total_acc[8];
}]);
