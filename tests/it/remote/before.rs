//! Machines that had something of rocworker's before, and what a person does to one between install and uninstall.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use crate::remote::asker::{Asker, has_the_tree, is_as_before, tree};

const CONFIG: &str = "etc/rocworker/config.yaml";

#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_package_that_dpkg_knew_before_is_as_before_in_the_end() {
    let Some(asker) = Asker::new() else { return };
    let gpu1 = asker.machine("gpu1", |m| m);
    let deb = asker.put_package(&gpu1, asker.package());
    let status = || gpu1.shell("dpkg-query -W -f '${db:Status-Status}' rocworker").well();
    for (set_up, known) in
        [(format!("dpkg -i {deb}"), "installed"), ("dpkg -r rocworker".to_owned(), "config-files")]
    {
        gpu1.shell(&set_up).well();
        assert_eq!(status(), known);
        let before = tree(&gpu1);
        asker.install(&["gpu1"]).well();
        let said = asker.remote(&["uninstall", "-o", "json", "gpu1"]);
        let version = if known == "installed" { "\"0.1.0-1\"" } else { "null" };
        assert!(said.clone().well().contains(&format!("\"version\": {version}")), "{said:?}");
        assert!(said.stderr.ends_with("previous state restored\n"), "{said:?}");
        assert_eq!(status(), known);
        has_the_tree(&gpu1, &before);
    }
}

#[test]
fn real_an_exporter_that_ran_before_is_not_touched_by_an_install_that_is_refused() {
    let Some(asker) = Asker::new() else { return };
    let gpu1 = asker.machine("gpu1", |m| m);
    let deb = asker.put_package(&gpu1, asker.package());
    gpu1.put(CONFIG, "exporter: {listen: \"0.0.0.0:9402\"}\n");
    gpu1.shell(&format!("dpkg -i {deb}; rocworker apply --only exporter")).well();
    let pid = || gpu1.shell("systemctl show --property=MainPID rocm-exporter").well();
    let runs = pid();
    for (config, refused) in [
        ("exporter: {listen: nonsense}\n", Some("config.yaml:1:")),
        ("compute-runtime: none\n", Some("turns AMD's GPUs off (compute-runtime")),
        ("exporter: {listen: \"0.0.0.0:9402\"}\n", None),
    ] {
        gpu1.put(CONFIG, config);
        let before = tree(&gpu1);
        let said = asker.install(&["gpu1"]);
        if let Some(part) = refused {
            assert!(said.stderr.contains(part) && said.stderr.contains("machine is unchanged"), "{said:?}");
        } else {
            assert_eq!(said.clone().well(), "Metrics available at: http://gpu1:9402/metrics\n", "{said:?}");
            asker.remote(&["uninstall", "gpu1"]).well();
        }
        has_the_tree(&gpu1, &before);
        assert_eq!(pid(), runs, "{config}");
    }

    // What install writes would not count there.
    let memory = r#"{"schema_version":1,"config":{"other":"/srv/c.yaml","sha256":"0"}}"#;
    gpu1.put("var/lib/rocworker/memory.json", memory);
    let before = tree(&gpu1);
    let said = asker.install(&["gpu1"]);
    assert!(
        said.stderr.contains("then rocworker --config /srv/c.yaml apply; the machine is unchanged"),
        "{said:?}"
    );
    has_the_tree(&gpu1, &before);
}

#[test]
fn real_a_package_that_is_too_old_is_refused_and_nothing_changes() {
    let Some(asker) = Asker::new() else { return };
    let gpu1 = asker.machine("gpu1", |m| m);
    let old = asker.old_package();
    let before = tree(&gpu1);
    let said = asker.remote(&["install", "--package", "/root/old.deb", "gpu1"]);
    for part in ["rocworker 0.0.1-1 refuses, maybe because it is too old", "the machine is unchanged"] {
        assert!(said.stderr.contains(part), "{part}: {said:?}");
    }
    is_as_before(&gpu1, &before);
    let deb = asker.put_package(&gpu1, &old);
    gpu1.shell(&format!("dpkg -i {deb}")).well();
    let before = tree(&gpu1);
    let said = asker.install(&["gpu1"]);
    assert!(said.stderr.contains("rocworker 0.0.1-1 refuses, maybe because it is too old"), "{said:?}");
    has_the_tree(&gpu1, &before);
}

#[test]
fn real_what_a_person_has_edited_since_stays_and_is_said() {
    let Some(asker) = Asker::new() else { return };
    let gpu1 = asker.machine("gpu1", |m| m);
    asker.install(&["gpu1"]).well();

    // The exporter runs on, and what apply wants is not there.
    let text = fs::read_to_string(gpu1.path(CONFIG)).unwrap();
    gpu1.put(CONFIG, &text.replace('}', ", web-config: /etc/rocworker/web.yaml}"));
    gpu1.put("etc/rocworker/web.yaml", "basic_auth_users: {}\n");
    fs::set_permissions(gpu1.path("etc/rocworker/web.yaml"), fs::Permissions::from_mode(0o600)).unwrap();
    let said = asker.install(&["gpu1"]);
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    assert!(said.stderr.contains("apply --only exporter` failed"), "{said:?}");
    fs::remove_file(gpu1.path("etc/rocworker/web.yaml")).unwrap();

    gpu1.put(CONFIG, &format!("# first\n{text}# last\n"));
    let unit = "etc/systemd/system/rocm-exporter.service";
    let written = fs::read_to_string(gpu1.path(unit)).unwrap();
    gpu1.put(unit, &format!("{written}# edited\n"));
    let said = asker.remote(&["uninstall", "gpu1"]);
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    assert!(said.stderr.contains("unit was not reverted"), "{said:?}");
    // No room in the configuration's folder.
    let edited = fs::read_to_string(gpu1.path(CONFIG)).unwrap();
    let full = "mount -t tmpfs -o size=8k none /mnt; cp /etc/rocworker/config.yaml /mnt; cat /dev/zero > /mnt/fill || :; \
                mount --bind /mnt /etc/rocworker";
    gpu1.shell(full).well();
    let said = asker.remote(&["uninstall", "--force", "gpu1"]);
    assert!(said.stderr.contains("config.yaml cannot be restored, and stays as it is"), "{said:?}");
    assert_eq!(fs::read_to_string(gpu1.path(CONFIG)).unwrap(), edited);
    gpu1.shell("umount /etc/rocworker").well();
    let said = asker.remote(&["uninstall", "--force", "gpu1"]);
    for part in
        ["restored, except:", "only the key exporter was removed", "`dpkg --purge rocworker` removes it"]
    {
        assert!(said.stderr.contains(part), "{part}: {said:?}");
    }
    assert_eq!(fs::read_to_string(gpu1.path(CONFIG)).unwrap(), "# first\n# last\n");
    assert!(!gpu1.path(unit).exists() && !gpu1.path("/var/lib/rocworker-remote").exists());
}

#[test]
fn real_a_configuration_that_a_person_wrote_between_two_installs_stays() {
    let Some(asker) = Asker::new() else { return };
    let gpu1 = asker.machine("gpu1", |m| m);
    asker.install(&["gpu1"]).well();
    let own = "# of a person\nboot: {unit: false}\n";
    gpu1.put(CONFIG, own);
    asker.install(&["gpu1"]).well();
    let said = asker.remote(&["uninstall", "gpu1"]);
    assert!(said.stderr.contains("only the key exporter was removed"), "{said:?}");
    assert_eq!(fs::read_to_string(gpu1.path(CONFIG)).unwrap(), own);
}

#[test]
fn real_an_uninstall_waits_for_an_install_that_has_not_saved_the_state_yet() {
    let Some(asker) = Asker::new() else { return };
    let gpu1 = asker.machine("gpu1", |m| m);
    let before = tree(&gpu1);
    let work = "/var/lib/rocworker-remote.tmp";
    let install = format!(
        "mkdir -p {work}/state; echo not-installed > {work}/state/package; \
         flock /run/rocworker-remote.lock sh -c 'echo locked; sleep 2; mv {work}/state /var/lib/rocworker-remote'"
    );
    let mut install = gpu1.command(&["sh", "-c", &install]).stdout(Stdio::piped()).spawn().unwrap();
    let mut locked = [0; 7];
    install.stdout.as_mut().unwrap().read_exact(&mut locked).unwrap();
    let said = asker.remote(&["uninstall", "gpu1"]);
    assert!(said.stderr.contains("previous state restored"), "{said:?}");
    install.wait().unwrap();
    is_as_before(&gpu1, &before);
}
