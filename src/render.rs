//! templates/ -> text. What is rendered is parsed again and checked by whoever asked for it, before it may be
//! written: a template is a place for mistakes.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

/// The CDI spec.
pub const CDI: &str = "cdi/amd.json";
/// The Concourse worker's environment file, its unit's drop-in, and how its containerd comes to run the wrapper.
pub const CONCOURSE_ENVIRONMENT: &str = "concourse/worker.env";
pub const CONCOURSE_DROP_IN: &str = "concourse/drop-in.conf";
pub const CONCOURSE_CONTAINERD: &str = "concourse/containerd.toml";
pub const CONCOURSE_LAUNCHER: &str = "concourse/containerd.sh";

/// The templates that the program carries.
const BUILT_IN: [(&str, &str); 5] = [
    (CDI, include_str!("../templates/cdi/amd.json")),
    (CONCOURSE_ENVIRONMENT, include_str!("../templates/concourse/worker.env")),
    (CONCOURSE_DROP_IN, include_str!("../templates/concourse/drop-in.conf")),
    (CONCOURSE_CONTAINERD, include_str!("../templates/concourse/containerd.toml")),
    (CONCOURSE_LAUNCHER, include_str!("../templates/concourse/containerd.sh")),
];

/// A template could not be rendered.
#[derive(Debug, thiserror::Error)]
#[error("template {name}: {cause}")]
pub struct Error {
    name: &'static str,
    cause: minijinja::Error,
}

/// Renders a template. A name that the template uses and `context` lacks is an error, and what stands between
/// `{{ }}` in a `.json` template comes out as JSON, whatever it holds.
///
/// # Errors
/// When there is no such template, or it does not fit its context.
pub fn render(name: &'static str, context: impl Serialize) -> Result<String, Error> {
    let failed = |cause| Error { name, cause };
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(
        SyntaxConfig::builder()
            .keep_trailing_newline(true)
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()
            .map_err(failed)?,
    );
    environment.set_auto_escape_callback(|name| {
        if name.ends_with(".json") { AutoEscape::Json } else { AutoEscape::None }
    });
    for (name, text) in BUILT_IN {
        environment.add_template(name, text).map_err(failed)?;
    }
    environment
        .get_template(name)
        .and_then(|template| template.render(Value::from(Serde(context))))
        .map_err(failed)
}
