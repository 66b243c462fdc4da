mod edits;
mod hostile;
mod machine;
mod properties;

use super::{Bundle, Injection, Node, ProcessEdits, mount_over};
use crate::Error;
use crate::gids::{IdMapping, UserNamespace};

fn render_node() -> Node<'static> {
    Node {
        path: "/dev/dri/renderD128",
        major: 226,
        minor: 128,
        file_mode: 0o020_660,
        uid: Some(0),
        gid: Some(992),
        access: "rw",
    }
}

fn kfd() -> Node<'static> {
    Node { path: "/dev/kfd", major: 511, minor: 0, gid: None, uid: None, ..render_node() }
}

fn gpu() -> Injection<'static> {
    let process = ProcessEdits { gids: vec![992], ..ProcessEdits::default() };
    Injection { nodes: vec![kfd(), render_node()], process, ..Injection::default() }
}

fn inject(text: &str, injection: &Injection<'_>) -> Result<Option<String>, Error> {
    Bundle::parse(text).and_then(|bundle| bundle.inject(injection))
}

#[test]
fn finds_what_decides_about_gpus() {
    let text = r#"{"ociVersion":"1.2.0","process":{"env":["PATH=/bin","AMD_VISIBLE_DEVICES=\u0030"]},
        "annotations":{"io.kubernetes.cri.container-type":"container","a\u0062c":"1"},
        "linux":{"devices":[{"path":"/dev/fuse","type":"c","major":10,"minor":229,"fileMode":438}]}}"#;
    let bundle = Bundle::parse(text).unwrap();
    assert_eq!(bundle.env().collect::<Vec<_>>(), ["PATH=/bin", "AMD_VISIBLE_DEVICES=0"]);
    assert_eq!(bundle.annotation_keys().collect::<Vec<_>>(), ["io.kubernetes.cri.container-type", "abc"]);
    let devices = bundle.devices().unwrap();
    assert_eq!(devices.len(), 1);
    assert_eq!((&*devices[0].path, &*devices[0].kind), ("/dev/fuse", "c"));
    assert_eq!((devices[0].major, devices[0].minor), (Some(10), Some(229)));
}

#[test]
fn tells_which_user_namespace_a_container_gets() {
    let line = |container_id, host_id, size| IdMapping { container_id, host_id, size };
    let mappings = r#""uidMappings":[{"containerID":0,"hostID":65534,"size":1}],
        "gidMappings":[{"containerID":0,"hostID":65534,"size":1},{"containerID":1,"hostID":1,"size":65533}]"#;
    let mapped = UserNamespace::Mapped {
        uids: vec![line(0, 65534, 1)],
        gids: vec![line(0, 65534, 1), line(1, 1, 65533)],
    };
    let joined = UserNamespace::Joined { path: "/proc/7/ns/user".into() };
    let nothing_mapped = UserNamespace::Mapped { uids: vec![], gids: vec![] };
    let table = [
        (r#"{}"#.to_owned(), Ok(UserNamespace::Host)),
        (r#"{"linux":null}"#.to_owned(), Ok(UserNamespace::Host)),
        (r#"{"linux":{"namespaces":[{"type":"pid"}]}}"#.to_owned(), Ok(UserNamespace::Host)),
        (format!(r#"{{"linux":{{{mappings}}}}}"#), Ok(UserNamespace::Host)),
        (format!(r#"{{"linux":{{"namespaces":[{{"type":"user"}}],{mappings}}}}}"#), Ok(mapped.clone())),
        (
            format!(
                r#"{{"linux":{{"namespaces":[{{"type":"user","path":"/proc/7/ns/user"}}],{mappings}}}}}"#
            ),
            Ok(mapped),
        ),
        (
            r#"{"linux":{"namespaces":[{"type":"pid"},{"type":"user","path":"/proc/7/ns/user"}]}}"#
                .to_owned(),
            Ok(joined),
        ),
        (r#"{"linux":{"namespaces":[{"type":"user","path":""}]}}"#.to_owned(), Ok(nothing_mapped.clone())),
        (r#"{"linux":{"namespaces":[{"type":"user"}],"gidMappings":[]}}"#.to_owned(), Ok(nothing_mapped)),
        (
            r#"{"linux":{"namespaces":[],"gidMappings":{}}}"#.to_owned(),
            Err("expected a list, found an object (line 1, column 41)"),
        ),
        (
            r#"{"linux":{"namespaces":[{"type":"user"}],"gidMappings":[{"containerID":0}]}}"#.to_owned(),
            Err(
                "the key linux.gidMappings cannot be read: the key \"hostID\" is missing (line 1, column 57)",
            ),
        ),
    ];
    for (text, expected) in table {
        let read = Bundle::parse(&text).and_then(|bundle| bundle.user_namespace());
        assert_eq!(read.map_err(|error| error.to_string()), expected.map_err(str::to_owned), "{text}");
    }
}

#[test]
fn the_root_file_system_is_where_the_bundle_says() {
    for (text, expected) in [
        (
            r#"{"root":{"path":"/var/lib/x","readonly":true},"linux":{"root":{"path":"y"}}}"#,
            Some("/var/lib/x"),
        ),
        (r#"{"Root":{"p\u0061th":"rootfs"}}"#, Some("rootfs")),
        (r#"{"root":{"path":"rootfs"},"root":{"readonly":true}}"#, Some("rootfs")),
        (r#"{"root":{"path":"one"},"root":{"path":"two"}}"#, Some("two")),
        (r#"{"root":{"path":"a"},"root":{"path":"b"}}"#, Some("b")),
        (r#"{"root":{}}"#, None),
        (r#"{"root":null}"#, None),
        (r#"{"root":{"path":5}}"#, None),
        ("{}", None),
    ] {
        assert_eq!(Bundle::parse(text).unwrap().rootfs().as_deref(), expected, "{text}");
    }
}

/// A task's bundle as Concourse's worker writes it (a shortened one, indented; made by hand after the
/// fields that containerd's `spec` of such a container has).
#[test]
fn a_concourse_task_gets_its_gpu() {
    let text = include_str!("concourse-task.json");
    let injected = inject(text, &gpu()).unwrap().unwrap();
    insta::assert_snapshot!(injected);
    assert_eq!(inject(&injected, &gpu()), Ok(None));
}

#[test]
fn the_last_mount_over_a_path_is_the_one_that_it_lies_in() {
    let mount = |destination: &str, rest: &str| format!(r#"{{"destination":"{destination}"{rest}}}"#);
    let dev = mount("/dev", r#","type":"tmpfs","options":["ro"]"#);
    let dri = mount("/dev//dri/", r#","source":"/a","options":["rbind","ro","rw"]"#);
    let kfd = mount("/dev/kfd", r#","type":"bind","source":"/b","options":["rw","ro"]"#);
    let root = mount("/", r#","type":"devtmpfs""#);
    for (mounts, path, expected) in [
        (vec![], "/dev/kfd", None),
        (vec![&dri, &kfd], "/dev/null", None),
        (vec![&dri, &kfd], "/dev/drix", None),
        (vec![&dev], "/dev/kfd", Some(("/dev", "/kfd", (false, true, true)))),
        (vec![&dev, &kfd], "/dev/kfd", Some(("/dev/kfd", "", (true, false, true)))),
        (vec![&kfd, &dev], "/dev/kfd", Some(("/dev", "/kfd", (false, true, true)))),
        (vec![&dev, &dri], "/dev/./dri/x/../y", Some(("/dev//dri/", "/y", (true, false, false)))),
        (vec![&root], "/dev/kfd", Some(("/", "/dev/kfd", (false, true, false)))),
    ] {
        let mounts: Vec<&str> = mounts.into_iter().map(String::as_str).collect();
        let text = format!(r#"{{"mounts":[{}]}}"#, mounts.join(","));
        let bundle = Bundle::parse(&text).unwrap();
        let mounts = bundle.mounts().unwrap();
        let found = mount_over(&mounts, path);
        let found = found.as_ref().map(|(mount, rest)| {
            let kind = (mount.is_bind(), mount.has_no_files(), mount.is_read_only());
            (&*mount.destination, rest.as_str(), kind)
        });
        assert_eq!(found, expected, "{path} in {text}");
    }
    assert!(Bundle::parse(r#"{"mounts":[{"type":"bind"}]}"#).unwrap().mounts().is_err());
}
