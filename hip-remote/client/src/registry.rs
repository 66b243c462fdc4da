//! The fat binaries that are linked into the program, and what their host code calls their kernels and variables.
//!
//! Constructors of the program fill it before main: it only remembers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use crate::connection::lock;

/// A fat binary's number: `__hipRegisterFatBinary` returns its address.
pub type Binary = usize;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Symbol {
    pub binary: Binary,
    pub name: Vec<u8>,
}

#[derive(Default)]
pub struct Registry {
    /// Where each binary's image is in the program.
    images: HashMap<Binary, usize>,
    /// By the address of the host's stub.
    kernels: HashMap<usize, Symbol>,
    /// By the address of the host's shadow.
    variables: HashMap<usize, Symbol>,
    /// What the binaries have that no remote GPU does: their code would compute with what is not there.
    unsupported: Vec<(Binary, String)>,
}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

fn with<T>(use_it: impl FnOnce(&mut Registry) -> T) -> T {
    use_it(lock(&REGISTRY).get_or_insert_default())
}

/// Keeps all other threads out, across a fork.
pub fn hold() -> MutexGuard<'static, Option<Registry>> {
    lock(&REGISTRY)
}

pub fn add_binary(binary: Binary, image: usize) {
    with(|registry| registry.images.insert(binary, image));
}

pub fn add_kernel(host: usize, symbol: Symbol) {
    with(|registry| registry.kernels.insert(host, symbol));
}

pub fn add_variable(host: usize, symbol: Symbol) {
    with(|registry| registry.variables.insert(host, symbol));
}

pub fn add_unsupported(binary: Binary, what: String) {
    with(|registry| registry.unsupported.push((binary, what)));
}

pub fn unsupported() -> Vec<String> {
    with(|registry| registry.unsupported.iter().map(|(_, what)| what.clone()).collect())
}

pub fn is_supported(binary: Binary) -> bool {
    with(|registry| registry.unsupported.iter().all(|(of, _)| *of != binary))
}

pub fn remove_binary(binary: Binary) {
    with(|registry| {
        registry.images.remove(&binary);
        registry.kernels.retain(|_, symbol| symbol.binary != binary);
        registry.variables.retain(|_, symbol| symbol.binary != binary);
        registry.unsupported.retain(|(of, _)| *of != binary);
    });
}

pub fn image(binary: Binary) -> Option<usize> {
    with(|registry| registry.images.get(&binary).copied())
}

pub fn kernel(host: usize) -> Option<Symbol> {
    with(|registry| registry.kernels.get(&host).cloned())
}

pub fn variable(host: usize) -> Option<Symbol> {
    with(|registry| registry.variables.get(&host).cloned())
}
