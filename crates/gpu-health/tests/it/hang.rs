//! Tests whether a card counts as hanging.

use gpu_health::known::Log;
use gpu_health::rules::Rules;
use inventory::snapshot::Card;
use kernel_log::knowledge::{Class, Severity};

use crate::{card, event, judged, of, rules_of, sample};

/// Messages, the dump, whether the log goes back to boot, and whether the card hangs.
type Case<'c> = (&'c [Class], Option<f64>, bool, Option<bool>);

#[test]
fn a_card_hangs_until_the_log_says_that_it_recovered_and_a_dump_counts_where_the_log_is_silent() {
    use Class::{Hang, PageFault, ResetFailed, ResetRecovered};
    let cases: &[Case<'_>] = &[
        (&[Hang], None, true, Some(true)),
        (&[Hang, PageFault], Some(0.0), false, Some(true)),
        (&[Hang, ResetFailed], None, true, Some(true)),
        (&[Hang, ResetRecovered], None, true, Some(false)),
        (&[Hang, ResetFailed, ResetRecovered], None, false, Some(false)),
        (&[Hang, ResetRecovered, Hang], None, true, Some(true)),
        // The dump stays for five minutes after a hang that is over.
        (&[Hang, ResetRecovered], Some(1.0), true, Some(false)),
        (&[], Some(1.0), true, Some(false)),
        (&[], Some(1.0), false, None),
        (&[], Some(0.0), false, Some(false)),
        (&[], None, true, Some(false)),
        // What the kernel has overwritten may have been a hang.
        (&[], None, false, None),
        (&[PageFault], None, false, None),
    ];
    for (classes, dump, is_whole, hangs) in cases {
        let events: Vec<_> = classes.iter().map(|class| event(*class, 30)).collect();
        let samples = dump.iter().map(|dump| sample("rocm_gpu_devcoredump", &[], *dump)).collect();
        let log = Log { events: &events, is_whole: *is_whole };
        let gpu = judged(&Rules::built_in(), &card(samples), Ok(log));
        assert_eq!(gpu.hang, *hangs, "{classes:?}, dump {dump:?}, whole {is_whole}");
    }
}

#[test]
fn without_a_log_no_dump_is_no_hang_and_a_dump_may_be_of_one_that_is_over() {
    for (dump, hangs) in [(Some(1.0), None), (Some(0.0), Some(false)), (None, None)] {
        let samples = dump.iter().map(|dump| sample("rocm_gpu_devcoredump", &[], *dump)).collect();
        assert_eq!(judged(&Rules::built_in(), &card(samples), Err("none")).hang, hangs, "{dump:?}");
    }
}

#[test]
fn a_hang_that_recovered_degrades_for_an_hour_and_a_new_one_is_a_hang_again() {
    let recovered = [event(Class::Hang, 40), event(Class::ResetRecovered, 30)];
    assert_eq!(rules_of(&of(&card(Vec::new()), &recovered)), [("hang-recent", 15)]);
    let old = [event(Class::Hang, 4000), event(Class::ResetRecovered, 3990)];
    assert_eq!(rules_of(&of(&card(Vec::new()), &old)), []);
    let again = [&recovered[..], &[event(Class::Hang, 5)]].concat();
    let gpu = of(&card(Vec::new()), &again);
    assert_eq!(rules_of(&gpu), [("hang-now", 60)]);
    assert_eq!(gpu.deductions[0].evidence, "amdgpu 0000:03:00.0: Hang 5 s ago");
    // A display that waits is no hang of the GPU.
    let benign = [gpu_health::known::Event { severity: Severity::Warning, ..event(Class::Hang, 5) }];
    assert_eq!(of(&card(Vec::new()), &benign).hang, Some(false));
}

#[test]
fn nothing_is_known_of_a_hang_of_a_card_that_amdgpu_does_not_drive() {
    let card = Card { driver: Some("vfio-pci".to_owned()), ..card(Vec::new()) };
    assert_eq!(of(&card, &[]).hang, None);
}
