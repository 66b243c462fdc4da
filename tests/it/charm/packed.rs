//! The charm as charmcraft packs it: its own dispatch, on a stage on which a laid-out machine stands at /.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::captures;
use support::real;
use support::said::Said;
use support::stage::{Stage, stdout};

use crate::charm::machines::WORKER_UNIT;
use crate::charm::record::{calls, golden};
use crate::charm::unit::Unit;
use crate::packages::debian::worker::repack;

/// charmcraft in a folder of its own, which `cargo xtask test` makes.
const CHARMCRAFT: &str = "ROCWORKER_CHARMCRAFT";

/// The releases of Ubuntu that the charm is for, and their names.
const RELEASES: [(&str, &str); 2] = [("22.04", "jammy"), ("24.04", "noble")];

/// charmcraft packs without a container only on the system that it packs for: it asks os-release, and nothing else of
/// the system is used, for nothing is compiled and no package is installed.
const PACK: &str = r#"
set -e
mount --bind "$1/os-release" /usr/lib/os-release
if [ ! -L /etc/os-release ]; then mount --bind "$1/os-release" /etc/os-release; fi
cd "$1/charm"
exec "$2/bin/python" -m charmcraft pack --destructive-mode --platform "$3"
"#;

/// Packs the folder that `cargo xtask dist` makes for each release, and gives the folder that a unit's agent unpacks the newest
/// one's into.
fn packed(folder: &Path, charmcraft: &Path, made: &Path) -> (Vec<PathBuf>, PathBuf) {
    run(Command::new("cp").arg("-a").arg(made.join("charm")).arg(folder));
    let archives = RELEASES.map(|release| packed_for(release, folder, charmcraft));
    let unpacked = folder.join("unpacked");
    let python = charmcraft.join("bin/python");
    run(Command::new(python).args(["-m", "zipfile", "-e"]).arg(&archives[1]).arg(&unpacked));
    // zipfile keeps no modes, as the agent does.
    fs::set_permissions(unpacked.join("dispatch"), fs::Permissions::from_mode(0o755)).unwrap();
    (archives.into(), unpacked)
}

fn packed_for((version, name): (&str, &str), folder: &Path, charmcraft: &Path) -> PathBuf {
    let os_release = format!(
        "NAME=\"Ubuntu\"\nID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"{version}\"\nVERSION_CODENAME={name}\n\
         UBUNTU_CODENAME={name}\nPRETTY_NAME=\"Ubuntu {version} LTS\"\n"
    );
    fs::write(folder.join("os-release"), os_release).unwrap();
    let mut pack = Command::new("unshare");
    pack.args(["--mount", "--propagation", "private", "sh", "-c", PACK, "pack"]).arg(folder).arg(charmcraft);
    run(pack.arg(format!("ubuntu@{version}:amd64")).env("HOME", folder).env_remove("CI"));
    folder.join(format!("charm/rocworker_ubuntu@{version}-amd64.charm"))
}

fn run(command: &mut Command) -> String {
    Said::from(command.output().unwrap()).well()
}

/// Stands in for systemctl: one worker, which ends when it is told to land, and which somebody has to start again.
/// What it is called for stands among what Juju is told, so that the order of the two can be seen. Whatever a hook runs is
/// told of the model's proxy; dpkg's scripts need none.
const SYSTEMCTL: &str = r#"#!/bin/sh
state=$STAND_IN/worker
[ -e "$state" ] || echo 1 > "$state"
case "$*" in
    show*concourse-worker.service)
        if [ -e "$state.landed" ]; then echo ActiveState=inactive; else echo ActiveState=active; fi
        printf 'ActiveEnterTimestampMonotonic=1000\nInvocationID=%s\nMainPID=1\n' "$(cat "$state")"
        exit ;;
    show*) printf 'ActiveState=inactive\nActiveEnterTimestampMonotonic=0\nInvocationID=\nMainPID=0\n'; exit ;;
    kill*SIGUSR1*) touch "$state.landed" ;;
    start*concourse-worker*) rm "$state.landed"; echo $(($(cat "$state") + 1)) > "$state" ;;
esac
printf '["systemctl"' >> "$STAND_IN/pending"
for word; do printf ', "%s"' "$word" >> "$STAND_IN/pending"; done
[ "$http_proxy" = http://proxy.example:3128 ] || [ -n "$DPKG_MAINTSCRIPT_NAME" ] || printf ', "without the model'"'"'s proxy"' >> "$STAND_IN/pending"
echo ']' >> "$STAND_IN/pending"
"#;

/// A container of LXC's without engines, wherever this runs, and in it a worker as the Concourse charm makes it; the programs answer to
/// `--version`.
pub(crate) const WORKER: &str = r"
for folder in bin sbin local/bin local/sbin; do rm -f /usr/$folder/containerd /usr/$folder/dockerd; done
mkdir -p /run/systemd/system /var/lib/concourse/bin /var/lib/concourse-worker /var/lib/juju/agents/unit-rocworker-0
mkdir -p /run/systemd; echo lxc > /run/systemd/container
# Of groups that the laid-out machine does not have.
: > /var/lib/dpkg/statoverride
printf '#!/bin/sh\necho 7.14.3\n' > /var/lib/concourse/bin/concourse
printf '#!/bin/sh\necho containerd github.com/containerd/containerd v2.1.4 1234\n' > /var/lib/concourse/bin/containerd
chmod 755 /var/lib/concourse/bin/concourse /var/lib/concourse/bin/containerd
printf 'CONCOURSE_RUNTIME=containerd\nCONCOURSE_WORK_DIR=/var/lib/concourse-worker/work_dir\n' > /var/lib/concourse-worker/worker-config.env
";

/// What the agent does for a hook: the charm's dispatch in its folder, and what was told counts when it ends with 0.
fn dispatched(unit: &Unit, path: &str) -> String {
    let folder = unit.folder().display();
    let environment: Vec<String> = unit.environment(path).iter().map(|it| format!("'{it}'")).collect();
    format!(
        "cd /var/lib/juju/agents/unit-rocworker-0/charm
: > {folder}/pending
if env -i {} ./dispatch > {folder}/said 2>&1
then echo '== {path}'; cat {folder}/said {folder}/pending
else echo '== {path} ended with' $? 'and nothing of this counts'; cat {folder}/said {folder}/pending; fi
",
        environment.join(" ")
    )
}

/// The record of a script, each hook's calls as a golden file has them.
fn recorded(out: &str, unit: &Unit) -> String {
    let folder = unit.folder().to_str().unwrap();
    let mut text = String::new();
    let mut told = String::new();
    for line in out.lines() {
        if line.starts_with('[') {
            told.push_str(&format!("{line}\n"));
            continue;
        }
        text.push_str(&golden(&calls(&std::mem::take(&mut told))));
        text.push_str(&format!("{}\n", line.replace(folder, "STAND-IN")));
    }
    text.push_str(&golden(&calls(&told)));
    text
}

pub(crate) struct Charm {
    unit: Unit,
    /// One for each release.
    pub(crate) archives: Vec<PathBuf>,
    unpacked: PathBuf,
    charmcraft: PathBuf,
}

impl Charm {
    pub(crate) fn packed() -> Option<Self> {
        let [charmcraft, made] = real::require_made([CHARMCRAFT, "ROCWORKER_DIST"], &["unshare", "python3"])?;
        if !real::require_root(&["unshare"]) {
            return None;
        }
        let unit = Unit::on_disk();
        unit.program("systemctl", SYSTEMCTL);
        unit.program("systemd-run", "#!/bin/sh\n");
        let (archives, unpacked) = packed(unit.folder(), &charmcraft, &made);
        Some(Self { unit, archives, unpacked, charmcraft })
    }

    pub(crate) fn put(&self) -> String {
        let place = "/var/lib/juju/agents/unit-rocworker-0/charm";
        format!("rm -rf {place}; cp -a {} {place}\n", self.unpacked.display())
    }

    pub(crate) fn hook(&self, path: &str) -> String {
        dispatched(&self.unit, path)
    }

    pub(crate) fn options(&self, json: &str) -> String {
        format!("cat > {}/config.json <<'END'\n{json}\nEND\n", self.unit.folder().display())
    }

    fn parameters(&self, json: &str) -> String {
        format!("cat > {}/params.json <<'END'\n{json}\nEND\n", self.unit.folder().display())
    }
}

/// The machine's files by type, mode, owner and path, and what is in them.
const LISTING: &str = "find /etc /usr/local -printf '%y %m %U:%G %p %l\\n' | sort; find /etc /usr/local -type f -exec \
                       sha256sum {} + | sort";

/// What `juju deploy` sends, with each option that has a default.
pub(crate) const DEFAULTS: &str = r#"{"mode":"auto","compute-runtime":"auto","gpu-device-ids":"all","tag":"","sharing":"shared",
"packages":"","driver":"keep","repository":"","restart":"drain","remove-driver":false}"#;

/// What charmcraft itself says of a packed charm.
fn is_sound(charm: &Charm, archive: &Path) {
    let analysed = run(Command::new(charm.charmcraft.join("bin/python"))
        .args(["-m", "charmcraft", "analyse", "--format", "json"])
        .arg(archive)
        .env("HOME", charm.unit.folder()));
    let analysed: serde_json::Value = serde_json::from_str(&analysed).unwrap();
    let results: Vec<_> =
        analysed.as_array().unwrap().iter().map(|it| (&it["name"], &it["result"])).collect();
    assert!(results.iter().all(|(_, result)| *result != "error" && *result != "warning"), "{results:?}");
    assert!(results.iter().any(|(name, result)| *name == "entrypoint" && *result == "ok"), "{results:?}");
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_charmcraft_packs_the_charm_and_its_dispatch_runs_every_hook_and_action() {
    let Some(charm) = Charm::packed() else { return };
    for archive in &charm.archives {
        is_sound(&charm, archive);
    }

    // The worker has no tags of its own.
    let tagged = DEFAULTS.replacen('{', "{\"concourse-tags\":true,", 1);
    let stage = Stage::set(&captures::phoenix_beside_rtx4080());
    stage.put("etc/systemd/system/concourse-worker.service", WORKER_UNIT);
    stage.put("etc/group", "root:x:0:\nrender:x:104:\n");
    let newer = charm.unit.folder().join("newer.deb");
    repack(&charm.unpacked.join("rocworker.deb"), &newer, "0.1.0-2", |_| {});
    let is_of = |expected: &str| {
        format!("cat /etc/rocworker/concourse.env 2>/dev/null | grep -c {expected} || true\n")
    };
    let script = [
        WORKER.to_owned(),
        format!("({LISTING}) > /run/before\n"),
        charm.put(),
        charm.options(&tagged),
        charm.hook("hooks/install"),
        charm.hook("hooks/start"),
        charm.options(&tagged.replace(r#""tag":"""#, r#""tag":"linux""#)),
        charm.hook("hooks/config-changed"),
        is_of("CONCOURSE_TAG=linux,gpu"),
        charm.hook("hooks/config-changed"),
        charm.options(&tagged.replace(r#""compute-runtime":"auto""#, r#""compute-runtime":"none""#)),
        charm.hook("hooks/config-changed"),
        "test -e /etc/cdi/amd.json || echo no CDI spec\n".to_owned(),
        charm.options(&tagged),
        charm.hook("hooks/config-changed"),
        // Another version of the package comes with another revision.
        format!("cp {} {}/rocworker.deb\n", newer.display(), charm.unpacked.display()),
        charm.put(),
        charm.hook("hooks/upgrade-charm"),
        "dpkg-query --show rocworker\n".to_owned(),
        "grep ExecStart /etc/systemd/system/rocworker-boot.service\n".to_owned(),
        charm.hook("hooks/update-status"),
        charm.hook("hooks/stop"),
        charm.hook("hooks/remove"),
        format!("({LISTING}) > /run/after\ndiff /run/before /run/after && echo the machine as it was\n"),
    ];
    let out = stdout(&stage.shell(&script.concat()));
    insta::assert_snapshot!("a-units-life", recorded(&out, &charm.unit));

    let script = [
        WORKER.to_owned(),
        charm.put(),
        charm.options(&tagged),
        charm.hook("hooks/install"),
        charm.hook("actions/detect"),
        charm.hook("actions/doctor"),
        charm.hook("actions/status"),
        "rm /etc/cdi/amd.json\n".to_owned(),
        charm.hook("actions/status"),
        charm.hook("actions/plan"),
        charm.hook("actions/apply"),
        charm.hook("actions/report"),
        "ls /var/lib/rocworker/reports | wc -l\n".to_owned(),
        charm.hook("actions/lease-list"),
        charm.parameters(r#"{"force":true}"#),
        charm.hook("actions/undo"),
    ];
    let out = stdout(&stage.shell(&script.concat()));
    insta::assert_snapshot!("actions", recorded(&out, &charm.unit));
}
