use super::*;
use inventory::health::{Deduction, GpuHealth, Quarantine, State};

/// 2026-11-23T10:00:00Z.
const NOW: u64 = 1_795_428_000;

/// Parses a fresh health file.
fn fresh(text: &str) -> Withheld {
    let (withheld, old) = Withheld::parse(text, NOW, || None).unwrap();
    assert_eq!(old, None);
    withheld
}

fn pci(text: &str) -> PciAddress {
    PciAddress::parse(text).unwrap()
}

/// A health file as the daemon writes it.
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
        boot_id: None,
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
    let withheld = fresh(&health().to_json().unwrap());
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
fn a_text_that_is_not_of_now_withholds_what_it_has_in_quarantine_until_the_machine_starts_anew() {
    let read = |health: &Health, now, boot: Option<&str>| {
        let text = health.to_json().unwrap();
        let (withheld, old) = Withheld::parse(&text, now, || boot.map(str::to_owned)).unwrap();
        assert_eq!(old.is_none(), health.is_fresh(now), "{now}: the exporter agrees");
        (withheld, old.map(|old| old.to_string()))
    };
    for now in [NOW - 5, NOW, NOW + 60] {
        let (withheld, old) = read(&health(), now, None);
        assert!(!withheld.is_empty() && old.is_none(), "{now}");
    }
    for (now, shown) in
        [(NOW - 6, "2026-11-23T09:59:54Z"), (NOW + 61, "2026-11-23T10:01:01Z"), (0, "1970-01-01T00:00:00Z")]
    {
        let expected = format!("was written at 2026-11-23T10:00:00Z, which says nothing of now, {shown}");
        let (withheld, old) = read(&health(), now, None);
        assert_eq!(old, Some(expected), "{now}");
        assert!(withheld.card(pci("0000:65:00.0")).unwrap().quarantine.is_some(), "{now}");
        let other = withheld.card(pci("10000:67:00.0")).unwrap();
        assert_eq!((other.quarantine.is_some(), &other.leftover), (true, &None), "{now}");
        assert_eq!(withheld.card(pci("0000:66:00.0")), None, "{now}: what was left may be gone");
    }
    for (written_in, boot, lasts) in [
        (Some("a"), Some("a"), true),
        (Some("a"), Some("b"), false),
        (Some("a"), None, true),
        (None, Some("b"), true),
    ] {
        let health = Health { boot_id: written_in.map(str::to_owned), ..health() };
        let (withheld, old) = read(&health, NOW + 61, boot);
        assert_eq!((withheld.is_empty(), old.is_some()), (!lasts, true), "{written_in:?} {boot:?}");
        assert_eq!(health.is_of_another_boot(boot), !lasts, "{written_in:?} {boot:?}: the daemon agrees");
    }
}

#[test]
fn a_text_that_says_nothing_is_refused_with_the_reason() {
    let parsed = |text: &str| Withheld::parse(text, NOW, || None).map_err(|error| error.to_string());
    let text = health().to_json().unwrap();
    let newer = "has schema_version 2 of a newer version (this one reads 1)";
    let not = |problem: &str| format!("is no health file: {problem}");
    for (text, expected) in [
        (r#"{"schema_version":2,"written_at":1795428000,"gpus":[]}"#, newer.to_owned()),
        (r#"{"schema_version":2,"cards":{}}"#, newer.to_owned()),
        ("", not("EOF while parsing a value")),
        ("[]", not("invalid length 0")),
        ("{\"schema_version\":1,\n\"gpus\":[]}", not("missing field `written_at`")),
        (&text[..text.len() / 2], not("EOF while parsing")),
        (
            &text.replace("0000:65:00.0\",\"state", "65\",\"state"),
            not("invalid value: string \"65\", expected a PCI address like 0000:64:00.0"),
        ),
        (&text.replace("\"since\"", "\"sinse\""), not("unknown field `sinse`")),
        (&text.replace("{\"pci\"", "{\"leftover\":null,\"pci\""), not("duplicate field `leftover`")),
        (&text.replace(&NOW.to_string(), "-1"), not("invalid value: integer `-1`, expected u64")),
    ] {
        let sentence = parsed(text).unwrap_err();
        assert!(sentence.starts_with(&expected), "{text}: {sentence}");
    }
}

#[test]
fn a_long_reason_is_cut() {
    let mut health = health();
    health.gpus[1].quarantine.as_mut().unwrap().reason = "é".repeat(1000);
    let withheld = fresh(&health.to_json().unwrap());
    let reason = withheld.card(pci("0000:65:00.0")).unwrap().quarantine.clone().unwrap();
    assert!(reason.ends_with(&format!(": {}…", "é".repeat(LONGEST_REASON))), "{reason}");
}
