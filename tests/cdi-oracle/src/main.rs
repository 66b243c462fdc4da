//! A judge of CDI specs that nobody here wrote: the container-device-interface crate, as a command.
//!
//!     cdi-oracle list DIR              every qualified device name, one a line, sorted
//!     cdi-oracle inject DIR NAME...    the nodes of an empty OCI spec after the injection: path type major:minor
//!
//! A node whose numbers the spec leaves out is stat'ed, so `inject` needs it to be there.
//! Exit code 0: the crate accepted it; 1: it refused, with its reason on stderr; 2: wrong arguments.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what this program is for")]
#![allow(
    clippy::disallowed_methods,
    reason = "it reads the folder that it is given, as the crate under it does"
)]

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use container_device_interface::cache::Cache;
use container_device_interface::spec::read_spec;
use container_device_interface::spec_dirs::with_spec_dirs;
use container_device_interface::utils::is_cdi_spec;
use oci_spec::runtime::Spec;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let answer = match arguments.as_slice() {
        ["list", folder] => list(folder),
        ["inject", folder, names @ ..] if !names.is_empty() => inject(folder, names),
        _ => {
            eprintln!("usage: cdi-oracle list DIR | cdi-oracle inject DIR NAME...");
            return ExitCode::from(2);
        }
    };
    match answer {
        Ok(lines) => {
            lines.iter().for_each(|line| println!("{line}"));
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("cdi-oracle: {reason:#}");
            ExitCode::FAILURE
        }
    }
}

fn list(folder: &str) -> Result<Vec<String>> {
    Ok(load(folder)?.list_devices())
}

fn inject(folder: &str, names: &[&str]) -> Result<Vec<String>> {
    let mut cache = load(folder)?;
    let mut spec = Spec::default();
    // The defaults of oci-spec hold no device, but say so here rather than trust it.
    if let Some(linux) = spec.linux_mut() {
        linux.set_devices(None);
    }
    cache
        .inject_devices(Some(&mut spec), names.iter().map(ToString::to_string).collect())
        .map_err(|error| anyhow::anyhow!("{error:#}"))?;
    let devices = spec.linux().as_ref().and_then(|linux| linux.devices().as_ref());
    let Some(devices) = devices else { bail!("the injection of {} added no node", names.join(", ")) };
    Ok(devices
        .iter()
        .map(|node| {
            format!("{} {} {}:{}", node.path().display(), node.typ().as_str(), node.major(), node.minor())
        })
        .collect())
}

/// Reads every spec in the folder. The crate passes over a folder that is not there, and one without a
/// spec, in silence: here both are refusals, or a test with a wrong path would be content.
fn load(folder: &str) -> Result<Cache> {
    if !Path::new(folder).is_dir() {
        bail!("{folder} is no folder");
    }
    read_each(folder)?;
    let mut cache = Cache::default();
    with_spec_dirs(&[folder])(&mut cache);
    if let Err(error) = cache.refresh() {
        bail!("the specs in {folder} together are refused: {error:#}");
    }
    if cache.list_devices().is_empty() {
        bail!("no .json or .yaml file in {folder} names a device");
    }
    Ok(cache)
}

/// Reads each spec on its own: the cache drops all of a refusal but its outermost sentence.
fn read_each(folder: &str) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("listing {folder}"))? {
        let path = entry.with_context(|| format!("listing {folder}"))?.path();
        if is_cdi_spec(&path) {
            read_spec(&path, 0).with_context(|| format!("{} is refused", path.display()))?;
        }
    }
    Ok(())
}
