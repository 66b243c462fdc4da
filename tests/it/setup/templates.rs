//! Templates that would take all memory or never end.

use crate::setup::laid::Laid;

#[test]
fn a_template_that_never_ends_is_ended() {
    let laid = Laid::demo("");
    let endless = "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}";
    laid.put("etc/rocworker/templates/cdi/amd.json", endless);
    let (code, said) = laid.fails(&["plan"]);
    assert!(code == 1 && said.contains("templates/cdi/amd.json"), "{said}");
}

/// Each of these used up the memory or the stack of the whole program once.
#[test]
fn a_template_that_would_grow_without_end_is_refused_with_its_line() {
    let laid = Laid::demo("");
    let elifs = "{% elif 1 %}".repeat(5000);
    for (text, problem) in [
        (
            format!("{{% set a = 'x' %}}{}", "{% set a = a ~ a %}".repeat(40)),
            ":1: templates know no set, only if",
        ),
        ("{% for a in ['x'] %}\n{% for a in [a ~ a] %}".to_owned(), ":1: a loop goes through what is there"),
        (format!("\n{{{{ 1{} }}}}", "+1".repeat(30_000)), ":2: more than 100 words and signs"),
        (format!("\n{{% if 0 %}}{elifs}{{% endif %}}"), ":2: it has more than 500 blocks"),
        ("{{ 'x' * 100000000 }}".to_owned(), ":1: nothing is multiplied in templates"),
        ("{{ kind|replace('a', kind) }}".to_owned(), ":1: templates know no filter replace, only abs"),
        (
            "{% for i in range(100000) %}twelve bytes{% endfor %}".to_owned(),
            "amd.json: it gives more than 1024 KiB",
        ),
    ] {
        laid.put("etc/rocworker/templates/cdi/amd.json", &text);
        let (code, said) = laid.fails(&["plan"]);
        assert!(
            code == 1 && said.contains("templates/cdi/amd.json") && said.contains(problem),
            "{problem}: {said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
