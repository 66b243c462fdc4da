use super::{CDI, ROCWORKER, Redacted, Redactor};
use crate::engines::{self, Format};

fn redactor() -> Redactor {
    Redactor::new(Some("build-7"))
}

#[test]
fn what_sounds_secret_is_gone_and_what_stands_around_it_stays() {
    for (text, without) in [
        ("CONCOURSE_TSA_WORKER_PRIVATE_KEY=hunter2", "CONCOURSE_TSA_WORKER_PRIVATE_KEY=\"[removed]\""),
        ("export DB_PASSWORD='hunter2 x'", "export DB_PASSWORD=\"[removed]\""),
        (
            "Environment=\"A=1\" \"API_TOKEN=hunter2\" \"B=2\"",
            "Environment=\"A=1\" \"API_TOKEN=\"[removed]\"",
        ),
        ("  password: hunter2", "  password: \"[removed]\""),
        ("# token = \"hunter2\"", "# token = \"[removed]\""),
        ("auth = \"hunter2\" # see", "auth = \"[removed]\""),
        ("[x] x = { username = \"ann\", password = \"hunter2\" }", "[x] x = { username = \"[removed]\""),
        ("ADD_LOCAL_USER=ann:hunter2", "ADD_LOCAL_USER=\"[removed]\""),
        ("  \"registry.token\" = \"hunter2\"", "  \"registry.token\" = \"[removed]\""),
        (
            "ExecStart=/bin/worker --client-secret hunter2 --name x",
            "ExecStart=/bin/worker --client-secret [removed]",
        ),
        ("http-proxy = \"http://ann:hunter2@proxy:3128/\"", "http-proxy = \"http://[removed]@proxy:3128/\""),
        ("HTTP_PROXY=http://ann:hun/ter2@proxy", "HTTP_PROXY=http://[removed]@proxy"),
        ("NO_SCHEME=ann:hunter2@proxy:3128", "NO_SCHEME=[removed]@proxy:3128"),
        ("x-header = [\"Bearer hunter2\"]", "x-header = [\"Bearer [removed]"),
        ("Authorization: Basic aHVudGVyMg==", "Authorization: \"[removed]\""),
        ("eth0 52:54:00:12:34:56 up", "eth0 [removed] up"),
        ("CERT=-----BEGIN PRIVATE KEY-----\\nabc\\n-----END PRIVATE KEY-----", "CERT=[removed]"),
        ("Nov 21 Build-7 kernel: build-70 build-7.example", "Nov 21 HOST kernel: build-70 HOST.example"),
    ] {
        let Redacted { text: found, places } = redactor().text(text);
        assert_eq!((found.as_str(), places > 0), (without, true), "{text}");
    }
}

#[test]
fn a_secret_of_several_lines_is_gone_to_its_end_and_the_lines_keep_their_numbers() {
    for (text, without) in [
        ("key: |\n  hunter2\n  hunter2\n\nnext: 1\n", "key: \"[removed]\"\n\n\n\nnext: 1\n"),
        ("tokens:\n- hunter2\n- hunter2\nnext: 1\n", "tokens:\n\n\nnext: 1\n"),
        ("  tokens:\n    a: hunter2\n  next: 1\n", "  tokens:\n\n  next: 1\n"),
        ("key = \"\"\"hunter2\nhunter2\"\"\"\nnext = 1\n", "key = \"[removed]\"\n\nnext = 1\n"),
        ("tokens = [\n  \"hunter2\",\n]\nnext = 1\n", "tokens = \"[removed]\"\n\n\nnext = 1\n"),
        ("auth = { a = [\n \"hunter2\" ],\n b = 2 }\nnext = 1\n", "auth = \"[removed]\"\n\n\nnext = 1\n"),
        ("KEY=\"hunter2\nhunter2\"\nNEXT=1\n", "KEY=\"[removed]\"\n\nNEXT=1\n"),
        ("X --token hunter2\n", "X --token [removed]\n"),
        (
            "Environment=TOKEN=a \\\n hunter2 \\\n hunter2\nNEXT=1\n",
            "Environment=TOKEN=\"[removed]\"\n\n\nNEXT=1\n",
        ),
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n-----END OPENSSH PRIVATE KEY-----\nnext\n",
            "[removed]\n\n\nnext\n",
        ),
    ] {
        let found = redactor().text(text);
        assert_eq!(found.text, without, "{text}");
    }
}

#[test]
fn what_is_no_secret_stays_byte_for_byte() {
    for text in [
        "",
        "version = 3\n[plugins.\"io.containerd.cri.v1.runtime\"]\n  enable_cdi = true\n",
        "CONCOURSE_TAG=gpu,gpu-type=amd\nCONCOURSE_RUNTIME=containerd\n",
        "compute-runtime: rocm\ngpu-device-ids: [0000:64:00.0, renderD129]\n",
        "amdgpu 0000:64:00.0: amdgpu: VRAM: 512M 0x000000F400000000 - 0x000000F41FFFFFFF\n",
        "SECRET=\n",
        "mail ann@example.org\r\n",
    ] {
        assert_eq!(redactor().text(text), Redacted { text: text.to_owned(), places: 0 });
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_fail_and_no_line_is_lost(text in "([-a-zA-Z0-9=:@/\"'\\[\\]{}| \\\\\n\u{e9}]|KEY=|://){0,80}") {
        let found = redactor().text(&text);
        proptest::prop_assert_eq!(found.text.matches('\n').count(), text.matches('\n').count());
        let of_engines = engines::ALL.iter().flat_map(|engine| engine.reported).map(|it| it.format);
        for format in of_engines.chain([Format::Json(&CDI), Format::Yaml(&ROCWORKER), Format::Env, Format::Unit]) {
            redactor().configuration(format, &text);
        }
    }
}
