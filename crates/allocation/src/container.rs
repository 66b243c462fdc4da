//! Recognises the kinds of containers that matter for GPUs.

/// An annotation that CRI-O writes into every bundle (server/container_create.go). Its prefix alone proves
/// nothing: podman has borrowed `io.kubernetes.cri-o.Created`, `.TTY` and others for every container of its
/// own, and `.SandboxID` for those in a podman pod.
const CRI_O: &str = "io.kubernetes.cri-o.SandboxName";

/// Whether these annotations belong to a Kubernetes container, for which the scheduler decides who has which
/// GPU. containerd's CRI plugin writes `io.kubernetes.cri.*` into every bundle, CRI-O its sandbox's name.
pub fn is_kubernetes<'k>(annotation_keys: impl IntoIterator<Item = &'k str>) -> bool {
    annotation_keys.into_iter().any(|key| key.starts_with("io.kubernetes.cri.") || key == CRI_O)
}

/// Whether this environment belongs to a Concourse get, put or check container, which has no use for a GPU.
///
/// Concourse puts the metadata of a build into each of these containers (atc/exec/step_metadata.go): a team's
/// name, and always at least one more of the names below. A task has only `ATC_EXTERNAL_URL` and its own
/// params. One name alone is not enough: a task's params may pass a `BUILD_ID` on.
pub fn is_concourse_resource<'e>(env: impl IntoIterator<Item = &'e str>) -> bool {
    const BESIDES_THE_TEAM: [&str; 5] =
        ["BUILD_ID", "BUILD_TEAM_ID", "BUILD_PIPELINE_ID", "BUILD_PIPELINE_NAME", "BUILD_JOB_NAME"];
    let (mut team, mut other) = (false, false);
    for entry in env {
        let sets = |name: &str| entry.strip_prefix(name).is_some_and(|rest| rest.starts_with('='));
        team |= sets("BUILD_TEAM_NAME");
        other |= BESIDES_THE_TEAM.into_iter().any(sets);
    }
    team && other
}

#[cfg(test)]
mod tests {
    use super::{is_concourse_resource, is_kubernetes};

    #[test]
    fn tells_kubernetes_containers_by_their_annotations() {
        let table: [(&[&str], bool); 7] = [
            (&[], false),
            (&["org.opencontainers.image.title"], false),
            (&["io.kubernetes.cri.container-type"], true),
            (&["a", "io.kubernetes.cri-o.ContainerType", "io.kubernetes.cri-o.SandboxName"], true),
            // What podman 4.3 writes.
            (&["io.container.manager", "io.kubernetes.cri-o.Created", "io.kubernetes.cri-o.TTY"], false),
            (&["io.kubernetes.criminal"], false),
            (&["x.io.kubernetes.cri.sandbox-id"], false),
        ];
        for (keys, expected) in table {
            assert_eq!(is_kubernetes(keys.iter().copied()), expected, "{keys:?}");
        }
    }

    #[test]
    fn tells_concourses_resource_containers_by_their_build_metadata() {
        let table: [(&[&str], bool); 6] = [
            (&["PATH=/bin", "ATC_EXTERNAL_URL=http://ci", "MODEL=x"], false),
            (&["BUILD_ID=1"], false),
            (&["BUILD_TEAM_NAME=main"], false),
            (&["BUILD_TEAM_NAME=main", "BUILD_ID=5"], true),
            (&["BUILD_PIPELINE_NAME=p", "BUILD_TEAM_NAME=main"], true),
            (&["X=BUILD_TEAM_NAME=main", "X=BUILD_ID=5"], false),
        ];
        for (env, expected) in table {
            assert_eq!(is_concourse_resource(env.iter().copied()), expected, "{env:?}");
        }
    }
}
