//! Properties that hold for every input.

use gpu_health::judge::Judge;
use gpu_health::known::{Event, Known, Log};
use inventory::health::{Health, State};
use inventory::snapshot::Card;
use kernel_log::knowledge::{Class, Severity};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::{BUILT_IN, NOW, Sample, card, event, judged, sample};

const CLASSES: [Class; 17] = [
    Class::AccessDenied,
    Class::MemoryUncorrectable,
    Class::MemoryCorrectable,
    Class::BadPages,
    Class::Hang,
    Class::ResetFailed,
    Class::ResetRecovered,
    Class::IllegalOpcode,
    Class::PageFault,
    Class::Pcie,
    Class::Thermal,
    Class::Power,
    Class::Xgmi,
    Class::Firmware,
    Class::InitFailed,
    Class::HardwareEvent,
    Class::Kfd,
];

fn events() -> impl Strategy<Value = Vec<Event>> {
    let severity = prop_oneof![Just(Severity::Info), Just(Severity::Warning), Just(Severity::Critical)];
    let one = (0..CLASSES.len(), 0..100_000_u64, severity, any::<bool>());
    let one = one.prop_map(|(class, ago, severity, is_named)| {
        let event = event(CLASSES[class], ago);
        Event { severity, gpu: event.gpu.filter(|_| is_named), ..event }
    });
    vec(one, 0..40)
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let celsius = || {
        prop_oneof![Just(0.0), Just(1.0), 0.0..200.0_f64, Just(f64::NAN), Just(f64::INFINITY), Just(f64::MIN),]
    };
    let count = || (0..200_u32).prop_map(f64::from);
    let limit = |limit: &'static str| {
        celsius().prop_map(move |value| {
            sample("rocm_gpu_temperature_limit_celsius", &[("sensor", "mem"), ("limit", limit)], value)
        })
    };
    let errors = |severity: &'static str| {
        count().prop_map(move |value| {
            sample("rocm_ras_errors_total", &[("block", "umc"), ("severity", severity)], value)
        })
    };
    let width = |link: &'static str| {
        count().prop_map(move |value| sample("rocm_pcie_link_width_lanes", &[("link", link)], value))
    };
    let one = prop_oneof![
        celsius().prop_map(|value| sample("rocm_gpu_temperature", &[("sensor", "mem")], value)),
        limit("critical"),
        limit("emergency"),
        count().prop_map(|value| sample("rocm_retired_pages", &[("state", "pending")], value)),
        errors("uncorrectable"),
        errors("correctable"),
        width("current"),
        width("max"),
        (0..2_u8).prop_map(|value| sample("rocm_gpu_devcoredump", &[], f64::from(value))),
    ];
    vec(one, 0..12).prop_map(|mut samples| {
        // Each series stands once.
        samples.sort_by_key(|sample| (sample.name, sample.labels.clone()));
        samples.dedup_by_key(|sample| (sample.name, sample.labels.clone()));
        samples
    })
}

fn score(samples: &[Sample], events: &[Event]) -> Option<u8> {
    let log = Ok(Log { events, is_whole: true });
    judged(&BUILT_IN, &card(samples.to_vec()), log).score
}

proptest! {
    #[test]
    fn the_score_never_rises_with_another_message_that_reports_trouble(events in events(), more in events()) {
        let more: Vec<Event> = more.into_iter().filter(|it| it.class != Class::ResetRecovered).collect();
        let both = [&events[..], &more].concat();
        prop_assert!(score(&[], &both) <= score(&[], &events));
    }

    #[test]
    fn a_reading_that_is_absent_never_scores(samples in samples(), gone in 0..12_usize) {
        let mut fewer = samples.clone();
        if gone < fewer.len() {
            fewer.remove(gone);
        }
        prop_assert!(score(&fewer, &[]) >= score(&samples, &[]));
        // Without a log nothing but readings makes a score.
        let alone = judged(&BUILT_IN, &card(fewer.clone()), Err("none"));
        let readable = fewer.iter().any(|sample| sample.value.is_finite());
        prop_assert!(alone.score.is_none() || readable);
    }

    #[test]
    fn state_score_and_deductions_agree(samples in samples(), events in events()) {
        let rules = &*BUILT_IN;
        let gpu = judged(rules, &card(samples), Ok(Log { events: &events, is_whole: true }));
        let taken: u32 = gpu.deductions.iter().map(|deduction| u32::from(deduction.points)).sum();
        let score = gpu.score.unwrap();
        prop_assert_eq!(u32::from(score), 100_u32.saturating_sub(taken));
        let state = match score {
            0..50 => State::Unhealthy,
            50..90 => State::Degraded,
            _ => State::Healthy,
        };
        prop_assert_eq!(gpu.state, state);
        prop_assert_eq!(gpu.quarantine.is_some(), state == State::Unhealthy);
        let mut ids: Vec<&str> = gpu.deductions.iter().map(|deduction| deduction.rule.as_str()).collect();
        ids.dedup();
        prop_assert_eq!(ids.len(), gpu.deductions.len());
    }

    #[test]
    fn a_quarantine_never_ends_within_its_hold(steps in vec((0..400_u64, 0..3_u8, any::<bool>()), 1..60)) {
        let rules = &*BUILT_IN;
        let mut judge = Judge::default();
        let mut last: Option<Health> = None;
        let (mut now, mut unhealthy_at) = (NOW, None);
        let cards: [Card; 1] = [card(Vec::new())];
        for (seconds, kind, restarts) in steps {
            now += seconds;
            if restarts {
                judge = Judge::default();
            }
            let hang = [event(Class::Hang, 0)];
            let log = match kind {
                0 => Ok(Log { events: &hang[..], is_whole: true }),
                1 => Ok(Log { events: &[][..], is_whole: true }),
                _ => Err("none"),
            };
            let health = judge.judge(rules, Known { now, cards: &cards, log, last: last.as_ref() });
            let gpu = &health.gpus[0];
            if gpu.state == State::Unhealthy {
                unhealthy_at = Some(now);
            }
            let was = last.as_ref().is_some_and(|health| health.gpus[0].quarantine.is_some());
            let is_held = unhealthy_at.is_some_and(|at| now - at < rules.hold_s);
            let expected = match gpu.state {
                State::Unknown => was,
                _ => is_held,
            };
            prop_assert_eq!(gpu.quarantine.is_some(), expected);
            last = Some(health);
        }
    }

    #[test]
    fn no_input_of_several_steps_panics(
        steps in vec((any::<u64>(), samples(), events(), any::<bool>()), 1..8),
    ) {
        let mut judge = Judge::default();
        let mut last = None;
        for (now, samples, events, is_whole) in steps {
            let cards = [card(samples)];
            let known = Known { now, cards: &cards, log: Ok(Log { events: &events, is_whole }), last: last.as_ref() };
            last = Some(judge.judge(&BUILT_IN, known));
        }
    }
}
