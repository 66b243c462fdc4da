//! The policy's folders: in every container, whatever it asks for and whatever else is broken, and none fails for them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use crate::stage::{Outcome, Stage, config, names, policy};

/// The policy with one more parent than there is.
fn policy_with_folders(stage: &Stage, requests: &str, default: &str) {
    let mut policy = policy(requests, default);
    policy["folders"] = json!([stage.path("srv"), stage.path("not there")]);
    stage.write("wrapper.json", policy.to_string());
}

fn make(stage: &Stage, folders: &[&str]) {
    for folder in folders {
        std::fs::create_dir_all(stage.path("srv").join(folder)).unwrap();
    }
}

/// The mounted folders, each with its options.
fn mounted(config: &[u8]) -> Vec<(String, String)> {
    let config: Value = serde_json::from_slice(config).unwrap();
    let mounts = config["mounts"].as_array().cloned().unwrap_or_default();
    let mount = |mount: Value| {
        assert_eq!((&mount["type"], &mount["source"]), (&json!("bind"), &mount["destination"]));
        assert_eq!(mount["options"][0], "rbind");
        let path = mount["destination"].as_str().unwrap();
        (path.rsplit('/').next().unwrap().to_owned(), mount["options"][1].as_str().unwrap().to_owned())
    };
    mounts.into_iter().map(mount).collect()
}

fn started_with(stage: &Stage, outcome: &Outcome, folders: &[(&str, &str)], kind: &str) {
    assert!(outcome.runs(), "{kind}: {outcome:?}");
    let folders: Vec<_> =
        folders.iter().map(|(name, access)| (name.to_string(), access.to_string())).collect();
    assert_eq!(mounted(&stage.config()), folders, "{kind}: {outcome:?}");
}

const BOTH: &[(&str, &str)] = &[("a", "ro"), ("b_rw", "rw")];

#[test]
fn whoever_asks_for_nothing_has_them_too() {
    for (requests, default, env) in [
        ("all", "none", &[][..]),
        ("all", "none", &["AMD_VISIBLE_DEVICES=none"]),
        ("deny", "none", &["AMD_GPU_COUNT=0"]),
        ("all", "all", &["AMD_VISIBLE_DEVICES=void"]),
        ("all", "all", &["BUILD_TEAM_NAME=main", "BUILD_ID=7"]),
    ] {
        let stage = Stage::new();
        make(&stage, &["b_rw", "a"]);
        policy_with_folders(&stage, requests, default);
        let outcome = stage.create(config(env));
        started_with(&stage, &outcome, BOTH, default);
        assert!(outcome.log.is_empty(), "{outcome:?}");
        let once = stage.config();
        let again = stage.create_as_it_is("c1");
        assert!(again.runs() && again.log.is_empty() && stage.config() == once, "{again:?}");
        assert_eq!(names(&stage.path("bundle")), ["config.json"]);
        assert!(!stage.path("run").exists(), "a container without GPUs takes no lock and has no record");
        let run = stage.call(&["run", "--bundle", stage.path("bundle").to_str().unwrap(), "c2"]);
        started_with(&stage, &run, BOTH, "run");
    }
}

#[test]
fn a_policy_that_says_nothing_about_gpus_has_folders_all_the_same() {
    let stage = Stage::new();
    make(&stage, &["a"]);
    stage.write("wrapper.json", json!({"schema_version": 1, "folders": [stage.path("srv")]}).to_string());
    for env in [&[][..], &["AMD_VISIBLE_DEVICES=0"], &["AMD_VISIBLE_DEVICES=../.."]] {
        let outcome = stage.create(config(env));
        started_with(&stage, &outcome, &[("a", "ro")], "plain runc else");
        assert!(outcome.log.is_empty(), "{outcome:?}");
    }
    let unreadable = stage.create("mud");
    assert!(unreadable.runs() && unreadable.messages("warning").len() == 1, "{unreadable:?}");
}

#[test]
fn only_a_real_folder_that_is_not_hidden_is_mounted_in_the_order_of_the_names() {
    let stage = Stage::new();
    make(&stage, &["z", "10", "9", ".hidden", "größe", "a_writable_2"]);
    stage.write("srv/file_rw", "");
    symlink(stage.path("srv/z"), stage.path("srv/link")).unwrap();
    symlink("nowhere", stage.path("srv/dangling")).unwrap();
    std::fs::create_dir(stage.path("srv").join(OsStr::from_bytes(b"\xff"))).unwrap();
    policy_with_folders(&stage, "all", "none");
    let outcome = stage.create(config(&[]));
    let expected = [("10", "ro"), ("9", "ro"), ("a_writable_2", "rw"), ("größe", "ro"), ("z", "ro")];
    started_with(&stage, &outcome, &expected, "");
    let warnings = outcome.messages("warning");
    assert!(warnings.len() == 1 && warnings[0].contains("not UTF-8"), "{outcome:?}");
}

#[test]
fn there_is_an_end_to_how_many_are_mounted() {
    let stage = Stage::new();
    let all: Vec<String> = (0..300).map(|n| format!("{n:03}")).collect();
    make(&stage, &all.iter().map(String::as_str).collect::<Vec<_>>());
    policy_with_folders(&stage, "all", "none");
    let outcome = stage.create(config(&[]));
    assert_eq!(mounted(&stage.config()).len(), 256, "{outcome:?}");
    let warnings = outcome.messages("warning");
    assert!(warnings.len() == 1 && warnings[0].contains("\"256\" beneath "), "{outcome:?}");
    assert!(warnings[0].contains(": a container gets 256 at most"), "{outcome:?}");
}

#[test]
fn what_stands_in_the_place_of_a_parent_fails_no_container() {
    let stage = Stage::new();
    policy_with_folders(&stage, "all", "none");
    let none = stage.create(config(&[]));
    assert!(none.runs() && none.log.is_empty() && stage.config() == config(&[]).as_bytes(), "{none:?}");
    stage.write("srv", "");
    let file = stage.create(config(&[]));
    let warnings = file.messages("warning");
    assert!(
        file.runs() && warnings.len() == 1 && warnings[0].contains("are not mounted: Not a directory"),
        "{file:?}"
    );
    std::fs::remove_file(stage.path("srv")).unwrap();
    // As a shell's `/srv/*` has it.
    std::fs::create_dir_all(stage.path("elsewhere/a")).unwrap();
    symlink("elsewhere", stage.path("srv")).unwrap();
    let link = stage.create(config(&[]));
    started_with(&stage, &link, &[("a", "ro")], "a link");
}

#[test]
fn a_parent_that_others_could_exchange_has_no_folders() {
    let set_mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for (above, parent, expected) in [
        (0o755, 0o755, Some(&[("a", "ro")][..])),
        // In a folder such as /tmp nobody can rename other users' files.
        (0o1777, 0o755, Some(&[("a", "ro")])),
        (0o755, 0o1777, None),
        (0o755, 0o775, None),
        (0o755, 0o757, None),
        (0o775, 0o755, None),
        (0o777, 0o700, None),
    ] {
        let stage = Stage::new();
        let mut policy = policy("all", "none");
        let srv = stage.path("above/srv");
        std::fs::create_dir_all(srv.join("a")).unwrap();
        policy["folders"] = json!([srv]);
        stage.write("wrapper.json", policy.to_string());
        set_mode(&srv, parent);
        set_mode(&stage.path("above"), above);
        let outcome = stage.create(config(&[]));
        let kind = format!("{above:o} {parent:o}");
        started_with(&stage, &outcome, expected.unwrap_or_default(), &kind);
        let reported = outcome.messages("warning");
        assert_eq!(reported.len(), usize::from(expected.is_none()), "{kind}: {outcome:?}");
        assert!(
            reported.iter().all(|reported| reported.contains(" lets others write: only root may own it and write in it")),
            "{kind}: {reported:?}"
        );
    }
}

#[test]
fn in_kubernetes_the_scheduler_decides() {
    for (requests, default) in [("all", "none"), ("all", "all")] {
        let stage = Stage::new();
        make(&stage, &["a"]);
        policy_with_folders(&stage, requests, default);
        let text =
            config(&[]).replacen('{', r#"{"annotations":{"io.kubernetes.cri.container-type":"x"},"#, 1);
        let outcome = stage.create(&text);
        assert!(outcome.runs() && outcome.log.is_empty(), "{outcome:?}");
        assert_eq!(stage.config(), text.as_bytes());
    }
}

#[test]
fn who_has_no_gpus_since_something_is_broken_has_folders() {
    type Break = fn(&Stage);
    let broken: [(&str, Break); 2] = [("no node", |_| {}), ("no records", |stage| stage.write("run", ""))];
    for (kind, break_it) in broken {
        let stage = Stage::new();
        make(&stage, &["a", "b_rw"]);
        policy_with_folders(&stage, "all", "all");
        break_it(&stage);
        let outcome = stage.create(config(&[]));
        started_with(&stage, &outcome, BOTH, kind);
        assert!(
            outcome.messages("warning").iter().all(|reported| !reported.contains("folder beneath")),
            "{outcome:?}"
        );
        assert!(
            !outcome.messages("warning").is_empty() && outcome.messages("error").is_empty(),
            "{outcome:?}"
        );
        assert!(stage.record("c1").is_none(), "{kind}");
    }
}

#[test]
fn a_bundle_that_cannot_be_edited_starts_without_them_and_with_a_warning() {
    let doubled = config(&[]).replacen('{', r#"{"mounts":[],"Mounts":[],"#, 1);
    let unclear = config(&[]).replacen('{', r#"{"mounts":[{"type":"bind"}],"#, 1);
    let not_text = [config(&[]).as_bytes(), b"\xff"].concat();
    for (kind, text) in [
        ("half", b"{".to_vec()),
        ("not UTF-8", not_text),
        ("doubled", doubled.into_bytes()),
        ("unclear", unclear.into_bytes()),
    ] {
        let stage = Stage::new();
        make(&stage, &["a"]);
        policy_with_folders(&stage, "all", "none");
        let outcome = stage.create(&text);
        let warnings = outcome.messages("warning");
        assert!(
            outcome.runs() && warnings.len() == 1 && warnings[0].contains("folders"),
            "{kind}: {outcome:?}"
        );
        assert_eq!(stage.config(), text, "{kind}");
    }
}

#[test]
fn a_config_that_is_a_link_and_a_folder_that_cannot_be_written_to_keep_nobody_from_starting() {
    let stage = Stage::new();
    make(&stage, &["a"]);
    policy_with_folders(&stage, "all", "none");
    let bundle = stage.bundle("");
    stage.write("elsewhere", config(&[]));
    std::fs::remove_file(bundle.join("config.json")).unwrap();
    symlink(stage.path("elsewhere"), bundle.join("config.json")).unwrap();
    let link = stage.create_as_it_is("c1");
    let warnings = link.messages("warning");
    assert!(link.runs() && warnings.len() == 1 && warnings[0].contains("symbolic link"), "{link:?}");
    assert_eq!(stage.config(), config(&[]).as_bytes());

    // A folder in the place of the new file: root may write anywhere.
    let bundle = stage.bundle(config(&[]));
    let temporary = bundle.join(format!(".config.json.rocworker.{}", std::process::id()));
    std::fs::create_dir(&temporary).unwrap();
    std::fs::set_permissions(&bundle, std::fs::Permissions::from_mode(0o500)).unwrap();
    let unwritable = stage.create_as_it_is("c1");
    std::fs::set_permissions(&bundle, std::fs::Permissions::from_mode(0o700)).unwrap();
    let warnings = unwritable.messages("warning");
    assert!(unwritable.runs() && warnings.len() == 1, "{unwritable:?}");
    assert!(warnings[0].contains("/config.json anew failed: "), "{unwritable:?}");
    assert_eq!(stage.config(), config(&[]).as_bytes());
}

/// runc would have to make a folder there, and would fail the container.
#[test]
fn a_container_without_a_place_for_them_starts_without_them() {
    let stage = Stage::new();
    make(&stage, &["a", "b_rw"]);
    policy_with_folders(&stage, "all", "none");
    let srv = stage.path("srv");
    let inside = stage.path("bundle/rootfs").join(srv.strip_prefix("/").unwrap());
    type State<'m> = (&'m str, &'m dyn Fn(), &'m [(&'m str, &'m str)]);
    let above = || std::fs::create_dir_all(inside.parent().unwrap()).unwrap();
    let states: [State<'_>; 6] = [
        ("an empty root", &|| {}, BOTH),
        ("folders", &|| std::fs::create_dir_all(inside.join("a")).unwrap(), BOTH),
        (
            "a file in the place of one",
            &|| {
                std::fs::create_dir_all(&inside).unwrap();
                std::fs::write(inside.join("a"), "").unwrap();
            },
            &[("b_rw", "rw")],
        ),
        (
            "a file in the place of their parent",
            &|| {
                above();
                std::fs::write(&inside, "").unwrap();
            },
            &[],
        ),
        (
            "a link in the place of one",
            &|| {
                std::fs::create_dir_all(&inside).unwrap();
                symlink("/bin", inside.join("a")).unwrap();
            },
            &[("b_rw", "rw")],
        ),
        (
            "a link in the place of their parent",
            &|| {
                above();
                symlink("/elsewhere", &inside).unwrap();
            },
            &[],
        ),
    ];
    for (kind, make_it, expected) in states {
        let bundle = stage.bundle(config(&[]));
        std::fs::create_dir(bundle.join("rootfs")).unwrap();
        make_it();
        let outcome = stage.create_as_it_is("c1");
        started_with(&stage, &outcome, expected, kind);
        let warnings = outcome.messages("warning");
        assert_eq!(warnings.len(), 2 - expected.len(), "{kind}: {outcome:?}");
        assert!(
            warnings.iter().all(|reported| reported.ends_with("has no place for it")),
            "{kind}: {outcome:?}"
        );
    }
}

#[test]
fn what_is_no_create_has_nothing_to_do_with_folders() {
    let stage = Stage::new();
    make(&stage, &["a"]);
    policy_with_folders(&stage, "all", "none");
    stage.write("process", "{}");
    for call in [&["start", "c1"][..], &["delete", "c1"], &["state", "c1"], &["exec", "c1", "create"]] {
        let outcome = stage.call(call);
        assert!(outcome.runs() && outcome.log.is_empty(), "{call:?}: {outcome:?}");
    }
    let process = stage.path("process");
    assert!(stage.call(&["exec", "--process", process.to_str().unwrap(), "c1"]).runs());
    assert_eq!(std::fs::read(process).unwrap(), b"{}");
}
