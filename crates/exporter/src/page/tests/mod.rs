//! The page of machines made by hand: golden files, and what html5ever, which is Servo's parser, makes of each.

mod snapshots;

// The parser of that name, not this program's module.
use ::scraper::{Html, Selector};
use insta::assert_snapshot;
use inventory::published::{Client, Published};
use inventory::readings::{CardReadings, Fault};
use inventory::{Snapshot, Unknown};

use super::{POLICY, STYLE, render};

/// A page with a line for each element, and without its style.
fn golden(snapshot: &Snapshot) -> String {
    render(snapshot, Some("worker-1"), None).replace(STYLE, "…").replace("><", ">\n<")
}

fn all() -> [(&'static str, Snapshot); 6] {
    [
        ("eight", snapshots::eight()),
        ("sixty-four", snapshots::sixty_four()),
        ("nothing", snapshots::nothing()),
        ("unknown", snapshots::unknown()),
        ("trouble", snapshots::trouble()),
        ("hostile", snapshots::hostile()),
    ]
}

fn texts(page: &Html, selector: &str) -> Vec<String> {
    let selector = Selector::parse(selector).unwrap();
    page.select(&selector).map(|element| element.text().collect()).collect()
}

#[test]
fn a_page_shows_gpus_processes_health_leases_drift_and_changes() {
    assert_snapshot!("eight", golden(&snapshots::eight()));
    assert_snapshot!("nothing", golden(&snapshots::nothing()));
    assert_snapshot!("unknown", golden(&snapshots::unknown()));
    assert_snapshot!("trouble", golden(&snapshots::trouble()));
    assert_snapshot!("hostile", golden(&snapshots::hostile()));
    // Its first card stands for the others.
    let page = golden(&Snapshot { processes: Vec::new(), ..snapshots::sixty_four() });
    let first = page.split("</article>").next().unwrap();
    assert_snapshot!("first-of-sixty-four", first);
}

#[test]
fn a_parser_of_html_finds_no_error_and_each_id_once() {
    assert!(!Html::parse_document("<!doctype html><p></div>").errors.is_empty(), "it tells errors");
    for (name, snapshot) in all() {
        let text = render(&snapshot, Some("worker-1"), None);
        let page = Html::parse_document(&text);
        assert!(page.errors.is_empty(), "{name}: {:?}", page.errors);
        let with_id = Selector::parse("[id]").unwrap();
        let mut ids: Vec<_> = page.select(&with_id).filter_map(|element| element.value().id()).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "{name}");
        for attribute in ["aria-labelledby", "href"] {
            let referring = Selector::parse(&format!("[{attribute}]")).unwrap();
            for element in page.select(&referring) {
                let target = element.value().attr(attribute).unwrap();
                let is_elsewhere = ["metrics", ".", "?refresh=5", "data:,"].contains(&target);
                assert!(is_elsewhere || ids.contains(&target.trim_start_matches('#')), "{name}: {target}");
            }
        }
    }
}

#[test]
fn nothing_that_a_machine_says_becomes_an_element_or_turns_text() {
    let text = render(&snapshots::hostile(), Some(snapshots::HOSTILE), None);
    let page = Html::parse_document(&text);
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    for selector in ["script", "[onerror]", "[style]", "img", "iframe", "form"] {
        assert!(texts(&page, selector).is_empty(), "{selector}");
    }
    let steers = |c: char| c.is_control() || "\u{202e}\u{2066}".contains(c);
    let body = text.split_once("</style>").unwrap().1;
    assert_eq!(body.matches(steers).count(), 0);
    let seen = "</td><script>alert(1)</script>\"'&amp;<!--\\u{202e}\\u{2066}\\u{1b}[31m\\r\\n\\u{0}";
    assert!(texts(&page, "bdi").iter().filter(|text| *text == seen).count() > 20);
    assert!(texts(&page, "title")[0].starts_with(seen));
    assert_eq!(texts(&page, "h1"), [seen]);
}

#[test]
fn the_title_says_how_the_worst_cards_are() {
    for ((name, snapshot), expected) in all().into_iter().zip([
        "worker-1: 8 cards healthy",
        "worker-1: 8 cards healthy",
        "worker-1: no AMD GPU",
        "worker-1: health unknown for 1 of 3 cards",
        "worker-1: 1 of 3 cards unhealthy",
        "worker-1: 1 of 3 cards unhealthy",
    ]) {
        let page = Html::parse_document(&render(&snapshot, Some("worker-1"), None));
        assert_eq!(texts(&page, "title"), [expected], "{name}");
    }
    let page = Html::parse_document(&render(&snapshots::nothing(), None, None));
    assert_eq!(texts(&page, "h1"), ["this machine"]);
}

#[test]
fn a_page_that_is_asked_to_loads_itself_again_and_links_to_one_that_does_not() {
    let refresh = |refresh| {
        let page = Html::parse_document(&render(&snapshots::eight(), None, refresh));
        assert!(page.errors.is_empty(), "{:?}", page.errors);
        let meta = Selector::parse("meta[http-equiv=refresh]").unwrap();
        let content = page.select(&meta).filter_map(|meta| meta.value().attr("content")).collect::<String>();
        let links = Selector::parse("header a").unwrap();
        let links = page.select(&links).filter_map(|link| link.value().attr("href").map(str::to_owned));
        (content, links.collect::<Vec<_>>())
    };
    assert_eq!(refresh(None), (String::new(), vec![".".to_owned(), "?refresh=5".to_owned()]));
    assert_eq!(refresh(Some(30)), ("30".to_owned(), vec![".".to_owned()]));
}

#[test]
fn what_is_unknown_is_never_a_number() {
    let page = Html::parse_document(&render(&snapshots::unknown(), None, None));
    assert!(texts(&page, "[aria-labelledby=card-0] dd").is_empty(), "no reading has a row of its own");
    let sentence = "Unknown: busy, memory in use, power, temperature: ";
    assert!(texts(&page, "[aria-labelledby=card-0] p.unknown")[0].starts_with(sentence));
    assert!(texts(&page, "[aria-labelledby=card-1] dd").is_empty(), "it sleeps");
    let [pid, rest @ ..] = &texts(&page, "[aria-labelledby=processes-caption] td")[..] else { panic!() };
    assert_eq!((pid.as_str(), rest), ("9", &["unknown"; 3].map(str::to_owned)[..]));
    assert_eq!(texts(&page, "[aria-labelledby=processes-caption] tbody th"), ["unknown"]);
}

#[test]
fn a_page_of_64_partitions_is_small_and_its_tables_are_folded() {
    let text = render(&snapshots::sixty_four(), Some("worker-1"), None);
    assert!(text.len() < 200_000, "{} bytes", text.len());
    let page = Html::parse_document(&text);
    assert_eq!(texts(&page, "details:not([open]) tbody tr").len(), 64);
    assert_eq!(texts(&page, "summary")[0], "8 partitions: 8 in use");
    assert!(texts(&page, "main p").contains(&"And 100 more: see the metrics.".to_owned()));
}

#[test]
fn the_processes_with_the_most_vram_are_listed_and_unknown_is_less_than_any() {
    let page = Html::parse_document(&render(&snapshots::sixty_four(), None, None));
    let pids = texts(&page, "[aria-labelledby=processes-caption] td:nth-of-type(1)");
    assert_eq!((pids.len(), pids[0].as_str(), pids[199].as_str()), (200, "10299", "10100"));
    let mut snapshot = snapshots::eight();
    let [last, first] = [&snapshot.processes[4], &snapshot.processes[0]].map(|it| it.pid.to_string());
    snapshot.processes.reverse();
    let page = Html::parse_document(&render(&snapshot, None, None));
    let pids = texts(&page, "[aria-labelledby=processes-caption] td:nth-of-type(1)");
    assert_eq!((pids.len(), &pids[4]), (5, &last), "of {first} to {last}, only of the last it is unknown");
}

#[test]
fn a_use_that_is_partly_unknown_is_at_least_so_much() {
    for (unknown, expected) in [
        (&[][..], "8 partitions: 4 in use"),
        (&[0, 1], "8 partitions: at least 3 in use"),
        (&[0, 1, 2, 3, 4, 5, 6, 7], "8 partitions: use unknown"),
    ] {
        let mut snapshot = Snapshot { processes: Vec::new(), ..snapshots::sixty_four() };
        for number in unknown {
            snapshot.cards[0].gpus[*number].compute_processes = None;
        }
        let page = Html::parse_document(&render(&snapshot, None, None));
        assert_eq!(texts(&page, "summary")[0], expected);
    }
}

#[test]
fn what_is_unknown_has_the_reason_of_its_own_files() {
    let fault = |file: &str, reason: &str| Fault {
        file: format!("/sys/bus/pci/devices/0000:00:00.0/{file}").into(),
        reason: Unknown::because(reason),
    };
    let readings = |change: fn(&mut CardReadings), fault: Fault| {
        let mut snapshot = snapshots::eight();
        change(&mut snapshot.cards[0].readings);
        snapshot.cards[0].readings.faults.push(fault);
        snapshot
    };
    let of_partitions = |faults: &[Fault]| {
        let mut snapshot = snapshots::sixty_four();
        for part in snapshot.cards[0].gpus.iter_mut().filter_map(|gpu| gpu.part.as_mut()) {
            part.readings.busy_percent = None;
            part.readings.faults = faults.to_vec();
        }
        snapshot
    };
    let mut uncounted = snapshots::eight();
    uncounted.cards[0].gpus[0].compute_processes = None;
    for (snapshot, expected) in [
        // A counter of RAS says nothing about how busy the GPU is.
        (
            readings(|it| it.busy_percent = None, fault("ras/umc_err_count", "umc fails")),
            "Unknown: busy: amdgpu reports none.",
        ),
        (
            readings(|it| it.busy_percent = None, fault("gpu_busy_percent", "busy fails")),
            "Unknown: busy: busy fails.",
        ),
        (
            readings(|it| it.power.watts = None, fault("hwmon/hwmon2", "hwmon fails")),
            "Unknown: power: hwmon fails.",
        ),
        (
            readings(|it| it.temperatures.clear(), fault("hwmon/hwmon2/temp1_crit", "limit fails")),
            "Unknown: temperature: amdgpu reports none.",
        ),
        (uncounted, "Unknown: used by: KFD's files do not say which processes use it."),
        (of_partitions(&[]), "Unknown: busy: amdgpu reports none."),
        (of_partitions(&[fault("xcp/xcp_metrics", "xcp fails")]), "Unknown: busy: xcp fails; and 7 more."),
    ] {
        let page = Html::parse_document(&render(&snapshot, None, None));
        assert_eq!(texts(&page, "p.unknown"), [expected]);
    }
}

/// A process has a card open, and nothing says whether it holds memory there.
fn draws(snapshot: &mut Snapshot, card: usize) {
    let pci = snapshot.cards[card].pci.unwrap().to_string();
    let client = Client { pid: 99, pci, vram_bytes: None };
    snapshot.daemon.as_mut().unwrap().clients.push(client);
}

#[test]
fn without_a_process_or_a_card_the_page_says_what_is_known_of_them() {
    let idle = || Snapshot { processes: Vec::new(), ..snapshots::eight() };
    let with = |change: fn(&mut Snapshot)| {
        let mut snapshot = idle();
        snapshot.cards.iter_mut().for_each(|card| card.gpus[0].compute_processes = Some(0));
        change(&mut snapshot);
        snapshot
    };
    for (snapshot, expected) in [
        (with(|_| {}), "No process uses a GPU."),
        (with(|it| draws(it, 7)), "No compute process uses a GPU."),
        (
            with(|it| it.cards[7].gpus[0].compute_processes = None),
            "Which processes use the GPUs is not known.",
        ),
        (snapshots::nothing(), "No AMD GPU was found."),
        (
            Snapshot { gaps: vec!["no PCI device can be seen".to_owned()], ..snapshots::nothing() },
            "Which GPUs this machine has is not known.",
        ),
    ] {
        let text = render(&snapshot, Some("worker-1"), None);
        assert!(text.contains(expected), "{expected}: {text}");
        assert_eq!(text.contains("GPUs unknown</title>"), snapshot.may_lack_cards(), "{text}");
    }
    let text = render(&with(|it| draws(it, 0)), None, None);
    assert_eq!((text.matches("no compute process").count(), text.matches("no process").count()), (1, 7));
}

#[test]
fn fifty_reasons_are_listed_and_the_others_counted() {
    let reasons = |count: usize| Snapshot {
        unjudged: (0..count).map(|number| format!("/sys/{number} does not answer")).collect(),
        ..snapshots::eight()
    };
    for (count, listed, more) in [(50, 50, None), (51, 50, Some("And 1 more."))] {
        let page = Html::parse_document(&render(&reasons(count), None, None));
        assert_eq!(texts(&page, "[aria-labelledby=missing] li").len(), listed);
        assert_eq!(texts(&page, "[aria-labelledby=missing] p").first().map(String::as_str), more);
    }
}

#[test]
fn in_sync_is_said_only_where_the_configuration_is_in_force_and_applied() {
    let daemon = |config_in_force, problems| Snapshot {
        daemon: snapshots::eight().daemon.map(|daemon| Published { config_in_force, problems, ..daemon }),
        ..snapshots::eight()
    };
    for (config_in_force, problems, expected) in [
        (Some(true), Some(0), &["In sync: everything is as configured."][..]),
        (None, None, &["No managed path differs, and no restart is pending."]),
        (
            Some(false),
            Some(1),
            &[
                "The configuration file is not in force: see rocworker status.",
                "1 configured part is not applied: see rocworker status.",
                "No managed path differs, and no restart is pending.",
            ],
        ),
    ] {
        let page = Html::parse_document(&render(&daemon(config_in_force, problems), None, None));
        assert_eq!(texts(&page, "[aria-labelledby=drift] p"), expected);
    }
}

#[test]
fn the_policy_names_the_style_that_is_there_and_nothing_else() {
    // Chromium shows that the digest is right: it applies the style (crates/exporter/tests/it/page).
    assert!(POLICY.starts_with("default-src 'none'; style-src 'sha256-"), "{}", *POLICY);
    assert!(!POLICY.contains("unsafe") && !POLICY.contains("script-src"), "{}", *POLICY);
    assert!(!STYLE.contains("url(") && !STYLE.contains("@import") && !STYLE.contains('<'));
}
