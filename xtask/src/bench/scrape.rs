//! A scrape of `rocworker-exporter` over loopback on a machine of 8 cards with 8 partitions each, all readings there.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use layout::Nodes;
use support::exposition;
use support::node_exporter::NodeExporter;

use crate::test::prometheus;

use super::busy;
use super::detect::count;
use super::exporter::Exporter;
use super::report::{Outcome, Report, Row};
use super::slow_machine;

/// What the design allows.
const ALLOWED_MS: f64 = 20.0;
const ALLOWED_CALLS: f64 = 3.0;
/// A page is a scrape that is written in another way.
const ALLOWED_PAGE: f64 = 1.25;
const RESIDENT_KIB: f64 = 16.0 * 1024.0;

/// Cards of the machine, and what each is cut into.
pub(super) const CARDS: u8 = 8;
pub(super) const PARTITIONS: u8 = 8;

/// After so many scrapes, of which each tenth is for the page, its memory is looked at.
const SCRAPES: usize = 1_000;

/// After so many the daemon's files are written again, which soon are too old to count.
const OFTEN: usize = 100;

/// People ask less often than Prometheus.
const PAGES: usize = 200;

/// Adds the rows; what cannot be measured is a row with its reason.
pub(crate) fn measure(exporter: &Path, work: &Path, runs: usize, report: &mut Report) {
    println!("measuring: scrape");
    let mut add = |what: &str, limit: f64, unit: &'static str, outcome: Result<Outcome>| {
        let left_out = |error: anyhow::Error| Outcome::LeftOut { reason: format!("left out: {error:#}") };
        let outcome = outcome.unwrap_or_else(left_out);
        report.add(Row { what: what.to_owned(), outcome, limit, unit, enforced: true });
    };
    let root = match lay_out(work) {
        Ok(root) => root,
        Err(error) => return add("scrape", 1.0, "× 20 ms", Err(error)),
    };
    add("scrape, 8 cards × 8 partitions", 1.0, "× 20 ms", time(exporter, &root, runs));
    add("scrape, system calls", ALLOWED_CALLS, "a value", system_calls(exporter, &root, work));
    add("scrape, 1 ms a read: beyond linear", 1.0, "× 50 ms", slow_machine::beyond_linear(exporter, &root));
    add("scrape, reads of suspended GPUs", 0.0, "files", slow_machine::of_suspended(exporter, work));
    if let Err(error) = busy::use_gpus(&root) {
        return add("scrape, 300 processes", 1.0, "× 16 MiB", Err(error));
    }
    add("page at /, 300 processes", ALLOWED_PAGE, "× a scrape", page(exporter, &root, runs));
    add("scrape, 300 processes: resident after 1,000", 1.0, "× 16 MiB", resident(exporter, &root));
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

/// How many values an answer has, of series that begin so.
pub(super) fn values(answer: &str, prefix: &str) -> usize {
    exposition::parse(answer).iter().filter(|series| series.name.starts_with(prefix)).count()
}

/// Fails where the answer does not name every partition: the figure of a scrape that misses one is worth nothing.
pub(super) fn check(answer: &str, gpus: usize) -> Result<()> {
    let series = exposition::parse(answer);
    let named = series.iter().filter(|it| it.name == "rocm_gpu_info" && !it.label("gpu").is_empty()).count();
    ensure!(named >= gpus, "the exporter names {named} GPUs where {gpus} were laid out");
    Ok(())
}

/// Its median beside node_exporter's on the same tree, in turns: its collectors of GPUs alone, and all of its own.
fn time(program: &Path, root: &Path, runs: usize) -> Result<Outcome> {
    if !prometheus::are_there() {
        prometheus::unpack()?;
    }
    let node_exporter = prometheus::program(support::node_exporter::PROGRAM)?;
    let ours = Exporter::start(program, root, &[])?;
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
    let [ours, gpus, all] =
        series.map(|mut durations| super::timing::median(&mut durations).as_secs_f64() * 1e3);
    let figures = format!(
        "{ours:.2} ms for {} values; node_exporter's drm and hwmon {gpus:.2} ms for {}, all of it {all:.2} ms",
        values(&answer, "rocm_"),
        values(&super::exporter::scrape(of_gpus.address())?.0, "node_drm_")
            + values(&super::exporter::scrape(of_gpus.address())?.0, "node_hwmon_"),
    );
    Ok(Outcome::Measured { figures, ratio: ours / ALLOWED_MS })
}

/// The page's median beside a scrape's, in turns.
fn page(program: &Path, root: &Path, runs: usize) -> Result<Outcome> {
    let exporter = Exporter::start(program, root, &[])?;
    let mut series: [Vec<Duration>; 2] = Default::default();
    let mut bytes = 0;
    for number in 0..runs.min(PAGES) {
        if number % OFTEN == 0 {
            judge(root)?;
            busy::publish(root)?;
        }
        let (page, took) = exporter.page()?;
        let rows = page.matches("<tr>").count();
        let least = usize::from(CARDS) * usize::from(PARTITIONS) + busy::SHOWN;
        ensure!(rows >= least && page.contains("Last changes"), "it has {rows} rows, and {least} are due");
        bytes = page.len();
        series[0].push(took);
        series[1].push(exporter.scrape()?.1);
    }
    let [page, scrape] =
        series.map(|mut durations| super::timing::median(&mut durations).as_secs_f64() * 1e3);
    let figures = format!("{page:.2} ms, {bytes} bytes; a scrape {scrape:.2} ms");
    Ok(Outcome::Measured { figures, ratio: page / scrape })
}

/// All calls of the program, those of the network too: of a run with eleven scrapes, less those of a run with one.
fn system_calls(program: &Path, root: &Path, work: &Path) -> Result<Outcome> {
    judge(root)?;
    let (of_one, answer) = calls_of(1, program, root, work)?;
    let (of_eleven, _) = calls_of(11, program, root, work)?;
    let (calls, values) = (f64::from(of_eleven.saturating_sub(of_one)) / 10.0, values(&answer, "rocm_"));
    ensure!(calls > 0.0, "strace saw no call of a scrape");
    let figures = format!("{calls:.0} for {values} values");
    Ok(Outcome::Measured { figures, ratio: calls / f64::from(u32::try_from(values.max(1))?) })
}

fn calls_of(scrapes: u32, program: &Path, root: &Path, work: &Path) -> Result<(u32, String)> {
    let log = work.join("scrape.strace");
    let shown = log.to_str().context("the path of the folder is no text")?;
    let strace = ["strace", "-f", "-qq", "-e", "signal=none", "-o", shown];
    let exporter = Exporter::start(program, root, &strace)?;
    let mut answer = String::new();
    for _ in 0..scrapes {
        answer = exporter.scrape()?.0;
    }
    exporter.end()?;
    let text = fs::read_to_string(&log).with_context(|| format!("reading {}", log.display()))?;
    Ok((count(&text), answer))
}

fn resident(program: &Path, root: &Path) -> Result<Outcome> {
    let exporter = Exporter::start(program, root, &[])?;
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
    Ok(Outcome::Measured { figures, ratio: f64::from(most) / RESIDENT_KIB })
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
