//! `proto/` beside the kubelet's own definitions, which Debian packages.

use std::path::Path;

use support::protobuf::unpublished;

#[test]
fn each_message_and_call_is_the_published_ones() {
    let published =
        std::env::var_os("ROCWORKER_KUBELET_APIS").expect("cargo xtask test fetches the kubelet's APIs");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    for (file, version) in
        [("deviceplugin.proto", "deviceplugin/v1beta1"), ("podresources.proto", "podresources/v1")]
    {
        let published = read(&Path::new(&published).join(version).join("api.proto"));
        assert_eq!(unpublished(&read(&own.join(file)), &published), [""; 0], "{file}");
    }
}
