//! A synthetic Instinct: what no captured card has.

use amdgpu::readings::{of_partition, pcie_traffic};
use inventory::readings::{Engine, PartitionReadings, Pcie, RasBlock, RetiredPages};
use layout::Machine;

use crate::readings::{Laid, megahertz, temperature};

const FIRST: &str = "0000:05:00.0";
const SECOND: &str = "0000:15:00.0";

fn engine(name: &'static str, instance: u32, percent: u32) -> Engine {
    Engine { name: name.into(), instance: Some(instance), busy: f64::from(percent) / 100.0 }
}

#[test]
fn a_card_has_what_belongs_to_the_card_and_its_partitions_have_only_what_is_theirs() {
    let laid = Laid::out(&Machine::instinct_with_readings(2, 2));
    let card = laid.card(SECOND);
    assert_eq!(card.faults, []);
    let junction = temperature("junction", 52.0, Some((100.0, 110.0)));
    let mem = temperature("mem", 42.0, Some((105.0, 115.0)));
    assert_eq!(card.temperatures, [junction, mem, temperature("vrsoc", 34.0, None)]);
    assert_eq!(card.power.watts, Some(432.0), "hwmon's, not gpu_metrics' 433");
    assert_eq!(card.energy_joules, Some(2_000_001.0));
    assert_eq!(card.busy_percent, Some(62.0), "the small file's, not gpu_metrics' 63");
    assert_eq!(card.memory_busy_percent, Some(32.0));
    assert_eq!(card.engines, [], "the engines are the partitions'");
    let pcie = Pcie {
        speed: Some(16e9),
        max_speed: Some(32e9),
        width: Some(8),
        max_width: Some(16),
        bytes_per_second: Some(22e6 / 8.0),
        replays: Some(108),
        replay_rollovers: Some(302),
        naks_sent: Some(402),
        naks_received: Some(502),
        recoveries: Some(202),
    };
    assert_eq!(card.pcie, pcie);
    let clock =
        |domain, instance| card.clocks.iter().find(|it| (&*it.domain, it.instance) == (domain, instance));
    assert_eq!(clock("sclk", None), Some(&megahertz("sclk", None, 1_702)));
    assert_eq!(clock("sclk", Some(7)), Some(&megahertz("sclk", Some(7), 1_518)));
    assert_eq!(clock("mclk", None), Some(&megahertz("mclk", None, 1_302)));
    assert_eq!(clock("fclk", None), Some(&megahertz("fclk", None, 1_802)), "pp_dpm_fclk alone has it");
    assert_eq!(clock("socclk", Some(3)), Some(&megahertz("socclk", Some(3), 1_114)));
    assert_eq!((card.xgmi.width, card.xgmi.speed), (Some(16), Some(32e9)));
    assert_eq!(card.xgmi.links.len(), 7);
    let link = card.xgmi.links[6];
    assert_eq!(
        (link.up, link.read_bytes, link.written_bytes),
        (Some(true), Some(10_106 * 1024), Some(20_106 * 1024))
    );
    assert_eq!(card.throttle.samples, Some(1_000_002));
    assert_eq!(card.throttle.residency[1], ("power".into(), 1_002));
    assert_eq!(card.throttle.status, [], "this version does not say");
    assert_eq!(card.retired_pages, Some(RetiredPages::default()), "an empty list is no bad page");
    assert_eq!(card.hang, None);

    let first = of_partition(&laid.root, &card, 0, "renderD144");
    let of_first = [10, 11, 12, 13].map(|percent| engine("gfx", percent - 10, percent + 1));
    let others = [engine("vcn", 0, 71), engine("jpeg", 0, 81), engine("jpeg", 1, 91)];
    assert_eq!(first.engines, [&of_first[..], &others[..]].concat());
    assert_eq!(first.busy_percent, Some(12.5));
    let second = of_partition(&laid.root, &card, 1, "renderD145");
    assert_eq!(second.engines[0], engine("gfx", 0, 15));
    assert_eq!(second.busy_percent, Some(16.5));
    assert_eq!(second.clocks[0], megahertz("sclk", Some(0), 1_515), "its first XCC is the card's fifth");
    assert_eq!(second.faults, []);
}

#[test]
fn a_partition_without_a_file_of_its_own_has_what_its_card_says_of_it() {
    let own = "/sys/class/drm/renderD129/device/xcp";
    let laid = Laid::out(&Machine::instinct_with_readings(1, 8).remove(own));
    let card = laid.card(FIRST);
    let second = of_partition(&laid.root, &card, 1, "renderD129");
    assert_eq!((second.busy_percent, second.clocks.len()), (Some(11.0), 0));
    assert_eq!(
        of_partition(&laid.root, &card, 8, "renderD999"),
        PartitionReadings::default(),
        "there is no ninth"
    );
}

#[test]
fn the_engines_of_a_whole_card_are_the_cards() {
    let laid = Laid::out(&Machine::instinct_with_readings(1, 1));
    let card = laid.card(FIRST);
    assert_eq!(card.engines.len(), 8 + 1 + 2);
    assert_eq!(card.engines[7], engine("gfx", 7, 17));
    assert_eq!(card.partitions, []);
}

#[test]
fn a_card_in_trouble_says_so() {
    let laid = Laid::out(&Machine::instinct_in_trouble(2, 1));
    let broken = laid.card(FIRST);
    assert_eq!(broken.faults, []);
    assert_eq!(broken.hang, Some(true));
    let umc = RasBlock {
        block: "umc".to_owned(),
        correctable: Some(6),
        deferred: Some(41),
        uncorrectable: Some(16),
    };
    assert!(broken.ras.contains(&umc), "{:?}", broken.ras);
    let gfx =
        RasBlock { block: "gfx".to_owned(), correctable: Some(2), deferred: None, uncorrectable: Some(12) };
    assert!(broken.ras.contains(&gfx), "a block without deferred errors has no count of them");
    assert_eq!(broken.retired_pages, Some(RetiredPages { retired: 3, pending: 2, unreservable: 1 }));
    assert_eq!(broken.xgmi.links[6].up, Some(false));
    let residency =
        [("prochot", 11), ("power", 1_023), ("socket_thermal", 33), ("vr_thermal", 44), ("hbm_thermal", 55)]
            .map(|(reason, samples)| (reason.into(), samples));
    assert_eq!(broken.throttle.residency, residency);

    let throttled = laid.card(SECOND);
    let status = [("power", true), ("current", false), ("thermal", true), ("other", false)]
        .map(|(reason, is)| (reason.into(), is));
    assert_eq!(throttled.throttle.status, status);
    assert_eq!(throttled.hang, Some(false), "the dump is the other card's");
    assert_eq!(
        throttled.temperatures[2..],
        [temperature("hbm0", 44.0, None), temperature("hbm1", 45.0, None)]
    );
}

#[test]
fn nothing_is_known_of_a_suspended_card_but_that_it_is() {
    for state in ["suspended", "suspending"] {
        let machine = Machine::instinct_with_readings(1, 2);
        let status = format!("/sys/bus/pci/devices/{FIRST}/power/runtime_status");
        let laid = Laid::out(&machine.put(&status, format!("{state}\n")));
        let card = laid.card(FIRST);
        let expected = inventory::readings::CardReadings {
            power_state: Some(state.to_owned()),
            ..inventory::readings::CardReadings::default()
        };
        assert_eq!(card, expected);
        assert_eq!(of_partition(&laid.root, &card, 1, "renderD129"), PartitionReadings::default());
        let traffic = pcie_traffic(&laid.root, FIRST.parse().unwrap()).unwrap_err().to_string();
        assert_eq!(traffic, "card 0000:05:00.0 is suspended, and is not woken to be asked");
        let detected = amdgpu::read(&laid.root);
        let gpu = &detected.gpus[0];
        assert_eq!(gpu.product_name.as_ref().unwrap_err().to_string(), traffic);
        assert!(gpu.usable(), "{:?}", gpu.problems);
        assert_eq!(
            gpu.card_uuid.unwrap().to_string(),
            "GPU-5ca1ab1e00010000",
            "KFD says it without the card"
        );
        let partition = gpu.partition.as_ref().unwrap();
        assert_eq!(partition.compute.as_ref().unwrap_err().to_string(), traffic);
    }
}

#[test]
fn a_card_that_has_gone_has_nothing_and_no_fault() {
    let laid = Laid::out(&Machine::instinct_with_readings(1, 1));
    let there = laid.card(FIRST);
    assert!(there.power_state.is_some());
    let device = laid.folder.path().join("sys/devices/pci0000:05");
    std::fs::remove_dir_all(device).unwrap();
    assert_eq!(laid.card(FIRST), inventory::readings::CardReadings::default());
    assert_eq!(of_partition(&laid.root, &laid.card(FIRST), 0, "renderD128"), PartitionReadings::default());
}
