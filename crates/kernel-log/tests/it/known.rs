//! Checks knowledge/messages.toml itself: its samples, its sentences, its order.

use std::collections::BTreeSet;

use kernel_log::knowledge::{Class, Found, Knowledge, Message, Severity};

fn built_in() -> &'static Knowledge {
    Knowledge::built_in().unwrap()
}

fn id<'k>(found: Option<&Found<'k>>) -> Option<&'k str> {
    found.map(|found| found.message.id.as_str())
}

/// The texts that a person reads.
fn texts(message: &Message) -> impl Iterator<Item = &String> {
    [&message.means].into_iter().chain(&message.now).chain(&message.later)
}

#[test]
fn each_sample_is_found_by_its_own_pattern_and_what_resembles_it_is_another_message_or_none() {
    let knowledge = built_in();
    for message in knowledge.messages() {
        for pattern in &message.patterns {
            let found = knowledge.find_any(pattern.sample.as_bytes());
            let shown = knowledge.find(pattern.sample.as_bytes());
            assert_eq!(shown.is_some(), !message.silent, "{}", pattern.sample);
            let found =
                found.unwrap_or_else(|| panic!("{}: nothing is found in {}", message.id, pattern.sample));
            assert_eq!(found.message.id, message.id, "{}", pattern.sample);
            assert_eq!(found.pattern.text, pattern.text, "{}", pattern.sample);
            let other = knowledge.find_any(pattern.not.as_bytes());
            assert_ne!(id(other.as_ref()), Some(message.id.as_str()), "{}", pattern.not);
        }
    }
}

#[test]
fn each_pattern_names_where_its_words_and_its_sample_are_from() {
    for message in built_in().messages() {
        assert!(!message.source.is_empty(), "{}", message.id);
        for pattern in &message.patterns {
            let places = [!pattern.kernels.is_empty(), pattern.file.is_some(), pattern.only_logged];
            let named = places.iter().filter(|is_named| **is_named).count();
            assert_eq!(named, 1, "{}: {}", message.id, pattern.sample);
            let from = &pattern.sample_from;
            assert!(!pattern.only_logged || !from.starts_with("made from "), "{}: {from}", message.id);
            let starts = [
                "https://",
                "made from the format string of ",
                "a public file titled '",
                "a public patch that replaces these words ",
                "a public shell script ",
                "kernel-log-samples.tar.gz",
                "a user's ",
                "QEMU",
            ];
            assert!(starts.iter().any(|start| from.starts_with(start)), "{}: {from}", message.id);
        }
    }
}

/// The most samples that may be made from a format string. Lower it when you find a line that a machine has logged.
const MADE: usize = 100;

#[test]
fn no_more_samples_are_made_than_docs_explain_says() {
    let knowledge = built_in();
    let samples = || knowledge.messages().iter().flat_map(|message| &message.patterns);
    let made = samples().filter(|pattern| pattern.sample_from.starts_with("made from ")).count();
    assert!(made <= MADE, "{made} samples are made: find a line that a machine has logged");
    let limit = format!("For {made} of its {} patterns", samples().count());
    let docs = include_str!("../../../../docs/explain.md");
    assert!(docs.contains(&limit), "docs/explain.md does not say: {limit}");
}

#[test]
fn each_class_has_a_message_and_each_message_says_something_once() {
    use Class::{
        AccessDenied, BadPages, Firmware, Hang, HardwareEvent, IllegalOpcode, InitFailed, Kfd,
        MemoryCorrectable, MemoryUncorrectable, PageFault, Pcie, Power, ResetFailed, ResetRecovered, Thermal,
        Xgmi,
    };
    let all = [
        AccessDenied,
        BadPages,
        Firmware,
        HardwareEvent,
        Hang,
        IllegalOpcode,
        InitFailed,
        Kfd,
        MemoryCorrectable,
        MemoryUncorrectable,
        PageFault,
        Pcie,
        Power,
        ResetFailed,
        ResetRecovered,
        Thermal,
        Xgmi,
    ];
    let knowledge = built_in();
    let known: BTreeSet<_> = knowledge.messages().iter().map(|message| message.class).collect();
    assert_eq!(known, all.into_iter().collect());
    for message in knowledge.messages() {
        let mut seen = BTreeSet::new();
        for text in texts(message).chain(&message.commands) {
            assert!(seen.insert(text), "{}: {text:?} stands twice", message.id);
        }
    }
}

#[test]
fn each_sentence_is_short_and_who_drains_says_what_to_do() {
    for message in built_in().messages() {
        for text in texts(message) {
            assert!(text.ends_with(['.', ':']), "{}: {text}", message.id);
            for sentence in text.split_inclusive(". ") {
                let words = sentence.split_whitespace().count();
                assert!(words <= 25, "{}: {words} words: {sentence}", message.id);
            }
        }
        assert!(!message.commands.is_empty(), "{}", message.id);
        if message.drain {
            assert!(!message.now.is_empty(), "{}", message.id);
            assert_ne!(message.severity, Severity::Info, "{}", message.id);
        }
        if message.severity == Severity::Critical {
            assert!(message.drain, "{}", message.id);
        }
    }
}

#[test]
fn commands_are_an_argv_with_known_names_and_reset_nothing() {
    for message in built_in().messages() {
        for command in &message.commands {
            assert!(!command.contains(['|', ';', '&', '>', '<', '$', '`', '*', '\'', '"']), "{command}");
            let names = command.split('{').skip(1).map(|rest| rest.split('}').next().unwrap());
            for name in names {
                assert!(["pci", "render", "index"].contains(&name), "{command}");
            }
            assert!(!command.contains("reset"), "{command}");
        }
    }
}

/// Debian's bug 1104670 shows that the kernel writes aer_cor_status for a fatal event, too.
#[test]
fn no_line_of_a_fatal_event_that_the_firmware_reports_is_called_corrected() {
    let knowledge = built_in();
    for line in [
        "<0>[965919.725625] {1}[Hardware Error]:   aer_cor_status: 0x00002000, aer_cor_mask: 0x000031c0",
        "<0>[965919.725630] {1}[Hardware Error]:   aer_uncor_status: 0x00100000, aer_uncor_mask: 0x00010000",
    ] {
        assert_eq!(id(knowledge.find(line.as_bytes()).as_ref()), Some("pcie-firmware-first"), "{line}");
    }
}

#[test]
fn what_stands_in_a_line_is_handed_on() {
    let knowledge = built_in();
    for (line, expected) in [
        (
            "[  629.8] amdgpu 0000:0b:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32770, for \
             process python pid 1796 thread python pid 1797)",
            "[gfxhub] 0 24 8 32770 python 1796 python 1797",
        ),
        (
            "amdgpu 0000:0c:00.0: socket: 0, die: 0, 2 uncorrectable hardware errors detected in total in umc block",
            "2 umc",
        ),
        ("amdgpu 0000:c5:00.0: amdgpu: MES(1) failed to respond to msg=REMOVE_QUEUE", "1 REMOVE_QUEUE"),
        ("amdgpu 0000:02:00.0: amdgpu: Saved bad pages 150 reaches threshold value 128", "150 128"),
        (
            "amdgpu 0000:03:00.0: Direct firmware load for amdgpu/vega20_ta.bin failed with error -2",
            "vega20_ta.bin -2",
        ),
    ] {
        let found = knowledge.find(line.as_bytes()).unwrap();
        let values: Vec<&str> = found.values.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values.join(" "), expected, "{line}");
    }
}

/// The kernel drops a dump after five minutes (DEVCD_TIMEOUT in drivers/base/devcoredump.c).
#[test]
fn who_is_told_to_copy_the_dump_gets_the_command_that_copies_it() {
    let mut with_dump = 0;
    for message in built_in().messages() {
        let names_dump =
            message.now.iter().any(|text| text.contains("dump") && text.contains("five minutes"));
        let copies = message.commands.iter().any(|command| {
            command == "cp /sys/bus/pci/devices/{pci}/devcoredump/data /var/tmp/devcoredump-{pci}"
        });
        assert!(copies || !names_dump, "{}", message.id);
        assert!(
            message
                .commands
                .iter()
                .all(|command| !command.starts_with("ls ") || !command.contains("devcoredump"))
        );
        with_dump += usize::from(names_dump);
    }
    assert!(with_dump > 0);
}

/// Lines of public reports around the driver, beyond the samples of knowledge/messages.toml.
#[test]
fn lines_around_the_driver_are_known_and_other_drivers_lines_are_not() {
    let knowledge = built_in();
    for (line, expected) in [
        // https://github.com/Requiem4Eternity/Appstream/issues/96
        (
            "Jun 04 11:06:17 runtronhw1 kernel: amdgpu 0005:01:00.0: BAR 2: failed to assign [mem size 0x00200000 64bit pref]",
            Some("bar-no-space"),
        ),
        (
            "pci 0000:48:00.0: BAR 0 [mem size 0x800000000 64bit pref]: can't assign; no space",
            Some("bar-no-space"),
        ),
        ("xe 0030:03:00.0: BAR 2 [mem size 0x400000000 64bit pref]: can't assign; no space", None),
        // https://github.com/ROCm/legacy-rocm-build/issues/1626
        (
            "[    1.713999] pci 0000:00:15.4: BAR 13: no space for [io  size 0x1000]",
            Some("bar-optional-no-space"),
        ),
        (
            "[ 2829.668955] pci 0000:03:02.0: BAR 15: no space for [mem size 0x00200000 64bit pref]",
            Some("bar-optional-no-space"),
        ),
        (
            "[    4.181352] pci 0000:08:00.1: VF BAR 3 [mem size 0x00100000 64bit pref]: failed to assign",
            Some("bar-optional-no-space"),
        ),
        ("ixgbe 0000:02:00.0: BAR 0: can't reserve [mem 0x80000000-0x8007ffff 64bit]", None),
        ("vfio-pci 0000:07:00.0: BAR 0: can't reserve [mem 0xca000000-0xcbffffff 64bit]", Some("bar-busy")),
        (
            "[    5.838022] apex 0001:01:00.0: can't enable device: BAR 0 [mem 0x00000000-0x00003fff 64bit pref] not claimed",
            None,
        ),
        // https://github.com/ROCm/amdgpu/issues/155
        ("amdgpu: Unknown symbol __acpi_video_get_backlight_type (err -2)", Some("module-mismatch")),
        ("amdttm: disagrees about version of symbol drm_mm_remove_node", Some("module-mismatch")),
        ("nvidia: disagrees about version of symbol drm_gem_object_put", None),
        ("evdi: Unknown symbol drm_framebuffer_cleanup (err -22)", None),
        ("[ 4035.412720] Loading of unsigned module is rejected", Some("module-rejected")),
        (
            "Lockdown: insmod: unsigned module loading is restricted; see man kernel_lockdown.7",
            Some("module-rejected"),
        ),
        (
            "[    5.678] nvidia: module verification failed: signature and/or required key missing - tainting kernel",
            None,
        ),
        // With `device=` of both forms, and without.
        (
            "[   73.500538] iommu ivhd0: AMD-Vi: Event logged [IOTLB_INV_TIMEOUT device=06:00.0 address=0x1001e4600]",
            Some("iommu-device-timeout"),
        ),
        (
            "iommu ivhd0: AMD-Vi: Event logged [IOTLB_INV_TIMEOUT device=0000:63:00.0 address=0x42b5b01c0]",
            Some("iommu-device-timeout"),
        ),
        ("AMD-Vi: IOMMU 0000:00:00.2: Completion-Wait loop timed out", Some("iommu-timeout")),
        ("DMAR: VT-d detected Invalidation Time-out Error: SID ffff", Some("iommu-timeout")),
        // https://github.com/marazmista/radeon-profile/issues/157
        (
            "[ 1871.985312] amdgpu: [powerplay] Failed to send message 0xe, response 0xfffffffb param 0x80",
            Some("smu-message-failed"),
        ),
        (
            "amdgpu: [powerplay] failed send message: SetDriverDramAddrHigh (14) param: 0x00000080 response 0xffffffc2",
            Some("smu-message-failed"),
        ),
        (
            "[    8.435022] amdgpu: [powerplay] failed to send pre message 260 ret is 0",
            Some("smu-message-failed"),
        ),
        (
            "amdgpu 0000:01:00.0: [drm] *ERROR* dc_dmub_srv_log_diagnostic_data: DMCUB error - collecting diagnostic data",
            Some("display-microcontroller"),
        ),
        (
            "Nov 18 09:52:19 katana kernel: [ 4921.669813] [drm:dc_dmub_srv_wait_idle [amdgpu]] *ERROR* Error waiting for DMUB idle: status=3",
            Some("display-microcontroller"),
        ),
        // https://github.com/ROCm/legacy-rocm-build/issues/32
        (
            "[  942.180239] pcieport 0000:00:1c.4: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, id=00e4(Receiver ID)",
            Some("pcie-fatal"),
        ),
        (
            "[   77.573222] pcieport 0000:c9:02.0: AER: aer_layer=Transaction Layer, aer_agent=Receiver ID",
            Some("pcie-error-layer"),
        ),
        ("[  148.910234] tg3 0000:04:00.0: AER: aer_layer=Transaction Layer, aer_agent=Requester ID", None),
        (
            "pcieport 0000:00:00.0: AER: Multiple Uncorrected (Non-Fatal) error received: 0000:00:00.0",
            Some("pcie-port-nonfatal"),
        ),
        ("nvidia 0000:05:00.0: AER: can't recover (no error_detected callback)", None),
        (
            "nvme 0000:34:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Data Link Layer, (Receiver ID)",
            None,
        ),
        (
            "mlx5_core 0000:81:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)",
            None,
        ),
        ("[drm:atom_op_jump [radeon]] *ERROR* atombios stuck in loop for more than 5secs aborting", None),
        // https://github.com/podman-container-tools/podman/issues/18497
        (
            "type=AVC msg=audit(1683468487.052:3337): avc:  denied  { map } for  pid=699282 comm=\"vainfo\" \
             path=\"/dev/dri/renderD128\" dev=\"devtmpfs\" ino=947 scontext=system_u:system_r:container_t:s0:c260,c628 \
             tcontext=system_u:object_r:dri_device_t:s0 tclass=chr_file permissive=0",
            Some("selinux-denied"),
        ),
        (
            "audit: type=1400 audit(1.2:3): avc:  denied  { read write } for  pid=7 comm=\"rocminfo\" name=\"kfd\" \
             dev=\"devtmpfs\" ino=9 scontext=system_u:system_r:container_t:s0:c1,c2 \
             tcontext=system_u:object_r:hsa_device_t:s0 tclass=chr_file permissive=0",
            Some("selinux-denied"),
        ),
        // https://github.com/fedora-selinux/selinux-policy/issues/1695
        (
            "avc:  denied  { map } for  pid=7 comm=\"python\" path=\"/dev/nvidia0\" dev=\"devtmpfs\" ino=9 \
             scontext=system_u:system_r:container_t:s0 tcontext=system_u:object_r:xserver_misc_device_t:s0 tclass=chr_file",
            None,
        ),
    ] {
        assert_eq!(id(knowledge.find(line.as_bytes()).as_ref()), expected, "{line}");
    }
}
