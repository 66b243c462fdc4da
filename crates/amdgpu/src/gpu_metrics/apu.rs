//! APUs.

use super::structure::{Structure, plain};

pub(super) const V2_0: Structure = Structure(&[plain! {
    U64 system_clock_counter;
    U16 temperature_gfx, temperature_soc, temperature_core[8], temperature_l3[2], average_gfx_activity;
    U16 average_mm_activity, average_socket_power, average_cpu_power, average_soc_power;
    U16 average_gfx_power, average_core_power[8], average_gfxclk_frequency, average_socclk_frequency;
    U16 average_uclk_frequency, average_fclk_frequency, average_vclk_frequency, average_dclk_frequency;
    U16 current_gfxclk, current_socclk, current_uclk, current_fclk, current_vclk, current_dclk;
    U16 current_coreclk[8], current_l3clk[2];
    U32 throttle_status;
    U16 fan_pwm, padding;
}]);

pub(super) const V2_1: Structure = Structure(&[plain! {
    U16 temperature_gfx, temperature_soc, temperature_core[8], temperature_l3[2], average_gfx_activity;
    U16 average_mm_activity;
    U64 system_clock_counter;
    U16 average_socket_power, average_cpu_power, average_soc_power, average_gfx_power;
    U16 average_core_power[8], average_gfxclk_frequency, average_socclk_frequency;
    U16 average_uclk_frequency, average_fclk_frequency, average_vclk_frequency, average_dclk_frequency;
    U16 current_gfxclk, current_socclk, current_uclk, current_fclk, current_vclk, current_dclk;
    U16 current_coreclk[8], current_l3clk[2];
    U32 throttle_status;
    U16 fan_pwm, padding[3];
}]);

pub(super) const V2_2: Structure = Structure(&[plain! {
    U16 temperature_gfx, temperature_soc, temperature_core[8], temperature_l3[2], average_gfx_activity;
    U16 average_mm_activity;
    U64 system_clock_counter;
    U16 average_socket_power, average_cpu_power, average_soc_power, average_gfx_power;
    U16 average_core_power[8], average_gfxclk_frequency, average_socclk_frequency;
    U16 average_uclk_frequency, average_fclk_frequency, average_vclk_frequency, average_dclk_frequency;
    U16 current_gfxclk, current_socclk, current_uclk, current_fclk, current_vclk, current_dclk;
    U16 current_coreclk[8], current_l3clk[2];
    U32 throttle_status;
    U16 fan_pwm, padding[3];
    U64 indep_throttle_status;
}]);

pub(super) const V2_3: Structure = Structure(&[plain! {
    U16 temperature_gfx, temperature_soc, temperature_core[8], temperature_l3[2], average_gfx_activity;
    U16 average_mm_activity;
    U64 system_clock_counter;
    U16 average_socket_power, average_cpu_power, average_soc_power, average_gfx_power;
    U16 average_core_power[8], average_gfxclk_frequency, average_socclk_frequency;
    U16 average_uclk_frequency, average_fclk_frequency, average_vclk_frequency, average_dclk_frequency;
    U16 current_gfxclk, current_socclk, current_uclk, current_fclk, current_vclk, current_dclk;
    U16 current_coreclk[8], current_l3clk[2];
    U32 throttle_status;
    U16 fan_pwm, padding[3];
    U64 indep_throttle_status;
    U16 average_temperature_gfx, average_temperature_soc, average_temperature_core[8];
    U16 average_temperature_l3[2];
}]);

pub(super) const V2_4: Structure = Structure(&[plain! {
    U16 temperature_gfx, temperature_soc, temperature_core[8], temperature_l3[2], average_gfx_activity;
    U16 average_mm_activity;
    U64 system_clock_counter;
    U16 average_socket_power, average_cpu_power, average_soc_power, average_gfx_power;
    U16 average_core_power[8], average_gfxclk_frequency, average_socclk_frequency;
    U16 average_uclk_frequency, average_fclk_frequency, average_vclk_frequency, average_dclk_frequency;
    U16 current_gfxclk, current_socclk, current_uclk, current_fclk, current_vclk, current_dclk;
    U16 current_coreclk[8], current_l3clk[2];
    U32 throttle_status;
    U16 fan_pwm, padding[3];
    U64 indep_throttle_status;
    U16 average_temperature_gfx, average_temperature_soc, average_temperature_core[8];
    U16 average_temperature_l3[2], average_cpu_voltage, average_soc_voltage, average_gfx_voltage;
    U16 average_cpu_current, average_soc_current, average_gfx_current;
}]);

pub(super) const V3_0: Structure = Structure(&[plain! {
    U16 temperature_gfx, temperature_soc, temperature_core[16], temperature_skin, average_gfx_activity;
    U16 average_vcn_activity, average_ipu_activity[8], average_core_c0_activity[16], average_dram_reads;
    U16 average_dram_writes, average_ipu_reads, average_ipu_writes;
    U64 system_clock_counter;
    U32 average_socket_power;
    U16 average_ipu_power;
    U32 average_apu_power, average_gfx_power, average_dgpu_power, average_all_core_power;
    U16 average_core_power[16], average_sys_power, stapm_power_limit, current_stapm_power_limit;
    U16 average_gfxclk_frequency, average_socclk_frequency, average_vpeclk_frequency;
    U16 average_ipuclk_frequency, average_fclk_frequency, average_vclk_frequency, average_uclk_frequency;
    U16 average_mpipu_frequency, current_coreclk[16], current_core_maxfreq, current_gfx_maxfreq;
    U32 throttle_residency_prochot, throttle_residency_spl, throttle_residency_fppt;
    U32 throttle_residency_sppt, throttle_residency_thm_core, throttle_residency_thm_gfx;
    U32 throttle_residency_thm_soc, time_filter_alphavalue;
}]);
