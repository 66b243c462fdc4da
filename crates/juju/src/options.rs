//! A charm's options, and the configuration that they mean.

use std::path::Path;

use config::{
    ComputeRuntime, ConcourseDocument, Config, Document, DriverDocument, Error, ExporterDocument, Fault,
    Install, PackagesDocument, RepositoriesDocument, RocmDocument, Wanted, Words, Wrapper,
};
use host::unit::FOLDERS;
use root::Root;
use serde::de::{DeserializeOwned, IntoDeserializer as _};
use serde_json::{Map, Value};

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

/// An option or the configuration file has a value that rocworker cannot apply.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongConfig(pub String);

/// The options as `config-get --format=json` answers them. Another charm has options of its own beside rocworker's, and
/// need not have all of these.
#[derive(Debug)]
pub struct Options(pub Map<String, Value>);

/// The question about a Concourse worker without tags, which the option `concourse-tags` answers. A table of Juju shows
/// its beginning alone.
pub const UNTAGGED: &str = "concourse-tags: set true or false, for this worker has no tags. true: it takes only steps \
                            with tags from then on. false: it goes on taking every step, and a step needs no tag to get GPUs";

/// The first lines of a configuration that a charm wrote.
const HEADER: &str = "# Made of the charm's options at each change of them: juju config changes them.\n\
                      # A file that is edited by hand is not the charm's any more: it then leaves it alone, and says so.\n";

impl Options {
    /// The unit's role by the option `mode`; `None`: Concourse's units on the machine decide.
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

    /// The configuration of a unit of this role, with its text, which goes to `path`. Pure.
    pub fn configuration(&self, role: Role, path: &Path) -> Result<Config, WrongConfig> {
        Config::written(path, HEADER, &self.keys(role)?).map_err(refused)
    }

    fn keys(&self, role: Role) -> Result<Document, WrongConfig> {
        let mut keys = Document::new();
        if role == Role::Web {
            keys.compute_runtime = Some(ComputeRuntime::None);
            return Ok(keys);
        }
        let words = |text| Words::collect([text]);
        keys.enable_gpu = self.truth("enable-gpu")?;
        // enable-gpu is what compute-runtime was called: its default must not contradict the older option.
        let is_default = |runtime| keys.enable_gpu.is_some() && runtime == ComputeRuntime::Auto;
        keys.compute_runtime = self.word("compute-runtime")?.filter(|it| !is_default(*it));
        // gpu-device-ids contradicts nothing where no GPU is offered: Juju always sends an option's default.
        let is_off = keys.compute_runtime == Some(ComputeRuntime::None) || keys.enable_gpu == Some(false);
        keys.gpu_device_ids = self.text("gpu-device-ids")?.filter(|_| !is_off).map(words);
        keys.tag = self.text("tag")?.map(words);
        keys.concourse = self.truth("concourse-tags")?.map(ConcourseDocument::tagged);
        keys.wrapper = self.word("sharing")?.map(|sharing| Wrapper { sharing, ..Wrapper::default() });
        keys.restart = self.word("restart")?;
        (keys.packages, keys.rocm) = self.packages()?;
        keys.driver = self
            .text("driver")?
            .filter(|word| word != "keep")
            .map(|release| DriverDocument { install: Some(Install::AmdgpuDkms), version: Some(release) });
        keys.exporter = self.text("exporter-listen")?.map(|word| match &*word {
            "none" => ExporterDocument { unit: Some(false), ..ExporterDocument::default() },
            _ => ExporterDocument { listen: Some(word), ..ExporterDocument::default() },
        });
        keys.repositories = self.text("repository")?.map(|url| RepositoriesDocument::mirror(&url));
        Ok(keys)
    }

    fn packages(&self) -> Result<(Option<PackagesDocument>, Option<RocmDocument>), WrongConfig> {
        let (mut packages, mut rocm) = (PackagesDocument::default(), None);
        let words = self.text("packages")?.unwrap_or_default();
        for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "container-toolkit" => packages.container_toolkit = Some(Wanted::Install),
                "rocm-smi" => packages.rocm_smi = Some(Wanted::Install),
                "keep" if words.trim() == "keep" => {
                    let keep = Some(Wanted::Keep);
                    packages = PackagesDocument { container_toolkit: keep, rocm_smi: keep, proxy: None };
                }
                "rocm" => rocm = Some(RocmDocument::by_apt(None)),
                _ => {
                    let release = word.strip_prefix("rocm=").ok_or_else(|| {
                        let problem = format!(
                            "{word:?} is none of container-toolkit, rocm-smi, rocm and rocm=RELEASE (rocm=7.2.4); keep \
                             stands alone"
                        );
                        wrong("packages", problem)
                    })?;
                    rocm = Some(RocmDocument::by_apt(Some(release.to_owned())));
                }
            }
        }
        Ok((Some(packages), rocm))
    }

    /// Parses an option as one of the words that the configuration's key takes.
    fn word<T: DeserializeOwned>(&self, option: &str) -> Result<Option<T>, WrongConfig> {
        let known = |text: String| {
            let known = T::deserialize(text.into_deserializer());
            known.map_err(|fault: Fault| WrongConfig(fault.of_key(option, 1).to_string()))
        };
        self.text(option)?.map(known).transpose()
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
pub fn has_unit(root: &Root, name: &str) -> bool {
    FOLDERS.iter().any(|folder| root.exists(format!("{folder}/{name}")))
}

/// Names the option of the key that is wrong.
fn refused(error: Error) -> WrongConfig {
    let Error::Wrong { key, problem, .. } = &error else { return WrongConfig(error.to_string()) };
    let option = match key.split('.').next().unwrap_or_default() {
        "wrapper" => "sharing",
        "exporter" => "exporter-listen",
        "repositories" => "repository",
        "rocm" => "packages",
        other => other,
    };
    wrong(option, problem.strip_prefix(&format!("{option}: ")).unwrap_or(problem).to_owned())
}

fn wrong(option: &str, problem: String) -> WrongConfig {
    WrongConfig(format!("{option}: {problem}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PATH: &str = "/etc/rocworker/config.yaml";

    fn options(given: Value) -> Options {
        Options(given.as_object().unwrap().clone())
    }

    fn text(given: Value) -> String {
        let config = options(given).configuration(Role::Machine, Path::new(PATH)).unwrap();
        assert_eq!(Config::parse(Path::new(PATH), config.text()).unwrap(), config);
        let text = config.text().strip_prefix(HEADER).unwrap();
        text.strip_prefix("schema_version: 1\n").unwrap().to_owned()
    }

    fn wrong(given: Value) -> String {
        let options = options(given);
        let of = |role: Option<Role>| options.configuration(role.unwrap_or(Role::Worker), Path::new(PATH));
        let read = options.role().and_then(of);
        read.unwrap_err().to_string()
    }

    #[test]
    fn options_become_the_keys_of_the_configuration() {
        for (given, expected) in [
            (json!({}), ""),
            // Another charm's own are passed over, and what has no value.
            (json!({ "web-port": 8080, "tag": "", "driver": null, "mode": "auto" }), ""),
            (
                json!({ "compute-runtime": "rocm", "gpu-device-ids": "0,1", "tag": " linux,builder " }),
                "compute-runtime: rocm\ngpu-device-ids: 0,1\ntag: linux,builder\n",
            ),
            (json!({ "gpu-device-ids": 0 }), "gpu-device-ids: '0'\n"),
            (json!({ "concourse-tags": true }), "concourse:\n  tags: true\n"),
            (json!({ "concourse-tags": false }), "concourse:\n  tags: false\n"),
            (json!({ "concourse-tags": null }), ""),
            (json!({ "sharing": "exclusive" }), "wrapper:\n  sharing: exclusive\n"),
            (json!({ "restart": "never" }), "restart: never\n"),
            (json!({ "exporter-listen": "none" }), "exporter:\n  unit: false\n"),
            (json!({ "exporter-listen": "[::]:9401" }), "exporter:\n  listen: '[::]:9401'\n"),
            (
                json!({ "packages": "rocm-smi, rocm=7.2.4,container-toolkit" }),
                "packages:\n  container-toolkit: install\n  rocm-smi: install\nrocm:\n  install: apt\n  version: 7.2.4\n",
            ),
            (json!({ "packages": "rocm" }), "rocm:\n  install: apt\n"),
            (
                json!({ "compute-runtime": "rocm", "packages": "keep" }),
                "compute-runtime: rocm\npackages:\n  container-toolkit: keep\n  rocm-smi: keep\n",
            ),
            (json!({ "driver": "keep" }), ""),
            (json!({ "driver": "30.30.3" }), "driver:\n  install: amdgpu-dkms\n  version: 30.30.3\n"),
            // The older option, beside the newer one's default.
            (json!({ "enable-gpu": true, "compute-runtime": "auto" }), "enable-gpu: true\n"),
            (
                json!({ "enable-gpu": false, "compute-runtime": "auto", "gpu-device-ids": "0" }),
                "enable-gpu: false\n",
            ),
            (
                json!({ "compute-runtime": "none", "gpu-device-ids": "0", "tag": "linux" }),
                "compute-runtime: none\ntag: linux\n",
            ),
        ] {
            assert_eq!(text(given.clone()), expected, "{given}");
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
        let config = options.configuration(Role::Web, Path::new(PATH)).unwrap();
        let text = config.text();
        assert!(text.ends_with("schema_version: 1\ncompute-runtime: none\n"), "{text}");
    }

    #[test]
    fn what_cannot_be_followed_is_said_with_its_option() {
        for (given, expected) in [
            (json!({ "restart": "sometimes" }), "restart is \"sometimes\"; it takes never, drain or now"),
            (
                json!({ "compute-runtime": "opencl" }),
                "compute-runtime is \"opencl\"; it takes auto, rocm, cuda or none",
            ),
            (json!({ "sharing": "mine" }), "sharing is \"mine\"; it takes shared or exclusive"),
            (json!({ "mode": "leader" }), "mode: \"leader\" is none of auto, web and worker"),
            (json!({ "enable-gpu": "yes" }), "enable-gpu: \"yes\" is neither true nor false"),
            (json!({ "tag": ["a"] }), "tag: [\"a\"] is no text"),
            (json!({ "concourse-tags": "yes" }), "concourse-tags: \"yes\" is neither true nor false"),
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
            assert_eq!(wrong(given.clone()), expected, "{given}");
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
                let problem = wrong(json!({ option: value }));
                let rest = problem.strip_prefix(option).unwrap_or_default();
                assert!(rest.starts_with(": ") || rest.starts_with(" is "), "{option}={value:?}: {problem}");
            }
        }
        for (given, start) in [
            (json!({ "repository": "ftp://x" }), "repository: "),
            (json!({ "packages": "rocm=new" }), "packages: "),
        ] {
            let problem = wrong(given);
            assert!(problem.starts_with(start) && problem.len() > start.len() + 20, "{problem}");
        }
    }
}
