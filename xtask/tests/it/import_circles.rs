//! Imports point one way: no two modules of one folder need each other, by themselves or by way of others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A module's names below its crate. The crate itself has none.
type Module = Vec<String>;

/// The text of each module of one source folder.
type Modules = BTreeMap<Module, String>;

/// The source folder of each library and program in a workspace.
fn folders(workspace: &str) -> BTreeSet<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(workspace).join("Cargo.toml");
    let arguments = ["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"];
    let output =
        Command::new(env!("CARGO")).args(arguments).arg("--manifest-path").arg(manifest).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let targets = packages.flat_map(|package| package["targets"].as_array().unwrap());
    targets
        .filter(|target| ["lib", "staticlib", "bin"].map(Value::from).contains(&target["kind"][0]))
        .map(|target| Path::new(target["src_path"].as_str().unwrap()).parent().unwrap().to_owned())
        .collect()
}

/// Every module beneath a folder, with its text up to its tests.
fn modules(folder: &Path, of: &[String], found: &mut Modules) {
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
            let code = lines.filter(|line| !line.trim_start().starts_with("//"));
            // lib.rs and main.rs of one folder are one entry.
            found.entry(module).or_default().extend(code.flat_map(|line| [line, "\n"]));
        }
    }
}

/// The parts of the list in braces with which a text begins.
fn in_braces(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 1, Vec::new());
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if depth == 0 || depth == 1 && c == ',' {
            parts.push(text[start..at].trim());
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    parts
}

/// The start of a text that is a path, and the rest.
fn path_of(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    text.split_at(end.unwrap_or(text.len()))
}

/// What the path at the start of a text names, or each path in its braces, with the name that an import gives it.
fn named(text: &str, from: &[String]) -> Vec<(String, Module)> {
    let (path, rest) = path_of(text);
    let mut module = from.to_vec();
    for part in path.split("::").filter(|part| !part.is_empty()) {
        match part {
            "crate" => module.clear(),
            "super" => drop(module.pop()),
            "self" => {}
            part => module.push(part.to_owned()),
        }
    }
    if path.ends_with("::") && rest.starts_with('{') {
        return in_braces(rest).into_iter().flat_map(|text| named(text, &module)).collect();
    }
    let renamed = rest.strip_prefix(" as ").map(|rest| path_of(rest).0.to_owned());
    vec![(renamed.or(module.last().cloned()).unwrap_or_default(), module)]
}

/// What stands behind each name that a module has by an import. Its children reach it by `super::` too.
fn imported(modules: &Modules) -> BTreeMap<Module, Module> {
    let mut found = BTreeMap::new();
    for (module, text) in modules {
        for (at, start) in text.match_indices("use ") {
            let line = text[..at].rsplit('\n').next().unwrap_or_default();
            if line.is_empty() || line.starts_with("pub") {
                let names = named(&text[at + start.len()..], module).into_iter();
                let names = names.map(|(name, path)| ([&module[..], &[name]].concat(), path));
                found.extend(names.filter(|(name, path)| name != path));
            }
        }
    }
    found
}

/// A path with each import on the way replaced by what stands behind it.
fn behind_imports(mut path: Module, modules: &Modules, imported: &BTreeMap<Module, Module>) -> Module {
    // More re-exports of re-exports than anybody writes; `use a::b as a` would have no end.
    for _ in 0..8 {
        let starts = (1..=path.len()).filter(|len| !modules.contains_key(&path[..*len]));
        let import = starts.filter_map(|len| Some((len, imported.get(&path[..len])?))).next();
        let Some((len, target)) = import else { break };
        path = [target, &path[len..]].concat();
    }
    path
}

/// What a module names by a path that begins at the crate or at its parent.
fn uses(module: &[String], text: &str) -> Vec<Module> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::").chain(text.match_indices("super::")) {
        if !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
            found.extend(named(&text[at..], module).into_iter().map(|(_, path)| path));
        }
    }
    found
}

/// Of each folder, which of its modules needs which.
fn needs(modules: &Modules) -> BTreeMap<Module, BTreeSet<Module>> {
    let imported = imported(modules);
    let mut needs: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, text) in modules {
        for used in uses(module, text) {
            let used = behind_imports(used, modules, &imported);
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
    let (mut arrows, mut circles) = (0, Vec::new());
    for folder in [".", "hip-remote"].into_iter().flat_map(folders) {
        let mut found = BTreeMap::new();
        modules(&folder, &[], &mut found);
        let needs = needs(&found);
        arrows += needs.values().map(BTreeSet::len).sum::<usize>();
        for module in needs.keys().filter(|module| reaches(&needs, module, module)) {
            let needed = needs[module].iter().filter(|needed| reaches(&needs, needed, module));
            let needed: Vec<String> = needed.map(|needed| needed.join("::")).collect();
            circles.push(format!("{}: {} needs {}", folder.display(), module.join("::"), needed.join(", ")));
        }
    }
    assert!(arrows > 400, "the imports are read: {arrows}");
    assert!(circles.is_empty(), "these need each other: {circles:#?}");
}

#[test]
fn a_circle_is_found_however_it_is_written() {
    let text = |text: &str| text.to_owned();
    let module = |path: &str| path.split("::").filter(|it| !it.is_empty()).map(text).collect::<Module>();
    for (one, other, parent, is_circle) in [
        ("use crate::b::Thing;", "fn f() { crate::a::g() }", "", true),
        ("use super::b::{Thing, c};", "use crate::{\n    root,\n    a,\n};", "", true),
        ("use crate::{c, b::{d::{e, f}, Thing}};", "use crate::{c::{d, e}, a};", "", true),
        ("use crate::b::Thing;", "use crate::{b::{a}, c::{a}};", "", false),
        ("use crate::b::Thing;", "use crate::Known;", "pub use a::Known;", true),
        (
            "use crate::b::Thing;",
            "use super::{Name, it};",
            "use std::fmt;\nuse crate::a::{it, Known as Name};",
            true,
        ),
        ("use crate::b::Thing;", "use super::Name;", "use a::Known;\nuse other_crate::a::Name;", false),
        ("use crate::b::Thing;", "use other_crate::a;\nuse std::fmt;", "", false),
    ] {
        let texts = [("a", one), ("b", other), ("", parent)];
        let needs = needs(&texts.map(|(path, it)| (module(path), text(it))).into());
        assert_eq!(
            reaches(&needs, &module("a"), &module("a")),
            is_circle,
            "{one} {other} {parent}: {needs:?}"
        );
    }
}
