//! The page in Chromium: two sizes, both schemes, with and without scripts, and axe's judgement of each.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::real;

use super::machine;
use crate::running::Running;

const LOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser/look.mjs");

/// The folder in which pictures stay, so that a person can look at them too.
fn pictures() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Chromium's views of a machine's page.
fn looks(top: &Path, modules: &Path) -> Vec<Value> {
    let running = Running::start(top, &[]);
    let temporary = tempfile::tempdir().unwrap();
    let mut looking = Command::new("node")
        .arg(LOOK)
        .arg(format!("http://{}/", running.address))
        .arg(pictures())
        .arg(modules)
        .arg("/usr/bin/chromium")
        // The browser's profile, caches and crash reports are gone with it.
        .envs(["HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"].map(|name| (name, temporary.path())))
        .stdout(File::create(temporary.path().join("looks")).unwrap())
        .stderr(File::create(temporary.path().join("stderr")).unwrap())
        .spawn()
        .unwrap();
    // A busy machine takes longer than the daemon's files count.
    let mut published = Instant::now();
    let status = loop {
        if let Some(status) = looking.try_wait().unwrap() {
            break status;
        }
        if published.elapsed() > Duration::from_secs(5) {
            machine::publish(top);
            published = Instant::now();
        }
        sleep(Duration::from_millis(50));
    };
    let [found, stderr] =
        ["looks", "stderr"].map(|name| fs::read_to_string(temporary.path().join(name)).unwrap());
    assert!(status.success(), "{stderr}");
    let Value::Array(looks) = serde_json::from_str(&found).unwrap() else { panic!("{stderr}") };
    looks
}

#[test]
fn real_chromium_shows_the_page_at_two_sizes_in_both_schemes_without_scripts_and_axe_finds_no_fault() {
    let Some([modules]) = real::require_made(["ROCWORKER_BROWSER"], &["chromium", "node"]) else { return };
    let folder = machine::busy();
    let looks = looks(folder.path(), &modules);
    assert_eq!(looks.len(), 8);
    for look in &looks {
        let name = look["name"].as_str().unwrap();
        assert_eq!(look["status"], 200, "{name}");
        assert_eq!(look["title"], "worker-1: 1 of 4 cards unhealthy", "{name}");
        assert_eq!(look["requests"].as_array().unwrap().len(), 1, "{name}: {}", look["requests"]);
        assert_eq!(look["said"].as_array().unwrap().len(), 0, "{name}: {}", look["said"]);
        assert_eq!((&look["details"], &look["opened"]), (&4.into(), &4.into()), "{name}");
        for state in ["closed", "open"] {
            let axe = &look[state];
            if name.ends_with("no-script") {
                // What axe judged in the look before this one.
                assert!(axe.is_null() && look["html"].as_str().unwrap().contains("</table>"), "{name}");
                continue;
            }
            assert!(axe["violations"].as_array().unwrap().is_empty(), "{name}, {state}: {axe:#}");
            assert!(axe["passes"].as_u64() > Some(20), "{name}, {state}: {axe:#}");
        }
        let (widest, width) = (look["widest"].as_u64(), look["width"].as_u64());
        assert!(widest <= width, "{name} scrolls: {widest:?} of {width:?}");
        let is_dark = look["background"] == "rgb(19, 22, 25)";
        assert_eq!(is_dark, name.contains("dark"), "{name}: {}", look["background"]);
    }
}
