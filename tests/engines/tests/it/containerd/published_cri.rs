//! `proto/` beside Kubernetes' own definition of CRI, which Debian packages.

use support::protobuf::unpublished;

#[test]
fn each_message_and_call_of_cri_is_the_published_one() {
    let published = std::env::var_os("ROCWORKER_CRI_API").expect("cargo xtask test fetches CRI");
    let published = std::fs::read_to_string(published).unwrap();
    assert_eq!(unpublished(include_str!("../../../proto/cri.proto"), &published), [""; 0]);
}
