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

fn gpu(card: &str, render: &str) -> Gpu {
    Gpu { card: inventory::PciAddress::parse(card), render: Render::parse(render).unwrap(), ..Gpu::default() }
}

#[test]
fn a_node_is_the_card_that_the_kernel_says() {
    let sys = sysfs(&[
        ("226:128", "../../devices/pci0000:00/0000:00:08.1/0000:64:00.0/drm/renderD128"),
        ("226:1", "../../devices/pci0000:00/0000:00:08.1/0000:64:00.0/drm/card1"),
        ("226:2", "../../devices/pci0000:00/0000:00:08.1/0000:64:00.0/drm/card1/card1-DP-1"),
        ("226:129", "../../devices/pci0000:00/0000:00:01.1/0000:01:00.0/drm/renderD129"),
        ("226:130", "../../devices/platform/amdgpu_xcp.1/drm/renderD130"),
        ("226:131", "../../devices/platform/amdgpu_xcp_2/drm/renderD131"),
        ("226:3", "../../devices/platform/amdgpu_xcp_2/drm/card3"),
        ("226:132", "../../devices/platform/vgem/drm/renderD132"),
        ("241:0", "../../devices/virtual/kfd/kfd"),
        ("1:5", "../../devices/virtual/mem/zero"),
    ]);
    let devices = Devices::at(sys.path(), Path::new("/dev"));
    for (number, path, card, render, accepted) in [
        ((226, 128), "/dev/dri/renderD128", CARD, "renderD128", true),
        ((226, 128), "/dev/dri/renderD128", "0000:01:00.0", "renderD128", false),
        ((226, 128), "/dev/dri/renderD129", CARD, "renderD129", false),
        ((226, 129), "/dev/dri/renderD129", CARD, "renderD129", false),
        ((226, 1), "/dev/dri/card1", CARD, "renderD128", true),
        ((226, 1), "/dev/dri/card7", CARD, "renderD128", true),
        ((226, 2), "/dev/dri/card1-DP-1", CARD, "renderD128", false),
        ((226, 130), "/dev/dri/renderD130", CARD, "renderD130", true),
        ((226, 130), "/dev/dri/renderD130", CARD, "renderD131", false),
        ((226, 131), "/dev/dri/renderD131", CARD, "renderD131", true),
        ((226, 3), "/dev/dri/card3", CARD, "renderD131", true),
        ((226, 3), "/dev/dri/card4", CARD, "renderD131", false),
        ((226, 131), "/dev/dri/renderD131", "", "renderD131", true),
        ((226, 128), "/dev/dri/renderD128", "", "renderD128", false),
        ((226, 132), "/dev/dri/renderD132", CARD, "renderD132", false),
        ((241, 0), "/dev/kfd", CARD, "renderD128", false),
        ((1, 5), "/dev/dri/renderD128", CARD, "renderD128", false),
        ((1, 3), "/dev/dri/renderD128", CARD, "renderD128", false),
    ] {
        let gpu = gpu(card, render);
        let checked = devices
            .place_of(&node(number.0, number.1), Path::new(path))
            .and_then(|place| place.check(path, &gpu));
        assert_eq!(checked.is_ok(), accepted, "{number:?} {path} {card} {render}: {checked:?}");
        if let Err(error) = checked {
            assert!(error.contains(path), "{error}");
        }
    }
}

#[test]
fn a_card_that_another_driver_has_is_given_to_no_container() {
    let sys = sysfs(&[
        ("226:128", "../../devices/pci0000:00/0000:64:00.0/drm/renderD128"),
        ("226:129", "../../devices/pci0000:00/0000:65:00.0/drm/renderD129"),
        ("226:130", "../../devices/platform/amdgpu_xcp.1/drm/renderD130"),
    ]);
    let devices = Devices::at(sys.path(), Path::new("/dev"));
    let checked = |minor: u32| {
        let place = devices.place_of(&node(226, minor), Path::new("/dev/dri/x")).unwrap();
        devices.check_driver(&place)
    };
    let drive = |card: &str, driver: &str| {
        let folder = sys.path().join("dev/char/../../devices/pci0000:00").join(card);
        symlink(format!("../../../bus/pci/drivers/{driver}"), folder.join("driver")).unwrap();
    };
    drive("0000:64:00.0", "nvidia");
    assert_eq!(checked(128), Err("is driven by nvidia, not by amdgpu".to_owned()));
    assert!(checked(129).unwrap_err().starts_with("names no driver in sysfs: "));
    drive("0000:65:00.0", "amdgpu");
    assert_eq!((checked(129), checked(130)), (Ok(()), Ok(())));
}

#[test]
fn only_a_character_device_is_a_node() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("renderD128");
    std::fs::write(&file, "").unwrap();
    let dev = &Devices::at(Path::new("/sys"), Path::new("/dev"));
    let link = place.path().join("card1");
    symlink("/dev/null", &link).unwrap();
    for (path, sentence) in [
        (&file, "is no character device and therefore no GPU's"),
        (&link, "is no character device and therefore no GPU's"),
        (&place.path().join("none"), "cannot be examined: No such file"),
    ] {
        let error = Node::at(path, dev).unwrap_err();
        assert!(error.contains(sentence), "{error}");
    }
    let null = Node::at(Path::new("/dev/null"), dev).unwrap();
    assert_eq!((null.major, null.minor), (1, 3));
}

#[test]
fn a_node_belongs_to_no_gpu_only_where_the_kernel_was_asked() {
    let sentence = |sys: &Path| {
        let devices = Devices::at(sys, Path::new("/dev"));
        devices.place_of(&node(226, 128), Path::new("/dev/dri/renderD128")).unwrap_err()
    };
    assert!(sentence(sysfs(&[]).path()).contains("which is no GPU to the kernel"));
    let empty = tempfile::tempdir().unwrap();
    let sentence = sentence(empty.path());
    assert!(sentence.contains("/dev/char: mount sysfs"), "{sentence}");
}
