//! An operator's templates in the place of the program's: which are followed, and what is said of those that are not.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cdi::{Spec, Wanted, wanted};
use config::Config;
use config::selection::select;
use host::facts::Facts;
use layout::Nodes;
use render::{Sums, Templates};
use rocworker::desired::policy::{self, Callers, policy};
use root::Root;
use support::captures;
use support::detect::scratch;
use tempfile::TempDir;

const CDI: &str = include_str!("../../../templates/cdi/amd.json");
const WRAPPER: &str = include_str!("../../../templates/wrapper.json");

/// A machine with these files in the folder of overrides.
fn machine(files: &[(&str, &str)]) -> TempDir {
    let dir = scratch();
    captures::phoenix().lay_out(dir.path(), Nodes::Recorded).unwrap();
    for (name, text) in files {
        put(&dir, name, text);
    }
    dir
}

fn put(dir: &TempDir, name: &str, text: &str) {
    let path = dir.path().join("etc/rocworker/templates").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
}

fn templates(dir: &TempDir) -> Templates {
    Templates::read(&Root::open(dir.path()).unwrap())
}

fn config() -> Config {
    Config::parse(Path::new("/etc/rocworker/config.yaml"), "").unwrap()
}

fn spec(dir: &TempDir) -> Spec {
    let (config, facts) = (config(), Facts::read(&Root::open(dir.path()).unwrap()));
    match wanted(&config, &select(&config, &facts).unwrap(), &facts.inventory) {
        Wanted::Spec(spec) => spec,
        other => unreachable!("{other:?}"),
    }
}

fn policy_text(dir: &TempDir) -> Result<String, String> {
    let (config, facts) = (config(), Facts::read(&Root::open(dir.path()).unwrap()));
    let policy = policy(&config, &select(&config, &facts).unwrap(), &facts.inventory, Callers::default());
    policy::text(&templates(dir), &policy).map_err(|error| error.to_string().replace(&shown(dir), "ROOT"))
}

fn cdi_text(dir: &TempDir) -> Result<String, String> {
    cdi::text(&templates(dir), &spec(dir)).map_err(|error| error.to_string().replace(&shown(dir), "ROOT"))
}

fn shown(dir: &TempDir) -> String {
    dir.path().display().to_string()
}

#[test]
fn an_override_comes_before_the_programs_own() {
    let plain = machine(&[]);
    let with_env = CDI.replacen(
        "\n  \"containerEdits\": {\n",
        "\n  \"containerEdits\": {\n    \"env\": [\"SITE=lyon\"],\n",
        1,
    );
    assert_ne!(with_env, CDI);
    let dir = machine(&[("cdi/amd.json", &with_env)]);
    let expected = cdi_text(&plain).unwrap().replacen(
        "\n  \"containerEdits\": {\n",
        "\n  \"containerEdits\": {\n    \"env\": [\"SITE=lyon\"],\n",
        1,
    );
    assert_eq!(cdi_text(&dir).unwrap(), expected);
    // The other templates are the program's own.
    assert_eq!(policy_text(&dir).unwrap(), policy_text(&plain).unwrap());

    let closed = WRAPPER.replacen("{{ requests }}", "\"named\"", 1);
    assert!(policy_text(&machine(&[("wrapper.json", &closed)])).unwrap().contains("\"requests\": \"named\""));
}

#[test]
fn a_broken_override_is_said_with_its_file_and_line() {
    let (third, fourth) = (CDI.replacen("{{ kind }}", "{{ knid }}", 1), CDI.replacen("{% for", "{% fro", 1));
    let cases = [
        (third, "ROOT/etc/rocworker/templates/cdi/amd.json:3: undefined value"),
        (fourth, "ROOT/etc/rocworker/templates/cdi/amd.json:5: templates know no fro, only if, elif, "),
        (
            CDI.replacen("\"devices\"", "devices", 1),
            "ROOT/etc/rocworker/templates/cdi/amd.json gives a spec that cannot be read again: ",
        ),
        (
            CDI.replacen("{{ kind }}", "\"nvidia.com/gpu\"", 1),
            "ROOT/etc/rocworker/templates/cdi/amd.json gives another spec than it was asked for: nvidia.com/gpu",
        ),
        (
            CDI.replacen("{{ version }}", "\"9.9.9\"", 1),
            "ROOT/etc/rocworker/templates/cdi/amd.json gives a spec that is not valid CDI: ",
        ),
    ];
    for (text, expected) in cases {
        let said = cdi_text(&machine(&[("cdi/amd.json", &text)])).unwrap_err();
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn a_policy_that_names_other_gpus_is_not_written() {
    let cases = [
        (
            WRAPPER.replacen("{{ gpu.index }}", "7", 1),
            "ROOT/etc/rocworker/templates/wrapper.json gives a policy that names other GPUs than it was asked for: \
             7 (0000:64:00.0, renderD128) and not 0 (0000:64:00.0, renderD128)",
        ),
        (
            "{\"schema_version\": 1, \"requests\": \"all\"}".to_owned(),
            "ROOT/etc/rocworker/templates/wrapper.json gives a policy that names other GPUs than it was asked for: \
             all of the machine and not 0 (0000:64:00.0, renderD128)",
        ),
        (
            WRAPPER.replacen("\"requests\"", "\"request\"", 1),
            "ROOT/etc/rocworker/templates/wrapper.json gives a policy that cannot be read again: not a policy: unknown \
             field `request`",
        ),
    ];
    for (text, expected) in cases {
        let said = policy_text(&machine(&[("wrapper.json", &text)])).unwrap_err();
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn what_others_can_write_is_not_believed() {
    let dir = machine(&[("cdi/amd.json", CDI)]);
    let file = dir.path().join("etc/rocworker/templates/cdi/amd.json");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let why = "the override of template cdi/amd.json is not followed: ROOT/etc/rocworker/templates/cdi/amd.json can be \
               written by others (mode 0666): chmod go-w ROOT/etc/rocworker/templates/cdi/amd.json";
    assert_eq!(cdi_text(&dir).unwrap_err(), why);
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
    let why = cdi_text(&dir).unwrap_err();
    assert!(why.ends_with("is a symbolic link, not a regular file: move it out of the way"), "{why}");
}

#[test]
fn a_file_that_overrides_nothing_is_said() {
    let dir = machine(&[
        ("amd.json", CDI),
        ("cdi/amd.json~", CDI),
        ("wrapper.json", WRAPPER),
        ("cdi/x/y/z.json", ""),
    ]);
    let templates = templates(&dir);
    let unknown: Vec<String> = templates
        .unknown()
        .iter()
        .map(|path| path.display().to_string().replace(&shown(&dir), "ROOT"))
        .collect();
    assert_eq!(
        unknown,
        [
            "ROOT/etc/rocworker/templates/amd.json",
            "ROOT/etc/rocworker/templates/cdi/amd.json~",
            "ROOT/etc/rocworker/templates/cdi/x/y",
        ]
    );
    assert!(Templates::built_in().unknown().is_empty());
}

fn sums(of_override: &str, built_in: &str) -> BTreeMap<String, Sums> {
    let sums = Sums { r#override: of_override.to_owned(), built_in: built_in.to_owned() };
    BTreeMap::from([("wrapper.json".to_owned(), sums)])
}

#[test]
fn an_override_is_known_by_its_text_and_stale_until_it_is_edited_once_what_it_overrides_has_changed() {
    let dir = machine(&[("wrapper.json", "x")]);
    let templates = templates(&dir);
    let new = templates.first_seen(&BTreeMap::new());
    let [(name, known)] = new.iter().collect::<Vec<_>>()[..] else { unreachable!("{new:?}") };
    // printf x | sha256sum
    let x = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    assert_eq!((name.as_str(), known.r#override.as_str(), known.built_in.len()), ("wrapper.json", x, 64));
    let older = sums(x, "of an older version");
    for (memory, stale, seen) in [
        (&BTreeMap::new(), &[][..], &new),
        (&new, &[], &new),
        (&older, &["wrapper.json".to_owned()], &older),
        // Edited since: whoever did it has seen the template of today.
        (&sums("another", "of an older version"), &[], &new),
    ] {
        assert_eq!((&templates.stale(memory)[..], &templates.first_seen(memory)), (stale, seen));
    }
    assert_eq!(Templates::built_in().first_seen(&older), BTreeMap::new());
}
