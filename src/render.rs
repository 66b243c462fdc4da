//! templates/ -> text. What is rendered is parsed again and checked by whoever asked for it, before it may be
//! written: a template is a place for mistakes.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

/// The CDI spec.
pub const CDI: &str = "cdi/amd.json";

/// The drop-in of containerd 2.
pub const CONTAINERD: &str = "containerd/rocworker.toml";

/// The templates that the program carries.
const BUILT_IN: [(&str, &str); 2] = [
    (CDI, include_str!("../templates/cdi/amd.json")),
    (CONTAINERD, include_str!("../templates/containerd/rocworker.toml")),
];

/// A template could not be rendered.
#[derive(Debug, thiserror::Error)]
#[error("template {name}: {cause}")]
pub struct Error {
    name: &'static str,
    cause: minijinja::Error,
}

/// Renders a template. A name that the template uses and `context` lacks is an error, and what stands between
/// `{{ }}` in a `.json` or `.toml` template comes out as JSON, whatever it holds: JSON's strings, numbers and lists are
/// TOML's too.
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
        if name.ends_with(".json") || name.ends_with(".toml") { AutoEscape::Json } else { AutoEscape::None }
    });
    for (name, text) in BUILT_IN {
        environment.add_template(name, text).map_err(failed)?;
    }
    environment
        .get_template(name)
        .and_then(|template| template.render(Value::from(Serde(context))))
        .map_err(failed)
}
