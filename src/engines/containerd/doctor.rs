//! The system's containerd: its files as they were meant, and its own `config dump`: what all of them and its defaults
//! came to.

use std::path::Path;

use toml_edit::{DocumentMut, Item};

use super::desired::actions;
use super::{NAME, UNIT};
use crate::check::{About, Check};
use crate::engines::examined::{APPLY, CHECKS, Examined, PATIENCE};
use crate::engines::{Containerd, Version, Versions};

/// Where the runtimes of Kubernetes' interface are, by the version of the configuration: 3 and 4, 2, 1.
const SECTIONS: [&str; 3] = ["io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri", "cri"];

/// The first release whose CRI knows CDI.
const CDI: Version = Version { major: 1, minor: 7, patch: 0 };

/// The folders that it reads specs from unless it is told others.
const SPEC_FOLDERS: [&str; 2] = ["/etc/cdi", "/var/run/cdi"];

pub(super) fn check(examined: &Examined<'_>, versions: &mut Versions<'_>) -> Vec<Check> {
    let about = || About::one(CHECKS, NAME);
    let Some(containerd) = Containerd::read(examined.root, examined.config, versions) else {
        return vec![about().skipped("not installed")];
    };
    let wrapper = match examined.wrapper(NAME) {
        Ok(wrapper) => wrapper,
        Err(checks) => return checks,
    };
    let desired = actions(examined.config, &containerd, &examined.templates, wrapper);
    let mut checks = examined.as_meant(NAME, UNIT, &desired);
    checks.extend(effective(examined, &containerd, wrapper));
    checks
}

/// What containerd says that it would run with.
fn effective(examined: &Examined<'_>, containerd: &Containerd, wrapper: &Path) -> Vec<Check> {
    let about = || About::one(CHECKS, NAME);
    let Some(programs) = examined.programs else {
        return vec![about().skipped("reads a Root: what is in effect only containerd itself tells")];
    };
    let version = match &containerd.version {
        Ok(version) => *version,
        Err(why) => return vec![about().failed(why.clone(), "see whether containerd can be run")],
    };
    let program = containerd.program.display().to_string();
    let main = containerd.main().map_or(&examined.config.containerd.config, |file| &file.path);
    let text = main.display().to_string();
    // Without the file 1.x dumps nothing, and runs with its defaults.
    let argv = if examined.root.exists(main) {
        vec![&*program, "--config", &text, "config", "dump"]
    } else {
        vec![&*program, "config", "default"]
    };
    let dump = match programs.run(&argv, PATIENCE) {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => return vec![about().failed(error.to_string(), format!("correct {text}"))],
    };
    let Ok(dump) = dump.parse::<DocumentMut>() else {
        return vec![about().failed("its config dump is no TOML", "run it by hand")];
    };
    let plugins = dump.get("plugins");
    let section = SECTIONS.iter().find_map(|name| plugins?.get(name));
    let Some(section) = section.filter(|_| !is_disabled(&dump)) else {
        return vec![about().skipped(
            "its CRI plugin is switched off (disabled_plugins), as Docker's packages have it: no runtime is set",
        )];
    };
    vec![runtime(examined, wrapper, section), cdi(examined, section, version)]
}

fn is_disabled(dump: &DocumentMut) -> bool {
    let disabled = dump.get("disabled_plugins").and_then(Item::as_array);
    disabled.is_some_and(|list| {
        let is_cri = |id: &str| SECTIONS.contains(&id);
        list.iter().filter_map(|value| value.as_str()).any(is_cri)
    })
}

fn at<'a>(item: &'a Item, path: &[&str]) -> Option<&'a Item> {
    path.iter().try_fold(item, |item, key| item.get(key))
}

fn runtime(examined: &Examined<'_>, wrapper: &Path, section: &Item) -> Check {
    let about = About::one(CHECKS, NAME);
    let name = &examined.config.containerd.runtime;
    let runtime = at(section, &["containerd", "runtimes", name]);
    let Some(runtime) = runtime else {
        return about.failed(format!("in effect it has no runtime {name}"), APPLY);
    };
    match at(runtime, &["options", "BinaryName"]).and_then(Item::as_str) {
        Some(program) if Path::new(program) == wrapper => {
            about.ok(format!("in effect the runtime {name} runs {program}"))
        }
        other => about.failed(
            format!("in effect the runtime {name} runs {}, not {}", other.unwrap_or("runc"), wrapper.display()),
            format!("{APPLY}; where that changes nothing, another file has it: see imports in containerd config dump"),
        ),
    }
}

fn cdi(examined: &Examined<'_>, section: &Item, version: Version) -> Check {
    let about = About::one(CHECKS, NAME);
    if version < CDI {
        return about.skipped(format!("containerd {version} knows no CDI (it came with 1.7)"));
    }
    if section.get("enable_cdi").and_then(Item::as_bool) != Some(true) {
        return about.failed("in effect CDI is off (enable_cdi)", APPLY);
    }
    let folder = examined.config.cdi.path.parent().unwrap_or(Path::new("/"));
    let named = section.get("cdi_spec_dirs").and_then(Item::as_array);
    let reads = named.map_or_else(
        || SPEC_FOLDERS.iter().any(|it| Path::new(it) == folder),
        |named| named.iter().filter_map(|it| it.as_str()).any(|it| Path::new(it) == folder),
    );
    let folder = folder.display();
    if reads {
        about.ok(format!("in effect CDI is on, and {folder} is read"))
    } else {
        about.failed(format!("in effect CDI is on, and {folder} is not read (cdi_spec_dirs)"), APPLY)
    }
}
