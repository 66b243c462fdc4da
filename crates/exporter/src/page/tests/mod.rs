//! The page of machines made by hand: golden files, and what html5ever, which is Servo's parser, makes of each.

mod overviews;

use insta::assert_snapshot;
use scraper::{Html, Selector};
use telemetry::overview::Overview;

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
fn the_title_says_how_the_worst_gpus_are() {
    for ((name, overview), expected) in all().into_iter().zip([
        "worker-1: 8 GPUs healthy",
        "worker-1: 8 GPUs healthy",
        "worker-1: no AMD GPU",
        "worker-1: 1 of 3 GPUs health unknown",
        "worker-1: 1 of 3 GPUs unhealthy",
        "worker-1: 1 of 3 GPUs unhealthy",
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
    assert_eq!(texts(&page, "[aria-labelledby=processes-caption] td")[1..3], ["unknown", "unknown"]);
}

#[test]
fn a_page_of_64_partitions_is_small_and_its_tables_are_folded() {
    let text = render(&overviews::sixty_four(), Some("worker-1"));
    assert!(text.len() < 200_000, "{} bytes", text.len());
    let page = Html::parse_document(&text);
    assert_eq!(texts(&page, "details:not([open]) tbody tr").len(), 64);
    assert_eq!(texts(&page, "summary")[0], "8 partitions: 4 in use");
    assert!(texts(&page, "main p").contains(&"And 100 more: the metrics list each.".to_owned()));
}

#[test]
fn the_policy_names_the_style_that_is_there_and_nothing_else() {
    // That the digest is right, Chromium shows: it applies the style (tests/program/page).
    assert!(POLICY.starts_with("default-src 'none'; style-src 'sha256-"), "{}", *POLICY);
    assert!(!POLICY.contains("unsafe") && !POLICY.contains("script-src"), "{}", *POLICY);
    assert!(!STYLE.contains("url(") && !STYLE.contains("@import") && !STYLE.contains('<'));
}
