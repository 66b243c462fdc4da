//! The README's quick start for Juju. Juju is not to be had here: what its commands name is held against the packed charm,
//! whose dispatch is run as `juju deploy` would have it run.

use support::captures;
use support::document::{quick_start, text};
use support::stage::{Stage, stdout};

use crate::charm::machines::WORKER_UNIT;
use crate::charm::packed::{Charm, DEFAULTS, WORKER};
use crate::charm::yaml::yaml;

/// A status without the worker's version, which is known on some machines only.
fn without_version(status: &str) -> String {
    let is_version =
        |word: &&str| word.strip_prefix("(v").is_some_and(|rest| rest.starts_with(char::is_numeric));
    status.split(' ').filter(|word| !is_version(word)).collect::<Vec<_>>().join(" ")
}

/// dpkg and apply would say so one after the other.
#[test]
fn the_readme_says_once_before_the_quick_starts_that_their_commands_run_as_root() {
    let readme = text("README.md");
    let (_, section) = readme.split_once("\n## Quick start\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let (introduction, starts) = section.split_once("\n### ").unwrap();
    assert!(introduction.contains("run the commands as root."), "{introduction}");
    assert!(!starts.contains("as root"), "{starts}");
}

#[test]
fn real_the_readmes_quick_start_deploys_what_charmcraft_packs_and_its_unit_is_ready() {
    let (commands, rest) = quick_start("Juju");
    assert_eq!(rest, [""; 0]);
    let [dist, pack, deploy, integrate, status] =
        commands.iter().map(String::as_str).collect::<Vec<_>>().try_into().unwrap();
    assert_eq!(dist, "cargo xtask dist");
    // Without options charmcraft packs in a container of LXD's; `Charm::packed` has it pack where it runs.
    assert_eq!(pack, "cd target/dist/charm && charmcraft pack");
    let Some(charm) = Charm::packed() else { return };

    let ["juju", "deploy", file, application, "--config", option] = deploy.split(' ').collect::<Vec<_>>()[..]
    else {
        panic!("{deploy}")
    };
    let (option, value) = option.split_once('=').unwrap();
    let options = DEFAULTS.replacen('{', &format!("{{\"{option}\":{value},"), 1);
    let file = file.strip_prefix("./").unwrap();
    assert!(charm.archives.iter().any(|archive| archive.ends_with(file)), "{file}: {:?}", charm.archives);
    assert_eq!(yaml()["name"], application);
    let endpoint = integrate.strip_prefix("juju integrate ").unwrap().split(' ').next().unwrap();
    let (of, endpoint) = endpoint.split_once(':').unwrap();
    assert_eq!(of, application);
    assert_eq!(yaml()["requires"][endpoint]["interface"], "juju-info");

    let (asked, expected) = status.split_once('#').unwrap();
    assert_eq!(asked.trim_end(), format!("juju status {application}"));
    let stage = Stage::set(&captures::phoenix_beside_rtx4080());
    stage.put("etc/systemd/system/concourse-worker.service", WORKER_UNIT);
    stage.put("etc/group", "root:x:0:\nrender:x:104:\n");
    let script = [
        WORKER.to_owned(),
        charm.put(),
        charm.options(&options),
        charm.hook("hooks/install"),
        charm.hook("hooks/start"),
    ];
    let said = stdout(&stage.shell(&script.concat()));
    let last = said.lines().rfind(|line| line.starts_with("[\"status-set\"")).unwrap();
    let told: Vec<String> = serde_json::from_str(last).unwrap();
    assert_eq!(told[1], "active", "{said}");
    assert_eq!(without_version(&told[2]), without_version(expected.trim()), "{said}");
}
