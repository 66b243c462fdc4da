//! docker: an image of a few links, made and removed here; the GPU through the configured runtime, or by CDI.

use root::Attributes;
use serde_json::Value;
use tar::{Builder, EntryType, Header};

use super::desired::CDI;
use crate::canary::{
    ANSWER, CanaryContext, CanaryResult, Granted, Mount, POLICY, PREFIX, PROGRAM, Question, Way,
};
use crate::version::Version;

/// Ours alone; each canary's has a tag of its own.
const IMAGE: &str = "rocworker-canary";

pub(super) fn try_it(context: &CanaryContext<'_>) -> CanaryResult {
    if context.programs.find("docker").is_none() {
        return CanaryResult::Skipped("not installed".to_owned());
    }
    let info = match context.programs.run(&["docker", "info", "--format", "{{json .}}"], context.limits.call)
    {
        Ok(output) => serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default(),
        Err(error) => {
            return CanaryResult::Skipped(format!("dockerd does not answer: {}", context.told(&error)));
        }
    };
    // Without a daemon `docker info` ends well, and says so.
    if let Some(error) = info.get("ServerErrors").and_then(|errors| errors.get(0)?.as_str()) {
        return CanaryResult::Skipped(format!("dockerd does not answer: {error}"));
    }
    let (question, flags, told) = match asked(context, &info) {
        Ok(asked) => asked,
        Err(came) => return came,
    };
    // What a killed one left.
    let stale = remove(context);
    let ran = import(context).and_then(|image| run(context, &question, &flags, &image));
    let left = stale.and(remove(context)).err();
    if let Err(why) = ran {
        return CanaryResult::failed(why, remedy());
    }
    context.came(question, told, remedy(), left, "dockerd")
}

/// What to do when no container comes of it, or one with other nodes.
fn remedy() -> String {
    format!(
        "rocworker status says what differs, and rocworker apply puts it right; {} has to offer that GPU and no other",
        POLICY
    )
}

/// Through our runtime where dockerd has it, else by the CDI spec alone.
fn asked(context: &CanaryContext<'_>, info: &Value) -> Result<(Question, Vec<String>, String), CanaryResult> {
    let runtime = &context.config.docker.runtime;
    if info.get("Runtimes").and_then(|runtimes| runtimes.get(runtime)).is_some() {
        let (question, way) = Way::through_wrapper(context, || Ok(()))?;
        let flags = [vec!["--runtime".to_owned(), runtime.clone()], way.flags].concat();
        return Ok((question, flags, format!("{} of the runtime {runtime}", way.told)));
    }
    // docker's own words for it are those of a path that is none.
    let version = info.get("ServerVersion").and_then(Value::as_str).and_then(Version::find);
    if let Some(version) = version.filter(|version| *version < CDI) {
        let why =
            format!("dockerd {version} has no runtime {runtime}, and knows no CDI, which came with {CDI}");
        return Err(CanaryResult::failed(why, remedy()));
    }
    let question =
        Question::of(context.config, context.facts, Granted::One, &[]).map_err(CanaryResult::Skipped)?;
    let way = Way::by_cdi(&question);
    Ok((question, way.flags, way.told))
}

/// An image of what stands in the nest's root file system, without the nest.
fn import(context: &CanaryContext<'_>) -> Result<String, String> {
    let told = |error: root::Error| error.to_string();
    let mut archive = Builder::new(Vec::new());
    for name in context.root.list(context.nest.rootfs()).map_err(told)? {
        let target = context.root.read_link(context.nest.rootfs().join(&name)).map_err(told)?;
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Symlink);
        header.set_size(0);
        header.set_mode(0o777);
        let added = archive.append_link(&mut header, &name, target);
        added.map_err(|error| format!("making an image: {error}"))?;
    }
    let bytes = archive.into_inner().map_err(|error| format!("making an image: {error}"))?;
    let file = context.nest.beside("image.tar");
    context.root.write(&file, &bytes, Attributes { mode: 0o644, owner: None }).map_err(told)?;
    let image = format!("{IMAGE}:{}", context.nest.name());
    let argv = ["docker", "import", &file.display().to_string(), &image];
    context.programs.run(&argv, context.limits.run).map_err(|error| context.told(&error))?;
    Ok(image)
}

fn run(
    context: &CanaryContext<'_>,
    question: &Question,
    flags: &[String],
    image: &str,
) -> Result<(), String> {
    let mut argv = vec!["docker", "run", "--rm", "--name", context.nest.name(), "--network", "none"];
    argv.extend(["--cap-add", "MKNOD", "--security-opt", "label=disable", "--log-driver", "none"]);
    argv.extend(flags.iter().map(String::as_str));
    let mounts: Vec<String> = context.nest.mounts().iter().map(mount).collect();
    argv.extend(mounts.iter().flat_map(|mount| ["--mount", mount]));
    argv.extend([image, PROGRAM]);
    let arguments = question.arguments(ANSWER);
    argv.extend(arguments.iter().map(String::as_str));
    context.programs.run(&argv, context.limits.run).map(drop).map_err(|error| context.told(&error))
}

fn mount(mount: &Mount) -> String {
    let access = if mount.writable { "" } else { ",readonly" };
    format!("type=bind,source={},target={}{access}", mount.from, mount.to)
}

/// Removes every canary that dockerd knows, and their images.
fn remove(context: &CanaryContext<'_>) -> Result<(), String> {
    let limit = context.limits.call;
    let call = |argv: &[&str]| {
        let output = context.keepers.run(&[&["docker"], argv].concat(), limit);
        output
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
            .map_err(|error| context.told(&error))
    };
    let filter = format!("name=^/?{PREFIX}");
    for id in call(&["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter])?.split_whitespace() {
        call(&["rm", "--force", id]).map_err(|why| format!("docker keeps the container {id}: {why}"))?;
    }
    for id in call(&["images", "--quiet", "--no-trunc", IMAGE])?.split_whitespace() {
        call(&["image", "rm", "--force", id]).map_err(|why| format!("docker keeps the image {id}: {why}"))?;
    }
    Ok(())
}
