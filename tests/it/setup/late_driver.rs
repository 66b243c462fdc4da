//! A GPU that is named by its index, at starts of the machine at which its driver is late, or does not come.

use layout::{Gpu, Kfd, KfdNode, Machine, Module};

use crate::setup::laid::Laid;

const MEMORY: &str = "var/lib/rocworker/memory.json";
const SPEC: &str = "etc/cdi/amd.json";

/// Two cards, each with its unique id (0: it has none), as they are without and with their driver.
pub(crate) fn machine(ids: [u64; 2], is_up: bool) -> Machine {
    let cards = [("0000:03:00.0", 1, 128, 40_001), ("0000:43:00.0", 2, 129, 40_002)];
    let mut machine = Machine::new().put("/etc/group", "root:x:0:\nrender:x:992:\n");
    let mut kfd = Kfd::new(241).node(KfdNode::cpu(64));
    for ((address, card, render, gpu_id), id) in cards.into_iter().zip(ids) {
        let gpu = Gpu::amd(address, 0x7448);
        if is_up {
            let unique = format!("{id:016x}");
            machine = machine.gpu(gpu.card(card).render(render).attribute("unique_id", &unique));
            kfd = kfd.node(
                KfdNode::gpu(gpu_id, 0x7448, 110_000).at(address).render(render).property("unique_id", id),
            );
        } else {
            machine = machine.gpu(gpu.unbound());
        }
    }
    if is_up { machine.module(Module::new("amdgpu")).kfd(kfd) } else { machine }
}

/// The next start of a machine: what it remembers is there.
fn started(machine: &Machine, before: &Laid) -> Laid {
    let laid = Laid::out(machine, &before.text("etc/rocworker/config.yaml"));
    laid.put(MEMORY, &before.text(MEMORY));
    laid
}

#[track_caller]
fn gives(laid: &Laid, render: &str) {
    let spec = laid.text(SPEC);
    let others = ["renderD128", "renderD129", "renderD130"].into_iter().filter(|other| *other != render);
    assert!(spec.contains(render) && others.into_iter().all(|other| !spec.contains(other)), "{spec}");
}

#[test]
fn a_gpu_that_was_chosen_before_its_driver_came_is_the_one_that_its_driver_then_tells_of() {
    for ids in [[0xa1, 0xa2], [0, 0]] {
        let late = Laid::out(&machine(ids, false), "gpu-device-ids: \"1\"\n");
        let (code, said) = late.fails(&["apply"]);
        assert!(code == 1 && said.contains("GPU 1 is configured and left out"), "{said}");
        assert!(!late.path(SPEC).exists());

        let up = started(&machine(ids, true), &late);
        up.run(&["apply"]).success();
        gives(&up, "renderD129");
        let memory = up.text(MEMORY);
        assert_eq!(memory.contains("GPU-00000000000000a2"), ids[1] != 0, "{memory}");
        let times = up.times();
        up.run(&["apply"]).success();
        assert_eq!(up.times(), times);

        // From then on it is this card alone: neither one with an id nor one without takes its place.
        for other in [0xa3, 0].into_iter().filter(|other| *other != ids[1]) {
            let other = started(&machine([ids[0], other], true), &up);
            let (code, said) = other.fails(&["apply"]);
            assert!(code == 2 && said.contains("that GPU is not there any more"), "{said}");
        }
    }
}

#[test]
fn a_gpu_whose_driver_does_not_come_at_one_start_is_still_the_chosen_one() {
    for ids in [[0xa1, 0xa2], [0, 0]] {
        let up = Laid::out(&machine(ids, true), "gpu-device-ids: \"1\"\n");
        up.run(&["apply"]).success();
        let late = started(&machine(ids, false), &up);
        let (code, said) = late.fails(&["apply"]);
        assert!(code == 1 && said.contains("GPU 1 is configured and left out"), "{said}");
        assert_eq!(late.text(MEMORY), up.text(MEMORY));
        let again = started(&machine(ids, true), &late);
        again.run(&["apply"]).success();
        gives(&again, "renderD129");
    }
}

#[test]
fn a_partition_is_known_again_from_before_its_driver_came_and_after() {
    let instinct = || Machine::instinct(1, 8).put("/etc/group", "root:x:0:\nrender:x:992:\n");
    let up = Laid::out(&instinct(), "gpu-device-ids: \"3\"\n");
    up.run(&["apply"]).success();
    let spec = up.text(SPEC);
    let address = up.json(&["status"])["chosen"][0]["pci"].as_str().unwrap().to_owned();

    let late = started(&Machine::new().gpu(Gpu::amd(&address, 0x74a1).unbound()), &up);
    let (code, said) = late.fails(&["apply"]);
    assert!(code == 1 && said.contains("is configured and left out"), "{said}");
    let again = started(&instinct(), &late);
    again.run(&["apply"]).success();
    assert_eq!(again.text(SPEC), spec);

    // PinnedDevices as the whole function: what is there of it by then is its first partition, and not all of them.
    let late =
        Laid::out(&Machine::new().gpu(Gpu::amd(&address, 0x74a1).unbound()), "gpu-device-ids: \"0\"\n");
    late.fails(&["apply"]);
    let up = started(&instinct(), &late);
    up.run(&["apply"]).success();
    assert_eq!(up.json(&["status"])["chosen"][0]["partition"], 0);
    let names = up.json(&["cdi", "list"]);
    assert!(!names.to_string().contains("\"1\""), "{names}");
}
