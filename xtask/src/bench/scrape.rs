//! A scrape of `rocworker-exporter` over loopback on a machine of 8 cards with 8 partitions each, all readings there.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{ChildStderr, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use layout::Nodes;
use support::exposition;

use super::report::{Outcome, Report};
use super::timing::median;
use super::{Served, memory_kib};
use crate::command::Command;
use crate::programs::Programs;

/// The design's budgets.
const ALLOWED_MICROSECONDS: f64 = 20.0;
const RESIDENT_KIB: f64 = 16.0 * 1024.0;

/// The number of scrapes after which the exporter's memory is measured.
const SCRAPES: usize = 1_000;

/// Adds the rows.
pub(crate) fn measure(programs: &Programs, work: &Path, report: &mut Report) -> Result<()> {
    let [time, resident] = match scrapes(&programs.exporter, work) {
        Ok(measured) => measured.map(Ok),
        Err(error) => [(); 2].map(|()| Err(anyhow!("{error:#}"))),
    };
    report.add("scrape, 8 cards × 8 partitions", time, ALLOWED_MICROSECONDS, "µs a value");
    report.add("scrape, exporter resident after 1,000", resident, 1.0, "× 16 MiB");
    Ok(())
}

fn scrapes(program: &Path, work: &Path) -> Result<[Outcome; 2]> {
    let root = work.join("scrape-8x8");
    let machine = layout::Machine::instinct_with_readings(8, 8);
    machine.lay_out(&root, Nodes::Recorded).context("laying a machine out")?;
    let (exporter, url, _log) = start(program, &root)?;
    let answer = work.join("answer");
    let mut times = Vec::with_capacity(SCRAPES);
    for _ in 0..SCRAPES {
        let took = Command::new(["curl", "--silent", "--fail", "--write-out", "%{time_total}", "--output"])
            .arguments([answer.as_os_str(), url.as_ref()])
            .read()?;
        times.push(Duration::from_secs_f64(took.parse().context("curl's time_total")?));
    }
    let answer = std::fs::read_to_string(&answer).context("reading the answer")?;
    let values = values(&answer, 8 * 8)?;
    let resident = memory_kib(exporter.0.id(), "VmHWM")?;
    let time = median(&mut times).as_secs_f64();
    Ok([
        Outcome {
            figures: format!("{:.2} ms for {values} values", time * 1e3),
            ratio: time * 1e6 / f64::from(values),
        },
        Outcome { figures: format!("{resident} KiB"), ratio: resident / RESIDENT_KIB },
    ])
}

/// The exporter of the machine beneath `root`, the address of its metrics, and its log, which has to stay open.
fn start(program: &Path, root: &Path) -> Result<(Served, String, BufReader<ChildStderr>)> {
    let mut command = std::process::Command::new(program);
    command.arg("--root").arg(root).args(["--listen", "127.0.0.1:0"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut exporter = Served(command.spawn().with_context(|| format!("starting {}", program.display()))?);
    let mut log = BufReader::new(exporter.0.stderr.take().context("it has no stderr")?);
    let mut line = String::new();
    log.read_line(&mut line).context("reading what it says")?;
    let url = line.split_whitespace().find(|word| word.starts_with("http://"));
    let url = url.with_context(|| format!("{} says: {line}", program.display()))?.to_owned();
    Ok((exporter, url, log))
}

/// The number of values in an answer. The figure of a scrape that misses a GPU is worth nothing.
fn values(answer: &str, gpus: usize) -> Result<u32> {
    let series = exposition::parse(answer);
    let named = series.iter().filter(|it| it.name == "rocm_gpu_info" && !it.label("gpu").is_empty()).count();
    ensure!(named >= gpus, "the exporter names {named} GPUs where {gpus} were laid out");
    Ok(u32::try_from(series.iter().filter(|it| it.name.starts_with("rocm_")).count())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_misses_a_gpu_gives_no_figure() {
        let answer =
            "rocm_gpu_info{gpu=\"0\"} 1\nrocm_gpu_info{pci=\"0000:05:00.0\"} 1\nrocm_a 2\nnode_a 2\n";
        assert_eq!(values(answer, 1).unwrap(), 3);
        assert!(values(answer, 2).unwrap_err().to_string().contains("names 1 GPUs where 2"));
    }
}
