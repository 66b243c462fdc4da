//! Accounts for what each owner has used of each GPU, from scrape to scrape. Pure.

use std::collections::BTreeMap;

use crate::container::Owner;

/// An owner that held no GPU for so long is forgotten.
const KEPT_S: f64 = 600.0;

/// The most accounts that are kept: more than any machine has at once. Of the accounts that hold nothing now,
/// the oldest go first.
const MOST: usize = 4096;

/// A process that holds a GPU now.
#[derive(Debug, Clone)]
pub struct Holding {
    pub owner: Owner,
    /// KFD's number of the GPU.
    pub gpu_id: u32,
    /// Seconds since the process started; one of unknown age adds no time.
    pub age: Option<f64>,
    pub vram_bytes: Option<u64>,
}

/// What an owner has used of a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Account {
    /// The time in which at least one of the owner's processes held the GPU.
    pub seconds: f64,
    /// The most at a scrape.
    pub vram_peak_bytes: Option<u64>,
    seen: f64,
}

/// The time of a scrape by two clocks.
#[derive(Debug, Clone, Copy)]
pub struct Timestamp {
    /// Seconds since 1970; a person or NTP may set it.
    pub wall: f64,
    /// Seconds since the boot.
    pub uptime: Option<f64>,
}

#[derive(Debug, Clone, Default)]
pub struct Accounting {
    accounts: BTreeMap<(Owner, u32), Account>,
    last: Option<Timestamp>,
}

impl Accounting {
    /// Notes what is held at a scrape. The time since the last scrape counts, or since a process's start where that is
    /// later; the first scrape adds none.
    pub fn note(&mut self, now: Timestamp, holdings: Vec<Holding>) {
        let since_last = self.last.map_or(0.0, |last| since(last, now));
        if self.last.is_some_and(|last| now.wall < last.wall) {
            // The clock went back: what was seen in its future was seen now.
            self.accounts.values_mut().for_each(|account| account.seen = account.seen.min(now.wall));
        }
        self.last = Some(now);
        // All these times end now: the longest of an owner's processes is their union.
        let mut held = BTreeMap::<(Owner, u32), (f64, Option<u64>)>::new();
        for holding in holdings {
            let seconds = holding.age.map_or(0.0, |age| age.clamp(0.0, since_last));
            let (longest, vram) = held.entry((holding.owner, holding.gpu_id)).or_default();
            *longest = longest.max(seconds);
            if let Some(bytes) = holding.vram_bytes {
                *vram = Some(vram.unwrap_or(0).saturating_add(bytes));
            }
        }
        for (key, (seconds, vram)) in held {
            let account = self.accounts.entry(key).or_default();
            account.seconds += seconds;
            account.vram_peak_bytes = account.vram_peak_bytes.max(vram);
            account.seen = now.wall;
        }
        self.forget(now.wall);
    }

    /// Every account, in a fixed order.
    pub fn accounts(&self) -> impl Iterator<Item = (&Owner, u32, &Account)> {
        self.accounts.iter().map(|((owner, gpu_id), account)| (owner, *gpu_id, account))
    }

    fn forget(&mut self, now: f64) {
        self.accounts.retain(|_, account| now - account.seen <= KEPT_S);
        let over = self.accounts.len().saturating_sub(MOST);
        if over == 0 {
            return;
        }
        let mut gone: Vec<f64> =
            self.accounts.values().map(|it| it.seen).filter(|seen| *seen < now).collect();
        gone.sort_unstable_by(f64::total_cmp);
        if let Some(newest) = gone.get(over.min(gone.len()).saturating_sub(1)).copied() {
            self.accounts.retain(|_, account| account.seen > newest);
        }
    }
}

/// The seconds that both clocks agree have passed: setting one of them adds nothing.
fn since(last: Timestamp, now: Timestamp) -> f64 {
    let wall = now.wall - last.wall;
    let uptime = last.uptime.zip(now.uptime).map(|(last, now)| now - last);
    let least = uptime.map_or(wall, |uptime| uptime.min(wall));
    if least.is_finite() { least.max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(container: &str) -> Owner {
        Owner { container: container.to_owned(), ..Owner::default() }
    }

    fn holding(container: &str, gpu_id: u32, age: f64, vram: u64) -> Holding {
        Holding { owner: owner(container), gpu_id, age: Some(age), vram_bytes: Some(vram) }
    }

    fn at(wall: f64) -> Timestamp {
        Timestamp { wall, uptime: Some(wall - 1000.0) }
    }

    fn accounts(accounting: &Accounting) -> Vec<(String, u32, f64, Option<u64>)> {
        let row = |(owner, gpu, it): (&Owner, u32, &Account)| {
            (owner.container.clone(), gpu, it.seconds, it.vram_peak_bytes)
        };
        accounting.accounts().map(row).collect()
    }

    #[test]
    fn seconds_are_the_union_of_an_owners_processes_on_each_gpu() {
        let mut accounting = Accounting::default();
        accounting.note(at(5000.0), vec![holding("a", 1, 400.0, 10)]);
        assert_eq!(accounts(&accounting), [("a".to_owned(), 1, 0.0, Some(10))]);
        // Two processes of a on one GPU, the second on another too, where it started 3 s ago; b started 7 s ago.
        let now = vec![
            holding("a", 1, 415.0, 10),
            holding("a", 1, 3.0, 5),
            holding("a", 2, 3.0, 5),
            holding("b", 2, 7.0, 1),
        ];
        accounting.note(at(5015.0), now);
        let expected = [
            ("a".to_owned(), 1, 15.0, Some(15)),
            ("a".to_owned(), 2, 3.0, Some(5)),
            ("b".to_owned(), 2, 7.0, Some(1)),
        ];
        assert_eq!(accounts(&accounting), expected);
        // One process follows another: the time of both, and the peak stays.
        accounting.note(at(5030.0), vec![holding("a", 1, 8.0, 2)]);
        assert_eq!(accounts(&accounting)[0], ("a".to_owned(), 1, 23.0, Some(15)));
    }

    #[test]
    fn a_clock_that_is_set_adds_nothing() {
        let mut accounting = Accounting::default();
        let long = || vec![holding("a", 1, 1e9, 1)];
        accounting.note(at(5000.0), long());
        accounting.note(Timestamp { wall: 4000.0, uptime: Some(4010.0) }, long());
        assert_eq!(accounts(&accounting)[0].2, 0.0, "back");
        accounting.note(Timestamp { wall: 9e9, uptime: Some(4020.0) }, long());
        assert_eq!(accounts(&accounting)[0].2, 10.0, "forward");
        accounting.note(Timestamp { wall: f64::NAN, uptime: Some(4030.0) }, long());
        accounting.note(Timestamp { wall: 9e9 + 30.0, uptime: None }, long());
        assert!(accounts(&accounting)[0].2.is_finite());
    }

    #[test]
    fn one_of_unknown_age_or_memory_adds_none() {
        let mut accounting = Accounting::default();
        let unknown = || vec![Holding { age: None, vram_bytes: None, ..holding("a", 1, 0.0, 0) }];
        accounting.note(at(5000.0), unknown());
        accounting.note(at(5010.0), unknown());
        assert_eq!(accounts(&accounting), [("a".to_owned(), 1, 0.0, None)]);
    }

    #[test]
    fn an_owner_that_is_gone_stays_for_ten_minutes_also_when_the_clock_goes_back() {
        let mut accounting = Accounting::default();
        accounting.note(at(5000.0), vec![holding("a", 1, 1.0, 1)]);
        accounting.note(at(5600.0), Vec::new());
        assert_eq!(accounting.accounts().count(), 1);
        accounting.note(at(3000.0), Vec::new());
        accounting.note(at(3600.0), Vec::new());
        assert_eq!(accounting.accounts().count(), 1);
        accounting.note(at(3601.0), Vec::new());
        assert_eq!(accounting.accounts().count(), 0);
    }

    #[test]
    fn a_hundred_thousand_short_containers_leave_a_bounded_number() {
        let mut accounting = Accounting::default();
        for scrape in 0..1000_u32 {
            let short = (0..100).map(|n| holding(&format!("c{}", scrape * 100 + n), 1, 0.01, 1));
            let stays = holding("stays", 1, f64::from(scrape), 1);
            accounting.note(at(5000.0 + f64::from(scrape)), short.chain([stays]).collect());
        }
        let kept = accounts(&accounting);
        assert!(kept.len() <= MOST, "{}", kept.len());
        assert!(kept.iter().any(|it| it.0 == "stays" && it.2 == 999.0), "{:?}", kept.last());
        assert!(kept.iter().any(|it| it.0 == "c99999"));
    }
}
