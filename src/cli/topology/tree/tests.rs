use std::path::PathBuf;

use inventory::topology::Topology;
use inventory::{DeviceNode, Gpu, Inventory, Kfd, Module, NodeFault, PciAddress, Unknown};

use super::*;

fn unknown<T>() -> inventory::Reading<T> {
    Err(Unknown::because("not read"))
}

#[test]
fn what_sysfs_does_not_name_is_a_branch_of_its_own() {
    let address = PciAddress { domain: 0, bus: 3, device: 0, function: 0 };
    let gpu = |index, pci| Gpu { index: Some(index), pci, ..Gpu::unread(Vendor::Amd, "not read") };
    let node = DeviceNode { path: "/dev/kfd".into(), state: Err(NodeFault::Missing(PathBuf::new())) };
    let inventory = Inventory {
        gpus: vec![gpu(0, Some(address)), gpu(1, None), gpu(2, None)],
        kfd: Kfd { topology: unknown(), parameter: None, node, hidden_nodes: 0 },
        amdgpu: Module { loaded: unknown(), version: unknown(), srcversion: unknown() },
        virtualization: None,
        unread: Vec::new(),
        contradictions: Vec::new(),
    };
    let card = Card {
        address,
        vendor: Vendor::Amd,
        host_bridge: None,
        bridges: Vec::new(),
        own_bridges: 0,
        numa_node: unknown(),
        local_cpus: unknown(),
        speed: unknown(),
        width: unknown(),
        gpus: vec![0],
    };
    let topology = Topology { cards: vec![card], links: Vec::new(), problems: Vec::new() };
    let text = text(Linked { inventory: &inventory, topology: &topology });
    let expected = "NUMA node not known\n\
                    └─ host bridge not known\n\
                    \x20  └─ 0000:03:00.0  GPU 0\n\
                    card not known  GPU 1-2\n";
    assert_eq!(anstream::adapter::strip_str(&text).to_string(), expected);
}
