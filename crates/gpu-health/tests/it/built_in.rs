//! Each built-in rule, with inputs that just make it hold and inputs that just do not.

use gpu_health::known::{Event, Log};
use gpu_health::rules::Rules;
use inventory::health::State;
use inventory::snapshot::Card;
use kernel_log::knowledge::{Blame, Class, Knowledge, Severity};

use crate::{Sample, card, event, judged, of, rules_of, sample};

#[test]
fn the_built_in_rules_are_read() {
    assert!(Rules::built_in().rules.len() > 25);
}

/// A class, how long ago and how often it was logged, what that takes off, and the state.
type Case<'c> = (Class, Severity, u64, usize, &'c [(&'c str, u8)], State);

#[test]
fn a_message_takes_off_what_the_table_says() {
    use Severity::{Critical, Info, Warning};
    use State::{Degraded, Healthy, Unhealthy};
    let day = 86_400;
    let cases: &[Case<'_>] = &[
        (Class::Hang, Critical, 10, 1, &[("hang-now", 60)], Unhealthy),
        (Class::Hang, Warning, 10, 30, &[], Healthy),
        (Class::ResetFailed, Warning, 10, 30, &[], Healthy),
        (Class::InitFailed, Warning, 10, 30, &[], Healthy),
        (Class::Hang, Critical, 600, 1, &[("hang-now", 60)], Unhealthy),
        (Class::Hang, Critical, 601, 1, &[("hang-recent", 15)], Degraded),
        (Class::Hang, Critical, 3601, 1, &[("hang-open", 11)], Degraded),
        (Class::ResetFailed, Critical, 9 * day, 1, &[("reset-failed", 100)], Unhealthy),
        (Class::InitFailed, Critical, 9 * day, 1, &[("init-failed", 100)], Unhealthy),
        (Class::MemoryUncorrectable, Critical, day, 1, &[("memory-uncorrectable-log", 60)], Unhealthy),
        (Class::MemoryUncorrectable, Critical, day + 1, 32, &[], Healthy),
        (Class::MemoryCorrectable, Info, 3600, 10, &[("memory-correctable-log", 15)], Degraded),
        (Class::MemoryCorrectable, Info, 3600, 9, &[], Healthy),
        (Class::BadPages, Critical, 9 * day, 1, &[("bad-pages", 60)], Unhealthy),
        (Class::BadPages, Warning, 1, 1, &[], Healthy),
        (Class::IllegalOpcode, Critical, 1, 32, &[], Healthy),
        (Class::PageFault, Critical, 1, 32, &[], Healthy),
        (Class::Pcie, Critical, 10, 1, &[("pcie-fatal", 60)], Unhealthy),
        (Class::Pcie, Warning, 10, 20, &[("pcie-errors", 15)], Degraded),
        (Class::Pcie, Warning, 10, 19, &[], Healthy),
        (Class::Thermal, Warning, 10, 1, &[("thermal-log", 10)], Healthy),
        (Class::Thermal, Critical, 10, 1, &[("thermal-shutdown", 60)], Unhealthy),
        (Class::Power, Warning, 10, 1, &[("power", 5)], Healthy),
        (Class::Power, Info, 10, 32, &[], Healthy),
        (Class::Xgmi, Warning, day, 1, &[("xgmi-errors", 20)], Degraded),
        (Class::Xgmi, Critical, day, 1, &[("xgmi-failed", 60)], Unhealthy),
        (Class::Firmware, Critical, 9 * day, 1, &[("firmware", 60)], Unhealthy),
        (Class::Firmware, Warning, 10, 1, &[], Healthy),
        (Class::HardwareEvent, Critical, 10, 1, &[], Healthy),
        (Class::ResetRecovered, Info, 3600, 2, &[], Healthy),
        (Class::ResetRecovered, Info, 3600, 3, &[("hang-often", 20)], Degraded),
    ];
    for (class, severity, ago, times, takes, state) in cases {
        let events = vec![Event { severity: *severity, ..event(*class, *ago) }; *times];
        let gpu = of(&card(Vec::new()), &events);
        let case = format!("{class:?} {severity:?} {ago} s ago, {times} times");
        assert_eq!((rules_of(&gpu), gpu.state), (takes.to_vec(), *state), "{case}");
        let taken: u8 = takes.iter().map(|(_, points)| points).sum();
        assert_eq!(gpu.score, Some(100 - taken), "{case}");
        for deduction in &gpu.deductions {
            assert!(deduction.evidence.ends_with(&events[0].line), "{case}: {}", deduction.evidence);
        }
    }
}

#[test]
fn a_message_that_a_rule_names_by_its_id_takes_off_what_that_rule_says() {
    for (class, id, takes) in [
        (Class::Hang, "gpu-reset-begin", ("reset-unfinished", 60)),
        (Class::Pcie, "pcie-link-down", ("pcie-link-down", 60)),
        (Class::HardwareEvent, "aca-events", ("hardware-event", 15)),
    ] {
        let named = Event { severity: Severity::Warning, message: id.to_owned(), ..event(class, 86_400) };
        assert_eq!(rules_of(&of(&card(Vec::new()), &[named])), [takes]);
    }
}

#[test]
fn each_critical_message_makes_a_gpu_unhealthy_and_a_message_of_an_application_leaves_it_healthy() {
    let knowledge = Knowledge::built_in().unwrap();
    let mut critical = 0;
    for message in knowledge.messages() {
        let logged =
            Event { severity: message.severity, message: message.id.clone(), ..event(message.class, 5) };
        let state = of(&card(Vec::new()), &[logged]).state;
        if message.severity == Severity::Critical {
            critical += 1;
            assert_eq!(state, State::Unhealthy, "{}", message.id);
        }
        if message.blame == Blame::Application {
            assert_eq!(state, State::Healthy, "{}", message.id);
        }
    }
    assert!(critical > 20, "{critical}");
}

/// Samples, what they take off, and the score.
type Reading<'c> = (Vec<Sample>, &'c [(&'c str, u8)], Option<u8>);

#[test]
fn a_reading_takes_off_what_the_table_says() {
    let temperature = |celsius| sample("rocm_gpu_temperature", &[("sensor", "mem")], celsius);
    let limit = |sensor, limit, celsius| {
        sample("rocm_gpu_temperature_limit_celsius", &[("sensor", sensor), ("limit", limit)], celsius)
    };
    let pages = |state, pages| sample("rocm_retired_pages", &[("state", state)], pages);
    let width = |link, lanes| sample("rocm_pcie_link_width_lanes", &[("link", link)], lanes);
    let status = |reason| sample("rocm_gpu_throttle_status", &[("reason", reason)], 1.0);
    let errors = |severity| sample("rocm_ras_errors_total", &[("block", "umc"), ("severity", severity)], 9.0);
    let link_up = |up| sample("rocm_xgmi_link_up", &[("link", "3")], up);
    let dump = |is_there| sample("rocm_gpu_devcoredump", &[], is_there);
    let cases: Vec<Reading<'_>> = vec![
        (vec![dump(1.0)], &[("hang-dump", 15)], Some(85)),
        (vec![dump(0.0)], &[], Some(100)),
        (vec![pages("retired", 64.0)], &[("bad-pages-retired", 20)], Some(80)),
        (vec![pages("retired", 63.0)], &[], Some(100)),
        (vec![pages("pending", 1.0)], &[("bad-pages-pending", 15)], Some(85)),
        (vec![pages("unreservable", 1.0)], &[("bad-pages-unreservable", 20)], Some(80)),
        (vec![errors("uncorrectable")], &[("memory-uncorrectable-before", 20)], Some(80)),
        (vec![errors("correctable")], &[], None),
        (vec![width("current", 8.0), width("max", 16.0)], &[("pcie-width", 5)], Some(95)),
        (vec![width("current", 16.0), width("max", 16.0)], &[], Some(100)),
        (vec![width("current", 8.0)], &[], None),
        // A limit that the device does not set is not guessed; one of another sensor, or of 0, is none.
        (vec![temperature(500.0)], &[], None),
        (vec![temperature(500.0), limit("edge", "critical", 90.0)], &[], None),
        (vec![temperature(50.0), limit("mem", "critical", 0.0)], &[], None),
        (vec![temperature(90.0), limit("mem", "critical", 90.0)], &[], Some(100)),
        (vec![temperature(91.0), limit("mem", "critical", 90.0)], &[("thermal-critical", 30)], Some(70)),
        (vec![temperature(91.0), limit("mem", "emergency", 90.0)], &[("thermal-emergency", 60)], Some(40)),
        (vec![status("thermal")], &[("thermal-throttling", 10)], Some(90)),
        (vec![status("power")], &[], None),
        (vec![link_up(0.0)], &[("xgmi-link-down", 10)], Some(90)),
        (vec![link_up(1.0)], &[], Some(100)),
        (vec![sample("rocm_power_usage", &[], 9e9)], &[], None),
        (vec![temperature(f64::INFINITY), limit("mem", "critical", 90.0)], &[], None),
    ];
    for (samples, takes, score) in cases {
        let shown = format!("{samples:?}");
        // Of this card the log says nothing.
        let silent = Card { driver: Some("vfio-pci".to_owned()), ..card(samples) };
        let gpu = of(&silent, &[]);
        assert_eq!((rules_of(&gpu), gpu.score), (takes.to_vec(), score), "{shown}");
        assert_eq!(gpu.state == State::Unknown, score.is_none(), "{shown}");
    }
}

#[test]
fn evidence_names_the_series_and_its_value() {
    let samples = vec![
        sample("rocm_gpu_temperature", &[("sensor", "mem")], 112.5),
        sample("rocm_gpu_temperature_limit_celsius", &[("sensor", "mem"), ("limit", "critical")], 110.0),
        sample("rocm_retired_pages", &[("state", "pending")], 3.0),
        sample("rocm_xgmi_link_up", &[("link", "3")], 0.0),
        sample("rocm_xgmi_link_up", &[("link", "5")], 0.0),
    ];
    let gpu = of(&card(samples), &[]);
    let evidence: Vec<&str> = gpu.deductions.iter().map(|deduction| deduction.evidence.as_str()).collect();
    assert_eq!(
        evidence,
        [
            "rocm_retired_pages{state=\"pending\"} is 3, at least 1",
            "rocm_gpu_temperature{sensor=\"mem\"} is 112.5, above 110 of \
             rocm_gpu_temperature_limit_celsius{sensor=\"mem\",limit=\"critical\"}",
            "rocm_xgmi_link_up{link=\"3\"} is 0, below 1; and 1 more",
        ]
    );
}

/// The log and readings of one incident, and the one rule that takes points for it.
#[test]
fn one_incident_costs_once_however_many_rules_it_holds() {
    let named = |class, id: &str, ago| Event { message: id.to_owned(), ..event(class, ago) };
    let errors = |severity| sample("rocm_ras_errors_total", &[("block", "umc"), ("severity", severity)], 9.0);
    let celsius = |name, labels: &[(&'static str, &str)], celsius| sample(name, labels, celsius);
    let hot = || {
        vec![
            celsius("rocm_gpu_temperature", &[("sensor", "junction")], 116.0),
            celsius(
                "rocm_gpu_temperature_limit_celsius",
                &[("sensor", "junction"), ("limit", "critical")],
                110.0,
            ),
            celsius(
                "rocm_gpu_temperature_limit_celsius",
                &[("sensor", "junction"), ("limit", "emergency")],
                115.0,
            ),
            sample("rocm_gpu_throttle_status", &[("reason", "thermal")], 1.0),
        ]
    };
    let dump = || vec![sample("rocm_gpu_devcoredump", &[], 1.0)];
    let hang = || event(Class::Hang, 60);
    let begun = || named(Class::Hang, "gpu-reset-begin", 59);
    let recovered = || event(Class::ResetRecovered, 50);
    let cases = [
        (dump(), vec![hang()], ("hang-now", 60)),
        (dump(), vec![hang(), begun()], ("hang-now", 60)),
        (dump(), vec![hang(), begun(), event(Class::ResetFailed, 58)], ("reset-failed", 100)),
        (dump(), vec![hang(), begun(), recovered()], ("hang-recent", 15)),
        (dump(), vec![event(Class::Hang, 700)], ("hang-recent", 15)),
        (Vec::new(), vec![recovered(), recovered(), hang(), recovered()], ("hang-often", 20)),
        (
            vec![errors("uncorrectable")],
            vec![event(Class::MemoryUncorrectable, 60)],
            ("memory-uncorrectable-log", 60),
        ),
        (
            vec![sample("rocm_retired_pages", &[("state", "retired")], 130.0)],
            vec![event(Class::BadPages, 60)],
            ("bad-pages", 60),
        ),
        (Vec::new(), vec![named(Class::Pcie, "pcie-link-down", 60); 20], ("pcie-fatal", 60)),
        (hot(), vec![event(Class::Thermal, 60)], ("thermal-emergency", 60)),
        (
            vec![sample("rocm_xgmi_link_up", &[("link", "3")], 0.0)],
            vec![event(Class::Xgmi, 60)],
            ("xgmi-failed", 60),
        ),
    ];
    for (samples, events, takes) in cases {
        let case = format!("{samples:?} {events:?}");
        let gpu = of(&card(samples), &events);
        assert_eq!((rules_of(&gpu), gpu.score), (vec![takes], Some(100 - takes.1)), "{case}");
    }
    // Two incidents cost each.
    let both = of(&card(hot()), &[event(Class::Hang, 60)]);
    assert_eq!((rules_of(&both), both.score), (vec![("hang-now", 60), ("thermal-emergency", 60)], Some(0)));
}

#[test]
fn without_the_log_good_readings_are_not_healthy_and_bad_ones_count() {
    let width = |lanes| sample("rocm_pcie_link_width_lanes", &[("link", "current")], lanes);
    let link = |lanes| vec![width(lanes), sample("rocm_pcie_link_width_lanes", &[("link", "max")], 16.0)];
    let pending = || vec![sample("rocm_retired_pages", &[("state", "pending")], 1.0)];
    for (samples, read, unread) in [
        (link(16.0), (State::Healthy, Some(100)), (State::Unknown, None)),
        (link(8.0), (State::Healthy, Some(95)), (State::Unknown, None)),
        (pending(), (State::Degraded, Some(85)), (State::Degraded, Some(85))),
        (Vec::new(), (State::Healthy, Some(100)), (State::Unknown, None)),
    ] {
        let shown = format!("{samples:?}");
        let card = card(samples);
        let log = Log { events: &[], is_whole: true };
        for (log, expected) in [(Ok(log), read), (Err("it cannot be read"), unread)] {
            let gpu = judged(&Rules::built_in(), &card, log);
            assert_eq!((gpu.state, gpu.score), expected, "{shown}");
            assert_eq!(gpu.unknown.is_empty(), gpu.state != State::Unknown, "{shown}: {:?}", gpu.unknown);
        }
    }
    // Rules that ask for no message need no log.
    let text = "degraded_below = 80\nunhealthy_below = 50\nhold_s = 0\n[[rule]]\nid = \"hot\"\npoints = 60\n\
                reason = \"Hot.\"\nmetric = { name = \"rocm_gpu_temperature\", above = 51 }\n";
    let rules = Rules::parse("rules", text).unwrap();
    let cool = card(vec![sample("rocm_gpu_temperature", &[("sensor", "junction")], 50.0)]);
    assert_eq!(judged(&rules, &cool, Err("it cannot be read")).state, State::Healthy);
}

#[test]
fn corrected_errors_alone_are_never_unhealthy_nor_are_hangs_that_recovered() {
    let rules = Rules::built_in();
    let sum = |names: &[&str]| -> u32 {
        let found = rules.rules.iter().filter(|rule| names.contains(&rule.id.as_str()));
        let points: Vec<u32> = found.map(|rule| u32::from(rule.points)).collect();
        assert_eq!(points.len(), names.len());
        points.iter().sum()
    };
    let most = 100 - u32::from(rules.unhealthy_below);
    assert!(sum(&["memory-correctable", "memory-correctable-log"]) <= most);
    assert!(sum(&["hang-recent", "hang-often", "hang-dump"]) <= most);
}
