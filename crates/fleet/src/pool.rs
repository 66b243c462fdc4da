//! Works on several machines at once.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

/// Eight connections stay below the MaxStartups of a jump host's sshd.
pub const AT_ONCE: NonZeroUsize = NonZeroUsize::new(8).unwrap();

/// Runs `work` on the items in order, `at_once` at a time, and calls `done` for each result. After `stop` no item
/// starts: its place stays `None`.
pub fn each<T: Sync, R: Send>(
    items: &[T],
    at_once: NonZeroUsize,
    stop: &AtomicBool,
    work: impl Fn(&T) -> R + Sync,
    mut done: impl FnMut(usize, &R),
) -> Vec<Option<R>> {
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (send, ended) = channel();
        for _ in 0..at_once.get().min(items.len()) {
            let (send, next, work) = (send.clone(), &next, &work);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(place) else { break };
                    if send.send((place, work(item))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        for (place, result) in ended {
            done(place, &result);
            if let Some(slot) = results.get_mut(place) {
                *slot = Some(result);
            }
        }
    });
    results
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn results_stand_in_the_order_of_their_items_and_no_more_than_allowed_are_at_work() {
        let (at_work, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let all_begun = Barrier::new(3);
        let items: Vec<usize> = (0..30).collect();
        let mut heard = 0;
        let work = |item: &usize| {
            most.fetch_max(at_work.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            all_begun.wait();
            at_work.fetch_sub(1, Ordering::SeqCst);
            item * 2
        };
        let three = NonZeroUsize::new(3).unwrap();
        let results = each(&items, three, &AtomicBool::new(false), work, |_, _| heard += 1);
        assert_eq!(results, (0..30).map(|item| Some(item * 2)).collect::<Vec<_>>());
        assert_eq!((heard, most.into_inner()), (30, 3));
    }

    #[test]
    fn once_it_is_stopped_no_further_item_is_begun() {
        let stop = AtomicBool::new(false);
        let work = |item: &usize| stop.store(*item == 1, Ordering::Relaxed);
        let results = each(&[0, 1, 2, 3], NonZeroUsize::MIN, &stop, work, |_, ()| {});
        assert_eq!(results, [Some(()), Some(()), None, None]);
    }
}
