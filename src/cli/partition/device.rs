//! `partition devices`, `env` and `fit`: one device of a card, and what a program needs to know of it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use inventory::PciAddress;
use inventory::partitioning::{Card, Device, DeviceOf};
use printable::{printable, quoted};
use serde::Serialize;

use super::super::Outcome;
use super::super::detect::gibibytes;
use super::super::options::Format;
use super::super::output::{BAD, styled};
use super::super::session::{Misuse, Session, absolute, caller};
use super::super::table::Columns;
use super::show::memory;
use crate::partition::{Fit, Look, Model, Precision};

const LIMIT: usize = 1 << 20;

/// How many tokens a cache is to hold where a person does not say it.
const CONTEXT: u64 = 4096;

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
    /// How many tokens its cache is to hold [default: 4096, or all that the model takes]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    context: Option<u64>,
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
    pci: PciAddress,
    #[serde(flatten)]
    of: DeviceOf<'c>,
}

#[derive(Serialize)]
struct Devices<'c> {
    schema_version: u32,
    devices: Vec<Entry<'c>>,
    problems: Vec<String>,
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
    let entries = all(&look).map(|(card, device)| Entry { pci: card.pci, of: DeviceOf(card, device) });
    let (devices, problems) = (entries.collect(), look.inventory.problems());
    let answer = Devices { schema_version: 1, devices, problems };
    session.format.print(&answer, || listed(&answer, session.format))?;
    Ok(Outcome::Done)
}

fn listed(answer: &Devices<'_>, format: Format) -> String {
    let mut text = "No device: amdgpu and KFD show none here.\n".to_owned();
    if !answer.devices.is_empty() {
        let mut columns =
            Columns::new(&["#", "PCI", "PARTITION", "RENDER", "XCDS", "MEMORY"]).right(&[0, 2, 4, 5]);
        for Entry { pci, of: DeviceOf(card, device) } in &answer.devices {
            let number = |value: Option<u32>| value.map_or("?".to_owned(), |value| value.to_string());
            columns.row([
                number(device.index).into(),
                pci.to_string().into(),
                device.partition.to_string().into(),
                device.render.as_deref().unwrap_or("?").into(),
                number(device.xcds).into(),
                memory(Some(card.memory_of(device))).into(),
            ]);
        }
        text = columns.shown(format);
    }
    for problem in &answer.problems {
        writeln!(text, "{} {}", styled(BAD, "problem:"), printable(problem)).ok();
    }
    text
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
    let longest = model.context.unwrap_or(u64::MAX);
    let context = args.context.unwrap_or(CONTEXT.min(longest));
    if context > longest {
        let text = format!("--context {context} is more than the {longest} tokens that the model takes");
        return Err(Misuse(text).into());
    }
    let look = Look::at(&session.root);
    let (card, device) = find(&look, args.partition)?;
    let memory = card
        .memory_of(device)
        .map_err(|why| anyhow::anyhow!("the memory of {} is not known: {why}", args.partition))?;
    let fit = model.fit(memory.value, args.precision, context, args.utilization);
    let answer = Fits {
        schema_version: 1,
        model: args.model.display().to_string(),
        partition: args.partition,
        precision: args.precision,
        context,
        of: &model,
        memory_bytes: memory.value,
        fit,
        vllm: fit.fits.then(|| vllm(args, context)),
    };
    session.format.print(&answer, || text(&answer, args))?;
    Ok(if fit.fits { Outcome::Done } else { Outcome::Findings })
}

fn vllm(args: &FitArgs, context: u64) -> Vllm {
    let share = format!("{}.{:02}", args.utilization / 100, args.utilization % 100);
    // vLLM takes the folder of a model, or its name.
    let folder = args.model.parent().filter(|_| args.model.is_file());
    let model = folder.map_or(args.model.as_path(), |folder| match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    });
    let (model, context) = (model.display().to_string(), context.to_string());
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
    let cache = match cache_bytes {
        Some(bytes) => format!("{} for the cache of {} tokens", gibibytes(bytes), answer.context),
        None => "a cache that only its config.json tells".to_owned(),
    };
    let run = answer.vllm.as_ref().map_or_else(String::new, |vllm| {
        // vLLM makes no integers of other weights.
        let what = if args.precision.options().is_empty() { "a checkpoint with such weights, " } else { "" };
        let run = format!(
            "{what}in a container with --device {}: vllm {}",
            vllm.device,
            vllm.arguments.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(" ")
        );
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
