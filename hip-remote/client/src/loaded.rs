//! The code objects that the worker has loaded for the program, and their kernels.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Arc, OnceLock};

use hip_code_object::kernel::Kernel;

use crate::error::{HipError, Outcome};
use crate::registry::Binary;

/// The number of `HIP_FUNC_ATTRIBUTE_*`.
pub const ATTRIBUTES: usize = 10;

/// A kernel that can be launched.
pub struct Function {
    /// The worker's handle, which is the program's too.
    pub handle: u64,
    pub module: u64,
    pub name: CString,
    pub kernel: Kernel,
    /// The most bytes of shared memory that a launch may add to the kernel's own.
    pub most_shared: usize,
    pub attributes: Attributes,
}

/// A kernel's attributes, by their numbers, as far as the program has asked for them: they do not change.
#[derive(Default)]
pub struct Attributes([OnceLock<i32>; ATTRIBUTES]);

impl Attributes {
    /// # Errors
    /// There is no such attribute, or `ask` fails.
    pub fn get(&self, number: i32, ask: impl FnOnce() -> Outcome<i32>) -> Outcome<i32> {
        let place = usize::try_from(number).ok().and_then(|number| self.0.get(number));
        let place = place.ok_or(HipError::INVALID_VALUE)?;
        if let Some(known) = place.get() {
            return Ok(*known);
        }
        let value = ask()?;
        Ok(*place.get_or_init(|| value))
    }
}

pub struct Module {
    pub device: i32,
    pub kernels: Vec<Kernel>,
    /// By their names: those that the program has asked for.
    pub functions: HashMap<CString, Arc<Function>>,
    /// The program holds a handle of it, or it has variables.
    pub is_state: bool,
}

#[derive(Default)]
pub struct Modules {
    pub by_handle: HashMap<u64, Module>,
    pub of_binaries: HashMap<(Binary, i32), u64>,
    pub functions: HashMap<u64, Arc<Function>>,
    pub by_host: HashMap<(usize, i32), Arc<Function>>,
    pub variables: HashMap<(usize, i32), Variable>,
}

/// A variable's place on a device.
#[derive(Clone, Copy)]
pub struct Variable {
    pub module: u64,
    pub pointer: u64,
    pub bytes: u64,
}

impl Modules {
    /// Whether the program holds a module or a kernel of one, or one holds variables of the program.
    pub fn has_state(&self) -> bool {
        self.by_handle.values().any(|module| module.is_state)
    }

    pub fn function(&self, handle: u64) -> Option<Arc<Function>> {
        self.functions.get(&handle).cloned()
    }

    pub fn remove_device(&mut self, device: i32) {
        let gone: Vec<u64> = self
            .by_handle
            .iter()
            .filter(|(_, module)| module.device == device)
            .map(|(handle, _)| *handle)
            .collect();
        for module in gone {
            self.remove(module);
        }
    }

    pub fn remove(&mut self, handle: u64) -> bool {
        self.of_binaries.retain(|_, module| *module != handle);
        self.functions.retain(|_, function| function.module != handle);
        self.by_host.retain(|_, function| function.module != handle);
        self.variables.retain(|_, variable| variable.module != handle);
        self.by_handle.remove(&handle).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worker_is_asked_once_for_an_attribute_that_it_knows() {
        let attributes = Attributes::default();
        assert_eq!(attributes.get(9, || Err(HipError::NOT_SUPPORTED)), Err(HipError::NOT_SUPPORTED));
        assert_eq!(attributes.get(9, || Ok(7)), Ok(7));
        assert_eq!(attributes.get(9, || Ok(8)), Ok(7));
        for number in [-1, 10] {
            assert_eq!(attributes.get(number, || Ok(1)), Err(HipError::INVALID_VALUE));
        }
    }
}
