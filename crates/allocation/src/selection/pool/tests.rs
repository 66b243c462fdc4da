use super::*;
use crate::policy::Policy;

/// A card, and a card in two partitions, of which 2 has a uuid of its own.
const GPUS: [&str; 3] = [
    r#"{"index":0,"names":["GPU-00000000000000aa","0000:64:00.0"],"card":"0000:64:00.0",
        "nodes":[{"path":"/dev/dri/card1"},{"path":"/dev/dri/renderD128"}]}"#,
    r#"{"index":1,"names":["GPU-00000000000000c0","0000:c1:00.0"],"card":"0000:c1:00.0",
        "nodes":[{"path":"/dev/dri/renderD129"}]}"#,
    r#"{"index":2,"names":["GPU-00000000000000a1","GPU-00000000000000c0","0000:c1:00.0"],"card":"0000:c1:00.0",
        "nodes":[{"path":"/dev/dri/renderD130"}]}"#,
];

fn pool(gpus: &[impl AsRef<str>]) -> Pool {
    let gpus: Vec<&str> = gpus.iter().map(AsRef::as_ref).collect();
    let policy = format!(r#"{{"schema_version":2,"requests":"all","gpus":[{}]}}"#, gpus.join(","));
    Pool::new(Policy::parse(&policy).unwrap().gpus.unwrap())
}

/// The indexes of the GPUs that a request gets, or the sentence that refuses it.
fn select(pool: &Pool, request: &str) -> Result<Vec<u32>, String> {
    let request = match request.strip_prefix("count ") {
        Some(count) => Request::from_gpu_count(count).unwrap(),
        None => Request::from_visible_devices(request).unwrap(),
    };
    let selected = pool.select(&request, |_| 0).map_err(|refusal| refusal.to_string())?;
    Ok(selected.iter().map(|gpu| gpu.index).collect())
}

#[test]
fn a_request_means_the_gpus_that_the_policy_calls_so() {
    let pool = pool(&GPUS);
    let gpus: Vec<String> = pool.gpus().iter().map(Gpu::to_string).collect();
    assert_eq!(
        gpus,
        ["0 (0000:64:00.0, renderD128)", "1 (0000:c1:00.0, renderD129)", "2 (0000:c1:00.0, renderD130)"]
    );
    let no_such =
        |name: &str| Err(format!("the policy has no GPU \"{name}\"; rocworker detect lists this machine's"));
    let table = [
        ("0", Ok(vec![0])),
        ("2,0", Ok(vec![0, 2])),
        ("all", Ok(vec![0, 1, 2])),
        ("0,0-1", Ok(vec![0, 1])),
        ("gpu-00000000000000AA", Ok(vec![0])),
        ("GPU-00000000000000c0", Ok(vec![1, 2])),
        ("gpu-00000000000000C0,0", Ok(vec![0, 1, 2])),
        ("GPU-00000000000000a1", Ok(vec![2])),
        ("0000:C1:00.0", Ok(vec![1, 2])),
        ("c1:00.0,2", Ok(vec![1, 2])),
        ("renderD130", Ok(vec![2])),
        ("none", Ok(vec![])),
        ("count 1", Ok(vec![0])),
        ("count 2", Ok(vec![1, 2])),
        ("3", no_such("3")),
        ("0-3", no_such("3")),
        ("GPU-00000000000000ab", no_such("GPU-00000000000000ab")),
        ("0001:64:00.0", no_such("0001:64:00.0")),
        ("renderD131", no_such("renderD131")),
        ("count 4", Err("the container asks for 4 GPUs, and the policy has 3".into())),
    ];
    for (request, expected) in table {
        assert_eq!(select(&pool, request), expected, "{request}");
    }
}

/// The names of a card that may not be had as a whole are not among its partitions' names.
#[test]
fn a_card_of_which_only_a_part_may_be_had_is_asked_for_by_index() {
    let part = r#"{"index":5,"names":["GPU-00000000000000a1"],"card":"0000:c1:00.0","nodes":[{"path":"/dev/dri/renderD130"}]}"#;
    let pool = pool(&[GPUS[0], part]);
    for (request, expected) in [
        ("all", Ok(vec![0, 5])),
        ("5", Ok(vec![5])),
        ("GPU-00000000000000a1", Ok(vec![5])),
        ("1", Err("the policy has no GPU \"1\"; rocworker detect lists this machine's")),
        ("GPU-00000000000000c0", {
            Err("the policy has no GPU \"GPU-00000000000000c0\"; rocworker detect lists this machine's")
        }),
        ("0000:c1:00.0", {
            Err("the policy has no GPU \"0000:c1:00.0\"; rocworker detect lists this machine's")
        }),
    ] {
        assert_eq!(select(&pool, request), expected.map_err(str::to_owned), "{request}");
    }
}

/// A policy of schema 1 has each name under a key of its own.
#[test]
fn a_policy_of_schema_1_names_the_gpus_too() {
    let policy = r#"{"schema_version":1,"requests":"all","gpus":[
        {"index":0,"pci":"0000:64:00.0","render":"/dev/dri/renderD128","uuid":"GPU-00000000000000aa","hive":7},
        {"index":1,"pci":"0000:c1:00.0","render":"/dev/dri/renderD129","card_uuid":"GPU-00000000000000c0","card":null},
        {"index":2,"pci":"0000:c1:00.0","render":"/dev/dri/renderD130","card_uuid":"GPU-00000000000000c0","hive":"7"}]}"#;
    let policy = Policy::parse(policy).unwrap();
    assert!(policy.lacks_card_nodes);
    let pool = Pool::new(policy.gpus.unwrap());
    assert!(pool.gpus().iter().all(|gpu| gpu.nodes.len() == 1 && gpu.nodes[0].path == gpu.render.path()));
    let hives: Vec<Option<&str>> = pool.gpus().iter().map(|gpu| gpu.hive.as_deref()).collect();
    assert_eq!(hives, [Some("7"), None, Some("7")]);
    for (request, expected) in [
        ("64:00.0", vec![0]),
        ("c1:00.0", vec![1, 2]),
        ("GPU-00000000000000aa", vec![0]),
        ("GPU-00000000000000c0", vec![1, 2]),
        ("renderD130", vec![2]),
    ] {
        assert_eq!(select(&pool, request), Ok(expected), "{request}");
    }
}

#[test]
fn where_there_is_nothing_all_is_refused_and_the_default_says_why() {
    let none = "the policy has no GPU to give; see rocworker detect";
    let pool = pool(&[""; 0]);
    assert_eq!(select(&pool, "all"), Err(none.to_owned()));
    assert_eq!(pool.by_default(), (vec![], vec![Error::new(NO_GPUS)]));
}

#[test]
fn a_count_takes_what_fewest_others_have() {
    let pool = pool(&GPUS);
    let uses = |gpu: &Gpu| match gpu.index {
        0 => 1,
        1 => 2,
        _ => 1,
    };
    let table = [(1, vec![0]), (2, vec![0, 2]), (3, vec![0, 1, 2])];
    for (count, expected) in table {
        let selected = pool.select(&Request::Count(count), uses).unwrap();
        let indexes: Vec<u32> = selected.iter().map(|gpu| gpu.index).collect();
        assert_eq!(indexes, expected, "{count}");
    }
}

/// A fresh health file in which these cards are quarantined since 1970.
fn quarantined(cards: &[&str]) -> Withheld {
    let quarantine = r#""quarantine":{"since":0,"unhealthy_at":0,"reason":"A ring hangs.","rules":[]}"#;
    let card = |card: &&str| {
        format!(
            r#"{{"pci":"{card}","state":"unhealthy","score":0,"hang":true,"deductions":[],"unknown":[],{quarantine},"leftover":null}}"#
        )
    };
    let cards: Vec<String> = cards.iter().map(card).collect();
    let text = format!(r#"{{"schema_version":1,"written_at":0,"gpus":[{}],"unknown":[]}}"#, cards.join(","));
    Withheld::parse(&text, 0, || None).unwrap().0
}

#[test]
fn a_quarantined_card_is_given_to_nobody_with_none_of_its_partitions() {
    let why = |gpu: &str| format!("the GPU {gpu} is quarantined since 1970-01-01T00:00:00Z: A ring hangs");
    let (whole, first, second) = (
        why("0 (0000:64:00.0, renderD128)"),
        why("1 (0000:c1:00.0, renderD129)"),
        why("2 (0000:c1:00.0, renderD130)"),
    );
    let see = "; see rocworker health";
    let named = |why: &str| Err(format!("{why}{see}"));
    let few = |asked, have, kept: &str| {
        Err(format!(
            "the container asks for {asked} GPUs, and the policy has {have}; quarantine withholds {kept}{see}"
        ))
    };
    let of_all =
        format!("the container asks for all GPUs, and each is quarantined: {whole}; {first}; {second}{see}");
    for (cards, except, request, expected) in [
        (&["0000:64:00.0"][..], &[][..], "all", Ok(vec![1, 2])),
        (&["0000:64:00.0"], &[], "0", named(&whole)),
        (&["0000:64:00.0"], &[], "1,0-1", named(&whole)),
        (&["0000:64:00.0"], &[], "renderD128", named(&whole)),
        (&["0000:64:00.0"], &[], "64:00.0", named(&whole)),
        (&["0000:64:00.0"], &[], "gpu-00000000000000aa", named(&whole)),
        (&["0000:64:00.0"], &[], "1-2", Ok(vec![1, 2])),
        (&["0000:64:00.0"], &[], "none", Ok(vec![])),
        (&["0000:64:00.0"], &[], "count 1", Ok(vec![1])),
        (&["0000:64:00.0"], &[], "count 3", few(3, 2, &format!("1: {whole}"))),
        (&["0000:c1:00.0"], &[], "all", Ok(vec![0])),
        (&["0000:c1:00.0"], &[], "2", named(&second)),
        (&["0000:c1:00.0"], &[], "0000:c1:00.0", named(&first)),
        (&["0000:c1:00.0"], &[], "count 2", few(2, 1, &format!("2: {first}; {second}"))),
        (&["0000:64:00.0", "0000:c1:00.0"], &[], "all", Err(of_all)),
        // What the container has already it keeps.
        (&["0000:64:00.0", "0000:c1:00.0"], &["renderD130"], "2", Ok(vec![2])),
        (&["0000:64:00.0", "0000:c1:00.0"], &["renderD130"], "all", Ok(vec![2])),
        (&["0000:65:00.0"], &[], "all", Ok(vec![0, 1, 2])),
        (&[], &[], "count 3", Ok(vec![0, 1, 2])),
    ] {
        let mut pool = pool(&GPUS);
        let except: Vec<Render> = except.iter().map(|render| Render::parse(render).unwrap()).collect();
        pool.quarantine(&quarantined(cards), &except);
        assert_eq!(select(&pool, request), expected, "{request} without {cards:?}");
    }
}

#[test]
fn the_default_leaves_quarantined_gpus_out_and_names_each() {
    let mut pool = pool(&GPUS);
    pool.quarantine(&quarantined(&["0000:c1:00.0"]), &[]);
    let (given, left_out) = pool.by_default();
    assert_eq!(given.iter().map(|gpu| gpu.index).collect::<Vec<_>>(), [0]);
    let left_out: Vec<String> = left_out.iter().map(Error::to_string).collect();
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    assert!(
        left_out[0].starts_with("the GPU 1 (0000:c1:00.0, renderD129) is quarantined since"),
        "{left_out:?}"
    );
    assert_eq!(pool.pick_free(2, |_| true), None);
}

fn listed(index: u32, card: &str, render: u32, more: &str) -> String {
    format!(
        r#"{{"index":{index},"names":[],"card":"{card}","nodes":[{{"path":"/dev/dri/renderD{render}"}}]{more}}}"#
    )
}

#[test]
fn many_quarantined_gpus_are_counted_and_three_are_named() {
    let gpus: Vec<String> = (0..64).map(|gpu| listed(gpu, "0000:c1:00.0", 128 + gpu, "")).collect();
    let mut pool = pool(&gpus);
    pool.quarantine(&quarantined(&["0000:c1:00.0"]), &[]);
    let sentence = select(&pool, "count 1").unwrap_err();
    assert!(
        sentence.contains("has 0; quarantine withholds 64: the GPU 0 (")
            && sentence.ends_with("; and 61 more; see rocworker health"),
        "{sentence}"
    );
    assert!(sentence.len() < 1000, "{} bytes", sentence.len());
}

/// A processor's own graphics beside two cards, whichever index it has.
#[test]
fn a_count_gives_a_processors_own_graphics_last_shared_and_exclusive_alike() {
    for own in 0..3_u32 {
        let gpus = [("0000:03:00.0", 128), ("0000:06:00.0", 129), ("0000:0f:00.0", 130)];
        let gpus = (0..).zip(gpus).map(|(index, (card, render))| {
            listed(index, card, render, if index == own { r#","integrated":true"# } else { "" })
        });
        let pool = pool(&gpus.collect::<Vec<_>>());
        let cards: Vec<u32> = (0..3).filter(|index| *index != own).collect();
        let gives = |count: &str, uses: &dyn Fn(&Gpu) -> usize| -> Vec<u32> {
            let request = Request::from_gpu_count(count).unwrap();
            pool.select(&request, uses).unwrap().iter().map(|gpu| gpu.index).collect()
        };
        assert_eq!(gives("2", &|_| 0), cards);
        assert_eq!(gives("3", &|_| 0), [0, 1, 2]);
        // Every card is used five times, and the processor's own never.
        assert_eq!(gives("2", &|gpu| if gpu.integrated { 0 } else { 5 }), cards);
        let free = |count, is_free: &dyn Fn(&Gpu) -> bool| {
            Some(pool.pick_free(count, is_free)?.iter().map(|gpu| gpu.index).collect::<Vec<_>>())
        };
        assert_eq!(free(2, &|_| true), Some(cards.clone()));
        assert_eq!(free(1, &|gpu| gpu.index != cards[0]), Some(vec![cards[1]]));
        assert_eq!(free(1, &|gpu| gpu.integrated), Some(vec![own]), "no card is left");
        // Named, it is given.
        assert_eq!(select(&pool, &own.to_string()), Ok(vec![own]));
    }
}
