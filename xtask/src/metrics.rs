//! `cargo xtask metrics`: docs/metrics.md, from the table in crates/telemetry.

use std::fmt::Write;

use anyhow::{Context, Result};
use telemetry::metric::{Metric, Scope};
use telemetry::metrics::ALL;

use crate::repository;

const PLACE: &str = "docs/metrics.md";

const PREFACE: &str = "\
# Metrics

<!-- `cargo xtask metrics` writes this page from the table in crates/telemetry/src/metrics. -->

`rocworker-exporter` serves these metrics, and `rocworker metrics` prints them once. [monitoring.md](monitoring.md) sets
Prometheus up, and [alerts.md](alerts.md) has alerts and a dashboard.

## Conventions

- **Labels.** A series of a GPU has the labels below, where they are known. A label whose value is unknown is left out.

  | label | meaning |
  | --- | --- |
  | `gpu` | the index of `rocworker detect`. A partitioned card has no index of its own; its series have that of its first partition. Behind a KFD node that the exporter cannot read, no index is known |
  | `uuid` | the unique id of the card, or of the partition |
  | `pci` | the PCI address of the card |
  | `model` | the driver's product name, or the PCI id database's |
  | `gfx` | the architecture, as `gfx942` |
  | `partition` | the partition's number on its card; absent for a whole card |

- **Absent is not zero.** A reading that is absent, unsupported or unreadable has no series. If a file exists but cannot be
  read, `rocm_exporter_read_errors_total` counts that. What a device does not have and reads as 0 is absent too: the power
  of an MI200's second die, a temperature without a sensor.
- **Suspended.** The exporter never wakes a GPU. A suspended card has `rocm_gpu_suspended` 1, `rocm_gpu_info` and what
  the daemon judges of it, nothing more. It keeps the labels of the last scrape in which it was awake. If the exporter
  started later, labels that only an awake card tells are absent.
- **Health.** `rocm_gpu_health_score`, `rocm_gpu_health_state`, `rocm_gpu_hang` and `rocm_gpu_quarantined` are the
  [daemon's judgement](daemon.md#what-it-publishes), of a card with all its partitions. They are absent when that is older
  than 60 seconds.
- **Containers.** Only the series of processes, containers and leases have the label `container`. To have it on others,
  [join them](monitoring.md#the-container-that-holds-a-gpu).
- **Partitions.** Temperature, power, PCIe, RAS and used memory belong to the card and have no `partition` label.
  Partitions have their own series only where the kernel reports one for each. To add up a machine, select
  `{partition=\"\"}`.
- **APU memory.** `rocm_memory_used` and `rocm_memory_total` are VRAM. An APU works in system memory, so there they are
  GTT. `rocm_memory_pool_used_bytes` has both.
- **Counters** of files start at 0 when the driver loads. The firmware counts what only `gpu_metrics` has (energy,
  residencies, XGMI, PCIe errors), and may keep it over a reload. Those of `rocm_exporter_` and `rocm_container_` start
  with the exporter.
- **Other vendors.** Only AMD's cards have series.

In OpenMetrics, a family of counters or infos is named without `_total` or `_info`. The samples have the same names in both
formats. An untyped metric is `unknown` there.

DCGM is NVIDIA's Data Center GPU Manager; its memory is in MiB and its energy in mJ. DME is AMD's Device Metrics Exporter
with its own units. Both columns name what comes nearest.
";

pub(crate) fn run() -> Result<()> {
    let path = repository::top().join(PLACE);
    std::fs::write(&path, page()).with_context(|| format!("writing {}", path.display()))?;
    println!("{} is written", path.display());
    Ok(())
}

fn page() -> String {
    let mut page = PREFACE.to_owned();
    for (scope, heading, about) in [
        (Scope::Card, "Of a card", "The labels beside those of the GPU stand in the third column."),
        (Scope::Gpu, "Of a card or a partition", "A partition's series has the label `partition`."),
        (Scope::Machine, "Of the machine", "These have no label of a GPU."),
    ] {
        write!(page, "\n## {heading}\n\n{about}\n\n").ok();
        page.push_str("| metric | type, unit | labels | meaning | source | DCGM | DME |\n");
        page.push_str("| --- | --- | --- | --- | --- | --- | --- |\n");
        ALL.iter().filter(|metric| metric.scope == scope).for_each(|metric| row(&mut page, metric));
    }
    page
}

fn row(page: &mut String, metric: &Metric) {
    let Metric { name, help, .. } = metric;
    let labels = code(metric.labels.iter().copied());
    let columns = [metric.source, metric.dcgm, metric.dme].map(|names| code(names.split(", ")));
    let [source, dcgm, dme] = columns;
    let (kind, unit) = (metric.kind.name(), metric.unit);
    let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
    writeln!(page, "| `{name}` | {kind}{unit} | {labels} | {help} | {source} | {dcgm} | {dme} |").ok();
}

/// Each name in backticks; "each file" stays as it is.
fn code<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names = names.filter(|name| !name.is_empty());
    let marked = names.map(|name| if name == "each file" { name.to_owned() } else { format!("`{name}`") });
    marked.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_metrics_is_what_the_table_says() {
        let path = repository::top().join(PLACE);
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(written == page(), "{PLACE} is out of date: run `cargo xtask metrics`");
        for metric in ALL {
            assert_eq!(written.matches(&format!("\n| `{}` |", metric.name)).count(), 1, "{}", metric.name);
        }
    }
}
