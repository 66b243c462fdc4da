//! TensorFusion's provider: the C libraries of crates/accelerator-amd, as they ship.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::command::Command;
use crate::programs;
use crate::refusal::Refusal;
use crate::repository;

/// A file of the folder, with the feature that makes it.
const LIBRARIES: [(&str, Option<&str>); 2] =
    [("libaccelerator_amd.so", None), ("libaccelerator_amd_v1.so", Some("v1"))];

/// `cargo xtask provider`.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if let Some(argument) = arguments.first() {
        return Err(Refusal::new(format!("provider takes no argument, and {argument} is one")));
    }
    let folder = built()?;
    println!("{}", folder.display());
    Ok(())
}

/// Builds the libraries and lays them, their headers and their file for pkg-config in a folder.
pub(crate) fn built() -> Result<PathBuf> {
    let target = programs::glibc_target();
    programs::require(&target, "the provider is for hosts with glibc")?;
    let folder = repository::target().join("provider");
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let unwinder = unwinder(&folder)?;
    for (name, feature) in LIBRARIES {
        Command::new(["cargo", "rustc", "--locked", "--release", "--target", &target])
            .arguments(["--package", "accelerator-amd", "--lib", "--crate-type", "cdylib"])
            .arguments(feature.iter().flat_map(|feature| ["--features", feature]))
            .arguments(["--", "-L", &format!("native={}", unwinder.display())])
            // The library has threads: its code stays, whatever closes it.
            .arguments([&format!("-Clink-arg=-Wl,-soname,{name}"), "-Clink-arg=-Wl,-z,nodelete"])
            .run()?;
        copy(&repository::target().join(&target).join("release/libaccelerator_amd.so"), &folder.join(name))?;
    }
    let package = repository::top().join("crates/accelerator-amd");
    for header in ["accelerator_amd.h", "accelerator_amd_v1.h"] {
        copy(&package.join("include").join(header), &folder.join(header))?;
    }
    let template = package.join("accelerator_amd.pc.in");
    let text = fs::read_to_string(&template).with_context(|| format!("reading {}", template.display()))?;
    let file = folder.join("accelerator_amd.pc");
    let filled = [
        ("@prefix@", "${pcfiledir}"),
        ("@libdir@", "${prefix}"),
        ("@includedir@", "${prefix}"),
        ("@version@", env!("CARGO_PKG_VERSION")),
    ];
    let text = filled.iter().fold(text, |text, (name, value)| text.replace(name, value));
    fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    Ok(folder)
}

/// A folder in which the linker finds the unwinder as an archive, so that the library needs no libgcc_s.so beside libc.
pub(crate) fn unwinder(folder: &Path) -> Result<PathBuf> {
    let archive = Command::new(["gcc", "-print-file-name=libgcc_eh.a"]).read()?;
    let linked = folder.join("link");
    fs::create_dir_all(&linked).with_context(|| format!("making {}", linked.display()))?;
    let ours = linked.join("libgcc_s.a");
    copy(Path::new(archive.trim()), &ours)?;
    let [source, object] =
        [repository::top().join("crates/accelerator-amd/link/find_object.c"), linked.join("find_object.o")];
    Command::new(["gcc", "-O2", "-fPIC", "-fvisibility=hidden", "-c", "-o"])
        .arguments([&object, &source])
        .run()?;
    Command::new(["ar", "r"]).arguments([&ours, &object]).run()?;
    Ok(linked)
}

pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(())
}
