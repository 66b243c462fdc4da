//! docker: an image of a few links, made and removed here; the GPU through the configured runtime, or by CDI.

use root::Attributes;
use serde_json::Value;
use tar::{Builder, EntryType, Header};

use super::desired::CDI;
use crate::canary::{ANSWER, Bird, Came, Granted, Mount, POLICY, PREFIX, PROGRAM, Question, Way};
use crate::version::Version;

/// Ours alone; each canary's has a tag of its own.
const IMAGE: &str = "rocworker-canary";

pub(super) fn try_it(bird: &Bird<'_>) -> Came {
    if bird.programs.find("docker").is_none() {
        return Came::Skipped("not installed".to_owned());
    }
    let info = match bird.programs.run(&["docker", "info", "--format", "{{json .}}"], bird.limits.call) {
        Ok(output) => serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default(),
        Err(error) => return Came::Skipped(format!("dockerd does not answer: {}", bird.told(&error))),
    };
    // Without a daemon `docker info` ends well, and says so.
    if let Some(error) = info.get("ServerErrors").and_then(|errors| errors.get(0)?.as_str()) {
        return Came::Skipped(format!("dockerd does not answer: {error}"));
    }
    let (question, flags, told) = match asked(bird, &info) {
        Ok(asked) => asked,
        Err(came) => return came,
    };
    // What a killed one left.
    let stale = remove(bird);
    let ran = import(bird).and_then(|image| run(bird, &question, &flags, &image));
    let left = stale.and(remove(bird)).err();
    if let Err(why) = ran {
        return Came::failed(why, remedy());
    }
    bird.came(question, told, remedy(), left, "dockerd")
}

/// What to do when no container comes of it, or one with other nodes.
fn remedy() -> String {
    format!(
        "rocworker status says what differs, and rocworker apply puts it right; {} has to offer that GPU and no other",
        POLICY
    )
}

/// Through our runtime where dockerd has it, else by the CDI spec alone.
fn asked(bird: &Bird<'_>, info: &Value) -> Result<(Question, Vec<String>, String), Came> {
    let runtime = &bird.config.docker.runtime;
    if info.get("Runtimes").and_then(|runtimes| runtimes.get(runtime)).is_some() {
        let (question, way) = Way::through_wrapper(bird, || Ok(()))?;
        let flags = [vec!["--runtime".to_owned(), runtime.clone()], way.flags].concat();
        return Ok((question, flags, format!("{} of the runtime {runtime}", way.told)));
    }
    // docker's own words for it are those of a path that is none.
    let version = info.get("ServerVersion").and_then(Value::as_str).and_then(Version::find);
    if let Some(version) = version.filter(|version| *version < CDI) {
        let why =
            format!("dockerd {version} has no runtime {runtime}, and knows no CDI, which came with {CDI}");
        return Err(Came::failed(why, remedy()));
    }
    let question = Question::of(bird.config, bird.facts, Granted::One, &[]).map_err(Came::Skipped)?;
    let way = Way::by_cdi(&question);
    Ok((question, way.flags, way.told))
}

/// An image of what stands in the nest's root file system, without the nest.
fn import(bird: &Bird<'_>) -> Result<String, String> {
    let told = |error: root::Error| error.to_string();
    let mut archive = Builder::new(Vec::new());
    for name in bird.root.list(bird.nest.rootfs()).map_err(told)? {
        let target = bird.root.read_link(bird.nest.rootfs().join(&name)).map_err(told)?;
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Symlink);
        header.set_size(0);
        header.set_mode(0o777);
        let added = archive.append_link(&mut header, &name, target);
        added.map_err(|error| format!("making an image: {error}"))?;
    }
    let bytes = archive.into_inner().map_err(|error| format!("making an image: {error}"))?;
    let file = bird.nest.beside("image.tar");
    bird.root.write(&file, &bytes, Attributes { mode: 0o644, owner: None }).map_err(told)?;
    let image = format!("{IMAGE}:{}", bird.nest.name());
    let argv = ["docker", "import", &file.display().to_string(), &image];
    bird.programs.run(&argv, bird.limits.run).map_err(|error| bird.told(&error))?;
    Ok(image)
}

fn run(bird: &Bird<'_>, question: &Question, flags: &[String], image: &str) -> Result<(), String> {
    let mut argv = vec!["docker", "run", "--rm", "--name", bird.nest.name(), "--network", "none"];
    argv.extend(["--cap-add", "MKNOD", "--security-opt", "label=disable", "--log-driver", "none"]);
    argv.extend(flags.iter().map(String::as_str));
    let mounts: Vec<String> = bird.nest.mounts().iter().map(mount).collect();
    argv.extend(mounts.iter().flat_map(|mount| ["--mount", mount]));
    argv.extend([image, PROGRAM]);
    let arguments = question.arguments(ANSWER);
    argv.extend(arguments.iter().map(String::as_str));
    bird.programs.run(&argv, bird.limits.run).map(drop).map_err(|error| bird.told(&error))
}

fn mount(mount: &Mount) -> String {
    let access = if mount.writable { "" } else { ",readonly" };
    format!("type=bind,source={},target={}{access}", mount.from, mount.to)
}

/// Removes every canary that dockerd knows, and their images.
fn remove(bird: &Bird<'_>) -> Result<(), String> {
    let limit = bird.limits.call;
    let call = |argv: &[&str]| {
        let output = bird.keepers.run(&[&["docker"], argv].concat(), limit);
        output
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
            .map_err(|error| bird.told(&error))
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
