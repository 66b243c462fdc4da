//! The kernel's records with names that a user chooses: none of them is a message, whatever the name.

use kernel_log::knowledge::Knowledge;
use kernel_log::origin::Origin;

/// TASK_COMM_LEN - 1 of include/linux/sched.h.
const COMM: usize = 15;

/// NF_LOG_PREFIXLEN - 1 of include/uapi/linux/netfilter/nf_log.h.
const PREFIX: usize = 127;

/// The kernel's source file, and what it prints. `NAME`: as long as a file's name or longer. `COMM`: a process's name;
/// `NICK`: another name of 15 bytes without a blank, as of a network interface. `RULE`: the prefix of a rule's log.
const RECORDS: &[(&str, &str)] = &[
    ("fs/fs_context.c", "tmpfs: Unknown parameter 'NAME'"),
    ("fs/fs_parser.c", "tmpfs: Bad value for 'NAME'"),
    ("fs/overlayfs/super.c", "overlayfs: failed to resolve 'NAME': -2"),
    ("fs/overlayfs/super.c", "overlayfs: unrecognized mount option \"NAME\" or missing value"),
    ("fs/ext4/super.c", "EXT4-fs (loop0): Unrecognized mount option \"NAME\" or missing value"),
    ("fs/fat/inode.c", "FAT-fs (loop0): Unrecognized mount option \"NAME\" or missing value"),
    ("fs/exec.c", "process 'NAME' started with executable stack"),
    ("fs/exec.c", "process 'NAME' launched 'NAME' with NULL argv: empty string added"),
    ("fs/coredump.c", "Core dump to |NAME pipe failed"),
    ("fs/coredump.c", "Pid 7(COMM) over core_pipe_limit"),
    ("fs/drop_caches.c", "COMM (7): drop_caches: 3"),
    ("fs/filesystems.c", "request_module fs-NAME succeeded, but still no fs?"),
    ("fs/nfs/nfs4client.c", "NFS: Server NAME reports our clientid is in use"),
    ("fs/smb/client/connect.c", "CIFS: Attempting to mount //NAME/NAME"),
    ("kernel/cgroup/pids.c", "cgroup: fork rejected by pids controller in /NAME"),
    ("kernel/cgroup/cgroup-v1.c", "cgroup: Unknown subsys name 'NAME'"),
    (
        "kernel/audit.c",
        "audit: type=1326 audit(1764.5:12): auid=1000 pid=7 comm=AUDITED_COMM exe=AUDITED_NAME sig=31 arch=c000003e",
    ),
    (
        "security/selinux/avc.c",
        "audit: type=1400 audit(1764.5:12): avc:  denied  { read } for  pid=7 comm=AUDITED_COMM path=AUDITED_NAME dev=\"tmpfs\" ino=7",
    ),
    (
        "security/apparmor/audit.c",
        "audit: type=1400 audit(1764.5:12): apparmor=\"DENIED\" operation=\"open\" profile=AUDITED_NAME name=AUDITED_NAME pid=7 comm=AUDITED_COMM",
    ),
    ("security/selinux/ss/services.c", "SELinux:  Context NAME is not valid (left unmapped)."),
    ("security/yama/yama_lsm.c", "ptrace attach of \"NAME\"[7] was attempted by \"NAME\"[8]"),
    (
        "kernel/module/kmod.c",
        "kmod: request_module: modprobe NAME cannot be processed, kmod busy with 50 threads for more than 5 seconds now",
    ),
    ("kernel/hung_task.c", "INFO: task COMM:7 blocked for more than 120 seconds."),
    ("kernel/watchdog.c", "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [COMM:7]"),
    ("kernel/sched/core.c", "task:COMM state:D stack:0     pid:7     ppid:1      flags:0x00004002"),
    (
        "lib/dump_stack.c",
        "CPU: 0 PID: 7 Comm: COMM Tainted: G        W          6.1.0-13-amd64 #1  Debian 6.1.55-1",
    ),
    ("kernel/capability.c", "capability: warning: `COMM' uses 32-bit capabilities (legacy support in use)"),
    (
        "kernel/trace/bpf_trace.c",
        "COMM[7] is installing a program with bpf_probe_write_user helper that may corrupt user memory!",
    ),
    ("kernel/exit.c", "note: COMM[7] exited with irqs disabled"),
    (
        "mm/mmap.c",
        "mmap: COMM (7): VmData 8192 exceed data ulimit 4096. Update limits or use boot option ignore_rlimit_data.",
    ),
    ("mm/oom_kill.c", "COMM invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"),
    (
        "mm/oom_kill.c",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=NAME,mems_allowed=0,oom_memcg=/NAME,task_memcg=/NAME,task=COMM,pid=7,uid=1000",
    ),
    (
        "mm/oom_kill.c",
        "Memory cgroup out of memory: Killed process 7 (COMM) total-vm:8192kB, anon-rss:1kB, file-rss:1kB, shmem-rss:0kB, UID:1000 pgtables:4kB oom_score_adj:0",
    ),
    ("mm/oom_kill.c", "[      7]  1000     7    81920      256    65536        0             0 COMM"),
    ("mm/memcontrol.c", "Memory cgroup stats for /NAME:"),
    (
        "mm/page_alloc.c",
        "COMM: page allocation failure: order:4, mode:0x40dc0(GFP_KERNEL|__GFP_COMP|__GFP_ZERO), nodemask=(null),cpuset=NAME,mems_allowed=0",
    ),
    (
        "arch/x86/mm/fault.c",
        "COMM[7]: segfault at 0 ip 0000000000401136 sp 00007ffd0000 error 4 in NAME[401000+1000] likely on CPU 1 (core 1, socket 0)",
    ),
    ("arch/x86/mm/fault.c", "COMM: Corrupted page table at address 7f00"),
    (
        "arch/x86/kernel/traps.c",
        "traps: COMM[7] trap invalid opcode ip:401136 sp:7ffd error:0 in NAME[401000+1000]",
    ),
    (
        "arch/x86/kernel/traps.c",
        "traps: COMM[7] general protection fault ip:401136 sp:7ffd error:0 in NAME[401000+1000]",
    ),
    (
        "arch/x86/kernel/umip.c",
        "umip: COMM[7] ip:401136 sp:7ffd: SGDT instruction cannot be used by applications.",
    ),
    (
        "arch/x86/entry/vsyscall/vsyscall_64.c",
        "COMM[7] vsyscall attempted with vsyscall=none ip:ffffffffff600000 cs:33 sp:7ffd ax:0 si:0 di:0",
    ),
    (
        "arch/x86/kernel/cpu/intel.c",
        "x86/split lock detection: #AC: COMM/7 took a split_lock trap at address: 0x401136",
    ),
    (
        "arch/arm64/kernel/traps.c",
        "COMM[7]: unhandled exception: DABT (lower EL), ESR 0x92000006, level 2 translation fault in NAME[400000+1000]",
    ),
    (
        "arch/powerpc/kernel/traps.c",
        "COMM[7]: segfault (11) at 0 nip 401136 lr 401136 code 1 in NAME[400000+1000]",
    ),
    ("drivers/usb/core/hub.c", "usb 1-1: Product: NAME"),
    ("drivers/usb/core/hub.c", "usb 1-1: Manufacturer: NAME"),
    ("drivers/usb/core/hub.c", "usb 1-1: SerialNumber: NAME"),
    ("drivers/input/input.c", "input: NAME as /devices/virtual/input/input7"),
    (
        "drivers/hid/hid-core.c",
        "hid-generic 0003:046D:C077.0001: input,hidraw0: USB HID v1.11 Mouse [NAME] on usb-0000:03:00.0-1/input0",
    ),
    ("drivers/scsi/scsi_scan.c", "scsi 0:0:0:0: Direct-Access     NAME 0001 PQ: 0 ANSI: 6"),
    ("drivers/md/dm-table.c", "device-mapper: table: 254:0: NAME: unknown target type"),
    ("drivers/thunderbolt/switch.c", "thunderbolt 0-1: NAME NAME"),
    ("net/socket.c", "COMM uses obsolete (PF_INET,SOCK_PACKET)"),
    ("net/core/dev.c", "NICK: renamed from NICK"),
    ("net/core/dev.c", "NICK: entered promiscuous mode"),
    ("net/core/dev.c", "device NICK entered promiscuous mode"),
    ("net/bridge/br_stp.c", "NICK: port 1(NICK) entered forwarding state"),
    (
        "net/netfilter/nf_log_syslog.c",
        "RULEIN=eth0 OUT= MAC=52:54:00:12:34:56 SRC=10.0.0.1 DST=10.0.0.2 LEN=60",
    ),
    ("net/netfilter/nf_log_syslog.c", "RULEIN= OUT=lo SRC=10.0.0.1 DST=10.0.0.2 LEN=60"),
    ("net/netfilter/nf_log_syslog.c", "RULEIN=tun0 OUT= MAC= SRC=10.0.0.1 DST=10.0.0.2 LEN=60"),
    ("net/netfilter/nf_log_syslog.c", "RULEIN= OUT=eth0 TRUNCATED"),
    ("net/netfilter/nf_log_syslog.c", "RULEIN=eth0 OUT= ARP HTYPE=1 PTYPE=0x0800 OPCODE=1"),
    ("net/netfilter/nf_log_syslog.c", "RULEIN=eth0 OUT= MACSRC=52:54:00:12:34:56 MACDST=52:54:00:12:34:57"),
    (
        "net/bridge/netfilter/ebt_log.c",
        "RULE IN=eth0 OUT=br0 MAC source = 52:54:00:12:34:56 MAC dest = 52:54:00:12:34:57 proto = 0x88cc",
    ),
];

/// The front that each program puts before a record, and the indentation of a record's second line.
const SHOWN: [(&str, &str); 3] = [
    ("[   12.345678] ", "\n               "),
    ("Jan  7 10:00:25 box kernel: ", "\n                            "),
    ("kern  :err   : [   12.345678] ", "\n                              "),
];

/// Records with each known message, behind each prefix that its driver gives it, behind another device's
/// prefix, and bare.
fn messages(knowledge: &Knowledge) -> Vec<String> {
    let mut texts = Vec::new();
    for pattern in knowledge.messages().iter().flat_map(|message| &message.patterns) {
        let filled = pattern.text.filled(|hole| match hole {
            "device" => "0000:de:00.0".to_owned(),
            "state" => "2".to_owned(),
            _ => "7".to_owned(),
        });
        let fronts = ["amdgpu 0000:de:00.0: amdgpu: ", "amdgpu: ", "[drm] ", ""];
        texts.extend(fronts.map(|front| format!("{front}{filled}")));
        texts.push(format!("pcieport 0000:de:00.0: {filled}"));
    }
    texts
}

fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.get(..end).unwrap_or(text)
}

/// The name as audit_log_n_untrustedstring (kernel/audit.c) writes it: in hexadecimal where it has a blank or
/// a quote.
fn audited(name: &str) -> String {
    match name.bytes().all(|byte| byte != b'"' && (0x21..=0x7e).contains(&byte)) {
        true => format!("\"{name}\""),
        false => name.bytes().map(|byte| format!("{byte:02X}")).collect(),
    }
}

fn known(knowledge: &Knowledge, record: &str) -> Option<String> {
    let id = |found: kernel_log::knowledge::Found<'_>| format!("{}: {record:?}", found.message.id);
    let of_record = knowledge.find_from(&Origin::of_record(record.as_bytes(), None)).map(id);
    of_record.or_else(|| {
        let shown = if record.contains('\n') { &SHOWN[..] } else { &SHOWN[..1] };
        shown.iter().find_map(|(front, next)| {
            let text = format!("{front}{}", record.replace('\n', next));
            text.split('\n').find_map(|line| knowledge.find_any(line.as_bytes())).map(id)
        })
    })
}

/// The beginning of a message is the process's name and the rest the file's, however it is cut.
#[test]
fn no_record_with_a_name_that_a_user_chooses_is_a_message() {
    let knowledge = Knowledge::built_in().unwrap();
    let messages = messages(knowledge);
    let mut believed = Vec::new();
    let mut tried = 0;
    for (file, record) in RECORDS {
        for message in &messages {
            let nick: String = cut(message, COMM).split(' ').next().unwrap_or_default().replace(':', "");
            let names = |comm: &str, name: &str| {
                record
                    .replace("AUDITED_COMM", &audited(comm))
                    .replace("AUDITED_NAME", &audited(name))
                    .replace("COMM", comm)
                    .replace("NICK", &nick)
                    .replace("NAME", name)
                    .replace("RULE", cut(name, PREFIX))
            };
            let comm = cut(message, COMM);
            let mut forged = vec![names(comm, message), names(comm, &format!("x\n{message}"))];
            if record.contains("COMM") && record.contains("NAME") {
                let halves = (1..=COMM).map(|at| message.split_at_checked(at).unwrap_or(("", message)));
                forged.extend(halves.map(|(comm, rest)| names(comm, rest)));
            }
            tried += forged.len();
            believed.extend(
                forged.iter().filter_map(|it| known(knowledge, it)).map(|it| format!("{file}: {it}")),
            );
        }
    }
    assert!(tried > 100_000, "{tried}");
    believed.truncate(20);
    assert_eq!(believed, [""; 0]);
}

/// amdgpu itself writes names of processes into its messages: its message stays what it is.
#[test]
fn no_name_of_a_process_in_a_message_of_amdgpus_makes_another_of_it() {
    let knowledge = Knowledge::built_in().unwrap();
    for (record, expected) in [
        (
            "amdgpu 0000:03:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32770, for process COMM pid 1 thread NICK pid 2)",
            "page-fault",
        ),
        (
            "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process COMM pid 1 thread NICK pid 2",
            "hang-process",
        ),
        ("amdgpu 0000:03:00.0:  Process COMM pid 1 thread NICK pid 2", "fault-process"),
        ("amdgpu 0000:03:00.0: amdgpu:  in process COMM pid 1 thread NICK pid 2)", "fault-process"),
        ("amdgpu 0000:03:00.0: amdgpu:  for process COMM pid 1 thread NICK pid 2)", "fault-process"),
    ] {
        for message in messages(knowledge) {
            for at in 1..=COMM {
                let comm = cut(&message, at);
                let rest = message.get(comm.len()..).unwrap_or_default();
                let thread = if rest.is_empty() { comm } else { cut(rest, COMM) };
                let text = record.replace("COMM", comm).replace("NICK", thread);
                let found = knowledge.find_from(&Origin::of_record(text.as_bytes(), None)).unwrap();
                assert_eq!(found.message.id, expected, "{text}");
                let device = record.contains("0000:03").then(|| "0000:03:00.0".to_owned());
                assert_eq!(found.device.map(|it| it.to_string()), device, "{text}");
            }
        }
    }
}

#[test]
fn a_process_that_is_named_like_a_packet_hides_no_message_of_amdgpus() {
    let knowledge = Knowledge::built_in().unwrap();
    for comm in ["IN= OUT= SRC=", "IN= OUT= SRC=1.", "IN=a OUT= MAC=", "IN= OUT= MAC=ab", "IN= OUT= ARP "] {
        for (message, expected) in [
            (
                "amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32770, for process COMM pid 1 thread COMM pid 2)",
                "page-fault",
            ),
            (" Process COMM pid 1 thread COMM pid 2", "fault-process"),
        ] {
            let record = format!("amdgpu 0000:03:00.0: {}", message.replace("COMM", comm));
            let device = "0000:03:00.0".parse().ok();
            let line = format!("[   12.345678] {record}");
            for found in [
                knowledge.find_from(&Origin::of_record(record.as_bytes(), device)),
                knowledge.find_from(&Origin::of_record(record.as_bytes(), None)),
                knowledge.find_any(line.as_bytes()),
            ] {
                assert_eq!(found.map(|found| found.message.id.as_str()), Some(expected), "{record}");
            }
        }
    }
}

/// Lines of other drivers about their own devices, and lines of no driver.
#[test]
fn no_other_drivers_line_is_amdgpus_message() {
    let knowledge = Knowledge::built_in().unwrap();
    for line in [
        "radeon 0000:01:00.0: GPU reset(2) failed",
        "[drm:radeon_ring_test [radeon]] *ERROR* ring gfx timeout, signaled seq=1, emitted seq=2",
        "nouveau 0000:01:00.0: [drm] device wedged, needs recovery",
        "i915 0000:00:02.0: [drm] device wedged, needs recovery",
        "xe 0000:03:00.0: [drm] device wedged, needs recovery",
        "nvidia 0000:09:00.0: GPU reset(2) failed",
        "x 0000:de:00.0: amdgpu: GPU reset(2) failed",
        "0000:de:00.0: amdgpu: GPU reset(2) failed",
        "[   12.5] GPU reset(2) failed",
        "Jan  7 10:00:25 box logger[7]: amdgpu 0000:de:00.0: amdgpu: GPU reset(2) failed",
        "user  :err   : amdgpu 0000:de:00.0: amdgpu: GPU reset(2) failed",
    ] {
        assert_eq!(knowledge.find_any(line.as_bytes()).map(|found| &found.message.id), None, "{line}");
    }
}
