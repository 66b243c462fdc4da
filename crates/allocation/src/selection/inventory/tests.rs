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
