//! What a configuration may say, and what is said of one that is wrong.

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
fn what_is_wrong_is_said_with_its_line() {
    for (text, line, part) in [
        ("tag: a\nmode: worker\n", 2, "unknown field `mode`"),
        ("tag:\nmode:\n", 2, "unknown field `mode`"),
        ("daemon:\n  settle-s:\n  interval-s: 1\n", 3, "daemon.interval-s is not between"),
        ("daemon:\n  settle-s:\n  unit: often\n", 3, "expected a boolean"),
        ("wrapper:\n  sharing: shared\n  quarantine: often\n", 3, "expected a boolean"),
        ("daemon:\n  settle-s:\n  settle-s: 1\n", 3, "duplicate field `settle-s`"),
        ("tag: a\ncdi:\n  names: [index]\n  kind: x\n", 4, "unknown field `kind`"),
        ("\ncompute-runtime: opencl\n", 2, "unknown variant `opencl`"),
        ("compute-runtime: [rocm]\n", 1, "compute-runtime"),
        ("tag: a\ngpu-device-ids: {a: b}\n", 2, "a comma list"),
        ("gpu-device-ids: []\n", 1, "names no GPU"),
        ("tag: a\ngpu-device-ids: all,0\n", 2, "all, discrete or a list"),
        ("tag: a\ngpu-device-ids: [discrete, 1]\n", 2, "all, discrete or a list"),
        ("gpu-device-ids: -1\n", 1, "a comma list"),
        ("enable-gpu: maybe\n", 1, "expected a boolean"),
        ("compute-runtime: rocm\nenable-gpu: false\n", 2, "contradict"),
        ("enable-gpu: true\ncompute-runtime: none\n", 1, "contradict"),
        ("tag:\n- ok\n- \"two words\"\n", 3, "two words"),
        ("cdi:\n  path: relative.json\n", 2, "not an absolute path"),
        ("cdi:\n  path: /etc/cdi/../../x.json\n", 2, "has a `..`"),
        ("cdi:\n  path: /etc/cdi/amd.txt\n", 2, "does not end in .json"),
        ("cdi:\n  path: /var/lib/rocworker/receipt.json\n", 2, "is rocworker's own (/var/lib/rocworker)"),
        ("docker:\n  config: /etc/rocworker/config.yaml\n", 2, "is rocworker's own (/etc/rocworker)"),
        ("cdi:\n  path: /proc/1/amd.json\n", 2, "is in /proc, which the kernel makes anew at each boot"),
        ("cdi:\n  path: //dev/./shm/amd.json\n", 2, "is in /dev, which the kernel makes anew at each boot"),
        ("cdi:\n  path: /sys/amd.json\n", 2, "is in /sys"),
        ("containerd:\n  config: /dev/stdin\n", 2, "is in /dev"),
        ("wrapper:\n  runtime: /proc/self/exe\n", 2, "wrapper.runtime \"/proc/self/exe\" is in /proc"),
        (
            "wrapper:\n  runtime: /usr/lib/rocworker/runc-amd-wrapper\n",
            2,
            "wrapper.runtime /usr/lib/rocworker/runc-amd-wrapper is the wrapper, which would run itself: name the real \
             runc",
        ),
        ("wrapper:\n  runtime: /opt/bin/runc-amd-wrapper\n", 2, "is the wrapper, which would run itself"),
        ("cdi:\n  names: []\n", 2, "cdi.names is empty"),
        ("cdi:\n  names: [serial]\n", 2, "unknown variant `serial`"),
        ("gpu-device-ids: 0\ncompute-runtime: none\n", 1, "keep one of the two"),
        ("tag: a\ngpu-device-ids: [[[[[[[[[[[[[[[[[0]]]]]]]]]]]]]]]]]\n", 2, "nested deeper"),
        ("schema_version: 2\n", 1, "schema_version 2"),
        (
            "inventory:\n  groups:\n    a: [x]\n    b: []\n",
            4,
            "inventory.groups.b lists no machines: write a list",
        ),
        ("inventory:\n  groups:\n    b:\n", 3, "inventory.groups.b lists no machines"),
        ("inventory:\n  groups:\n    a: [x, y, root@x]\n", 3, "inventory.groups.a lists x twice: remove one"),
        ("inventory:\n  groups:\n    a:\n    - x\n    - y\n    - x\n    b: [x]\n", 6, "lists x twice"),
        (
            "inventory:\n  groups:\n    a:\n    - fd00::1\n    - x\n    - fd00::1\n    b: [x]\n",
            6,
            "inventory.groups.a lists fd00::1 twice",
        ),
        (
            "daemon:\n  unit: true\ninventory:\n  groups:\n    unit: [x]\n    b: [y]\n    unit: [z]\n",
            7,
            "inventory.groups.unit is defined twice",
        ),
        ("tag: x\ninventory:\n  groups: {a: [x], a: [y]}\n", 3, "inventory.groups.a is defined twice"),
        (
            "inventory:\n  groups:\n    a: [x]\n    b: [y]\n    a: [z]\n",
            5,
            "inventory.groups.a is defined twice: merge the two lists",
        ),
        (
            "inventory:\n  groups:\n    a: [x]\n    b: [y, -oProxyCommand=z]\n",
            4,
            "is not a host name: write NAME or",
        ),
        (
            "inventory:\n  groups:\n    a: [\"gpu1:22\"]\n",
            3,
            "is not a host name: set the port in ~/.ssh/config",
        ),
        ("inventory:\n  groups:\n    a: x\n", 3, "expected a list of machines, as `[gpu1, root@gpu2]`"),
        ("inventory:\n  groups: [x]\n", 2, "groups with lists of machines, as"),
        ("inventory:\n  hosts: [x]\n", 2, "unknown field `hosts`"),
        ("inventory:\n  groups:\n    a b: [x]\n", 2, "is not a group name: use letters"),
        ("tag: a\ninventory:\n  user: two words\n", 3, "is not a user name: write one such as ops"),
        ("tag: a\ntag: b\n", 2, "duplicate"),
        ("permissions: 0666\n", 1, "permissions"),
        ("restart: later\n", 1, "unknown variant `later`"),
        ("module-options: {noretry: \"0 extra\"}\n", 1, "noretry=0 extra is not a parameter"),
        ("tag: a\nwrapper:\n  wait-limit-s: 61\n", 3, "wrapper.wait-limit-s is not between 0 and 60 seconds"),
        ("wrapper:\n  sharing: exclusive\n  default: all\n", 3, "does not go with sharing: exclusive"),
        ("wrapper:\n  runtime: runc\n", 2, "runc is not an absolute path"),
        ("containerd:\n  runtime: amd\nwrapper:\n  runtime: runc\n", 4, "runc is not an absolute path"),
        ("wrapper:\n  folders: [srv]\n", 2, "srv is not an absolute path"),
        ("wrapper:\n  folders: [/]\n", 2, "/ is not an absolute path beneath /"),
        ("wrapper:\n  edits:\n    memlock: 0\n", 3, "0 is not a size"),
        ("wrapper:\n  edits:\n    shm-size: 8GB\n", 3, "\"8GB\" is not a size such as 512M"),
        ("wrapper:\n  edits:\n    shm-size: unlimited\n", 3, "memory has an end"),
        (
            "wrapper:\n  edits:\n    hsa-override-gfx-version: {gfx1103: eleven}\n",
            3,
            "is not an architecture",
        ),
        ("docker:\n  runtime: runc\n", 2, "no name for rocworker's runtime"),
        ("docker:\n  config: daemon.json\n", 2, "docker.config \"daemon.json\" is not an absolute path"),
        ("concourse:\n  existing: replace\n", 2, "unknown variant `replace`"),
        (
            "exporter:\n  listen: 127.0.0.1\n",
            2,
            "exporter.listen \"127.0.0.1\" is no IP address with a port: write",
        ),
        ("exporter:\n  listen: 9401\n", 2, "\"9401\" is no IP address with a port"),
        ("exporter:\n  listen: :9401\n", 2, "\":9401\" is no IP address with a port"),
        ("exporter:\n  listen: localhost:9401\n", 2, "\"localhost:9401\" is no IP address with a port"),
        ("exporter:\n  listen: 0.0.0.0:65536\n", 2, "is no IP address with a port"),
        ("exporter:\n  listen: 0.0.0.0:0\n", 2, "has port 0, which no scrape can find"),
        ("exporter:\n  listen: 0.0.0.0:443\n", 2, "has a port below 1024, which only root may open"),
        ("exporter:\n  listen: \"[fe80::1%2]:9401\"\n", 2, "is no IP address with a port"),
        ("exporter:\n  listen: \"0.0.0.0:9401 --x\"\n", 2, "is no IP address with a port"),
        (
            "exporter:\n  listen: [::]:9401\n",
            2,
            "exporter.listen: a list is not a word or a number: put what begins with a bracket in quotes, as \"[::]:9401\"",
        ),
        ("exporter:\n  unit: true\n  web-config: web.yaml\n", 3, "\"web.yaml\" is not an absolute path"),
        ("exporter:\n  web-config: /etc/../web.yaml\n", 2, "\"/etc/../web.yaml\" has a `..`"),
        ("exporter: true\n", 1, "expected keys with values, as `unit: true`"),
        ("exporter:\n  web-config: \"/etc/a b.yaml\"\n", 2, "\"/etc/a b.yaml\" is no path that a unit takes"),
        ("exporter:\n  web-config: /etc/%n.yaml\n", 2, "is no path that a unit takes"),
        ("exporter:\n  web-config: \"/etc/x\\\"y\"\n", 2, "is no path that a unit takes"),
        (
            "exporter:\n  web-config: /root/web.yaml\n",
            2,
            "is in /root, which rocm-exporter.service does not see",
        ),
        ("exporter:\n  existing: adopt\n", 2, "unknown variant `adopt`"),
        ("exporter:\n  pcie-bw: true\n", 2, "unknown field `pcie-bw`"),
        ("tag: [a\n", 2, "expected"),
        ("tag: [a]\ngpu-de", 2, "could not find expected ':'"),
        ("- a\n", 1, "keys with values"),
        ("just words\n", 1, "keys with values"),
    ] {
        let error = parse(text).unwrap_err();
        let place = format!("/etc/rocworker/config.yaml:{line}: ");
        assert!(error.starts_with(&place) && error.contains(part), "{text:?}: {error}");
        assert!(!error.contains('\n') && !error.contains("at line"), "{error:?}");
    }
}

/// The keys beneath `section`, which the sentence about an unknown one lists, and those beneath them.
fn keys_beneath(section: &str) -> Vec<String> {
    let error = parse(&nested(&format!("{section}nokey"), "x")).err().unwrap_or_default();
    let Some((_, listed)) = error.split_once("unknown field `nokey`, expected ") else { return Vec::new() };
    let keys = listed.split('`').skip(1).step_by(2).map(|key| format!("{section}{key}"));
    keys.flat_map(|key| [vec![key.clone()], keys_beneath(&format!("{key}."))].concat()).collect()
}

/// `value` at `key`, such as `daemon.settle-s`.
fn nested(key: &str, value: &str) -> String {
    let lines = key.split('.').enumerate().map(|(depth, key)| format!("\n{}{key}:", "  ".repeat(depth)));
    format!("{} {value}\n", lines.collect::<String>())
}

/// A configuration without the text that it was read from.
fn meaning(text: &str) -> Result<String, String> {
    parse(text).map(|config| format!("{config:?}").replace(&format!("{text:?}"), "TEXT"))
}

#[test]
fn a_key_without_a_value_means_its_default() {
    let keys = keys_beneath("");
    for known in ["tag", "daemon.settle-s", "repositories.rocm.url", "wrapper.edits.hsa-override-gfx-version"]
    {
        assert!(keys.iter().any(|key| key == known), "{known} is not among {keys:?}");
    }
    // The section of an archive asks for one, whatever its keys say.
    let of_archive = |key: &String| key.starts_with("rocm.therock.");
    let texts = keys
        .iter()
        .filter(|key| !of_archive(key))
        .flat_map(|key| ["", "# 30", "~", "null"].map(|value| nested(key, value)));
    let flow = ["daemon: {settle-s: , unit: true}\n".to_owned()];
    let other: Vec<_> = texts.chain(flow).map(|text| (meaning(&text), text)).collect();
    let other: Vec<_> = other.iter().filter(|(it, _)| *it != meaning("")).collect();
    assert!(other.is_empty(), "{other:#?}");
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

#[test]
fn what_would_be_read_by_others_or_as_an_option_or_means_nothing_is_refused() {
    let secret = "repositories: {rocm: {url: \"https://me:secret@mirror/rocm\"}}";
    for (text, said) in [
        (secret, "auth.conf.d"),
        ("packages:\n  proxy: http://me:secret@proxy:3128", "apt.conf.d"),
        ("ROCM_BASE_URL: https://token@mirror/", "auth.conf.d"),
        ("rocm: {install: apt, packages: [\"-o\"]}", "is not the name of a package"),
        ("rocm: {install: apt, packages: [\"--reinstall\"]}", "is not the name of a package"),
        ("rocm: {install: apt, packages: [\"bash-\"]}", "is not the name of a package"),
        ("rocm: {install: apt, packages: [\"rocm/noble\"]}", "is not the name of a package"),
        ("rocm: {install: apt, packages: [\"rocm=1\"]}", "is not the name of a package"),
        ("repositories: {rocm: {url: \"https://a b/\"}}", "is no URL"),
        ("repositories: {rocm: {url: \"https://a/\\nSigned-By: /x\"}}", "is no URL"),
        ("repositories: {origin: \"x, n=*\"}", "is not one word"),
        ("repositories:\n  fingerprints: []", "is empty"),
        ("rocm:\n  install: apt\n  packages: []", "rocm.packages is empty"),
        ("rocm:\n  install: amdgpu-install\n  usecases: []", "rocm.usecases is empty"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(
            error.contains(said) && !error.contains("secret") && !error.contains("token"),
            "{text}: {error}"
        );
    }
    // An @ behind the host is a part of the path.
    parse("repositories: {rocm: {url: \"https://mirror/@amd/rocm\"}}").unwrap();
}
