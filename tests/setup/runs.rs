//! Runs that end in the middle, that are told nothing of restarts, or that find what they did not leave.

use std::fs;
use std::path::Path;

use reconcile::command::Programs;
use rocworker::config::Config;
use rocworker::moment::Moment;
use rocworker::setup::Setup;
use root::Root;

use crate::laid::Laid;

const MEMORY: &str = "var/lib/rocworker/memory.json";
const RECEIPT: &str = "var/lib/rocworker/receipt.json";

/// A run by the library: by this configuration, with systemctl's stand-in where units are to be restarted.
fn with_setup<T>(laid: &Laid, config: &str, starts: bool, act: impl FnOnce(&Setup<'_>) -> T) -> T {
    let root = Root::open(laid.top()).unwrap();
    let programs = Programs::in_folders(laid.path("stand-ins"));
    act(&Setup {
        root: &root,
        config: &Config::parse(Path::new("/elsewhere.yaml"), config).unwrap(),
        programs: starts.then_some(&programs),
        beside: Some(&laid.path("usr/lib/rocworker")),
        now: Moment::of(std::time::SystemTime::now()),
        caller: "a test".to_owned(),
        waiter: None,
    })
}

#[test]
fn a_run_that_ends_in_the_middle_tells_how_far_it_came_and_so_does_its_history() {
    let laid = Laid::demo("");
    let before = laid.tree();
    let mut begun = 0;
    let error = with_setup(&laid, "", false, |setup| {
        let ran = setup.apply(None, &mut |_| {
            begun += 1;
            if begun == 4 {
                // The receipt can be kept no more.
                fs::rename(laid.path(RECEIPT), laid.path("receipt.aside")).unwrap();
                fs::create_dir(laid.path(RECEIPT)).unwrap();
            }
        });
        ran.unwrap_err().to_string()
    });
    assert!(error.contains("receipt.json is a folder"), "{error}");
    assert!(
        error.ends_with(
            "until then 3 changes were made: rocworker history lists them, rocworker undo takes them back"
        ),
        "{error}"
    );
    let history = laid.json(&["history"]);
    assert_eq!(history["events"][0]["changed"].as_array().unwrap().len(), 3, "{history:#}");
    fs::remove_dir(laid.path(RECEIPT)).unwrap();
    fs::rename(laid.path("receipt.aside"), laid.path(RECEIPT)).unwrap();
    laid.run(&["undo"]).success();
    assert_eq!(laid.tree(), before);
}

#[test]
fn a_memory_that_cannot_go_is_told_by_an_undo_that_took_everything_back() {
    let laid = Laid::demo("gpu-device-ids: 0\n");
    let before = laid.tree();
    laid.run(&["apply"]).success();
    fs::remove_file(laid.path(MEMORY)).unwrap();
    fs::create_dir(laid.path(MEMORY)).unwrap();
    let (code, said) = laid.fails(&["undo"]);
    assert!(code == 1 && said.contains("memory: what was remembered stays"), "{said}");
    assert!(said.contains("taken back\n"), "{said}");
    assert_eq!(laid.tree(), before);
    assert_eq!(laid.json(&["history"])["events"][1]["command"], "undo");
}
