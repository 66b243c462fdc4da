//! docs/fleet.md: each command is run on machines that are as the page says, and prints what stands below it.

use support::captures;
use support::document::{consoles, fenced, text};
use support::machines::{self, Fleet, Sudo};

use crate::fleet::asker::{PROGRAM, install};

const PAGE: &str = "docs/fleet.md";

/// gpu1 to gpu3 answer; each of the others has one of the troubles that the page explains.
fn set_up(fleet: &Fleet) {
    fleet.machine("gpu1", |m| m.laid(layout::Machine::instinct_with_readings(2, 1)).prepare(&install()));
    fleet.machine("gpu2", |m| {
        m.laid(captures::phoenix()).user("ops", Sudo::NoPassword).user("guest", Sudo::No).prepare(&install())
    });
    fleet.machine("gpu3", |m| m);
    fleet.machine("gpu4", |m| m.sshd("PubkeyAuthentication no"));
    fleet.machine("gpu5", |m| m).kill_sshd();
    fleet.machine("gpu8", |m| {
        m.prepare(
            "printf '#!/bin/sh\\necho aarch64\\n' > /usr/local/bin/uname; chmod 755 /usr/local/bin/uname",
        )
    });
    fleet.machine("gpu9", |m| m.prepare("mkdir -p /root/.cache/rocworker; chmod 777 /root/.cache/rocworker"));
    let page = text(PAGE);
    let inventory = fenced(&page).find(|(kind, _)| *kind == "yaml").unwrap().1;
    fleet.put("etc/rocworker/config.yaml", inventory);
    fleet.shell(&format!("ln -s {PROGRAM} /usr/local/bin/rocworker")).well();
}

/// Lines in an order of their own: machines finish as they do, and stderr stands beside stdout. Times are none.
fn compared(said: &str) -> Vec<String> {
    let mut lines: Vec<String> = said.lines().map(timeless).collect();
    lines.sort();
    lines
}

fn timeless(line: &str) -> String {
    let (place, rest) = match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((place, rest)) => (place.rsplit('/').next().unwrap_or_default(), rest),
        None => ("", line),
    };
    let is_time = |word: &str| word.contains('.') && word.parse::<f64>().is_ok();
    // How large this build is.
    if let Some((copying, _)) =
        rest.split_once(" (").filter(|(text, _)| text.contains("copying this rocworker"))
    {
        return copying.to_owned();
    }
    let words: Vec<&str> = rest.split(' ').map(|word| if is_time(word) { "TIME" } else { word }).collect();
    if line.starts_with('[') && !place.is_empty() {
        format!("[/{place}] {}", words.join(" "))
    } else {
        rest.to_owned()
    }
}

#[test]
fn real_each_command_of_the_fleet_page_prints_what_stands_below_it() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    set_up(&fleet);
    let page = text(PAGE);
    let mut wrong = Vec::new();
    let mut ran = 0;
    for (command, expected) in consoles(&page) {
        let said = fleet.shell(&format!("exec 2>&1; {command} || :")).well();
        if compared(&said) != compared(expected) {
            wrong.push(format!("$ {command}\n{said}"));
        }
        ran += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ran > 9, "{ran}");
}
