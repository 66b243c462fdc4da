use super::*;
use inventory::PciAddress;

use crate::Render;

fn lease(cgroups_path: Option<&str>) -> Lease {
    Lease {
        schema_version: Lease::SCHEMA_VERSION,
        gpu: RecordedGpu {
            index: 0,
            pci: PciAddress::parse("0000:64:00.0"),
            render: Render::parse("renderD128").unwrap(),
        },
        root: "/run/runc".into(),
        id: "6f2e-build".into(),
        kind: Kind::Counted,
        since: "2026-11-21T07:13:46Z".into(),
        creator: Creator {
            pid: 77,
            start_time: u64::MAX,
            boot_id: "2c1f7a5e-7c0f-4b5a-9b61-0d5b8a1d3f11".into(),
        },
        cgroups_path: cgroups_path.map(str::to_owned),
        idle_since_ms: None,
    }
}

const STORED: &str = r#"{"schema_version":1,"gpu":{"index":0,"pci":"0000:64:00.0","render":"/dev/dri/renderD128"},"root":"/run/runc","id":"6f2e-build","kind":"counted","since":"2026-11-21T07:13:46Z","creator":{"pid":77,"start_time":18446744073709551615,"boot_id":"2c1f7a5e-7c0f-4b5a-9b61-0d5b8a1d3f11"},"cgroups_path":"/a/b","idle_since_ms":null}
"#;

/// Leases outlive an update of the wrapper, so these bytes stay readable.
#[test]
fn is_stored_in_this_form() {
    assert_eq!(lease(Some("/a/b")).to_json().unwrap(), STORED);
    assert_eq!(Lease::parse(STORED).unwrap(), lease(Some("/a/b")));
}

#[test]
fn what_is_no_lease_is_refused() {
    let table = [
        ("1,\"gpu\"", "2,\"gpu\"", "has schema_version 2 of a newer version (this one reads 1)"),
        ("\"kind\"", "\"kin\"", "is no lease: unknown field `kin`"),
        ("counted", "stolen", "is no lease: unknown variant `stolen`"),
        ("77", "-1", "is no lease: invalid value: integer `-1`"),
        (STORED, "", "is no lease: EOF"),
    ];
    for (from, to, expected) in table {
        let message = Lease::parse(&STORED.replace(from, to)).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn a_cgroup_is_known_by_its_end_under_either_manager() {
    let table: [(Option<&str>, Option<&[&str]>); 9] = [
        (None, Some(&["6f2e-build", "runc-6f2e-build.scope", "crun-6f2e-build.scope"])),
        (Some(""), Some(&["6f2e-build", "runc-6f2e-build.scope", "crun-6f2e-build.scope"])),
        (Some("/concourse/x"), Some(&["concourse/x"])),
        (Some("a//./b/../c/"), Some(&["a/c"])),
        (Some("system.slice:docker:x"), Some(&["system.slice:docker:x", "docker-x.scope"])),
        (Some("::x"), Some(&["::x", "x.scope"])),
        (Some("a.slice:p:b.slice"), Some(&["a.slice:p:b.slice", "b.slice"])),
        (Some("/"), None),
        (Some("../.."), None),
    ];
    for (path, expected) in table {
        let ends = lease(path).cgroup_ends();
        let expected: Option<Vec<String>> =
            expected.map(|ends| ends.iter().map(|end| (*end).to_owned()).collect());
        assert_eq!(ends, expected, "{path:?}");
    }
}
