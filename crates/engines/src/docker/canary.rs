//! docker: an empty image, made and removed here; the GPU through the configured runtime, or by CDI.

use allocation::policy::PATH as POLICY;
use check::Check;
use host::version::Version;
use root::Attributes;
use serde_json::Value;

use super::desired::CDI;
use super::doctor::info;
use crate::canary::{CALL, CanaryContext, PREFIX, Question, words};

/// Rocworker's alone; each canary's has a tag of its own.
const IMAGE: &str = "rocworker-canary";

pub(super) fn check(context: &CanaryContext<'_>) -> Result<Vec<Check>, Check> {
    if context.programs.find("docker").is_none() {
        return Err(context.skipped("not installed"));
    }
    let info = info(&context.programs, &[], CALL)
        .map_err(|why| context.skipped(format!("dockerd does not answer: {why}")))?;
    let remedy = format!(
        "rocworker status says what differs, and rocworker apply puts it right; {POLICY} has to offer that GPU and no \
         other"
    );
    let question = question(context, &info, &remedy)?;
    let start = || {
        let image = import(context)?;
        let mut argv = context.docker_run("docker", &question);
        argv.push(image);
        argv.extend(question.command());
        context.run(&words(&argv))
    };
    context.checks(&question, (&remedy, "dockerd"), || remove(context), start)
}

/// Asks through the managed runtime where dockerd has it, else by the CDI spec alone.
fn question(context: &CanaryContext<'_>, info: &Value, remedy: &str) -> Result<Question, Check> {
    let runtime = &context.config.docker.runtime;
    if info.get("Runtimes").and_then(|runtimes| runtimes.get(runtime)).is_some() {
        let mut question = Question::through_wrapper(context, || Ok(()))?;
        question.flags.extend(["--runtime".to_owned(), runtime.clone()]);
        question.way += &format!(" of the runtime {runtime}");
        return Ok(question);
    }
    // docker itself would report a bad path, and not that dockerd lacks CDI.
    let version = info.get("ServerVersion").and_then(Value::as_str).and_then(Version::find);
    if let Some(version) = version.filter(|version| *version < CDI) {
        let why =
            format!("dockerd {version} has no runtime {runtime}, and knows no CDI, which came with {CDI}");
        return Err(context.failed(why, remedy));
    }
    Question::of(context.config, context.facts, &[]).map_err(|why| context.skipped(why))
}

/// An image with nothing in it.
fn import(context: &CanaryContext<'_>) -> Result<String, String> {
    /// An archive of tar(5) without an entry: two blocks of NULs.
    const EMPTY: [u8; 1024] = [0; 1024];
    let file = context.sandbox.folder.join("image.tar");
    let attributes = Attributes { mode: 0o644, owner: None };
    context.root.write(&file, &EMPTY, attributes).map_err(|error| error.to_string())?;
    let image = format!("{IMAGE}:{}", context.sandbox.name);
    context.run(&["docker", "import", &file.display().to_string(), &image])?;
    Ok(image)
}

/// Removes every canary that dockerd knows, and their images.
fn remove(context: &CanaryContext<'_>) -> Result<(), String> {
    context.docker_remove("docker", &format!("name=^/?{PREFIX}"), &[])?;
    for id in context.call(&["docker", "images", "--quiet", "--no-trunc", IMAGE])? {
        context
            .call(&["docker", "image", "rm", "--force", &id])
            .map_err(|why| format!("docker keeps the image {id}: {why}"))?;
    }
    Ok(())
}
