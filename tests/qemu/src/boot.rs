//! Starts the machine and waits for its end.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::answers::Answers;

/// QEMU's accelerators and processors, each with the seconds after which QEMU is ended in any case. Hardware
/// serves where this machine lends it (under another machine's hypervisor it may lend it half: QEMU then
/// aborts, or the kernel hangs before its first word), else software.
const ACCELERATORS: [(&str, &str, &str); 2] = [("kvm", "qemu64", "60"), ("tcg", "max", "400")];

/// Software that counts (`-icount`), with a limit of its own: there is no other way for it to go faster.
const COUNTED: (&str, &str, &str) = ("counted tcg", "max", "900");

/// A kernel that runs on hardware says its first word within a second.
const FIRST_WORD: Duration = Duration::from_secs(4);

/// The result of a boot.
#[derive(Debug)]
pub struct Booted {
    pub answers: Answers,
    /// `kvm`, `tcg` or `counted tcg`.
    pub accelerator: &'static str,
    /// The time from QEMU's start to its end.
    pub took: Duration,
}

/// Boots the kernel with this initramfs. The folder gets `console` and `answers`, the two serial ports.
///
/// The machine has a PCI device of AMD's vendor id at 0000:00:05.0, QEMU's model of an ATI Rage 128, which no
/// driver here wants.
///
/// # Panics
/// With both serial ports' last lines, where the machine did not run to its end in time.
#[track_caller]
#[must_use]
pub fn boot(kernel: &Path, initramfs: &[u8], folder: &Path) -> Booted {
    boot_by(&ACCELERATORS, kernel, initramfs, folder)
}

/// Boots a machine whose clock counts instructions, one for each nanosecond: times in it are what a processor of that
/// speed would take, however busy this machine is.
///
/// # Panics
/// Where [`boot`] panics.
#[track_caller]
#[must_use]
pub fn boot_counted(kernel: &Path, initramfs: &[u8], folder: &Path) -> Booted {
    boot_by(&[COUNTED], kernel, initramfs, folder)
}

#[track_caller]
fn boot_by(
    accelerators: &[(&'static str, &str, &str)],
    kernel: &Path,
    initramfs: &[u8],
    folder: &Path,
) -> Booted {
    fs::write(folder.join("initramfs"), initramfs).unwrap();
    let has_kvm = OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok();
    let mut failures = Vec::new();
    for &(accelerator, processor, limit) in accelerators {
        if accelerator == "kvm" && !has_kvm {
            continue;
        }
        let started = Instant::now();
        let mut command = qemu(kernel, folder, accelerator, processor, limit);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        if accelerator == "kvm" && !speaks(&folder.join("console")) {
            child.kill().unwrap();
        }
        let output = child.wait_with_output().unwrap();
        let took = started.elapsed();
        match Answers::parse(&text(&folder.join("answers"))) {
            Ok(answers) => return Booted { answers, accelerator, took },
            Err(why) => failures.push(format!("{accelerator}: {why}; {}", autopsy(&output, took, folder))),
        }
    }
    panic!("{}", failures.join("\n\n"))
}

/// Starts QEMU so that it ends with the thread that starts it, also when that thread fails or is killed: each
/// program in between is set to end with its parent.
fn qemu(kernel: &Path, folder: &Path, accelerator: &str, processor: &str, limit: &str) -> Command {
    let serial = |name: &str| format!("file:{}", folder.join(name).display());
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "timeout", "--foreground", "--kill-after=5", limit]);
    command.args(["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64"]);
    command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-vga", "none"]);
    let counted = ["-icount", "shift=0,sleep=off"];
    command.args(counted.iter().filter(|_| accelerator == COUNTED.0));
    let accelerator = if accelerator == COUNTED.0 { "tcg" } else { accelerator };
    command.args(["-accel", accelerator, "-cpu", processor, "-m", "1024", "-nic", "none"]);
    command.args(["-device", "ati-vga,addr=5"]);
    command.args(["-serial", &serial("console"), "-serial", &serial("answers")]);
    command.arg("-kernel").arg(kernel).arg("-initrd").arg(folder.join("initramfs"));
    command.args(["-append", "console=ttyS0 panic=-1 rdinit=/init"]);
    command
}

fn speaks(console: &Path) -> bool {
    let deadline = Instant::now() + FIRST_WORD;
    while Instant::now() < deadline {
        if fs::metadata(console).is_ok_and(|file| file.len() > 0) {
            return true;
        }
        thread::sleep(Duration::from_millis(50));
    }
    false
}

/// A file's text; none where QEMU never made the file.
fn text(file: &Path) -> String {
    String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned()
}

fn autopsy(output: &Output, took: Duration, folder: &Path) -> String {
    let last = |name: &str| {
        let text = text(&folder.join(name));
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(60)..].join("\n")
    };
    format!(
        "QEMU ended with {} after {took:?}\nstderr: {}\nconsole:\n{}\nanswers:\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr),
        last("console"),
        last("answers")
    )
}
