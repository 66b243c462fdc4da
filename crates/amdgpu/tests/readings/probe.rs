#[test]
fn probe() {
    for (name, machine) in [
        ("instinct", layout::Machine::instinct_in_trouble(2, 2)),
        ("phoenix", support::captures::phoenix()),
        ("6900", support::captures::rx6900xt()),
    ] {
        let dir = support::detect::scratch();
        machine.lay_out(dir.path(), layout::Nodes::Recorded).unwrap();
        let root = root::Root::open(dir.path()).unwrap();
        let m = amdgpu::Machine::read(&root);
        for g in &m.gpus {
            if g.vendor != amdgpu::Vendor::Amd {
                continue;
            }
            let c = amdgpu::readings::CardReadings::read(&root, g.pci.unwrap());
            println!("{name} {:#?}", c);
            println!("{:#?}", c.partition(&root, 1, "renderD129"));
        }
    }
}
