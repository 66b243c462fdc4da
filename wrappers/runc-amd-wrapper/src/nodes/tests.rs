use super::*;
use std::os::unix::fs::symlink;

/// A sysfs with the given `dev/char` links, as the kernel lays them out.
fn sysfs(links: &[(&str, &str)]) -> tempfile::TempDir {
    let sys = tempfile::tempdir().unwrap();
    let chars = sys.path().join("dev/char");
    std::fs::create_dir_all(&chars).unwrap();
    for (number, target) in links {
        let device = chars.join(target);
        std::fs::create_dir_all(&device).unwrap();
        symlink(target, chars.join(number)).unwrap();
    }
    sys
}

fn node(major: u32, minor: u32) -> Node {
    Node { major, minor, mode: 0o660, uid: 0, gid: 992 }
}

const CARD: &str = "0000:64:00.0";

#[test]
fn a_node_is_the_card_that_the_kernel_says() {
    let sys = sysfs(&[
        ("226:128", "../../devices/pci0000:00/0000:00:08.1/0000:64:00.0/drm/renderD128"),
        ("226:129", "../../devices/pci0000:00/0000:00:01.1/0000:01:00.0/drm/renderD129"),
        ("226:130", "../../devices/platform/amdgpu_xcp.1/drm/renderD130"),
        ("226:131", "../../devices/platform/amdgpu_xcp_2/drm/renderD131"),
        ("226:3", "../../devices/platform/amdgpu_xcp_2/drm/card3"),
        ("226:132", "../../devices/platform/vgem/drm/renderD132"),
        ("241:0", "../../devices/virtual/kfd/kfd"),
        ("1:5", "../../devices/virtual/mem/zero"),
    ]);
    for (number, path, card, render, accepted) in [
        ((226, 128), "/dev/dri/renderD128", CARD, "/dev/dri/renderD128", true),
        ((226, 128), "/dev/dri/renderD128", "0000:01:00.0", "/dev/dri/renderD128", false),
        ((226, 129), "/dev/dri/renderD128", CARD, "/dev/dri/renderD128", false),
        ((226, 130), "/dev/dri/renderD130", CARD, "/dev/dri/renderD130", true),
        ((226, 130), "/dev/dri/renderD130", CARD, "/dev/dri/renderD131", false),
        ((226, 131), "/dev/dri/renderD131", CARD, "/dev/dri/renderD131", true),
        ((226, 3), "/dev/dri/card3", CARD, "/dev/dri/renderD131", true),
        ((226, 3), "/dev/dri/card4", CARD, "/dev/dri/renderD131", false),
        ((226, 132), "/dev/dri/renderD132", CARD, "/dev/dri/renderD132", false),
        ((241, 0), "/dev/kfd", CARD, "/dev/dri/renderD128", true),
        ((1, 5), "/dev/dri/renderD128", CARD, "/dev/dri/renderD128", false),
        ((1, 3), "/dev/dri/renderD128", CARD, "/dev/dri/renderD128", false),
    ] {
        let checked = node(number.0, number.1).check(
            Path::new(path),
            Some(Owner { card, render }),
            &Devices::at(sys.path(), Path::new("/dev")),
        );
        assert_eq!(checked.is_ok(), accepted, "{number:?} {path} {card} {render}: {checked:?}");
        if let Err(error) = checked {
            assert!(error.to_string().contains(path), "{error}");
        }
    }
}

#[test]
fn without_a_list_in_the_policy_any_card_of_amds_will_do_and_no_other() {
    let links = [
        ("226:128", "../../devices/pci0000:00/0000:64:00.0/drm/renderD128"),
        ("226:129", "../../devices/pci0000:00/0000:01:00.0/drm/renderD129"),
        ("226:130", "../../devices/pci0000:00/0000:02:00.0/drm/renderD130"),
        ("226:131", "../../devices/platform/amdgpu_xcp.1/drm/renderD131"),
    ];
    let sys = sysfs(&links);
    for (card, driver) in [("0000:64:00.0", "amdgpu"), ("0000:01:00.0", "nvidia")] {
        let target = format!("../../../bus/pci/drivers/{driver}");
        symlink(target, sys.path().join("devices/pci0000:00").join(card).join("driver")).unwrap();
    }
    let foreign = "belongs to the card 0000:01:00.0, which the driver nvidia has, not amdgpu";
    let bare = "belongs to the card 0000:02:00.0, which no driver has, not amdgpu";
    for (minor, said) in [(128, None), (129, Some(foreign)), (130, Some(bare)), (131, None)] {
        let path = format!("/dev/dri/renderD{minor}");
        let checked =
            node(226, minor).check(Path::new(&path), None, &Devices::at(sys.path(), Path::new("/dev")));
        match said {
            None => assert_eq!(checked.unwrap().map(|is| is.path().to_string()), Some(path)),
            Some(said) => {
                let error = checked.unwrap_err().to_string();
                assert!(error.contains(said), "{error}");
            }
        }
    }
}

/// One look after the other: what was learnt of a device counts for its own nodes alone.
#[test]
fn a_card_that_the_driver_lists_is_amds_with_all_its_nodes_and_with_no_other() {
    let links = [
        ("226:1", "../../devices/pci0000:00/0000:64:00.0/drm/card1"),
        ("226:128", "../../devices/pci0000:00/0000:64:00.0/drm/renderD128"),
        ("226:129", "../../devices/pci0000:00/0000:64:00.0/drm/card1/card1-DP-1"),
        ("226:130", "../../devices/pci0000:00/0000:64:00.1/drm/renderD130"),
        ("226:131", "../../devices/platform/amdgpu_xcp.1/drm/renderD131"),
        ("226:132", "../../devices/pci0000:00/module/drm/renderD132"),
    ];
    let sys = sysfs(&links);
    let driver = sys.path().join("bus/pci/drivers/amdgpu");
    std::fs::create_dir_all(&driver).unwrap();
    for name in ["0000:64:00.0", "module"] {
        symlink("anywhere", driver.join(name)).unwrap();
    }
    let devices = Devices::at(sys.path(), Path::new("/dev"));
    for (minor, is) in [
        (1, Ok(None)),
        (128, Ok(Some("renderD128"))),
        (129, Err("which is no GPU to the kernel")),
        (130, Err("the card 0000:64:00.1, which no driver has")),
        (131, Ok(Some("renderD131"))),
        (128, Ok(Some("renderD128"))),
        (132, Err("the card module, which no driver has")),
    ] {
        let checked = node(226, minor).check(Path::new("/dev/dri/x"), None, &devices);
        match (checked, is) {
            (Ok(found), Ok(is)) => assert_eq!(found.map(|found| found.to_string()).as_deref(), is, "{minor}"),
            (Err(error), Err(is)) => assert!(error.to_string().contains(is), "{minor}: {error}"),
            other => panic!("{minor}: {other:?}"),
        }
    }
}

#[test]
fn only_a_character_device_is_a_node() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("renderD128");
    std::fs::write(&file, "").unwrap();
    let dev = &Devices::at(Path::new("/sys"), Path::new("/dev"));
    let link = place.path().join("card1");
    symlink("/dev/null", &link).unwrap();
    for (path, said) in [
        (&file, "is no character device and therefore no GPU's"),
        (&link, "is no character device and therefore no GPU's"),
        (&place.path().join("none"), "cannot be examined: No such file"),
    ] {
        let error = Node::at(path, dev).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
    let null = Node::at(Path::new("/dev/null"), dev).unwrap();
    assert_eq!((null.major, null.minor), (1, 3));
}

#[test]
fn a_node_belongs_to_no_gpu_only_where_the_kernel_was_asked() {
    let said = |sys: &Path| {
        let dev = Path::new("/dev");
        let owner = Some(Owner { card: CARD, render: "/dev/dri/renderD128" });
        let checked = node(226, 128).check(&dev.join("dri/renderD128"), owner, &Devices::at(sys, dev));
        checked.unwrap_err().to_string()
    };
    assert!(said(sysfs(&[]).path()).contains("which is no GPU to the kernel"));
    let empty = tempfile::tempdir().unwrap();
    let said = said(empty.path());
    assert!(said.contains("/dev/char: mount sysfs"), "{said}");
}
