//! `explain --journal` with journald's own files: the real systemd-journald writes them from what stands for /dev/kmsg, and
//! the real journalctl reads them. A FIFO takes kmsg's place: a record a write, as kernel/printk/printk.c gives a record
//! a read.

use serde_json::{Value, json};
use support::detect::assert_fields;
use support::stage::Stage;
use support::{captures, real};

const ROCWORKER: &str = env!("CARGO_BIN_EXE_rocworker");

/// Starts journald; `say` gives it a record with its keys (Documentation/ABI/testing/dev-kmsg). `$1` is the program.
const JOURNALD: &str = r#"
mkdir -p /run/systemd/journald.conf.d
mkfifo /dev/kmsg
exec 3<>/dev/kmsg
printf '[Journal]\nStorage=volatile\nAudit=\nRateLimitIntervalSec=0\nSyncIntervalSec=0\n' > /run/systemd/journald.conf.d/test.conf
# journald's own words would come between the records.
SYSTEMD_LOG_TARGET=null /lib/systemd/systemd-journald </dev/null 2>/dev/null & journald=$!
seen() { journalctl -q -o cat _TRANSPORT=kernel --since=-1h 2>/dev/null | wc -l; }
wait_for() { tries=0; until [ "$(seen)" -ge "$1" ]; do tries=$((tries + 1)); [ $tries -lt 100 ]; sleep 0.1; done; }
until [ -S /run/systemd/journal/socket ]; do sleep 0.1; done
number=0
say() { number=$((number + 1)); printf "3,$number,$((100000000 + number)),-;$1\n$2" >&3; wait_for $number; }
rotate() { kill -USR2 $journald; until ls /run/log/journal/*/system@*.journal >/dev/null 2>&1; do sleep 0.1; done; }
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
"#;

/// What a script says on a stage with the captured phoenix, with journald in its own namespaces.
fn on_stage(script: &str) -> String {
    let stage = Stage::set(&captures::phoenix());
    let script = format!("{JOURNALD}{script}");
    let argv = [
        "unshare",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-ec",
        &script,
        "sh",
        ROCWORKER,
    ];
    let output = stage.run(&argv);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}\n{}", String::from_utf8_lossy(&output.stdout));
    format!("{}{stderr}", String::from_utf8_lossy(&output.stdout))
}

/// The answers of a script that prints several, one behind the other.
fn answers(script: &str) -> Vec<Value> {
    let said = on_stage(script);
    let values = serde_json::Deserializer::from_str(&said).into_iter();
    values.collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn is_there() -> bool {
    real::require_root(&["/lib/systemd/systemd-journald", "journalctl", "unshare", "setpriv"])
}

const TIMEOUT: &str = "ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=2";

#[test]
fn real_journal_names_the_gpu_and_the_time_of_each_message() {
    if !is_there() {
        return;
    }
    let found = answers(&format!(
        r#"
        say 'amdgpu 0000:64:00.0: amdgpu: {TIMEOUT}' ' SUBSYSTEM=pci\n DEVICE=+pci:0000:64:00.0\n'
        say 'systemd[1]: nothing'
        say 'amdgpu 0000:64:00.0: amdgpu: {TIMEOUT} bytes \\xff\\x01' ' SUBSYSTEM=pci\n DEVICE=+pci:0000:64:00.0\n'
        rotate
        say 'amdgpu: {TIMEOUT}'
        "$1" -o json explain --journal
        "$1" -o json explain --journal --since=-1h
        "$1" -o json explain --journal --since=tomorrow
        "#
    ));
    for answer in &found[..2] {
        let matches = answer["matches"].as_array().unwrap();
        assert_eq!(matches.len(), 3, "{answer:#}");
        assert_fields(
            &matches[0],
            &json!({ "line": 1, "gpu": "0000:64:00.0", "indexes": [0], "class": "hang" }),
        );
        // Not in the text: journald has it from the kernel.
        assert_fields(
            &matches[1],
            &json!({
                "line": 3, "gpu": "0000:64:00.0",
                "evidence": format!("amdgpu 0000:64:00.0: amdgpu: {TIMEOUT} bytes \u{fffd}\\u{{1}}"),
            }),
        );
        // Neither: the machine has one AMD GPU, and the journal is its own.
        assert_fields(
            &matches[2],
            &json!({ "line": 4, "address": null, "gpu": "0000:64:00.0", "indexes": [0] }),
        );
        let time = matches[0]["time"].as_str().unwrap();
        assert!(time.len() == 20 && time.starts_with("20") && time.ends_with('Z'), "{time}");
        assert_eq!(answer["totals"]["lines"], 4);
    }
    assert_eq!(found[2]["totals"]["lines"], 0);
}

#[test]
fn real_journal_that_is_damaged_gives_what_is_left_and_a_warning() {
    if !is_there() {
        return;
    }
    let said = on_stage(&format!(
        r#"
        say 'amdgpu 0000:64:00.0: amdgpu: {TIMEOUT}' ' SUBSYSTEM=pci\n DEVICE=+pci:0000:64:00.0\n'
        rotate
        say 'amdgpu 0000:64:00.0: amdgpu: {TIMEOUT}' ' SUBSYSTEM=pci\n DEVICE=+pci:0000:64:00.0\n'
        head -c 65536 /dev/urandom > "/run/log/journal/$(cat /etc/machine-id)/noise.journal"
        "$1" explain --journal
        old=$(ls /run/log/journal/*/system@*.journal)
        truncate -s 4096 "$old"
        echo truncated
        "$1" explain --journal
        "#
    ));
    assert_eq!(said.matches("2 times, first on line 1, 20").count(), 1, "{said}");
    let (_, after) = said.split_once("truncated\n").unwrap();
    assert!(after.contains("1 line with a known message, of 1 line read."), "{said}");
    assert!(after.contains("noise.journal corrupted, ignoring file"), "{said}");
}

#[test]
fn real_journal_that_is_rotated_away_while_it_is_read_ends_well() {
    if !is_there() {
        return;
    }
    let said = on_stage(&format!(
        r#"
        say 'amdgpu 0000:64:00.0: amdgpu: {TIMEOUT}'
        (while kill -USR2 $journald; do rm -f /run/log/journal/*/system@*.journal; done) & busy=$!
        for round in 1 2 3 4 5 6 7 8; do "$1" explain --journal > /dev/null; done
        kill $busy
        echo well
        "#
    ));
    assert!(said.contains("well\n"), "{said}");
}

#[test]
fn real_journal_that_this_user_may_not_read_and_a_time_that_is_none_end_with_a_sentence() {
    if !is_there() {
        return;
    }
    let said = on_stage(&format!(
        r#"
        say 'amdgpu 0000:64:00.0: amdgpu: {TIMEOUT}'
        cp "$1" /run/rocworker-here; chmod 755 /run /run/rocworker-here
        as_nobody /run/rocworker-here explain --journal 2>&1 || echo "ended with $?"
        "$1" explain --journal --since=nonsense 2>&1 || echo "ended with $?"
        PATH=/nowhere "$1" explain --journal 2>&1 || echo "ended with $?"
        kill $journald; wait $journald || true; rm -rf /run/log/journal /var/log/journal
        "$1" explain --journal 2>&1 || echo "ended with $?"
        "#
    ));
    let expected = "rocworker: the journal is not for this user to read: run this as root, or as a member of group \
        systemd-journal or adm\nended with 1\n\
        rocworker: --since=nonsense: Failed to parse timestamp: nonsense\nended with 2\n\
        rocworker: journalctl is not installed: pipe a log to `rocworker explain -`\nended with 1\n\
        rocworker: there is no journal: pipe the machine's log, such as dmesg's, to `rocworker explain -`\n\
        ended with 1\n";
    assert!(said.contains(expected), "{said}");
}
