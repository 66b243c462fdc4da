//! Lists the programs' components in CycloneDX 1.5 (cyclonedx.org/docs/1.5/json).

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::VERSION;
use super::crates::Crate;
use super::sums::hex;
use crate::command::Command;
use crate::programs::PACKAGES;

pub(super) fn write(crates: &[Crate], moment: u64, out: &Path) -> Result<PathBuf> {
    let rustc = Command::new(["rustc", "--version"]).read()?;
    let date = allocation::rfc3339(moment);
    let path = out.join(format!("rocworker-{VERSION}.cdx.json"));
    let mut text = serde_json::to_vec_pretty(&document(crates, &date, rustc.trim())).context("as JSON")?;
    text.push(b'\n');
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

fn document(crates: &[Crate], date: &str, rustc: &str) -> Value {
    let (programs, others): (Vec<&Crate>, Vec<&Crate>) =
        crates.iter().partition(|it| it.is_own && PACKAGES.contains(&it.name.as_str()));
    let components: Vec<Value> = others.into_iter().map(|it| component(it, "library")).collect();
    let parts: Vec<Value> = programs.into_iter().map(|it| component(it, "application")).collect();
    let needs: Vec<Value> = crates
        .iter()
        .map(|it| json!({ "ref": it.id(), "dependsOn": it.needs.iter().collect::<Vec<_>>() }))
        .collect();
    let mut document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": date,
            "tools": { "components": [{ "type": "application", "name": "cargo xtask dist", "version": VERSION }] },
            "component": {
                "type": "application",
                "bom-ref": "rocworker",
                "name": "rocworker",
                "version": VERSION,
                "licenses": [{ "license": { "id": "Apache-2.0" } }],
                "components": parts,
            },
            "properties": [{ "name": "rustc", "value": rustc }],
        },
        "components": components,
        "dependencies": needs,
    });
    document["serialNumber"] = json!(serial(&document.to_string()));
    document
}

fn component(one: &Crate, kind: &str) -> Value {
    let mut value = json!({
        "type": kind,
        "bom-ref": one.id(),
        "name": one.name,
        "version": one.version,
        "scope": "required",
    });
    if let Some(description) = &one.description {
        value["description"] = json!(description.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    if let Some(licence) = &one.licence {
        value["licenses"] = json!([{ "expression": licence }]);
    }
    if let Some(sha256) = &one.sha256 {
        value["hashes"] = json!([{ "alg": "SHA-256", "content": sha256 }]);
    }
    if !one.is_own {
        value["purl"] = json!(format!("pkg:cargo/{}@{}", one.name, one.version.replace('+', "%2B")));
    }
    value
}

/// A UUID made of the document's bytes (RFC 9562, version 8), so that an equal document has an equal one.
fn serial(text: &str) -> String {
    let digits = hex(&Sha256::digest(text));
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    format!("urn:uuid:{}-{}-8{}-a{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}
