//! A scrape of `rocworker-exporter` over loopback on a machine of 8 cards with 8 partitions each, all readings there.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use layout::Nodes;
use support::exposition;
use support::node_exporter::NodeExporter;

use super::busy;
use super::exporter::Exporter;
use super::report::{Outcome, Report};
use super::timing::median;
use crate::test::fetch;

/// The design's budgets.
const ALLOWED_MICROSECONDS: f64 = 20.0;
const RESIDENT_KIB: f64 = 16.0 * 1024.0;

/// Cards of the machine, and what each is cut into.
const CARDS: u8 = 8;
const PARTITIONS: u8 = 8;

/// The number of scrapes after which the exporter's memory is measured; each tenth scrape is of the page.
const SCRAPES: usize = 1_000;

/// The number of scrapes after which the daemon's files are written again: they would become too old to
/// count.
const OFTEN: usize = 100;

/// Adds the rows.
pub(crate) fn measure(exporter: &Path, work: &Path, runs: usize, report: &mut Report) -> Result<()> {
    println!("measuring: scrape");
    let root = lay_out(work)?;
    report.add(
        "scrape, 8 cards × 8 partitions",
        time(exporter, &root, runs),
        ALLOWED_MICROSECONDS,
        "µs a value",
    );
    busy::use_gpus(&root)?;
    let outcome = resident(exporter, &root);
    report.add("scrape, 300 processes: resident after 1,000", outcome, 1.0, "× 16 MiB");
    Ok(())
}

fn lay_out(work: &Path) -> Result<PathBuf> {
    let root = work.join("scrape-8x8");
    let machine = layout::Machine::instinct_with_readings(CARDS, PARTITIONS);
    machine.lay_out(&root, Nodes::Recorded).with_context(|| format!("laying out {}", root.display()))?;
    Ok(root)
}

/// Has a daemon judge the cards now: it counts for a minute, as long as a measurement takes.
fn judge(root: &Path) -> Result<()> {
    let path = root.join(inventory::health::PATH.trim_start_matches('/'));
    let folder = path.parent().context("it is in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    fs::write(&path, layout::health(CARDS, false, now)).with_context(|| format!("writing {}", path.display()))
}

/// The number of values in an answer whose series have names with this prefix.
fn values(answer: &str, prefix: &str) -> usize {
    exposition::parse(answer).iter().filter(|series| series.name.starts_with(prefix)).count()
}

/// Fails where the answer does not name every partition: the figure of a scrape that misses one is worth nothing.
fn check(answer: &str, gpus: usize) -> Result<()> {
    let series = exposition::parse(answer);
    let named = series.iter().filter(|it| it.name == "rocm_gpu_info" && !it.label("gpu").is_empty()).count();
    ensure!(named >= gpus, "the exporter names {named} GPUs where {gpus} were laid out");
    Ok(())
}

/// Compares the exporter's median with node_exporter's on the same tree, in turns: with its collectors of
/// GPUs alone, and with all of its default ones.
fn time(program: &Path, root: &Path, runs: usize) -> Result<Outcome> {
    let node_exporter = fetch::prometheus()?.join(support::node_exporter::PROGRAM);
    let ours = Exporter::start(program, root)?;
    let [of_gpus, of_all] =
        [&["drm", "hwmon"][..], &[]].map(|only| NodeExporter::start_program(&node_exporter, root, only));
    judge(root)?;
    let (answer, _) = ours.scrape()?;
    check(&answer, usize::from(CARDS) * usize::from(PARTITIONS))?;
    ensure!(
        values(&answer, "rocm_gpu_quarantined") == usize::from(CARDS),
        "the daemon's file does not count"
    );
    let mut series: [Vec<Duration>; 3] = Default::default();
    for _ in 0..runs {
        series[0].push(ours.scrape()?.1);
        series[1].push(super::exporter::scrape(of_gpus.address())?.1);
        series[2].push(super::exporter::scrape(of_all.address())?.1);
    }
    let [ours, gpus, all] = series.map(|mut durations| median(&mut durations).as_secs_f64() * 1e6);
    let count = |answer: &str, prefixes: &[&str]| {
        let values: usize = prefixes.iter().map(|prefix| values(answer, prefix)).sum();
        Ok::<_, anyhow::Error>(f64::from(u32::try_from(values.max(1))?))
    };
    let own = count(&answer, &["rocm_"])?;
    let others = count(&super::exporter::scrape(of_gpus.address())?.0, &["node_drm_", "node_hwmon_"])?;
    let figures = format!(
        "{:.2} ms for {own} values; node_exporter's drm and hwmon {:.1} µs a value, all of it {:.2} ms",
        ours / 1e3,
        gpus / others,
        all / 1e3,
    );
    Ok(Outcome { figures, ratio: ours / own })
}

fn resident(program: &Path, root: &Path) -> Result<Outcome> {
    let exporter = Exporter::start(program, root)?;
    for number in 0..SCRAPES {
        if number % OFTEN == 0 {
            judge(root)?;
            busy::publish(root)?;
        }
        if number % 10 == 0 {
            exporter.page()?
        } else {
            exporter.scrape()?
        };
    }
    let (most, now) = (exporter.memory_kib("VmHWM")?, exporter.memory_kib("VmRSS")?);
    let figures = format!("{most} KiB; now {now} KiB");
    Ok(Outcome { figures, ratio: f64::from(most) / RESIDENT_KIB })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_misses_a_gpu_gives_no_figure() {
        let answer =
            "rocm_gpu_info{gpu=\"0\"} 1\nrocm_gpu_info{pci=\"0000:05:00.0\"} 1\nrocm_a 2\nnode_a 2\n";
        assert!(check(answer, 1).is_ok());
        assert!(check(answer, 2).unwrap_err().to_string().contains("names 1 GPUs where 2"));
        assert_eq!(values(answer, "rocm_"), 3);
    }
}
