//! `pp_dpm_*`: the levels of a clock, of which the active one ends in `*` (smu_cmn.c, amdgpu_pm.c).

use super::Clock;
use super::source::Source;

const FILES: [(&str, &str); 6] = [
    ("sclk", "pp_dpm_sclk"),
    ("mclk", "pp_dpm_mclk"),
    ("fclk", "pp_dpm_fclk"),
    ("socclk", "pp_dpm_socclk"),
    ("vclk", "pp_dpm_vclk"),
    ("dclk", "pp_dpm_dclk"),
];

/// Adds the clocks that no other file gave.
pub(super) fn fill(source: &mut Source<'_>, clocks: &mut Vec<Clock>) {
    for (domain, file) in FILES {
        if clocks.iter().any(|clock| clock.domain == domain) {
            continue;
        }
        if let Some(megahertz) = source.parsed(file, "list of levels with one active", active) {
            clocks.push(Clock { domain, instance: None, hertz: megahertz as f64 * 1e6 });
        }
    }
}

/// `1: 1100Mhz *`. Several lines are active where levels have the same clock.
fn active(text: &str) -> Option<u64> {
    let mut active = text.lines().filter_map(|line| line.trim_end().strip_suffix('*'));
    let megahertz = |line: &str| line.split_once(':')?.1.trim().strip_suffix("Mhz")?.parse::<u64>().ok();
    let first = megahertz(active.next()?)?;
    active.all(|line| megahertz(line) == Some(first)).then_some(first)
}
