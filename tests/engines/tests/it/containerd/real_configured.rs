//! Loads every configuration of tests/engines/configs with three releases of containerd: as it was, as
//! rocworker leaves it, and as undo leaves it.

use std::collections::BTreeSet;

use real_engines::configured::{Configured, Start, WRAPPER};
use real_engines::engine::{CONTAINERD_1_6, CONTAINERD_1_7, CONTAINERD_2_1, Engine, releases};
use reconcile::Kind;
use serde_json::{Value, json};

/// The configurations that rocworker leaves alone, with its reason, or that cannot be loaded anyway.
fn expected(engine: &Engine, name: &str) -> Expected {
    let is_1 = engine.name != "containerd 2.1";
    let is_3 = name.ends_with("-v3") || ["default-2.1", "conf-d-unused"].contains(&name);
    match name {
        "docker-package" => Expected::Said("CRI plugin is switched off"),
        "cri-disabled-v3" if !is_1 => Expected::Said("CRI plugin is switched off"),
        "amd-of-somebody-else" => {
            Expected::Said("runtime amd already, which runs /usr/bin/amd-container-runtime")
        }
        "drop-in-of-another-version" if is_1 => Expected::Said("newer.toml has version 3, and containerd 1."),
        "drop-in-of-another-version" => {
            Expected::Said("newer.toml has version 3 and the file that imports it 2")
        }
        "version-1" if !is_1 => Expected::Said("containerd config migrate"),
        "bom" if !is_1 => Expected::Said("byte order mark"),
        _ if is_1 && is_3 => Expected::Said("has version 3, and containerd 1."),
        _ => Expected::Configured,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Configured,
    Said(&'static str),
}

/// Configurations whose runc, or default runtime where they name no runc, has systemd make its cgroups.
const SYSTEMD: [&str; 10] = [
    "default-runtime-crun",
    "dotted-keys",
    "inline-tables",
    "kubeadm-v2",
    "kubeadm-v3",
    "nvidia-default",
    "nvidia-drop-in-v2",
    "nvidia-drop-in-v3",
    "quoted-keys-v3",
    "version-1",
];

#[test]
fn real_containerd_loads_what_apply_makes_and_our_keys_alone_differ() {
    for engine in releases() {
        let Some(unpacked) = engine.unpacked() else { return };
        let configured = Configured::set(&engine, &unpacked);
        let mut done = 0;
        for start in Start::all() {
            let name = format!("{} with {}", engine.name, start.name);
            configured.lay_out(&start);
            let files = configured.files();
            let desired = configured.wanted("");
            let said: Vec<&str> = desired.notes.iter().map(|note| note.text.as_str()).collect();
            match expected(&engine, &start.name) {
                Expected::Said(part) => {
                    assert!(desired.actions.is_empty(), "{name}: {desired:#?}");
                    assert!(said.iter().any(|said| said.contains(part)), "{name}: {said:#?}");
                    continue;
                }
                Expected::Configured => assert!(!desired.actions.is_empty(), "{name}: {said:#?}"),
            }
            let before = configured.effective().unwrap_or_else(|error| panic!("{name}: {error}"));
            configured.apply(&desired);
            let after = configured.effective().unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_ours(&name, &start.name, &engine, &after);
            assert_same(&name, &without_ours(before.clone()), &without_ours(after));

            // rocworker recognizes managed keys: a second run wants an equal state, and writes equal bytes.
            let ours = configured.files();
            let again = configured.wanted("");
            assert_eq!(again, desired, "{name}");
            configured.apply(&again);
            assert_eq!(configured.files(), ours, "{name}");

            configured.undo(&desired, &files);
            assert_eq!(configured.files(), files, "{name}");
            assert_same(&name, &in_order(before), &in_order(configured.effective().unwrap()));
            done += 1;
        }
        assert!(done >= 20, "{}: {done} configurations", engine.name);
    }
}

#[test]
fn real_containerd_looks_for_cdi_where_the_spec_is() {
    for engine in releases().into_iter().filter(|engine| *engine != CONTAINERD_1_6) {
        let Some(unpacked) = engine.unpacked() else { return };
        let configured = Configured::set(&engine, &unpacked);
        for (start, theirs) in [
            ("debian", &["/etc/cdi", "/var/run/cdi"][..]),
            ("cdi-off-v3", &["/etc/cdi"]),
            ("default-1.7", &["/etc/cdi", "/var/run/cdi"]),
        ] {
            let start = Start::all().into_iter().find(|known| known.name == start).unwrap();
            let name = format!("{} with {}", engine.name, start.name);
            if expected(&engine, &start.name) != Expected::Configured {
                continue;
            }
            configured.lay_out(&start);
            let files = configured.files();
            let desired = configured.wanted("cdi: {path: /srv/cdi/amd.json}");
            configured.apply(&desired);
            let effective = configured.effective().unwrap();
            let dirs = [theirs, &["/srv/cdi"]].concat();
            assert_eq!(cri(&effective)["cdi_spec_dirs"], json!(dirs), "{name}");
            assert_eq!(configured.wanted("cdi: {path: /srv/cdi/amd.json}"), desired, "{name}");
            configured.undo(&desired, &files);
            assert_eq!(configured.files(), files, "{name}");
        }
    }
}

/// `containerd config migrate` of 2.1 gives the CRI section another name, with what apply had put into it for 1.7, and
/// writes out all that was left to default. What undo leaves of that is in effect what the file as it was before apply
/// comes to when it is migrated.
#[test]
fn real_containerd_migrates_what_apply_made_and_undo_finds_it_again() {
    let (Some(old), Some(new)) = (CONTAINERD_1_7.unpacked(), CONTAINERD_2_1.unpacked()) else { return };
    let (old, new) = (Configured::set(&CONTAINERD_1_7, &old), Configured::set(&CONTAINERD_2_1, &new));
    let migrated = |text: &str| {
        new.put("config.toml", text);
        new.config("migrate").well()
    };
    let effective = |name: &str, text: &str| {
        new.put("config.toml", text);
        new.effective().unwrap_or_else(|error| panic!("{name}: {error}: {text}"))
    };
    let starts = ["debian", "default-1.7", "kubeadm-v2", "nvidia-default", "registry-mirrors"];
    let cdi_off = "version = 2\n\n[plugins.\"io.containerd.grpc.v1.cri\"]\nenable_cdi = false # mine\n";
    for (name, text) in starts.map(|name| (name, None)).into_iter().chain([("cdi-off", Some(cdi_off))]) {
        match text {
            Some(text) => old.put("config.toml", text),
            None => old.lay_out(&Start::all().into_iter().find(|known| known.name == name).unwrap()),
        }
        let before = old.text("config.toml");
        let desired = old.wanted("");
        old.apply(&desired);
        let after = migrated(&old.text("config.toml"));
        assert!(after.contains(WRAPPER) && !after.contains("grpc.v1.cri\".containerd.runtimes"), "{after}");
        let Kind::Edited(edit) = &desired.actions[0].kind else { panic!("{name}: {desired:#?}") };
        let back = edit.revert(&after, Some(&before)).unwrap();
        assert_eq!(
            (back.left, back.went),
            (Vec::new(), Vec::new()),
            "{name}: nobody has changed or added anything"
        );
        let text = back.text.unwrap();
        assert!(!text.contains(WRAPPER) && !text.contains("runtimes.amd"), "{name}: {text}");
        let expected = effective(name, &migrated(&before));
        assert_eq!(cri(&expected)["enable_cdi"], json!(!before.contains("enable_cdi = false")), "{name}");
        assert_same(name, &expected, &effective(name, &text));
    }
}

fn cri(effective: &Value) -> &Value {
    let plugins = &effective["plugins"];
    let new = &plugins["io.containerd.cri.v1.runtime"];
    if new.is_null() { &plugins["io.containerd.grpc.v1.cri"] } else { new }
}

#[track_caller]
fn assert_ours(name: &str, start: &str, engine: &Engine, after: &Value) {
    let cri = cri(after);
    let runtimes = &cri["containerd"]["runtimes"];
    let amd = &runtimes["amd"];
    assert_eq!(amd["runtime_type"], "io.containerd.runc.v2", "{name}");
    assert_eq!(amd["options"]["BinaryName"], WRAPPER, "{name}");
    let cgroup = amd["options"]["SystemdCgroup"].as_bool().unwrap_or(false);
    assert_eq!(cgroup, SYSTEMD.contains(&start), "{name}");
    if *engine != CONTAINERD_1_6 {
        assert_eq!(cri["enable_cdi"], true, "{name}");
    }
}

/// containerd 1.x lists the files that it has loaded, in no order; 2.x what is written.
fn in_order(mut effective: Value) -> Value {
    let imports = effective["imports"].as_array().into_iter().flatten().filter_map(Value::as_str);
    effective["imports"] = json!(imports.collect::<BTreeSet<_>>());
    effective
}

/// The effective configuration without rocworker's keys.
fn without_ours(mut effective: Value) -> Value {
    for section in ["io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri"] {
        let Some(cri) = effective["plugins"].get_mut(section).and_then(Value::as_object_mut) else {
            continue;
        };
        cri.remove("enable_cdi");
        if let Some(runtimes) =
            cri.get_mut("containerd").and_then(|containerd| containerd["runtimes"].as_object_mut())
        {
            runtimes.remove("amd");
        }
    }
    let ours = ["/etc/containerd/config.toml", "/etc/containerd/conf.d/rocworker*.toml"];
    let imports = effective["imports"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let imports: BTreeSet<&str> = imports.filter(|path| !ours.contains(path)).collect();
    effective["imports"] = json!(imports);
    effective
}

/// Says each place where two values differ.
#[track_caller]
fn assert_same(name: &str, before: &Value, after: &Value) {
    let mut differences = Vec::new();
    differ(String::new(), before, after, &mut differences);
    assert!(differences.is_empty(), "{name}: {differences:#?}");
}

fn differ(path: String, before: &Value, after: &Value, differences: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                let of =
                    |table: &serde_json::Map<String, Value>| table.get(key).cloned().unwrap_or(Value::Null);
                differ(format!("{path}.{key}"), &of(a), &of(b), differences);
            }
        }
        (before, after) if before != after => differences.push(format!("{path}: {before} became {after}")),
        _ => {}
    }
}
