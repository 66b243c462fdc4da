//! Imports point one way: no two modules of one folder need each other, by themselves or by way of others.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "a test reads the source")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Crates that are free of circles.
const CRATES: [&str; 1] = ["reconcile"];

type Module = Vec<String>;

/// Every module beneath a folder, with its text up to its tests.
fn modules(folder: &Path, of: &[String], found: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, mut module) = (entry.path(), of.to_vec());
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if stem == "tests" {
            continue;
        }
        if !["mod", "lib", "main"].contains(&stem.as_str()) {
            module.push(stem);
        }
        if path.is_dir() {
            modules(&path, &module, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
            let code: Vec<&str> = lines.filter(|line| !line.trim_start().starts_with("//")).collect();
            found.insert(module, code.join("\n"));
        }
    }
}

/// The modules that a path at the start of a text names, with one for each name in braces.
fn named(text: &str, from: &[String]) -> Vec<Module> {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(text.len());
    let (path, rest) = text.split_at(end);
    let mut module = from.to_vec();
    for part in path.split("::").filter(|part| !part.is_empty()) {
        match part {
            "super" => drop(module.pop()),
            part => module.push(part.to_owned()),
        }
    }
    let Some((inner, _)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
        return vec![module];
    };
    assert!(!inner.contains('{'), "two imports are two lines: {path}{{{inner}");
    inner.split(',').flat_map(|text| named(text.trim(), &module)).collect()
}

/// The modules that a module names by paths that begin at the crate or at its parent.
fn uses(module: &[String], text: &str) -> Vec<Module> {
    let mut found = Vec::new();
    for (at, start) in text.match_indices("crate::").chain(text.match_indices("super::")) {
        let is_inner = text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        match start {
            _ if is_inner => {}
            "crate::" => found.extend(named(&text[at + start.len()..], &[])),
            _ => found.extend(named(&text[at..], module)),
        }
    }
    found
}

/// For each folder, which of its modules needs which.
fn needs(modules: &BTreeMap<Module, String>) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut needs: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, text) in modules {
        for used in uses(module, text) {
            let same = module.iter().zip(&used).take_while(|(a, b)| a == b).count();
            if let (Some(one), Some(other)) = (module.get(..=same), used.get(..=same))
                && modules.keys().any(|it| it.starts_with(other))
            {
                needs.entry(one.to_vec()).or_default().insert(other.to_vec());
            }
        }
    }
    needs
}

fn reaches(needs: &BTreeMap<Module, BTreeSet<Module>>, from: &Module, to: &Module) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        for next in needs.get(module).into_iter().flatten().filter(|next| seen.insert(*next)) {
            open.push(next);
        }
    }
    seen.contains(to)
}

#[test]
fn no_modules_of_one_folder_need_each_other() {
    for name in CRATES {
        let mut found = BTreeMap::new();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates").join(name).join("src");
        modules(&folder, &[], &mut found);
        let needs = needs(&found);
        assert!(needs.len() > 20, "{name}: the imports are read: {needs:?}");
        let in_circle = needs.keys().filter(|module| reaches(&needs, module, module));
        let circle: Vec<String> = in_circle.map(|module| module.join("::")).collect();
        assert!(circle.is_empty(), "{name}: these need each other: {circle:#?}");
    }
}

#[test]
fn a_circle_is_found_however_it_is_written() {
    let text = |text: &str| text.to_owned();
    let module = |path: &str| path.split("::").map(str::to_owned).collect::<Module>();
    for (one, other, is_circle) in [
        ("use crate::b::Thing;", "fn f() { crate::a::g() }", true),
        ("use super::b::{Thing, c};", "use crate::{\n    root,\n    a,\n};", true),
        ("use crate::b::Thing;", "use other_crate::a;\nuse std::fmt;", false),
    ] {
        let needs = needs(&BTreeMap::from([(module("a"), text(one)), (module("b"), text(other))]));
        assert_eq!(reaches(&needs, &module("a"), &module("a")), is_circle, "{one} {other}: {needs:?}");
    }
}
