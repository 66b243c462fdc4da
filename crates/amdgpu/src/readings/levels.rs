//! `pp_dpm_*`: the levels of a clock, of which the active one ends in `*` (smu_cmn.c, amdgpu_pm.c).

use inventory::readings::Clock;

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
        if let Some(megahertz) = source.parsed_or_empty(file, "list of levels", active).flatten() {
            clocks.push(Clock { domain: domain.into(), instance: None, hertz: megahertz as f64 * 1e6 });
        }
    }
}

/// The clock of the active line, such as `1: 1100Mhz *`. Several lines are active where levels have equal
/// clocks. Some drivers mark none where the clock is between two levels: `Some(None)`.
fn active(text: &str) -> Option<Option<u64>> {
    let mut found = None;
    for line in text.lines() {
        let level = line.trim_end();
        let active = level.strip_suffix('*');
        let (_, clock) = active.unwrap_or(level).split_once(':')?;
        let megahertz: u64 = clock.trim().strip_suffix("Mhz")?.parse().ok()?;
        if active.is_some() && *found.get_or_insert(megahertz) != megahertz {
            return None;
        }
    }
    Some(found)
}
