//! The page of machines made by hand: golden files, and what html5ever, which is Servo's parser, makes of each.

mod overviews;

// The parser of that name, not this program's module.
use ::scraper::{Html, Selector};
use insta::assert_snapshot;
use telemetry::overview::{Daemon, Overview};

use super::{POLICY, STYLE, render};

/// A page with a line for each element, and without its style.
fn golden(overview: &Overview) -> String {
    render(overview, Some("worker-1")).replace(STYLE, "…").replace("><", ">\n<")
}

fn all() -> [(&'static str, Overview); 6] {
    [
        ("eight", overviews::eight()),
        ("sixty-four", overviews::sixty_four()),
        ("nothing", overviews::nothing()),
        ("unknown", overviews::unknown()),
        ("trouble", overviews::trouble()),
        ("hostile", overviews::hostile()),
    ]
}

fn texts(page: &Html, selector: &str) -> Vec<String> {
    let selector = Selector::parse(selector).unwrap();
    page.select(&selector).map(|element| element.text().collect()).collect()
}

#[test]
fn a_page_shows_gpus_processes_health_leases_drift_and_changes() {
    assert_snapshot!("eight", golden(&overviews::eight()));
    assert_snapshot!("nothing", golden(&overviews::nothing()));
    assert_snapshot!("unknown", golden(&overviews::unknown()));
    assert_snapshot!("trouble", golden(&overviews::trouble()));
    assert_snapshot!("hostile", golden(&overviews::hostile()));
    // Its first card stands for the others.
    let page = golden(&overviews::sixty_four());
    let first = page.split("</article>").next().unwrap();
    assert_snapshot!("first-of-sixty-four", first);
}

#[test]
fn a_parser_of_html_finds_no_error_and_each_id_once() {
    assert!(!Html::parse_document("<!doctype html><p></div>").errors.is_empty(), "it tells errors");
    for (name, overview) in all() {
        let text = render(&overview, Some("worker-1"));
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
                let is_elsewhere = ["metrics", ".", "data:,"].contains(&target);
                assert!(is_elsewhere || ids.contains(&target.trim_start_matches('#')), "{name}: {target}");
            }
        }
    }
}

#[test]
fn nothing_that_a_machine_says_becomes_an_element_or_turns_text() {
    let text = render(&overviews::hostile(), Some(overviews::HOSTILE));
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
    for ((name, overview), expected) in all().into_iter().zip([
        "worker-1: 8 cards healthy",
        "worker-1: 8 cards healthy",
        "worker-1: no AMD GPU",
        "worker-1: health unknown for 1 of 3 cards",
        "worker-1: 1 of 3 cards unhealthy",
        "worker-1: 1 of 3 cards unhealthy",
    ]) {
        let page = Html::parse_document(&render(&overview, Some("worker-1")));
        assert_eq!(texts(&page, "title"), [expected], "{name}");
    }
    let page = Html::parse_document(&render(&overviews::nothing(), None));
    assert_eq!(texts(&page, "h1"), ["this machine"]);
}

#[test]
fn what_is_unknown_is_never_a_number() {
    let page = Html::parse_document(&render(&overviews::unknown(), None));
    // Busy, memory, power, temperature, users.
    assert_eq!(texts(&page, "[aria-labelledby=card-0] dd"), ["unknown"; 5]);
    assert!(texts(&page, "[aria-labelledby=card-1] dd").is_empty(), "it sleeps");
    let [pid, rest @ ..] = &texts(&page, "[aria-labelledby=processes-caption] td")[..] else { panic!() };
    assert_eq!((pid.as_str(), rest), ("9", &["unknown"; 3].map(str::to_owned)[..]));
    assert_eq!(texts(&page, "[aria-labelledby=processes-caption] tbody th"), ["unknown"]);
}

#[test]
fn a_page_of_64_partitions_is_small_and_its_tables_are_folded() {
    let text = render(&overviews::sixty_four(), Some("worker-1"));
    assert!(text.len() < 200_000, "{} bytes", text.len());
    let page = Html::parse_document(&text);
    assert_eq!(texts(&page, "details:not([open]) tbody tr").len(), 64);
    assert_eq!(texts(&page, "summary")[0], "8 partitions: 4 in use");
    assert!(texts(&page, "main p").contains(&"And 100 more: see the metrics.".to_owned()));
}

#[test]
fn the_processes_with_the_most_vram_are_listed_and_unknown_is_less_than_any() {
    let page = Html::parse_document(&render(&overviews::sixty_four(), None));
    let pids = texts(&page, "[aria-labelledby=processes-caption] td:nth-of-type(1)");
    assert_eq!((pids.len(), pids[0].as_str(), pids[199].as_str()), (200, "10299", "10100"));
    let mut overview = overviews::eight();
    let [last, first] = [&overview.processes[4], &overview.processes[0]].map(|it| it.pid.to_string());
    overview.processes.reverse();
    let page = Html::parse_document(&render(&overview, None));
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
        let mut overview = overviews::sixty_four();
        for number in unknown {
            overview.cards[0].gpus[*number].processes = None;
        }
        let page = Html::parse_document(&render(&overview, None));
        assert_eq!(texts(&page, "summary")[0], expected);
    }
}

#[test]
fn without_a_process_or_a_card_the_page_says_what_is_known_of_them() {
    let idle = || Overview { processes: Vec::new(), ..overviews::eight() };
    let with = |change: fn(&mut Overview)| {
        let mut overview = idle();
        overview.cards.iter_mut().for_each(|card| card.gpus[0].processes = Some(0));
        change(&mut overview);
        overview
    };
    for (overview, expected) in [
        (with(|_| {}), "No process uses a GPU."),
        (with(|it| it.cards[7].gpus[0].only_compute = true), "No compute process uses a GPU."),
        (with(|it| it.cards[7].gpus[0].processes = None), "Which processes use the GPUs is not known."),
        (overviews::nothing(), "No AMD GPU was found."),
        (
            Overview { may_lack_cards: true, ..overviews::nothing() },
            "Which GPUs this machine has is not known.",
        ),
    ] {
        let text = render(&overview, Some("worker-1"));
        assert!(text.contains(expected), "{expected}: {text}");
        assert_eq!(text.contains("GPUs unknown</title>"), overview.may_lack_cards, "{text}");
    }
    let text = render(&with(|it| it.cards[0].gpus[0].only_compute = true), None);
    assert_eq!((text.matches("no compute process").count(), text.matches("no process").count()), (1, 7));
}

#[test]
fn fifty_reasons_are_listed_and_the_others_counted() {
    let reasons = |count: usize| Overview {
        unknown: (0..count).map(|number| format!("/sys/{number} does not answer")).collect(),
        ..overviews::eight()
    };
    for (count, listed, more) in [(50, 50, None), (51, 50, Some("And 1 more."))] {
        let page = Html::parse_document(&render(&reasons(count), None));
        assert_eq!(texts(&page, "[aria-labelledby=missing] li").len(), listed);
        assert_eq!(texts(&page, "[aria-labelledby=missing] p").first().map(String::as_str), more);
    }
}

#[test]
fn in_sync_is_said_only_where_the_configuration_is_in_force_and_applied() {
    let daemon = |config_in_force, problems| Overview {
        daemon: overviews::eight().daemon.map(|daemon| Daemon { config_in_force, problems, ..daemon }),
        ..overviews::eight()
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
        let page = Html::parse_document(&render(&daemon(config_in_force, problems), None));
        assert_eq!(texts(&page, "[aria-labelledby=drift] p"), expected);
    }
}

#[test]
fn the_policy_names_the_style_that_is_there_and_nothing_else() {
    // That the digest is right, Chromium shows: it applies the style (tests/program/page).
    assert!(POLICY.starts_with("default-src 'none'; style-src 'sha256-"), "{}", *POLICY);
    assert!(!POLICY.contains("unsafe") && !POLICY.contains("script-src"), "{}", *POLICY);
    assert!(!STYLE.contains("url(") && !STYLE.contains("@import") && !STYLE.contains('<'));
}
