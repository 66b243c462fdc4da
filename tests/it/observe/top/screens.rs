use std::collections::BTreeSet;

use layout::{JUDGED_AT, Machine, health};
use support::captures;
use support::laid::Laid;
use ui::top::keys::Key;
use ui::top::reader::Scrape;
use ui::top::{Event, State};
use unicode_width::UnicodeWidthStr as _;

use super::{eight, press, reading, screen, state, use_gpu};

/// The sizes that are promised: the usual one, the least one, and those from which on there is more.
const SIZES: [(u16, u16); 4] = [(80, 24), (40, 10), (40, 15), (120, 40)];

fn shown(name: &str, state: &State) {
    for (columns, lines) in SIZES {
        insta::assert_snapshot!(format!("top_{name}_{columns}x{lines}"), screen(state, columns, lines));
    }
}

#[test]
fn eight_gpus_with_processes() {
    shown("eight", &state(&eight()));
}

#[test]
fn eight_cards_of_eight_partitions_begin_folded_and_scroll_once_unfolded() {
    let laid = Laid::out(&Machine::instinct_with_readings(8, 8));
    laid.put("run/rocworker/health.json", &health(8, false, JUDGED_AT));
    let mut state = state(&laid);
    shown("cpx_folded", &state);
    press(&mut state, " jjj");
    shown("cpx_one_unfolded", &state);
    // All of them, from the last to the first: 8 and 64 lines. The first is folded again, and unfolded.
    press(&mut state, " ");
    for card in (0..8).rev() {
        press(&mut state, &format!("g{} ", "j".repeat(card)));
    }
    press(&mut state, "G");
    let text = screen(&state, 80, 24);
    assert!(text.contains(">    63"), "the chosen line is shown: {text}");
    press(&mut state, "g");
    let text = screen(&state, 80, 24);
    assert!(text.contains(">   0-7") && !text.contains("  63"), "{text}");
}

#[test]
fn a_suspended_card_says_so_beside_one_that_is_awake() {
    let file = "/sys/bus/pci/devices/0000:05:00.0/power/runtime_status";
    let laid = Laid::out(&Machine::instinct_with_readings(2, 1).put(file, "suspended\n"));
    shown("suspended", &state(&laid));
}

#[test]
fn a_machine_without_an_amd_gpu() {
    shown("no_gpu", &state(&Laid::out(&captures::a380())));
}

#[test]
fn readings_that_are_unknown_are_dashes_with_their_reasons_on_request() {
    let file = |name: &str| format!("/sys/bus/pci/devices/0000:05:00.0/{name}");
    let machine = ["gpu_busy_percent", "mem_info_vram_used", "gpu_metrics", "hwmon/hwmon2/power1_input"]
        .iter()
        .fold(Machine::instinct_with_readings(1, 1), |machine, name| machine.put(&file(name), "no number\n"));
    let laid = Laid::out(&machine.remove("/sys/class/kfd/kfd/proc"));
    let mut state = state(&laid);
    shown("unknown", &state);
    press(&mut state, "u");
    insta::assert_snapshot!("top_unknown_listed", screen(&state, 80, 24));
    insta::assert_snapshot!("top_unknown_listed_in_part", screen(&state, 40, 10));
}

#[test]
fn an_apu_has_no_limit_and_its_own_memory() {
    shown("apu", &state(&Laid::out(&captures::phoenix())));
}

#[test]
fn help_names_each_key_in_any_size() {
    let mut state = state(&eight());
    press(&mut state, "?");
    shown("help", &state);
    for (columns, lines) in SIZES {
        let text = screen(&state, columns, lines);
        for key in [
            "↑ ↓ j k",
            "PgUp PgDn Home End",
            "Tab",
            "Enter",
            "Space",
            "s < > r",
            "/",
            "p + -",
            "u ",
            "q Esc",
            "Ctrl-Z",
        ] {
            assert!(text.contains(key), "{key}: {text}");
        }
        assert!(!text.contains('…') && text.contains("fg resumes"), "{text}");
    }
    press(&mut state, "x");
    assert!(screen(&state, 80, 24).contains("MEMORY"));
}

#[test]
fn no_table_is_cut_while_lines_are_empty_and_none_starves() {
    let state = state(&eight());
    for lines in 10..=40 {
        let text = screen(&state, 80, lines);
        let gpus = text.lines().filter(|line| line.contains("Instinct MI300X")).count();
        let processes = text.lines().skip_while(|line| !line.contains("PID NAME")).skip(1);
        let processes = processes.filter(|line| line.contains("GiB")).count();
        let has_room = text.lines().any(|line| line.trim().is_empty());
        assert!(!has_room || (gpus, processes) == (8, 4), "{lines} lines: {text}");
        assert!(gpus >= 3 && processes >= 2, "{lines} lines: {text}");
    }
}

#[test]
fn the_processes_stay_in_place_while_the_cursor_moves() {
    let mut state = state(&eight());
    let begins = |state: &State| screen(state, 80, 24).lines().position(|line| line.contains("PID NAME"));
    let first = begins(&state);
    for _ in 0..7 {
        press(&mut state, "j");
        assert_eq!(begins(&state), first, "{}", screen(&state, 80, 24));
    }
}

#[test]
fn health_that_is_unknown_says_whether_the_daemon_judges_other_cards() {
    let laid = Laid::out(&Machine::instinct_with_readings(2, 1));
    let last = || {
        let mut state = state(&laid);
        press(&mut state, "G");
        screen(&state, 120, 40)
    };
    assert!(last().contains("? health unknown: rocworker's daemon publishes none"), "{}", last());
    laid.put("run/rocworker/health.json", &health(1, false, JUDGED_AT));
    assert!(
        last().contains("? health unknown: the daemon has not judged it in the last minute"),
        "{}",
        last()
    );
}

#[test]
fn a_terminal_that_is_too_small_gets_a_sentence() {
    let state = state(&eight());
    for (columns, lines) in [(39, 24), (80, 9), (1, 1), (5, 40)] {
        let text = screen(&state, columns, lines);
        assert!(!text.contains("MI300X"), "{text}");
    }
    let text = screen(&state, 39, 12);
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words.join(" "), "This terminal is too small for top: it needs 40 columns and 10 lines.");
}

/// Eight GPUs want nine lines of ten.
#[test]
fn the_least_size_has_each_part() {
    let mut state = state(&eight());
    state.on(Event::Waiting(std::time::Duration::from_secs(3)));
    let text = screen(&state, 40, 10);
    for part in
        ["rocworker top", "> 0 MI300X", "0000:05:00.0", "PID", "4711", "The reading under way", "? help"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_card_of_which_one_partition_is_not_usable_says_so() {
    let mut reading = reading(&Laid::out(&Machine::instinct_with_readings(1, 8)));
    reading.snapshot.cards[0].gpus[3].problems = vec!["KFD does not know it".to_owned()];
    let mut state = State::new(std::time::Duration::from_secs(1), true);
    state.on(Event::Read(Box::new(Ok(reading))));
    let text = screen(&state, 120, 40);
    assert!(text.contains("  1 of 8 partitions not usable: KFD does not know it"), "{text}");
}

#[test]
fn a_partition_names_its_memory_and_not_its_use() {
    let text = screen(&state(&Laid::out(&Machine::instinct_with_readings(1, 8))), 80, 24);
    assert_eq!(text.matches(" -/24.0 GiB").count(), 8, "{text}");
}

#[test]
fn wide_and_bidirectional_names_keep_the_columns() {
    let laid = eight();
    for (pid, name) in [(7007, "漢字漢字漢"), (7008, "漢字漢字漢字漢字漢字"), (7009, "a\u{202e}b")]
    {
        use_gpu(&laid, &(pid, name, "0::/system.slice/wide.service\n", 3, 12, Some(7)));
    }
    for (columns, lines) in [(80, 30), (40, 24)] {
        let text = screen(&state(&laid), columns, lines);
        let processes: Vec<&str> = text.lines().skip_while(|line| !line.contains("PID")).skip(1).collect();
        let ends: BTreeSet<usize> = processes
            .iter()
            .filter_map(|line| line.split_once(" GiB"))
            .map(|(start, _)| start.width())
            .collect();
        assert_eq!(ends.len(), 1, "{text}");
        assert!(!text.contains('\u{202e}'), "{text}");
    }
    let text = screen(&state(&laid), 80, 30);
    assert!(text.contains(" 漢字漢字漢 ") && text.contains(" a?b "), "{text}");
}

#[test]
fn every_size_is_drawn_without_a_panic() {
    let (laid, many) = (eight(), Laid::out(&Machine::instinct_with_readings(2, 8)));
    for state in [state(&laid), state(&many)] {
        for columns in [1, 2, 39, 40, 41, 63, 64, 75, 76, 77, 109, 110, 111, 300] {
            for lines in [1, 2, 9, 10, 11, 12, 17, 24, 100] {
                screen(&state, columns, lines);
            }
        }
    }
}

#[test]
fn a_reading_that_fails_keeps_what_was_known() {
    let laid = eight();
    let mut state = state(&laid);
    state.on(Event::Read(Box::new(Err("cannot open /x: No such file or directory".to_owned()))));
    let text = screen(&state, 80, 24);
    assert!(text.contains("MI300X") && text.contains("cannot open /x"), "{text}");
    state.on(Event::Read(Box::new(Ok(reading(&laid)))));
    let text = screen(&state, 80, 24);
    assert!(text.contains("51 °C   ▃ ▃ 431/740 W   ▅ ▅ "), "a sparkline has a gap: {text}");
    state.on(Event::Waiting(std::time::Duration::from_millis(3200)));
    let text = screen(&state, 80, 24);
    assert!(text.contains("The reading under way has taken 3 s: a file may hang."), "{text}");
    let stuck = Scrape { stuck: 2, ..reading(&laid) };
    state.on(Event::Read(Box::new(Ok(stuck))));
    assert!(screen(&state, 80, 24).contains("2 reads have not come back"), "{}", screen(&state, 80, 24));
}

#[test]
fn nothing_steers_the_terminal_and_no_colour_is_needed() {
    let mut state = state(&eight());
    press(&mut state, "/evil");
    state.on(Event::Key(Key::Enter));
    let text = screen(&state, 80, 24);
    assert!(text.contains("evil?[31mname"), "{text}");
    assert!(!text.contains('\u{1b}'));
    for word in ["unhealthy", "degraded", "unknown", "healthy"] {
        assert!(text.contains(word), "the state is a word: {text}");
    }
}
