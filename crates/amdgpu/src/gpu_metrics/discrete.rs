//! Radeon cards, and Instinct ones before the MI300.

use super::structure::{Structure, plain};

pub(super) const V1_0: Structure = Structure(&[plain! {
    U64 system_clock_counter;
    U16 temperature_edge, temperature_hotspot, temperature_mem, temperature_vrgfx, temperature_vrsoc;
    U16 temperature_vrmem, average_gfx_activity, average_umc_activity, average_mm_activity;
    U16 average_socket_power;
    U32 energy_accumulator;
    U16 average_gfxclk_frequency, average_socclk_frequency, average_uclk_frequency;
    U16 average_vclk0_frequency, average_dclk0_frequency, average_vclk1_frequency;
    U16 average_dclk1_frequency, current_gfxclk, current_socclk, current_uclk, current_vclk0;
    U16 current_dclk0, current_vclk1, current_dclk1;
    U32 throttle_status;
    U16 current_fan_speed;
    U8 pcie_link_width, pcie_link_speed;
}]);

pub(super) const V1_1: Structure = Structure(&[plain! {
    U16 temperature_edge, temperature_hotspot, temperature_mem, temperature_vrgfx, temperature_vrsoc;
    U16 temperature_vrmem, average_gfx_activity, average_umc_activity, average_mm_activity;
    U16 average_socket_power;
    U64 energy_accumulator, system_clock_counter;
    U16 average_gfxclk_frequency, average_socclk_frequency, average_uclk_frequency;
    U16 average_vclk0_frequency, average_dclk0_frequency, average_vclk1_frequency;
    U16 average_dclk1_frequency, current_gfxclk, current_socclk, current_uclk, current_vclk0;
    U16 current_dclk0, current_vclk1, current_dclk1;
    U32 throttle_status;
    U16 current_fan_speed, pcie_link_width, pcie_link_speed, padding;
    U32 gfx_activity_acc, mem_activity_acc;
    U16 temperature_hbm[4];
}]);

pub(super) const V1_2: Structure = Structure(&[plain! {
    U16 temperature_edge, temperature_hotspot, temperature_mem, temperature_vrgfx, temperature_vrsoc;
    U16 temperature_vrmem, average_gfx_activity, average_umc_activity, average_mm_activity;
    U16 average_socket_power;
    U64 energy_accumulator, system_clock_counter;
    U16 average_gfxclk_frequency, average_socclk_frequency, average_uclk_frequency;
    U16 average_vclk0_frequency, average_dclk0_frequency, average_vclk1_frequency;
    U16 average_dclk1_frequency, current_gfxclk, current_socclk, current_uclk, current_vclk0;
    U16 current_dclk0, current_vclk1, current_dclk1;
    U32 throttle_status;
    U16 current_fan_speed, pcie_link_width, pcie_link_speed, padding;
    U32 gfx_activity_acc, mem_activity_acc;
    U16 temperature_hbm[4];
    U64 firmware_timestamp;
}]);

pub(super) const V1_3: Structure = Structure(&[plain! {
    U16 temperature_edge, temperature_hotspot, temperature_mem, temperature_vrgfx, temperature_vrsoc;
    U16 temperature_vrmem, average_gfx_activity, average_umc_activity, average_mm_activity;
    U16 average_socket_power;
    U64 energy_accumulator, system_clock_counter;
    U16 average_gfxclk_frequency, average_socclk_frequency, average_uclk_frequency;
    U16 average_vclk0_frequency, average_dclk0_frequency, average_vclk1_frequency;
    U16 average_dclk1_frequency, current_gfxclk, current_socclk, current_uclk, current_vclk0;
    U16 current_dclk0, current_vclk1, current_dclk1;
    U32 throttle_status;
    U16 current_fan_speed, pcie_link_width, pcie_link_speed, padding;
    U32 gfx_activity_acc, mem_activity_acc;
    U16 temperature_hbm[4];
    U64 firmware_timestamp;
    U16 voltage_soc, voltage_gfx, voltage_mem, padding1;
    U64 indep_throttle_status;
}]);
