/* What the functions of aqua_vanjaram.c, soc_v1_0.c and amdgpu_xcp.c ask of amdgpu's structures. */
#define BIT(n) (1u << (n))
#define EINVAL 22
#define GC_HWIP 0
#define AMD_IS_APU 1
#define IP_VERSION(major, minor, revision) ((major) << 16 | (minor) << 8 | (revision))
#define NUM_XCC(mask) __builtin_popcount(mask)
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define amdgpu_ip_version(adev, block, instance) ((adev)->gc)
#define amdgpu_sriov_vf(adev) false

enum amdgpu_gfx_partition {
	AMDGPU_SPX_PARTITION_MODE, AMDGPU_DPX_PARTITION_MODE, AMDGPU_TPX_PARTITION_MODE,
	AMDGPU_QPX_PARTITION_MODE, AMDGPU_CPX_PARTITION_MODE, AMDGPU_UNKNOWN_COMPUTE_PARTITION_MODE = -1,
};
enum {
	AMDGPU_NPS1_PARTITION_MODE = 1, AMDGPU_NPS2_PARTITION_MODE = 2, AMDGPU_NPS3_PARTITION_MODE = 3,
	AMDGPU_NPS4_PARTITION_MODE = 4, AMDGPU_NPS6_PARTITION_MODE = 6, AMDGPU_NPS8_PARTITION_MODE = 8,
};
enum { AMDGPU_XCP_RES_XCC, AMDGPU_XCP_RES_DMA, AMDGPU_XCP_RES_DEC, AMDGPU_XCP_RES_JPEG, AMDGPU_XCP_RES_MAX };

struct amdgpu_device;
struct gmc_funcs { int (*query_mem_partition_mode)(struct amdgpu_device *adev); };
struct amdgpu_device {
	uint32_t gc;
	unsigned int flags;
	struct { unsigned int xcc_mask; } gfx;
	struct { int num_mem_partitions; unsigned int supported_nps_modes; struct gmc_funcs *gmc_funcs; } gmc;
	struct { int num_instances; } sdma;
	struct { int num_vcn_inst; } vcn;
	struct { int num_jpeg_inst, num_jpeg_rings; } jpeg;
};
struct amdgpu_xcp_mgr { struct amdgpu_device *adev; unsigned int supp_xcp_modes; };
struct amdgpu_xcp_cfg {
	u16 compatible_nps_modes;
	int num_res;
	struct { int id, num_inst, num_shared; } xcp_res[AMDGPU_XCP_RES_MAX];
};
