//! The YAML as it is written, before it is checked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use reconcile::Restarts;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use yaml_serde::{Mapping, Value};

use super::driver::{Build, DriverDocument};
use super::engines::{CONTAINERD_CONFIG, CRIO_CONFIG, ConcourseDocument, DOCKER_CONFIG, EngineDocument};
use super::exporter::ExporterDocument;
use super::host::{self, Permissions};
use super::inventory::InventoryDocument;
use super::kubernetes::KubernetesDocument;
use super::packages::{DKMS, PackagesDocument, RepositoriesDocument, Rocm, RocmDocument};
use super::partitions::PartitionsDocument;
use super::password::without_passwords;
use super::units::{BootDocument, DaemonDocument};
use super::wrapper::Wrapper;
use super::{
    CDI_SPEC, Cdi, ClusterBloom, ComputeRuntime, Config, Devices, Error, Managed, NamedBy, Off, Source, path,
};

const VERSION: u32 = 1;

/// Every key, in the order in which a configuration is written.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Document {
    /// Named as in every other stored file.
    #[serde(rename = "schema_version")]
    schema_version: Option<u32>,
    pub compute_runtime: Option<ComputeRuntime>,
    /// What `compute-runtime` was called when there was only one: yes or no.
    pub enable_gpu: Option<bool>,
    pub gpu_device_ids: Option<Words>,
    pub tag: Option<Words>,
    pub wrapper: Option<Wrapper>,
    pub restart: Option<Restarts>,
    pub packages: Option<PackagesDocument>,
    pub rocm: Option<RocmDocument>,
    pub driver: Option<DriverDocument>,
    pub exporter: Option<ExporterDocument>,
    pub repositories: Option<RepositoriesDocument>,
    cdi: Option<CdiDocument>,
    permissions: Option<Permissions>,
    module_options: Option<BTreeMap<String, String>>,
    containerd: Option<EngineDocument>,
    docker: Option<EngineDocument>,
    crio: Option<EngineDocument>,
    pub concourse: Option<ConcourseDocument>,
    boot: Option<BootDocument>,
    daemon: Option<DaemonDocument>,
    partitions: Option<PartitionsDocument>,
    kubernetes: Option<KubernetesDocument>,
    inventory: Option<InventoryDocument>,
    #[serde(rename = "GPU_NODE")]
    gpu_node: Option<bool>,
    #[serde(rename = "ROCM_BASE_URL")]
    rocm_base_url: Option<String>,
    #[serde(rename = "ROCM_DEB_PACKAGE")]
    rocm_deb_package: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CdiDocument {
    path: Option<PathBuf>,
    names: Option<Vec<NamedBy>>,
}

impl Document {
    /// A document without keys, of the schema_version that this program writes.
    pub fn new() -> Self {
        Self { schema_version: Some(VERSION), ..Self::default() }
    }

    /// The document as YAML, with the keys that have a value.
    pub(super) fn text(&self) -> Result<String, yaml_serde::Error> {
        let keys = without_empty(yaml_serde::to_value(self)?);
        keys.map_or_else(|| Ok(String::new()), |keys| yaml_serde::to_string(&keys))
    }

    /// What is managed of a machine, and why not, by these keys and by what `environment` says where they say nothing.
    pub(super) fn resolve(self, source: Source, environment: &ClusterBloom) -> Result<Config, Error> {
        if let Some(version) = self.schema_version.filter(|version| *version != VERSION) {
            let problem = format!("schema_version is {version}; this rocworker reads {VERSION}");
            return Err(source.wrong("schema_version", None, problem));
        }
        let says_runtime = self.compute_runtime.is_some() || self.enable_gpu.is_some();
        let mut runtime = self.runtime(&source)?;
        let devices = devices(self.gpu_device_ids, &source)?;
        if runtime == ComputeRuntime::None && devices != Devices::All {
            let problem = "gpu-device-ids lists GPUs and no GPU is offered (compute-runtime: none): keep one of the two";
            return Err(source.wrong("gpu-device-ids", None, problem));
        }
        let tags = tags(self.tag, &source)?;
        let mut rocm = self.rocm.unwrap_or_default();
        let clusterbloom = ClusterBloom::written(self.gpu_node, self.rocm_base_url, self.rocm_deb_package);
        clusterbloom.check(&mut rocm, &source)?;
        let beside = environment.beside(&clusterbloom, says_runtime.then_some(runtime), &mut rocm);
        let beside = beside.map_err(|problem| Error::Environment(without_passwords(&problem)))?;
        if beside.is_off {
            runtime = ComputeRuntime::None;
        }
        let unused_keys = clusterbloom.unused(&rocm);
        let gpus = match runtime {
            ComputeRuntime::Auto | ComputeRuntime::Rocm => Managed::On(()),
            ComputeRuntime::Cuda => Managed::Off(Off::Cuda),
            ComputeRuntime::None => Managed::Off(Off::NoGpu),
        };
        let needs_gpu = runtime == ComputeRuntime::Rocm;
        let engine = |document: Option<EngineDocument>, name, default| {
            document.unwrap_or_default().check(name, default, gpus, &source)
        };
        let rocm_version = rocm.version.clone();
        let rocm = rocm.check(gpus, &source)?;
        let has_dkms = |usecases: &[String]| usecases.iter().any(|usecase| usecase == DKMS);
        let by_installer = match &rocm {
            Managed::On(Rocm::Installer { usecases, .. }) if has_dkms(usecases) => Some(Build::Installer),
            _ => None,
        };
        let release = self.driver.unwrap_or_default().check(&source)?;
        let build = release.map(Build::Release).or(by_installer);
        Ok(Config {
            gpus,
            needs_gpu,
            devices,
            tags,
            cdi: self.cdi.unwrap_or_default().check(&source)?,
            permissions: self.permissions.unwrap_or_default(),
            module_options: host::module_options(self.module_options.unwrap_or_default(), &source)?,
            wrapper: self.wrapper.unwrap_or_default().check(&source)?,
            containerd: engine(self.containerd, "containerd", CONTAINERD_CONFIG)?,
            docker: engine(self.docker, "docker", DOCKER_CONFIG)?,
            crio: engine(self.crio, "crio", CRIO_CONFIG)?,
            concourse: self.concourse.unwrap_or_default().resolve(),
            driver: Managed::of(build, Off::Key("driver.install: keep")).needing(&gpus),
            restart: self.restart.unwrap_or(Restarts::Drain),
            packages: self.packages.unwrap_or_default().check(gpus, needs_gpu, &rocm, &source)?,
            repositories: self.repositories.unwrap_or_default().check(&source)?,
            rocm,
            rocm_version,
            unused_keys,
            spellings: Vec::new(),
            unused_variables: beside.unused,
            boot: self.boot.unwrap_or_default().check(gpus, &source)?,
            daemon: self.daemon.unwrap_or_default().check(gpus, &source)?,
            exporter: self.exporter.unwrap_or_default().check(gpus, &source)?,
            partitions: self.partitions.unwrap_or_default().check(&source)?,
            kubernetes: self.kubernetes.unwrap_or_default().resolve(),
            inventory: self.inventory.unwrap_or_default().check(&source)?,
            source,
        })
    }

    fn runtime(&self, source: &Source) -> Result<ComputeRuntime, Error> {
        use ComputeRuntime::{Auto, Cuda, None as Off, Rocm};
        let contradiction = |value| {
            let problem = format!(
                "enable-gpu: {value} and compute-runtime contradict each other; keep compute-runtime"
            );
            Err(source.wrong("enable-gpu", None, problem))
        };
        let runtime = match (self.enable_gpu, self.compute_runtime) {
            (None, runtime) => runtime,
            (Some(true), None) => Some(Auto),
            (Some(false), None) => Some(Off),
            (Some(true), Some(Off)) => return contradiction("true"),
            (Some(false), Some(Auto | Rocm | Cuda)) => return contradiction("false"),
            (Some(_), Some(runtime)) => Some(runtime),
        };
        match (self.gpu_node, runtime) {
            (Some(false), None | Some(Off)) => Ok(Off),
            (Some(value @ false), Some(Auto | Rocm | Cuda)) | (Some(value @ true), Some(Off | Cuda)) => {
                let problem = format!(
                    "GPU_NODE: {value} and compute-runtime contradict each other; keep compute-runtime"
                );
                Err(source.wrong("GPU_NODE", None, problem))
            }
            (_, runtime) => Ok(runtime.unwrap_or(Auto)),
        }
    }
}

/// `None`: nothing is in it but keys without a value.
fn without_empty(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Mapping(keys) => {
            let keys = keys.into_iter().filter_map(|(key, value)| Some((key, without_empty(value)?)));
            let keys: Mapping = keys.collect();
            (!keys.is_empty()).then_some(Value::Mapping(keys))
        }
        other => Some(other),
    }
}

fn devices(words: Option<Words>, source: &Source) -> Result<Devices, Error> {
    const KEY: &str = "gpu-device-ids";
    let Some(Words(words)) = words else { return Ok(Devices::All) };
    match words.as_slice() {
        [] => Err(source.wrong(
            KEY,
            None,
            "gpu-device-ids names no GPU: write all, discrete, a list, or compute-runtime: none",
        )),
        [word] if word == "all" => Ok(Devices::All),
        [word] if word == "discrete" => Ok(Devices::Discrete),
        words if words.iter().any(|word| word == "all" || word == "discrete") => {
            Err(source.wrong(KEY, None, "gpu-device-ids is all, discrete or a list, not two of them"))
        }
        _ => Ok(Devices::Listed(words)),
    }
}

fn tags(words: Option<Words>, source: &Source) -> Result<Vec<String>, Error> {
    let Some(Words(words)) = words else { return Ok(Vec::new()) };
    // Tags end in an environment file and in a comma-joined variable.
    let unfit = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '\'' | '\\' | '$' | '`');
    match words.iter().find(|word| word.contains(unfit)) {
        Some(word) => {
            let problem =
                format!("the tag {word:?} has a blank, a quote, a backslash or a $, which no tag can have");
            Err(source.wrong("tag", Some(word), problem))
        }
        None => Ok(words),
    }
}

impl CdiDocument {
    fn check(self, source: &Source) -> Result<Cdi, Error> {
        const KEY: &str = "cdi.path";
        let cdi = Cdi {
            path: self.path.unwrap_or_else(|| PathBuf::from(CDI_SPEC)),
            names: self.names.unwrap_or_else(|| vec![NamedBy::Index, NamedBy::Uuid, NamedBy::Pci]),
        };
        let path = cdi.path.to_string_lossy();
        source.check(KEY, &path, path::file(&cdi.path))?;
        if cdi.path.extension() != Some("json".as_ref()) {
            let problem = format!("{path:?} does not end in .json, as {CDI_SPEC} does");
            return source.check(KEY, &path, Err(problem));
        }
        if cdi.names.is_empty() {
            let problem = "cdi.names is empty: name at least one of index, uuid, pci";
            return Err(source.wrong("cdi.names", None, problem));
        }
        Ok(cdi)
    }
}

/// A comma list as the charm's options have it, a YAML list, or a single number. Blanks around words and empty
/// words mean nothing; a word that is there twice counts once.
#[derive(Debug)]
pub struct Words(Vec<String>);

impl Words {
    pub fn collect(words: impl IntoIterator<Item = String>) -> Self {
        let (mut kept, mut seen) = (Vec::new(), BTreeSet::new());
        for list in words {
            for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
                if seen.insert(word.to_owned()) {
                    kept.push(word.to_owned());
                }
            }
        }
        Self(kept)
    }
}

impl Serialize for Words {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.join(",").serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordsVisitor).map(Self::collect)
    }
}

struct WordsVisitor;

impl<'de> Visitor<'de> for WordsVisitor {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a comma list, as \"a,b\", or a list, as [a, b]")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(vec![text.to_owned()])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut words = Vec::new();
        while let Some(word) = list.next_element::<String>()? {
            if word.trim().is_empty() {
                return Err(A::Error::custom("a word of the list is empty: remove it"));
            }
            words.push(word);
        }
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::yaml;

    #[test]
    fn what_is_written_of_any_keys_means_what_they_mean() {
        for text in [
            "",
            "compute-runtime: cuda\ntag: [a, b]\nrestart: now\npermissions: open\n",
            "enable-gpu: true\ngpu-device-ids: [0, renderD129]\nmodule-options: {ppfeaturemask: 0xffff}\n",
            "cdi: {path: /run/cdi/a.json, names: [uuid]}\ncontainerd: {configure: never, runtime: b}\n",
            "docker: {config: /etc/d/daemon.json}\nconcourse: {existing: adopt, tags: false}\n",
            "wrapper: {requests: deny, quarantine: true, edits: {memlock: unlimited, shm-size: 8G}}\n",
            "driver: {install: amdgpu-dkms, version: \"30.10\"}\npackages: {rocm-smi: absent}\n",
            "rocm: {install: apt, version: 7.2.4, packages: [rocm]}\nrepositories: {rocm: {suite: noble}}\n",
            "GPU_NODE: true\nROCM_BASE_URL: https://a/7.2/\nrocm: {usecases: [rocm]}\n",
            "boot: {unit: false, wait-s: 5}\ndaemon: {interval-s: 10}\nexporter: {listen: \"[::]:9401\"}\n",
            "partitions: {profile: a, units: [b.service], profiles: {a: [{cards: all, compute: CPX, memory: NPS4}]}}\n",
            "inventory: {user: ops, groups: {b: [gpu1, root@gpu2], a: [\"10.0.0.7\"]}}\n",
        ] {
            let path = Path::new("/etc/rocworker/config.yaml");
            let config = Config::parse(path, text).unwrap();
            let tree = yaml::parse(text).unwrap();
            let (document, _) = yaml::read::<Option<Document>>(&tree).unwrap();
            let written = document.unwrap_or_default().text().unwrap();
            let again = Config::parse(path, &written).unwrap();
            assert_eq!(Config { source: config.source.clone(), ..again }, config, "{text:?}: {written:?}");
        }
    }
}
