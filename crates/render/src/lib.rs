//! templates/ -> text. What is rendered is parsed again and checked by whoever asked for it, before it may be
//! written: a template is a place for mistakes.

mod bounds;
mod overrides;

use std::io::Cursor;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior};
use serde::Serialize;

use bounds::OUTPUT;
pub use overrides::{Sums, Templates, overrides};

/// The CDI spec.
pub const CDI: &str = "cdi/amd.json";
/// The wrapper's policy.
pub const WRAPPER: &str = "wrapper.json";

/// Who may open AMD's compute nodes, for udev.
pub const UDEV: &str = "udev/70-amdgpu.rules";

/// The file of modules-load.d that has amdgpu loaded at boot.
pub const MODULE_LOAD: &str = "modules/load.conf";

/// Parameters of the kernel module amdgpu.
pub const MODULE_OPTIONS: &str = "modules/options.conf";

/// Group and mode of the nodes in a container, at every start.
pub const TMPFILES: &str = "tmpfiles/rocworker.conf";

/// A repository of apt's, and which of its packages come first.
pub const APT_SOURCES: &str = "apt/repository.sources";
pub const APT_PIN: &str = "apt/repository.pref";
/// The unit that runs before engines start.
pub const BOOT: &str = "systemd/rocworker-boot.service";
pub const PARTITION: &str = "systemd/rocworker-partition.service";
/// The daemon's unit.
pub const DAEMON: &str = "systemd/rocworker.service";
/// The unit that serves the GPUs' metrics to Prometheus.
pub const EXPORTER: &str = "systemd/rocm-exporter.service";

/// The drop-in of containerd 2.
pub const CONTAINERD: &str = "containerd/rocworker.toml";

/// The drop-in of CRI-O.
pub const CRIO: &str = "crio/rocworker.toml";

/// The Concourse worker's environment file, its unit's drop-in, and how its containerd comes to run the wrapper.
pub const CONCOURSE_ENVIRONMENT: &str = "concourse/worker.env";
pub const CONCOURSE_DROP_IN: &str = "concourse/drop-in.conf";
pub const CONCOURSE_CONTAINERD: &str = "concourse/containerd.toml";
pub const CONCOURSE_LAUNCHER: &str = "concourse/containerd.sh";

/// The templates that the program carries.
const BUILT_IN: &[(&str, &str)] = &[
    (CDI, include_str!("../../../templates/cdi/amd.json")),
    (WRAPPER, include_str!("../../../templates/wrapper.json")),
    (UDEV, include_str!("../../../templates/udev/70-amdgpu.rules")),
    (APT_SOURCES, include_str!("../../../templates/apt/repository.sources")),
    (APT_PIN, include_str!("../../../templates/apt/repository.pref")),
    (MODULE_LOAD, include_str!("../../../templates/modules/load.conf")),
    (MODULE_OPTIONS, include_str!("../../../templates/modules/options.conf")),
    (CONTAINERD, include_str!("../../../templates/containerd/rocworker.toml")),
    (CRIO, include_str!("../../../templates/crio/rocworker.toml")),
    (CONCOURSE_ENVIRONMENT, include_str!("../../../templates/concourse/worker.env")),
    (CONCOURSE_DROP_IN, include_str!("../../../templates/concourse/drop-in.conf")),
    (CONCOURSE_CONTAINERD, include_str!("../../../templates/concourse/containerd.toml")),
    (CONCOURSE_LAUNCHER, include_str!("../../../templates/concourse/containerd.sh")),
    (BOOT, include_str!("../../../templates/systemd/rocworker-boot.service")),
    (PARTITION, include_str!("../../../templates/systemd/rocworker-partition.service")),
    (DAEMON, include_str!("../../../templates/systemd/rocworker.service")),
    (EXPORTER, include_str!("../../../templates/systemd/rocm-exporter.service")),
    (TMPFILES, include_str!("../../../templates/tmpfiles/rocworker.conf")),
];

/// Steps that a template may take.
const FUEL: u64 = 2_000_000;

/// A template could not be rendered.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    /// `at`: the template, with the line where there is one; an override by its file.
    fn new(at: &str, problem: &str) -> Self {
        Self(format!("{at}: {problem}"))
    }
}

impl Templates {
    /// Renders a template, or what overrides it. A name that the template uses and `context` lacks is an error, and
    /// what is between `{{ }}` in a `.json` or `.toml` template comes out as JSON, whatever it holds: JSON's
    /// strings, numbers and lists are TOML's too.
    ///
    /// # Errors
    /// When there is no such template, when it does not fit its context, or when its override cannot be believed.
    pub fn render(&self, name: &'static str, context: impl Serialize) -> Result<String, Error> {
        let text = self.text(name)?;
        let failed = |cause| self.failed(name, &cause);
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        // A hundred times what 64 partitions take: an override that loops for ever ends with a sentence.
        environment.set_fuel(Some(FUEL));
        let syntax = SyntaxConfig::builder()
            .keep_trailing_newline(true)
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()
            .map_err(failed)?;
        environment.set_syntax(syntax.clone());
        environment.set_auto_escape_callback(|name| {
            if name.ends_with(".json") || name.ends_with(".toml") {
                AutoEscape::Json
            } else {
                AutoEscape::None
            }
        });
        bounds::check(text, syntax).map_err(|(line, problem)| {
            let at = format!("{}:{line}", self.place(name));
            Error::new(&at, &problem)
        })?;
        environment.add_template(name, text).map_err(failed)?;
        let template = environment.get_template(name).map_err(failed)?;
        // A write beyond the end of the slice fails.
        let mut rendered = vec![0; OUTPUT];
        let mut place = Cursor::new(rendered.as_mut_slice());
        let ended = template.render_captured_to(Value::from(Serde(context)), &mut place);
        let length = usize::try_from(place.position()).unwrap_or(OUTPUT);
        let wrong = |problem: String| Error::new(&self.place(name), &problem);
        match ended {
            Err(cause) if cause.kind() == ErrorKind::WriteFailure => {
                return Err(wrong(format!("it gives more than {} KiB", OUTPUT >> 10)));
            }
            ended => ended.map(drop).map_err(failed)?,
        }
        rendered.truncate(length);
        String::from_utf8(rendered).map_err(|error| wrong(error.to_string()))
    }

    fn failed(&self, name: &str, cause: &minijinja::Error) -> Error {
        let place = self.place(name);
        let at = cause.line().map_or_else(|| place.clone(), |line| format!("{place}:{line}"));
        let problem = match cause.detail() {
            Some(detail) => format!("{}: {detail}", cause.kind()),
            None => cause.kind().to_string(),
        };
        Error::new(&at, &problem)
    }
}
