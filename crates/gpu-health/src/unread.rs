//! Says what could not be read of a card.

use inventory::snapshot::Card;

/// How many files of one card that gave no value are named.
const MOST_NAMED: usize = 8;

/// Returns a sentence for each file without a value, or for why the card has no file.
pub(crate) fn sentences(card: &Card) -> Vec<String> {
    let faults = &card.readings.faults;
    let mut unread: Vec<String> =
        faults.iter().take(MOST_NAMED).map(|fault| fault.reason.to_string()).collect();
    if let more @ 1.. = faults.len().saturating_sub(MOST_NAMED) {
        unread.push(format!("{more} more files gave no value: see rocworker metrics -v"));
    }
    if card.readings.is_suspended() {
        unread.push("It is suspended: no reading wakes it, and the kernel's log alone was judged".to_owned());
    }
    if unread.is_empty() && !card.is_driven_by_amdgpu() {
        unread.push(match &card.driver {
            Some(driver) => format!("{driver} drives it: only amdgpu says how a GPU is"),
            None => "No driver is bound to it: only amdgpu says how a GPU is".to_owned(),
        });
    }
    unread
}

#[cfg(test)]
mod tests {
    use inventory::Unknown;
    use inventory::readings::Fault;

    use super::*;

    #[test]
    fn each_file_is_named_up_to_a_limit_and_a_driver_only_where_no_file_is() {
        let card = |driver: Option<&str>, faults: usize| {
            let fault = |n| Fault { file: "/sys".into(), reason: Unknown::because(format!("file {n}")) };
            let mut card = Card { driver: driver.map(str::to_owned), ..Card::default() };
            card.readings.faults = (0..faults).map(fault).collect();
            sentences(&card)
        };
        assert!(card(Some("amdgpu"), 0).is_empty());
        assert_eq!(card(Some("amdgpu"), MOST_NAMED).len(), MOST_NAMED);
        let more = card(Some("amdgpu"), MOST_NAMED + 2);
        assert_eq!(more[MOST_NAMED..], ["2 more files gave no value: see rocworker metrics -v"]);
        assert_eq!(card(Some("vfio-pci"), 0), ["vfio-pci drives it: only amdgpu says how a GPU is"]);
        assert_eq!(card(None, 0), ["No driver is bound to it: only amdgpu says how a GPU is"]);
        assert_eq!(card(None, 1), ["file 0"]);
    }
}
