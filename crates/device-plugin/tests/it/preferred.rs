//! Which devices the kubelet hears to prefer.

use layout::Machine;

use crate::kubelet::Kubelet;
use crate::lists::laid;
use crate::running::Running;

const GPU: &str = "amd.com/gpu";

#[test]
fn partitions_of_one_card_are_preferred_and_those_that_must_be_taken_come_first() {
    let place = laid(&Machine::instinct(2, 8));
    let kubelet = Kubelet::start(place.path());
    let _running = Running::start(place.path(), &[]);
    let all: Vec<String> = kubelet.watch(GPU).next().unwrap().into_iter().map(|it| it.id).collect();
    let first: Vec<&str> = all[..8].iter().map(String::as_str).collect();
    let ask = |available: &[String], must: &[&str], count| {
        let mut answer = kubelet.preferred(GPU, available, must, count).unwrap();
        answer.sort();
        answer
    };
    let sorted = |ids: &[&str]| {
        let mut ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ask(&all, &[], 8), sorted(&first));
    // Half of the first card is taken: the rest of it, and the second card stays whole.
    assert_eq!(ask(&all[4..], &[], 4), sorted(&first[4..]));
    // One of the second card must be taken: its neighbours come with it.
    let neighbours = ask(&all, &[&all[11]], 4);
    assert!(
        neighbours.contains(&all[11]) && neighbours.iter().all(|id| all[8..].contains(id)),
        "{neighbours:?}"
    );
    assert_eq!(ask(&all[4..], &[], 0), [""; 0]);
    assert_eq!(ask(&all[..2], &[], 8).len(), 2, "fewer are there");
    assert_eq!(ask(&["unknown".to_owned()], &[], 1), [""; 0]);
    assert_eq!(ask(&all, &[], -1), [""; 0]);
}

#[test]
fn slices_of_different_gpus_are_preferred_the_least_shared_first() {
    let place = laid(&Machine::instinct(3, 1));
    let kubelet = Kubelet::start(place.path());
    let _running = Running::start(place.path(), &["--replicas=2"]);
    let slice = |card: &str, slice: u32| format!("0000:{card}:00.0-slice-{slice}");
    // The first card has a slice left, the second both, the third none.
    let available = [slice("05", 1), slice("15", 0), slice("15", 1)];
    let ask = |must: &[&str], count| {
        let mut answer = kubelet.preferred(GPU, &available, must, count).unwrap();
        answer.sort();
        answer
    };
    assert_eq!(ask(&[], 1), [slice("15", 0)]);
    assert_eq!(ask(&[], 2), [slice("05", 1), slice("15", 0)]);
    assert_eq!(ask(&[], 3), available);
    assert_eq!(ask(&[&slice("15", 1)], 2), [slice("05", 1), slice("15", 1)]);
}
