use proptest::prelude::*;

use super::*;

fn record() -> Record {
    Record {
        schema_version: 1,
        id: "6f2e-build".into(),
        root: "/run/runc".into(),
        gpus: vec![RecordedGpu {
            index: 0,
            pci: PciAddress::parse("0000:64:00.0"),
            render: Render::parse("renderD128").unwrap(),
        }],
        gids: vec![992],
        env: vec!["A=\"1\"".into()],
        env_unless_set: None,
        memlock_bytes: None,
        creator: Creator {
            pid: 77,
            start_time: u64::MAX,
            boot_id: "2c1f7a5e-7c0f-4b5a-9b61-0d5b8a1d3f11".into(),
        },
    }
}

const STORED: &str = r#"{"schema_version":1,"id":"6f2e-build","root":"/run/runc","gpus":[{"index":0,"pci":"0000:64:00.0","render":"/dev/dri/renderD128"}],"gids":[992],"env":["A=\"1\""],"creator":{"pid":77,"start_time":18446744073709551615,"boot_id":"2c1f7a5e-7c0f-4b5a-9b61-0d5b8a1d3f11"}}
"#;

/// Records outlive an update of the wrapper, so these bytes stay readable.
#[test]
fn is_stored_in_this_form() {
    assert_eq!(record().to_json().unwrap(), STORED);
    assert_eq!(Record::parse(STORED).unwrap(), record());
}

/// `env_unless_set` is of earlier versions of the wrapper.
#[test]
fn locked_memory_makes_a_record_of_version_2() {
    let second = Record {
        schema_version: 2,
        env_unless_set: Some("HSA_OVERRIDE_GFX_VERSION=11.0.0".into()),
        memlock_bytes: Some(u64::MAX),
        ..record()
    };
    let stored = STORED.replacen(":1,", ":2,", 1).replace(
        r#""creator""#,
        r#""env_unless_set":"HSA_OVERRIDE_GFX_VERSION=11.0.0","memlock_bytes":18446744073709551615,"creator""#,
    );
    assert_eq!(second.to_json().unwrap(), stored);
    assert_eq!(Record::parse(&stored).unwrap(), second);
    assert_eq!(version_of(&record().process_edits()), 1);
    assert_eq!(version_of(&second.process_edits()), 2);
    assert_eq!(second.process_edits().env, ["A=\"1\"", "HSA_OVERRIDE_GFX_VERSION=11.0.0"]);
}

#[test]
fn what_is_no_record_is_refused() {
    let table = [
        ("1,\"id\"", "3,\"id\"", "has schema_version 3 of a newer version (this one reads 2)"),
        ("\"gids\"", "\"gid\"", "is no record of what a container was given: unknown field `gid`"),
        ("77", "-1", "is no record of what a container was given: invalid value: integer `-1`"),
        (
            "renderD128",
            "sda",
            "is no record of what a container was given: invalid value: string \"/dev/dri/sda\"",
        ),
        (STORED, "", "is no record of what a container was given: EOF"),
    ];
    for (from, to, expected) in table {
        let message = Record::parse(&STORED.replace(from, to)).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn a_recorded_gpu_is_known_by_its_place_and_node_not_by_its_index() {
    let gpu = |index, card: Option<&str>, render| Gpu {
        index,
        card: card.and_then(PciAddress::parse),
        render: Render::parse(render).unwrap(),
        ..Gpu::default()
    };
    let recorded = RecordedGpu::from(&gpu(0, Some("0000:64:00.0"), "renderD128"));
    let table = [
        (gpu(3, Some("0000:64:00.0"), "renderD128"), true),
        (gpu(0, None, "renderD128"), true),
        (gpu(0, Some("0000:64:00.0"), "renderD129"), false),
        (gpu(0, Some("0000:65:00.0"), "renderD128"), false),
    ];
    for (gpu, same) in table {
        assert_eq!(recorded.is(&gpu), same, "{gpu}");
    }
}

fn any_record() -> impl Strategy<Value = Record> {
    let address = (any::<u32>(), any::<u8>(), 0..32_u8, 0..8_u8)
        .prop_map(|(domain, bus, device, function)| PciAddress { domain, bus, device, function });
    let gpu = (any::<u32>(), prop::option::of(address), any::<u32>()).prop_map(|(index, pci, render)| {
        RecordedGpu { index, pci, render: Render::parse(&format!("renderD{render}")).unwrap() }
    });
    let given = (prop::collection::vec(gpu, 0..3), prop::collection::vec(any::<u32>(), 0..3));
    let words = (any::<[String; 3]>(), prop::collection::vec(any::<String>(), 0..3));
    let besides = (prop::option::of(any::<String>()), prop::option::of(any::<u64>()));
    (given, words, besides, any::<(u32, u64)>()).prop_map(
        |((gpus, gids), ([id, root, boot_id], env), (env_unless_set, memlock_bytes), (pid, start_time))| {
            let creator = Creator { pid, start_time, boot_id };
            Record { schema_version: 2, id, root, gpus, gids, env, env_unless_set, memlock_bytes, creator }
        },
    )
}

proptest! {
    #[test]
    fn is_read_as_it_was_written(record in any_record()) {
        let written = record.to_json().unwrap();
        prop_assert_eq!(&Record::parse(&written).unwrap(), &record);
        prop_assert_eq!(written.find('\n'), Some(written.len() - 1));
    }
}
