//! Modules that a real kernel loads and unloads by the real kmod, as a plan wants it. vgem stands for amdgpu: it has a
//! node that can be held open.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use qemu_machine::answers::Answers;
use qemu_machine::archive::Archive;
use qemu_machine::boot::boot;
use qemu_machine::kernel::Kernel;
use qemu_machine::libraries::copy_program;
use reconcile::command::Programs;
use reconcile::{Action, Desired, Finding, PackageManager, Plan, Transaction};
use root::Root;
use serde_json::{Value, json};
use support::real;

const INIT: &str = concat!(
    include_str!("../../guest/first.sh"),
    include_str!("../../guest/steps.sh"),
    include_str!("../../guest/module.sh")
);
const NOW: u64 = 1_790_000_000;

/// Not a test: the program that runs in the machine.
#[test]
fn child() {
    let Ok(step) = fs::read_to_string("/run/step") else { return };
    let root = Root::open(Path::new("/")).unwrap();
    let programs = Programs::of(&root).unwrap();
    let mut desired = Desired::default();
    match step.trim() {
        "load" => desired.push(Action::module("vgem", "for the test")),
        // The emulated processor has no VMX, so that it fails behind what it needs.
        "fails" => desired.push(Action::module("kvm-intel", "for the test")),
        "unheard-of" => desired.push(Action::module("no-such-module", "for the test")),
        _ => {}
    }
    let mut work = Transaction::begin(&root, &mut |_| {}).unwrap().by(Some(PackageManager::new(
        &programs,
        Duration::ZERO,
        None,
    )));
    let plan = Plan::make(&root, &desired, work.receipt(), None, false, NOW);
    let carried = work.execute(&plan, NOW, &mut |_| {}).unwrap();
    let texts = |findings: &[Finding]| findings.iter().map(|it| it.text.clone()).collect::<Vec<_>>();
    let came = json!({
        "planned": plan.changes.iter().map(|it| format!("{:?} {}: {} → {}", it.change, it.path.display(), it.from, it.to))
            .collect::<Vec<_>>(),
        "done": carried.done,
        "failed": texts(&carried.failed),
        "left": texts(&plan.left),
        "found": plan.found,
        "bare": work.receipt().entries.is_empty(),
    });
    fs::write("/run/came", format!("\n{came}\n")).unwrap();
}

#[test]
fn real_a_module_is_loaded_with_what_it_needs_and_undo_unloads_what_came_unless_it_is_in_use() {
    let programs = ["qemu-system-x86_64", "setpriv", "timeout", "busybox", "kmod", "ldd", "xz"];
    let Some([kernels]) = real::require_made(["ROCWORKER_KERNELS"], &programs) else { return };
    let place = tempfile::tempdir().unwrap();
    let kernel = Kernel::unpacked_in(&kernels.join("bookworm"));
    let booted = boot(kernel.image(), &archive(&kernel), place.path());
    eprintln!("Linux {} ({}): {:.1} s", kernel.release(), booted.accelerator, booted.took.as_secs_f64());
    hold(&booted.answers);
}

/// The last line of a step's output, which the child has written.
#[track_caller]
fn came(answers: &Answers, step: &str) -> Value {
    let last = answers.said(step).lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|_| panic!("{step}: {:#?}", answers.of(step)))
}

#[track_caller]
fn hold(answers: &Answers) {
    let loaded = |step: &str| answers.said(step).lines().map(str::to_owned).collect::<BTreeSet<_>>();
    assert!(answers.said("depmod").contains("vgem.ko: "), "{:#?}", answers.of("depmod"));
    let before = loaded("before");
    assert!(!before.contains("vgem"), "{before:?}");

    let nothing = came(answers, "nothing");
    let said = nothing["failed"][0].as_str().unwrap();
    assert!(said.contains("Module no-such-module not found"), "{nothing:#}");
    assert_eq!(nothing["bare"], true, "{nothing:#}");

    let fails = came(answers, "fails");
    let said = fails["failed"][0].as_str().unwrap();
    assert!(said.contains("could not insert") && said.ends_with("dmesg"), "{fails:#}");
    assert_eq!(fails["bare"], true, "{fails:#}");
    assert_eq!(loaded("failed"), before, "what a module needs goes again with it");

    let load = came(answers, "load");
    assert_eq!(load["planned"], json!(["Create module:vgem: nothing → loaded"]), "{load:#}");
    assert_eq!((&load["done"], &load["failed"]), (&json!(["module:vgem"]), &json!([])), "{load:#}");
    let with = loaded("loaded");
    assert!(with.contains("vgem") && with.contains("drm_shmem_helper"), "{with:?}");
    assert_eq!(came(answers, "again")["planned"], json!([]));

    let undo = came(answers, "undo");
    assert_eq!((&undo["bare"], &undo["failed"]), (&json!(true), &json!([])), "{undo:#}");
    assert_eq!(loaded("undone"), before, "{undo:#}");

    // Somebody unloads it, in the boot in which it was loaded.
    let taken = came(answers, "taken");
    assert_eq!(taken["planned"], json!(["Repair module:vgem: nothing → loaded"]), "{taken:#}");

    let in_use = came(answers, "in-use");
    let said = in_use["left"][0].as_str().unwrap();
    assert!(said.starts_with("it stays loaded until the machine is restarted: it is in use "), "{in_use:#}");
    assert_eq!(in_use["bare"], true, "{in_use:#}");
    assert_eq!(loaded("kept"), with);

    let found = came(answers, "found");
    assert_eq!((&found["found"], &found["planned"]), (&json!(["module:vgem"]), &json!([])), "{found:#}");
    assert_eq!(came(answers, "left")["planned"], json!([]));
    assert!(loaded("theirs").contains("vgem"), "what somebody has loaded stays");
}

fn archive(kernel: &Kernel) -> Vec<u8> {
    let mut archive = Archive::default();
    let mut libraries = BTreeSet::new();
    archive.file("init", 0o755, INIT.as_bytes());
    archive.character_device("dev/console", 0o600, (5, 1));
    archive.copy("bin/busybox", 0o755, &real::program("busybox").unwrap());
    copy_program(&mut archive, &mut libraries, "sbin/kmod", &real::program("kmod").unwrap());
    for tool in ["modprobe", "rmmod", "depmod"] {
        archive.link(&format!("sbin/{tool}"), "kmod");
    }
    copy_program(&mut archive, &mut libraries, "test/it", &std::env::current_exe().unwrap());
    kernel.modules_into(&mut archive, &["vgem", "kvm-intel"]);
    archive.folder("var/lib");
    archive.finish()
}
