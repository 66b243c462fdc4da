//! The table of `detect`: aligned, with its reasons below, coloured on a terminal and nowhere else.

use std::path::Path;
use std::process::Command;

use layout::{Machine, Nodes};
use support::detect::scratch;
use support::{captures, real};

const ROCWORKER: &str = env!("CARGO_BIN_EXE_rocworker");

fn laid_out(machine: &Machine, nodes: Nodes) -> tempfile::TempDir {
    let root = scratch();
    machine.lay_out(root.path(), nodes).unwrap();
    root
}

/// The table with the Root's own path taken out of it.
fn table(machine: &Machine, nodes: Nodes) -> String {
    let root = laid_out(machine, nodes);
    shown(root.path(), "table")
}

fn shown(root: &Path, format: &str) -> String {
    let mut command = Command::new(ROCWORKER);
    let output = command.arg("--root").arg(root).args(["detect", "-o", format]).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().replace(root.to_str().unwrap(), "")
}

#[test]
fn a_usable_card_beside_another_vendors() {
    insta::assert_snapshot!(table(&captures::phoenix_beside_rtx4080(), Nodes::Recorded));
}

#[test]
fn cards_without_nodes_have_their_reasons_below() {
    insta::assert_snapshot!(table(&Machine::demo(), Nodes::None));
}

#[test]
fn columns_stand_below_their_headings_whatever_is_in_them() {
    let name = "Instinct™ 名前 with a very long name indeed";
    let machine = captures::phoenix_beside_rtx4080()
        .put("/sys/bus/pci/devices/0000:64:00.0/product_name", format!("{name}\n").as_str());
    let text = table(&machine, Nodes::Recorded);
    let columns: Vec<usize> = text
        .lines()
        .take(3)
        .map(|line| {
            let address = line.find("PCI").or_else(|| line.find("0000:")).unwrap();
            unicode_width::UnicodeWidthStr::width(&line[..address])
        })
        .collect();
    assert!(columns.windows(2).all(|pair| pair[0] == pair[1]), "{columns:?}\n{text}");
}

#[test]
fn a_strangers_names_do_not_steer_the_terminal() {
    let uevent = "PCI_CLASS=30000\nPCI_ID=1002:15BF\nPCI_SLOT_NAME=0000:64:00.0\n";
    let machine = captures::phoenix()
        .put("/sys/bus/pci/devices/0000:64:00.0/uevent", uevent)
        .put("/sys/bus/pci/devices/0000:64:00.0/product_name", "two\nlines \u{202e}turned\n")
        .put("/sys/bus/pci/devices/0000:64:00.0/driver", layout::Entry::Link("../\u{1b}[31mamd".to_owned()));
    let text = shown(laid_out(&machine, Nodes::Recorded).path(), "wide");
    assert!(!text.contains(['\u{1b}', '\u{202e}']) && text.contains("\\u{1b}[31mamd"), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains("lines")).count(), 1, "{text}");
}

#[test]
fn real_a_terminal_gets_colours_unless_no_color_is_set() {
    if !real::require(&["script"]) {
        return;
    }
    let root = laid_out(&captures::phoenix(), Nodes::Recorded);
    let on_a_terminal = |no_color: Option<&str>| {
        let command = format!("{ROCWORKER} --root {} detect", root.path().display());
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &command, "/dev/null"]);
        script.env("TERM", "xterm").env_remove("NO_COLOR").env_remove("CLICOLOR");
        if let Some(value) = no_color {
            script.env("NO_COLOR", value);
        }
        String::from_utf8_lossy(&script.output().unwrap().stdout).into_owned()
    };
    let coloured = on_a_terminal(None);
    assert!(coloured.contains("\u{1b}[32musable"), "{coloured:?}");
    let plain = on_a_terminal(Some("1"));
    assert!(plain.contains("usable") && !plain.contains("\u{1b}["), "{plain:?}");
}
