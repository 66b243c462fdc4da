//! Opens the library and calls it.
#![allow(unsafe_code, reason = "the library is C's")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use hip_abi::properties::Layout;

use super::{MEMCPY_DEFAULT, Status};

/// The HIP libraries of a machine, the newest first.
const LIBRARIES: [&str; 3] = ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"];

/// The longest properties of any release are shorter.
const PROPERTIES: usize = 4096;

/// `HIP_LAUNCH_PARAM_BUFFER_POINTER`, `HIP_LAUNCH_PARAM_BUFFER_SIZE`, `HIP_LAUNCH_PARAM_END`.
const BUFFER_POINTER: usize = 1;
const BUFFER_SIZE: usize = 2;
const END: usize = 3;

macro_rules! functions {
    ($($field:ident = $symbol:literal ($($argument:ty),*);)*) => {
        /// What each library must have, beside one function for properties.
        #[cfg(test)]
        const SYMBOLS: &[&CStr] = &[$($symbol),*];

        struct Functions {$($field: unsafe extern "C" fn($($argument),*) -> i32,)*}

        impl Functions {
            fn open(library: *mut c_void, path: &Path) -> Result<Self, String> {
                Ok(Self {$(
                    // SAFETY: the symbol is a function of these arguments in every release from 5.2 on.
                    $field: unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> i32>(
                            symbol(library, $symbol).ok_or_else(|| missing(path, $symbol))?
                        )
                    },
                )*})
            }
        }
    };
}

functions! {
    init = c"hipInit" (u32);
    driver_version = c"hipDriverGetVersion" (*mut i32);
    runtime_version = c"hipRuntimeGetVersion" (*mut i32);
    device_count = c"hipGetDeviceCount" (*mut i32);
    set_device = c"hipSetDevice" (i32);
    device_attribute = c"hipDeviceGetAttribute" (*mut i32, i32, i32);
    memory_info = c"hipMemGetInfo" (*mut usize, *mut usize);
    device_sync = c"hipDeviceSynchronize" ();
    malloc = c"hipMalloc" (*mut u64, usize);
    free = c"hipFree" (u64);
    host_malloc = c"hipHostMalloc" (*mut u64, usize, u32);
    host_free = c"hipHostFree" (u64);
    memcpy = c"hipMemcpyAsync" (u64, u64, usize, i32, u64);
    memcpy_2d = c"hipMemcpy2DAsync" (u64, usize, u64, usize, usize, usize, i32, u64);
    memset_8 = c"hipMemsetD8Async" (u64, u8, usize, u64);
    memset_16 = c"hipMemsetD16Async" (u64, u16, usize, u64);
    memset_32 = c"hipMemsetD32Async" (u64, i32, usize, u64);
    memset_2d = c"hipMemset2DAsync" (u64, usize, i32, usize, usize, u64);
    module_load = c"hipModuleLoadData" (*mut u64, *const c_void);
    module_unload = c"hipModuleUnload" (u64);
    module_function = c"hipModuleGetFunction" (*mut u64, u64, *const c_char);
    module_global = c"hipModuleGetGlobal" (*mut u64, *mut usize, u64, *const c_char);
    launch = c"hipModuleLaunchKernel" (
        u64, u32, u32, u32, u32, u32, u32, u32, u64, *mut *mut c_void, *mut *mut c_void
    );
    function_attribute = c"hipFuncGetAttribute" (*mut i32, i32, u64);
    occupancy = c"hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags" (*mut i32, u64, i32, usize, u32);
    occupancy_block = c"hipModuleOccupancyMaxPotentialBlockSizeWithFlags" (
        *mut i32, *mut i32, u64, usize, i32, u32
    );
    stream_create = c"hipStreamCreateWithPriority" (*mut u64, u32, i32);
    stream_destroy = c"hipStreamDestroy" (u64);
    stream_sync = c"hipStreamSynchronize" (u64);
    stream_query = c"hipStreamQuery" (u64);
    stream_wait = c"hipStreamWaitEvent" (u64, u64, u32);
    stream_priorities = c"hipDeviceGetStreamPriorityRange" (*mut i32, *mut i32);
    event_create = c"hipEventCreateWithFlags" (*mut u64, u32);
    event_destroy = c"hipEventDestroy" (u64);
    event_record = c"hipEventRecord" (u64, u64);
    event_sync = c"hipEventSynchronize" (u64);
    event_query = c"hipEventQuery" (u64);
    event_elapsed = c"hipEventElapsedTime" (*mut f32, u64, u64);
}

/// The opened library. It stays open until the process ends.
pub struct Hip {
    functions: Functions,
    properties: unsafe extern "C" fn(*mut c_void, i32) -> i32,
    layout: Layout,
}

impl std::fmt::Debug for Hip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hip").field("layout", &self.layout).finish_non_exhaustive()
    }
}

fn symbol(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the library is open, and the name ends with a zero.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

fn missing(path: &Path, name: &CStr) -> String {
    format!(
        "the HIP library {} has no {}: install libamdhip64 of ROCm 5.2 or later, or name another library by \
         --hip-library",
        path.display(),
        name.to_string_lossy()
    )
}

fn done(status: i32) -> Result<(), Status> {
    if status == 0 { Ok(()) } else { Err(status) }
}

/// Names the GPUs that the HIP library of this process may see. It must come before [`Hip::open`], and before any
/// other thread begins.
pub fn show_devices(variable: &CStr, devices: &CStr) {
    // SAFETY: the caller's process has one thread.
    unsafe { libc::setenv(variable.as_ptr(), devices.as_ptr(), 1) };
}

/// Hands over what C's standard output still keeps in memory.
pub fn flush_output() {
    // SAFETY: a null pointer means every stream.
    unsafe { libc::fflush(std::ptr::null_mut()) };
}

impl Hip {
    /// Opens the named library, or else the first of the machine's that can be opened.
    ///
    /// # Errors
    /// None can be opened, or one lacks a function.
    pub fn open(named: Option<&Path>) -> Result<Self, String> {
        let candidates = named.map_or_else(|| LIBRARIES.map(Path::new).to_vec(), |path| vec![path]);
        let mut why = String::new();
        for path in candidates {
            let name =
                CString::new(path.as_os_str().as_bytes()).map_err(|_| "a path has a zero byte".to_owned())?;
            // SAFETY: opening runs the library's constructors, which is what opening it is for.
            let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
            if library.is_null() {
                // SAFETY: after a failure dlerror gives a string, which is copied at once.
                let error = unsafe { libc::dlerror() };
                if !error.is_null() && why.is_empty() {
                    // SAFETY: as above.
                    why = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
                }
                continue;
            }
            if symbol(library, c"rocworker_hip_release").is_some() {
                return Err(format!(
                    "{} is rocworker's own library for clients: name this machine's by --hip-library, or start the worker \
                     without LD_LIBRARY_PATH",
                    path.display()
                ));
            }
            let functions = Functions::open(library, path)?;
            let (properties, layout) = match symbol(library, c"hipGetDevicePropertiesR0600") {
                Some(found) => (found, Layout::Rocm6),
                None => {
                    let found = symbol(library, c"hipGetDeviceProperties");
                    (found.ok_or_else(|| missing(path, c"hipGetDeviceProperties"))?, Layout::Rocm5)
                }
            };
            // SAFETY: both symbols are functions of a struct and a device.
            let properties = unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void, i32) -> i32>(properties)
            };
            return Ok(Self { functions, properties, layout });
        }
        Err(format!(
            "no HIP library can be opened ({why}): install libamdhip64, or name one by --hip-library"
        ))
    }

    /// Calls a function of the library.
    fn call(&self, run: impl FnOnce(&Functions) -> i32) -> Result<(), Status> {
        done(run(&self.functions))
    }

    /// Calls a function that fills one value.
    fn get<T: Default>(&self, run: impl FnOnce(&Functions, *mut T) -> i32) -> Result<T, Status> {
        let mut value = T::default();
        done(run(&self.functions, &raw mut value))?;
        Ok(value)
    }
}

// Below, every call passes numbers, and pointers to values that outlive it: that is each SAFETY comment.
impl Hip {
    pub fn init(&self) -> Result<(), Status> {
        // SAFETY: see above.
        self.call(|f| unsafe { (f.init)(0) })
    }

    pub fn driver_version(&self) -> Result<i32, Status> {
        // SAFETY: see above.
        self.get(|f, to| unsafe { (f.driver_version)(to) })
    }

    pub fn runtime_version(&self) -> Result<i32, Status> {
        // SAFETY: see above.
        self.get(|f, to| unsafe { (f.runtime_version)(to) })
    }

    pub fn device_count(&self) -> Result<i32, Status> {
        // SAFETY: see above.
        self.get(|f, to| unsafe { (f.device_count)(to) })
    }

    /// The calling thread's device from now on.
    pub fn set_device(&self, device: i32) -> Result<(), Status> {
        // SAFETY: see above.
        self.call(|f| unsafe { (f.set_device)(device) })
    }

    /// The struct as the library fills it, and its layout.
    pub fn properties(&self, device: i32) -> Result<(Vec<u8>, Layout), Status> {
        // The struct's alignment is eight.
        let mut words = [0_u64; PROPERTIES / 8];
        // SAFETY: the buffer is longer than the struct of any release.
        done(unsafe { (self.properties)(words.as_mut_ptr().cast(), device) })?;
        let bytes = words.iter().flat_map(|word| word.to_ne_bytes()).take(self.layout.size()).collect();
        Ok((bytes, self.layout))
    }

    pub fn device_attribute(&self, device: i32, attribute: i32) -> Result<i32, Status> {
        // SAFETY: see above.
        self.get(|f, to| unsafe { (f.device_attribute)(to, attribute, device) })
    }

    /// Free and total bytes of the thread's device.
    pub fn memory_info(&self) -> Result<(usize, usize), Status> {
        let mut total = 0;
        // SAFETY: see above.
        let free = self.get(|f, to| unsafe { (f.memory_info)(to, &raw mut total) })?;
        Ok((free, total))
    }

    pub fn device_sync(&self) -> Result<(), Status> {
        // SAFETY: see above.
        self.call(|f| unsafe { (f.device_sync)() })
    }

    pub fn malloc(&self, bytes: usize) -> Result<u64, Status> {
        // SAFETY: see above.
        self.get(|f, to| unsafe { (f.malloc)(to, bytes) })
    }

    pub fn free(&self, pointer: u64) -> Result<(), Status> {
        // SAFETY: see above.
        self.call(|f| unsafe { (f.free)(pointer) })
    }

    pub(super) fn host_malloc(&self, bytes: usize) -> Result<u64, Status> {
        // SAFETY: see above.
        self.get(|f, to| unsafe { (f.host_malloc)(to, bytes, 0) })
    }

    pub(super) fn host_free(&self, pointer: u64) {
        // SAFETY: `Pinned` frees what it was given, once.
        unsafe { (self.functions.host_free)(pointer) };
    }

    pub fn copy(&self, to: u64, from: u64, bytes: usize, stream: u64) -> Result<(), Status> {
        // SAFETY: the caller has checked both ranges.
        self.call(|f| unsafe { (f.memcpy)(to, from, bytes, MEMCPY_DEFAULT, stream) })
    }

    #[allow(clippy::too_many_arguments, reason = "the arguments are those of hipMemcpy2DAsync")]
    pub fn copy_rows(
        &self,
        to: u64,
        to_pitch: usize,
        from: u64,
        from_pitch: usize,
        width: usize,
        height: usize,
        stream: u64,
    ) -> Result<(), Status> {
        // SAFETY: the caller has checked both ranges.
        self.call(|f| unsafe {
            (f.memcpy_2d)(to, to_pitch, from, from_pitch, width, height, MEMCPY_DEFAULT, stream)
        })
    }

    /// Sets `count` elements of 1, 2 or 4 bytes.
    pub fn set(&self, to: u64, value: u32, element: u32, count: usize, stream: u64) -> Result<(), Status> {
        let [b0, b1, ..] = value.to_le_bytes();
        // SAFETY: the caller has checked the range.
        self.call(|f| unsafe {
            match element {
                1 => (f.memset_8)(to, b0, count, stream),
                2 => (f.memset_16)(to, u16::from_le_bytes([b0, b1]), count, stream),
                _ => (f.memset_32)(to, value.cast_signed(), count, stream),
            }
        })
    }

    pub fn set_rows(
        &self,
        to: u64,
        pitch: usize,
        value: u8,
        width: usize,
        height: usize,
        stream: u64,
    ) -> Result<(), Status> {
        // SAFETY: the caller has checked the range.
        self.call(|f| unsafe { (f.memset_2d)(to, pitch, i32::from(value), width, height, stream) })
    }

    pub fn module_load(&self, image: &[u8]) -> Result<u64, Status> {
        // SAFETY: the image outlives the call; the library takes its length from its headers.
        self.get(|f, to| unsafe { (f.module_load)(to, image.as_ptr().cast()) })
    }

    pub fn module_unload(&self, module: u64) -> Result<(), Status> {
        // SAFETY: see above.
        self.call(|f| unsafe { (f.module_unload)(module) })
    }

    pub fn module_function(&self, module: u64, name: &CStr) -> Result<u64, Status> {
        // SAFETY: see above.
        self.get(|f, to| unsafe { (f.module_function)(to, module, name.as_ptr()) })
    }

    /// A variable's address and length.
    pub fn module_global(&self, module: u64, name: &CStr) -> Result<(u64, usize), Status> {
        let mut bytes = 0;
        // SAFETY: see above.
        let pointer =
            self.get(|f, to| unsafe { (f.module_global)(to, &raw mut bytes, module, name.as_ptr()) })?;
        Ok((pointer, bytes))
    }

    pub fn launch(
        &self,
        function: u64,
        [gx, gy, gz]: [u32; 3],
        [bx, by, bz]: [u32; 3],
        shared: u32,
        stream: u64,
        arguments: &[u8],
    ) -> Result<(), Status> {
        let mut size = arguments.len();
        let mut extra: [*mut c_void; 5] = [
            BUFFER_POINTER as *mut c_void,
            arguments.as_ptr().cast_mut().cast(),
            BUFFER_SIZE as *mut c_void,
            (&raw mut size).cast(),
            END as *mut c_void,
        ];
        // SAFETY: the library copies the arguments before it returns.
        self.call(|f| unsafe {
            (f.launch)(
                function,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                shared,
                stream,
                std::ptr::null_mut(),
                extra.as_mut_ptr(),
            )
        })
    }

    pub fn function_attribute(&self, function: u64, attribute: i32) -> Result<i32, Status> {
        // SAFETY: see above.
        self.get(|f, to| unsafe { (f.function_attribute)(to, attribute, function) })
    }

    pub fn occupancy(&self, function: u64, block: i32, shared: usize, flags: u32) -> Result<i32, Status> {
        // SAFETY: see above.
        self.get(|f, to| unsafe { (f.occupancy)(to, function, block, shared, flags) })
    }

    /// The grid and the block of the highest occupancy.
    pub fn occupancy_block(
        &self,
        function: u64,
        shared: usize,
        limit: i32,
        flags: u32,
    ) -> Result<(i32, i32), Status> {
        let mut block = 0;
        // SAFETY: see above.
        let grid = self.get(|f, to| unsafe {
            (f.occupancy_block)(to, &raw mut block, function, shared, limit, flags)
        })?;
        Ok((grid, block))
    }

    pub fn stream_create(&self, flags: u32, priority: i32) -> Result<u64, Status> {
        // SAFETY: see above.
        self.get(|f, to| unsafe { (f.stream_create)(to, flags, priority) })
    }

    pub fn stream_destroy(&self, stream: u64) -> Result<(), Status> {
        // SAFETY: see above.
        self.call(|f| unsafe { (f.stream_destroy)(stream) })
    }

    pub fn stream_sync(&self, stream: u64) -> Result<(), Status> {
        // SAFETY: see above.
        self.call(|f| unsafe { (f.stream_sync)(stream) })
    }

    pub fn stream_query(&self, stream: u64) -> Result<(), Status> {
        // SAFETY: see above.
        self.call(|f| unsafe { (f.stream_query)(stream) })
    }

    pub fn stream_wait(&self, stream: u64, event: u64, flags: u32) -> Result<(), Status> {
        // SAFETY: see above.
        self.call(|f| unsafe { (f.stream_wait)(stream, event, flags) })
    }

    /// The least and the greatest priority.
    pub fn stream_priorities(&self) -> Result<(i32, i32), Status> {
        let mut greatest = 0;
        // SAFETY: see above.
        let least = self.get(|f, to| unsafe { (f.stream_priorities)(to, &raw mut greatest) })?;
        Ok((least, greatest))
    }

    pub fn event_create(&self, flags: u32) -> Result<u64, Status> {
        // SAFETY: see above.
        self.get(|f, to| unsafe { (f.event_create)(to, flags) })
    }

    pub fn event_destroy(&self, event: u64) -> Result<(), Status> {
        // SAFETY: see above.
        self.call(|f| unsafe { (f.event_destroy)(event) })
    }

    pub fn event_record(&self, event: u64, stream: u64) -> Result<(), Status> {
        // SAFETY: see above.
        self.call(|f| unsafe { (f.event_record)(event, stream) })
    }

    pub fn event_sync(&self, event: u64) -> Result<(), Status> {
        // SAFETY: see above.
        self.call(|f| unsafe { (f.event_sync)(event) })
    }

    pub fn event_query(&self, event: u64) -> Result<(), Status> {
        // SAFETY: see above.
        self.call(|f| unsafe { (f.event_query)(event) })
    }

    /// Milliseconds between two events.
    pub fn event_elapsed(&self, start: u64, stop: u64) -> Result<f32, Status> {
        // SAFETY: see above.
        self.get(|f, to| unsafe { (f.event_elapsed)(to, start, stop) })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use hip_abi::release::Release;
    use hip_abi::symbols;

    use super::*;

    #[test]
    fn the_libraries_of_every_release_have_what_the_worker_asks_for() {
        for (release, properties) in [
            (Release::Rocm5, c"hipGetDeviceProperties"),
            (Release::Rocm6, c"hipGetDevicePropertiesR0600"),
            (Release::Rocm7, c"hipGetDevicePropertiesR0600"),
        ] {
            let exported: HashSet<&str> = symbols::of(release).map(|symbol| symbol.name).collect();
            for symbol in SYMBOLS.iter().chain([&properties]) {
                assert!(exported.contains(symbol.to_str().unwrap()), "{release:?} has no {symbol:?}");
            }
        }
    }
}
