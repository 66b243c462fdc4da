//! docker: daemon.json as it was meant, and what the dockerd that runs says of itself.

use std::time::Duration;

use check::{About, Check};
use host::version::Version;
use reconcile::command::Programs;
use serde_json::Value;

use super::desired::{CDI, actions};
use super::{ENGINE, NAME};
use crate::examined::{CHECKS, Examined, InEffect, PATIENCE, folders};
use crate::{Docker, Versions};

const RESTART: &str =
    "systemctl reload docker makes dockerd read the runtime, systemctl restart docker CDI too";

pub(super) fn check(examined: &Examined<'_>, versions: &mut Versions<'_>) -> Result<Vec<Check>, Check> {
    let (about, config) = (About::one(CHECKS, NAME), examined.config);
    let docker = Docker::read(examined.root, &config.docker.config, versions);
    if docker.installed.is_none() {
        let why = if docker.is_snap { "a snap, which is left alone" } else { "not installed" };
        return Err(about.skipped(why));
    }
    let desired = |wrapper: &_| actions(config, &docker, wrapper);
    examined.engine(&ENGINE, ("dockerd", RESTART), desired, |programs| {
        let info = info(programs, &[], PATIENCE).map_err(|error| {
            about.clone().skipped(format!("no dockerd answers what is in effect: {error}"))
        })?;
        let runtime = info.get("Runtimes").and_then(|runtimes| runtimes.get(&config.docker.runtime));
        let path = |runtime: &Value| {
            runtime.get("path").and_then(Value::as_str).unwrap_or("something else").to_owned()
        };
        Ok(InEffect { runtime: runtime.map(path), spec_folders: spec_folders(&info) })
    })
}

/// The folders in which dockerd reads CDI specs, or why they are unknown. They depend on dockerd's own version: `docker
/// info` prints the keys that the client knows, without those of a newer dockerd, and with null for what an older one
/// lacks. The list is empty where CDI is off (moby's api/types/system.Info).
fn spec_folders(info: &Value) -> Result<Vec<String>, String> {
    let version = info.get("ServerVersion").and_then(Value::as_str).and_then(Version::find);
    let listed = info.get("CDISpecDirs").filter(|list| list.is_array());
    match (version, listed) {
        (Some(version), _) if version < CDI => {
            Err(format!("dockerd {version} knows no CDI, which came with docker {CDI}"))
        }
        (_, Some(list)) => Ok(folders(list)),
        _ => Err("this docker client does not print where dockerd reads CDI specs: see CDISpecDirs in curl --silent \
                  --unix-socket /run/docker.sock http://localhost/info"
            .to_owned()),
    }
}

/// What `docker info` prints, with these options of docker's before it.
pub(super) fn info(programs: &Programs, options: &[&str], limit: Duration) -> Result<Value, String> {
    let argv = [&["docker"], options, &["info", "--format", "{{json .}}"]].concat();
    let output = programs.run(&argv, limit).map_err(|error| error.to_string())?;
    let info: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    // Some releases of the client end well without a daemon.
    match info.pointer("/ServerErrors/0").and_then(Value::as_str) {
        Some(error) => Err(error.to_owned()),
        None => Ok(info),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn dockerd_s_own_version_decides_whether_it_knows_cdi() {
        let read = || Ok(vec!["/etc/cdi".to_owned()]);
        let lacks =
            |version: &str| Err(format!("dockerd {version} knows no CDI, which came with docker 25.0.0"));
        for (info, expected) in [
            (json!({"ServerVersion": "28.5.2", "CDISpecDirs": ["/etc/cdi"]}), read()),
            (json!({"ServerVersion": "27.0.3+dfsg1", "CDISpecDirs": []}), Ok(Vec::new())),
            // A newer client's keys, of which this dockerd fills none.
            (json!({"ServerVersion": "24.0.9", "CDISpecDirs": null}), lacks("24.0.9")),
            (json!({"ServerVersion": "20.10.24+dfsg1"}), lacks("20.10.24")),
            (json!({"ServerVersion": "dev", "CDISpecDirs": ["/etc/cdi"]}), read()),
        ] {
            assert_eq!(spec_folders(&info), expected, "{info}");
        }
        // An older client leaves out what it does not know.
        for info in [json!({"ServerVersion": "28.5.2"}), json!({"ServerVersion": "dev", "CDISpecDirs": null})]
        {
            assert!(
                spec_folders(&info).unwrap_err().starts_with("this docker client does not print"),
                "{info}"
            );
        }
    }
}
