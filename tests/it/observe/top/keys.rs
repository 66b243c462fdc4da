use std::time::Duration;

use layout::Machine;
use support::laid::Laid;
use ui::top::keys::Key;
use ui::top::{Effect, Event, State};

use super::{eight, press, reading, screen, state};

/// The numbers of the processes that are shown, from top to bottom.
fn pids(state: &State) -> Vec<String> {
    let text = screen(state, 80, 30);
    let below = text.lines().skip_while(|line| !line.contains("PID")).skip(1);
    below
        .map_while(|line| line.trim_start_matches(['>', ' ']).split(' ').next().map(str::to_owned))
        .take_while(|word| word.parse::<u32>().is_ok())
        .collect()
}

#[test]
fn s_sorts_by_the_next_column_and_r_reverses() {
    let mut state = state(&eight());
    assert_eq!(pids(&state), ["4711", "4711", "5150", "6006"], "by VRAM, the most first");
    press(&mut state, "r");
    assert_eq!(pids(&state), ["6006", "5150", "4711", "4711"]);
    press(&mut state, "r<<<");
    assert!(screen(&state, 80, 24).contains("PID↑"));
    press(&mut state, ">");
    assert!(screen(&state, 80, 24).contains("NAME↑"));
    assert_eq!(pids(&state), ["6006", "5150", "4711", "4711"]);
    press(&mut state, "sss");
    assert_eq!(pids(&state), ["4711", "4711", "5150", "6006"], "by CUS, what is unknown last");
    press(&mut state, "r");
    assert_eq!(pids(&state), ["5150", "4711", "4711", "6006"]);
}

/// Values rise with ↑ from line to line and fall with ↓. On any width, what they are sorted by is shown.
#[test]
fn the_arrow_names_the_direction_and_is_shown_on_any_width() {
    let mut state = state(&eight());
    for (keys, column) in [("", "VRAM↓"), ("r", "VRAM↑"), ("rs", "CUS↓"), ("s", "↑"), ("r", "↓")] {
        press(&mut state, keys);
        for columns in [40, 63, 64, 71, 72, 120] {
            let text = screen(&state, columns, 24);
            let heading = text.lines().find(|line| line.contains("PID")).unwrap();
            assert!(heading.contains(column), "{column} on {columns}: {text}");
        }
    }
    let text = screen(&state, 40, 24);
    assert!(text.contains("OWNER↓") && text.contains(" ollama\n"), "in place of the name: {text}");
}

#[test]
fn a_long_filter_leaves_room_for_its_end_and_for_help() {
    let mut state = state(&eight());
    press(&mut state, &format!("/{}b", "漢".repeat(63)));
    let last = |state: &State| screen(state, 40, 15).lines().last().unwrap().to_owned();
    assert_eq!(last(&state), format!("/{}b_", "漢".repeat(18)), "40 columns, and no half of a character");
    state.on(Event::Key(Key::Enter));
    assert_eq!(last(&state), format!("/{}… (Esc: all)  ? help", "漢".repeat(9)));
}

#[test]
fn a_filter_is_typed_kept_and_cleared() {
    let mut state = state(&eight());
    press(&mut state, "/olq");
    assert!(screen(&state, 80, 24).ends_with("/olq_\n"), "q is a letter while a filter is typed");
    state.on(Event::Key(Key::Backspace));
    state.on(Event::Key(Key::Enter));
    assert_eq!(pids(&state), ["5150"]);
    assert_eq!(state.on(Event::Key(Key::Escape)), Effect::Draw);
    assert_eq!(pids(&state).len(), 4);
    press(&mut state, "/605439");
    assert_eq!(pids(&state), ["4711", "4711"], "a container's id");
    state.on(Event::Key(Key::Escape));
    press(&mut state, "/gpu 2");
    assert_eq!(pids(&state), ["5150", "6006"]);
}

#[test]
fn enter_shows_one_gpus_processes_and_escape_all_again() {
    let mut state = state(&eight());
    press(&mut state, "jj");
    state.on(Event::Key(Key::Enter));
    assert_eq!(pids(&state), ["5150", "6006"]);
    state.on(Event::Key(Key::Up));
    assert_eq!(pids(&state), ["5150", "6006"], "moving selects another line, not other processes");
    state.on(Event::Key(Key::Escape));
    assert_eq!(pids(&state).len(), 4);
    press(&mut state, "G ");
    assert_eq!(pids(&state).len(), 4, "a whole card has nothing to fold");
    state.on(Event::Key(Key::Enter));
    assert!(screen(&state, 80, 24).contains("No process uses the selected GPU"));
}

#[test]
fn space_folds_a_cards_partitions_from_any_of_its_lines() {
    let mut state = state(&Laid::out(&Machine::instinct_with_readings(2, 8)));
    let partitions = |state: &State| screen(state, 80, 40).matches("part.").count();
    assert_eq!(partitions(&state), 16, "so few begin unfolded");
    press(&mut state, "jjj ");
    assert_eq!(partitions(&state), 8);
    press(&mut state, " ");
    assert_eq!(partitions(&state), 16);
}

#[test]
fn the_selection_follows_its_gpu() {
    let mut state = state(&eight());
    press(&mut state, "jjj");
    let selected = |state: &State| {
        let text = screen(state, 80, 24);
        text.lines().find(|line| line.starts_with('>')).unwrap().split_whitespace().nth(1).unwrap().to_owned()
    };
    assert_eq!(selected(&state), "3");
    let mut less = reading(&eight());
    less.snapshot.cards.remove(0);
    state.on(Event::Read(Box::new(Ok(less))));
    assert_eq!(selected(&state), "3");
    state.on(Event::Read(Box::new(Ok(reading(&Laid::out(&Machine::instinct_with_readings(1, 1)))))));
    assert_eq!(selected(&state), "0");
}

#[test]
fn plus_and_minus_stay_within_the_bounds_and_a_pause_holds_the_screen() {
    let mut state = state(&eight());
    press(&mut state, "--------------");
    assert_eq!(state.interval, Duration::from_millis(200));
    press(&mut state, "+");
    assert_eq!(state.interval, Duration::from_millis(500));
    press(&mut state, "++++++++++++++");
    assert_eq!(state.interval, Duration::from_secs(60));
    press(&mut state, "p");
    let before = screen(&state, 120, 40);
    assert!(before.contains("PAUSED"), "{before}");
    state.on(Event::Read(Box::new(Ok(reading(&Laid::out(&Machine::new()))))));
    assert_eq!(screen(&state, 120, 40), before, "a reading that was under way comes too late");
}

#[test]
fn q_escape_and_control_c_end() {
    let mut state = state(&eight());
    for key in [Key::Character('q'), Key::Escape, Key::Interrupt] {
        assert_eq!(state.on(Event::Key(key)), Effect::Quit, "{key:?}");
    }
    assert_eq!(state.on(Event::Key(Key::Stop)), Effect::Stop);
    press(&mut state, "?");
    assert_eq!(state.on(Event::Key(Key::Interrupt)), Effect::Quit, "from the help too");
}
