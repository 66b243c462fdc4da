//! A charm's options, and the configuration that they mean.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::config::{Config, Error};

/// What is done with this unit, as the options and the machine say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// A Concourse worker.
    Worker,
    /// Concourse's web node: nothing is set up.
    Web,
    /// A machine without Concourse, whose engines are set up.
    #[default]
    Machine,
}

/// The option `mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// By what is there.
    #[default]
    Auto,
    Web,
    Worker,
}

/// An option cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {problem}")]
pub struct WrongOption {
    pub option: String,
    pub problem: String,
}

/// The options that rocworker knows, as `config-get` answers them. A charm of another's has options of its own beside
/// them, and need not have all of these.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    pub mode: Mode,
    pub compute_runtime: Option<String>,
    pub gpu_device_ids: Option<String>,
    pub tag: Option<String>,
    pub enable_gpu: Option<bool>,
    pub sharing: Option<String>,
    /// `container-toolkit`, `rocm-smi`, `rocm` or `rocm=7.2.4`, each to be installed.
    pub packages: Vec<String>,
    /// `keep`, or a release of AMD's driver.
    pub driver: Option<String>,
    /// Where a mirror of AMD's repositories begins.
    pub repository: Option<String>,
    pub restart: Option<String>,
    /// Whether AMD's packages go with the charm when a driver is among them.
    pub remove_driver: bool,
}

/// The first lines of a configuration that a charm wrote.
const HEADER: &str = "# Made of the charm's options at each change of them: juju config changes them.\n\
                      # A file that is edited by hand is not the charm's any more: it then leaves it alone, and says so.\n";

impl Options {
    /// Reads the answer of `config-get --format=json`.
    pub fn read(said: &Map<String, Value>) -> Result<Self, WrongOption> {
        let text = |option: &str| text(said, option);
        let mode = match text("mode")?.as_deref() {
            None | Some("auto") => Mode::Auto,
            Some("web") => Mode::Web,
            Some("worker") => Mode::Worker,
            Some(other) => return Err(wrong("mode", format!("{other:?} is none of auto, web and worker"))),
        };
        let packages = text("packages")?.unwrap_or_default();
        let packages = packages.split(',').map(str::trim).filter(|word| !word.is_empty());
        Ok(Self {
            mode,
            compute_runtime: text("compute-runtime")?,
            gpu_device_ids: text("gpu-device-ids")?,
            tag: text("tag")?,
            enable_gpu: truth(said, "enable-gpu")?,
            sharing: text("sharing")?,
            packages: packages.map(str::to_owned).collect(),
            driver: text("driver")?,
            repository: text("repository")?,
            restart: text("restart")?,
            remove_driver: truth(said, "remove-driver")?.unwrap_or_default(),
        })
    }

    /// The text of /etc/rocworker/config.yaml for a unit of this role, checked by whoever reads that file. Pure.
    pub fn configuration(&self, role: Role) -> Result<String, WrongOption> {
        let mut lines = vec![("schema_version", json!(1))];
        match role {
            Role::Web => lines.push(("compute-runtime", json!("none"))),
            Role::Worker | Role::Machine => self.lines(&mut lines)?,
        }
        let checked = |lines: &[(&'static str, Value)]| {
            let lines = lines.iter().map(|(key, value)| format!("{key}: {value}\n"));
            let text = format!("{HEADER}{}", lines.collect::<String>());
            Config::parse(Path::new("options"), &text).map(|_| text)
        };
        checked(&lines).map_err(|error| {
            // The option that is wrong by itself: the parser's line is the header's where a value hides its key. Two that
            // contradict each other are each right alone, and there the key that the line begins with is the one.
            let alone =
                lines.iter().find_map(|line| Some((line.0, checked(std::slice::from_ref(line)).err()?)));
            let (key, error) = alone.map_or((None, error), |(key, error)| (Some(key), error));
            said_of(&lines, key, error)
        })
    }

    /// JSON is YAML, and quotes what YAML would take for something else than text.
    fn lines(&self, lines: &mut Vec<(&'static str, Value)>) -> Result<(), WrongOption> {
        // enable-gpu is what compute-runtime was called: its default must not contradict the older option.
        let runtime =
            self.compute_runtime.as_ref().filter(|word| self.enable_gpu.is_none() || *word != "auto");
        let mut add = |key, value: Option<Value>| lines.extend(value.map(|value| (key, value)));
        add("compute-runtime", runtime.map(|word| json!(word)));
        add("enable-gpu", self.enable_gpu.map(Value::from));
        // Where no GPU is offered, which of them it would be is no contradiction: Juju always tells an option's default.
        let is_off = matches!(runtime.map(String::as_str), Some("none")) || self.enable_gpu == Some(false);
        add("gpu-device-ids", self.gpu_device_ids.as_ref().filter(|_| !is_off).map(|ids| json!(ids)));
        add("tag", self.tag.as_ref().map(|tag| json!(tag)));
        add("wrapper", self.sharing.as_ref().map(|word| json!({ "sharing": word })));
        add("restart", self.restart.as_ref().map(|word| json!(word)));
        let (packages, rocm) = self.wanted()?;
        add("packages", Some(packages).filter(|it| !it.is_empty()).map(Value::Object));
        add("rocm", rocm);
        let driver = self.driver.as_ref().filter(|word| *word != "keep");
        add("driver", driver.map(|release| json!({ "install": "amdgpu-dkms", "version": release })));
        add("repositories", self.repository.as_ref().map(|url| repositories(url)).transpose()?);
        Ok(())
    }

    fn wanted(&self) -> Result<(Map<String, Value>, Option<Value>), WrongOption> {
        let (mut packages, mut rocm) = (Map::new(), None);
        for word in &self.packages {
            match word.split_once('=') {
                None if word == "container-toolkit" || word == "rocm-smi" => {
                    packages.insert(word.clone(), json!("install"));
                }
                None if word == "rocm" => rocm = Some(json!({ "install": "apt" })),
                Some(("rocm", version)) => {
                    rocm = Some(json!({ "install": "apt", "version": version }));
                }
                _ => {
                    let problem = format!(
                        "{word:?} is none of container-toolkit, rocm-smi, rocm and rocm=RELEASE (rocm=7.2.4)"
                    );
                    return Err(wrong("packages", problem));
                }
            }
        }
        Ok((packages, rocm))
    }
}

/// A mirror has AMD's folders beneath one address, and is signed with AMD's key.
fn repositories(url: &str) -> Result<Value, WrongOption> {
    let url = url.trim_end_matches('/');
    let ours = Config::parse(Path::new("options"), "")
        .map_err(|error| wrong("repository", error.to_string()))?
        .repositories;
    Ok(json!({
        "key": format!("{url}/rocm/rocm.gpg.key"),
        "fingerprints": ours.fingerprints,
        "container-toolkit": { "url": format!("{url}/amd-container-toolkit/apt/") },
        "rocm": { "url": format!("{url}/rocm/apt/VERSION") },
        "amdgpu": { "url": format!("{url}/amdgpu/VERSION/ubuntu") },
    }))
}

/// What is wrong, by the option that made `key`; where no key is wrong alone, by the option of the error's line.
fn said_of(lines: &[(&'static str, Value)], key: Option<&'static str>, error: Error) -> WrongOption {
    let Error::Wrong { line, problem, .. } = error else { return wrong("options", error.to_string()) };
    let of_line = || Some(lines.get(line.checked_sub(HEADER.lines().count() + 1)?)?.0);
    let option = match key.or_else(of_line) {
        Some("wrapper") => "sharing",
        Some("rocm") => "packages",
        Some("repositories") => "repository",
        None => "options",
        Some(key) => key,
    };
    let said = problem.strip_prefix(&format!("{option}: ")).unwrap_or(&problem);
    wrong(option, said.to_owned())
}

fn text(said: &Map<String, Value>, option: &str) -> Result<Option<String>, WrongOption> {
    match said.get(option) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        // `juju config gpu-device-ids=0`, of a charm that has it as a number.
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(other) => Err(wrong(option, format!("{other} is no text"))),
    }
}

fn truth(said: &Map<String, Value>, option: &str) -> Result<Option<bool>, WrongOption> {
    match said.get(option) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(truth)) => Ok(Some(*truth)),
        Some(other) => Err(wrong(option, format!("{other} is neither true nor false"))),
    }
}

fn wrong(option: &str, problem: String) -> WrongOption {
    WrongOption { option: option.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(said: Value) -> Result<Options, WrongOption> {
        match said {
            Value::Object(said) => Options::read(&said),
            other => panic!("{other} is no object"),
        }
    }

    fn text(said: Value) -> String {
        let text = options(said).unwrap().configuration(Role::Machine).unwrap();
        text.strip_prefix(HEADER).unwrap().strip_prefix("schema_version: 1\n").unwrap().to_owned()
    }

    fn wrong(said: Value) -> String {
        let read = options(said).and_then(|options| options.configuration(Role::Worker));
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
            (
                json!({ "packages": "rocm-smi, rocm=7.2.4,container-toolkit" }),
                "packages: {\"container-toolkit\":\"install\",\"rocm-smi\":\"install\"}\n\
                 rocm: {\"install\":\"apt\",\"version\":\"7.2.4\"}\n",
            ),
            (json!({ "packages": "rocm" }), "rocm: {\"install\":\"apt\"}\n"),
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
        let ours = Config::parse(Path::new("none"), "").unwrap().repositories;
        let mirrored = Config::parse(Path::new("mirrored"), &text).unwrap().repositories;
        assert_eq!(mirrored.fingerprints, ours.fingerprints);
        let rest = |url: &str, start: &str| url.strip_prefix(start).unwrap().to_owned();
        for (mirrored, ours) in [
            (&mirrored.container_toolkit, &ours.container_toolkit),
            (&mirrored.rocm, &ours.rocm),
            (&mirrored.amdgpu, &ours.amdgpu),
        ] {
            assert_eq!(
                rest(&mirrored.url, "https://mirror.example/amd/"),
                rest(&ours.url, "https://repo.radeon.com/")
            );
        }
        assert_eq!(
            rest(&mirrored.key, "https://mirror.example/amd"),
            rest(&ours.key, "https://repo.radeon.com")
        );
    }

    #[test]
    fn a_web_node_has_nothing_to_do_whatever_the_other_options_say() {
        let options = options(json!({ "gpu-device-ids": "0", "driver": "30.30.3" })).unwrap();
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
                "packages: \"cuda\" is none of container-toolkit, rocm-smi, rocm and rocm=RELEASE (rocm=7.2.4)",
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
                json!({ "driver": "newest" }),
                "driver: driver.version \"newest\" is no release of AMD's driver, such as 30.30.3",
            ),
        ] {
            assert_eq!(wrong(said.clone()), expected, "{said}");
        }
        // Whatever stands in a value, among them what YAML or a line would take for its own.
        let options = ["compute-runtime", "tag", "sharing", "packages", "driver", "repository", "restart"];
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
