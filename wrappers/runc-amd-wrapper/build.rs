//! How the wrapper is linked where it ships, statically with musl: what the kernel maps and the program's
//! first steps touch is a part of what every container pays.
#![allow(clippy::disallowed_methods, reason = "cargo tells a build script what it builds by its environment")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(early_entry)");
    if std::env::var_os("CARGO_CFG_TARGET_ENV").is_none_or(|env| env != "musl") {
        return;
    }
    // .cargo/config.toml asks for it, and a RUSTFLAGS of somebody's own takes the place of what stands there. At an
    // entry before the C library's, a position-independent program would run without its relocations.
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if !flags.replace('\u{1f}', " ").contains("relocation-model=static") {
        println!(
            "cargo::warning=without `-C relocation-model=static` in RUSTFLAGS the wrapper begins with the C \
             library's start-up, which costs every container some 50 µs"
        );
        return;
    }
    println!("cargo::rustc-cfg=early_entry");
    println!("cargo::rerun-if-changed=layout.ld");
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    // Begin in src/early.rs; code and constants in one mapping; nothing that nobody reads.
    let script = format!("--script={folder}/layout.ld");
    // rustc calls a C compiler to link, which hands on what stands behind -Wl, or a linker as it is.
    let linker = std::env::var("RUSTC_LINKER").unwrap_or_default();
    let before = if linker.ends_with("lld") { "" } else { "-Wl," };
    let flags =
        ["--entry=rocworker_begin", "-znoseparate-code", "-znorelro", "--build-id=none", "--no-eh-frame-hdr"];
    for flag in flags.into_iter().chain([&*script]) {
        println!("cargo::rustc-link-arg-bins={before}{flag}");
    }
}
