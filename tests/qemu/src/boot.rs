//! Starts the machine and waits for its end.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::answers::Answers;

/// Seconds after which a machine is ended, whatever it does.
const LIMIT: &str = "150";

/// What a machine left.
#[derive(Debug)]
pub struct Booted {
    pub answers: Answers,
    /// From the start of QEMU to its end.
    pub took: Duration,
}

/// Boots the kernel with this initramfs. The folder gets `console` and `answers`, the two serial ports.
///
/// KVM is used where it can be had, and software emulation where not. The machine has a PCI device of AMD's
/// vendor id at 0000:00:05.0, QEMU's model of an ATI Rage 128, which no driver here wants.
///
/// QEMU ends with the thread that called, also when that one fails or is killed: each of the three programs in
/// between is told to end with its parent.
///
/// # Panics
/// With both serial ports' last lines, where the machine did not run to its end in time.
#[track_caller]
#[must_use]
pub fn boot(kernel: &Path, initramfs: &[u8], folder: &Path) -> Booted {
    let [image, console, answers] = ["initramfs", "console", "answers"].map(|name| folder.join(name));
    fs::write(&image, initramfs).unwrap();
    let file = |path: &Path| format!("file:{}", path.display());
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "timeout", "--foreground", "--kill-after=5", LIMIT]);
    command.args(["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64"]);
    command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-vga", "none"]);
    command.args(["-accel", "kvm", "-accel", "tcg", "-cpu", "max", "-m", "1024", "-nic", "none"]);
    command.args(["-device", "ati-vga,addr=5"]);
    command.args(["-serial", &file(&console), "-serial", &file(&answers)]);
    command.arg("-kernel").arg(kernel).arg("-initrd").arg(&image);
    command.args(["-append", "console=ttyS0 panic=-1 rdinit=/init"]);
    let started = Instant::now();
    let output = command.output().unwrap();
    let took = started.elapsed();
    let text = String::from_utf8_lossy(&fs::read(&answers).unwrap_or_default()).into_owned();
    match Answers::parse(&text) {
        Ok(answers) => Booted { answers, took },
        Err(why) => panic!("{why}; {}", autopsy(&output, took, &console, &text)),
    }
}

fn autopsy(output: &Output, took: Duration, console: &Path, answers: &str) -> String {
    let last = |text: &str| {
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(60)..].join("\n")
    };
    let console = String::from_utf8_lossy(&fs::read(console).unwrap_or_default()).into_owned();
    format!(
        "QEMU ended with {} after {took:?}\nstderr: {}\nconsole:\n{}\nanswers:\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr),
        last(&console),
        last(answers)
    )
}
