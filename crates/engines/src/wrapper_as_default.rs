//! Whether an engine runs the wrapper where nobody chooses a runtime.

use std::path::{Path, PathBuf};

use config::Config;
use root::{Identity, Root};
use serde_json::Value;

use super::{ALL, Engines, FOLDERS};
use crate::program::{INSTALLED, PACKAGED, is_managed};

/// Runtimes that people install. One that is not at a usual place is still not the wrapper.
const KNOWN: [&str; 6] = ["runc", "youki", "runsc", "krun", "ocijail", "amd-container-runtime"];
/// Runtimes with variants: each of these names, alone or followed by a dash and anything.
const FAMILIES: [&str; 4] = ["kata", "nvidia", "sysbox", "crun"];

/// The longest program that is read, in bytes: more than a runtime has in any build.
const LIMIT: usize = 256 << 20;

/// The file in which an engine names its default runtime, and whether that `is` the wrapper or `may be` it.
pub(super) type NamedRuntime = (PathBuf, &'static str);

/// An engine's name, and where it says that the wrapper is or may be its default runtime.
pub type WrapperAsDefault = (&'static str, NamedRuntime);

/// The engines whose default runtime is the wrapper, or may be it.
///
/// # Errors
/// Says why rocworker cannot tell which engines these are.
pub fn with_wrapper_as_default(
    root: &Root,
    config: &Config,
    engines: &Engines,
) -> Result<Vec<WrapperAsDefault>, String> {
    let of = |engine: &super::Engine| {
        let named = (engine.has_wrapper_as_default)(root, config, engines)?;
        Ok(named.map(|named| (engine.name, named)))
    };
    ALL.iter().filter_map(|engine| of(engine).transpose()).collect()
}

/// Whether the runtime that has this name runs the wrapper. `entry`: what the engine says of it. `managed`: the managed runtime's name.
pub(super) fn runs_wrapper(
    root: &Root,
    (name, managed): (&str, &str),
    entry: Option<&Value>,
) -> Option<&'static str> {
    let of = |key| entry?.pointer(key)?.as_str().filter(|it: &&str| !it.is_empty());
    let programs =
        ["/path", "/runtime_path", "/options/BinaryName", "/options/binary_name", "/runtime_engine"];
    let programs: Vec<&str> = programs.into_iter().filter_map(of).collect();
    let kind =
        of("/runtimeType").or_else(|| of("/runtime_type")).filter(|kind| !["oci", "vm"].contains(kind));
    match (programs.as_slice(), kind) {
        ([], _) if name == managed => Some("is"),
        ([], kind) => is_wrapper(root, &[kind.unwrap_or(name)]),
        // The engine runs each of the programs: a shim, and what it starts.
        (programs, _) => programs.iter().find_map(|program| is_wrapper(root, &[program])),
    }
}

/// Whether a runtime is the wrapper: `is`, `may be`, or not at all. `programs`: where an engine looks for it.
pub(super) fn is_wrapper(root: &Root, programs: &[&str]) -> Option<&'static str> {
    let found: Vec<_> = programs.iter().map(|program| of_program(root, program)).collect();
    match found.contains(&Some(true)) {
        true => Some("is"),
        false => found.iter().all(Option::is_none).then_some("may be"),
    }
}

/// The runc that engines find, where that is the wrapper.
pub(super) fn of_runc(root: &Root) -> Option<NamedRuntime> {
    let paths = FOLDERS.iter().map(|folder| Path::new(folder).join("runc"));
    let mut paths = paths.filter(|path| of_path(root, path) == Some(true));
    Some((paths.next()?, "is"))
}

/// Whether a program is the wrapper; `None`: that is unknown.
fn of_program(root: &Root, program: &str) -> Option<bool> {
    let path = Path::new(program);
    if path.is_absolute() {
        return of_path(root, path);
    }
    if program.is_empty() || program.contains('/') {
        return None;
    }
    // A service may have another PATH.
    let name = of_shim(program).unwrap_or(program);
    let there = FOLDERS.iter().map(|folder| Path::new(folder).join(name));
    let there: Vec<_> = there.filter(|path| root.is_there(path)).collect();
    let found: Vec<_> = there.iter().map(|path| of_path(root, path)).collect();
    match found.contains(&Some(true)) {
        true => Some(true),
        false if found.is_empty() => is_known(name).then_some(false),
        false => found.iter().all(Option::is_some).then_some(false),
    }
}

fn of_path(root: &Root, path: &Path) -> Option<bool> {
    if path.to_str().is_some_and(is_managed) {
        return Some(true);
    }
    let Ok(found) = root.identity(path) else {
        let name = path.file_name().and_then(|name| name.to_str());
        // A link may lead to where the wrapper is put next.
        return name.filter(|name| is_known(name) && !root.is_there(path)).map(|_| false);
    };
    Some([PACKAGED, INSTALLED].iter().any(|wrapper| is_same(root, (path, &found), wrapper)))
}

fn is_same(root: &Root, (path, found): (&Path, &Identity), wrapper: &str) -> bool {
    let Ok(of_wrapper) = root.identity(wrapper) else { return false };
    let is_one = (found.device, found.inode) == (of_wrapper.device, of_wrapper.inode);
    let read = |path: &Path| root.read(path, LIMIT).ok();
    is_one || found.len == of_wrapper.len && read(path).is_some_and(|it| Some(it) == read(wrapper.as_ref()))
}

fn is_known(name: &str) -> bool {
    let mut rest = FAMILIES.iter().filter_map(|family| name.strip_prefix(family));
    KNOWN.contains(&name) || rest.any(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The runtime in a shim's name, as `runc` in `io.containerd.runc.v2`.
fn of_shim(name: &str) -> Option<&str> {
    let (rest, version) = name.rsplit_once('.')?;
    let is_version = version.strip_prefix('v').is_some_and(|number| number.parse::<u32>().is_ok());
    rest.rsplit_once('.').map(|(_, runtime)| runtime).filter(|_| is_version)
}
