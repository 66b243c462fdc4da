//! Captured logs line by line, and lines of a CPU's machine checks.

use std::fmt::Write as _;
use std::path::Path;

use kernel_log::knowledge::Knowledge;
use support::captures;

/// Number, class, id and device of each line of a log; `-` for none.
fn judged(log: &str) -> String {
    let knowledge = Knowledge::built_in().unwrap();
    let mut lines = String::new();
    for (number, line) in (1..).zip(log.lines()) {
        match knowledge.find(line.as_bytes()) {
            Some(found) => {
                let device = found.device.map_or_else(|| "-".to_owned(), |device| device.to_string());
                let message = found.message;
                writeln!(lines, "{number} {:?} {} {device}", message.class, message.id).unwrap();
            }
            None => writeln!(lines, "{number} -").unwrap(),
        }
    }
    lines
}

#[test]
fn the_captured_logs_have_these_messages_and_no_others() {
    let archive = captures::unpack("kernel-log-samples");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens");
    for name in ["dmesg_sample", "dmesg_sample_with_collapsing", "dmesg_sample_ignore_match_rules"] {
        let log = captures::text(&archive, &format!("{name}.log"));
        let golden = std::fs::read_to_string(folder.join(format!("{name}.txt"))).unwrap();
        assert_eq!(judged(&log), golden, "{name}");
    }
}

/// Lines of mce.c, amd_mce and EDAC, as machines logged them; rasdaemon's and mcelog's packages hold no log.
#[test]
fn machine_checks_of_a_cpu_are_no_message_of_a_gpu() {
    for line in [
        "mce: [Hardware Error]: Machine check events logged",
        "[Hardware Error]: System Fatal error.",
        "[Hardware Error]: CPU:21 (19:21:0) MC5_STATUS[-|UE|MiscV|AddrV|PCC|TCC|SyndV|-|-|-]: 0xbea0000000000108",
        "[Hardware Error]: Error Addr: 0x01ffffffc080cb3a",
        "[Hardware Error]: IPID: 0x000500b000000000, Syndrome: 0x000000004d000000",
        "[Hardware Error]: Execution Unit Ext. Error Code: 0",
        "[Hardware Error]: cache level: RESV, tx: GEN, mem-tx: GEN",
        "[Hardware Error]: Machine Check: CPU0 MC1_STATUS[0x0|CE|Misc]: 0x1",
        "x86/amd: Previous system reset reason [0x08000800]: an uncorrected error caused a data fabric sync flood event",
        "mce: CPU2: Core temperature above threshold, cpu clock throttled (total events = 1)",
        "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x12d3 offset:0x0)",
        "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 1",
        "{1}[Hardware Error]:   section_type: general processor error",
        "{1}[Hardware Error]:   section_type: memory error",
        "RAS: Correctable Errors collector initialized.",
        "2 2024-12-20 09:33:01 +0000 error: Corrected error, no action required., CPU 2, bank Unified Memory Controller \
         (bank=17), mcg mcgstatus=0, mci CECC, memory_channel=0,csrow=1",
    ] {
        let found =
            Knowledge::built_in().unwrap().find(line.as_bytes()).map(|found| found.message.id.clone());
        assert_eq!(found, None, "{line}");
    }
}
