//! What a program of hipcc registers before main: its code objects, kernels and variables, by addresses of the host.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use crate::code_object::{self, Kernel, Module};
use crate::status::{INVALID_DEVICE_FUNCTION, INVALID_IMAGE, INVALID_VALUE, Status};

struct FatBinary {
    /// The bundle's address, which stays where it is until the program unregisters it.
    bundle: u64,
    /// A device's modules come when it first needs them.
    modules: HashMap<usize, Arc<Module>>,
}

#[derive(Default)]
struct Registered {
    binaries: HashMap<u64, FatBinary>,
    next: u64,
    /// By the address of the kernel's host function, and of the variable's host twin.
    kernels: HashMap<u64, (u64, String)>,
    variables: HashMap<u64, (u64, String)>,
    /// The launches name one handle for each kernel and device.
    handles: HashMap<(u64, usize), u64>,
}

static REGISTERED: LazyLock<Mutex<Registered>> = LazyLock::new(Mutex::default);

fn registered() -> MutexGuard<'static, Registered> {
    REGISTERED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

pub fn add(bundle: u64) -> u64 {
    let mut all = registered();
    all.next += 1;
    let handle = all.next;
    all.binaries.insert(handle, FatBinary { bundle, modules: HashMap::new() });
    handle
}

pub fn remove(handle: u64) {
    let mut all = registered();
    all.binaries.remove(&handle);
    all.kernels.retain(|_, (binary, _)| *binary != handle);
    all.variables.retain(|_, (binary, _)| *binary != handle);
}

pub fn add_kernel(handle: u64, host: u64, name: String) {
    registered().kernels.insert(host, (handle, name));
}

pub fn add_variable(handle: u64, host: u64, name: String) {
    registered().variables.insert(host, (handle, name));
}

impl Registered {
    fn module(&mut self, handle: u64, device: usize) -> Result<Arc<Module>, Status> {
        let binary = self.binaries.get_mut(&handle).ok_or(INVALID_IMAGE)?;
        if let Some(module) = binary.modules.get(&device) {
            return Ok(module.clone());
        }
        // The program has registered the bundle and not unregistered it.
        let image = unsafe { code_object::image(binary.bundle as *const u8) }?;
        let module = Arc::new(Module::load(&image, device)?);
        binary.modules.insert(device, module.clone());
        Ok(module)
    }
}

pub fn kernel(host: u64, device: usize) -> Result<Arc<Kernel>, Status> {
    let mut all = registered();
    let (handle, name) = all.kernels.get(&host).cloned().ok_or(INVALID_DEVICE_FUNCTION)?;
    all.module(handle, device)?.kernels.get(&name).cloned().ok_or(INVALID_DEVICE_FUNCTION)
}

/// A kernel's handle, which is one for all of a program's time.
pub fn kernel_handle(host: u64, device: usize) -> Result<u64, Status> {
    let kernel = kernel(host, device)?;
    let mut all = registered();
    Ok(*all.handles.entry((host, device)).or_insert_with(|| crate::handles::KERNELS.add(kernel)))
}

pub fn variable(host: u64, device: usize) -> Result<(u64, u64), Status> {
    let mut all = registered();
    let (handle, name) = all.variables.get(&host).cloned().ok_or(INVALID_VALUE)?;
    all.module(handle, device)?.variables.get(&name).copied().ok_or(INVALID_VALUE)
}
