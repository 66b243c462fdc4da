use super::*;

/// Two cards: one with one GPU, and one in two partitions, of which 3 is not usable, so that 2 is its first.
/// The last device has an index and no render node, so it is no GPU.
const SPEC: &str = r#"{"cdiVersion":"0.5.0","kind":"amd.com/gpu","devices":[
    {"name":"0","containerEdits":{"deviceNodes":[{"path":"/dev/dri/card1"},{"path":"/dev/dri/renderD128"}]}},
    {"name":"2","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD130"}]}},
    {"name":"1","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD129"}]}},
    {"name":"all","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD128"}]}},
    {"name":"GPU-00000000000000aa","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD128"}]}},
    {"name":"0000:64:00.0","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD128"}]}},
    {"name":"0000:c1:00.0","containerEdits":{"deviceNodes":[
        {"path":"/dev/dri/renderD129"},{"path":"/dev/dri/renderD130"}]}},
    {"name":"9","containerEdits":{"deviceNodes":[{"path":"/dev/dri/card9"}]}}]}"#;

fn inventory(gpus: &str, spec: &str) -> Inventory {
    let policy = format!(r#"{{"schema_version":1,"requests":"all","gpus":{gpus}}}"#);
    Inventory::new(&Policy::parse(&policy).unwrap(), &Outline::parse(spec).unwrap())
}

fn listed(index: u32, pci: &str, render: u32) -> String {
    format!(r#"{{"index":{index},"pci":"{pci}","render":"/dev/dri/renderD{render}"}}"#)
}

/// The devices of the spec that a request gets, or the sentence that refuses it.
fn select(inventory: &Inventory, request: &str) -> Result<Vec<usize>, String> {
    let request = match request.strip_prefix("count ") {
        Some(count) => Request::from_gpu_count(count).unwrap(),
        None => Request::from_visible_devices(request).unwrap(),
    };
    let chosen = inventory.select(&request, |_| 0).map_err(|refusal| refusal.to_string())?;
    Ok(chosen.iter().map(|chosen| chosen.device).collect())
}

#[test]
fn without_a_list_whatever_the_spec_names_may_be_had() {
    let inventory = inventory("null", SPEC);
    let gpus: Vec<String> = inventory.gpus().map(Gpu::to_string).collect();
    assert_eq!(
        gpus,
        ["0 (0000:64:00.0, renderD128)", "1 (0000:c1:00.0, renderD129)", "2 (0000:c1:00.0, renderD130)"]
    );
    let no_such =
        |name: &str| Err(format!("there is no GPU \"{name}\" on this machine; rocworker detect lists them"));
    let table = [
        ("0", Ok(vec![0])),
        ("2,0", Ok(vec![0, 1])),
        ("all", Ok(vec![0, 2, 1])),
        ("0,0-1", Ok(vec![0, 2])),
        ("gpu-00000000000000AA", Ok(vec![0])),
        ("0000:C1:00.0", Ok(vec![2, 1])),
        ("c1:00.0,2", Ok(vec![2, 1])),
        ("renderD130", Ok(vec![1])),
        ("none", Ok(vec![])),
        ("count 1", Ok(vec![0])),
        ("count 2", Ok(vec![2, 1])),
        ("3", no_such("3")),
        ("9", no_such("9")),
        ("0-3", no_such("3")),
        ("GPU-00000000000000ab", no_such("GPU-00000000000000ab")),
        ("0001:64:00.0", no_such("0001:64:00.0")),
        ("renderD131", no_such("renderD131")),
        ("count 4", Err("the container asks for 4 GPUs, and the policy and the CDI spec have 3".into())),
    ];
    for (request, expected) in table {
        assert_eq!(select(&inventory, request), expected, "{request}");
    }
}

#[test]
fn a_list_says_what_may_be_had_and_what_an_index_means() {
    // The policy calls the second partition 5.
    let gpus = format!("[{},{}]", listed(0, "0000:64:00.0", 128), listed(5, "0000:c1:00.0", 130));
    let inventory = inventory(&gpus, SPEC);
    let table = [
        ("all", Ok(vec![0, 1])),
        ("5", Ok(vec![1])),
        ("0-1", Err("the policy does not allow the GPU \"1\"")),
        ("renderD129", Err("the policy does not allow the GPU \"renderD129\"")),
        ("renderD130", Ok(vec![1])),
        (
            "0000:c1:00.0",
            Err(
                "the policy allows only some partitions of the card \"0000:c1:00.0\": ask for those by index",
            ),
        ),
        ("0000:64:00.0", Ok(vec![0])),
        ("7", Err("there is no GPU \"7\" on this machine; rocworker detect lists them")),
        ("count 2", Ok(vec![0, 1])),
        ("count 3", Err("the container asks for 3 GPUs, and the policy and the CDI spec have 2")),
    ];
    for (request, expected) in table {
        assert_eq!(select(&inventory, request), expected.map_err(str::to_owned), "{request}");
    }
}

#[test]
fn a_partitioned_cards_uuid_means_all_its_partitions() {
    // Of the second card: its partitions' common uuid, and from ROCm 7.0.1 on each has its own too.
    let card = r#"{"name":"GPU-00000000000000c0","containerEdits":{"deviceNodes":[
        {"path":"/dev/dri/renderD129"},{"path":"/dev/dri/renderD130"}]}},"#;
    let own = r#"{"name":"GPU-00000000000000a1","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD130"}]}},"#;
    let first = r#"{"name":"0000:64:00.0""#;
    let named = SPEC.replace(first, &format!("{own}{card}{first}"));
    let part = |index, render, own: &str| {
        let uuids = format!(r#""uuid":{own},"card_uuid":"GPU-00000000000000c0","render""#);
        listed(index, "0000:c1:00.0", render).replace(r#""render""#, &uuids)
    };
    let whole = listed(0, "0000:64:00.0", 128);
    let second = part(2, 130, r#""GPU-00000000000000a1""#);
    let both = format!("[{whole},{},{second}]", part(1, 129, "null"));
    let no_such = "there is no GPU \"GPU-00000000000000c0\" on this machine; rocworker detect lists them";
    let some =
        "the policy allows only some partitions of the card \"GPU-00000000000000c0\": ask for those by index";
    let one = format!("[{second}]");
    for (gpus, spec, request, expected) in [
        ("null", &*named, "GPU-00000000000000c0", Ok(vec![2, 1])),
        ("null", &named, "gpu-00000000000000C0,0", Ok(vec![0, 2, 1])),
        ("null", &named, "GPU-00000000000000a1", Ok(vec![1])),
        ("null", SPEC, "GPU-00000000000000c0", Err(no_such.to_owned())),
        // The policy has the names whether the spec has them or not.
        (&both, SPEC, "GPU-00000000000000c0", Ok(vec![2, 1])),
        (&both, SPEC, "gpu-00000000000000A1", Ok(vec![1])),
        (&one, SPEC, "GPU-00000000000000c0", Ok(vec![1])),
        (&one, &named, "GPU-00000000000000c0", Err(some.to_owned())),
    ] {
        assert_eq!(select(&inventory(gpus, spec), request), expected, "{request} of {spec} for {gpus}");
    }
}

/// With a spec alone nothing but the number of a name's nodes tells whose it is.
#[test]
fn a_uuid_that_partitions_share_is_the_cards_and_no_partitions_own() {
    let card = r#"{"name":"GPU-00000000000000c0","containerEdits":{"deviceNodes":[
        {"path":"/dev/dri/renderD129"},{"path":"/dev/dri/renderD130"}]}},"#;
    let own = r#"{"name":"GPU-00000000000000a1","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD130"}]}},"#;
    let first = r#"{"name":"0000:64:00.0""#;
    // Another program's spec may have the card's name first.
    for names in [format!("{own}{card}"), format!("{card}{own}")] {
        let inventory = inventory("null", &SPEC.replace(first, &format!("{names}{first}")));
        let owns: Vec<Option<&str>> = inventory.gpus().map(|gpu| gpu.uuid.as_deref()).collect();
        assert_eq!(owns, [Some("GPU-00000000000000aa"), None, Some("GPU-00000000000000a1")]);
        assert_eq!(select(&inventory, "GPU-00000000000000c0"), Ok(vec![2, 1]));
        assert_eq!(select(&inventory, "GPU-00000000000000a1"), Ok(vec![1]));
    }
}

/// The spec is written anew when a card goes, and then indexes and render nodes mean other cards.
#[test]
fn a_gpu_of_the_policy_is_found_by_its_place_and_never_replaced_by_another() {
    let renumbered = SPEC.replace("renderD128", "renderD140");
    let gone = SPEC.replace("0000:64:00.0", "0000:65:00.0");
    let unplaced = SPEC.replace("0000:64:00.0", "card-a").replace("0000:c1:00.0", "card-b");
    let gpus = format!("[{},{}]", listed(0, "0000:64:00.0", 128), listed(1, "0000:c1:00.0", 129));
    let gone_sentence = "the GPU 0 (0000:64:00.0, renderD128) of the policy is not in the CDI spec, so it is gone \
                         or not usable: see rocworker detect, then rocworker cdi generate";
    let table = [
        (SPEC, "0", Ok(vec![0])),
        (&renumbered, "0", Ok(vec![0])),
        (&unplaced, "0,1", Ok(vec![0, 2])),
        (&gone, "0", Err(gone_sentence)),
        (&gone, "all", Err(gone_sentence)),
        (&gone, "1", Ok(vec![2])),
        (&gone, "count 1", Ok(vec![2])),
        (&gone, "count 2", Err("the container asks for 2 GPUs, and the policy and the CDI spec have 1")),
    ];
    for (spec, request, expected) in table {
        let expected = expected.map_err(str::to_owned);
        assert_eq!(select(&inventory(&gpus, spec), request), expected, "{request} of {spec}");
    }
    let (there, left_out) = {
        let inventory = inventory(&gpus, &gone);
        let (there, left_out) = inventory.all_that_is_there();
        (there.iter().map(|chosen| chosen.device).collect::<Vec<_>>(), left_out)
    };
    assert_eq!(there, [2]);
    assert_eq!(left_out.iter().map(Error::to_string).collect::<Vec<_>>(), [gone_sentence]);
}

#[test]
fn where_there_is_nothing_all_is_refused_and_the_default_says_why() {
    let none = "the policy and the CDI spec have no GPU to give; see rocworker detect";
    for (gpus, spec) in [("[]", SPEC), ("null", r#"{"kind":"amd.com/gpu","devices":[]}"#)] {
        let inventory = inventory(gpus, spec);
        assert_eq!(select(&inventory, "all"), Err(none.to_owned()));
        assert_eq!(inventory.all_that_is_there(), (vec![], vec![Error::new(NO_GPUS)]));
    }
}

#[test]
fn a_count_takes_what_fewest_others_have() {
    let inventory = inventory("null", SPEC);
    let uses = |gpu: &Gpu| match gpu.index {
        0 => 1,
        1 => 2,
        _ => 1,
    };
    let table = [(1, vec![0]), (2, vec![0, 2]), (3, vec![0, 1, 2])];
    for (count, expected) in table {
        let chosen = inventory.select(&Request::Count(count), uses).unwrap();
        let indexes: Vec<u32> = chosen.iter().map(|chosen| chosen.gpu.index).collect();
        assert_eq!(indexes, expected, "{count}");
    }
}

#[test]
fn what_is_left_of_a_card_that_was_partitioned_is_one_gpu_of_the_policy_and_not_each() {
    let whole = r#"{"cdiVersion":"0.5.0","kind":"amd.com/gpu","devices":[
        {"name":"0","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD129"}]}},
        {"name":"0000:c1:00.0","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD129"}]}}]}"#;
    let of_two = format!("[{},{}]", listed(1, "0000:c1:00.0", 129), listed(2, "0000:c1:00.0", 130));
    let of_two = inventory(&of_two, whole);
    assert_eq!(select(&of_two, "1"), Ok(vec![0]));
    assert_eq!(select(&of_two, "count 1"), Ok(vec![0]));
    for request in ["2", "all", "count 2"] {
        select(&of_two, request).unwrap_err();
    }
    assert_eq!(of_two.there().len(), 1);
    // The same of a policy that lists the card once: its number may be an older one.
    let of_one = format!("[{}]", listed(1, "0000:c1:00.0", 131));
    assert_eq!(select(&inventory(&of_one, whole), "1"), Ok(vec![0]));
}

#[test]
fn a_card_whose_render_node_has_another_number_now_is_known_by_that() {
    let swapped = r#"{"cdiVersion":"0.5.0","kind":"amd.com/gpu","devices":[
        {"name":"0","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD129"}]}},
        {"name":"0000:64:00.0","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD129"}]}},
        {"name":"1","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD128"}]}},
        {"name":"0000:c1:00.0","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD128"}]}}]}"#;
    let listed = format!("[{},{}]", listed(0, "0000:64:00.0", 128), listed(1, "0000:c1:00.0", 129));
    let now = inventory(&listed, swapped);
    let renders: Vec<(u32, u32)> = now.gpus().map(|gpu| (gpu.index, gpu.render.number())).collect();
    assert_eq!(renders, [(0, 129), (1, 128)]);
    assert_eq!(select(&now, "renderD129"), Ok(vec![0]));
}

/// A health file of this time with these cards quarantined since 1970.
fn quarantined(cards: &[&str]) -> Withheld {
    let quarantine = r#""quarantine":{"since":0,"unhealthy_at":0,"reason":"A ring hangs."}"#;
    let cards: Vec<String> = cards.iter().map(|card| format!(r#"{{"pci":"{card}",{quarantine}}}"#)).collect();
    let text = format!(r#"{{"schema_version":1,"written_at":0,"gpus":[{}]}}"#, cards.join(","));
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
            "the container asks for {asked} GPUs, and the policy and the CDI spec have {have}; quarantine withholds \
             {kept}{see}"
        ))
    };
    let of_all =
        format!("the container asks for all GPUs, and each is quarantined: {whole}; {first}; {second}{see}");
    for (cards, except, request, expected) in [
        (&["0000:64:00.0"][..], &[][..], "all", Ok(vec![2, 1])),
        (&["0000:64:00.0"], &[], "0", named(&whole)),
        (&["0000:64:00.0"], &[], "1,0-1", named(&whole)),
        (&["0000:64:00.0"], &[], "renderD128", named(&whole)),
        (&["0000:64:00.0"], &[], "64:00.0", named(&whole)),
        (&["0000:64:00.0"], &[], "gpu-00000000000000aa", named(&whole)),
        (&["0000:64:00.0"], &[], "1-2", Ok(vec![2, 1])),
        (&["0000:64:00.0"], &[], "none", Ok(vec![])),
        (&["0000:64:00.0"], &[], "count 1", Ok(vec![2])),
        (&["0000:64:00.0"], &[], "count 3", few(3, 2, &format!("1: {whole}"))),
        (&["0000:c1:00.0"], &[], "all", Ok(vec![0])),
        (&["0000:c1:00.0"], &[], "2", named(&second)),
        (&["0000:c1:00.0"], &[], "0000:c1:00.0", named(&first)),
        (&["0000:c1:00.0"], &[], "count 2", few(2, 1, &format!("2: {first}; {second}"))),
        (&["0000:64:00.0", "0000:c1:00.0"], &[], "all", Err(of_all)),
        (&["0000:64:00.0", "0000:c1:00.0"], &[], "9", {
            Err("there is no GPU \"9\" on this machine; rocworker detect lists them".to_owned())
        }),
        // What the container has already it keeps.
        (&["0000:64:00.0", "0000:c1:00.0"], &["renderD130"], "2", Ok(vec![1])),
        (&["0000:64:00.0", "0000:c1:00.0"], &["renderD130"], "all", Ok(vec![1])),
        (&["0000:65:00.0"], &[], "all", Ok(vec![0, 2, 1])),
        (&[], &[], "count 3", Ok(vec![0, 2, 1])),
    ] {
        let mut inventory = inventory("null", SPEC);
        let except: Vec<Render> = except.iter().map(|render| Render::parse(render).unwrap()).collect();
        inventory.quarantine(&quarantined(cards), &except);
        assert_eq!(select(&inventory, request), expected, "{request} without {cards:?}");
    }
}

#[test]
fn the_default_leaves_quarantined_gpus_out_and_names_each() {
    let mut inventory = inventory("null", SPEC);
    inventory.quarantine(&quarantined(&["0000:c1:00.0"]), &[]);
    let (there, left_out) = inventory.all_that_is_there();
    assert_eq!(there.iter().map(|chosen| chosen.device).collect::<Vec<_>>(), [0]);
    let left_out: Vec<String> = left_out.iter().map(Error::to_string).collect();
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    assert!(
        left_out[0].starts_with("the GPU 1 (0000:c1:00.0, renderD129) is quarantined since"),
        "{left_out:?}"
    );
    assert_eq!(inventory.pick_free(2, |_| true), None);
}

#[test]
fn many_quarantined_gpus_are_counted_and_three_are_named() {
    let devices: Vec<String> = (0..64)
        .map(|gpu| {
            format!(
                r#"{{"name":"{gpu}","containerEdits":{{"deviceNodes":[{{"path":"/dev/dri/renderD{}"}}]}}}}"#,
                128 + gpu
            )
        })
        .collect();
    let spec = format!(r#"{{"cdiVersion":"0.5.0","kind":"amd.com/gpu","devices":[{}]}}"#, devices.join(","));
    let gpus: Vec<String> = (0..64).map(|gpu| listed(gpu, "0000:c1:00.0", 128 + gpu)).collect();
    let mut inventory = inventory(&format!("[{}]", gpus.join(",")), &spec);
    inventory.quarantine(&quarantined(&["0000:c1:00.0"]), &[]);
    let said = select(&inventory, "count 1").unwrap_err();
    assert!(
        said.contains("have 0; quarantine withholds 64: the GPU 0 (")
            && said.ends_with("; and 61 more; see rocworker health"),
        "{said}"
    );
    assert!(said.len() < 1000, "{} bytes", said.len());
}

/// A processor's own graphics beside two cards, whichever index it has.
#[test]
fn a_count_gives_a_processors_own_graphics_last_shared_and_exclusive_alike() {
    const CARDS: &str = r#"{"cdiVersion":"0.5.0","kind":"amd.com/gpu","devices":[
        {"name":"0","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD128"}]}},
        {"name":"1","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD129"}]}},
        {"name":"2","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD130"}]}},
        {"name":"0000:03:00.0","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD128"}]}},
        {"name":"0000:06:00.0","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD129"}]}},
        {"name":"0000:0f:00.0","containerEdits":{"deviceNodes":[{"path":"/dev/dri/renderD130"}]}}]}"#;
    for own in 0..3_u32 {
        let gpus = [("0000:03:00.0", 128), ("0000:06:00.0", 129), ("0000:0f:00.0", 130)];
        let gpus = (0..).zip(gpus).map(|(index, (pci, render))| {
            let gpu = listed(index, pci, render);
            if index == own { gpu.replace('}', r#","integrated":true}"#) } else { gpu }
        });
        let inventory = inventory(&format!("[{}]", gpus.collect::<Vec<_>>().join(",")), CARDS);
        let cards: Vec<u32> = (0..3).filter(|index| *index != own).collect();
        let gives = |count: &str, uses: &dyn Fn(&Gpu) -> usize| -> Vec<u32> {
            let request = Request::from_gpu_count(count).unwrap();
            inventory.select(&request, uses).unwrap().iter().map(|chosen| chosen.gpu.index).collect()
        };
        assert_eq!(gives("2", &|_| 0), cards);
        assert_eq!(gives("3", &|_| 0), [0, 1, 2]);
        // Every card is used five times, and the processor's own never.
        assert_eq!(gives("2", &|gpu| if gpu.integrated { 0 } else { 5 }), cards);
        let free = |count, is_free: &dyn Fn(&Gpu) -> bool| {
            let picked = inventory.pick_free(count, is_free)?;
            Some(picked.iter().map(|chosen| chosen.gpu.index).collect::<Vec<_>>())
        };
        assert_eq!(free(2, &|_| true), Some(cards.clone()));
        assert_eq!(free(1, &|gpu| gpu.index != cards[0]), Some(vec![cards[1]]));
        assert_eq!(free(1, &|gpu| gpu.integrated), Some(vec![own]), "no card is left");
        // Named, it is given.
        assert_eq!(select(&inventory, &own.to_string()), Ok(vec![own as usize]));
    }
}
