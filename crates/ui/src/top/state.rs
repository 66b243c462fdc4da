//! What is on the screen, and how each event changes it.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use inventory::snapshot::{Gpu, Process, Snapshot};

use super::event::Event;
use super::history::History;
use super::keys::Key as Pressed;
use super::processes::{self, Sort};
use super::reader::Scrape;
use super::rows::{CardKey, Key, Row, rows};
use super::say;

/// The intervals that the keys + and - step through, in milliseconds.
const INTERVALS_MS: [u64; 9] = [200, 500, 1_000, 2_000, 3_000, 5_000, 10_000, 30_000, 60_000];

/// The intervals between two readings that `--interval` and the keys offer.
pub const INTERVALS: RangeInclusive<Duration> =
    Duration::from_millis(INTERVALS_MS[0])..=Duration::from_millis(INTERVALS_MS[INTERVALS_MS.len() - 1]);

/// A machine with more GPUs begins with its partitions folded.
const FEW: usize = 16;

/// How many lines PgUp and PgDn move by.
const PAGE: usize = 10;

/// The longest filter that can be typed.
const LONGEST_FILTER: usize = 64;

/// What an event asks of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Draw,
    Quit,
    /// Stop as a shell's job, until it continues it.
    Stop,
}

/// A text that lies over the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overlay {
    Help,
    Unknown,
}

/// Which table the keys move in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    Gpus,
    Processes,
}

#[derive(Debug, Clone)]
pub struct State {
    pub interval: Duration,
    pub is_paused: bool,
    /// Whether to draw without colours, which NO_COLOR asks for.
    pub is_plain: bool,
    pub(super) reading: Option<Scrape>,
    /// Why the last reading failed.
    pub(super) failure: Option<String>,
    pub(super) waiting: Option<Duration>,
    pub(super) history: History,
    pub(super) folded: BTreeSet<CardKey>,
    pub(super) selected: Option<Key>,
    pub(super) selected_process: usize,
    pub(super) focus: Focus,
    /// Only the processes of this line are shown.
    pub(super) only: Option<Key>,
    pub(super) sort: Sort,
    pub(super) is_reversed: bool,
    pub(super) filter: String,
    pub(super) is_typing: bool,
    pub(super) overlay: Option<Overlay>,
}

impl State {
    #[must_use]
    pub fn new(interval: Duration, is_plain: bool) -> Self {
        Self {
            interval,
            is_paused: false,
            is_plain,
            reading: None,
            failure: None,
            waiting: None,
            history: History::default(),
            folded: BTreeSet::new(),
            selected: None,
            selected_process: 0,
            focus: Focus::Gpus,
            only: None,
            sort: Sort::default(),
            is_reversed: false,
            filter: String::new(),
            is_typing: false,
            overlay: None,
        }
    }

    /// What becomes of the state, and what the program does then.
    pub fn on(&mut self, event: Event) -> Effect {
        match event {
            Event::Key(Pressed::Interrupt) => return Effect::Quit,
            Event::Key(Pressed::Stop) => return Effect::Stop,
            Event::Key(key) if self.is_typing => self.typed(key),
            Event::Key(key) if self.overlay.is_some() => return self.key_over(key),
            Event::Key(key) => return self.key(key),
            Event::Read(read) => self.read(*read),
            Event::Waiting(duration) => self.waiting = Some(duration),
            Event::Resized => {}
        }
        Effect::Draw
    }

    fn read(&mut self, read: Result<Scrape, String>) {
        self.waiting = None;
        match read {
            // The one that was under way.
            _ if self.is_paused => {}
            Err(why) => {
                self.history.miss();
                self.failure = Some(why);
            }
            Ok(reading) => {
                self.failure = None;
                let cards = &reading.snapshot.cards;
                let is_first = self.reading.is_none();
                if is_first && cards.iter().map(|card| card.gpus.len()).sum::<usize>() > FEW {
                    self.folded = cards.iter().map(CardKey::of).collect();
                }
                self.history.add(&reading.snapshot);
                self.reading = Some(reading);
            }
        }
    }

    fn key(&mut self, key: Pressed) -> Effect {
        match key {
            Pressed::Up | Pressed::Character('k') => self.go(|at, _| at.saturating_sub(1)),
            Pressed::Down | Pressed::Character('j') => self.go(|at, _| at + 1),
            Pressed::PageUp => self.go(|at, _| at.saturating_sub(PAGE)),
            Pressed::PageDown => self.go(|at, _| at + PAGE),
            Pressed::Home | Pressed::Character('g') => self.go(|_, _| 0),
            Pressed::End | Pressed::Character('G') => self.go(|_, count| count),
            Pressed::Tab => {
                self.focus = match self.focus {
                    Focus::Gpus => Focus::Processes,
                    Focus::Processes => Focus::Gpus,
                }
            }
            Pressed::Enter => self.restrict(),
            Pressed::Character(' ') => self.fold(),
            Pressed::Character('s' | '>') => self.sort = self.sort.step(true),
            Pressed::Character('<') => self.sort = self.sort.step(false),
            Pressed::Character('r') => self.is_reversed = !self.is_reversed,
            Pressed::Character('/') => self.is_typing = true,
            Pressed::Character('p') => self.is_paused = !self.is_paused,
            Pressed::Character('+' | '=') => self.step_interval(true),
            Pressed::Character('-') => self.step_interval(false),
            Pressed::Character('?' | 'h') => self.overlay = Some(Overlay::Help),
            Pressed::Character('u') => self.overlay = Some(Overlay::Unknown),
            Pressed::Character('q') => return Effect::Quit,
            // Escape first removes what narrows the view, and quits only then.
            Pressed::Escape if self.only.is_some() => self.only = None,
            Pressed::Escape if !self.filter.is_empty() => self.filter.clear(),
            Pressed::Escape => return Effect::Quit,
            _ => {}
        }
        Effect::Draw
    }

    /// While the help or the list of what is unknown is shown.
    fn key_over(&mut self, key: Pressed) -> Effect {
        if key == Pressed::Character('q') {
            return Effect::Quit;
        }
        self.overlay = None;
        Effect::Draw
    }

    fn typed(&mut self, key: Pressed) {
        match key {
            Pressed::Character(c) if self.filter.chars().count() < LONGEST_FILTER => self.filter.push(c),
            Pressed::Backspace => drop(self.filter.pop()),
            Pressed::Enter => self.is_typing = false,
            Pressed::Escape => {
                self.filter.clear();
                self.is_typing = false;
            }
            _ => {}
        }
        self.selected_process = 0;
    }

    /// Moves in the table of the focus: from a place and the number of lines to a place.
    fn go(&mut self, to: impl FnOnce(usize, usize) -> usize) {
        match self.focus {
            Focus::Gpus => {
                let rows = self.rows();
                let place = to(self.selected_row(), rows.len()).min(rows.len().saturating_sub(1));
                self.selected = rows.get(place).map(Row::key);
            }
            Focus::Processes => {
                let count = self.processes().len();
                let at = self.selected_process.min(count.saturating_sub(1));
                self.selected_process = to(at, count).min(count.saturating_sub(1));
            }
        }
    }

    /// The selected line's processes alone, or all again.
    fn restrict(&mut self) {
        let selected = self.rows().get(self.selected_row()).map(Row::key);
        self.only = if self.only == selected { None } else { selected };
        self.selected_process = 0;
    }

    /// Whether the partitions of the selected card are folded; `None`: it has none.
    pub(super) fn is_folded(&self) -> Option<bool> {
        let row = self.rows().get(self.selected_row()).copied()?;
        row.card.is_partitioned().then(|| self.folded.contains(&CardKey::of(row.card)))
    }

    /// Folds or unfolds the partitions of the selected card.
    fn fold(&mut self) {
        let Some(row) = self.rows().get(self.selected_row()).copied() else { return };
        if !row.card.is_partitioned() {
            return;
        }
        let key = CardKey::of(row.card);
        // The line of a partition goes with the fold.
        self.selected = Some(Key { card: key.clone(), partition: None });
        if !self.folded.remove(&key) {
            self.folded.insert(key);
        }
    }

    fn step_interval(&mut self, is_longer: bool) {
        let mut all = INTERVALS_MS.into_iter().map(Duration::from_millis);
        let next = match is_longer {
            true => all.find(|it| *it > self.interval),
            false => all.rfind(|it| *it < self.interval),
        };
        self.interval = next.unwrap_or(self.interval);
    }

    pub(super) fn snapshot(&self) -> Option<&Snapshot> {
        self.reading.as_ref().map(|reading| &reading.snapshot)
    }

    /// The lines of the table of GPUs.
    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        self.snapshot().map(|snapshot| rows(snapshot, &self.folded)).unwrap_or_default()
    }

    /// The place of the selected line. Where that line is gone, the first of its card, or else the first of all.
    pub(super) fn selected_row(&self) -> usize {
        let Some(selected) = &self.selected else { return 0 };
        let rows = self.rows();
        let exact = rows.iter().position(|row| row.key() == *selected);
        exact.or_else(|| rows.iter().position(|row| CardKey::of(row.card) == selected.card)).unwrap_or(0)
    }

    /// What a line's GPU is called where the line is not looked at.
    pub(super) fn label(&self, key: &Key) -> String {
        let cards = self.snapshot().map_or(&[][..], |snapshot| &snapshot.cards);
        let Some(card) = cards.iter().find(|card| CardKey::of(card) == key.card) else {
            return "a GPU that is gone".to_owned();
        };
        let partition =
            card.gpus.iter().find(|gpu| key.partition.is_some() && gpu.partition() == key.partition);
        let index = |gpu: &Gpu| say::count(gpu.index);
        format!("GPU {}", partition.map_or_else(|| say::indexes(card), index))
    }

    /// The processes that are shown, in their order.
    pub(super) fn processes(&self) -> Vec<&Process> {
        let Some(snapshot) = self.snapshot() else { return Vec::new() };
        let all = rows(snapshot, &BTreeSet::new());
        let only = self.only.as_ref().map(|only| all.iter().find(|row| row.key() == *only));
        let is_wanted = |process: &&Process| {
            // A card that is gone has no processes.
            let is_on = only.is_none_or(|row| row.is_some_and(|row| row.has(process)));
            is_on && (self.filter.is_empty() || processes::matches(process, &self.filter))
        };
        let mut shown: Vec<&Process> = snapshot.processes.iter().filter(is_wanted).collect();
        processes::sort(&mut shown, self.sort, self.is_reversed);
        shown
    }
}
