//! `partition devices`, `env` and `fit`: one device of a card, and what a program needs to know of it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use inventory::PciAddress;
use inventory::partitioning::{Card, Device};
use printable::printable;
use serde::Serialize;

use super::super::Outcome;
use super::super::detect::gibibytes;
use super::super::session::{Misuse, Session, absolute, caller};
use super::super::table::Columns;
use crate::partition::{Fit, Look, Model, Precision};

const LIMIT: usize = 1 << 20;

#[derive(Debug, clap::Args)]
pub(crate) struct EnvArgs {
    /// The device's index, as `rocworker detect` gives it
    #[arg(value_name = "INDEX")]
    device: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FitArgs {
    /// A model's config.json or the folder that has it; with --parameters only a name
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The device's index, as `rocworker detect` gives it
    #[arg(long, value_name = "INDEX")]
    partition: u32,
    /// How its weights are stored
    #[arg(long, value_enum, default_value_t = Precision::Fp16)]
    precision: Precision,
    /// How many tokens its cache is to hold
    #[arg(long, value_name = "TOKENS", default_value_t = 4096)]
    context: u64,
    /// How many parameters it has, as 8B, where there is no config.json: its cache is then not counted
    #[arg(long, value_name = "NUMBER")]
    parameters: Option<String>,
    /// How many hundredths of the device's memory the program takes (vLLM's --gpu-memory-utilization is 0.9)
    #[arg(long, value_name = "PERCENT", default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..=100))]
    utilization: u64,
}

/// A device with its card.
#[derive(Serialize)]
struct Entry<'c> {
    index: Option<u32>,
    pci: PciAddress,
    partition: u32,
    render: Option<&'c str>,
    xcds: Option<u32>,
    memory_bytes: Option<u64>,
    memory_computed: Option<bool>,
}

#[derive(Serialize)]
struct Devices<'c> {
    schema_version: u32,
    devices: Vec<Entry<'c>>,
}

#[derive(Serialize)]
struct Environment {
    schema_version: u32,
    #[serde(rename = "ROCR_VISIBLE_DEVICES")]
    rocr_visible_devices: String,
    #[serde(rename = "AIM_PARTITION_ID")]
    aim_partition_id: String,
}

#[derive(Serialize)]
struct Fits<'m> {
    schema_version: u32,
    model: String,
    partition: u32,
    precision: Precision,
    context: u64,
    #[serde(flatten)]
    of: &'m Model,
    memory_bytes: u64,
    #[serde(flatten)]
    fit: Fit,
    /// What runs it in a container; `None` where it does not fit.
    vllm: Option<Vllm>,
}

/// The device that a container takes by CDI, and the arguments of vLLM in it. With one device in the container it needs no
/// variable.
#[derive(Serialize)]
struct Vllm {
    device: String,
    arguments: Vec<String>,
}

fn entry<'c>((card, device): (&'c Card, &'c Device)) -> Entry<'c> {
    let memory = card.memory_of(device).ok();
    Entry {
        index: device.index,
        pci: card.pci,
        partition: device.partition,
        render: device.render.as_deref(),
        xcds: device.xcds,
        memory_bytes: memory.map(|seen| seen.value),
        memory_computed: memory.map(|seen| seen.is_computed),
    }
}

fn all(look: &Look) -> impl Iterator<Item = (&Card, &Device)> {
    look.cards.iter().flat_map(|card| card.devices.iter().map(move |device| (card, device)))
}

/// The device with this index.
fn find(look: &Look, index: u32) -> Result<(&Card, &Device), Misuse> {
    all(look).find(|(_, device)| device.index == Some(index)).ok_or_else(|| {
        let indexes: Vec<u32> = all(look).filter_map(|(_, device)| device.index).collect();
        Misuse(match indexes.is_empty() {
            true => format!("{index} is no device: amdgpu and KFD show none here"),
            false => {
                format!(
                    "{index} is no device of this machine: it has {}",
                    super::super::detect::ranges(&indexes)
                )
            }
        })
    })
}

pub(crate) fn devices(session: &Session) -> anyhow::Result<Outcome> {
    let look = Look::at(&session.root);
    let answer = Devices { schema_version: 1, devices: all(&look).map(entry).collect() };
    session.format.print(&answer, || {
        if answer.devices.is_empty() {
            return "No device: amdgpu and KFD show none here.\n".to_owned();
        }
        let mut columns =
            Columns::new(&["#", "PCI", "PARTITION", "RENDER", "XCDS", "MEMORY"]).right(&[0, 2, 4, 5]);
        for device in &answer.devices {
            let number = |value: Option<u32>| value.map_or("?".to_owned(), |value| value.to_string());
            let memory = device.memory_bytes.map_or("?".to_owned(), gibibytes);
            let computed = if device.memory_computed == Some(true) { "*" } else { "" };
            columns.row([
                number(device.index).into(),
                device.pci.to_string().into(),
                device.partition.to_string().into(),
                device.render.unwrap_or("?").into(),
                number(device.xcds).into(),
                format!("{memory}{computed}").into(),
            ]);
        }
        columns.shown(session.format)
    })?;
    Ok(Outcome::Done)
}

pub(crate) fn env(session: &Session, args: &EnvArgs) -> anyhow::Result<Outcome> {
    let look = Look::at(&session.root);
    let (_, device) = find(&look, args.device)?;
    // HIP_VISIBLE_DEVICES counts within ROCR's selection: an equal number in both would leave no device.
    let answer = Environment {
        schema_version: 1,
        rocr_visible_devices: args.device.to_string(),
        aim_partition_id: device.partition.to_string(),
    };
    session.format.print(&answer, || {
        format!(
            "ROCR_VISIBLE_DEVICES={}\nAIM_PARTITION_ID={}\n",
            answer.rocr_visible_devices, answer.aim_partition_id
        )
    })?;
    Ok(Outcome::Done)
}

pub(crate) fn fit(session: &Session, args: &FitArgs) -> anyhow::Result<Outcome> {
    let model = match &args.parameters {
        Some(text) => Model::of_parameters(text).map_err(Misuse)?,
        None => read(args)?,
    };
    if let Some(longest) = model.context.filter(|longest| args.context > *longest) {
        let text =
            format!("--context {} is more than the {longest} tokens that the model takes", args.context);
        return Err(Misuse(text).into());
    }
    let look = Look::at(&session.root);
    let (card, device) = find(&look, args.partition)?;
    let memory = card
        .memory_of(device)
        .map_err(|why| anyhow::anyhow!("the memory of {} is not known: {why}", args.partition))?;
    let fit = model.fit(memory.value, args.precision, args.context, args.utilization);
    let answer = Fits {
        schema_version: 1,
        model: args.model.display().to_string(),
        partition: args.partition,
        precision: args.precision,
        context: args.context,
        of: &model,
        memory_bytes: memory.value,
        fit,
        vllm: fit.fits.then(|| vllm(args)),
    };
    session.format.print(&answer, || text(&answer, args))?;
    Ok(if fit.fits { Outcome::Done } else { Outcome::Findings })
}

fn vllm(args: &FitArgs) -> Vllm {
    let share = format!("{}.{:02}", args.utilization / 100, args.utilization % 100);
    // vLLM takes the folder of a model, or its name.
    let folder = args.model.parent().filter(|_| args.model.ends_with("config.json"));
    let model = folder.map_or(args.model.as_path(), |folder| match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    });
    let (model, context) = (model.display().to_string(), args.context.to_string());
    let arguments = ["serve", &model, "--gpu-memory-utilization", &share, "--max-model-len", &context];
    let arguments = arguments.iter().chain(args.precision.options()).map(|it| (*it).to_owned());
    Vllm { device: format!("amd.com/gpu={}", args.partition), arguments: arguments.collect() }
}

fn read(args: &FitArgs) -> anyhow::Result<Model> {
    let caller = caller()?;
    let path = absolute(&args.model)?;
    let path = if args.model.is_dir() { path.join("config.json") } else { path };
    let text = caller.read_text(&path, LIMIT);
    let text = text.context("a model without its config.json takes --parameters, as in --parameters 8B")?;
    let model = Model::parse(&text).map_err(|problem| Misuse(format!("{}: {problem}", path.display())))?;
    Ok(model)
}

fn text(answer: &Fits<'_>, args: &FitArgs) -> String {
    let Fit { weights_bytes, cache_bytes, usable_bytes, fits } = answer.fit;
    let verdict = if fits { "fits into" } else { "does not fit into" };
    let cache = match answer.of.cache_per_token {
        Some(_) => format!("{} for the cache of {} tokens", gibibytes(cache_bytes), args.context),
        None => "a cache that only its config.json tells".to_owned(),
    };
    let run = answer.vllm.as_ref().map_or_else(String::new, |vllm| {
        let run = format!("in a container with --device {}: vllm {}", vllm.device, vllm.arguments.join(" "));
        printable(&run) + "\n"
    });
    printable(&format!(
        "{} {verdict} GPU {}: {} of weights and {cache}; {} % of {} are {}",
        answer.model,
        args.partition,
        gibibytes(weights_bytes),
        args.utilization,
        gibibytes(answer.memory_bytes),
        gibibytes(usable_bytes)
    )) + "\n"
        + &run
}
