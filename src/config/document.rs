//! The YAML as it is written, before it is checked.

use std::collections::BTreeMap;
use std::path::PathBuf;

use reconcile::Restarts;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};

use super::driver::DriverDocument;
use super::engines::{CONTAINERD_CONFIG, CRIO_CONFIG, Concourse, DOCKER_CONFIG, EngineDocument};
use super::exporter::ExporterDocument;
use super::host::{self, Permissions};
use super::inventory::InventoryDocument;
use super::packages::{Packages, RepositoriesDocument, RocmDocument};
use super::scalar::Word;
use super::units::{BootDocument, DaemonDocument};
use super::wrapper::Wrapper;
use super::{
    CDI_SPEC, Cdi, ClusterBloom, ComputeRuntime, Config, Devices, Error, NamedBy, Source, is_of_key, path,
};

const VERSION: u32 = 1;

#[derive(Debug, Default, Deserialize)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "keys with values, as `compute-runtime: auto`"
)]
pub(super) struct Document {
    #[serde(rename = "schema_version")]
    schema_version: Option<u32>,
    compute_runtime: Option<ComputeRuntime>,
    gpu_device_ids: Option<Words>,
    tag: Option<Words>,
    cdi: Option<CdiDocument>,
    permissions: Option<Permissions>,
    module_options: Option<BTreeMap<String, Word>>,
    wrapper: Option<Wrapper>,
    containerd: Option<EngineDocument>,
    docker: Option<EngineDocument>,
    crio: Option<EngineDocument>,
    concourse: Option<Concourse>,
    driver: Option<DriverDocument>,
    restart: Option<Restarts>,
    packages: Option<Packages>,
    repositories: Option<RepositoriesDocument>,
    rocm: Option<RocmDocument>,
    boot: Option<BootDocument>,
    daemon: Option<DaemonDocument>,
    exporter: Option<ExporterDocument>,
    inventory: Option<InventoryDocument>,
    #[serde(rename = "GPU_NODE")]
    gpu_node: Option<bool>,
    #[serde(rename = "ROCM_BASE_URL")]
    rocm_base_url: Option<String>,
    #[serde(rename = "ROCM_DEB_PACKAGE")]
    rocm_deb_package: Option<String>,
    /// What `compute-runtime` was called when there was only one: yes or no.
    enable_gpu: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CdiDocument {
    path: Option<PathBuf>,
    names: Option<Vec<NamedBy>>,
}

impl Document {
    /// The line, from 1, and what is wrong there.
    pub(super) fn parse(text: &str) -> Result<Self, (usize, String)> {
        if let Some(line) = too_deep(text) {
            return Err((line, format!("nested deeper than {DEPTH} brackets: nothing here needs that")));
        }
        // Nothing but comments is null in YAML, and here a configuration without keys.
        let document: Result<Option<Self>, _> = yaml_serde::from_str(text);
        document.map(Option::unwrap_or_default).map_err(|error| {
            let place = error.location();
            let message = error.to_string();
            // The place is in front of the sentence, once.
            let said = message.split(" at line ").next().unwrap_or(&message).to_owned();
            let line = second_of(text, &said).or_else(|| place.map(|place| place.line()));
            // Of a text that ends too early the parser reports the line behind the last one.
            (line.unwrap_or(1).min(text.matches('\n').count() + 1), said)
        })
    }

    pub(super) fn check(self, source: Source) -> Result<Config, Error> {
        if let Some(version) = self.schema_version.filter(|version| *version != VERSION) {
            let problem = format!("schema_version {version} is not one that this program reads ({VERSION})");
            return Err(source.wrong("schema_version", None, problem));
        }
        let says_runtime = self.compute_runtime.is_some() || self.enable_gpu.is_some();
        let compute_runtime = self.runtime(&source)?;
        let devices = devices(self.gpu_device_ids, &source)?;
        if compute_runtime == ComputeRuntime::None && devices != Devices::All {
            let problem = "gpu-device-ids lists GPUs and no GPU is offered (compute-runtime: none): keep one of the two";
            return Err(source.wrong("gpu-device-ids", None, problem));
        }
        let tags = tags(self.tag, &source)?;
        let engine = |document: Option<EngineDocument>, name, default| {
            document.unwrap_or_default().check(name, default, &source)
        };
        let rocm = self.rocm.unwrap_or_default().check(&source)?;
        let clusterbloom = ClusterBloom::written(self.gpu_node, self.rocm_base_url, self.rocm_deb_package);
        let rocm = clusterbloom.check(rocm, &source)?;
        Ok(Config {
            compute_runtime,
            devices,
            tags,
            cdi: self.cdi.unwrap_or_default().check(&source)?,
            permissions: self.permissions.unwrap_or_default(),
            module_options: host::module_options(self.module_options.unwrap_or_default(), &source)?,
            wrapper: self.wrapper.unwrap_or_default().check(&source)?,
            containerd: engine(self.containerd, "containerd", CONTAINERD_CONFIG)?,
            docker: engine(self.docker, "docker", DOCKER_CONFIG)?,
            crio: engine(self.crio, "crio", CRIO_CONFIG)?,
            concourse: self.concourse.unwrap_or_default(),
            driver: self.driver.unwrap_or_default().check(&source)?,
            restart: self.restart.unwrap_or(Restarts::Drain),
            packages: self.packages.unwrap_or_default().check(&source)?,
            repositories: self.repositories.unwrap_or_default().check(&source)?,
            unused_keys: clusterbloom.unused(&rocm),
            unused_variables: Vec::new(),
            rocm,
            boot: self.boot.unwrap_or_default().check(&source)?,
            daemon: self.daemon.unwrap_or_default().check(&source)?,
            exporter: self.exporter.unwrap_or_default().check(&source)?,
            inventory: self.inventory.unwrap_or_default().check(&source)?,
            says_runtime,
            clusterbloom,
            source,
        })
    }

    fn runtime(&self, source: &Source) -> Result<ComputeRuntime, Error> {
        use ComputeRuntime::{Auto, Cuda, None as Off, Rocm};
        let contradiction = |said| {
            let problem =
                format!("enable-gpu: {said} and compute-runtime contradict each other; keep compute-runtime");
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
            (Some(said @ false), Some(Auto | Rocm | Cuda)) | (Some(said @ true), Some(Off | Cuda)) => {
                let problem = format!(
                    "GPU_NODE: {said} and compute-runtime contradict each other; keep compute-runtime"
                );
                Err(source.wrong("GPU_NODE", None, problem))
            }
            (_, runtime) => Ok(runtime.unwrap_or_default()),
        }
    }
}

/// More than any value here has; the parser's time grows with the square of it.
const DEPTH: usize = 16;

/// The line on which brackets are nested too deep, those in strings and comments among them.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (number, line) in (1..).zip(text.lines()) {
        for c in line.chars() {
            match c {
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > DEPTH {
                return Some(number);
            }
        }
    }
    None
}

/// The line of a key's second appearance: of a duplicate the parser reports only where its mapping begins.
fn second_of(text: &str, said: &str) -> Option<usize> {
    let key = said.split_once("duplicate field `")?.1.split('`').next()?;
    (1..).zip(text.lines()).filter(|(_, line)| is_of_key(line, key)).nth(1).map(|(number, _)| number)
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
    // They end in an environment file and in a comma-joined variable.
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
struct Words(Vec<String>);

impl Words {
    fn collect(words: impl IntoIterator<Item = String>) -> Self {
        let mut kept: Vec<String> = Vec::new();
        for list in words {
            for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
                if !kept.iter().any(|known| known == word) {
                    kept.push(word.to_owned());
                }
            }
        }
        Self(kept)
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
        f.write_str("a comma list such as \"a,b\" or a list such as [a, b]")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(vec![text.to_owned()])
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(vec![number.to_string()])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut words = Vec::new();
        while let Some(Word(word)) = list.next_element()? {
            if word.trim().is_empty() {
                return Err(A::Error::custom("an empty word in a list"));
            }
            words.push(word);
        }
        Ok(words)
    }
}
