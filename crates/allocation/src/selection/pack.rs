//! The choice of so many GPUs, whichever they are.

use inventory::PciAddress;

use crate::gpu::Gpu;

/// A GPU that a count can select.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'g> {
    rank: Rank,
    card: Option<PciAddress>,
    hive: Option<&'g str>,
    /// Another container has another part of the card, so that the card is no longer whole.
    begun: bool,
}

/// The less, the sooner it is taken: a processor's own graphics (an APU) after each card, however used that is, for it is
/// no match for one; then the least used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    integrated: bool,
    uses: usize,
}

impl<'g> Candidate<'g> {
    pub(super) fn new(gpu: &'g Gpu, uses: usize, begun: bool) -> Self {
        Self {
            rank: Rank { integrated: gpu.integrated, uses },
            card: gpu.card,
            hive: gpu.hive.as_deref(),
            begun,
        }
    }
}

fn on_one_card(one: &Candidate<'_>, other: &Candidate<'_>) -> bool {
    one.card.is_some() && one.card == other.card
}

fn in_one_hive(one: &Candidate<'_>, other: &Candidate<'_>) -> bool {
    one.hive.is_some() && one.hive == other.hive
}

/// A candidate and its place.
type Placed<'c> = (usize, &'c Candidate<'c>);

/// Chooses `count` candidates, those of the lowest rank first, and gives their places in ascending order.
///
/// Among those of one rank those are taken that are close to each other: partitions of one card, then
/// cards of one hive, since these reach each other without the host. Of several groups that fit, the
/// smallest is taken, so that large ones stay whole for those who need them; what is equal in all this goes
/// by the order of the candidates, which is that of the indexes.
pub(super) fn least_used(candidates: &[Candidate<'_>], count: usize) -> Vec<usize> {
    let mut ranks: Vec<Rank> = candidates.iter().map(|candidate| candidate.rank).collect();
    ranks.sort_unstable();
    let Some(&limit) = count.checked_sub(1).and_then(|last| ranks.get(last)) else { return Vec::new() };

    let placed = || candidates.iter().enumerate();
    let mut picked: Vec<Placed<'_>> = placed().filter(|(_, candidate)| candidate.rank < limit).collect();
    let mut tied: Vec<Placed<'_>> = placed().filter(|(_, candidate)| candidate.rank == limit).collect();
    while picked.len() < count {
        let missing = count - picked.len();
        let Some((best, next)) = closest(&tied, &picked, missing) else { break };
        let (group, rest) =
            tied.into_iter().partition(|(at, candidate)| *at == best || on_one_card(candidate, next));
        let group: Vec<Placed<'_>> = group;
        tied = rest;
        picked.extend(group.into_iter().take(missing));
    }
    let mut places: Vec<usize> = picked.into_iter().map(|(at, _)| at).collect();
    places.sort_unstable();
    places
}

/// The candidate whose card is best taken next: one that was picked from, then one that is enough, of these one that is
/// begun, then the smallest, so that whole cards stay whole; then one in the smallest hive that is enough, then one in
/// the largest hive, and of its cards the largest.
fn closest<'c>(tied: &[Placed<'c>], picked: &[Placed<'c>], missing: usize) -> Option<Placed<'c>> {
    tied.iter().copied().min_by_key(|(at, candidate)| {
        let on_card = tied.iter().filter(|(_, other)| on_one_card(candidate, other)).count().max(1);
        let in_hive = tied.iter().filter(|(_, other)| in_one_hive(candidate, other)).count().max(on_card);
        (
            !picked.iter().any(|(_, other)| on_one_card(candidate, other)),
            !picked.iter().any(|(_, other)| in_one_hive(candidate, other)),
            on_card < missing,
            on_card >= missing && !candidate.begun,
            if on_card >= missing { on_card } else { usize::MAX },
            if in_hive >= missing { in_hive } else { usize::MAX - in_hive },
            usize::MAX - on_card,
            *at,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(number: u8) -> Option<PciAddress> {
        Some(PciAddress { domain: 0, bus: number, device: 0, function: 0 })
    }

    /// `a0` is a partition of card a with no use, in the hive of its case: all of A to M in one, N to Z in another. `z0` is
    /// an APU.
    fn candidates(text: &str) -> Vec<Candidate<'static>> {
        let candidate = |word: &str| {
            let (card_letter, uses) = word.split_at(1);
            let letter = card_letter.as_bytes()[0];
            let hive = match letter {
                b'A'..=b'M' => Some("first"),
                b'N'..=b'Z' => Some("second"),
                _ => None,
            };
            let integrated = letter == b'z';
            let rank = Rank { integrated, uses: uses.parse().unwrap() };
            Candidate { rank, card: card(letter), hive, begun: false }
        };
        text.split_whitespace().map(candidate).collect()
    }

    #[test]
    fn takes_the_least_used_and_packs_what_is_equal() {
        let table: [(&str, usize, &[usize]); 24] = [
            ("a0 b0 c0", 1, &[0]),
            ("a1 b0 c0", 1, &[1]),
            ("a2 b1 c1", 2, &[1, 2]),
            ("a2 b1 c1", 3, &[0, 1, 2]),
            ("a0", 0, &[]),
            // Two partitions of one card rather than the first of two cards.
            ("a0 b0 b0 c0", 2, &[1, 2]),
            // The card that fits exactly rather than a larger one that comes first.
            ("a0 a0 a0 b0 b0", 2, &[3, 4]),
            // One that is free is taken from the smallest card, so that the larger one stays whole.
            ("a0 a0 b0", 1, &[2]),
            // The least used must be taken; the next comes from its card.
            ("a0 b1 b1 a1", 2, &[0, 3]),
            ("a1 a1 b0 b0 b1", 3, &[2, 3, 4]),
            // No card fits: the largest first, then what is left.
            ("a0 b0 b0 c0", 3, &[0, 1, 2]),
            // Cards of one hive rather than the first ones.
            ("A0 N0 O0", 2, &[1, 2]),
            ("A0 B0 C0 N0 O0", 2, &[3, 4]),
            ("A0 B0 N0 O0 P0", 3, &[2, 3, 4]),
            // A hive that is enough before a larger card of one that is not.
            ("A0 A0 N0 O0 P0", 3, &[2, 3, 4]),
            // Within one hive the larger card first.
            ("A0 N0 O0 O0 P0", 3, &[1, 2, 3]),
            ("N0 O0 O0 P0 P0 P0", 5, &[1, 2, 3, 4, 5]),
            // An APU comes last, wherever it is listed and however used the cards are.
            ("z0 a0", 1, &[1]),
            ("a1 z0", 1, &[0]),
            ("z0 a7 b9", 2, &[1, 2]),
            ("a0 z0 b0", 2, &[0, 2]),
            ("a3 z0", 2, &[0, 1]),
            ("z0", 1, &[0]),
            // A hive before lone cards.
            ("a0 b0 N0 O0", 2, &[2, 3]),
        ];
        for (text, count, expected) in table {
            assert_eq!(least_used(&candidates(text), count), expected, "{count} of {text}");
        }
    }

    #[test]
    fn no_packing_takes_a_gpu_that_is_used_more() {
        let many = candidates("a0 a1 a2 a3 b0 b1 b2 b3 N0 N1 O0 O1");
        for count in 0..=many.len() {
            let picked = least_used(&many, count);
            assert_eq!(picked.len(), count);
            let total: usize = picked.iter().map(|at| many[*at].rank.uses).sum();
            let mut uses: Vec<usize> = many.iter().map(|candidate| candidate.rank.uses).collect();
            uses.sort_unstable();
            assert_eq!(total, uses.iter().take(count).sum::<usize>(), "{count}");
        }
    }

    /// `.` is a free partition, `x` one that a container has.
    #[test]
    fn free_partitions_are_taken_from_the_fullest_card_that_has_room() {
        type Case<'c> = (&'c [(u8, &'c str)], usize, &'c [usize]);
        let table: [Case<'_>; 12] = [
            // A card of which a part is taken, rather than a whole one, however small that is.
            (&[(b'a', "."), (b'b', "x...")], 1, &[2]),
            (&[(b'a', "...."), (b'b', "xx.."), (b'c', "xxx.")], 1, &[11]),
            // Together on a whole card, rather than apart on two that are begun.
            (&[(b'a', "xxx."), (b'b', "xxx."), (b'c', "....")], 2, &[8, 9]),
            (&[(b'a', "...."), (b'b', "xx..")], 2, &[6, 7]),
            (&[(b'a', "...."), (b'b', "x...")], 3, &[5, 6, 7]),
            // A whole card only for as many.
            (&[(b'a', "x..."), (b'b', "....")], 4, &[4, 5, 6, 7]),
            // Cards of one hive.
            (&[(b'a', "."), (b'N', "."), (b'O', ".")], 2, &[1, 2]),
            (&[(b'A', "x"), (b'B', "."), (b'N', "."), (b'O', ".")], 2, &[2, 3]),
            // No card has room for all: the largest first.
            (&[(b'a', "x."), (b'b', "...")], 4, &[1, 2, 3, 4]),
            (&[(b'a', "x")], 1, &[]),
            // An APU only where no card is free.
            (&[(b'z', "."), (b'a', "."), (b'b', "x")], 1, &[1]),
            (&[(b'z', "."), (b'a', "x")], 1, &[0]),
        ];
        for (cards, count, expected) in table {
            let mut all = Vec::new();
            for (letter, parts) in cards {
                let hive = match letter {
                    b'A'..=b'M' => Some("first"),
                    b'N'..=b'Z' => Some("second"),
                    _ => None,
                };
                let begun = parts.contains('x');
                let rank = Rank { integrated: *letter == b'z', uses: 0 };
                all.extend(
                    parts
                        .chars()
                        .map(|part| (part == '.', Candidate { rank, card: card(*letter), hive, begun })),
                );
            }
            let (places, free): (Vec<usize>, Vec<Candidate<'_>>) =
                all.iter().enumerate().filter(|(_, (free, _))| *free).map(|(at, (_, c))| (at, *c)).unzip();
            let picked: Vec<usize> = least_used(&free, count).into_iter().map(|at| places[at]).collect();
            assert_eq!(picked, expected, "{count} of {cards:?}");
        }
    }
}
