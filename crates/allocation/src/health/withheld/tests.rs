use super::*;
use crate::health::{Deduction, GpuHealth, Quarantine, State};

/// 2026-11-23T10:00:00Z.
const NOW: u64 = 1_795_428_000;

fn pci(text: &str) -> PciAddress {
    PciAddress::parse(text).unwrap()
}

/// What the daemon would write.
fn health() -> Health {
    let gpu = |address: &str, quarantine: Option<&str>, leftover: Option<&str>| GpuHealth {
        pci: pci(address),
        state: State::Unhealthy,
        score: Some(0),
        hang: Some(true),
        deductions: vec![Deduction {
            rule: "hang".into(),
            points: 100,
            reason: "A ring hangs.".into(),
            evidence: "amdgpu 0000:65:00.0: ring gfx timeout".into(),
        }],
        unknown: vec!["\"quarantine\":null".into()],
        quarantine: quarantine.map(|reason| Quarantine {
            since: NOW - 60,
            unhealthy_at: NOW,
            reason: reason.into(),
            rules: vec!["hang".into()],
        }),
        leftover: leftover.map(str::to_owned),
    };
    Health {
        schema_version: Health::SCHEMA_VERSION,
        written_at: NOW,
        gpus: vec![
            gpu("0000:64:00.0", None, None),
            gpu("0000:65:00.0", Some("A ring hangs."), None),
            gpu("0000:66:00.0", None, Some("the process 7 is left on it")),
            gpu("10000:67:00.0", Some("\u{1b}[31mred\n"), Some("")),
        ],
        unknown: vec![],
    }
}

#[test]
fn what_the_daemon_writes_says_which_cards_are_withheld_and_why() {
    let withheld = Withheld::parse(&health().to_json().unwrap(), NOW).unwrap();
    let reasons = |address: &str| {
        let card = withheld.card(pci(address))?;
        Some((card.quarantine.as_deref(), card.leftover.as_deref()))
    };
    let since = "is quarantined since 2026-11-23T09:59:00Z: ";
    let (hangs, red) = (format!("{since}A ring hangs"), format!("{since} [31mred "));
    for (address, expected) in [
        ("0000:64:00.0", None),
        ("0000:63:00.0", None),
        ("0000:65:00.0", Some((Some(&*hangs), None))),
        ("0000:66:00.0", Some((None, Some("cannot be leased yet: the process 7 is left on it")))),
        ("10000:67:00.0", Some((Some(&*red), Some("cannot be leased yet: ")))),
    ] {
        assert_eq!(reasons(address), expected, "{address}");
    }
}

#[test]
fn a_text_that_says_nothing_of_now_is_refused_with_the_reason() {
    let said = |text: &str, now| Withheld::parse(text, now).map_err(|error| error.to_string());
    let text = health().to_json().unwrap();
    for now in [NOW - 5, NOW, NOW + 60] {
        assert_eq!(said(&text, now).map(|withheld| withheld.is_empty()), Ok(false), "{now}");
        assert!(health().at(now).is_some(), "{now}: the exporter agrees");
    }
    for (now, shown) in
        [(NOW - 6, "2026-11-23T09:59:54Z"), (NOW + 61, "2026-11-23T10:01:01Z"), (0, "1970-01-01T00:00:00Z")]
    {
        let expected = format!("was written at 2026-11-23T10:00:00Z, which says nothing of now, {shown}");
        assert_eq!(said(&text, now), Err(expected), "{now}");
        assert!(health().at(now).is_none(), "{now}: the exporter agrees");
    }
    let newer = "has schema_version 2 of a newer version (this one reads 1)";
    let not = |problem: &str| format!("is no account of the GPUs' health: {problem}");
    for (text, expected) in [
        (r#"{"schema_version":2,"written_at":1795428000,"gpus":[]}"#, newer.to_owned()),
        (r#"{"schema_version":2,"cards":{}}"#, newer.to_owned()),
        ("", not("the text ends where a value should be")),
        ("[]", not("expected an object, found a list")),
        ("{\"schema_version\":1,\n\"gpus\":[]}", not("the key \"written_at\" is missing")),
        (&text[..text.len() / 2], not("the text ends where a value should be")),
        (
            &text.replace("0000:65:00.0\",\"state", "65\",\"state"),
            not("expected a PCI address like \"0000:64:00.0\", found \"65\""),
        ),
        (&text.replace("\"since\"", "\"sinse\""), not("the key \"since\" is missing")),
        (&text.replace("{\"pci\"", "{\"leftover\":null,\"pci\""), not("the key \"leftover\" appears twice")),
        (&text.replace(&NOW.to_string(), "-1"), not("expected a whole number in its range, found \"-1\"")),
    ] {
        let sentence = said(text, NOW).unwrap_err();
        // Where it is in the line is the scanner's own test.
        assert_eq!(sentence.split(" (line").next(), Some(&*expected), "{text}");
    }
}

#[test]
fn a_long_reason_is_cut() {
    let mut health = health();
    health.gpus[1].quarantine.as_mut().unwrap().reason = "é".repeat(1000);
    let withheld = Withheld::parse(&health.to_json().unwrap(), NOW).unwrap();
    let reason = withheld.card(pci("0000:65:00.0")).unwrap().quarantine.clone().unwrap();
    assert!(reason.ends_with(&format!(": {}…", "é".repeat(LONGEST_REASON))), "{reason}");
}
