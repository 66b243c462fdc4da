//! A charm's options, and the configuration that they mean.

use std::path::Path;

use root::Root;
use serde_json::{Map, Value, json};

use crate::config::{Config, Error};
use crate::engines::unit::FOLDERS;

/// What is done with this unit, as the options and the machine say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A Concourse worker.
    Worker,
    /// Concourse's web node: nothing is set up.
    Web,
    /// A machine without Concourse, whose engines are set up.
    Machine,
}

/// An option or the file of configuration cannot be followed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongConfig(pub String);

/// The options as `config-get --format=json` answers them. Another charm has options of its own beside rocworker's, and
/// need not have all of these.
#[derive(Debug)]
pub struct Options(pub Map<String, Value>);

/// An option, the key of the configuration that it becomes, and its value unless nothing is to be said.
type Line = (&'static str, &'static str, Option<Value>);

/// The first lines of a configuration that a charm wrote.
const HEADER: &str = "# Made of the charm's options at each change of them: juju config changes them.\n\
                      # A file that is edited by hand is not the charm's any more: it then leaves it alone, and says so.\n";

impl Options {
    /// The unit's role by the option `mode`; `None`: by which of Concourse's units the machine has.
    pub fn role(&self) -> Result<Option<Role>, WrongConfig> {
        match self.text("mode")?.as_deref() {
            None | Some("auto") => Ok(None),
            Some("web") => Ok(Some(Role::Web)),
            Some("worker") => Ok(Some(Role::Worker)),
            Some(other) => Err(wrong("mode", format!("{other:?} is none of auto, web and worker"))),
        }
    }

    /// Whether AMD's packages go with the charm when a driver is among them.
    pub fn remove_driver(&self) -> Result<bool, WrongConfig> {
        Ok(self.truth("remove-driver")?.unwrap_or_default())
    }

    /// The text of /etc/rocworker/config.yaml for a unit of this role, checked by the parser of that file. Pure.
    pub fn configuration(&self, role: Role) -> Result<String, WrongConfig> {
        let mut lines = vec![("options", "schema_version", Some(json!(1)))];
        match role {
            Role::Web => lines.push(("mode", "compute-runtime", Some(json!("none")))),
            Role::Worker | Role::Machine => lines.extend(self.lines()?),
        }
        lines.retain(|(_, _, value)| value.is_some());
        // The option that is wrong by itself, for the parser's line is the header's where a value hides its key.
        for line in &lines {
            parsed(std::slice::from_ref(line)).map_err(|error| refused(line.0, error))?;
        }
        // Two that contradict each other are each right alone: the parser names one of them.
        parsed(&lines).map_err(|error| match error {
            Error::Wrong { problem, .. } => WrongConfig(problem),
            other => WrongConfig(other.to_string()),
        })
    }

    fn lines(&self) -> Result<Vec<Line>, WrongConfig> {
        let same = |option| Ok((option, option, self.text(option)?.map(Value::from)));
        let enable = self.truth("enable-gpu")?;
        // enable-gpu is what compute-runtime was called: its default must not contradict the older option.
        let runtime = self.text("compute-runtime")?.filter(|word| enable.is_none() || word != "auto");
        // Where no GPU is offered, which of them it would be is no contradiction: Juju always sends an option's default.
        let is_off = runtime.as_deref() == Some("none") || enable == Some(false);
        let devices = self.text("gpu-device-ids")?.filter(|_| !is_off);
        let (packages, rocm) = self.packages()?;
        let driver = self.text("driver")?.filter(|word| word != "keep");
        Ok(vec![
            ("compute-runtime", "compute-runtime", runtime.map(Value::from)),
            ("enable-gpu", "enable-gpu", enable.map(Value::from)),
            ("gpu-device-ids", "gpu-device-ids", devices.map(Value::from)),
            same("tag")?,
            ("sharing", "wrapper", self.text("sharing")?.map(|word| json!({ "sharing": word }))),
            same("restart")?,
            ("packages", "packages", Some(packages).filter(|it| !it.is_empty()).map(Value::from)),
            ("packages", "rocm", rocm),
            (
                "driver",
                "driver",
                driver.map(|release| json!({ "install": "amdgpu-dkms", "version": release })),
            ),
            ("exporter-listen", "exporter", self.text("exporter-listen")?.map(|word| exporter(&word))),
            (
                "repository",
                "repositories",
                self.text("repository")?.map(|url| repositories(&url)).transpose()?,
            ),
        ])
    }

    fn packages(&self) -> Result<(Map<String, Value>, Option<Value>), WrongConfig> {
        let (mut packages, mut rocm) = (Map::new(), None);
        let words = self.text("packages")?.unwrap_or_default();
        for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word.split_once('=') {
                None if word == "container-toolkit" || word == "rocm-smi" => {
                    packages.insert(word.to_owned(), json!("install"));
                }
                None if word == "keep" && words.trim() == "keep" => {
                    packages = ["container-toolkit", "rocm-smi"]
                        .map(|it| (it.to_owned(), json!("keep")))
                        .into_iter()
                        .collect();
                }
                None if word == "rocm" => rocm = Some(json!({ "install": "apt" })),
                Some(("rocm", version)) => {
                    rocm = Some(json!({ "install": "apt", "version": version }));
                }
                _ => {
                    let problem = format!(
                        "{word:?} is none of container-toolkit, rocm-smi, rocm and rocm=RELEASE (rocm=7.2.4); keep stands \
                         alone"
                    );
                    return Err(wrong("packages", problem));
                }
            }
        }
        Ok((packages, rocm))
    }

    fn text(&self, option: &str) -> Result<Option<String>, WrongConfig> {
        match self.0.get(option) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
            // `juju config gpu-device-ids=0`, of a charm that has it as a number.
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(other) => Err(wrong(option, format!("{other} is no text"))),
        }
    }

    fn truth(&self, option: &str) -> Result<Option<bool>, WrongConfig> {
        match self.0.get(option) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(truth)) => Ok(Some(*truth)),
            Some(other) => Err(wrong(option, format!("{other} is neither true nor false"))),
        }
    }
}

/// Whether the machine has a unit of systemd by this name.
pub(super) fn has_unit(root: &Root, name: &str) -> bool {
    FOLDERS.iter().any(|folder| root.exists(format!("{folder}/{name}")))
}

/// An address, or none for no exporter.
fn exporter(word: &str) -> Value {
    if word == "none" { json!({ "unit": false }) } else { json!({ "listen": word }) }
}

/// A mirror has AMD's folders beneath one address, and is signed with AMD's key.
fn repositories(url: &str) -> Result<Value, WrongConfig> {
    let url = url.trim_end_matches('/');
    let standard = Config::parse(Path::new("options"), "")
        .map_err(|error| wrong("repository", error.to_string()))?
        .repositories;
    Ok(json!({
        "key": format!("{url}/rocm/rocm.gpg.key"),
        "fingerprints": standard.fingerprints,
        "container-toolkit": { "url": format!("{url}/amd-container-toolkit/apt/") },
        "rocm": { "url": format!("{url}/rocm/apt/VERSION") },
        "amdgpu": { "url": format!("{url}/amdgpu/VERSION/ubuntu") },
    }))
}

/// The text of these lines, if the parser takes it. JSON is YAML, and quotes what YAML would take for something else than
/// text.
fn parsed(lines: &[Line]) -> Result<String, Error> {
    let lines = lines.iter().filter_map(|(_, key, value)| Some(format!("{key}: {}\n", value.as_ref()?)));
    let text = format!("{HEADER}{}", lines.collect::<String>());
    Config::parse(Path::new("options"), &text).map(|_| text)
}

/// By what the parser says, where it begins with the option's name without that.
fn refused(option: &str, error: Error) -> WrongConfig {
    let Error::Wrong { problem, .. } = error else { return wrong(option, error.to_string()) };
    let said = problem.strip_prefix(&format!("{option}: ")).unwrap_or(&problem);
    wrong(option, said.to_owned())
}

fn wrong(option: &str, problem: String) -> WrongConfig {
    WrongConfig(format!("{option}: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(said: Value) -> Options {
        Options(said.as_object().unwrap().clone())
    }

    fn text(said: Value) -> String {
        let text = options(said).configuration(Role::Machine).unwrap();
        text.strip_prefix(HEADER).unwrap().strip_prefix("schema_version: 1\n").unwrap().to_owned()
    }

    fn wrong(said: Value) -> String {
        let options = options(said);
        let read = options.role().and_then(|role| options.configuration(role.unwrap_or(Role::Worker)));
        read.unwrap_err().to_string()
    }

    #[test]
    fn options_become_the_keys_of_the_configuration() {
        for (said, expected) in [
            (json!({}), ""),
            // Another charm's own are passed over, and what has no value.
            (json!({ "web-port": 8080, "tag": "", "driver": null, "mode": "auto" }), ""),
            (
                json!({ "compute-runtime": "rocm", "gpu-device-ids": "0,1", "tag": " linux,builder " }),
                "compute-runtime: \"rocm\"\ngpu-device-ids: \"0,1\"\ntag: \"linux,builder\"\n",
            ),
            (json!({ "gpu-device-ids": 0 }), "gpu-device-ids: \"0\"\n"),
            (json!({ "sharing": "exclusive" }), "wrapper: {\"sharing\":\"exclusive\"}\n"),
            (json!({ "restart": "never" }), "restart: \"never\"\n"),
            (json!({ "exporter-listen": "none" }), "exporter: {\"unit\":false}\n"),
            (json!({ "exporter-listen": "[::]:9401" }), "exporter: {\"listen\":\"[::]:9401\"}\n"),
            (
                json!({ "packages": "rocm-smi, rocm=7.2.4,container-toolkit" }),
                "packages: {\"container-toolkit\":\"install\",\"rocm-smi\":\"install\"}\n\
                 rocm: {\"install\":\"apt\",\"version\":\"7.2.4\"}\n",
            ),
            (json!({ "packages": "rocm" }), "rocm: {\"install\":\"apt\"}\n"),
            (
                json!({ "compute-runtime": "rocm", "packages": "keep" }),
                "compute-runtime: \"rocm\"\npackages: {\"container-toolkit\":\"keep\",\"rocm-smi\":\"keep\"}\n",
            ),
            (json!({ "driver": "keep" }), ""),
            (
                json!({ "driver": "30.30.3" }),
                "driver: {\"install\":\"amdgpu-dkms\",\"version\":\"30.30.3\"}\n",
            ),
            // The older option, beside the newer one's default.
            (json!({ "enable-gpu": true, "compute-runtime": "auto" }), "enable-gpu: true\n"),
            (
                json!({ "enable-gpu": false, "compute-runtime": "auto", "gpu-device-ids": "0" }),
                "enable-gpu: false\n",
            ),
            (
                json!({ "compute-runtime": "none", "gpu-device-ids": "0", "tag": "linux" }),
                "compute-runtime: \"none\"\ntag: \"linux\"\n",
            ),
        ] {
            assert_eq!(text(said.clone()), expected, "{said}");
        }
    }

    #[test]
    fn a_mirror_has_the_folders_and_the_key_of_the_original() {
        let text = text(json!({ "repository": "https://mirror.example/amd/" }));
        let standard = Config::parse(Path::new("none"), "").unwrap().repositories;
        let mirrored = Config::parse(Path::new("mirrored"), &text).unwrap().repositories;
        assert_eq!(mirrored.fingerprints, standard.fingerprints);
        let rest = |url: &str, start: &str| url.strip_prefix(start).unwrap().to_owned();
        for (mirrored, standard) in [
            (&mirrored.container_toolkit, &standard.container_toolkit),
            (&mirrored.rocm, &standard.rocm),
            (&mirrored.amdgpu, &standard.amdgpu),
        ] {
            assert_eq!(
                rest(&mirrored.url, "https://mirror.example/amd/"),
                rest(&standard.url, "https://repo.radeon.com/")
            );
        }
        assert_eq!(
            rest(&mirrored.key, "https://mirror.example/amd"),
            rest(&standard.key, "https://repo.radeon.com")
        );
    }

    #[test]
    fn a_web_node_has_nothing_to_do_whatever_the_other_options_say() {
        let options = options(json!({ "gpu-device-ids": "0", "driver": "30.30.3" }));
        let text = options.configuration(Role::Web).unwrap();
        assert!(text.ends_with("schema_version: 1\ncompute-runtime: \"none\"\n"), "{text}");
    }

    #[test]
    fn what_cannot_be_followed_is_said_with_its_option() {
        for (said, expected) in [
            (json!({ "mode": "leader" }), "mode: \"leader\" is none of auto, web and worker"),
            (json!({ "enable-gpu": "yes" }), "enable-gpu: \"yes\" is neither true nor false"),
            (json!({ "tag": ["a"] }), "tag: [\"a\"] is no text"),
            (
                json!({ "packages": "rocm-smi,cuda" }),
                "packages: \"cuda\" is none of container-toolkit, rocm-smi, rocm and rocm=RELEASE (rocm=7.2.4); keep \
                 stands alone",
            ),
            (
                json!({ "packages": "keep,rocm" }),
                "packages: \"keep\" is none of container-toolkit, rocm-smi, rocm and rocm=RELEASE (rocm=7.2.4); keep \
                 stands alone",
            ),
            (
                json!({ "compute-runtime": "rocm", "enable-gpu": false }),
                "enable-gpu: false and compute-runtime contradict each other; keep compute-runtime",
            ),
            (
                json!({ "tag": "a b" }),
                "tag: the tag \"a b\" has a blank, a quote, a backslash or a $, which no tag can have",
            ),
            (
                json!({ "exporter-listen": "0.0.0.0:443" }),
                "exporter-listen: exporter.listen \"0.0.0.0:443\" has a port below 1024, which only root may open: the \
                 exporter runs without rights; name one from 1024 to 65535",
            ),
            (
                json!({ "driver": "newest" }),
                "driver: driver.version \"newest\" is no release of AMD's driver, such as 30.30.3",
            ),
        ] {
            assert_eq!(wrong(said.clone()), expected, "{said}");
        }
        // Whatever is in a value, among them what YAML or a line would take for its own.
        let options = [
            "compute-runtime",
            "tag",
            "sharing",
            "packages",
            "driver",
            "repository",
            "restart",
            "exporter-listen",
        ];
        for option in options {
            for value in [
                "a\nb",
                "a\"b",
                "a'b",
                "a\\b",
                "\n- \"",
                "a\r\nb",
                "a\tb",
                "a\u{85}b",
                "a\u{2028}b",
                "\0",
                "a: #",
                "a\u{7f}",
                "\u{9b}",
                "\u{feff} b",
                "\u{ffff} b",
                &"[ ".repeat(20),
            ] {
                let said = wrong(json!({ option: value }));
                assert!(said.starts_with(&format!("{option}: ")), "{option}={value:?}: {said}");
            }
        }
        for (said, start) in [
            (json!({ "restart": "sometimes" }), "restart: "),
            (json!({ "compute-runtime": "opencl" }), "compute-runtime: "),
            (json!({ "sharing": "mine" }), "sharing: "),
            (json!({ "repository": "ftp://x" }), "repository: "),
            (json!({ "packages": "rocm=new" }), "packages: "),
        ] {
            let said = wrong(said);
            assert!(said.starts_with(start) && said.len() > start.len() + 20, "{said}");
        }
    }
}
