use proptest::prelude::*;

use super::*;

fn indexes(list: &[u32]) -> Request {
    Request::Listed(list.iter().copied().map(Selector::Index).collect())
}

fn one(selector: Selector) -> Request {
    Request::Listed(vec![selector])
}

#[test]
fn reads_every_way_to_name_gpus() {
    let pci = |text| one(Selector::Pci(PciAddress::parse(text).unwrap()));
    let render = |text| one(Selector::Render(Render::parse(text).unwrap()));
    let table = [
        ("all", Request::All),
        ("ALL", Request::All),
        (" all\t", Request::All),
        ("", Request::Nothing),
        ("none", Request::Nothing),
        ("void", Request::Nothing),
        ("None", Request::Nothing),
        ("0", indexes(&[0])),
        ("3,1", indexes(&[3, 1])),
        ("0, 2 ,4", indexes(&[0, 2, 4])),
        ("0-3", indexes(&[0, 1, 2, 3])),
        ("2-2", indexes(&[2])),
        ("0,0-1", indexes(&[0, 1])),
        ("0-2,1-3", indexes(&[0, 1, 2, 3])),
        ("GPU-0123456789abcdef", one(Selector::Uuid("GPU-0123456789abcdef".into()))),
        ("gpu-X", one(Selector::Uuid("gpu-X".into()))),
        ("0000:64:00.0", pci("0000:64:00.0")),
        ("C1:00.0,0000:c1:00.0", pci("0000:c1:00.0")),
        ("renderD128", render("renderD128")),
        ("/dev/dri/renderD128,renderD128", render("renderD128")),
        ("4294967295", indexes(&[u32::MAX])),
    ];
    for (value, expected) in table {
        assert_eq!(Request::from_visible_devices(value), Ok(expected), "{value:?}");
    }
}

#[test]
fn refuses_what_names_no_gpu_and_repeats_it_harmlessly() {
    let not_a_gpu = |shown: &str| {
        format!(
            "AMD_VISIBLE_DEVICES: {shown} does not name a GPU; a name is an index, a range such as 0-3, a uuid \
             (GPU-…), a PCI address or a render node"
        )
    };
    let too_many = "AMD_VISIBLE_DEVICES asks for more than 1024 GPUs, the most that one container can have";
    let table = [
        ("../..".to_owned(), not_a_gpu("\"../..\"")),
        ("/dev/kfd".into(), not_a_gpu("\"/dev/kfd\"")),
        ("/dev/dri/renderD128/../../sda".into(), not_a_gpu("\"/dev/dri/renderD128/../../sda\"")),
        ("0,,1".into(), not_a_gpu("\"\"")),
        ("0,".into(), not_a_gpu("\"\"")),
        ("-1".into(), not_a_gpu("\"-1\"")),
        ("0-".into(), not_a_gpu("\"0-\"")),
        ("0-1-2".into(), not_a_gpu("\"0-1-2\"")),
        ("GPU-".into(), not_a_gpu("\"GPU-\"")),
        ("GPU-a/b".into(), not_a_gpu("\"GPU-a/b\"")),
        ("card0".into(), not_a_gpu("\"card0\"")),
        ("0;rm".into(), not_a_gpu("\"0;rm\"")),
        ("\u{1b}[2J\n".into(), not_a_gpu(r#""\u{1b}[2J\u{a}""#)),
        ("9999999999".into(), not_a_gpu("\"9999999999\"")),
        ("x".repeat(4000), not_a_gpu(&format!("\"{}\"…", "x".repeat(80)))),
        ("0,all".into(), "AMD_VISIBLE_DEVICES: \"all\" must be the whole value, not part of a list".into()),
        ("none,0".into(), "AMD_VISIBLE_DEVICES: \"none\" must be the whole value, not part of a list".into()),
        ("3-1".into(), "AMD_VISIBLE_DEVICES: the range \"3-1\" ends before it begins".into()),
        ("0-9999".into(), too_many.into()),
        ("0-1023,0".into(), too_many.into()),
        ("0-4294967295,0-4294967295".into(), too_many.into()),
        ("0-99999999999999999999".into(), too_many.into()),
        ("7,".repeat(1024) + "7", too_many.into()),
        (
            "0".repeat(1_000_000),
            "AMD_VISIBLE_DEVICES has 1000000 bytes, more than the 4096 that are read".into(),
        ),
    ];
    for (value, expected) in table {
        let refused = Request::from_visible_devices(&value).unwrap_err().to_string();
        assert_eq!(refused, expected, "{:.100}", value);
    }
}

#[test]
fn takes_as_many_as_are_allowed_and_no_more() {
    let most: Vec<u32> = (0..MOST_GPUS).collect();
    assert_eq!(Request::from_visible_devices("0-1023"), Ok(indexes(&most)));
    assert_eq!(Request::from_gpu_count("1024"), Ok(Request::Count(1024)));
    let longest = format!("{}7", " ".repeat(LONGEST_VALUE - 1));
    assert_eq!(Request::from_visible_devices(&longest), Ok(indexes(&[7])));
    assert!(Request::from_visible_devices(&format!(" {longest}")).is_err());
}

#[test]
fn reads_a_count_of_gpus() {
    let too_many = "AMD_GPU_COUNT asks for more than 1024 GPUs, the most that one container can have";
    let table = [
        ("1", Ok(Request::Count(1))),
        (" 2 ", Ok(Request::Count(2))),
        ("08", Ok(Request::Count(8))),
        ("0", Ok(Request::Nothing)),
        ("000", Ok(Request::Nothing)),
        ("", Ok(Request::Nothing)),
        ("10000", Err(too_many)),
        ("99999999999999999999999", Err(too_many)),
        ("-1", Err("AMD_GPU_COUNT: \"-1\" is not a number of GPUs")),
        ("+1", Err("AMD_GPU_COUNT: \"+1\" is not a number of GPUs")),
        ("1.0", Err("AMD_GPU_COUNT: \"1.0\" is not a number of GPUs")),
        ("all", Err("AMD_GPU_COUNT: \"all\" is not a number of GPUs")),
    ];
    for (value, expected) in table {
        let read = Request::from_gpu_count(value).map_err(|error| error.to_string());
        assert_eq!(read, expected.map_err(str::to_owned), "{value:?}");
    }
}

#[test]
fn the_last_value_of_a_variable_counts_and_foreign_ones_do_not() {
    let both = "AMD_VISIBLE_DEVICES and AMD_GPU_COUNT both ask for GPUs: set only one of them";
    type Case<'c> = (&'c [&'c str], Result<Option<Request>, &'c str>);
    let table: [Case<'_>; 15] = [
        (&[], Ok(None)),
        (&["PATH=/bin", "NVIDIA_VISIBLE_DEVICES=all", "DOCKER_RESOURCE_NVIDIA_GPU=0"], Ok(None)),
        (&["AMD_VISIBLE_DEVICES"], Ok(None)),
        (&["AMD_VISIBLE_DEVICES_=0", "XAMD_VISIBLE_DEVICES=0", "amd_visible_devices=0"], Ok(None)),
        (&["AMD_VISIBLE_DEVICES=0"], Ok(Some(indexes(&[0])))),
        (&["AMD_VISIBLE_DEVICES=0", "DOCKER_RESOURCE_NVIDIA_GPU=1"], Ok(Some(indexes(&[0])))),
        (&["AMD_VISIBLE_DEVICES=all", "AMD_VISIBLE_DEVICES=1"], Ok(Some(indexes(&[1])))),
        (&["AMD_VISIBLE_DEVICES=../..", "AMD_VISIBLE_DEVICES=none"], Ok(Some(Request::Nothing))),
        (&["AMD_GPU_COUNT=9", "AMD_GPU_COUNT=2"], Ok(Some(Request::Count(2)))),
        (&["AMD_VISIBLE_DEVICES=0", "AMD_GPU_COUNT=1"], Err(both)),
        (&["AMD_GPU_COUNT=1", "AMD_VISIBLE_DEVICES=all"], Err(both)),
        (&["AMD_VISIBLE_DEVICES=void", "AMD_GPU_COUNT=1"], Ok(Some(Request::Count(1)))),
        (&["AMD_VISIBLE_DEVICES=0", "AMD_GPU_COUNT=0"], Ok(Some(indexes(&[0])))),
        (&["AMD_VISIBLE_DEVICES=", "AMD_GPU_COUNT="], Ok(Some(Request::Nothing))),
        (
            &["AMD_VISIBLE_DEVICES=0=1"],
            Err(
                "AMD_VISIBLE_DEVICES: \"0=1\" does not name a GPU; a name is an index, a range such as 0-3, a \
                 uuid (GPU-…), a PCI address or a render node",
            ),
        ),
    ];
    for (env, expected) in table {
        let read = Request::from_env(env.iter().copied()).map_err(|error| error.to_string());
        assert_eq!(read, expected.map_err(str::to_owned), "{env:?}");
    }
}

fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[0-9,-]{0,30}",
        "(all|none|void|GPU-[0-9a-f]{0,4}|renderD[0-9]{0,4}|[0-9a-fA-F:.]{0,12}|,|-| |/dev/dri/){0,6}",
    ]
}

proptest! {
    #[test]
    fn no_value_makes_it_panic_or_go_beyond_the_bounds(value in values()) {
        match Request::from_visible_devices(&value) {
            Ok(Request::Listed(list)) => {
                prop_assert!(!list.is_empty() && list.len() <= 1024);
                for (at, selector) in list.iter().enumerate() {
                    prop_assert!(!list[..at].contains(selector), "{selector} twice");
                    let again = Request::from_visible_devices(&selector.to_string());
                    prop_assert_eq!(again, Ok(one(selector.clone())));
                }
            }
            Ok(Request::Count(_)) => prop_assert!(false, "a list became a count"),
            Ok(_) => {}
            Err(error) => {
                let message = error.to_string();
                prop_assert!(message.chars().count() < 1000 && !message.contains(char::is_control), "{message}");
            }
        }
        if let Ok(Request::Count(count)) = Request::from_gpu_count(&value) {
            prop_assert!((1..=1024).contains(&count));
        }
    }
}

#[test]
fn a_wait_is_a_number_of_seconds() {
    let table: [(&[&str], Result<u32, &str>); 7] = [
        (&["A=1"], Ok(0)),
        (&["AMD_GPU_WAIT="], Ok(0)),
        (&["AMD_GPU_WAIT=30"], Ok(30)),
        (&["AMD_GPU_WAIT=x", "AMD_GPU_WAIT= 5 "], Ok(5)),
        (&["AMD_GPU_WAIT=99999999999999"], Ok(u32::MAX)),
        (&["AMD_GPU_WAIT=-1"], Err("AMD_GPU_WAIT: \"-1\" is not a number of seconds")),
        (&["AMD_GPU_WAIT=1m"], Err("AMD_GPU_WAIT: \"1m\" is not a number of seconds")),
    ];
    for (env, expected) in table {
        let read = wait_from_env(env.iter().copied()).map_err(|error| error.to_string());
        assert_eq!(read, expected.map_err(str::to_owned), "{env:?}");
    }
}

#[test]
fn a_bundle_without_the_letters_of_a_request_is_passed_over() {
    let padding = "x".repeat(40);
    for (text, expected) in [
        ("", false),
        ("A", false),
        (r#"{"env":["PATH=/bin","NVIDIA_VISIBLE_DEVICES=all"]}"#, false),
        ("AMDGPU AM AMMD AMD", false),
        ("AMD_", true),
        ("AMAMD_", true),
        (r#"["\n\\"]"#, false),
        (r#"["\u0041MD"]"#, true),
        (r#"["\\u0041"]"#, true),
    ] {
        for text in [text.to_owned(), format!("{padding}{text}"), format!("{text}{padding}")] {
            assert_eq!(may_be_in(text.as_bytes()), expected, "{text}");
        }
    }
}
