//! The choice of so many GPUs, whichever they are.

use inventory::PciAddress;

use crate::gpu::Gpu;

/// A GPU that a count can select.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'g> {
    rank: Rank,
    card: Option<PciAddress>,
    hive: Option<&'g str>,
    numa_node: Option<u32>,
    /// Another container has another part of the card, so that the card is no longer whole.
    begun: bool,
}

/// The less, the sooner it is taken: a processor's own graphics (an APU) after each card, however used that is, for it is
/// no match for one; then the least used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Whether the choice is free to leave it out.
    is_optional: bool,
    integrated: bool,
    uses: usize,
}

impl<'g> Candidate<'g> {
    pub(super) fn new(gpu: &'g Gpu, uses: usize, begun: bool) -> Self {
        Self {
            rank: Rank { is_optional: true, integrated: gpu.integrated, uses },
            card: gpu.card,
            hive: gpu.hive.as_deref(),
            numa_node: gpu.numa_node,
            begun,
        }
    }

    /// The candidate as one that is taken before each other.
    pub(super) fn first(self) -> Self {
        Self { rank: Rank { is_optional: false, integrated: false, uses: 0 }, ..self }
    }
}

fn on_one_card(one: &Candidate<'_>, other: &Candidate<'_>) -> bool {
    one.card.is_some() && one.card == other.card
}

fn in_one_hive(one: &Candidate<'_>, other: &Candidate<'_>) -> bool {
    one.hive.is_some() && one.hive == other.hive
}

fn on_one_numa_node(one: &Candidate<'_>, other: &Candidate<'_>) -> bool {
    one.numa_node.is_some() && one.numa_node == other.numa_node
}

/// A candidate and its place.
type Placed<'c> = (usize, &'c Candidate<'c>);

/// Chooses `count` candidates, those of the lowest rank first, and gives their places in ascending order.
///
/// Among those of one rank those are taken that are close to each other: partitions of one card, then
/// cards of one hive, since these reach each other without the host, then those at one NUMA node. Of several groups that
/// fit, the smallest is taken, so that large ones stay whole for those who need them; what is equal in all this goes by
/// the order of the candidates, which is that of the indexes.
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
/// begun, then the smallest, so that whole cards stay whole; then one at the NUMA node of a picked one; then one in the
/// smallest hive that is enough, then one in the largest hive; then one at a NUMA node likewise; and of these cards the
/// largest.
fn closest<'c>(tied: &[Placed<'c>], picked: &[Placed<'c>], missing: usize) -> Option<Placed<'c>> {
    tied.iter().copied().min_by_key(|(at, candidate)| {
        let on_card = tied.iter().filter(|(_, other)| on_one_card(candidate, other)).count().max(1);
        let near = |is_near: fn(&Candidate<'_>, &Candidate<'_>) -> bool| {
            let all = tied.iter().filter(|(_, other)| is_near(candidate, other)).count().max(on_card);
            if all >= missing { all } else { usize::MAX - all }
        };
        (
            !picked.iter().any(|(_, other)| on_one_card(candidate, other)),
            !picked.iter().any(|(_, other)| in_one_hive(candidate, other)),
            on_card < missing,
            on_card >= missing && !candidate.begun,
            if on_card >= missing { on_card } else { usize::MAX },
            !picked.iter().any(|(_, other)| on_one_numa_node(candidate, other)),
            near(in_one_hive),
            near(on_one_numa_node),
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
            let rank = Rank { is_optional: true, integrated, uses: uses.parse().unwrap() };
            Candidate { rank, card: card(letter), hive, numa_node: None, begun: false }
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
                let rank = Rank { is_optional: true, integrated: *letter == b'z', uses: 0 };
                all.extend(parts.chars().map(|part| {
                    (part == '.', Candidate { rank, card: card(*letter), hive, numa_node: None, begun })
                }));
            }
            let (places, free): (Vec<usize>, Vec<Candidate<'_>>) =
                all.iter().enumerate().filter(|(_, (free, _))| *free).map(|(at, (_, c))| (at, *c)).unzip();
            let picked: Vec<usize> = least_used(&free, count).into_iter().map(|at| places[at]).collect();
            assert_eq!(picked, expected, "{count} of {cards:?}");
        }
    }

    /// A card's letter, its hive and NUMA node, and how many of its partitions are free.
    #[derive(Clone, Copy)]
    struct Part {
        hive: Option<&'static str>,
        numa_node: Option<u32>,
        free: usize,
    }

    /// Candidates of these cards. The first `must` of the first card must be taken.
    fn of_parts(parts: &[Part], must: usize) -> Vec<(usize, Candidate<'static>)> {
        let mut all = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            for nth in 0..part.free {
                let rank = Rank { is_optional: true, integrated: false, uses: 0 };
                let card = card(u8::try_from(at).unwrap());
                let begun = part.free < 8;
                let it = Candidate { rank, card, hive: part.hive, numa_node: part.numa_node, begun };
                all.push((at, if at == 0 && nth < must { it.first() } else { it }));
            }
        }
        all
    }

    /// Partitions of a card are alike, so that the sets of cards are all that there is to try: of those that have room, the
    /// choice is in the fewest hives, and within one hive on the fewest cards.
    #[test]
    fn the_choice_among_eight_cards_of_eight_partitions_is_as_good_as_the_best_of_all_sets_of_cards() {
        let mut random = 0x5eed_u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(random >> 33).unwrap() % below
        };
        for round in 0..4000 {
            let hives = [1, 2, 4][round % 3];
            let parts: Vec<Part> = (0..8)
                .map(|at| {
                    let hive = [Some("a"), Some("b"), Some("c"), Some("d")][at * hives / 8];
                    Part { hive, numa_node: None, free: next(9) }
                })
                .collect();
            let must = if round % 2 == 0 { 0 } else { parts[0].free.min(1 + next(2)) };
            let candidates = of_parts(&parts, must);
            if candidates.is_empty() {
                continue;
            }
            let count = must.max(1 + next(candidates.len()));
            let only: Vec<Candidate<'_>> = candidates.iter().map(|(_, candidate)| *candidate).collect();
            let picked = least_used(&only, count);
            assert_eq!(picked.len(), count);
            assert!((0..must).all(|at| picked.contains(&at)), "round {round}");
            let cards: std::collections::BTreeSet<usize> =
                picked.iter().map(|at| candidates[*at].0).collect();
            let hives_of = |cards: &[usize]| -> std::collections::BTreeSet<_> {
                cards.iter().map(|card| parts[*card].hive).collect()
            };
            let chosen: Vec<usize> = cards.into_iter().collect();
            let sets: Vec<Vec<usize>> = (1_u32..256)
                .map(|bits| (0..8).filter(|card| bits & (1 << card) != 0).collect::<Vec<usize>>())
                .filter(|set| must == 0 || set.contains(&0))
                .filter(|set| set.iter().map(|card| parts[*card].free).sum::<usize>() >= count)
                .collect();
            let fewest_hives = sets.iter().map(|set| hives_of(set).len()).min().unwrap();
            assert_eq!(hives_of(&chosen).len(), fewest_hives, "round {round}: {count} on {chosen:?}");
            if fewest_hives > 1 {
                continue;
            }
            let within = sets.iter().filter(|set| hives_of(set).is_subset(&hives_of(&chosen)));
            let fewest_cards = within.map(Vec::len).min().unwrap();
            assert_eq!(chosen.len(), fewest_cards, "round {round}: {count} on {chosen:?}");
        }
    }

    #[test]
    fn cards_at_one_numa_node_are_taken_together_where_no_hive_joins_them() {
        let part = |numa_node, free| Part { hive: None, numa_node, free };
        let [one, other] = [0, 1].map(Some);
        for (parts, count, expected) in [
            (&[part(one, 1), part(other, 1), part(one, 1), part(other, 1)][..], 2, &[0, 2][..]),
            // The node that fits exactly, so that the larger one stays whole.
            (&[part(one, 1), part(one, 1), part(one, 1), part(other, 1), part(other, 1)], 2, &[3, 4]),
            (&[part(one, 1), part(other, 1), part(other, 1), part(other, 1)], 3, &[1, 2, 3]),
            // What sysfs does not say is near nothing.
            (&[part(None, 1), part(one, 1), part(None, 1), part(one, 1)], 2, &[1, 3]),
        ] {
            let candidates: Vec<Candidate<'_>> = of_parts(parts, 0).into_iter().map(|(_, it)| it).collect();
            assert_eq!(least_used(&candidates, count), expected, "{count}");
        }
    }
}
