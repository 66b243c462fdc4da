//! Compares what rocworker knows of chips, by id and architecture, with the kernels' own tables.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use inventory::{Gfx, NeverComputes, SeaIslands};
use support::real;

use crate::compiled::HEADERS;

const SUITES: [&str; 3] = ["bookworm", "trixie", "trixie-backports"];
const AMD: &str = "drivers/gpu/drm/amd";

fn source(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(AMD).join(file)).unwrap()
}

/// The text after each `start` up to the next `end`.
fn between<'t>(text: &'t str, start: &'t str, end: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(start).skip(1).filter_map(move |rest| Some(rest.split_once(end)?.0))
}

/// amdgpu's own table: a device and its chip, `TAHITI`.
fn chips(driver: &str) -> BTreeMap<u16, String> {
    let table = between(driver, "pci_device_id pciidlist[]", "\n};").next().unwrap();
    let entry = |line: &str| {
        let id = between(line, "0x1002, 0x", ",")
            .chain(between(line, "0x1002, 0x", ")"))
            .find(|id| id.len() == 4)?;
        let chip = line.split_once("CHIP_")?.1;
        let chip = chip.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
        Some((u16::from_str_radix(id, 16).ok()?, chip.to_owned()))
    };
    table.lines().filter_map(entry).collect()
}

/// `9, 4, 3`
fn versions(text: &str) -> Vec<&str> {
    between(text, "case IP_VERSION(", ")").collect()
}

#[test]
fn real_kernels_know_the_same_generations() {
    let Some([headers]) = real::require_made([HEADERS], &[]) else { return };
    for suite in SUITES {
        let driver = source(&headers.join(suite), "amdgpu/amdgpu_drv.c");
        let chips = chips(&driver);
        assert!(chips.len() > 250, "{suite}: {}", chips.len());
        for (id, chip) in &chips {
            let (never, sea_islands) = (NeverComputes::of(*id), SeaIslands::of(*id));
            let expected = match chip.as_str() {
                "TAHITI" | "PITCAIRN" | "VERDE" | "OLAND" | "HAINAN" => (Some(NeverComputes::Gcn1), None),
                "BONAIRE" | "KABINI" | "MULLINS" => (Some(NeverComputes::Gcn2), None),
                "KAVERI" => (None, Some(SeaIslands::Kaveri)),
                "HAWAII" => (None, Some(SeaIslands::Hawaii)),
                _ => (None, None),
            };
            assert_eq!((never, sea_islands), expected, "{suite}: {id:04x} {chip}");
        }
        let older = between(&driver, "amdgpu_unsupported_pciidlist[]", "};").next().unwrap();
        let older =
            older.split(',').filter_map(|id| u16::from_str_radix(id.trim().strip_prefix("0x")?, 16).ok());
        let older: BTreeSet<u16> = older.collect();
        assert!(older.len() > 400, "{suite}: {}", older.len());
        for id in older {
            assert!(NeverComputes::of(id).is_some(), "{suite}: {id:04x}");
        }
        let kfd = source(&headers.join(suite), "amdkfd/kfd_device.c");
        for chip in ["KAVERI", "HAWAII"] {
            assert!(kfd.contains(&format!("case CHIP_{chip}:")), "{suite}: {chip}");
        }
        for chip in ["TAHITI", "PITCAIRN", "VERDE", "OLAND", "HAINAN", "BONAIRE", "KABINI", "MULLINS"] {
            assert!(!kfd.contains(&format!("case CHIP_{chip}:")), "{suite}: {chip}");
        }
    }
}

#[test]
fn real_kernels_call_the_same_architectures_a_processors_own() {
    let Some([headers]) = real::require_made([HEADERS], &[]) else { return };
    for suite in SUITES {
        let folder = headers.join(suite);
        let discovery = source(&folder, "amdgpu/amdgpu_discovery.c");
        let block =
            discovery.split_once("adev->flags |= AMD_IS_APU;").unwrap().0.rsplit_once("switch (").unwrap().1;
        let apus: BTreeSet<&str> = versions(block).into_iter().collect();
        assert!(apus.len() > 8, "{suite}: {apus:?}");
        let kfd = source(&folder, "amdkfd/kfd_device.c");
        let probe = between(&kfd, "kgd2kfd_probe(", "\n}").next().unwrap();
        let mut compared = 0;
        for case in probe.split_inclusive("gfx_target_version = ").collect::<Vec<_>>().windows(2) {
            let [before, after] = case else { continue };
            let number: String = after.chars().take_while(char::is_ascii_digit).collect();
            let gfx = Gfx::from_target_version(number.parse().unwrap_or(0));
            let cases = before.rsplit_once("break;").map_or(*before, |(_, rest)| rest);
            for version in versions(cases) {
                let is_integrated = gfx.is_some_and(Gfx::is_integrated);
                assert_eq!(is_integrated, apus.contains(version), "{suite}: {version} {number}");
                compared += 1;
            }
        }
        assert!(compared > 20, "{suite}: {compared}");
    }
}
