//! deploy/tensorfusion/test-amd-cluster.sh and the hypervisor's command, with stand-ins that record their calls and know
//! nothing of what the real programs do.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

use super::{deployed, yaml};

/// A stand-in finds what a call is about by its words, and answers with the file of that name: NAME is printed, NAME.fails
/// ends the call with 1, NAME.hangs keeps it, and NAME.grows is a table that has one row more at each look.
const KUBECTL: &str = r#"#!/bin/sh
echo "kubectl $*" >>DESK/called
case " $* " in
    *" get node "*) name=node ;;
    *" label node "*) name=label ;;
    *"/provider-config.yaml "*) name=provider ;;
    *"/tensorfusioncluster.yaml "*) name=cluster ;;
    *"/workload.yaml "*) name=workload ;;
    *"component=hypervisor"*) name=hypervisors ;;
    *" get gpupool "*) name=pool ;;
    *" get gpus "*) name=gpus ;;
    *" get gpu "*) name=gpu ;;
    *" delete pod "*) name=delete ;;
    *" logs "*) name=logs ;;
    *" get events "*) name=events ;;
    *".status.phase}"*) name=phase ;;
    *"gpu-ids}"*) name=gpu-ids ;;
    *"/health "*) name=health ;;
    *"tf_gpu_usage"*) name=tf_gpu_usage ;;
    *"tf_worker_usage"*) name=tf_worker_usage ;;
    *"tf_node_metrics"*) name=tf_node_metrics ;;
    *) echo "no stand-in for: $*" >&2; exit 9 ;;
esac
if [ -e "DESK/$name.hangs" ]; then exec sleep 60; fi
if [ -e "DESK/$name.fails" ]; then echo "Error from server ($name)" >&2; exit 1; fi
if [ -e "DESK/$name.grows" ]; then
    echo x >>"DESK/$name.grows"
    rows=$(wc -l <"DESK/$name.grows")
    echo "{\"output\":[{\"records\":{\"schema\":{},\"rows\":[[$rows]],\"total_rows\":1}}],\"execution_time_ms\":2}"
elif [ -e "DESK/$name" ]; then
    cat "DESK/$name"
fi
"#;

const HELM: &str = r#"#!/bin/sh
echo "helm $*" >>DESK/called
if [ -e DESK/helm.fails ]; then echo "Error: chart not found" >&2; exit 1; fi
"#;

/// A script of deploy/tensorfusion, and a folder with stand-ins of what it calls.
pub(super) struct Desk {
    script: &'static str,
    folder: TempDir,
}

impl Desk {
    /// Where everything goes well: two nodes with a GPU each, beside a node of NVIDIA's.
    fn set() -> Self {
        let desk = Self::with("test-amd-cluster.sh", &[("kubectl", KUBECTL), ("helm", HELM)]);
        desk.put("node", "True");
        desk.put("hypervisors", "n1 True\nn2 True\nn3 True\n");
        desk.put("pool", "Running 2");
        desk.put(
            "gpus",
            "n1 AMD 1307400m 196592Mi gpu-1b5c03c8f2ab0013 AMD Instinct MI300X\n\
             n2 AMD 1307400m 262128Mi gpu-77c1f03ab3e30001 AMD Instinct MI325X\n\
             n3 NVIDIA 989 81559Mi gpu-f00 NVIDIA H100 80GB HBM3\n",
        );
        desk.put("phase", "Running");
        desk.put("logs", "AMD Instinct MI300X 1024.0\n");
        desk.put("gpu-ids", "gpu-1b5c03c8f2ab0013");
        desk.put("gpu", "180208Mi of 196592Mi");
        for table in ["tf_gpu_usage", "tf_worker_usage", "tf_node_metrics"] {
            desk.put(&format!("{table}.grows"), "");
        }
        desk
    }

    pub(super) fn with(script: &'static str, programs: &[(&str, &str)]) -> Self {
        let desk = Self { script, folder: tempfile::tempdir().unwrap() };
        for (name, program) in programs {
            desk.put(name, &program.replace("DESK", desk.folder.path().to_str().unwrap()));
            fs::set_permissions(desk.path(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        desk
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn put(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(super) fn called(&self) -> String {
        let called = fs::read_to_string(self.path("called")).unwrap_or_default();
        called.replace(deployed("").to_str().unwrap(), "DEPLOY/").replace("DEPLOY//", "DEPLOY/")
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Output {
        let path = format!("{}:/usr/bin:/bin", self.folder.path().display());
        Command::new(deployed(self.script))
            .args(arguments)
            .env("PATH", path)
            .current_dir(self.folder.path())
            .output()
            .unwrap()
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_good_cluster_passes_each_step() {
    let desk = Desk::set();
    let output = desk.run(&["--wait", "4", "--request", "7", "n1", "n2"]);
    assert!(output.status.success(), "{output:?}");
    let said = text(&output.stdout);
    let steps: Vec<&str> = said.lines().filter(|line| line.starts_with("== ")).collect();
    assert_eq!(
        steps,
        [
            "== 1. kubectl, helm and timeout are there, and each node is ready",
            "== 2. The operator finds the nodes by the label amdgpu.com/gpu.present=true",
            "== 3. The chart is installed with values-amd.yaml, and takes AMD's objects",
            "== 4. A hypervisor is ready on each node",
            "== 5. The pool amd-gpu-pool has each node's GPUs, with their FP16 rate and memory",
            "== 6. A pod with a part of a GPU computes on it",
            "== 7. The scheduler has counted the part",
            "== 8. GreptimeDB gets rows of the GPU, of its pod and of the nodes",
        ]
    );
    assert!(said.ends_with("All 8 steps passed.\n"), "{said}");
    let called = desk.called();
    for line in [
        "kubectl --request-timeout=7s label node n2 --overwrite amdgpu.com/gpu.present=true",
        "helm upgrade --install tensor-fusion-sys tensor-fusion --repo https://helm.tensor-fusion.ai --namespace \
         tensor-fusion-sys --create-namespace --values DEPLOY/values-amd.yaml --set agent.agentId= --wait --timeout 4s",
        "kubectl --request-timeout=7s apply --filename DEPLOY/provider-config.yaml",
        "kubectl --request-timeout=7s apply --filename DEPLOY/tensorfusioncluster.yaml",
        "kubectl --request-timeout=7s apply --filename DEPLOY/workload.yaml",
        "kubectl --request-timeout=7s get --raw /api/v1/namespaces/greptimedb/services/greptimedb-standalone:4000/proxy\
         /v1/sql?db=public&sql=SELECT%20count(*)%20FROM%20tf_worker_usage%20WHERE%20uuid%20%3D%20%27gpu-1b5c03c8f2ab0013%27",
    ] {
        assert!(called.lines().any(|other| other == line), "{line}\nis not in\n{called}");
    }
    let last = called.lines().last().unwrap();
    assert_eq!(last, "kubectl --request-timeout=7s delete pod amd-gpu-part --ignore-not-found --wait=false");
    let unbounded =
        called.lines().find(|line| line.starts_with("kubectl ") && !line.contains("--request-timeout=7s"));
    assert_eq!(unbounded, None);
}

#[test]
fn a_chart_of_ones_own_is_installed_in_place_of_the_newest() {
    let desk = Desk::set();
    assert!(desk.run(&["--chart", "./my chart", "--wait", "2", "n1"]).status.success());
    assert!(
        desk.called().contains("--install tensor-fusion-sys ./my chart --namespace"),
        "{}",
        desk.called()
    );
}

/// What of a good cluster is changed, the step that fails, and words of its sentence.
#[test]
fn each_fault_ends_the_run_with_a_sentence() {
    let fails = |(file, content, step, sentence): (&str, &str, u32, &str)| {
        let desk = Desk::set();
        if file == "phase" {
            desk.put("logs", "");
        }
        desk.put(file, content);
        let output = desk.run(&["--wait", "1", "n1"]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{file}: {output:?}");
        let begins = format!("test-amd-cluster.sh: step {step} failed: ");
        let last = stderr.lines().rfind(|line| line.starts_with("test-amd-cluster.sh: ")).unwrap_or_default();
        assert!(last.starts_with(&begins) && last.contains(sentence), "{file} {content}: {stderr}");
        let called = desk.called();
        let is_deleted = called.lines().last().unwrap().ends_with("--wait=false");
        assert_eq!(is_deleted, step > 5, "{file}: {called}");
    };
    let cases = [
        ("node.fails", "", 1, "the node n1 cannot be read"),
        ("node", "False", 1, "the node n1 is not ready"),
        ("label.fails", "", 2, "the node n1 cannot be labelled"),
        ("helm.fails", "", 3, "helm ended with 1"),
        ("provider.fails", "", 3, "provider-config.yaml was refused"),
        ("cluster.fails", "", 3, "tensorfusioncluster.yaml was refused"),
        ("hypervisors", "", 4, "no hypervisor is ready on n1"),
        ("hypervisors", "n1 False\nn11 True\n", 4, "no hypervisor is ready on n1"),
        ("hypervisors.fails", "", 4, "no hypervisor is ready on n1"),
        ("pool", "Running 0", 5, "the pool's phase and number of GPUs are 'Running 0'"),
        ("pool", "Pending ", 5, "the pool's phase and number of GPUs are 'Pending '"),
        ("gpus", "n1 NVIDIA 1 1Mi gpu-1 X\nn11 AMD 1 1Mi gpu-2 X\n", 5, "no GPU of n1 is AMD's"),
        ("gpus", "n1 AMD 0 196592Mi gpu-308 AMD Instinct MI308X\n", 5, "no rate is known of gpu-308: add"),
        ("gpus", "n1 AMD 1307400m 0 gpu-300 AMD Instinct MI300X\n", 5, "no memory is known of gpu-300: see"),
        ("workload.fails", "", 6, "workload.yaml was refused"),
        ("phase", "Pending", 6, "the pod is Pending and has not computed"),
        ("phase", "Failed", 6, "the pod failed: "),
        ("logs", "Traceback\n", 6, "the pod is Running and has not computed"),
        ("gpu-ids", "", 7, "TensorFusion's scheduler did not place it"),
        ("gpu", "196592Mi of 196592Mi", 7, "all memory of gpu-1b5c03c8f2ab0013 is available"),
        ("health.fails", "", 8, "GreptimeDB does not answer"),
        ("tf_worker_usage.fails", "", 8, "tf_worker_usage gets no row of gpu-1b5c03c8f2ab0013"),
        ("tf_gpu_usage.fails", "", 8, "tf_gpu_usage gets no row"),
        ("tf_node_metrics.fails", "", 8, "tf_node_metrics gets no row"),
    ];
    // Most of a case is waiting.
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || fails(case));
        }
    });
}

#[test]
fn a_call_that_hangs_is_ended() {
    for name in ["node", "gpus", "delete"] {
        let desk = Desk::set();
        desk.put(&format!("{name}.hangs"), "");
        let output = desk.run(&["--wait", "1", "--request", "1", "n1"]);
        assert_eq!(output.status.code(), Some(1), "{name}: {output:?}");
        let stderr = text(&output.stderr);
        assert!(stderr.contains("gave no answer within 1 s"), "{name}: {stderr}");
    }
}

#[test]
fn wrong_arguments_are_refused_with_two_before_anything_is_called() {
    let desk = Desk::set();
    for (arguments, said) in [
        (&[][..], "name the nodes"),
        (&["--wait", "2"], "name the nodes"),
        (&["--wait"], "--wait needs a value"),
        (&["--wait", "soon", "n1"], "--wait needs a number of seconds"),
        (&["--request", "0", "n1"], "--request needs a number of seconds"),
        (&["--force", "n1"], "there is no '--force'"),
        (&["--", "n1"], "there is no '--'"),
        (&["n1", "--wait", "2"], "options come before the nodes, unlike '--wait'"),
        (&["n1", "n 2"], "'n 2' is no name of a node"),
        (&[""], "'' is no name of a node"),
    ] {
        let output = desk.run(arguments);
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(said), "{arguments:?}: {output:?}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    for option in ["--help", "-h"] {
        let help = desk.run(&[option]);
        let is_usage = text(&help.stdout).starts_with("Usage: test-amd-cluster.sh");
        assert!(help.status.success() && is_usage, "{help:?}");
    }
    assert_eq!(desk.called(), "");
}

#[test]
fn the_hypervisors_command_hands_on_the_operators_arguments() {
    let pool = yaml("gpupool.yaml");
    let template = &pool["spec"]["componentConfig"]["hypervisor"]["podTemplate"]["template"];
    let command = template["spec"]["containers"][0]["command"].as_array().unwrap();
    let command: Vec<&str> = command.iter().map(|word| word.as_str().unwrap()).collect();
    let folder = tempfile::tempdir().unwrap();
    let run = |mount: &str| {
        for (name, last) in [("mount", mount), ("hypervisor", "")] {
            let file = folder.path().join(name);
            fs::write(&file, format!("#!/bin/sh\nprintf '{name}'; printf ' <%s>' \"$@\"; echo\n{last}"))
                .unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut shell = Command::new(command[0]);
        shell.args(&command[1..]).args(["-isolation-mode", "shared", "a b"]);
        shell.env("PATH", folder.path()).output().unwrap()
    };
    let mounted = "mount <-o> <remount,exec,bind> </run/tensor-fusion>\n";
    let started = text(&run("").stdout);
    assert_eq!(started, format!("{mounted}hypervisor <-isolation-mode> <shared> <a b>\n"));
    let failed = run("exit 32\n");
    assert_eq!((failed.status.code(), text(&failed.stdout).as_str()), (Some(32), mounted));
}
