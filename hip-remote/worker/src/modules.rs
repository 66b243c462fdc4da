//! Calls about code objects, their kernels and variables.

use std::ffi::CString;

use hip_code_object::kernel::kernels;
use hip_protocol::calls::*;

use crate::hip::{INVALID_IMAGE, INVALID_VALUE, NOT_FOUND, Status};
use crate::locked::locked;
use crate::request::{Answer, Request};
use crate::serving::Serving;
use crate::session::Session;
use crate::tables::Object;

/// Loads a code object on a device, which is the thread's: its handle.
///
/// # Errors
/// The library refuses it, or it does not say what its kernels' arguments are.
pub fn load(session: &Session, device: i32, image: &[u8]) -> Result<u64, Status> {
    locked(&session.tables).has_room()?;
    let kernels = kernels(image).map_err(|_| INVALID_IMAGE)?;
    let arguments = kernels.into_iter().map(|kernel| (kernel.name, kernel.arguments_size)).collect();
    let hip = session.hip.module_load(image)?;
    Ok(locked(&session.tables).add_module(Object { hip, device }, arguments))
}

/// A kernel's or a variable's name.
fn name(variable: &[u8]) -> Result<CString, Status> {
    CString::new(variable).map_err(|_| INVALID_VALUE)
}

impl Serving {
    pub fn module_load(&mut self, request: &Request, call: ModuleLoad) -> Answer<Loaded> {
        let device = request.lane.device();
        let held = self.session.images.hold(call.bytes)?;
        self.later(request, move |session| {
            let _held = held;
            let Some(image) = session.cache.read(&call.sha256, call.bytes) else {
                return Ok(Loaded { module: 0 });
            };
            Ok(Loaded { module: load(session, device, &image)? })
        })
    }

    pub fn module_unload(&mut self, request: &Request, call: ModuleUnload) -> Answer<()> {
        let module = locked(&self.session.tables).remove_module(call.module)?;
        self.release(request, module.device, move |session| session.hip.module_unload(module.hip))
    }

    pub fn module_function(
        &mut self,
        _: &Request,
        call: ModuleFunction,
        variable: &[u8],
    ) -> Answer<Function> {
        let name = name(variable)?;
        let mut tables = locked(&self.session.tables);
        let module = tables.modules.get(call.module)?;
        // The library's own search comes first: its error is the one that programs know.
        self.session.use_device(module.device)?;
        let hip = self.session.hip.module_function(module.hip, &name)?;
        let function = tables.add_function(call.module, hip, &name.to_string_lossy()).ok_or(NOT_FOUND)?;
        Ok(Some(Function { function }))
    }

    pub fn module_global(&mut self, _: &Request, call: ModuleGlobal, variable: &[u8]) -> Answer<Global> {
        let name = name(variable)?;
        let mut tables = locked(&self.session.tables);
        let module = tables.modules.get(call.module)?;
        self.session.use_device(module.device)?;
        let (pointer, bytes) = self.session.hip.module_global(module.hip, &name)?;
        tables.add_variable(call.module, pointer, bytes as u64);
        Ok(Some(Global { pointer, bytes: bytes as u64 }))
    }

    pub fn launch(&mut self, request: &Request, call: Launch, arguments: &[u8]) -> Answer<()> {
        let function = locked(&self.session.tables).function(call.function)?;
        // The library reads as many bytes as the kernel has arguments, whatever the launch says.
        if arguments.len() != function.arguments {
            return Err(INVALID_VALUE);
        }
        let (device, stream) = self.stream(request, call.stream)?;
        self.session.hip.launch(function.hip, call.grid, call.block, call.shared, stream, arguments)?;
        self.session.counters.launched(device);
        Ok(Some(()))
    }

    pub fn function_attribute(&mut self, _: &Request, call: FunctionAttribute) -> Answer<FunctionValue> {
        let function = locked(&self.session.tables).function(call.function)?;
        Ok(Some(FunctionValue { value: self.session.hip.function_attribute(function.hip, call.attribute)? }))
    }

    pub fn occupancy(&mut self, _: &Request, call: Occupancy) -> Answer<Blocks> {
        let function = locked(&self.session.tables).function(call.function)?;
        let shared = usize::try_from(call.shared).map_err(|_| INVALID_VALUE)?;
        let blocks = self.session.hip.occupancy(function.hip, call.block, shared, call.flags)?;
        Ok(Some(Blocks { blocks }))
    }

    pub fn occupancy_block(&mut self, _: &Request, call: OccupancyBlock) -> Answer<BlockSize> {
        let function = locked(&self.session.tables).function(call.function)?;
        let shared = usize::try_from(call.shared).map_err(|_| INVALID_VALUE)?;
        let (grid, block) = self.session.hip.occupancy_block(function.hip, shared, call.limit, call.flags)?;
        Ok(Some(BlockSize { grid, block }))
    }
}
