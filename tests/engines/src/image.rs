//! A container image in the OCI layout, as a registry would hand it out.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::look;

/// The name that the image has once it is imported.
pub const NAME: &str = "rocworker.test/look:1";

/// Writes an image that can look, with this environment and command, into an archive for `ctr images import`.
///
/// # Panics
/// Where it cannot be written.
pub fn write(folder: &Path, archive: &Path, env: &[&str], command: &[&str]) {
    let rootfs = folder.join("image-rootfs");
    look::lay_out(&rootfs);
    let layout = folder.join("image");
    fs::create_dir_all(layout.join("blobs/sha256")).unwrap();

    let layer = folder.join("layer.tar");
    let mut builder = tar::Builder::new(fs::File::create(&layer).unwrap());
    builder.follow_symlinks(false);
    builder.append_dir_all(".", &rootfs).unwrap();
    builder.finish().unwrap();
    let layer = blob(&layout, "application/vnd.oci.image.layer.v1.tar", &fs::read(&layer).unwrap());
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let config = json!({
        "architecture": architecture, "os": "linux",
        "config": {"Env": env, "Cmd": command},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    });
    let config = blob(&layout, "application/vnd.oci.image.config.v1+json", config.to_string().as_bytes());
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer]});
    let mut manifest = blob(&layout, kind, manifest.to_string().as_bytes());
    manifest["annotations"] = json!({"io.containerd.image.name": NAME});
    manifest["platform"] = json!({"architecture": architecture, "os": "linux"});
    fs::write(layout.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
    fs::write(layout.join("index.json"), json!({"schemaVersion": 2, "manifests": [manifest]}).to_string())
        .unwrap();

    let mut builder = tar::Builder::new(fs::File::create(archive).unwrap());
    builder.append_dir_all(".", &layout).unwrap();
    builder.finish().unwrap();
}

/// Puts a blob in its place and answers with its descriptor.
fn blob(layout: &Path, kind: &str, content: &[u8]) -> Value {
    let file = layout.join("blobs/sha256/new");
    fs::write(&file, content).unwrap();
    let output = Command::new("sha256sum").arg(&file).output().unwrap();
    let digest = String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().to_owned();
    assert_eq!(digest.len(), 64, "sha256sum of {}", file.display());
    fs::rename(&file, layout.join("blobs/sha256").join(&digest)).unwrap();
    json!({"mediaType": kind, "digest": format!("sha256:{digest}"), "size": content.len()})
}
