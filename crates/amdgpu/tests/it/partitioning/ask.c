static int present(struct amdgpu_device *adev)
{
	return adev->gmc.num_mem_partitions;
}

int main(void)
{
	static const char *const modes[] = { "SPX", "DPX", "TPX", "QPX", "CPX" };
	static const int domains[] = { 1, 2, 3, 4, 6, 8 };
	static const struct { const char *name; uint32_t gc; } generations[] = {
		{ "Mi300", IP_VERSION(9, 4, 3) }, { "Mi350", IP_VERSION(9, 5, 0) }, { "Mi400", IP_VERSION(12, 1, 0) },
	};
	struct gmc_funcs funcs = { present };

	for (int of = 0; of < 3; of++)
		for (int xccs = 1; xccs <= 8; xccs++)
			for (int at = 0; at < 6; at++)
				for (int apu = 0; apu < 2; apu++) {
					struct amdgpu_device adev = { .gc = generations[of].gc, .flags = apu };
					struct amdgpu_xcp_mgr mgr = { .adev = &adev };
					struct amdgpu_xcp_cfg cfg;
					int is_mi400 = of == 2, automatic;

					adev.gfx.xcc_mask = BIT(xccs) - 1;
					adev.gmc.num_mem_partitions = domains[at];
					adev.gmc.supported_nps_modes = ~0u;
					adev.gmc.gmc_funcs = &funcs;
					amdgpu_xcp_update_supported_modes(&mgr);
					automatic = is_mi400 ? __soc_v1_0_get_auto_mode(&mgr) : __aqua_vanjaram_get_auto_mode(&mgr);
					printf("%s %d NPS%d %d %s", generations[of].name, xccs, domains[at], apu,
					       automatic < 0 ? "-" : modes[automatic]);
					for (int mode = 0; mode < 5; mode++) {
						int valid = is_mi400 ? __soc_v1_0_is_valid_mode(&mgr, mode)
								     : __aqua_vanjaram_is_valid_mode(&mgr, mode);
						int listed = is_mi400 ? !soc_v1_0_get_xcp_res_info(&mgr, mode, &cfg)
								      : !aqua_vanjaram_get_xcp_res_info(&mgr, mode, &cfg);
						if (valid && listed && cfg.compatible_nps_modes & BIT(domains[at]))
							printf(" %s", modes[mode]);
					}
					printf("\n");
				}
}
