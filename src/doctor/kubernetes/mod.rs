//! Whether the kubelet of a Kubernetes node can give the GPUs to pods: its socket, what device plugins have registered,
//! the node's labels, and CDI in the node's containerd. A machine without a kubelet has none of these checks.

mod checkpoint;
mod containerd;
mod devices;
mod distribution;
mod features;
mod plugins;

use check::{About, Check};
use root::{Kind, Root};

use super::machine::Subject;
use checkpoint::Checkpoint;
use distribution::Distribution;
use plugins::Plugins;

const NAME: &str = "kubernetes";

/// Folders of kubelets: by default, of MicroK8s and of k0s.
const KUBELETS: [&str; 3] =
    ["/var/lib/kubelet", "/var/snap/microk8s/common/var/lib/kubelet", "/var/lib/k0s/kubelet"];

/// Where the kubelet and device plugins meet, whatever --root-dir says (`DevicePluginPath` of Kubernetes'
/// deviceplugin/v1beta1). MicroK8s makes /var/lib/kubelet a link.
const DEVICE_PLUGINS: &str = "/var/lib/kubelet/device-plugins";
const SOCKET: &str = "/var/lib/kubelet/device-plugins/kubelet.sock";

pub(super) fn check(subject: &Subject<'_>) -> Result<Vec<Check>, Check> {
    if !has_kubelet(subject.root) {
        return Ok(Vec::new());
    }
    let about = About::all(NAME);
    subject.needs_amd(about.clone(), "there is no AMD GPU for pods")?;
    subject.needs_kfd(about)?;
    let distribution = Distribution::of(subject);
    let checkpoint = Checkpoint::read(subject.root);
    let mut checks = vec![kubelet(subject.root, &distribution)];
    let plugins = Plugins::read(subject.root);
    checks.push(plugins::check(subject, &plugins));
    checks.extend(devices::check(subject, &checkpoint, plugins.is_ok_and(|it| it.is_any())));
    checks.extend(features::check(subject));
    let by_cdi = checkpoint.as_ref().is_ok_and(Checkpoint::gives_cdi_names);
    checks.extend(containerd::check(subject, &distribution, by_cdi));
    Ok(checks)
}

/// An uninstalled kubelet may leave its folder behind, empty.
fn has_kubelet(root: &Root) -> bool {
    KUBELETS.iter().any(|folder| match root.list(folder) {
        Ok(entries) => !entries.is_empty(),
        Err(error) => error.is_denied(),
    })
}

fn kubelet(root: &Root, distribution: &Distribution) -> Check {
    let about = About::one(NAME, "kubelet");
    match root.stat(SOCKET) {
        Ok(meta) if meta.kind == Kind::Other && listens(root, SOCKET) == Some(false) => about.failed(
            format!("nothing listens at {SOCKET}: the kubelet has ended"),
            format!("{}, then see whether the kubelet starts: {}", distribution.restart, distribution.log),
        ),
        Ok(meta) if meta.kind == Kind::Other => about.ok(format!("{SOCKET} is there")),
        Ok(meta) => about.failed(
            format!("{SOCKET} is {}: no device plugin can register", meta.kind.described()),
            format!("remove it, then {}", distribution.restart),
        ),
        Err(error) if error.is_not_found() => about.warning(
            format!("{SOCKET} is not there: no device plugin can register"),
            format!("{}, then see whether the kubelet starts: {}", distribution.restart, distribution.log),
        ),
        Err(error) => about.skipped(error.to_string()),
    }
}

/// Whether a program of the host's network namespace listens at a socket, by the path that it has bound (/proc/net/unix;
/// `__SO_ACCEPTCON` of include/linux/net.h). `None`: the kernel does not say, as beneath a `--root` without the file.
fn listens(root: &Root, socket: &str) -> Option<bool> {
    let sockets = root.read_text("/proc/net/unix", 16 << 20).ok()?;
    let is_it = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(3) == Some(&"00010000") && fields.get(7) == Some(&socket)
    };
    Some(sockets.lines().any(is_it))
}
