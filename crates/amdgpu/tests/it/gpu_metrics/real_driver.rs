//! Self-describing files as the driver's own macros write them (smu_cmn.h and the headers of two generations).

use amdgpu::gpu_metrics::File;
use support::real;

use super::{all_values, decode};
use crate::compiled::{HEADERS, NEWEST, printed};

/// Each value is a number that is not all-ones; the last place of each array is left as the driver fills it.
/// Prints the class, a line for each value that was set, and the structure in hexadecimal.
const PROGRAM: &str = r##"
typedef int MetricsMember_t;
struct cmn2asic_mapping { int unused; };
struct cmn2asic_msg_mapping { int unused; };
enum smu_message_type { UNUSED };
#define __packed __attribute__((packed))
#define SWSMU_CODE_LAYER_L2
#include "kgd_pp_interface.h"
#include "smu13/smu_v13_0_6_ppt.h"
#define PPTable_t PPTable_t_of_15
#include "smu15/smu_v15_0_8_ppt.h"

#define NEXT (n = n % 250 + 1)
#define SCALAR(ID, UNIT, TYPE, NAME) m.NAME = NEXT; printf("%s 0 %llu\n", #ID, (unsigned long long)m.NAME)
#define ARRAY(ID, UNIT, TYPE, NAME, SIZE) \
    for (int i = 0; i + 1 < SIZE; i++) { \
        m.NAME[i] = NEXT; \
        printf("%s %d %llu\n", #ID, i, (unsigned long long)m.NAME[i]); \
    }
#define WRITE(CLASS, FIELDS, REVISION) { \
    struct CLASS m; \
    unsigned n = 0; \
    CLASS##_init(&m, 1, REVISION); \
    printf("%s\n", #CLASS); \
    FIELDS(SCALAR, ARRAY); \
    for (size_t i = 0; i < sizeof m; i++) \
        printf("%02x", ((unsigned char *)&m)[i]); \
    printf("\n"); \
}
int main(void) {
    WRITE(smu_v13_0_6_gpu_metrics, SMU_13_0_6_METRICS_FIELDS, 9)
    WRITE(smu_v13_0_6_partition_metrics, SMU_13_0_6_PARTITION_METRICS_FIELDS, 1)
    WRITE(smu_v15_0_8_gpu_metrics, SMU_15_0_8_METRICS_FIELDS, 9)
    WRITE(smu_v15_0_8_partition_metrics, SMU_15_0_8_PARTITION_METRICS_FIELDS, 1)
}
"##;

#[test]
fn real_driver_macros_write_what_is_read() {
    let Some([headers]) = real::require_made([HEADERS], &["gcc"]) else { return };
    let printed = printed(PROGRAM, &headers.join(NEWEST));
    let mut lines = printed.lines();
    let mut classes = 0;
    while let Some(class) = lines.next() {
        let file = if class.contains("partition") { File::Partition } else { File::Gpu };
        let mut set = Vec::new();
        let bytes = loop {
            let line = lines.next().unwrap();
            // SMU_MATTR(TEMPERATURE_HOTSPOT) 0 1
            let Some(line) = line.strip_prefix("SMU_MATTR(") else { break line };
            let (name, numbers) = line.split_once(") ").unwrap();
            let (place, value) = numbers.split_once(' ').unwrap();
            set.push((name.to_lowercase(), place.parse().unwrap(), value.parse().unwrap()));
        };
        let digits = |at: usize| u8::from_str_radix(&bytes[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..bytes.len()).step_by(2).map(digits).collect();
        let read = all_values(&decode(file, &bytes).unwrap());
        let read: Vec<(String, u32, u64)> =
            read.into_iter().map(|(name, place, value)| (name.to_owned(), place, value)).collect();
        assert!(set.len() > 90, "{class}");
        assert_eq!(read, set, "{class}");
        classes += 1;
    }
    assert_eq!(classes, 4);
}
