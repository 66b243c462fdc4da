//! What a configuration says.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use config::{Config, Devices, Managed, NamedBy, Off, Size};
use root::Root;

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(Path::new("/etc/rocworker/config.yaml"), text).map_err(|error| error.to_string())
}

#[test]
fn the_sample_says_what_no_file_means() {
    let sample = parse(include_str!("../../../templates/config.yaml")).unwrap();
    let none = parse("").unwrap();
    assert_eq!(
        (&sample.gpus, &sample.devices, &sample.tags, &sample.cdi),
        (&none.gpus, &none.devices, &none.tags, &none.cdi)
    );
    assert_eq!(
        (&sample.permissions, &sample.module_options, &sample.wrapper, &sample.containerd),
        (&none.permissions, &none.module_options, &none.wrapper, &none.containerd)
    );
    assert_eq!(
        (&sample.docker, &sample.crio, &sample.concourse, &sample.driver, &sample.restart),
        (&none.docker, &none.crio, &none.concourse, &none.driver, &none.restart)
    );
    assert_eq!((&sample.boot, &sample.daemon, &sample.exporter), (&none.boot, &none.daemon, &none.exporter));
    assert_eq!(sample.inventory, none.inventory);
    assert_eq!(none.cdi.path, Path::new("/etc/cdi/amd.json"));
    assert_eq!(none.cdi.names, [NamedBy::Index, NamedBy::Uuid, NamedBy::Pci]);
}

#[test]
fn devices_are_a_comma_list_a_list_or_a_number() {
    let listed = |words: &[&str]| Devices::Listed(words.iter().map(|word| (*word).to_owned()).collect());
    for (text, devices) in [
        ("gpu-device-ids: all", Devices::All),
        ("gpu-device-ids: [all]", Devices::All),
        ("gpu-device-ids: discrete", Devices::Discrete),
        ("gpu-device-ids: [discrete]", Devices::Discrete),
        ("gpu-device-ids: 0", listed(&["0"])),
        ("gpu-device-ids: \"0,1\"", listed(&["0", "1"])),
        ("gpu-device-ids: 0, 1,0", listed(&["0", "1"])),
        ("gpu-device-ids: [0, renderD129, 0000:64:00.0]", listed(&["0", "renderD129", "0000:64:00.0"])),
        ("gpu-device-ids:\n- GPU-00ff00ff00ff00ff\n", listed(&["GPU-00ff00ff00ff00ff"])),
    ] {
        assert_eq!(parse(text).unwrap().devices, devices, "{text}");
    }
}

#[test]
fn what_containers_get_beside_a_gpu_is_read_as_people_write_it() {
    let text = "wrapper:\n  edits:\n    shm-size: 8G\n    memlock: unlimited\n    hsa-override-gfx-version: {gfx1103: 11.0.0}\n";
    let edits = parse(text).unwrap().wrapper.edits;
    assert_eq!((edits.shm_size, edits.memlock), (Some(Size::Bytes(8 << 30)), Some(Size::Unlimited)));
    assert_eq!(edits.hsa_override_gfx_version["gfx1103"], "11.0.0");
    let edits = parse("wrapper:\n  edits: {memlock: 65536}\n").unwrap().wrapper.edits;
    assert_eq!((edits.shm_size, edits.memlock), (None, Some(Size::Bytes(65536))));
}

#[test]
fn the_older_enable_gpu_is_understood() {
    for (text, gpus, needs_gpu) in [
        ("enable-gpu: true", Managed::On(()), false),
        ("enable-gpu: false", Managed::Off(Off::NoGpu), false),
        ("enable-gpu: true\ncompute-runtime: rocm", Managed::On(()), true),
        ("compute-runtime: cuda", Managed::Off(Off::Cuda), false),
    ] {
        let config = parse(text).unwrap();
        assert_eq!((config.gpus, config.needs_gpu), (gpus, needs_gpu), "{text}");
    }
}

#[test]
fn an_inventory_has_groups_in_order_and_a_user_for_names_without_one() {
    let text = "inventory:\n  user: ops\n  groups:\n    mi300: [gpu1, root@gpu3]\n    all:\n    - gpu1\n    - 10.0.0.7\n";
    let inventory = parse(text).unwrap().inventory;
    let groups: Vec<&str> = inventory.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(groups, ["mi300", "all"]);
    let hosts = inventory.group("mi300").unwrap().hosts.iter().cloned();
    let hosts: Vec<String> = hosts.map(|host| inventory.with_user(host).to_string()).collect();
    assert_eq!(hosts, ["ops@gpu1", "root@gpu3"]);
    assert_eq!(inventory.group("mi200").unwrap_err(), "no group \"mi200\": the groups are mi300, all");
    let none = parse("").unwrap().inventory.group("mi300").unwrap_err();
    assert!(none.ends_with("write inventory: {groups: {mi300: [gpu1, gpu2]}} into config.yaml"), "{none}");
}

#[test]
fn a_file_that_others_could_have_written_or_that_is_no_config_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("etc/rocworker/config.yaml");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let root = Root::open(dir.path()).unwrap();
    assert_eq!(Config::read(&root).unwrap().devices, Devices::All, "no file is no error");

    fs::write(&path, "tag: a\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let error = Config::read(&root).unwrap_err().to_string();
    assert!(error.contains("can be written by others") && error.contains("config.yaml"), "{error}");

    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&path, vec![b'#'; 10 << 20]).unwrap();
    let error = Config::read(&root).unwrap_err().to_string();
    assert!(error.contains("config.yaml is larger than"), "{error}");

    fs::write(&path, b"tag: a\ncdi:\n  path: /\xff\n").unwrap();
    let error = Config::read(&root).unwrap_err().to_string();
    assert!(error.contains("config.yaml:3: this line is not UTF-8"), "{error}");
}
