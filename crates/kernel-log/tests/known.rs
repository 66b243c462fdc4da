//! What knowledge/messages.toml promises of itself: its samples, its sentences, its order.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use kernel_log::knowledge::{Class, Found, Knowledge, Message, Severity};

fn built_in() -> Knowledge {
    Knowledge::built_in().unwrap()
}

fn id<'k>(found: Option<&Found<'k>>) -> Option<&'k str> {
    found.map(|found| found.message.id.as_str())
}

/// What a reader sees.
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
            assert_eq!(pattern.text.find(pattern.not.as_bytes()), None, "{}", pattern.not);
        }
    }
}

#[test]
fn each_pattern_names_where_its_words_and_its_sample_are_from() {
    for message in built_in().messages() {
        assert!(!message.source.is_empty(), "{}", message.id);
        for pattern in &message.patterns {
            let place = (pattern.kernels.is_empty(), pattern.file.is_none());
            assert!(matches!(place, (true, false) | (false, true)), "{}: {}", message.id, pattern.sample);
            let from = &pattern.sample_from;
            let starts = [
                "https://",
                "made from the format string of ",
                "a public file titled '",
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
    let docs = include_str!("../../../docs/explain.md");
    assert!(docs.contains(&limit), "docs/explain.md does not say: {limit}");
}

#[test]
fn each_class_has_a_message_and_each_message_says_something_once() {
    use Class::{
        BadPages, Firmware, Hang, HardwareEvent, IllegalOpcode, InitFailed, Kfd, MemoryCorrectable,
        MemoryUncorrectable, PageFault, Pcie, Power, ResetFailed, ResetRecovered, Thermal, Xgmi,
    };
    let all = [
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
        let mut said = BTreeSet::new();
        for text in texts(message).chain(&message.commands) {
            assert!(said.insert(text), "{}: {text:?} stands twice", message.id);
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

#[test]
fn no_name_of_a_process_makes_another_message_of_a_line() {
    let knowledge = built_in();
    // What TASK_COMM_LEN leaves of a name, for a process and its thread: together they may hold two words of a pattern.
    let cut = |words: &str| -> String { words.chars().take(15).collect() };
    for message in knowledge.messages() {
        for pattern in &message.patterns {
            let words: Vec<&str> = pattern.text.words().collect();
            let process = cut(words[0]);
            let thread = cut(words.get(1).copied().unwrap_or(&words[0][words[0].len().min(15)..]));
            for (line, expected) in [
                (
                    format!(
                        "amdgpu 0000:03:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32770, \
                         for process {process} pid 1 thread {thread} pid 2)"
                    ),
                    "page-fault",
                ),
                (
                    format!("*ERROR* Process information: process {process} pid 1 thread {thread} pid 2"),
                    "hang-process",
                ),
                (
                    format!("amdgpu 0000:28:00.0:  Process {process} pid 1 thread {thread} pid 2"),
                    "fault-process",
                ),
                (
                    format!(
                        "amdgpu 0000:28:00.0: amdgpu:  in process {process} pid 1 thread {thread} pid 2)"
                    ),
                    "fault-process",
                ),
            ] {
                let found = knowledge.find(line.as_bytes());
                assert_eq!(id(found.as_ref()), Some(expected), "{line}");
            }
        }
    }
}

/// As Debian's bug 1104670 shows: the kernel says aer_cor_status of a fatal event too.
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
    let mut told = 0;
    for message in built_in().messages() {
        let is_told = message.now.iter().any(|text| text.contains("dump") && text.contains("five minutes"));
        let copies = message.commands.iter().any(|command| {
            command == "cp /sys/bus/pci/devices/{pci}/devcoredump/data /var/tmp/devcoredump-{pci}"
        });
        assert!(copies || !is_told, "{}", message.id);
        assert!(
            message
                .commands
                .iter()
                .all(|command| !command.starts_with("ls ") || !command.contains("devcoredump"))
        );
        told += usize::from(is_told);
    }
    assert!(told > 0);
}
