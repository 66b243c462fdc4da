//! `folders` and `edits`.

use super::*;

fn policy(keys: &str) -> Result<Policy, String> {
    Policy::parse(&format!(r#"{{"schema_version":1,{keys}}}"#)).map_err(|error| error.to_string())
}

fn render(number: u32) -> Render {
    Render::parse(&format!("renderD{number}")).unwrap()
}

#[test]
fn folders_and_edits_are_read() {
    let read = policy(
        r#""folders":["/srv","//data/./für alle/"],"edits":{"shm_bytes":8589934592,"memlock_bytes":1073741824,
           "gfx_override":{"/dev/dri/renderD128":"11.0.0","renderD129":"9.0.10"}}"#,
    );
    let read = read.unwrap();
    assert_eq!(read.folders, ["/srv", "/data/für alle"]);
    let expected = Edits {
        shm_bytes: Some(8 << 30),
        memlock_bytes: Some(1 << 30),
        gfx_override: [(render(128), "11.0.0".into()), (render(129), "9.0.10".into())].into(),
    };
    assert_eq!(read.edits, expected);
    // Folders have nothing to do with GPUs.
    assert!(read.says_nothing());
}

#[test]
fn each_edit_may_be_left_out() {
    for keys in [
        r#""folders":null,"edits":null"#,
        r#""edits":{}"#,
        r#""edits":{"shm_bytes":null,"memlock_bytes":null,"gfx_override":null}"#,
        r#""edits":{"gfx_override":{}}"#,
    ] {
        let read = policy(keys).unwrap();
        assert_eq!((read.folders.len(), read.edits), (0, Edits::default()), "{keys}");
    }
    let unlimited = policy(r#""edits":{"memlock_bytes":"unlimited"}"#).unwrap();
    assert_eq!(unlimited.edits.memlock_bytes, Some(18_446_744_073_709_551_615));
}

#[test]
fn what_cannot_be_done_is_refused_with_what_stands_there() {
    let unlimited = "memlock_bytes is a number of bytes from 1 on, or \"unlimited\"";
    let table = [
        (r#""folders":"/srv""#, "not a policy: invalid type: string \"/srv\", expected a sequence"),
        (r#""folders":[1]"#, "not a policy: invalid type: integer `1`, expected a string"),
        (r#""folders":["srv"]"#, "folders: \"srv\" is not an absolute path like \"/srv\""),
        (r#""folders":["/"]"#, "folders: \"/\" is not an absolute path like \"/srv\""),
        (r#""folders":["//."]"#, "folders: \"//.\" is not an absolute path like \"/srv\""),
        (r#""folders":["/srv/../etc"]"#, "folders: \"/srv/../etc\" is not an absolute path like \"/srv\""),
        (r#""folders":[""]"#, "folders: \"\" is not an absolute path like \"/srv\""),
        (
            r#""edits":{"env":[]}"#,
            "not a policy: unknown field `env`, expected one of `shm_bytes`, `memlock_bytes`, `gfx_override`",
        ),
        (r#""edits":{"shm_bytes":1,"shm_bytes":1}"#, "not a policy: duplicate field `shm_bytes`"),
        (r#""edits":{"shm_bytes":0}"#, "not a policy: invalid value: integer `0`, expected a nonzero u64"),
        (
            r#""edits":{"shm_bytes":"8G"}"#,
            "not a policy: invalid type: string \"8G\", expected a nonzero u64",
        ),
        (r#""edits":{"shm_bytes":-1}"#, "not a policy: invalid value: integer `-1`, expected a nonzero u64"),
        (
            r#""edits":{"shm_bytes":1.5}"#,
            "not a policy: invalid type: floating point `1.5`, expected a nonzero u64",
        ),
        (r#""edits":{"memlock_bytes":"infinity"}"#, &format!("not a policy: {unlimited}")),
        (r#""edits":{"memlock_bytes":0}"#, &format!("not a policy: {unlimited}")),
        (r#""edits":{"memlock_bytes":18446744073709551616}"#, &format!("not a policy: {unlimited}")),
        (
            r#""edits":{"gfx_override":"11.0.0"}"#,
            "not a policy: invalid type: string \"11.0.0\", expected a map",
        ),
        (
            r#""edits":{"gfx_override":{"0":"11.0.0"}}"#,
            "not a policy: invalid value: string \"0\", expected a render node like /dev/dri/renderD128",
        ),
        (
            r#""edits":{"gfx_override":{"renderD128":11}}"#,
            "not a policy: invalid type: integer `11`, expected a string",
        ),
    ];
    for (keys, expected) in table {
        let message = policy(keys).unwrap_err();
        assert!(message.starts_with(expected), "{keys}: {message}");
    }
}

#[test]
fn a_gfx_version_is_what_the_runtime_reads() {
    for (version, good) in [
        ("11.0.0", true),
        ("9.0.10", true),
        ("63.255.255", true),
        ("10.03.0", true),
        ("64.0.0", false),
        ("1.256.0", false),
        ("11.0", false),
        ("11.0.0.0", false),
        ("11.0.", false),
        ("11.0.a", false),
        ("gfx1100", false),
        ("+1.0.0", false),
        ("11.0.0\\nX=1", false),
        ("", false),
    ] {
        let read = policy(&format!(r#""edits":{{"gfx_override":{{"renderD128":"{version}"}}}}"#));
        assert_eq!(read.is_ok(), good, "{version}: {read:?}");
    }
}

#[test]
fn the_variable_is_set_where_all_gpus_need_the_same_and_the_container_says_nothing() {
    let edits = Edits {
        gfx_override: [(128, "11.0.0"), (129, "11.0.0"), (130, "10.3.0")]
            .map(|(number, version)| (render(number), version.to_owned()))
            .into(),
        ..Edits::default()
    };
    let set = Ok(Some("HSA_OVERRIDE_GFX_VERSION=11.0.0".to_owned()));
    let differ = |second: &str| {
        Err(format!(
            "HSA_OVERRIDE_GFX_VERSION, which counts for every GPU of a process, is not set: the policy's gfx_override \
             has 11.0.0 for renderD128 and {second}; ask for GPUs of one kind, or set it in the container's \
             environment"
        ))
    };
    let own = &["PATH=/bin", "HSA_OVERRIDE_GFX_VERSION=9.0.0"][..];
    let table = [
        (&[128][..], &["PATH=/bin"][..], set.clone()),
        (&[128, 129], &[], set.clone()),
        (&[131], &[], Ok(None)),
        (&[131, 132], &[], Ok(None)),
        (&[], &[], Ok(None)),
        (&[128, 129, 130], &[], differ("10.3.0 for renderD130")),
        (&[128, 131], &[], differ("nothing for renderD131")),
        (&[128], own, Ok(None)),
        (&[128, 130], own, Ok(None)),
        (&[128], &["HSA_OVERRIDE_GFX_VERSION="], Ok(None)),
        // What an earlier create has put into the bundle.
        (&[128], &["HSA_OVERRIDE_GFX_VERSION=11.0.0"], set.clone()),
        (&[128], &["HSA_OVERRIDE_GFX_VERSION_X=9.0.0", "XHSA_OVERRIDE_GFX_VERSION=9.0.0"], set),
    ];
    for (gpus, env, expected) in table {
        let renders: Vec<Render> = gpus.iter().map(|gpu| render(*gpu)).collect();
        assert_eq!(edits.gfx_override_for(&renders, env.iter().copied()), expected, "{gpus:?} {env:?}");
    }
}
