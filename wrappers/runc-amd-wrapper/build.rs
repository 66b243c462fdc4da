//! Puts the wrapper's own `memcpy` (src/memory.rs) in the place of musl's: ld's `--wrap` names it `__wrap_memcpy`.

#[expect(clippy::disallowed_methods, reason = "cargo tells a build script its target by variables")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |key: &str, value: &str| std::env::var(key).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_ARCH", "x86_64") && is("CARGO_CFG_TARGET_ENV", "musl") {
        println!("cargo::rustc-link-arg-bins=-Wl,--wrap=memcpy");
    }
}
