use support::machines::{Machine, Shell};

use crate::remote::asker::{Asker, is_as_before, tree};

#[test]
fn real_a_bare_machine_gets_the_exporter_once_and_is_as_before_in_the_end() {
    let Some(asker) = Asker::new() else { return };
    from_bare_to_bare(&asker, &asker.machine("gpu1", |m| m));
}

/// Debian's busybox prefers what it has itself, a dpkg among them, to what PATH names.
#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_machine_whose_shell_is_busybox_gets_the_exporter_too() {
    let Some(asker) = Asker::new() else { return };
    from_bare_to_bare(&asker, &asker.machine("gpu1", |m| m.shell(Shell::Busybox)));
}

fn from_bare_to_bare(asker: &Asker, gpu1: &Machine<'_>) {
    let before = tree(gpu1);
    assert_eq!(asker.remote(&["check", "gpu1"]).status.code(), Some(3));
    let said = asker.install(&["gpu1"]);
    assert_eq!(said.clone().well(), "Metrics available at: http://gpu1:9401/metrics\n", "{said:?}");
    assert!(said.stderr.contains("anyone who can reach this host"), "{said:?}");
    assert_eq!(
        gpu1.shell("cat /etc/rocworker/config.yaml; stat -c %a /etc/rocworker/config.yaml; ls /etc/cdi 2> /dev/null || :; ls /etc/systemd/system")
            .well(),
        "exporter: {listen: \"0.0.0.0:9401\"}\n644\nmulti-user.target.wants\nrocm-exporter.service\n"
    );
    let checked = asker.remote(&["check", "gpu1"]).well();
    assert_eq!(checked, "gpu1: rocworker 0.1.0-1, unit own, active, answers on 0.0.0.0:9401\n");
    assert_eq!(asker.remote(&["check", "--host", "gpu1"]).well(), checked);
    let said = asker.remote(&["check"]);
    assert_eq!((said.status.code(), said.stderr.contains("name the hosts")), (Some(2), true), "{said:?}");
    // What the daemon, an upgrade and a person see afterwards: nothing is missing.
    assert!(gpu1.run(&["rocworker", "status"]).status.code() == Some(0));

    let installed = tree(gpu1);
    let started = || gpu1.shell("systemctl show --property=MainPID rocm-exporter").well();
    let pid = started();
    assert_eq!(asker.install(&["gpu1"]).well(), "Metrics available at: http://gpu1:9401/metrics\n");
    assert_eq!((tree(gpu1).differences(&[&installed]), started()), (Vec::new(), pid));

    let json = asker.remote(&["check", "-o", "json", "gpu1"]).well();
    for part in ["\"answers_here\": true", "\"unit\": \"own\"", "\"code\": 0", "\"listen\": \"0.0.0.0:9401\""]
    {
        assert!(json.contains(part), "{part}: {json}");
    }

    gpu1.shell("systemctl stop rocm-exporter").well();
    let said = asker.remote(&["check", "gpu1"]);
    assert_eq!(said.status.code(), Some(3), "{said:?}");
    let stderr = said.stderr.to_lowercase();
    assert!(stderr.contains("does not answer on its host: 0.0.0.0:9401: connection refused"), "{said:?}");

    let said = asker.remote(&["uninstall", "gpu1"]);
    assert!(said.stderr.contains("gpu1: exporter removed, previous state restored"), "{said:?}");
    said.well();
    is_as_before(gpu1, &before);
    let said = asker.remote(&["uninstall", "gpu1"]);
    assert!(said.stderr.contains("nothing to do"), "{said:?}");
    assert_eq!(said.well(), "");
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_configuration_that_was_there_is_followed_and_restored() {
    let Some(asker) = Asker::new() else { return };
    let gpu1 = asker.machine("gpu1", |m| m);
    gpu1.put("etc/rocworker/config.yaml", "# ours\nrestart: never");
    gpu1.put("etc/rocworker/templates/README", "mine\n");
    gpu1.shell("chmod 600 /etc/rocworker/config.yaml").well();
    let before = tree(&gpu1);
    let said = asker.install(&["gpu1", "--listen", "0.0.0.0:9500"]);
    assert_eq!(said.clone().well(), "Metrics available at: http://gpu1:9500/metrics\n", "{said:?}");
    assert_eq!(
        gpu1.shell("cat /etc/rocworker/config.yaml; stat -c %a /etc/rocworker/config.yaml").well(),
        "# ours\nrestart: never\nexporter: {listen: \"0.0.0.0:9500\"}\n600\n"
    );
    let said = asker.install(&["gpu1", "--listen", "0.0.0.0:9600"]);
    assert!(said.stderr.contains("already has a key exporter with other values"), "{said:?}");
    assert_eq!(said.status.code(), Some(1));
    asker.remote(&["uninstall", "gpu1"]).well();
    is_as_before(&gpu1, &before);

    // One that says nonsense stops it, and nothing has changed.
    gpu1.put("etc/rocworker/config.yaml", "nonsense: 1\n");
    let before = tree(&gpu1);
    let said = asker.install(&["gpu1"]);
    assert!(said.stderr.contains("config.yaml:1:"), "{said:?}");
    assert!(said.stderr.contains("the machine is unchanged"), "{said:?}");
    is_as_before(&gpu1, &before);
}
